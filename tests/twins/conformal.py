"""Thresholds of intervals and sets that tasks share in part: quantile tracking of ln q, in plain NumPy."""

from typing import Any

import numpy as np


class Thresholds:
    """ln q = t + u_k; one score a row."""

    def __init__(self, coverage: float, least_step: float) -> None:
        self.alpha, self.least_step = 1 - coverage, least_step
        self.first: list[float] = []
        self.n, self.t = 0, 0.0
        self.u: dict[Any, float] = {}
        self.c: dict[Any, int] = {}
        self.misses: dict[Any, int] = {}

    def q(self, k: Any) -> float:
        return np.inf if self.n < 50 else float(np.exp(self.t + self.u.get(k, 0.0)))

    def learn(self, k: Any, s: float) -> None:
        if self.n < 50:
            self.first.append(s)
            self.n += 1
            if self.n == 50:
                self.t = np.log(2 * np.median(self.first))
            return
        e = (s > self.q(k)) - self.alpha
        self.t += 0.02 * e / np.sqrt(max(1, self.n / 2000))
        c = self.c.get(k, 0)
        self.u[k] = self.u.get(k, 0.0) + max(0.1 / np.sqrt(1 + c / 20), self.least_step) * e
        self.c[k] = c + 1
        self.misses[k] = self.misses.get(k, 0) + (e > 0)
        self.n += 1
