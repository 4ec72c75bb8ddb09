"""Kernel and second-order Perceptron of Cavallanti et al. 2010 in plain NumPy: matrices written down and inverted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

Rates = Callable[[int], np.ndarray]  # B for a number of tasks
Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def linear(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.asarray(X @ Z.T)


def rbf(gamma: float) -> Kernel:
    def k(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)))

    return k


def sign(f: float) -> float:
    return 1.0 if f >= 0 else -1.0


def run(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    B: Rates,
    kernel: Kernel,
    a: float | None = None,
    budget: int | None = None,
    n_declared: int = 0,
) -> tuple[np.ndarray, list[int]]:
    """Decisions before each round and the rows kept; `a=None` is the first-order kernel Perceptron (eq. 3).

    Second order: f = y^T (a I + S^T S)^-1 S^T phi with the current row as the last column of S and 0 as its label
    (eq. 11 as printed).
    """
    K = n_declared
    kept: list[int] = []
    decisions = np.zeros(len(X))

    def decide(row: int) -> float:
        rows = [*kept, row]
        G = B(K)[np.ix_(task[rows], task[rows])] * kernel(X[rows], X[rows])
        labels = np.append(y[kept], 0.0)
        if a is None:
            return float(labels @ G[:, -1])
        return float(labels @ np.linalg.solve(a * np.eye(len(rows)) + G, G[:, -1]))

    for rows in rounds:
        K = max(K, int(task[rows].max()) + 1)
        decisions[rows] = [decide(row) for row in rows]
        for row in rows:
            if sign(decide(row)) != y[row]:
                kept = [*kept, row] if budget is None else [*kept, row][-budget:]
    return decisions, kept


def primal(X: np.ndarray, y: np.ndarray, task: np.ndarray, *, A: np.ndarray, a: float) -> np.ndarray:
    """Figure 2 with the matrix square root of A_x^-1; one row a round, all tasks known. Decisions."""
    d = X.shape[1]
    values, vectors = np.linalg.eigh(np.kron(np.linalg.inv(A), np.eye(d)))
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    v, outer = np.zeros(len(A) * d), np.zeros((len(A) * d, len(A) * d))
    decisions = np.zeros(len(X))
    for t in range(len(X)):
        phi = root @ np.kron(np.eye(len(A))[task[t]], X[t])
        decisions[t] = v @ np.linalg.solve(a * np.eye(len(phi)) + outer + np.outer(phi, phi), phi)
        if sign(decisions[t]) != y[t]:
            v, outer = v + y[t] * phi, outer + np.outer(phi, phi)
    return decisions
