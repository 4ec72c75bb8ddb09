"""The default learners beside the peers that a user might take instead, on small streams with tasks.

Read `panels` first, a stream as linear learners and as trees get it; then `stored`, a peer and its forecasts on disk;
`retrained` and `by_row`, the peers; `columns`, scores and paired standard errors; `__main__` prints the tables.
"""
