"""Two labels: error rate and F1 from counts, log-loss and Brier score from probabilities.

The cost of an update does not depend on the number of tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.calibration import N_BINS, Bin, add_forecasts, calibration_error
from shoal.evaluation.metrics.metric import TaskSums, Values, grown, ratio
from shoal.learner import logistic


def log_losses(logits: FloatArray, positive: Any) -> FloatArray:
    """-ln of the probability that each row's logit gave to its label."""
    return np.asarray(np.logaddexp(0.0, np.where(positive, -logits, logits)))


class Confusion(TaskSums):
    """Error rate and F1 of either class, from counts of (label, prediction) pairs; margin 0 predicts +1."""

    names = ("error", "f1_positive", "f1_negative")
    width = 4  # true -, false +, false -, true +

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Count the pairs."""
        self._sums = grown(self._sums, n_tasks)
        pair = self.width * code + 2 * (truth > 0) + (score >= 0)
        np.add.at(self._sums.reshape(-1), pair, 1.0)  # with one index 8 times as fast as with two

    def values(self, n_tasks: int) -> dict[str, Values]:
        """F1 is undefined where a class neither occurs nor is predicted."""
        per_task = self._from_counts(self._sums[:n_tasks].T)
        overall = self._from_counts(self._sums.sum(axis=0))
        return {name: Values(float(overall[name]), per_task[name]) for name in self.names}

    @staticmethod
    def _from_counts(counts: FloatArray) -> dict[str, Any]:
        true_negative, false_positive, false_negative, true_positive = counts
        wrong = false_positive + false_negative
        return {
            "error": ratio(wrong, wrong + true_negative + true_positive),
            "f1_positive": ratio(2 * true_positive, 2 * true_positive + wrong),
            "f1_negative": ratio(2 * true_negative, 2 * true_negative + wrong),
        }


class Forecasts(TaskSums):
    """Log-loss, Brier score and calibration error of a learner that has `predict_proba`.

    Its decision value is the log-odds of the larger label, so the probability is the logistic function of it. The
    calibration error is that of all rows only: in one task it would be mostly noise.
    """

    names = ("log_loss", "brier", "calibration_error")
    width = 3  # rows, log-loss, squared error

    def __init__(self) -> None:
        super().__init__()
        self._bins = np.zeros((3, N_BINS))

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Add the losses up."""
        positive, probability = truth > 0, logistic(score)
        self.add(code, n_tasks, 1.0, log_losses(score, positive), np.square(probability - positive))
        add_forecasts(self._bins, probability, positive.astype(np.float64))

    def absorb(self, later: Forecasts, n_tasks: int) -> None:
        """Add the sums of `later`."""
        super().absorb(later, n_tasks)
        self._bins += later._bins

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far."""
        rows, loss, squared = self._sums[:n_tasks].T
        return {
            "log_loss": Values(float(ratio(loss.sum(), rows.sum())), ratio(loss, rows)),
            "brier": Values(float(ratio(squared.sum(), rows.sum())), ratio(squared, rows)),
            "calibration_error": Values(calibration_error(self._bins), np.full(n_tasks, np.nan)),
        }

    def bins(self) -> list[Bin]:
        """The bins of all rows that are not empty, from low to high probability."""
        return [Bin(int(n), float(p / n), float(t / n)) for n, p, t in self._bins.T if n > 0]
