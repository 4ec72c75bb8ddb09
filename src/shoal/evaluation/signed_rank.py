"""Wilcoxon's signed rank test of paired differences (Biometrics Bulletin 1, 1945).

`scipy.stats.wilcoxon` is the same test, and the tests hold this one to it; but every run ends with this test, and
importing `scipy.stats` takes as long as importing scikit-learn: too long for a program that starts in two seconds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

EXACT = 50  # differences; up to here the distribution is counted out, ties or not


def signed_rank_p(differences: NDArray[np.float64]) -> float:
    """P(R+ >= the observed R+) were each sign a fair coin: small where the differences lie above zero.

    R+ is the sum of the ranks of |difference| over the positive ones; equal ones have their mean rank, zeros do not
    count. Without a difference the answer is 1.
    """
    differences = differences[differences != 0.0]
    _, which, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (2 * last - counts + 1)[which]  # twice the mean rank, a whole number
    observed = int(ranks[differences > 0.0].sum())
    return _exact(ranks, observed) if len(ranks) <= EXACT else _normal(ranks, observed)


def _exact(ranks: NDArray[np.int64], observed: int) -> float:
    """Of the 2^n choices of signs, the share whose sum is as large."""
    ways = np.zeros(1 + ranks.sum())  # to each sum of ranks; whole numbers up to 2^50, so nothing is rounded
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[: len(ways) - rank]
    return float(ways[observed:].sum() / 2.0 ** len(ranks))


def _normal(ranks: NDArray[np.int64], observed: int) -> float:
    """R+ is nearly normal with mean sum(ranks) / 2 and variance sum(ranks^2) / 4."""
    z = (observed - ranks.sum() / 2) / (math.sqrt(np.square(ranks).sum()) / 2)
    return math.erfc(z / math.sqrt(2.0)) / 2
