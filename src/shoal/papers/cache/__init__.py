"""Results on disk: `store` keeps results and prepared data by content, `versions` hashes the code that made them."""
