"""Models with all pairs (b, eta) mixed by Bayes weights, in plain NumPy: weights as products of likelihoods."""

from __future__ import annotations

import numpy as np
from tests.twins.multitask_perceptron import constant, pooled, slope


def rates(b: float, K: int, loss: str) -> np.ndarray:
    B: np.ndarray = pooled(K) if np.isinf(b) else np.linalg.inv(constant(b)(K))
    return B / (1.0 if loss == "perceptron" else B.diagonal().max())


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: list[np.ndarray],
    *,
    pairs: list[tuple[float, float]],
    loss: str,
    sqrt_step: bool,
    weight: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions before each round, and the weights of all models at the end. A b of NaN is the number of tasks."""
    V = np.zeros((len(pairs), X.shape[1], task.max() + 1))
    L, low, high, K, t = np.zeros(len(pairs)), 0.0, 0.0, 0, 0
    decisions = np.zeros(len(X))

    def weights() -> np.ndarray:
        scale = 1.0 if loss != "squared" else 1 / (high - low) ** 2 if high > low else 0.0
        a = np.exp(-scale * (L - L.min()))
        return np.asarray(a / a.sum())

    def answer(f: np.ndarray) -> float:
        if loss == "squared":
            return float(weights() @ np.clip(f, low, high))
        return float(np.log(weights() @ (1 / (1 + np.exp(-f)))) - np.log(weights() @ (1 / (1 + np.exp(f)))))

    for rows in rounds:
        counting = rows[weight[rows] > 0]
        t, K = t + (len(counting) > 0), max(K, task[counting].max(initial=-1) + 1)
        B = [rates(K if np.isnan(b) else b, K, loss) for b, _ in pairs]

        def margins(r: int, V: np.ndarray = V[:, :, :K], B: list[np.ndarray] = B) -> np.ndarray:
            return np.array([X[r] @ v @ b[:, task[r]] for v, b in zip(V, B, strict=True)])

        for r in rows:
            decisions[r] = answer(margins(r))
        for r in counting:
            f, h = margins(r), weight[r]
            if loss == "squared":
                L += h * (np.clip(f, low, high) - np.clip(y[r], low, high)) ** 2 / 2
                low, high = min(low, y[r]), max(high, y[r])
            else:
                L += h * np.logaddexp(0, -y[r] * f)
            for part in [1.0] * int(h) + [h % 1]:
                f = margins(r)
                for j, (_, eta) in enumerate(pairs):
                    step = eta / np.sqrt(t) if sqrt_step else eta
                    V[j][:, task[r]] -= part * step * slope(loss, f[j], y[r], 0.0) * X[r]
    return decisions, weights()
