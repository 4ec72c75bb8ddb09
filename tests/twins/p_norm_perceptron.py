"""Cavallanti et al. 2010, section 4.1, in plain NumPy: V (d, K) = S B with S the tasks' own sums of mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

UNDERFLOW = 1e-290  # smaller numbers have lost digits, or all of them


def root(B: np.ndarray) -> np.ndarray:
    """B^1/2."""
    values, vectors = np.linalg.eigh(B)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def gradient(V: np.ndarray, p: float) -> np.ndarray:
    """grad (1/2)||V||_p^2 over all entries; homogeneous of degree 1, so V is divided by its largest entry."""
    top = np.abs(V).max()
    if top == 0:
        return np.zeros_like(V)
    V = V / top
    return np.asarray(top * np.sign(V) * np.abs(V) ** (p - 1) / np.sum(np.abs(V) ** p) ** ((p - 2) / p))


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    B: Callable[[int], np.ndarray],
    p: float | str,
    variant: str = "printed",
    n_declared: int = 0,
    certainty: list[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final weights W B (d, K), updates per task. B(K): the rates.

    `certainty`, a list, gets what is left of every margin after its terms cancel.
    """
    K, d = n_declared, X.shape[1]
    S = np.zeros((d, max(n_declared, task.max() + 1)))
    decisions, updates = np.zeros(len(X)), np.zeros(S.shape[1], int)

    def mixed() -> tuple[np.ndarray, np.ndarray]:
        M = root(B(K)) if variant == "sqrt" else B(K)
        return S[:, :K] @ M, M

    def weights() -> np.ndarray:
        theta, M = mixed()
        exponent = max(2.0, 2 * np.log(max(K, d))) if p == "auto" else float(p)
        return np.asarray(gradient(theta, exponent) @ M)

    for rows in rounds:
        K = max(K, task[rows].max() + 1)
        for r in rows:
            decisions[r] = weights()[:, task[r]] @ X[r]
        for r in rows:
            w = weights()[:, task[r]]
            if certainty is not None and mixed()[0][:, task[r]].any():
                terms = abs(w) @ abs(X[r])
                certainty.append(abs(w @ X[r]) / terms if terms > UNDERFLOW else 0.0)
            if (1.0 if w @ X[r] >= 0 else -1.0) != y[r]:
                S[:, task[r]] += y[r] * X[r]
                updates[task[r]] += 1
    return decisions, weights(), updates
