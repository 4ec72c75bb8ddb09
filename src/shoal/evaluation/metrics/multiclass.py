"""More than two classes: error rate, log-loss and confusion counts.

A learner gives a margin for each class that it knows, and their number grows. Metrics get two numbers a row instead:
the predicted class, and the probability of the true class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.metric import TaskSums, Values, ratio
from shoal.learner import logistic

UNKNOWN = -1.0  # predicted before the learner knew any class
SMALLEST = 1e-15  # probability, so that one row cannot make the log-loss infinite


class ClassIndex:
    """The classes of a stream, numbered as they appear.

    Attributes
    ----------
    every : bool
        Whether metrics get the probability of every class, too, in the order of the numbers.
    """

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}
        self.every = False

    def encode(self, y: Any) -> FloatArray:
        """The numbers of the rows' classes; new ones are added."""
        labels, which = np.unique(np.asarray(y), return_inverse=True)
        for label in labels.tolist():
            self.number.setdefault(label, len(self.number))
        numbers = np.array([self.number[label] for label in labels.tolist()], np.float64)
        return numbers[which.reshape(-1)]

    def judged(self, margins: FloatArray, classes: NDArray[Any], truth: FloatArray) -> FloatArray:
        """(n, 2): number of the predicted class, and the probability of the true one; then of `every` class.

        Parameters
        ----------
        margins : (n, n_classes) in the order of `classes`; with two classes (n,), positive for the second
        truth : (n,) numbers of the true classes
        """
        if margins.ndim == 1:
            margins = np.column_stack([-margins, margins])[:, -len(classes) :]
        numbers = np.array([self.number.get(label, -2) for label in classes.tolist()], np.float64)
        probability = logistic(margins)
        probability /= np.maximum(probability.sum(axis=1, keepdims=True), SMALLEST)
        place = np.argmax(numbers[None, :] == truth[:, None], axis=1)
        known = numbers[place] == truth
        true = np.where(known, probability[np.arange(len(truth)), place], 0.0)
        judged = np.column_stack([numbers[margins.argmax(axis=1)], true])
        if not self.every:
            return judged
        chances = np.zeros((len(truth), len(self.number)))
        met = numbers >= 0  # a learner that was trained before may know others
        chances[:, numbers[met].astype(np.int64)] = probability[:, met]
        return np.column_stack([judged, chances])

    @staticmethod
    def unknown(n_rows: int) -> FloatArray:
        """The two numbers of rows that came before the learner knew any class."""
        return np.column_stack([np.full(n_rows, UNKNOWN), np.zeros(n_rows)])


class ClassErrors(TaskSums):
    """Error rate and log-loss over any number of classes."""

    names = ("error", "log_loss")
    width = 3  # rows, errors, log-loss

    def __init__(self) -> None:
        super().__init__()
        self._confusion: dict[tuple[int, int], int] = {}  # (true, predicted) -> rows

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Add the errors and losses up."""
        predicted, probability = score[:, :2].T
        self.add(code, n_tasks, 1.0, predicted != truth, -np.log(np.maximum(probability, SMALLEST)))
        pairs, counts = np.unique(np.column_stack([truth, predicted]).astype(np.int64), axis=0, return_counts=True)
        for (true, guess), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self._confusion[true, guess] = self._confusion.get((true, guess), 0) + count

    def absorb(self, later: ClassErrors, n_tasks: int) -> None:
        """Add the sums of `later`."""
        super().absorb(later, n_tasks)
        for pair, count in later._confusion.items():
            self._confusion[pair] = self._confusion.get(pair, 0) + count

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far."""
        rows, errors, loss = self._sums[:n_tasks].T
        total = rows.sum()
        return {
            "error": Values(float(ratio(errors.sum(), total)), ratio(errors, rows)),
            "log_loss": Values(float(ratio(loss.sum(), total)), ratio(loss, rows)),
        }

    def confusion(self) -> dict[tuple[int, int], int]:
        """Rows by (true class, predicted class), as numbers of a `ClassIndex`."""
        return dict(self._confusion)
