"""
Counts and quantiles: how many, and how many at most
====================================================

How many pieces will a shop sell? The mean of a count is one question. The number that is enough in nine days of ten is
another: it is a quantile, and a loss of its own learns it.
"""

# %%
# Forty shops with levels of their own, and a promotion that helps all.

import matplotlib.pyplot as plt
import numpy as np

from shoal import MultitaskRegressor

rng = np.random.default_rng(0)
n = 12_000
shop, promotion = rng.integers(40, size=n), rng.random(n) < 0.3
level = np.log(8.0) + 0.4 * rng.normal(size=40)
sold = rng.poisson(np.exp(level[shop] + 0.5 * promotion)).astype(float)
X = np.column_stack([np.ones(n), promotion])

# %%
# The Poisson loss learns the mean, and forecasts are never negative:

for relation in ("independent", "pairwise", "pooled"):
    learner = MultitaskRegressor(relation=relation, loss="poisson", eta=0.02)
    said = learner.test_then_train(X, sold, shop)
    print(f"{relation:12} RMSE {np.sqrt(np.mean((said - sold)[2000:] ** 2)):.3f}")

# %%
# The quantile loss learns how many are enough:

figure, ax = plt.subplots(figsize=(7, 3))
last = slice(n - 3000, n)
for quantile in (0.5, 0.9):
    learner = MultitaskRegressor(loss="quantile", quantile=quantile, eta=0.2)
    said = learner.test_then_train(X, sold, shop)[last]
    print(f"quantile {quantile}: {np.mean(sold[last] <= said):.3f} of the last days sold no more than forecast")
    by_shop = learner.predict(np.column_stack([np.ones(40), np.zeros(40)]), np.arange(40))
    ax.scatter(np.exp(level), by_shop, s=12, label=f"quantile {quantile}")
ax.set(xlabel="true mean of the shop", ylabel="forecast, no promotion")
ax.legend()
figure.tight_layout()
