"""Blocks that several algorithms are built of: relation rates, stored rows, task weights, shared-loss steps."""
