"""Crammer et al. 2006, figure 1 and section 5, in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    variant: str,
    C: float,
    epsilon: float | None = None,
    pooled: bool = False,
    weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final W (K, d), updates per task. `epsilon` None: classification.

    A row of weight h has h times the price C of its loss.
    """
    weight = np.ones(len(X)) if weight is None else weight
    model = np.zeros_like(task) if pooled else task
    W = np.zeros((model.max() + 1, X.shape[1]))
    decisions, updates = np.zeros(len(X)), np.zeros(task.max() + 1, int)
    for rows in rounds:
        for r in rows:
            decisions[r] = W[model[r]] @ X[r]
        for r in rows:
            x, f = X[r], W[model[r]] @ X[r]
            if epsilon is None:
                loss, direction = max(0.0, 1 - y[r] * f), y[r]
            else:
                loss, direction = max(0.0, abs(y[r] - f) - epsilon), np.sign(y[r] - f)
            if loss == 0 or not x.any() or weight[r] == 0:
                continue
            tau = {
                "PA": loss / (x @ x),
                "PA-I": min(C * weight[r], loss / (x @ x)),
                "PA-II": loss / (x @ x + 1 / (2 * C * weight[r])),
            }[variant]
            W[model[r]] += tau * direction * x
            updates[task[r]] += 1
    return decisions, W[[0] * (task.max() + 1)] if pooled else W, updates
