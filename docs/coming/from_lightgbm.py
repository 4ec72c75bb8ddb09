"""
From LightGBM with the key as a category
========================================

Boosted trees with the key as a categorical feature are strong where there are many rows, and the default learner here
has trees among its experts for that reason. Trees are trained at night; between trainings they know nothing of today.
"""

# %%
# What stands for what
# --------------------
#
# .. list-table::
#    :header-rows: 1
#
#    * - LightGBM
#      - shoal
#    * - ``categorical_feature=["shop"]``
#      - ``task="shop"``
#    * - retrained nightly
#      - each row is learned when it comes; there is nothing to schedule
#    * - ``num_leaves``, ``learning_rate``, ``cat_smooth``
#      - nothing to tune
#    * - a new category is a missing value
#      - a new task is answered from what all share, and learned from its first row on
#    * - ``predict(pred_contrib=True)``
#      - ``explain_one``
#
# The same job on both sides
# --------------------------
# Fifty shops whose sales depend on price and weather, not only in lines. The stream is 6,000 rows long; LightGBM is
# retrained after every 500 on all rows so far.

import time
import warnings

import lightgbm
import numpy as np
from sklearn.metrics import log_loss

from shoal import HedgedSharing

warnings.filterwarnings("ignore", module="sklearn")
rng = np.random.default_rng(0)
n, every = 6000, 500
shop, X = rng.integers(50, size=n), rng.normal(size=(n, 6))
taste = rng.normal(size=(50, 2))
logit = 1.5 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + taste[shop, 0] + 0.7 * taste[shop, 1] * X[:, 3]
y = rng.random(n) < 1 / (1 + np.exp(-logit))


def tell(name: str, chances: np.ndarray, seconds: float) -> None:
    """Scores of the rows after the first training, and the time."""
    judged = slice(every, None)
    error = ((chances >= 0.5) != y)[judged].mean()
    print(f"{name:28} log-loss {log_loss(y[judged], chances[judged]):.3f}, error {error:.3f}, {seconds:.1f} s")


# %%
# LightGBM, with two settings:

table = np.column_stack([X, shop])
for leaves in (4, 16):
    chances, start = np.full(n, 0.5), time.perf_counter()
    settings = {"objective": "binary", "num_leaves": leaves, "verbosity": -1, "num_threads": 1}
    for first in range(every, n, every):
        rows = lightgbm.Dataset(table[:first], y[:first], categorical_feature=[6])
        booster = lightgbm.train(settings, rows, num_boost_round=100)
        chances[first : first + every] = booster.predict(table[first : first + every])
    tell(f"LightGBM, {leaves} leaves", chances, time.perf_counter() - start)

# %%
# The default, which learns row by row:

HedgedSharing().fit(X[:300], y[:300], shop[:300])  # compiles
start = time.perf_counter()
decisions = HedgedSharing().test_then_train(X, y, shop)
tell("HedgedSharing", 1 / (1 + np.exp(-decisions)), time.perf_counter() - start)

# %%
# :doc:`Benchmarks </benchmarks>` have this comparison on thirteen real streams, also where trees win.
