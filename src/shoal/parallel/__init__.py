"""Threads and processes. Read `cores` first (their number), then `pipeline` (two threads for a learner), `jobs`."""
