"""
Embeddings
==========

Rows of hundreds of numbers, as models of language give them for texts: dense, float32, and no column means anything by
itself. The default learns them as they come.
"""

# %%
# Embeddings of 6,000 mails to 20 inboxes, made up: 384 columns with few directions of large variance, and labels that
# the inboxes agree on in part.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from shoal import HedgedSharing, MultitaskPerceptron

N_ROWS, N_TASKS, N_COLUMNS = 6000, 20, 384
rng = np.random.default_rng(0)
deviations = 1.0 / np.sqrt(1.0 + np.arange(N_COLUMNS))
turn = np.linalg.qr(rng.normal(size=(N_COLUMNS, N_COLUMNS)))[0]
latent = rng.normal(size=(N_ROWS, N_COLUMNS)) * deviations
X = np.float32(latent @ turn)
task = rng.integers(N_TASKS, size=N_ROWS)
weights = rng.normal(size=N_COLUMNS) + 0.5 * rng.normal(size=(N_TASKS, N_COLUMNS))
chance = 1.0 / (1.0 + np.exp(-2.0 * (latent * weights[task]).sum(axis=1)))
y = (rng.random(N_ROWS) < chance).astype(int)

# %%
# Each row is forecast before it is learned. Beyond 255 columns the experts with full matrices go on as low-rank Kalman
# filters: they know which directions of the rows vary together, at a cost that grows with the columns and not with
# their square. Logistic regression is trained anew at every 500 rows, on all rows so far.


def retrained(C: float) -> np.ndarray:
    """The chances of the label 1 by one model for all."""
    p = np.full(N_ROWS, 0.5)
    for first in range(500, N_ROWS, 500):
        model = LogisticRegression(C=C, max_iter=1000).fit(X[:first], y[:first])
        p[first : first + 500] = model.predict_proba(X[first : first + 500])[:, 1]
    return p


def forecast(learner: HedgedSharing | MultitaskPerceptron) -> np.ndarray:
    """The chances of the label 1 by a learner."""
    return 1.0 / (1.0 + np.exp(-learner.test_then_train(X, y, task)))


chances = {
    "default": forecast(HedgedSharing(dtype="float32")),
    "default, one model a task": forecast(HedgedSharing(relation="independent", dtype="float32")),
    "MultitaskPerceptron": forecast(MultitaskPerceptron(loss="logistic", dtype="float32")),
    "logistic regression, retrained": min(
        (retrained(C) for C in (0.1, 1.0, 10.0)), key=lambda p: -np.log(np.where(y == 1, p, 1.0 - p)).sum()
    ),
}

figure, ax = plt.subplots(figsize=(7, 3))
for name, p in chances.items():
    losses = -np.log(np.where(y == 1, p, 1.0 - p))
    ax.plot(np.cumsum(losses) / np.arange(1, N_ROWS + 1), label=name)
    print(f"{name:31} log-loss {losses.mean():.3f}, of the last 1,000 rows {losses[-1000:].mean():.3f}")
ax.set(xlabel="rows", ylabel="log-loss so far", ylim=(0.2, 0.8))
ax.legend()
figure.tight_layout()

# %%
# On real texts, ``python -m benchmarks.embeddings`` prints the same comparison, and that with the words themselves.
