"""Bins of numeric features by quantiles of a sample: a feature that comes in most rows is numeric.

The sample is uniform over all values so far (a reservoir). Its sixteenths are the edges of the bins; they are taken
anew whenever the number of values has doubled.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, ROW
from shoal.engine.compile import kernel
from shoal.engine.random import mixed
from shoal.engine.rounds import Rounds
from shoal.engine.rows import row_bounds

MOST_NUMERIC = 128  # features
SAMPLE = 256  # values of each
N_BINS = 16
FIRST_ROWS = 16  # before which no feature is numeric
FIRST_EDGES = 32  # values
FEWEST_VALUES = 4  # that differ, of a feature with bins
CLOSE = 1e-5  # values that differ by less in relation may be one value, rounded
ABOVE = 1 / 16  # of the way to the next value: where edges are

ROWS, NUMERIC = 0, 1  # positions in `counters`


class Bins(NamedTuple):
    """What is known of features' values; those of numeric ones lie in the order in which they became numeric."""

    occurred: Annotated[IntArray, FEATURE]  # in how many rows
    numeric: Annotated[IntArray, FEATURE]  # 1 + its position below, or 0
    taken: Annotated[IntArray, ROW]  # (128,) values so far
    is_binned: Annotated[IntArray, ROW]  # (128,)
    sample: Annotated[FloatArray, ROW]  # (128, 256)
    edges: Annotated[FloatArray, ROW]  # (128, 15)
    counters: IntArray  # (2,) rows, numeric features


def new_bins(n_features: int, n_numeric: int = MOST_NUMERIC) -> Bins:
    """Nothing seen."""
    occurred, numeric = np.zeros((2, n_features), np.int64)
    taken, is_binned = np.zeros((2, n_numeric), np.int64)
    sample, edges = np.zeros((n_numeric, SAMPLE)), np.zeros((n_numeric, N_BINS - 1))
    return Bins(occurred, numeric, taken, is_binned, sample, edges, np.zeros(2, np.int64))


@kernel(alone=False)
def bin_of(bins: Bins, j: int, value: float) -> int:
    """How many edges lie below, or -1 if the feature has no bins."""
    at = bins.numeric[j] - 1
    if at < 0 or bins.is_binned[at] == 0:
        return -1
    edges, below = bins.edges[at], 0
    for k in range(len(edges)):
        below += int(edges[k] < value)
    return below


@kernel(inline=False, alone=False)
def learn_bins(rounds: Rounds, row: int, bins: Bins) -> None:
    """Count the row's features, and take the values of the numeric ones into their samples."""
    first, last = row_bounds(rounds, row)
    bins.counters[ROWS] += 1
    for p in range(first, last):
        if rounds.values[p] == 0.0:
            continue
        j = p - first if rounds.width > 0 else np.int64(rounds.indices[p])
        bins.occurred[j] += 1
        if bins.numeric[j] == 0:
            often = bins.counters[ROWS] >= FIRST_ROWS and 2 * bins.occurred[j] > bins.counters[ROWS]
            if not often or bins.counters[NUMERIC] == MOST_NUMERIC:
                continue
            bins.counters[NUMERIC] += 1
            bins.numeric[j] = bins.counters[NUMERIC]
        _take(rounds.values[p], 2 * bins.occurred[j] > bins.counters[ROWS], bins.numeric[j] - 1, bins)


@kernel(alone=False)
def _take(value: float, often: bool, at: int, bins: Bins) -> None:
    bins.taken[at] += 1
    n = bins.taken[at]
    place = n - 1  # in the reservoir: the n-th value stays with probability 256/n
    if n > SAMPLE:
        place = np.int64(mixed(np.uint64(n)) % np.uint64(n))
    if place < SAMPLE:
        bins.sample[at, place] = value
    if n >= FIRST_EDGES and n & (n - 1) == 0:  # 32, 64, 128, ...
        bins.is_binned[at] = int(often and _cut(bins.sample[at, : min(n, SAMPLE)], bins.edges[at]) >= FEWEST_VALUES)


@kernel(inline=False, allocates=True, alone=False)
def _cut(sample: FloatArray, edges: FloatArray) -> int:
    """Set the edges just above the sixteenths, so that a value has its bin in float32, too; return how many differ."""
    ordered, differ = sample.copy(), 1
    for i in range(1, len(ordered)):  # by insertion: numba's sort would take a second to compile
        value, k = ordered[i], i
        while k > 0 and ordered[k - 1] > value:
            ordered[k] = ordered[k - 1]
            k -= 1
        ordered[k] = value
    for i in range(1, len(ordered)):
        differ += int(ordered[i] != ordered[i - 1])
    for i in range(1, N_BINS):
        at = i * len(ordered) // N_BINS
        value = ordered[at]
        while at < len(ordered) - 1 and ordered[at] - value <= CLOSE * abs(value):
            at += 1
        edges[i - 1] = value + ABOVE * (ordered[at] - value)
    return differ
