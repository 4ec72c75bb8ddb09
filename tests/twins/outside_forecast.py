"""A learner's forecast and those of other models, mixed by Bayes weights and a regression: plain NumPy, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST, LIMIT, SHARE, SLOW, DRIFT = 1e-6, 15.0, 0.005, 1e-4, 1e-3


def sigmoid(f: Any) -> Any:
    return 1 / (1 + np.exp(-f))


class Mixture:
    """`q` answers a row, `learn` learns it; y is 0 or 1, or a number. NaN: no forecast."""

    def __init__(self, m: int, *, regression: bool) -> None:
        self.regression, n = regression, 1 + m
        self.own: dict[Any, Any] = {}
        self.all = np.full(n, 1 / n)
        self.w, self.P, self.u = np.eye(1 + n)[1], np.eye(1 + n), 0.5
        self.t = self.squares = self.errors = self.rows = 0.0

    @property
    def unit(self) -> float:
        return float(np.sqrt(self.squares / self.rows)) if self.squares > 0 else 1.0

    def inputs(self, f: float, outside: Any) -> Any:
        if self.regression:
            far = 20.0 if self.t >= 10 else np.inf
            z = np.clip((np.append(f, outside) - f) / self.unit, -far, far)
        else:
            p = np.clip(outside, LEAST, 1 - LEAST)
            z = np.append(np.clip(f, -LIMIT, LIMIT), np.log(p / (1 - p)))
        return np.append(1.0, np.where(np.isnan(z), z[0], z))

    def both(self, k: Any, z: Any) -> Any:
        r = float(self.w @ z)
        b = self.own.get(k, self.all) @ (z[1:] if self.regression else sigmoid(z[1:]))
        return np.array([b, r if self.regression else sigmoid(np.clip(r, -LIMIT, LIMIT))])

    def q(self, k: Any, f: float, outside: Any) -> float:
        if np.isnan(outside).all():
            return f if self.regression else float(np.clip(f, -LIMIT, LIMIT))
        q = np.array([self.u, 1 - self.u]) @ self.both(k, self.inputs(f, outside))
        return float(f + self.unit * q) if self.regression else float(np.log(q / (1 - q)))

    def learn(self, k: Any, f: float, outside: Any, y: float) -> None:
        z = self.inputs(f, outside)
        both, forecasts = self.both(k, z), z[1:] if self.regression else sigmoid(z[1:])
        is_there, first = not np.isnan(outside).all(), self.regression and self.squares == 0
        if not is_there:
            both = forecasts[[0, 0]]
        h, variance = max(1e-5, both[1] * (1 - both[1])), None
        if self.regression:
            far = 20.0 if self.t >= 10 else np.inf
            unit, q = self.unit, np.array([self.u, 1 - self.u]) @ both
            y, h = np.clip((y - f) / unit, -far, far), 1.0
            self.squares = (1 - 1 / 300) * self.squares + (unit * y) ** 2
            self.errors = (1 - 1 / 300) * self.errors + (unit * (y - q)) ** 2
            self.rows = (1 - 1 / 300) * self.rows + 1
            variance = self.errors / self.rows / unit**2
        if first or not is_there:
            return
        self.P = self.P + DRIFT / (self.t + 1) * np.eye(len(z))
        v = self.P @ z
        self.w = self.w + v * (y - both[1]) / (1 + h * z @ v)
        self.P = self.P - h * np.outer(v, v) / (1 + h * z @ v)
        likelihood, of_both = self.likelihood(forecasts, y, variance), self.likelihood(both, y, variance)
        own = self.own.get(k, self.all) * likelihood
        self.own[k] = (1 - SHARE) * own / own.sum() + SHARE * self.all
        everybody = self.all * likelihood
        self.all = (1 - SHARE) * everybody / everybody.sum() + SHARE / len(everybody)
        u = np.array([self.u, 1 - self.u]) * of_both
        self.u = (1 - SLOW) * u[0] / u.sum() + SLOW / 2
        self.t += 1

    def likelihood(self, p: Any, y: float, variance: float | None) -> Any:
        if variance is None:
            return p if y == 1 else 1 - p
        return np.exp(-((y - p) ** 2 - ((y - p) ** 2).min()) / 2 / variance) if variance > 0 else np.ones(len(p))
