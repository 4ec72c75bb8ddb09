"""Regression: MAE, RMSE and explained variance; the loss of quantiles; and whether a regressor has diverged.

The cost of an update does not depend on the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.metric import TaskSums, Values, grown, ratio

MOST_TIMES_TARGET = 1_000.0  # the largest target so far: larger predictions belong to no useful model


class Residuals(TaskSums):
    """MAE, RMSE and explained variance, from sums of errors and of targets.

    Targets are summed as distances from the first target of their task, so that a large offset does not eat
    the digits of the variance.
    """

    names = ("mae", "rmse", "explained_variance")

    width = 6  # rows, |e|, e, e^2, y - origin, (y - origin)^2

    def __init__(self) -> None:
        super().__init__()
        self._origin = np.zeros(16)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Add the errors up."""
        self._sums, self._origin = grown(self._sums, n_tasks), grown(self._origin, n_tasks)
        fresh = np.flatnonzero(self._sums[code, 0] == 0)[::-1]  # backwards: the first row has the last word
        self._origin[code[fresh]] = truth[fresh]
        error, target = truth - score, truth - self._origin[code]
        self.add(code, n_tasks, 1.0, np.abs(error), error, error**2, target, target**2)

    def absorb(self, later: Residuals, n_tasks: int) -> None:
        """Add the sums; sum(y - a) = sum(y - b) + n (b - a) and sum((y - a)^2) likewise change the origin."""
        self._sums, self._origin = grown(self._sums, n_tasks), grown(self._origin, n_tasks)
        sums, origin = grown(later._sums, n_tasks)[:n_tasks].copy(), grown(later._origin, n_tasks)[:n_tasks]
        self._origin[:n_tasks] = np.where(self._sums[:n_tasks, 0] > 0, self._origin[:n_tasks], origin)
        rows, target = sums[:, 0], sums[:, 4]
        moved = np.where(rows > 0, origin - self._origin[:n_tasks], 0.0)
        sums[:, 5] += moved * (2 * target + rows * moved)
        sums[:, 4] += rows * moved
        self._sums[:n_tasks] += sums

    def values(self, n_tasks: int) -> dict[str, Values]:
        """Explained variance is undefined where the targets do not vary."""
        rows, absolute, error, squared, target, target_squared = self._sums[:n_tasks].T
        total = rows.sum()
        y_mean = ratio(target, rows)
        y_spread = np.maximum(target_squared - target * np.nan_to_num(y_mean), 0)
        e_spread = np.maximum(squared - error * np.nan_to_num(ratio(error, rows)), 0)
        anchor = self._origin[np.argmax(rows > 0)]  # so that equal targets have a spread of exactly zero
        mean = np.where(rows > 0, self._origin[:n_tasks] - anchor + np.nan_to_num(y_mean), 0)
        between = rows * (mean - ratio(rows @ mean, total)) ** 2  # spread of the tasks' means around the overall mean
        all_y_spread = y_spread.sum() + between.sum()
        all_e_spread = squared.sum() - error.sum() * ratio(error.sum(), total)
        return {
            "mae": Values(float(ratio(absolute.sum(), total)), ratio(absolute, rows)),
            "rmse": Values(float(np.sqrt(ratio(squared.sum(), total))), np.sqrt(ratio(squared, rows))),
            "explained_variance": Values(float(_explained(all_e_spread, all_y_spread)), _explained(e_spread, y_spread)),
        }


def _explained(error_spread: Any, target_spread: Any) -> Any:
    return np.where(target_spread > 0, 1 - ratio(error_spread, target_spread), np.nan)


class QuantileLoss(TaskSums):
    """The pinball loss at the levels of a learner's quantiles, its mean over them, and the CRPS that they stand for.

    Parameters
    ----------
    levels : sequence of float
        Of the learner's answers, one a column. A single answer is held against every level.
    """

    names = ("pinball", "crps")

    width = 3  # rows, losses, CRPS

    def __init__(self, levels: Sequence[float]) -> None:
        super().__init__()
        self.levels = levels

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Add the losses up."""
        losses = pinball_losses(truth, score, self.levels)
        self.add(code, n_tasks, 1.0, losses.mean(axis=1), losses @ (2.0 * shares(self.levels)))

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The means."""
        rows, *sums = self._sums[:n_tasks].T
        return {
            name: Values(float(ratio(of_tasks.sum(), rows.sum())), ratio(of_tasks, rows))
            for name, of_tasks in zip(self.names, sums, strict=True)
        }

    def notes(self) -> list[str]:
        """Which loss it is."""
        if len(self.levels) == 1:
            return [f"pinball is the loss of the quantile {self.levels[0]:g}"]
        return [f"pinball is the mean loss of the quantiles {', '.join(f'{level:g}' for level in self.levels)}"]


def pinball_losses(truth: FloatArray, score: FloatArray, levels: Sequence[float]) -> FloatArray:
    """(n, levels) p (y - q) where y is above the answer q at the level p, (1 - p) (q - y) elsewhere.

    Examples
    --------
    >>> pinball_losses(np.array([3.0, 0.0]), np.array([[1.0, 2.0], [1.0, 2.0]]), [0.5, 0.9])
    array([[1. , 0.9],
           [0.5, 0.2]])
    """
    off, p = truth[:, None] - score.reshape(len(truth), -1), np.asarray(levels)
    return np.asarray(np.maximum(p * off, (p - 1.0) * off))


def shares(levels: Sequence[float]) -> FloatArray:
    """How much of 0 to 1 is nearest to each level.

    The continuous ranked probability score is twice the integral of the pinball loss over all levels (Gneiting, Raftery
    2007, section 4.2); with these weights the sum over some of them stands for it.

    Examples
    --------
    >>> shares([0.1, 0.5, 0.9])
    array([0.3, 0.4, 0.3])
    """
    edges = np.concatenate([[0.0], np.convolve(levels, [0.5, 0.5], "valid"), [1.0]])
    return np.diff(edges)


def nearest_to_median(score: FloatArray, levels: Sequence[float]) -> FloatArray:
    """(n,) of several answers a row that of the level nearest to 0.5, of two such levels the lower one."""
    return score if score.ndim == 1 else score[:, int(np.abs(np.asarray(levels) - 0.5).argmin())]


class Divergence:
    """Watches predictions; `row` is the number of the first row at which they left every scale of the targets."""

    def __init__(self) -> None:
        self.row: int | None = None
        self._rows = 0
        self._largest = 0.0  # target so far, in absolute value

    def update(self, truth: FloatArray, prediction: FloatArray) -> None:
        """Look at more rows."""
        if self.row is None:
            largest = np.maximum.accumulate(np.maximum(np.abs(truth), self._largest))
            self._largest = float(largest[-1])
            with np.errstate(invalid="ignore"):
                sound = np.abs(prediction) <= MOST_TIMES_TARGET * np.where(largest > 0.0, largest, np.inf)
            if not sound.all():
                self.row = self._rows + int(np.argmin(sound)) + 1
        self._rows += len(truth)
