"""
Shops within countries
======================

Shops of one country sell alike, countries less so. ``relations.hierarchy`` says which shop is in which country; a shop
learns most from its neighbors, less from the others, and a new shop is answered as its country is.
"""

# %%
# Sixty shops in six countries, made up: weights of a shop are near those of its country.

import matplotlib.pyplot as plt
import numpy as np

from shoal import MultitaskPerceptron, relations
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=60, n_groups=6, n_rows=6000, relatedness=0.7, noise=0.0, seed=0)
countries = {shop: f"country {shop % 6}" for shop in range(60)} | {f"country {c}": "world" for c in range(6)}

# %%
# The same learner with four ideas of who is like whom. Each row is forecast before it is learned.

RELATIONS = {
    "a model per shop": "independent",
    "one model for all": "pooled",
    "all shops alike": "pairwise",
    "shop within country": relations.hierarchy(countries),
}
figure, ax = plt.subplots(figsize=(7, 3))
for name, relation in RELATIONS.items():
    learner = MultitaskPerceptron(relation=relation)
    wrong = (learner.test_then_train(data.X, data.y, data.task) >= 0) != (data.y > 0)
    ax.plot(np.cumsum(wrong) / np.arange(1, 6001), label=name)
    print(f"{name:20} error {wrong.mean():.3f}")
ax.set(xlabel="rows", ylabel="error so far", ylim=(0.15, 0.5))
ax.legend()
figure.tight_layout()

# %%
# The matrix behind it counts the nodes that two shops have in common on the way down: two for shops of one country,
# three for a shop and itself, one for all others.

print(
    relations.hierarchy(
        {"Lyon": "France", "Nice": "France", "Rome": "Italy"} | dict.fromkeys(["France", "Italy"], "world")
    ).rates()
)

# %%
# The default takes no hierarchy. It takes an outside forecast, though: that of the same learner with the countries as
# tasks, each made before its row is learned.

from shoal import HedgedSharing, OutsideForecast

of_country = HedgedSharing().test_then_train(data.X, data.y, data.task % 6)
chance = 1 / (1 + np.exp(-of_country.clip(-13, 13)))
for name, learner, X in (
    ("the default", HedgedSharing(), data.X),
    ("with its country", OutsideForecast(HedgedSharing(), columns=[20]), np.column_stack([data.X, chance])),
):
    decisions = learner.test_then_train(X, data.y, data.task)
    print(f"{name:20} log-loss {np.logaddexp(0.0, -data.y * decisions).mean():.3f}")
