"""Columns of a table of tasks beside scores: mean forecast, mean target, and the error in parts of the stream."""

from __future__ import annotations

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.metric import grown, ratio
from shoal.learner import logistic

PARTS = 16  # at most; when there are 16, each two become one
FIRST_PART = 64  # rows


class TaskTrends:
    """Means of each task over all rows, and its error in 8 to 15 equal parts of the stream.

    Parameters
    ----------
    kind : "binary", "multiclass" or "regression"
        The error of a number is its absolute value. Several classes have no forecast.
    has_probabilities : bool
        Forecasts are probabilities of the larger label; else 0 and 1.
    """

    def __init__(self, kind: str, *, has_probabilities: bool) -> None:
        self._kind, self._has_probabilities = kind, has_probabilities
        self._means = np.zeros((16, 3))  # rows, sums of forecasts and of outcomes
        self._parts = [np.zeros((16, 2))]  # rows and errors
        self._size, self._rows = FIRST_PART, 0  # of a part; in the last one

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Take in a piece of the stream."""
        forecast, happened, error = self._read(truth, score)
        self._means = grown(self._means, n_tasks)
        for j, term in enumerate((np.ones(len(code)), forecast, happened)):
            np.add.at(self._means[:, j], code, term)
        first, n = 0, len(code)
        while first < n:
            last = min(n, first + self._size - self._rows)
            self._parts[-1] = part = grown(self._parts[-1], n_tasks)
            np.add.at(part[:, 0], code[first:last], 1.0)
            np.add.at(part[:, 1], code[first:last], error[first:last])
            self._rows, first = self._rows + last - first, last
            if self._rows == self._size:
                self._begin(n_tasks)

    def _read(self, truth: FloatArray, score: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Forecast, outcome and error."""
        if self._kind == "regression":
            return score, truth, np.abs(truth - score)
        if self._kind == "multiclass":
            return np.zeros(len(truth)), np.zeros(len(truth)), (score[:, 0] != truth).astype(float)
        positive, predicted = truth > 0, score >= 0
        forecast = logistic(score) if self._has_probabilities else predicted.astype(float)
        return forecast, positive.astype(float), (positive != predicted).astype(float)

    def _begin(self, n_tasks: int) -> None:
        """A new part; of sixteen, two and two become one."""
        if len(self._parts) == PARTS:
            parts = [grown(part, n_tasks)[:n_tasks] for part in self._parts]
            self._parts = [one + then for one, then in zip(parts[::2], parts[1::2], strict=True)]
            self._size *= 2
        self._parts.append(np.zeros((16, 2)))
        self._rows = 0

    def means(self, n_tasks: int) -> FloatArray:
        """(n_tasks, 2): the mean forecast, and the mean outcome."""
        sums = grown(self._means, n_tasks)[:n_tasks]
        return np.asarray(ratio(sums[:, 1:], sums[:, :1]))

    def trend(self, n_tasks: int) -> FloatArray:
        """(n_tasks, parts) errors; NaN where a task has no rows."""
        parts = np.stack([grown(part, n_tasks)[:n_tasks] for part in self._parts], axis=1)
        return np.asarray(ratio(parts[:, :, 1], parts[:, :, 0]))
