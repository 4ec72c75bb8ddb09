"""Blocks that several algorithms are built of, one idea a file.

Read those that an algorithm imports: `relation_rates` (given relations), `support_vectors` (stored rows),
`task_weights` (own weights in tables), `shared_loss_steps`, `dense_rows` with `dense`, `standardized_targets`.
"""
