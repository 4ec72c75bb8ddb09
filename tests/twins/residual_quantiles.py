"""Quantiles around given forecasts, in plain NumPy: dense rows of weight 1, one a round."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

KEPT, TINY = 0.9995, 1e-12


def clip(value: float, most: float) -> float:
    return float(np.clip(value, -most, most))


def pinball(y: float, q: Any, p: float) -> Any:
    return np.maximum(p * (y - q), (p - 1) * (y - q))


def answers(X: np.ndarray, y: np.ndarray, task: np.ndarray, f: np.ndarray, levels: list[float]) -> np.ndarray:
    """(n, levels) before each row."""
    K, d, m = task.max() + 1, X.shape[1], len(levels)
    normal = ndtri(levels) / 0.8
    n_k, a, all_a = np.zeros(K), np.zeros(K), 0.0
    U = mean = spread = 0.0
    w, w_squares = np.zeros(4), np.zeros(4)
    t, u = np.repeat(normal[:, None], 4, 1), np.zeros((m, K, 2))
    v, v_squares = np.zeros((m, 4)), np.zeros((m, 4))
    v[:, 0] = normal
    r, r_squares, largest = np.zeros((m, d)), np.zeros((m, d)), np.zeros(d)
    L, unit_of_loss = np.zeros((m, 7)), np.zeros(m)
    found = np.zeros((len(y), m))

    def described(n: int) -> tuple[np.ndarray, float, float]:
        z = clip((f[n] - mean) / spread, 4) if spread > 0 else 0.0
        phi = np.array([1.0, z, abs(z), a[task[n]] - all_a if n_k[task[n]] else 0.0])
        unit = U if U > 0 else 1.0
        return phi, unit, unit * np.exp(clip(w @ phi, 5))

    def seven(n: int, p: int, phi: np.ndarray, unit: float, size: float) -> tuple[np.ndarray, np.ndarray]:
        x = np.array([clip(X[n, j] / largest[j], 1) if largest[j] else 0.0 for j in range(d)])
        of_t = [
            f[n] + unit * t[p, 0],
            f[n] + unit * (t[p, 1] + u[p, task[n], 0]),
            f[n] + size * t[p, 2],
            f[n] + size * (t[p, 3] + u[p, task[n], 1]),
        ]
        line = f[n] + unit * (v[p] @ phi)
        return np.array([*of_t, line, f[n] + size * normal[p], f[n] + size * (normal[p] + r[p] @ x)]), x

    def mixed(p: int, said: np.ndarray) -> float:
        weights = np.exp(L[p].min() - L[p])
        return float(weights @ said / weights.sum())

    for n in range(len(y)):
        k = task[n]
        phi, unit, size = described(n)
        for p in range(m):
            q = mixed(p, seven(n, p, phi, unit, size)[0])
            if n > 0 and (y[:n] == np.floor(y[:n])).all():
                q = np.floor(q + 0.5)
            found[n, p] = max(q, y[:n].min() / 2) if n > 0 and y[:n].min() >= 0 else q
        found[n].sort()

        largest = np.maximum(largest, np.abs(X[n]))
        for p, level in enumerate(levels):
            said, x = seven(n, p, phi, unit, size)
            loss, before = pinball(y[n], mixed(p, said), level), unit_of_loss[p]
            if before > 0:
                L[p] = KEPT * L[p] + np.minimum(pinball(y[n], said, level) / before, 50)
            counted = min(loss, 50 * before) if n > 20 and before > 0 else loss
            unit_of_loss[p] += max(1 / (n + 1), 1 / 2000) * (counted - before)
            g = (y[n] <= said) - level
            t[p] -= g[:4] / np.sqrt(1 + n / 20)
            u[p, k] -= 0.15 * g[[1, 3]] / np.sqrt(1 + n_k[k] / 2)
            v_squares[p] += (g[4] * phi) ** 2 + TINY
            v[p] -= g[4] * phi / np.sqrt(v_squares[p])
            r_squares[p] += (g[6] * x) ** 2 + TINY
            r[p] -= 0.3 / np.sqrt(d) * g[6] * x / np.sqrt(r_squares[p])
        error, rate = abs(y[n] - f[n]), max(1 / (n + 1), 1 / 2000)
        slope = max(1 - error / size, -3) * phi
        w_squares += slope**2 + TINY
        w -= 0.3 * slope / np.sqrt(w_squares)
        log = clip(np.log(max(error / unit, 1e-3)), 7)
        a[k] = all_a + 0.3 * (log - all_a) if n_k[k] == 0 else a[k] + max(1 / (1 + n_k[k]), 0.03) * (log - a[k])
        all_a += rate * (log - all_a)
        U += rate * ((min(error, 20 * U) if n > 20 and U > 0 else error) - U)
        apart = min(abs(y[n] - mean), 20 * spread if n > 20 and spread > 0 else np.inf) if n > 0 else 0.0
        mean += rate * (np.sign(y[n] - mean) * apart) if n > 0 else y[n]
        spread += rate * (apart - spread)
        n_k[k] += 1
    return found
