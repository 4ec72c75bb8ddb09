"""Probabilities judged: log-loss, Brier score and calibration error of a learner that has `predict_proba`.

The decision value of such a learner is the log-odds of the larger label, so the probability is its logistic function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.protocol import Values
from shoal.evaluation.sums import grown, ratio

N_BINS = 20  # of equal width, for the calibration


class Bin(NamedTuple):
    """The rows whose probability lay in one interval."""

    rows: int
    forecast: float  # mean probability of the larger label
    share: float  # of the rows that had it


class Forecasts:
    """Log-loss, Brier score and expected calibration error, from sums.

    The calibration error is the mean over rows of |mean probability - share of positives| in the row's bin
    (Naeini, Cooper, Hauskrecht 2015). It is that of all rows only: in one task it would be mostly noise.
    """

    names = ("log_loss", "brier", "calibration_error")

    def __init__(self) -> None:
        self._sums = np.zeros((16, 3))  # per task: rows, log-loss, squared error
        self._bins = np.zeros((3, N_BINS))  # rows, probabilities and positives of each bin

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Add the losses up."""
        self._sums = grown(self._sums, n_tasks)
        positive = truth > 0
        loss = np.logaddexp(0.0, np.where(positive, -score, score))
        with np.errstate(over="ignore"):
            probability = 1.0 / (1.0 + np.exp(-score))
        for column, term in enumerate((np.ones(len(code)), loss, np.square(probability - positive))):
            np.add.at(self._sums[:, column], code, term)
        bins = np.minimum((probability * N_BINS).astype(np.int64), N_BINS - 1)
        for row, term in enumerate((np.ones(len(code)), probability, positive.astype(np.float64))):
            self._bins[row] += np.bincount(bins, term, N_BINS)

    def absorb(self, later: Forecasts, n_tasks: int) -> None:
        """Merge the sums of `later`; do not use it afterwards."""
        self._sums = grown(self._sums, n_tasks)
        self._sums[:n_tasks] += grown(later._sums, n_tasks)[:n_tasks]
        self._bins += later._bins

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far."""
        rows, loss, squared = self._sums[:n_tasks].T
        n, probability, positive = self._bins
        calibration = float(ratio(np.abs(probability - positive).sum(), n.sum()))
        return {
            "log_loss": Values(float(ratio(loss.sum(), rows.sum())), ratio(loss, rows)),
            "brier": Values(float(ratio(squared.sum(), rows.sum())), ratio(squared, rows)),
            "calibration_error": Values(calibration, np.full(n_tasks, np.nan)),
        }

    def bins(self) -> list[Bin]:
        """The bins of all rows that are not empty, from low to high probability."""
        return [Bin(int(n), float(p / n), float(t / n)) for n, p, t in self._bins.T if n > 0]

    def notes(self) -> list[str]:
        """None."""
        return []
