"""
Guarding: share, but harm nobody
================================

Most tasks are alike, some are not. ``Guarded`` finds out for each task whether sharing helps it.
"""

# %%
# Of 30 tasks, three call the opposite label good: what the others learn misleads them.

import matplotlib.pyplot as plt
import numpy as np

from shoal import Guarded, MultitaskPerceptron
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=30, n_rows=1500, relatedness=0.9, noise=0.05, seed=0)
y = np.where(data.task < 3, -data.y, data.y)
learner = Guarded(MultitaskPerceptron(relation="pooled", loss="logistic", eta=0.3))
decisions = learner.test_then_train(data.X, y, data.task)
print(f"guarded     error {((decisions >= 0) != (y > 0)).mean():.3f}")
for name in ("pooled", "independent"):
    plain = MultitaskPerceptron(relation=name, loss="logistic", eta=0.3)
    print(f"{name:11} error {((plain.test_then_train(data.X, y, data.task) >= 0) != (y > 0)).mean():.3f}")
print("sharing would have harmed:", sorted(int(k) for k in learner.harmed_))

# %%
# How much each task trusts what is shared, at the end:

figure, ax = plt.subplots(figsize=(7, 2.6))
trust = dict(zip(learner.tasks_, learner.trust_))
ax.bar(range(30), [trust[k] for k in range(30)])
ax.set(xlabel="task", ylabel="trust in sharing")
figure.tight_layout()
