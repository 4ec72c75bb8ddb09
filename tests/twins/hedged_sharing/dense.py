"""Experts on dense rows: their groups have twins of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.twins import mixed_effects, task_levels
from tests.twins.boosted_trees import BoostedTrees
from tests.twins.hedged_sharing.kalman import Kalman
from tests.twins.hedged_sharing.low_rank import LowRank
from tests.twins.hedged_sharing.steps import Now


class AsItIs:
    """Rows that are scaled."""

    @staticmethod
    def row(row: np.ndarray, *, new: bool) -> np.ndarray:
        return row

    @staticmethod
    def learn(row: np.ndarray, h: float) -> None:
        pass


class DenseRows:
    """Margins in the order of `experts.DENSE_ROWS`."""

    def __init__(self, K: int, d: int, real: bool, trees: bool) -> None:
        self.real, self.with_trees, self.columns, self.mean = real, trees, list[int](), 0.0
        self.pooled, self.matrices = Kalman(d, 0.05), [Kalman(d, 1e-5) for _ in range(K)]
        self.wide, self.own_wide = LowRank(d, 0.05), [LowRank(d, 1e-5) for _ in range(K)]
        self.levels, self.logs = task_levels.Twin(real), task_levels.Twin(real)
        self.effects = [mixed_effects.Twin(real), mixed_effects.Twin(real, match=False)]
        twins: list[Any] = [self.levels, self.logs, *self.effects]
        for twin in twins:
            twin.columns = AsItIs()
        self.trees = BoostedTrees(regression=real)
        self.n_logs = self.log_noise = 0.0
        self.largest, self.positive = -np.inf, True

    def by_column(self, z: np.ndarray) -> np.ndarray:
        return np.array([z[0], *(z[1 + j] for j in self.columns)])

    def ask(self, x: np.ndarray, z: np.ndarray, k: int, features: int, phase: str) -> np.ndarray:
        found = np.full(10, np.nan)
        self.features, self.phase = features, phase
        if phase == "wide":
            found[2:4] = self.wide.w @ z, self.own_wide[k].w @ z
        if phase != "full":
            return found
        row, mean = self.by_column(z), self.mean
        found[2:4] = self.pooled.w @ z, self.matrices[k].w @ z
        if features <= 63:
            found[0], found[4] = self.levels.decide(row, k) - mean, self.effects[0].decide(row, k) - mean
            if not self.real and features <= 31:
                found[5] = self.effects[1].decide(row, k)
            if self.real and self.positive and self.n_logs:
                found[1] = np.exp(min(self.logs.decide(row, k) + self.log_noise / 2, self.largest + 0.7)) - mean
        if self.with_trees and features <= 119 and self.trees.forest:
            found[6:] = self.trees.answer(x[self.columns], k) - mean
        return found

    def learn(self, x: np.ndarray, z: np.ndarray, k: int, now: Now, margins: np.ndarray, target: float) -> None:
        if self.phase == "wide":
            for low, m in zip((self.wide, self.own_wide[k]), margins, strict=True):
                low.learn(z, m, now)
        if self.phase != "full":
            return
        for kalman, m in zip((self.pooled, self.matrices[k]), margins, strict=True):
            kalman.learn(z, m, now)
        self.columns += [j for j in np.flatnonzero(x).tolist() if j not in self.columns]
        row, h = self.by_column(z), now.h
        if self.features <= 63:
            self.levels.learn(row, target, k, h)
            self.effects[0].learn(row, target, k, h)
            if not self.real and self.features <= 31:
                self.effects[1].learn(row, target, k, h)
            if self.real:
                self.learn_log(row, target, k, h)
        if self.with_trees and self.features <= 119:
            self.trees.learn(x[self.columns], target, h, k)

    def learn_log(self, row: np.ndarray, target: float, k: Any, h: float) -> None:
        self.positive &= target > 0
        if self.positive:
            y = float(np.log(target))
            square = (y - self.logs.decide(row[: len(self.logs.w)], k)) ** 2
            square = min(square, 9 * self.log_noise) if self.n_logs > 5 else square
            self.n_logs, self.largest = self.n_logs + h, max(self.largest, y)
            self.log_noise += h / min(self.n_logs, 2000 + h) * (square - self.log_noise)
            self.logs.learn(row, y, k, h)
