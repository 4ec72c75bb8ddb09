"""Rows on one scale without looking ahead: every feature near the overall r.m.s., no row longer than usual, a constant.

The row being scaled counts in its own statistics, so a feature's first value, however large, is already in line: once,
whatever its weight, so that its answer does not depend on that. The sums take it in as often as it counts.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, OTHER
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import padded, row_bounds

CONSTANT = 0.3
BAND = 3.0  # a feature's r.m.s. is brought within this factor of the overall one
TOO_SMALL = 1e-300  # sum of squares whose inverse might not be finite: such a feature stays as it is
SQUARES, ENTRIES, NORMS, L1, ROWS, LENGTH = range(6)  # positions in `sums`
NEARLY, SETTLED = 0.01, 1000.0  # rows are measured by their mean norm; after so many it may be off by this part
RECENT = 30  # values of a feature that may overrule all those before
FAR = 36.0  # times their mean square, which the mean square of all values is kept within
OUTLIER = 100.0  # times a feature's mean square, beyond which a value is clipped
FEW = 10.0  # values of a feature before which none is clipped


class Scale(NamedTuple):
    """Running sums over the rows so far."""

    features: (
        Annotated[
            FloatArray, FEATURE, OTHER
        ]  # (features, 3) sum of squares of the feature's non-zero values, how many, mean square of the last ones
    )
    sums: FloatArray  # (6,) squares, entries, norms and 1-norms of scaled rows, rows, what is taken for their mean norm


class ScaledRow(NamedTuple):
    """One row as the learner sees it; zeros fill up whole turns of SIMD loops (`padded`)."""

    x: FloatArray  # scaled values
    feature: IntArray  # their slots: 0 is the constant, feature j is j + 1
    squares: FloatArray  # sum of the feature's squares, how many, and mean of the last ones, this row's included
    counts: FloatArray
    recent: FloatArray
    measures: FloatArray  # (2,) the row's sum of squares, its norm before it is brought to usual length


def new_scale(n_features: int) -> Scale:
    """Nothing seen."""
    return Scale(aligned_zeros((n_features, 3), np.float64), np.zeros(6))


@kernel(alone=False)
def current(squares: float, count: float, recent: float) -> float:
    """The sum of squares, kept near what it would be if all values were as the last ones."""
    return max(count * recent / FAR, min(count * recent * FAR, squares))


@kernel(inline=False, alone=False)
def clipped(value: float, squares: float, count: float, recent: float) -> float:
    """Within ten times the feature's r.m.s."""
    limit = OUTLIER * current(squares, count, recent)
    return math.copysign(math.sqrt(limit / count), value) if value * value * count > limit else value


@kernel(alone=False)
def _into_band(n: int, usual: float, row: ScaledRow) -> None:
    """Bring every feature's r.m.s. near the usual one; most rows need no root, for all of theirs are."""
    x, low, high = row.x, usual / BAND, usual * BAND
    least, most, outside = low * low, high * high, 0
    for i in range(n):  # if the mean squares of all values and of the last ones are inside, so is what they make
        squares, count, recent = row.squares[i], row.counts[i], row.recent[i]
        outside += int((squares < least * count) | (squares > most * count))
        outside += int((recent * FAR < least) | (recent > most * FAR))
    if outside == 0:
        return
    for i in range(n):
        squares = current(row.squares[i], row.counts[i], row.recent[i])
        inverse = math.sqrt(row.counts[i] / squares)  # of the r.m.s.
        x[i] *= max(low * inverse, min(high * inverse, 1.0)) if squares > TOO_SMALL else 1.0


@kernel(sums="in order", alone=False)
def _times(n: int, factor: float, x: FloatArray) -> None:
    """In order, or the compiler undoes the one division that makes the factor and divides every entry."""
    for i in range(n):
        x[i] *= factor


