"""Sparse multi-task kernel machines (Srijith, Shevade, ICONIP 2012).

Read `learner` first (the objective, Algorithm 2, which selects basis vectors, and the public classes), then
`coefficients` (Algorithm 1, which estimates them). The plain twin is tests/twins/sparse_mtl.py.
"""
