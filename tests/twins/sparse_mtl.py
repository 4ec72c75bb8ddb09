"""Srijith and Shevade's sparse multi-task machine in plain NumPy, slowly: dense systems, nothing kept between steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


def gaussian(X: np.ndarray, Z: np.ndarray, sigma: float) -> np.ndarray:
    return np.asarray(np.exp(-((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2) / (2 * sigma**2)))


def linear(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.asarray(X @ Z.T)


def squared(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.asarray((X @ Z.T / 4 + 1) ** 2)


@dataclass
class SparseMTL:
    """Given rows, sets of basis rows (`common`, and `own[t]`), and what follows from them."""

    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    gamma: float
    lam: float
    sigma: float
    hinge: bool
    common: list[int] = field(default_factory=list)
    own: dict[int, list[int]] = field(default_factory=dict)
    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # the Gaussian one

    def __post_init__(self) -> None:
        self.k = self.kernel(self.X, self.X) if self.kernel else gaussian(self.X, self.X, self.sigma)
        self.own = self.own or {t: [] for t in range(int(self.task.max()) + 1)}

    def design(self) -> np.ndarray:
        """(n, all coefficients): the outputs are design @ coefficients (eq. 1)."""
        own = [self.k[:, J] * (self.task == t)[:, None] for t, J in self.own.items()]
        return np.hstack([self.k[:, self.common], *own])

    def regulariser(self) -> np.ndarray:
        """Q with (1/2) a'Qa = (gamma/2) a'K_CC a + (lam/2) sum_t b_t'K_JtJt b_t."""
        sets = [(self.gamma, self.common), *((self.lam, J) for J in self.own.values())]
        Q = np.zeros((sum(len(J) for _, J in sets),) * 2)
        at = 0
        for weight, J in sets:
            Q[at : at + len(J), at : at + len(J)] = weight * self.k[np.ix_(J, J)]
            at += len(J)
        return Q

    def in_loss(self, o: np.ndarray) -> np.ndarray:
        return 1 - self.y * o > 0 if self.hinge else np.ones(len(o), bool)

    def objective(self, a: np.ndarray) -> float:
        """Eq. 2 or eq. 5."""
        o = self.design() @ a
        return float(0.5 * a @ self.regulariser() @ a + 0.5 * (((self.y - o) ** 2)[self.in_loss(o)]).sum())

    def gradient(self, a: np.ndarray) -> np.ndarray:
        D, o = self.design(), self.design() @ a
        e = np.where(self.in_loss(o), self.y - o, 0)
        return np.asarray(self.regulariser() @ a - D.T @ e)

    def minimum(self) -> np.ndarray:
        """All coefficients: Newton with halving, the Hessian built anew in each step."""
        D, Q = self.design(), self.regulariser()
        a = np.zeros(D.shape[1])
        for _ in range(200):
            inside = self.in_loss(D @ a)
            target = np.linalg.lstsq(Q + D[inside].T @ D[inside], D[inside].T @ self.y[inside], rcond=None)[0]
            s = 1.0
            while self.objective(a + s * (target - a)) > self.objective(a) and s > 1e-10:
                s /= 2
            moved = s * (target - a)
            a = a + moved
            if np.abs(moved).max(initial=0) < 1e-13:
                break
        return a

    def decrease(self, a: np.ndarray, c: int, t: int | None) -> float:
        """What one more coefficient gains, row c's in the common set or in task t's, with I and all else frozen."""
        o = self.design() @ a
        rows = self.in_loss(o) & (True if t is None else self.task == t)
        weight, J = (self.gamma, self.common) if t is None else (self.lam, self.own[t])
        first = 0 if t is None else len(self.common) + sum(len(self.own[s]) for s in self.own if s < t)
        g = weight * self.k[c, J] @ a[first : first + len(J)] - self.k[c, rows] @ (self.y - o)[rows]
        P = weight * self.k[c, c] + (self.k[c, rows] ** 2).sum()
        return float(g * g / (2 * P))

    def grow(self, t: int | None, most: int, tol: float) -> None:
        """Algorithm 2 for one set, every row a candidate; three vectors in a row that gain little end it."""
        J = self.common if t is None else self.own[t]
        rows = np.flatnonzero(self.task == t if t is not None else np.ones(len(self.y), bool))
        E = [self.objective(self.minimum())]
        strong = 0  # vectors up to the last that gained enough
        while len(J) < most and len(J) - strong < 3:
            a = self.minimum()
            candidates = [c for c in rows.tolist() if c not in J]
            J.append(max(candidates, key=lambda c: self.decrease(a, c, t)))
            E.append(self.objective(self.minimum()))
            if E[-2] - E[-1] > tol * E[-2]:
                strong = len(J)
        del J[strong:]
