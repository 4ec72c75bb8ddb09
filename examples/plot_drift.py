"""
Drift: rules that change while the stream runs
==============================================

The rules of all tasks turn slowly. A learner whose steps shrink stops following; the default mixes learners that forget
with learners that do not, and finds out which to believe.
"""

# %%
# Two streams of 20 tasks: one stays, one turns by a quarter in 6,000 rows.

import matplotlib.pyplot as plt
import numpy as np

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import make_related_tasks

LEARNERS = {
    "steps 1/sqrt(t)": lambda: MultitaskPerceptron(relation="pairwise", loss="logistic", eta=20.0, step="sqrt"),
    "constant steps": lambda: MultitaskPerceptron(relation="pairwise", loss="logistic", eta=2.0),
    "HedgedSharing": HedgedSharing,
}
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
for ax, (title, drift) in zip(axes, {"the rules stay": 0.0, "the rules turn": np.pi / 2 / 6000}.items()):
    data = make_related_tasks(n_tasks=20, n_rows=6000, relatedness=0.9, noise=0.05, drift=drift, seed=0)
    for name, make in LEARNERS.items():
        wrong = (make().test_then_train(data.X, data.y, data.task) >= 0) != (data.y > 0)
        ax.plot(np.arange(500, 6001, 500), wrong.reshape(12, 500).mean(axis=1), label=name)
        print(f"{title:15} {name:16} error {wrong.mean():.3f}, of the last 1,000 rows {wrong[-1000:].mean():.3f}")
    ax.set(title=title, xlabel="rows")
axes[0].set_ylabel("error")
axes[0].legend()
figure.tight_layout()

# %%
# Tasks end, too. A forgotten task takes no memory, and one of the same name starts anew:

model = HedgedSharing().fit(data.X, data.y, data.task)
model.forget_task(3)
print(len(model.tasks_), "tasks")
