"""
A budget of labels: ask for those that are worth it
===================================================

A person labels rows, and each label costs money. ``LabelQuery`` asks for a share of them, around any learner.
"""

# %%
# One label in ten, chosen at random and chosen by the margin.

import matplotlib.pyplot as plt
import numpy as np

from shoal import LabelQuery, MultitaskPerceptron
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=20, n_features=30, n_rows=6000, relatedness=0.9, noise=0.0, seed=1)
RULES = {
    "all labels": ("fixed", 1.0),
    "one in ten, at random": ("fixed", 0.1),
    "one in ten, by margin": ("margin", 0.1),
}
figure, ax = plt.subplots(figsize=(7, 3))
for name, (rule, budget) in RULES.items():
    learner = LabelQuery(MultitaskPerceptron(loss="hinge", eta=0.3), rule=rule, budget=budget, random_state=0)
    wrong = (learner.test_then_train(data.X, data.y, data.task) >= 0) != (data.y > 0)
    print(f"{name:22} {learner.n_queries_:5,} labels, error {wrong.mean():.3f}")
    ax.plot(np.arange(500, 6001, 500), wrong.reshape(12, 500).mean(axis=1), label=name)
ax.set(xlabel="rows", ylabel="error")
ax.legend()
figure.tight_layout()

# %%
# Live, the learner is asked before a person is:

row, task = data.X[0], data.task[0]
print("ask for this label:", learner.query_one(row, task))
