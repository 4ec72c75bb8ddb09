"""The linear mixed model by the row, plainly: tasks' posteriors are inverted anew, sums run over all tasks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tests.twins.dense_rows import Columns, Scale


class Task:
    """What its rows add up to."""

    def __init__(self, precision: np.ndarray) -> None:
        d = len(precision)
        self.A, self.B, self.u = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        self.precision = precision  # Omega^-1 when it last followed
        self.rows, self.refreshed = 0.0, 0

    def P(self) -> np.ndarray:
        return np.linalg.inv(self.precision + self.A)


class Twin:
    """Labels are 0 and 1."""

    def __init__(self, regression: bool, *, variance: float | None = None, match: bool = True) -> None:
        self.regression, self.variance, self.match = regression, variance, match
        self.columns, self.scale, self.tasks = Columns(), Scale(), dict[Any, Task]()
        self.mu: np.ndarray = np.zeros(0)
        self.P: np.ndarray = np.zeros((0, 0))
        self.Omega, self.precision = self.P, self.P
        self.weight = self.squares = 0.0
        self.s2, self.rows, self.since = 1.0, 0, 0

    # ---- a row ------------------------------------------------------------------------------------------

    def ask(self, x: np.ndarray, task: Any) -> tuple[float, float, np.ndarray]:
        """m, V and P_mu z."""
        k, own, z, m = self.tasks.get(task), self.Omega, x, 0.0
        if k is not None:
            own = k.P()
            z, m = x - k.A @ own @ x, float(x @ own @ k.B)
        w = self.P @ z
        return m + float(z @ self.mu), float(z @ w + x @ own @ x), w

    def decide(self, row: np.ndarray, task: Any) -> float:
        if not len(self.mu):
            return 0.0
        x = self.columns.row(row, new=False)
        m, V, _ = self.ask(x, task)
        return self.scale.center + self.scale.unit * m if self.regression else m / math.sqrt(1 + math.pi / 8 * V)

    def learn(self, row: np.ndarray, y: float, task: Any, h: float = 1.0) -> None:
        x = self.columns.row(row, new=True)
        self.columns.learn(row, h)
        self.weight += h
        self.squares += h * x @ x
        self.widen(len(x))
        k = self.tasks.setdefault(task, Task(self.precision.copy()))
        if self.regression:
            ratio, shift = self.scale.learn(y, h)
            self.mu = ratio * self.mu
            self.mu[0] += shift
            for other in self.tasks.values():
                other.B, other.u = ratio * other.B + shift * other.A[0], ratio * other.u
        done = 0.0
        while done < h:
            part = h if self.regression else min(max(done, 1.0), h - done)
            m, V, w = self.ask(x, task)
            precision = part
            if self.regression:
                e = self.scale.clip((y - self.scale.center) / self.scale.unit - m, self.s2 * (1 + V), h)
                self.s2 += 2 * h / min(self.weight + 1 + h, 10_000 + h) * (e * e / (1 + V) - self.s2)
            elif self.match:
                kappa = 1 / math.sqrt(1 + math.pi / 8 * V)
                p = 1 / (1 + math.exp(-kappa * m))
                c = max(kappa**2 * p * (1 - p), 1e-4)
                e, precision = kappa * (y - p) / c, part * c / (1 - c * V)
            else:
                low, high = (m, m + V) if y else (m - V, m)
                for _ in range(200):
                    q = (low + high) / 2
                    too_high = q - m > V * (y - 1 / (1 + math.exp(-q)))
                    low, high = (low, q) if too_high else (q, high)
                p = 1 / (1 + math.exp(-q))
                precision = part * max(p * (1 - p), 1e-4)
                e = (y - p) * (part / precision + V)
            den = 1 / precision + V
            self.mu = self.mu + w * e / den
            self.P = self.P - np.outer(w, w) / den + (1e-6 * np.eye(len(x)) if self.variance is None else 0.0)
            k.A, k.B = k.A + precision * np.outer(x, x), k.B + precision * (m + e) * x
            done += part
        marks = [1.0, 2.0, 3.0, *(2.0**i for i in range(2, 40))]
        due = any(k.rows < mark <= k.rows + h for mark in marks)
        k.rows += h
        if due or self.rows - k.refreshed >= 400:
            self.refresh(k)
            k.refreshed = self.rows
        self.rows += 1
        self.since += 1
        if self.variance is None:
            self.follow()

    # ---- the covariance ---------------------------------------------------------------------------------

    def widen(self, d: int) -> None:
        """New columns."""
        if (more := d - len(self.mu)) == 0:
            return
        c = self.weight / self.squares if self.variance is None else self.variance

        def padded(M: np.ndarray, value: float) -> np.ndarray:
            M = np.pad(M, (0, more))
            M[range(d - more, d), range(d - more, d)] = value
            return M

        self.mu, self.P = np.pad(self.mu, (0, more)), padded(self.P, 10.0)
        self.Omega, self.precision = padded(self.Omega, c), padded(self.precision, 1 / c)
        for k in self.tasks.values():
            k.A, k.precision = padded(k.A, 0.0), padded(k.precision, 1 / c)
            k.B, k.u = np.pad(k.B, (0, more)), np.pad(k.u, (0, more))

    def refresh(self, k: Task) -> None:
        k.precision = self.precision.copy()
        k.u = k.P() @ (k.B - k.A @ self.mu)

    def spread(self) -> np.ndarray:
        unit = 1 / self.s2 if self.regression else 1.0
        return np.array([k.P() + unit * np.outer(k.u, k.u) for k in self.tasks.values()])

    def follow(self) -> None:
        sweeps = self.rows >= 256 and self.rows & (self.rows - 1) == 0
        d, n = len(self.mu), len(self.tasks)
        z: np.ndarray = np.ones(d)
        if sweeps:
            for k in self.tasks.values():
                self.refresh(k)
            M: np.ndarray = 10 * np.eye(d) + (np.array([k.A for k in self.tasks.values()]) * self.spread()).sum(0)
            g = np.diag(self.precision @ self.spread().sum(0)) - n
            z = np.clip(1.0 + np.linalg.solve(M, g), 0.5, 2.0)
        if sweeps or self.since >= 10 + d // 2:
            c = self.weight / self.squares
            self.Omega = (np.outer(z, z) * self.spread().sum(0) + 0.2 * c * np.eye(d)) / (n + 2) + 1e-5 * np.eye(d)
            self.precision = np.asarray(np.linalg.inv(self.Omega))
            self.since = 0
        if sweeps:
            for k in self.tasks.values():
                self.refresh(k)


def learn(X: np.ndarray, y: np.ndarray, task: np.ndarray, twin: Twin, weight: np.ndarray | None = None) -> np.ndarray:
    """Answers given before each row was learned."""
    said = []
    for i, row in enumerate(X):
        said.append(twin.decide(row, task[i]))
        twin.learn(row, y[i], task[i], 1.0 if weight is None else weight[i])
    return np.array(said)
