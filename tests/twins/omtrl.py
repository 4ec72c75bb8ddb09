"""Saha et al. 2011 (section 6.6 of the specification) in plain NumPy: G, log B and the covariance are computed anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np


def apply(function: Callable[[np.ndarray], np.ndarray], M: np.ndarray) -> np.ndarray:
    """A function of a symmetric matrix."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return np.asarray(vectors @ np.diag(function(values)) @ vectors.T)


def next_relation(B: np.ndarray, W: np.ndarray, divergence: str, eta: float, normalize: str | None) -> np.ndarray:
    """One step of B for the weights W (d, K)."""
    G, new = W.T @ W, np.array(B)
    # Tasks without weights are related to none. Eigenvectors of all tasks would say so but for rounding, and margins
    # of theirs that are 0 would get a sign.
    some = np.ix_(W.any(axis=0), W.any(axis=0))
    if divergence == "logdet":
        new = B + eta * G
    elif divergence == "von-neumann":
        new[some] = apply(np.exp, apply(np.log, B[some]) + eta * G[some])
    elif divergence == "covariance":
        new = np.atleast_2d(np.cov(W[W.any(axis=1)], rowvar=False)) + 1e-6 * np.eye(len(B))
    else:
        new[:] = 0
        new[some] = apply(lambda values: np.sqrt(np.maximum(values, 0)), G[some])
        new /= np.trace(new)
    return new * len(new) / np.trace(new) if normalize else new


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    divergence: str,
    eta_A: float,
    warmup: int,
    normalize: str | None,
    n_declared: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final W (d, K), B (K, K), updates per task."""
    W, B = np.zeros((X.shape[1], 0)), np.zeros((0, 0))
    decisions, updates = np.zeros(len(X)), np.zeros(max(n_declared, task.max() + 1), int)
    for t, rows in enumerate(rounds, start=1):
        W, B = enter(W, B, max(n_declared, task[rows].max() + 1), normalize)
        K = len(B)
        decisions[rows] = np.einsum("rd,dr->r", X[rows], W[:, task[rows]])
        for r in rows:
            i, predicted = task[r], 1.0 if X[r] @ W[:, task[r]] >= 0 else -1.0
            if predicted == y[r] or not X[r].any():
                continue
            if B[i, i] == 0:  # a task without weights, which "batch" gives no rate
                B[i, i] = 1 if normalize else K
            W = W + y[r] * np.outer(X[r], B[:, i])
            updates[i] += 1
            if t > warmup:
                B = next_relation(B, W, divergence, eta_A, normalize)
    return decisions, W, B, updates


def enter(W: np.ndarray, B: np.ndarray, K: int, normalize: str | None) -> tuple[np.ndarray, np.ndarray]:
    """New tasks: B = I, or from A = I/K, where the old part of A keeps (K_old / K) of itself."""
    new = K - len(B)
    if new <= 0:
        return W, B
    old = B if normalize or not len(B) else B * K / len(B)
    B = np.eye(K) * (1 if normalize else K)
    B[: K - new, : K - new] = old
    return np.column_stack([W, np.zeros((len(W), new))]), B
