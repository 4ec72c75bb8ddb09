"""Threads and processes: their number (`cores`), two threads for one learner (`pipeline`), `read_ahead`, `jobs`."""
