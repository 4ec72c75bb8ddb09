"""Rows as `shoal.online.common.dense_rows` and `standardized_targets` make them, plainly."""

from __future__ import annotations

import numpy as np


class Columns:
    """The constant 1, then features over their running r.m.s.; those that have not come have no column."""

    def __init__(self) -> None:
        self.place: dict[int, int] = {}
        self.squares: dict[int, float] = {}
        self.count: dict[int, float] = {}

    def row(self, x: np.ndarray, *, new: bool) -> np.ndarray:
        """The dense row; new features get columns, or are left out."""
        z = {0: 1.0}
        for j in np.flatnonzero(x).tolist():
            if new:
                self.place.setdefault(j, 1 + len(self.place))
            if j in self.place:
                n, v = self.count.get(j, 0.0), self.within(j, x[j])
                z[self.place[j]] = v / np.sqrt((self.squares.get(j, 0.0) + v * v) / (n + 1))
        return np.array([z.get(at, 0.0) for at in range(1 + len(self.place))])

    def within(self, j: int, v: float) -> float:
        if self.count.get(j, 0.0) < 10:
            return v
        limit = 10 * np.sqrt(self.squares[j] / self.count[j])
        return float(np.clip(v, -limit, limit))

    def learn(self, x: np.ndarray, h: float) -> None:
        for j in np.flatnonzero(x).tolist():
            v = self.within(j, x[j])
            self.squares[j] = self.squares.get(j, 0.0) + h * v * v
            self.count[j] = self.count.get(j, 0.0) + h


class Scale:
    """Mean and deviation of the first ten targets; errors within 7 deviations."""

    def __init__(self) -> None:
        self.first: list[tuple[float, float]] = []
        self.center, self.unit, self.count, self.clipped = 0.0, 1.0, 0.0, 0.0

    def learn(self, y: float, h: float) -> tuple[float, float]:
        """Ratio and shift: what was t is now ratio t + shift."""
        old, is_open = (self.center, self.unit), self.count < 10 or np.ptp([y for y, _ in self.first]) == 0
        self.count += h
        if not is_open:
            return 1.0, 0.0
        self.first.append((y, h))
        values, weights = np.array(self.first).T
        if len(values) == 1:
            old = y, 1.0
        self.center = np.average(values, weights=weights)
        deviation = np.sqrt(np.average((values - self.center) ** 2, weights=weights))
        self.unit = deviation if deviation > 0 else self.unit
        return old[1] / self.unit, (old[0] - self.center) / self.unit

    def clip(self, e: float, variance: float, h: float) -> float:
        if self.count <= 10:
            return e
        limit = 7 * np.sqrt(variance) * (1 + max(self.clipped - 1e-3 * self.count, 0.0)) ** 0.25
        self.clipped += h if abs(e) > limit else 0.0
        return float(np.clip(e, -limit, limit))
