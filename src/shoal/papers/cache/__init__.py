"""Results on disk. Read `store` first (results by content), then `versions` (a hash of the code that made them)."""
