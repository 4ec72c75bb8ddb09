"""Levels of tasks over common weights, plainly: all 35 pairs of lambda and q as arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tests.twins.dense_rows import Columns, Scale

LAM, Q = (
    a.ravel() for a in np.meshgrid([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0], [0.0, 0.01, 0.1, 1.0, 10.0], indexing="ij")
)


def sigmoid(f: Any) -> Any:
    return 1 / (1 + np.exp(-f))


class Twin:
    """Labels are 0 and 1."""

    def __init__(self, regression: bool) -> None:
        self.regression, self.columns, self.scale = regression, Columns(), Scale()
        self.w, self.P, self.weight = np.zeros(0), np.zeros((0, 0)), 0.0
        self.levels: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self.score, self.shares, self.s2 = np.zeros(35), np.full(35, 1 / 35), np.ones(35)

    def ask(self, x: np.ndarray, task: Any) -> list[float]:
        """The forecast, x'w, the mean level, x'P x, and the noise of the likeliest pair."""
        b, v = self.levels.get(task, (np.zeros(35), 1 / LAM))
        a, g = self.shares, int(self.shares.argmax())
        m, level = x @ self.w, a @ b
        f = m + level if self.regression else a @ ((m + b) / np.sqrt(1 + math.pi / 2 * v))
        return [float(number) for number in (f, m, level, x @ self.P @ x, self.s2[g] * (1 + v[g]))]

    def decide(self, row: np.ndarray, task: Any) -> float:
        if not len(self.w):
            return 0.0
        f = self.ask(self.columns.row(row, new=False), task)[0]
        return self.scale.center + self.scale.unit * f if self.regression else f

    def learn(self, row: np.ndarray, y: float, task: Any, h: float = 1.0) -> None:
        x = self.columns.row(row, new=True)
        self.columns.learn(row, h)
        more, before = len(x) - len(self.w), self.weight
        self.w, self.P = np.pad(self.w, (0, more)), np.pad(self.P, (0, more))
        self.P[range(len(x) - more, len(x)), range(len(x) - more, len(x))] = 10
        self.weight += h
        if self.regression:
            ratio, shift = self.scale.learn(y, h)
            self.w = ratio * self.w
            self.w[0] += shift
            self.levels = {k: (ratio * b, v) for k, (b, v) in self.levels.items()}
        done = 0.0
        while done < h:
            part = h if self.regression else min(max(done, 1.0), h - done)
            f, m, level, spread, noise = self.ask(x, task)
            b, v = self.levels.get(task, (np.zeros(35), 1 / LAM))
            if self.regression:
                e = self.scale.clip((y - self.scale.center) / self.scale.unit - f, noise + spread, h)
                tau, off = 1 + v, f + e - m - b
                self.score = self.score - part * (np.log(self.s2 * tau) + off**2 / (self.s2 * tau)) / 2
                self.s2 = self.s2 + h / (min(before, 1997) + 2 + h) * (off**2 / tau - self.s2)
                v = v / (1 + h * v)
                b, den, curvature = b + h * v * off, noise + h * spread, h
            else:
                p = sigmoid(m + b)
                self.score = self.score - part * np.logaddexp(0, -(m + b) if y else m + b)
                V = 4 * v / (1 + part * np.maximum(p * (1 - p), 1e-3) * 4 * v)
                b, v = b + part * V * (y - p), V / 4
                p = sigmoid(m + level)
                e, curvature = y - p, part * max(p * (1 - p), 1e-3)
                den = 1 + curvature * spread
            direction = self.P @ x
            self.w = self.w + part * e / den * direction
            self.P = self.P - curvature / den * np.outer(direction, direction)
            self.levels[task] = b, v
            done += part
        self.P = self.P + 1e-5 * np.eye(len(x))
        b, v = self.levels[task]
        self.levels[task] = b, v + (Q if self.regression else Q / 4)
        self.score = 0.999 * self.score
        self.shares = np.exp(self.score - self.score.max())
        self.shares = self.shares / self.shares.sum()


def learn(X: np.ndarray, y: np.ndarray, task: np.ndarray, twin: Twin, weight: np.ndarray | None = None) -> np.ndarray:
    """Answers given before each row was learned."""
    said = []
    for i, row in enumerate(X):
        said.append(twin.decide(row, task[i]))
        twin.learn(row, y[i], task[i], 1.0 if weight is None else weight[i])
    return np.array(said)
