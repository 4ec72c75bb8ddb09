"""ROMCO in plain NumPy, from the equations: a full SVD of U - eta G in every round, cubics by `np.roots`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    penalty: str,
    eta: float,
    rho: float,
    lambda1: float,
    lambda2: float,
    C: float,
    trigger: str,
    step: str,
    n_declared: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, U and V as (features, tasks), and updates by task."""
    d = X.shape[1]
    U = V = np.zeros((d, max(n_declared, 0)))
    updates = np.zeros(task.max() + 1, int)
    decisions = np.zeros(len(y))
    for t, rows in enumerate(rounds, start=1):
        present = task[rows]
        new = max(present.max() + 1 - U.shape[1], 0)
        U, V = (np.column_stack([M, np.zeros((d, new))]) for M in (U, V))
        f = np.einsum("ij,ji->i", X[rows], (U + V)[:, present])
        decisions[rows] = f
        due = np.where(f >= 0, 1.0, -1.0) != y[rows] if trigger == "mistake" else y[rows] * f < 1
        if not due.any():
            continue
        eta_t, rho_t = (eta / np.sqrt(t), rho / np.sqrt(t)) if step == "sqrt" else (eta, rho)
        G = np.zeros_like(U)
        for r, k, margin in zip(rows, present, y[rows] * f, strict=True):
            if margin < 1:
                G[:, k] = -C * y[r] * X[r]
                updates[k] += bool(X[r].any())
        U = shrink(U - eta_t * G, eta_t * lambda1, penalty)
        V = V.copy()
        for k in present:
            v = V[:, k] - rho_t * G[:, k]
            norm = np.linalg.norm(v)
            V[:, k] = max(0.0, 1 - rho_t * lambda2 / norm) * v if norm > 0 else 0.0
    return decisions, U, V, updates


def shrink(U: np.ndarray, tau: float, penalty: str) -> np.ndarray:
    """Singular values shrunk; zero columns stay exactly zero."""
    columns = U.any(axis=0)
    P, s, QT = np.linalg.svd(U[:, columns], full_matrices=False)
    shrunk = np.maximum(s - tau, 0.0) if penalty == "nuclear" else np.array([logdet_prox(v, tau) for v in s])
    U = np.zeros_like(U)
    U[:, columns] = (P * shrunk) @ QT
    return U


def logdet_prox(s: float, tau: float) -> float:
    """The minimiser of (z - s)^2 / 2 + tau log(1 + z^2) among the real roots of eq. 21 in [0, s]."""
    if s == 0.0:
        return 0.0
    roots = np.roots([1.0, -s, 1 + 2 * tau, -s])
    real = roots.real[np.abs(roots.imag) < 1e-7 * (1 + np.abs(roots.real))].clip(0, s)
    return float(min(real, key=lambda z: 0.5 * (z - s) ** 2 + tau * np.log1p(z * z)))
