"""The linear mixed model by the row: common weights, and tasks' own with a covariance that is learned.

`effects` is the filter on dense rows. Its twin in plain NumPy is tests/twins/mixed_effects.py.
"""