@kernel(alone=False)
def scaled_row(rounds: Rounds, row: int, scale: Scale, shorten: bool, out: ScaledRow) -> int:
    """Fill `out`; return how many entries it has. Rows longer than usual are shortened, or only all measured alike."""
    first, last = row_bounds(rounds, row)
    x, feature, squares, counts, recent = out.x, out.feature, out.squares, out.counts, out.recent
    x[0], feature[0], counts[0] = 0.0, 0, 1.0
    entry, total = np.uint32(1), 0.0  # unsigned: no wrap-around to test for
    for p in range(first, last):
        value, j = rounds.values[p], np.uint32(p - first if rounds.width > 0 else rounds.indices[p])
        sums, count, last = scale.features[j, 0], scale.features[j, 1], scale.features[j, 2]
        if value * value > OUTLIER / FAR * last and count >= FEW:  # else it is no outlier
            value = clipped(value, sums, count, last)
        x[entry], feature[entry], counts[entry] = value, np.int64(j) + 1, count + 1.0
        share = 1.0 / RECENT if count + 1.0 >= RECENT else 1.0 / (count + 1.0)
        squares[entry], recent[entry] = sums + value * value, last + (value * value - last) * share
        total += value * value
        entry += np.uint32(value != 0.0)  # a zero is written over
    n = int(np.int64(entry))
    entries = scale.sums[ENTRIES] + (n - 1)
    usual = math.sqrt((scale.sums[SQUARES] + total) / entries) if entries > 0.0 else 0.0
    squares[0] = recent[0] = usual * usual
    for i in range(n, padded(n)):  # whole turns of SIMD loops, here and in the learner
        x[i], squares[i], counts[i], recent[i] = 0.0, usual * usual, 1.0, usual * usual
    _into_band(padded(n), usual, out)
    norm = 0.0
    for i in range(padded(n)):
        norm += x[i] * x[i]
    norm = math.sqrt(norm)
    length = (scale.sums[NORMS] + norm) / (scale.sums[ROWS] + 1.0)
    if shorten:  # not for real targets, which grow with the row
        length = max(norm, length)
    elif scale.sums[ROWS] >= SETTLED and abs(length - scale.sums[LENGTH]) <= NEARLY * length:
        length = scale.sums[LENGTH]
    if length > 0.0:
        _times(padded(n), 1.0 / length, x)
    x[0] = CONSTANT
    out.measures[0], out.measures[1] = total, norm
    return n


@kernel(alone=False)
def learn_length(scale: Scale) -> None:
    """Follow the mean norm, later by steps: as it moves, weights that cancel each other do so no longer."""
    mean = scale.sums[NORMS] / scale.sums[ROWS]
    if scale.sums[ROWS] < SETTLED or abs(mean - scale.sums[LENGTH]) > NEARLY * mean:
        scale.sums[LENGTH] = mean


@kernel(inline=False, alone=False)
def _learn_weighted(scale: Scale, row: ScaledRow, n: int, h: float, l1: float) -> None:
    """Take h times the row into the sums."""
    for i in range(1, n):
        of = scale.features[row.feature[i] - 1]
        square = of[2] + (row.recent[i] - of[2]) * min(row.counts[i], RECENT)  # of the value
        of[0] += h * square
        of[1] += h
        of[2] += min(h / min(of[1], RECENT), 1.0) * (square - of[2])
    scale.sums[SQUARES] += h * row.measures[0]
    scale.sums[ENTRIES] += h * (n - 1)
    scale.sums[NORMS] += h * row.measures[1]
    scale.sums[L1] += h * l1
    scale.sums[ROWS] += h


@kernel(alone=False)
def learn_scale(scale: Scale, row: ScaledRow, n: int, h: float) -> None:
    """Take the row, which counts h times, into the sums."""
    l1 = 0.0
    for i in range(padded(n)):
        l1 += abs(row.x[i])
    if h != 1.0:
        _learn_weighted(scale, row, n, h, l1)
        learn_length(scale)
        return
    for i in range(1, n):
        j = np.uint32(row.feature[i] - 1)
        scale.features[j, 0], scale.features[j, 1], scale.features[j, 2] = row.squares[i], row.counts[i], row.recent[i]
    scale.sums[SQUARES] += row.measures[0]
    scale.sums[ENTRIES] += n - 1
    scale.sums[NORMS] += row.measures[1]
    scale.sums[L1] += l1
    scale.sums[ROWS] += 1.0
    learn_length(scale)
