"""Weights that belong to one task each: dense rows, or hash tables where few of many ever differ from zero.

Read `weights` first, the door for algorithms, then `hash_table`, `lookahead` (memory latency) and `record_table`, the
door for records of several numbers; `pairs` is the saved form.
"""
