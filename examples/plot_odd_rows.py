"""
Odd rows: what wrong labels and values do, here and elsewhere
=============================================================

Somebody clicks the wrong button, once. A sensor sends -1e6, once in 4,000 rows. Nothing else is wrong.
:doc:`The page on odd rows </odd-rows>` has more accidents and all learners.
"""

# %%
# Learners see the rows one after the other. Three are asked what the accident costs: scikit-learn's, and two of ours.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import make_related_tasks


def by_sgd(X: np.ndarray, y: np.ndarray, task: np.ndarray) -> np.ndarray:
    """scikit-learn's online logistic regression, one model for all, a row at a time."""
    model, said = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.5), np.zeros(len(X))
    for i in range(len(X)):
        if i > 0:
            said[i] = model.decision_function(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1.0, 1.0])
    return said


RUNS = {
    "SGDClassifier": by_sgd,
    "MultitaskPerceptron": lambda *rows: MultitaskPerceptron().test_then_train(*rows),
    "HedgedSharing": lambda *rows: HedgedSharing().test_then_train(*rows),
}

# %%
# Wrong labels
# ------------
# Three tasks that are alike, and labels without noise. Then one label is the other one, or twenty in a row are. Errors
# in the 100 rows that follow, a mean over eight places in the stream:

data = make_related_tasks(n_tasks=3, n_features=4, n_rows=3100, relatedness=0.95, noise=0.0, seed=0)
places = range(1000, 3000, 250)
for name, run in RUNS.items():
    clean, errors = run(data.X, data.y, data.task), np.zeros((3, len(places)))
    for place, i in enumerate(places):
        for row, n in enumerate((0, 1, 20)):
            y = data.y.copy()
            y[i - n : i] *= -1
            said = run(data.X[: i + 100], y[: i + 100], data.task[: i + 100]) if n else clean
            errors[row, place] = ((said[i : i + 100] >= 0) != (y[i : i + 100] > 0)).mean()
    none, one, twenty = errors.mean(axis=1)
    print(f"{name:20} no wrong label {none:.3f}, one {one:.3f}, twenty {twenty:.3f}")

# %%
# One label alone costs little, wherever it is. After twenty the default errs as often as scikit-learn's model, which
# erred five times as often before.
#
# One wrong value
# ---------------
# The same stream as it is, and with one value of one row gone wrong.

data = make_related_tasks(n_tasks=10, n_rows=4000, relatedness=0.9, noise=0.05, seed=0)
odd = data.X.copy()
odd[2000, 3] = -1e6
RUNS["MultitaskPerceptron"] = lambda *rows: MultitaskPerceptron(loss="logistic").test_then_train(*rows)
figure, ax = plt.subplots(figsize=(7, 3))
for name, run in RUNS.items():
    clean, hit = ((run(X, data.y, data.task) >= 0) != (data.y > 0) for X in (data.X, odd))
    print(
        f"{name:20} error in the next 1,000 rows {hit[2001:3001].mean():.3f}, without it {clean[2001:3001].mean():.3f}"
    )
    ax.plot(np.arange(100, 4001, 100), hit.reshape(40, 100).mean(axis=1), label=name)
ax.axvline(2000, color="gray", linestyle=":")
ax.set(xlabel="rows; one value of row 2,000 is wrong", ylabel="error")
ax.legend()
figure.tight_layout()
