"""Daumé 2007 with a Perceptron, in plain NumPy: on the augmented rows, as the paper writes them."""

from collections.abc import Iterable

import numpy as np


def learn(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, rounds: Iterable[np.ndarray], *, eta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions before each round, and the weights (tasks, features)."""
    n, d = X.shape
    n_tasks = int(task.max()) + 1
    augmented = np.zeros((n, (1 + n_tasks) * d))
    augmented[:, :d] = X
    for row, k in enumerate(task):
        augmented[row, (1 + k) * d : (2 + k) * d] = X[row]
    w, decisions = np.zeros((1 + n_tasks) * d), np.empty(n)
    for rows in rounds:
        decisions[rows] = augmented[rows] @ w
        for row in rows:
            if (augmented[row] @ w >= 0) != (y[row] > 0):
                w += eta * y[row] * augmented[row]
    parts = w.reshape(1 + n_tasks, d)
    return decisions, parts[0] + parts[1:]
