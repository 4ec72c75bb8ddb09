"""Metrics that are sums over rows: error rate and F1, mean and squared errors, explained variance.

The cost of an update does not depend on the number of tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.protocol import Values


def grown(sums: NDArray[Any], n_tasks: int) -> NDArray[Any]:
    """`sums` with a row for each task at least; doubled, so that growth is amortised."""
    if n_tasks <= len(sums):
        return sums
    larger = np.zeros((max(n_tasks, 2 * len(sums)), *sums.shape[1:]), sums.dtype)
    larger[: len(sums)] = sums
    return larger


def ratio(numerator: Any, denominator: Any) -> Any:
    """NaN where the denominator is zero: undefined, not perfect and not worst."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.true_divide(numerator, denominator)


class Confusion:
    """Error rate and F1 of either class, from counts of (label, prediction) pairs; margin 0 predicts +1."""

    names = ("error", "f1_positive", "f1_negative")

    def __init__(self) -> None:
        self._counts = np.zeros((16, 4), np.int64)  # per task: true -, false +, false -, true +

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Count the pairs."""
        self._counts = grown(self._counts, n_tasks)
        cell = 4 * code + (2 * (truth > 0) + (score >= 0))
        np.add.at(self._counts.reshape(-1), cell, 1)

    def absorb(self, later: Confusion, n_tasks: int) -> None:
        """Add the counts."""
        self._counts = grown(self._counts, n_tasks)
        self._counts[:n_tasks] += grown(later._counts, n_tasks)[:n_tasks]

    def values(self, n_tasks: int) -> dict[str, Values]:
        """F1 is undefined where a class neither occurs nor is predicted."""
        per_task = self._from_counts(self._counts[:n_tasks].T)
        overall = self._from_counts(self._counts.sum(axis=0))
        return {name: Values(float(overall[name]), per_task[name]) for name in self.names}

    @staticmethod
    def _from_counts(counts: IntArray) -> dict[str, Any]:
        true_negative, false_positive, false_negative, true_positive = counts
        wrong = false_positive + false_negative
        return {
            "error": ratio(wrong, wrong + true_negative + true_positive),
            "f1_positive": ratio(2 * true_positive, 2 * true_positive + wrong),
            "f1_negative": ratio(2 * true_negative, 2 * true_negative + wrong),
        }

    def notes(self) -> list[str]:
        """None."""
        return []


class Residuals:
    """MAE, RMSE and explained variance, from sums of errors and of targets.

    Targets are summed as distances from the first target of their task, so that a large offset does not eat
    the digits of the variance.
    """

    names = ("mae", "rmse", "explained_variance")

    def __init__(self) -> None:
        self._sums = np.zeros((16, 6))  # per task: rows, |e|, e, e^2, y - origin, (y - origin)^2
        self._origin = np.zeros(16)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Add the errors up."""
        self._sums, self._origin = grown(self._sums, n_tasks), grown(self._origin, n_tasks)
        fresh = np.flatnonzero(self._sums[code, 0] == 0)[::-1]  # backwards: the first row has the last word
        self._origin[code[fresh]] = truth[fresh]
        error, target = truth - score, truth - self._origin[code]
        terms = (np.ones(len(code)), np.abs(error), error, error**2, target, target**2)
        for j, term in enumerate(terms):
            np.add.at(self._sums[:, j], code, term)

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

    def notes(self) -> list[str]:
        """None."""
        return []


def _explained(error_spread: Any, target_spread: Any) -> Any:
    return np.where(target_spread > 0, 1 - ratio(error_spread, target_spread), np.nan)
