"""Cavallanti et al. 2010, figure 1, in plain NumPy: the interaction matrix is written down and inverted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

# -- interaction matrices A(K), or their inverse where A does not exist -------------------------------------


def pairwise(K: int) -> np.ndarray:
    """Eq. 4."""
    return (K + 1) * np.eye(K) - np.ones((K, K))


def constant(b: float) -> Callable[[int], np.ndarray]:
    """Eq. 5."""

    def A(K: int) -> np.ndarray:
        a = K + b * (K - 1)
        return np.array([[a if i == j else -b for j in range(K)] for i in range(K)]) / K

    return A


def laplacian(edges: list[tuple[int, int, float]]) -> Callable[[int], np.ndarray]:
    """I + L of section 3.3, weighted."""

    def A(K: int) -> np.ndarray:
        L = np.zeros((K, K))
        for i, j, weight in edges:
            L[[i, j], [i, j]] += weight
            L[[i, j], [j, i]] -= weight
        return np.eye(K) + L

    return A


def inverse_of(A: Callable[[int], np.ndarray]) -> Callable[[int], np.ndarray]:
    return lambda K: np.linalg.inv(A(K))


def pooled(K: int) -> np.ndarray:
    """B when b goes to infinity."""
    return np.ones((K, K)) / K


# -- derivatives of the losses in f -------------------------------------------------------------------------


def slope(loss: str, f: float, y: float, epsilon: float, quantile: float = 0.5) -> float:
    predicted = 1.0 if f >= 0 else -1.0
    match loss:
        case "perceptron":
            return 0.0 if predicted == y else -y
        case "hinge":
            return -y if 1 - y * f > 0 else 0.0
        case "squared_hinge":
            return -2 * y * max(0.0, 1 - y * f)
        case "logistic":
            return float(-y * np.exp(-np.logaddexp(0.0, y * f)))
        case "squared":
            return f - y
        case "epsilon_insensitive":
            return float(np.sign(f - y)) if abs(f - y) > epsilon else 0.0
        case "huber":
            return float(np.clip(f - y, -epsilon, epsilon))
        case "absolute":
            return float(np.sign(f - y))
        case "quantile":
            return 0.0 if f == y else float(f > y) - quantile
        case "poisson":
            return float(np.exp(f) - y)
        case "gamma":
            return float(1 - y * np.exp(-f))
    raise AssertionError(loss)


IMPLICIT = ("huber", "absolute", "quantile", "poisson", "gamma")


def implicit(loss: str, eta: float, f: float, y: float, gain: float, epsilon: float, quantile: float) -> float:
    """The m with m = -eta l'(f + gain m, y), by bisection: m + eta l'(f + gain m, y) rises with m."""
    low = high = -eta * slope(loss, f, y, epsilon, quantile)
    low, high = min(low, 0.0), max(high, 0.0)
    for _ in range(200):
        m = (low + high) / 2
        below = m + eta * slope(loss, f + gain * m, y, epsilon, quantile) < 0
        low, high = (m, high) if below else (low, m)
    return (low + high) / 2


# -- the algorithm ------------------------------------------------------------------------------------------


def learn(
    X: np.ndarray,
    y: np.ndarray,
    task: np.ndarray,
    rounds: Iterable[np.ndarray],
    *,
    B: Callable[[int], np.ndarray],
    loss: str,
    eta: float,
    sqrt_step: bool,
    epsilon: float,
    quantile: float = 0.5,
    n_declared: int = 0,
    weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions before each round, final W (d, K), updates per task.

    X (n, d); y (n,); task (n,) columns in order of appearance; rounds: the rows of each round; B(K): the rates.
    With v_i the sum of task i's own steps, W = V B; B is that of the tasks which exist. A row of weight 2.5 comes
    twice, and then a half step on it; rounds without weight do not count.
    """
    weight = np.ones(len(X)) if weight is None else weight
    t = 0
    K, V = n_declared, np.zeros((X.shape[1], max(n_declared, task.max() + 1)))
    decisions, updates = np.zeros(len(X)), np.zeros(V.shape[1], int)
    for rows in rounds:
        counting = rows[weight[rows] > 0]
        t, K = t + (len(counting) > 0), max(K, task[counting].max(initial=-1) + 1)
        rates = B(K)
        if loss != "perceptron":
            rates = rates / rates.diagonal().max()
        for r in rows:
            f = (V[:, :K] @ rates)[:, task[r]] @ X[r]
            decisions[r] = np.exp(f) if loss in ("poisson", "gamma") else f
        for r in counting:
            step, moved = eta / np.sqrt(t) if sqrt_step else eta, False
            for part in [1.0] * int(weight[r]) + [weight[r] % 1]:
                f = (V[:, :K] @ rates)[:, task[r]] @ X[r]
                gain = rates[task[r], task[r]] * X[r] @ X[r]
                if loss in IMPLICIT:
                    change = -implicit(loss, part * step, f, y[r], gain, epsilon, quantile)
                else:
                    change = part * step * slope(loss, f, y[r], epsilon)
                V[:, task[r]] -= change * X[r]
                moved |= change != 0
            updates[task[r]] += moved
    return decisions, V[:, :K] @ rates, updates


def kernel_decisions(X: np.ndarray, y: np.ndarray, task: np.ndarray, *, B: np.ndarray) -> np.ndarray:
    """Eq. 3: the kernel Perceptron with K((x, i), (z, j)) = B_ij <x, z>, one row a round."""
    support: list[int] = []
    decisions = np.zeros(len(X))
    for t in range(len(X)):
        decisions[t] = sum(y[s] * B[task[s], task[t]] * (X[s] @ X[t]) for s in support)
        if (1.0 if decisions[t] >= 0 else -1.0) != y[t]:
            support.append(t)
    return decisions
