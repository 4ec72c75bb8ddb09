"""Murugesan et al. 2016, algorithm 2, in plain NumPy: W (d, K), P (K, K), all learners on all rows of a round.

P is kept as the paper has it, in probabilities; `learn_log_attention` keeps log P.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    alpha: float | str,
    C: float | str,
    lam: float,
    attention: str | np.ndarray,
    trigger: str = "margin",
    memory: bool,
    absent: str,
    n_declared: int = 0,
    epsilon: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final W (d, K), P (K, K), fired triggers per task. A matrix as `attention` is P.

    With `epsilon` the targets are real: the loss is [|y - f| - epsilon]_+, and sign(y - f) stands for y.
    """
    W, P = np.zeros((X.shape[1], 0)), np.zeros((0, 0))
    if not isinstance(attention, str):
        n_declared, W, P = len(attention), np.zeros((X.shape[1], len(attention))), attention
    decisions, updates = np.zeros(len(X)), np.zeros(max(n_declared, task.max() + 1), int)
    for t, rows in enumerate(rounds, start=1):
        W, P = enter(W, P, max(n_declared, task[rows].max() + 1))
        a, c = corollary_2(t, alpha, C)
        K, present = W.shape[1], task[rows]
        F = W.T @ X[rows].T  # (K, n): learner k on the row of the j-th present task
        loss = np.maximum(0.0, 1 - y[rows] * F if epsilon is None else np.abs(y[rows] - F) - epsilon)
        sign = np.broadcast_to(y[rows], F.shape) if epsilon is None else np.sign(y[rows] - F)
        decisions[rows] = own = F[present, np.arange(len(rows))]
        fired = loss[present, np.arange(len(rows))] > 0
        if trigger == "mistake":
            fired = np.where(own >= 0, 1.0, -1.0) != y[rows]

        R = (a * np.eye(K) + (1 - a) * P)[:, present]  # weights of the rows of this round
        E = np.zeros((K, len(rows)))  # eq. 9: E_kj = 1[trigger_k] 1[l_kj > 0] R_kj
        E[present[fired]] = R[present[fired]] * (loss[present[fired]] > 0)
        if absent == "follow":
            others = np.setdiff1d(np.arange(K), present)
            E[others] = (1 - a) * P[np.ix_(others, present)] * (loss[others] > 0) * fired
        W = W + c * X[rows].T @ (E * sign).T

        P_new = P.copy()
        for k in present[fired]:
            if isinstance(attention, str):
                P_new[k, present] = shift(P[k, present], loss[k], c * (1 - a) / lam, lam, attention, memory)
            updates[k] += 1
        P = P_new
    return decisions, W, P, updates


def enter(W: np.ndarray, P: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """New tasks, one after the other: fair share 1/K of every row, own row uniform."""
    while len(P) < K:
        n = len(P) + 1
        W = np.column_stack([W, np.zeros(len(W))])
        old = P * (n - 1) / n
        P = np.full((n, n), 1 / n)
        P[:-1, :-1] = old
    return W, P


def corollary_2(t: int, alpha: float | str, C: float | str) -> tuple[float, float]:
    """Numbers as they are; "auto" with the horizon doubled whenever it is reached."""
    T = 1
    while t >= 2 * T:
        T *= 2
    return (
        np.sqrt(T) / (1 + np.sqrt(T)) if alpha == "auto" else float(alpha),
        (1 + np.sqrt(T)) / T if C == "auto" else float(C),
    )


def shift(p: np.ndarray, loss: np.ndarray, rate: float, lam: float, attention: str, memory: bool) -> np.ndarray:
    """The present tasks' part of one row of P; it keeps its mass."""
    if attention == "threshold":
        q = np.maximum(0.0, lam - loss) * (p if memory else 1.0)
    else:
        q = p * np.exp(-rate * loss)
    return p.sum() * q / q.sum() if q.sum() > 0 else p


def learn_log_attention(
    X: np.ndarray, y: np.ndarray, task: np.ndarray, rounds: Iterable[np.ndarray], *, alpha: float, C: float, lam: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same rule (exponential, mistake trigger, all tasks in each round) in log P, for losses whose exp is 0."""
    K = task.max() + 1
    W, log_P = np.zeros((X.shape[1], K)), np.full((K, K), -np.log(K))
    for rows in rounds:
        present = task[rows]
        F = W.T @ X[rows].T
        loss = np.maximum(0.0, 1 - y[rows] * F)
        W_new, log_P_new = W.copy(), log_P.copy()
        for i, k in enumerate(present):
            if (1.0 if F[k, i] >= 0 else -1.0) == y[rows[i]]:
                continue
            for j, r in enumerate(rows):
                R = alpha * (i == j) + (1 - alpha) * np.exp(log_P[k, present[j]])
                W_new[:, k] += C * R * (loss[k, j] > 0) * y[r] * X[r]
            log_P_new[k, present] -= C * (1 - alpha) / lam * loss[k]
            log_P_new[k] -= np.logaddexp.reduce(log_P_new[k])
        W, log_P = W_new, log_P_new
    return W, log_P
