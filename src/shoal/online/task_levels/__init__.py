"""Tasks' levels that may drift, over common weights: random intercepts by the row.

`levels` is the filter on dense rows. Its twin in plain NumPy is tests/twins/task_levels.py.
"""
