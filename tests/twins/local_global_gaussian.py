"""Yang & Li 2020, supplement, eqs. 2-5, in plain NumPy: covariances by Sherman-Morrison and Woodbury as printed.

`phi` holds the rows after the feature map. The maps have twins of their own: `fourier` and `nystrom`. A covariance of
low rank is the inverse of its precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

MASK = 2**64 - 1


class Model:
    """Means and covariances; tasks may come at any time."""

    def __init__(self, D: int, K: int, rank: int = 0) -> None:
        self.mu0, self.S0 = np.zeros(D), np.eye(D)
        self.mu, self.S = np.zeros((K, D)), np.tile(np.eye(D), (K, 1, 1))
        self.precision0, self.precision = Precision(D, rank), [Precision(D, rank) for _ in range(K)]


class Precision:
    """S⁻¹ = diag(d) + V Vᵀ with `rank` columns at most."""

    def __init__(self, D: int, rank: int) -> None:
        self.d, self.V, self.rank = np.ones(D), np.zeros((D, 0)), rank

    def take_in(self, x: np.ndarray) -> None:
        """Without room for another direction the rank/2 of the most gain stay, and of the others the diagonal."""
        root = np.sqrt(self.d)[:, None]
        B, z = self.V / root, x / root[:, 0]
        outside = z - B @ np.linalg.lstsq(B, z, rcond=None)[0]
        is_new = np.linalg.norm(outside) > 1e-12 * np.linalg.norm(z)
        if is_new and B.shape[1] == self.rank:
            U, s, _ = np.linalg.svd(B, full_matrices=False)
            directions, half = root * U * s, self.rank // 2
            self.V, self.d = directions[:, :half], self.d + (directions[:, half:] ** 2).sum(axis=1)
        self.V = np.column_stack([self.V, x])
        if not is_new:
            U, s, _ = np.linalg.svd(self.V, full_matrices=False)
            self.V = (U * s)[:, : B.shape[1]]

    def inverse(self) -> np.ndarray:
        return np.asarray(np.linalg.inv(np.diag(self.d) + self.V @ self.V.T))


def take_in_low_rank(precision: Precision, Phi: np.ndarray, lam: float) -> np.ndarray:
    for x in Phi.T:
        precision.take_in(x / math.sqrt(lam))
    return precision.inverse()


def take_in(S: np.ndarray, Phi: np.ndarray, lam: float, diagonal: bool) -> np.ndarray:
    """Woodbury; one column is Sherman-Morrison. The diagonal Gaussian adds precisions."""
    if diagonal:
        return np.diag(1 / (1 / np.diag(S) + (Phi**2).sum(axis=1) / lam))
    C = lam * np.eye(Phi.shape[1]) + Phi.T @ S @ Phi
    return np.asarray(S - S @ Phi @ np.linalg.solve(C, Phi.T @ S))


def theta(model: Model, k: int, x: np.ndarray, lam: float, eps: float, diagonal: bool) -> float:
    S0, Sk = (take_in(S, x[:, None], lam, diagonal) for S in (model.S0, model.S[k]))
    return float(abs((model.mu0 + model.mu[k]) @ x) - x @ (S0 + Sk) @ x / (4 * eps))


def learn(
    phi: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    lam: float,
    eps: float,
    loss: str,
    covariance: str | int,
    update: str,
    h: float = math.inf,
    seed: int = 0,
) -> tuple[np.ndarray, Model, np.ndarray, np.ndarray]:
    """Decisions before each round, the model, queried rows, mistakes learned per task."""
    diagonal, draws = covariance == "diagonal", Uniform(seed, 1)
    rank = 0 if isinstance(covariance, str) else covariance
    model = Model(phi.shape[1], task.max() + 1, rank)
    decisions, queried, updates = np.zeros(len(y)), np.zeros(len(y), bool), np.zeros(task.max() + 1, int)
    for rows in rounds:
        for r in rows:
            decisions[r] = (model.mu0 + model.mu[task[r]]) @ phi[r]
            sure = theta(model, task[r], phi[r], lam, eps, diagonal)
            queried[r] = np.isinf(h) or sure <= 0 or draws.next() < h / (h + sure)
        z = {r: (1.0 if decisions[r] >= 0 else -1.0) != y[r] for r in rows}
        taken = [r for r in rows if queried[r] and (z[r] or update == "all")]
        wrong = [r for r in taken if z[r]]
        for r in taken:
            k, x = task[r], phi[r]
            if rank:
                model.S[k] = take_in_low_rank(model.precision[k], x[:, None], lam)
            else:
                model.S[k] = take_in(model.S[k], x[:, None], lam, diagonal)  # eq. 2
            if z[r]:
                v, hinge = x @ model.S[k] @ x, max(0.0, 1 - y[r] * decisions[r])
                g = hinge / (eps + v) if loss == "squared_hinge" else min(1 / (2 * eps), hinge / v if v > 0 else np.inf)
                model.mu[k] += g * y[r] * model.S[k] @ x  # eq. 3
                updates[k] += x.any()
        if taken:
            if rank:
                model.S0 = take_in_low_rank(model.precision0, phi[taken].T, lam)
            else:
                model.S0 = take_in(model.S0, phi[taken].T, lam, diagonal)  # eq. 4
            model.mu0 = model.mu0 + model.S0 @ (y[wrong] @ phi[wrong]) / (2 * eps)  # eq. 5
    return decisions, model, queried, updates


class Uniform:
    """splitmix64 on (seed, stream, count), in Python's integers."""

    def __init__(self, seed: int, stream: int) -> None:
        self.start, self.count = self.mixed(seed + stream * 0x9E3779B97F4A7C15), 0

    @staticmethod
    def mixed(z: int) -> int:
        z &= MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def next(self) -> float:
        self.count += 1
        return (self.mixed(self.start + self.count * 0x9E3779B97F4A7C15) >> 11) * 2.0**-53


def gaussian_kernel(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    return np.asarray(np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)))


def nystrom(
    X: np.ndarray, *, kernel: Callable[[np.ndarray, np.ndarray], np.ndarray], size: int, ridge: float, seed: int
) -> tuple[np.ndarray, list[int]]:
    """Features of each row as it comes, after it may have entered the dictionary; rows of the dictionary."""
    D: list[int] = []
    draws, phi = Uniform(seed, 2), np.zeros((len(X), size))
    for t, x in enumerate(X):
        Z = X[D].reshape(len(D), X.shape[1])
        own = float(kernel(x[None], x[None])[0, 0])
        K, k = (kernel(Z, Z), kernel(Z, x[None])[:, 0]) if D else (np.zeros((0, 0)), np.zeros(0))
        outside = own - k @ np.linalg.solve(K, k) if D else own
        if len(D) < size and outside >= 1e-8 * own:
            r = own - k @ np.linalg.solve(K + ridge * np.eye(len(D)), k) if D else own
            if draws.next() < r / (r + ridge):
                D.append(t)
        if D:  # phi = L⁻¹ k_D(x), L Lᵀ = K_DD
            phi[t, : len(D)] = np.linalg.solve(np.linalg.cholesky(kernel(X[D], X[D])), kernel(X[D], x[None]))[:, 0]
    return phi, D


def fourier(X: np.ndarray, omega: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(math.sqrt(2 / len(b)) * np.cos(X @ omega + b))
