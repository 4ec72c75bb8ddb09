"""COML and CW-COL (Li et al. 2014; equations of sections 6.1 and 6.7 of the specification) in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

ROUNDING = 1e-12  # g has often just learned the row: a loss that is zero but for this is zero


def pa_1(w: np.ndarray, x: np.ndarray, y: float, C: float) -> tuple[np.ndarray, bool]:
    """PA-I, and whether it moved."""
    loss = max(0.0, 1 - y * (w @ x))
    if loss <= ROUNDING or not x.any():
        return w, False
    return w + min(C, loss / (x @ x)) * y * x, True


def learn_pa(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    pull: float,
    C: float,
    variant: str,
    passive: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final weights (K, d), global model (d,), updates per task."""
    K = task.max() + 1
    g, U = np.zeros(X.shape[1]), np.zeros((K, X.shape[1]))
    decisions, updates = np.zeros(len(X)), np.zeros(K, int)

    def weights() -> np.ndarray:
        return U if variant == "collaborative" else pull * g + (1 - pull) * U

    for rows in rounds:
        for r in rows:
            decisions[r] = weights()[task[r]] @ X[r]
        for r in rows:
            x, k = X[r], task[r]
            g, _ = pa_1(g, x, y[r], C)
            start = U[k] if variant == "mix" else (1 - pull) * U[k] + pull * g
            if passive and y[r] * (start @ x) >= 1 - ROUNDING:
                continue
            U[k], moved = pa_1(start, x, y[r], C)
            updates[k] += moved
    return decisions, weights(), g, updates


def scw_1(
    mean: np.ndarray, S: np.ndarray, x: np.ndarray, y: float, phi: float, C: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """SCW-I with a full covariance, and whether it moved."""
    m, v = y * (mean @ x), x @ S @ x
    if phi * np.sqrt(v) * (1 - ROUNDING) <= m:
        return mean, S, False
    psi, xi = 1 + phi**2 / 2, 1 + phi**2
    al = max(0.0, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * xi)) / (v * xi))
    al = min(al, C)
    u = (-al * v * phi + np.sqrt(al**2 * v**2 * phi**2 + 4 * v)) ** 2 / 4
    be = al * phi / (np.sqrt(u) + v * al * phi)
    return mean + al * y * S @ x, S - be * np.outer(S @ x, S @ x), bool(al > 0)


def prior(
    mean_k: np.ndarray, S_k: np.ndarray, mean_g: np.ndarray, S_g: np.ndarray, pull: float
) -> tuple[np.ndarray, np.ndarray]:
    """The geometric mean of two Gaussians (diagonals of their covariances)."""
    S = 1 / ((1 - pull) / S_k + pull / S_g)
    return S * ((1 - pull) / S_k * mean_k + pull / S_g * mean_g), S


def learn_cw(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    pull: float,
    C: float,
    confidence: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final means (K, d), variances (K, d), global mean (d,), updates per task."""
    K, d, phi = task.max() + 1, X.shape[1], NormalDist().inv_cdf(confidence)
    U, V, g, Vg = np.zeros((K, d)), np.ones((K, d)), np.zeros(d), np.ones(d)
    decisions, updates = np.zeros(len(X)), np.zeros(K, int)
    for rows in rounds:
        for r in rows:
            decisions[r] = U[task[r]] @ X[r]
        for r in rows:
            x, k = X[r], task[r]
            g, S, _ = scw_1(g, np.diag(Vg), x, y[r], phi, C)
            Vg = S.diagonal().copy()
            mean, variance = prior(U[k], V[k], g, Vg, pull)
            U[k], S, moved = scw_1(mean, np.diag(variance), x, y[r], phi, C)
            V[k] = S.diagonal()
            updates[k] += moved
    return decisions, U, V, g, updates
