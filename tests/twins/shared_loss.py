"""Dekel, Long, Singer 2007 in plain NumPy; implicit steps come from bisection on the threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.optimize import brentq

NAMED = {"l1": 1.0, "l2": 2.0, "linf": np.inf}


def lp(loss: np.ndarray, p: float) -> float:
    """Of losses over the largest: no power overflows."""
    top = loss.max(initial=0.0)
    return float(top * np.linalg.norm(loss / top, p)) if top > 0 else 0.0


def exponent(norm: str | float) -> float:
    return NAMED[norm] if isinstance(norm, str) else float(norm)


def norm_of(loss: np.ndarray, norm: str | float, r: int) -> float:
    if norm == "rmax":
        return float(np.sort(loss)[::-1][:r].sum())
    return lp(loss, exponent(norm))


def dual_norm(tau: np.ndarray, norm: str | float, r: int) -> float:
    tau = np.abs(tau)
    if norm == "rmax":
        return float(max(tau.max(), tau.sum() / r))
    p = exponent(norm)
    return lp(tau, np.inf if p == 1 else 1 if p == np.inf else p / (p - 1))


def finite(loss: np.ndarray, norm: str | float, r: int, C: float) -> np.ndarray:
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
        case float() | int() as p:
            tau = C * (loss / np.linalg.norm(loss, p)) ** (p - 1)
    return tau


def implicit_lp(loss: np.ndarray, n: np.ndarray, p: float, C: float) -> np.ndarray:
    """n tau + theta tau^(q-1) = l: for p = 3 (q = 3/2) a quadratic in the root of tau, for p = 3/2 (q = 3) in tau.

    The quadratics are solved without a difference, and theta by Brent's method on ||tau||_q = C.
    """
    assert p in (1.5, 3.0)

    def at(theta: float) -> np.ndarray:
        if p == 3.0:
            root = theta + np.sqrt(theta**2 + 4 * n * loss)
            return np.asarray((2 * loss / np.where(loss > 0, root, 1)) ** 2)
        return np.asarray(2 * loss / (n + np.sqrt(n**2 + 4 * theta * loss)))

    q = p / (p - 1)
    if not loss.any() or np.linalg.norm(loss / n, q) <= C:
        return np.asarray(loss / n)
    high = np.linalg.norm(loss, p) / C ** (q - 1)  # theta if n = 0: tau = (l/theta)^(p-1)
    theta = brentq(lambda theta: np.linalg.norm(at(theta), q) - C, 0.0, 1.001 * high, xtol=1e-300, rtol=1e-15)
    return at(float(theta))


def implicit(loss: np.ndarray, n: np.ndarray, norm: str | float, r: int, C: float) -> np.ndarray:
    """Rows are not zero, so n > 0."""
    if isinstance(norm, float):
        return implicit_lp(loss, n, norm, C)

    capped = np.inf if norm in ("l2", "linf") else C
    free = np.minimum(capped, loss / n)
    if norm == "l1" or dual_norm(free, norm, r) <= C:
        return np.asarray(free)
    base = 0.0 if norm == "l2" else np.sort(loss)[-min(r, len(loss)) if norm == "rmax" else -1]

    def at(theta: float) -> np.ndarray:
        """For the threshold base + theta: base is near it, so that theta has all its digits."""
        if norm == "l2":
            return np.asarray(loss / (n + theta))
        return np.asarray(np.minimum(capped, np.maximum(0.0, loss - base - theta) / n))

    low, high = -base, float(np.linalg.norm(loss) / C if norm == "l2" else loss.max() - base)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if dual_norm(at(middle), norm, r) > C else (low, middle)
    return at(high)


def steps(loss: np.ndarray, n: np.ndarray, *, norm: str | float, r: int, C: float, rule: str) -> np.ndarray:
    if rule == "implicit":
        return implicit(loss, n, norm, r, C)
    if rule == "capped":
        named = {"l1": len(loss), "l2": 1, "linf": 1, "rmax": min(r, len(loss))}
        rho2 = named[norm] if isinstance(norm, str) else max(1, len(loss) ** (2 / norm - 1))
        C = min(C, norm_of(loss, norm, r) / (n.max() * rho2))
    return finite(loss, norm, r, C)


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    norm: str | float = "l2",
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
