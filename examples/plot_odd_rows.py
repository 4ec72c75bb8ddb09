"""
Odd rows: what one wrong value does, here and elsewhere
=======================================================

A sensor sends -1e6, once in 4,000 rows. Nothing else is wrong. :doc:`The page on odd rows </odd-rows>` has
more accidents and all learners.
"""

# %%
# The same stream as it is, and with one value of one row gone wrong. Learners see the rows one after the other.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=10, n_rows=4000, relatedness=0.9, noise=0.05, seed=0)
odd = data.X.copy()
odd[2000, 3] = -1e6


def by_sgd(X: np.ndarray) -> np.ndarray:
    """scikit-learn's online logistic regression, one model for all, a row at a time."""
    model, said = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.5), np.zeros(len(X))
    for i in range(len(X)):
        if i > 0:
            said[i] = model.decision_function(X[i : i + 1])[0]
        model.partial_fit(X[i : i + 1], data.y[i : i + 1], classes=[-1.0, 1.0])
    return said


RUNS = {
    "SGDClassifier": by_sgd,
    "MultitaskPerceptron": lambda X: MultitaskPerceptron(loss="logistic").test_then_train(X, data.y, data.task),
    "HedgedSharing": lambda X: HedgedSharing().test_then_train(X, data.y, data.task),
}
figure, ax = plt.subplots(figsize=(7, 3))
for name, run in RUNS.items():
    clean, hit = ((run(X) >= 0) != (data.y > 0) for X in (data.X, odd))
    print(
        f"{name:20} error in the next 1,000 rows {hit[2001:3001].mean():.3f}, without it {clean[2001:3001].mean():.3f}"
    )
    ax.plot(np.arange(100, 4001, 100), hit.reshape(40, 100).mean(axis=1), label=name)
ax.axvline(2000, color="gray", linestyle=":")
ax.set(xlabel="rows; one value of row 2,000 is wrong", ylabel="error")
ax.legend()
figure.tight_layout()
