"""The multitask second-order Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 4.2).

Read `learner` first (the rule, the public class), then `dual` (loops over the rows kept) and `primal` (loops over the
weights). Both keep a matrix as its `triangular_factor`. The plain twin is tests/twins/second_order.py.
"""
