"""Cavallanti et al. 2010, section 6, in plain NumPy: W is the gradient of V's norm."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from tests.twins.shared_loss import finite


def gradient(V: np.ndarray, p: float) -> np.ndarray:
    """grad (1/2)||V||_{S_2p}^2 = tr(G^p)^(1/p-1) V G^(p-1), homogeneous of degree 1, so V is divided by its size.

    For whole p by powers of G, which keep exact zeros: the sign of a rounding error would predict. Else by singular
    values: U diag(s^(2p-1)) Z^T / ||s||_2p^(2p-2).
    """
    top = np.linalg.norm(V)
    if top == 0:
        return np.zeros_like(V)
    V = V / top
    if p == int(p):
        G = V.T @ V
        factor = np.trace(np.linalg.matrix_power(G, int(p))) ** (1 / p - 1)
        return np.asarray(top * factor * (V @ np.linalg.matrix_power(G, int(p) - 1)))
    U, s, Zt = np.linalg.svd(V, full_matrices=False)
    W = top * (U * s ** (2 * p - 1)) @ Zt / np.sum(s ** (2 * p)) ** ((p - 1) / p)
    return np.asarray(W * V.any(axis=0))


def order(p: float | str, d: int, K: int) -> float:
    return max(1, int(np.ceil(np.log(min(d, K))))) if p == "auto" else float(p)


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    p: float | str = "auto",
    shared_loss: str | float | None = None,
    C: float = 1.0,
    r: int = 1,
    n_declared: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final W (d, K), updates per task."""
    d, K = X.shape[1], n_declared
    V = np.zeros((d, max(n_declared, task.max() + 1)))
    decisions, updates = np.zeros(len(X)), np.zeros(V.shape[1], int)
    for rows in rounds:
        K = max(K, task[rows].max() + 1)
        W = gradient(V[:, :K], order(p, d, K))
        decisions[rows] = np.einsum("ij,ij->i", X[rows], W.T[task[rows]])
        if shared_loss is None:
            tau = (np.where(decisions[rows] >= 0, 1.0, -1.0) != y[rows]).astype(float)
        else:
            tau = finite(np.maximum(0.0, 1 - y[rows] * decisions[rows]), shared_loss, r, C)
        for row, step in zip(rows, tau, strict=True):
            V[:, task[row]] += step * y[row] * X[row]
            updates[task[row]] += step > 0
    return decisions, gradient(V[:, :K], order(p, d, K)), updates


def kernel_decisions(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray],
    p: int,
) -> np.ndarray:
    """Section 6.2.1: f = diag(G^(p-1) V^T X_t) tr(G^p)^(1/p-1), all from kernels of the mistaken rows; whole p."""
    K = task.max() + 1
    support: list[int] = []
    decisions = np.zeros(len(X))
    for rows in rounds:
        S = np.zeros((len(support), K))
        S[np.arange(len(support)), task[support]] = y[support]
        G = S.T @ kernel(X[support], X[support]) @ S if support else np.zeros((K, K))
        factor = np.trace(np.linalg.matrix_power(G, p)) ** (1 / p - 1) if support else 0.0
        Z = S.T @ kernel(X[support], X[rows]) if support else np.zeros((K, len(rows)))
        F = factor * np.linalg.matrix_power(G, p - 1) @ Z
        decisions[rows] = F[task[rows], np.arange(len(rows))]
        support += [r for r in rows if (1.0 if decisions[r] >= 0 else -1.0) != y[r]]
    return decisions
