"""Local and global Gaussians (Yang, Li, WWW 2020), on rows as they come or on their features.

Read `learner` first (the equations, the rounds, the public class), then `covariance` (what a row does to a Gaussian, in
three forms) and `feature_maps` (kernels as inner products). The plain twin is tests/twins/local_global_gaussian.py.
"""
