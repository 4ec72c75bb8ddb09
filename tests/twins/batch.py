"""The batch methods of the papers in plain NumPy, slowly: dual coordinate descent, alternation, proximal gradient."""

from __future__ import annotations

from typing import Any

import numpy as np


def weighted_svm(X: np.ndarray, y: np.ndarray, c: np.ndarray, mu: float, sweeps: int = 20_000) -> np.ndarray:
    """argmin (mu/2)||w||² + sum c_i [1 - y_i w.x_i]_+ by dual coordinate descent: w = (1/mu) sum a_i y_i x_i."""
    a, w = np.zeros(len(y)), np.zeros(X.shape[1])
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(y)):
            norm = X[i] @ X[i]
            if norm > 0:
                new = np.clip(a[i] - (y[i] * (w @ X[i]) - 1) * mu / norm, 0, c[i])
                w = w + (new - a[i]) * y[i] * X[i] / mu
                moved = max(moved, abs(new - a[i]))
                a[i] = new
        if moved < 1e-12:
            break
    return w


def mean_hinge(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    return float(np.maximum(0, 1 - y * (X @ w)).mean())


def mean_half_square(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    return float(((y - X @ w) ** 2).mean() / 2)


def smtl(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    alpha: float,
    lam: float,
    mu: float,
    attention: Any,
    rounds: int,
    squared: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 of Murugesan et al.: W and P after so many alternations. A matrix as `attention` is P.

    The loss is the hinge, or for real targets half the square.
    """
    K = int(task.max()) + 1 if isinstance(attention, str) else len(attention)
    P = np.full((K, K), 1 / K) if isinstance(attention, str) else attention
    for _ in range(rounds):
        W = []
        for k in range(K):
            share = alpha * (np.arange(K) == k) + (1 - alpha) * P[k]  # eq. 3
            c = share[task] / np.bincount(task)[task]
            if squared:  # where the gradient mu w + sum c_i (w.x_i - y_i) x_i is 0
                W.append(np.linalg.solve(mu * np.eye(X.shape[1]) + (X.T * c) @ X, X.T @ (c * y)))
            else:
                W.append(weighted_svm(X, y, c, mu))
        for k in range(K) if isinstance(attention, str) else ():
            mean = mean_half_square if squared else mean_hinge
            losses = np.array([mean(X[task == j], y[task == j], W[k]) for j in range(K)])
            row = np.exp(-(1 - alpha) * losses / lam) if attention == "exponential" else np.maximum(0, lam - losses)
            if row.sum() > 0:
                P[k] = row / row.sum()
    return np.array(W), P


def shrink_singular_values(Z: np.ndarray, tau: float) -> np.ndarray:
    U, s, V = np.linalg.svd(Z, full_matrices=False)
    return np.asarray(U @ np.diag(np.maximum(0, s - tau)) @ V)


def trace_norm(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, rho: float, slope: Any, step: float, n_steps: int
) -> np.ndarray:
    """Plain proximal gradient on sum_k (1/N_k) sum_i loss + rho ||W||_*; W is (tasks, d)."""
    K = int(task.max()) + 1
    W = np.zeros((K, X.shape[1]))
    for _ in range(n_steps):
        G = np.zeros_like(W)
        for k in range(K):
            own = task == k
            G[k] = X[own].T @ slope(X[own] @ W[k], y[own]) / own.sum()
        W = shrink_singular_values(W - step * G, step * rho)
    return W
