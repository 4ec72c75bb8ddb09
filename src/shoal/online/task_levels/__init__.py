"""Tasks' levels that may drift, over common weights: random intercepts by the row.

Read `levels` first, the filter on dense rows, then `learner`. Its twin in plain NumPy is tests/twins/task_levels.py.
"""
