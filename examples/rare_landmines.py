"""
Rare land mines that must not be missed
=======================================

A rare label that must not be missed: each mine counts as often as all that is harmless around it.

Data: Landmine, 29 fields, 6 % mines (`$SHOAL_DATA`, or downloaded).
"""

import numpy as np

from shoal import HedgedSharing
from shoal.datasets import load

data = load("landmine")
order = np.random.default_rng(0).permutation(len(data))
X, y, task = data.X[order], data.y[order] > 0, data.task[order]

for name, weight in (("each row once", None), ("each mine 15 times", np.where(y, 15.0, 1.0))):
    found = HedgedSharing().test_then_train(X, y, task, sample_weight=weight) >= 0
    print(f"{name:18}  mines found {found[y].mean():.1%}, false alarms {found[~y].mean():.1%}")
