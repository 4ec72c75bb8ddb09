"""
Intervals that hold in every task
=================================

A forecast of 12 degrees, give or take what? Sensors differ in noise, so one width for all is wrong for each.
``Conformal`` learns widths that tasks share in part.
"""

# %%
# Twenty sensors, the last 20 times as noisy as the first.

import matplotlib.pyplot as plt
import numpy as np

from shoal import Conformal, HedgedSharingRegressor, MultitaskRegressor

rng = np.random.default_rng(0)
X, task = rng.normal(size=(8000, 5)), rng.integers(20, size=8000)
y = X.sum(axis=1) + rng.normal(size=8000) * (1 + task)
learner = Conformal(MultitaskRegressor(eta=0.01), coverage=0.9).partial_fit(X[:6000], y[:6000], task[:6000])
new = slice(6000, None)
low, high = learner.predict_interval(X[new], task[new]).T
inside = (low <= y[new]) & (y[new] <= high)
print(f"inside: {inside.mean():.3f} of all new rows")

# %%
# Task by task:

figure, (above, below) = plt.subplots(2, 1, figsize=(7, 4.2), sharex=True)
above.bar(range(20), [inside[task[new] == k].mean() for k in range(20)])
above.axhline(0.9, color="black", linestyle=":")
above.set(ylabel="share inside", ylim=(0.7, 1))
below.bar(range(20), [np.mean((high - low)[task[new] == k]) for k in range(20)])
below.set(xlabel="task", ylabel="width", xticks=range(0, 20, 2))
figure.tight_layout()

# %%
# A sensor that was never seen gets the width that is common:

print("an unknown sensor:", learner.predict_interval_one(np.zeros(5), "new"))

# %%
# Noise that depends on the row
# -----------------------------
#
# Here it grows with the first feature. Intervals of one width a task hold nine rows in ten, all calm ones and half of
# the noisy ones. Around two quantiles, the width of an interval follows the row.

y = X.sum(axis=1) + np.exp(X[:, 0]) * rng.normal(size=8000)
calm, noisy = X[new, 0] < -1, X[new, 0] > 1
for name, inner in (
    ("around the mean", HedgedSharingRegressor()),
    ("around quantiles", HedgedSharingRegressor(target=[0.05, 0.95])),
):
    learner = Conformal(inner, coverage=0.9).partial_fit(X[:6000], y[:6000], task[:6000])
    low, high = learner.predict_interval(X[new], task[new]).T
    inside, width = (low <= y[new]) & (y[new] <= high), high - low
    print(
        f"{name:16} inside: {inside.mean():.3f}, of calm rows {inside[calm].mean():.3f}, of noisy ones"
        f" {inside[noisy].mean():.3f}; mean width {width.mean():.2f}"
    )
