"""Dekel, Long, Singer 2007 in plain NumPy; implicit steps come from bisection on the threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def norm_of(loss: np.ndarray, norm: str, r: int) -> float:
    if norm == "rmax":
        return float(np.sort(loss)[::-1][:r].sum())
    return float(np.linalg.norm(loss, {"l1": 1, "l2": 2, "linf": np.inf}[norm]))


def dual_norm(tau: np.ndarray, norm: str, r: int) -> float:
    tau = np.abs(tau)
    return float({
        "l1": tau.max(), "l2": np.linalg.norm(tau), "linf": tau.sum(), "rmax": max(tau.max(), tau.sum() / r)
    }[norm])  # fmt: skip


def finite(loss: np.ndarray, norm: str, r: int, C: float) -> np.ndarray:
    tau = np.zeros(len(loss))
    if not (loss > 0).any():
        return tau
    match norm:
        case "l1":
            tau[loss > 0] = C
        case "l2":
            tau = C * loss / np.linalg.norm(loss)
        case "linf":
            tau[np.argmax(loss)] = C
        case "rmax":
            largest = sorted(range(len(loss)), key=lambda k: -loss[k])[:r]
            tau[[k for k in largest if loss[k] > 0]] = C
    return tau


def implicit(loss: np.ndarray, n: np.ndarray, norm: str, r: int, C: float) -> np.ndarray:
    """Rows are not zero, so n > 0."""

    def at(theta: float) -> np.ndarray:
        if norm == "l2":
            return loss / (n + theta)
        tau = np.maximum(0.0, loss - theta) / n
        return np.asarray(tau if norm == "linf" else np.minimum(C, tau))

    if norm == "l1" or dual_norm(at(0.0), norm, r) <= C:
        return at(0.0)
    low, high = 0.0, float(np.linalg.norm(loss) / C if norm == "l2" else loss.max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if dual_norm(at(middle), norm, r) > C else (low, middle)
    return at(high)


def steps(loss: np.ndarray, n: np.ndarray, *, norm: str, r: int, C: float, rule: str) -> np.ndarray:
    if rule == "implicit":
        return implicit(loss, n, norm, r, C)
    if rule == "capped":
        rho2 = {"l1": len(loss), "l2": 1, "linf": 1, "rmax": min(r, len(loss))}[norm]
        C = min(C, norm_of(loss, norm, r) / (n.max() * rho2))
    return finite(loss, norm, r, C)


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    norm: str = "l2",
    C: float = 1.0,
    rule: str = "finite",
    r: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final W (K, d), updates per task."""
    W = np.zeros((task.max() + 1, X.shape[1]))
    decisions, updates = np.zeros(len(X)), np.zeros(len(W), int)
    for rows in rounds:
        decisions[rows] = np.einsum("ij,ij->i", W[task[rows]], X[rows])
        loss = np.maximum(0.0, 1 - y[rows] * decisions[rows])
        if not loss.any():
            continue
        tau = steps(loss, np.einsum("ij,ij->i", X[rows], X[rows]), norm=norm, r=r, C=C, rule=rule)
        W[task[rows]] += (tau * y[rows])[:, None] * X[rows]
        updates[task[rows]] += tau > 1e-12 * C  # bisection ends a rounding error beside 0
    return decisions, W, updates
