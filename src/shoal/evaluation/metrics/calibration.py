"""Calibration: probabilities against how often the label came, in bins of equal width.

Evaluation, the program and the service count and judge in this one way.
"""

from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray

N_BINS = 20


class Bin(NamedTuple):
    """The rows whose probability lay in one interval."""

    rows: int
    forecast: float  # mean probability of the larger label
    share: float  # of the rows that had it


def add_forecasts(bins: FloatArray, forecast: FloatArray, happened: FloatArray) -> None:
    """Count rows, one after the other, so that the sums do not depend on how a stream is cut.

    Parameters
    ----------
    bins : (3, N_BINS)
        Rows, sum of the probabilities and number of events of each bin; changed in place.
    forecast : (n,) probabilities
    happened : (n,) 1 where the event came, else 0
    """
    place = np.minimum((forecast * N_BINS).astype(np.intp), N_BINS - 1)
    for total, term in zip(bins, (np.ones(len(place)), forecast, happened), strict=True):
        np.add.at(total, place, term)


def calibration_error(bins: FloatArray) -> float:
    """Expected calibration error: mean over rows of |mean probability - share of events| in the row's bin.

    As Naeini, Cooper and Hauskrecht have it (AAAI 2015); NaN without rows.

    Examples
    --------
    >>> bins = np.zeros((3, N_BINS))
    >>> add_forecasts(bins, np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0.0, 0.0, 0.0]))
    >>> round(calibration_error(bins), 12)  # |1.8 - 1| / 4 + |0.2 - 0| / 4
    0.25
    """
    rows, forecast, happened = bins
    n = rows.sum()
    return float(np.abs(forecast - happened).sum() / n) if n > 0 else float("nan")
