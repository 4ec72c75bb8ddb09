"""A learner on many machines: its tasks on shards, which exchange what all tasks share (`shoal[cluster]`: Ray)."""
