"""
Shops within countries
======================

Shops of one country sell alike, countries less so. ``relations.hierarchy`` says which shop is in which country; a shop
learns most from its neighbors, less from the others, and a new shop is answered as its country is. ``Hierarchy`` brings
countries to any learner.
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
# :class:`~shoal.Hierarchy` goes around any learner, here the default. Ids are (country, shop). Beside the learner of
# the shops, one like it learns the countries; their forecasts are mixed as far as each is good. Half of the shops
# open later, after all rows of the others.

from shoal import HedgedSharing, Hierarchy

order = np.argsort(data.task >= 30, kind="stable")
X, y, shop = data.X[order], data.y[order], data.task[order].tolist()
task = [(f"country {k % 6}", f"shop {k}") for k in shop]
rows_before = np.array([shop[:i].count(k) for i, k in enumerate(shop)])
opened = (np.array(shop) >= 30) & (rows_before < 5)
for name, learner in ("the default", HedgedSharing()), ("with countries", Hierarchy(HedgedSharing())):
    losses = np.logaddexp(0.0, -y * learner.test_then_train(X, y, task))
    print(f"{name:20} log-loss {losses.mean():.3f}, of the first five rows of new shops {losses[opened].mean():.3f}")

# %%
# A table has the levels as columns: ``TabularClassifier(task=["country", "shop"], hierarchy=True)``, and in the program
# ``shoal run sales.csv --task country,shop --hierarchy``. The table of real tasks in groups, those that gain little
# among them, is printed by ``python -m benchmarks.hierarchies``.
