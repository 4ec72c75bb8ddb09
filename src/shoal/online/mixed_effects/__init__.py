"""The linear mixed model by the row: common weights, and tasks' own with a covariance that is learned.

Begin with its twin in plain NumPy, tests/twins/mixed_effects.py. `effects` is the filter on dense rows, `learner` makes
dense rows of what comes, and is what users see.
"""
