"""Kalman filters on dense rows, one for all tasks and one for each: full matrices, and matrices of low rank.

Read `full_matrix`, the filter of up to 255 features, then `low_rank`, which keeps P as a diagonal less m directions and
goes on where more features come. They are kernels for other kernels: a learner such as hedged sharing holds a `Full`
and a `LowRank`. The twins in plain NumPy are tests/twins/hedged_sharing/kalman.py and low_rank.py.
"""
