"""Rows and real targets on one scale without looking ahead, and odd values clipped.

Features are brought near the overall r.m.s., rows longer than usual to usual length, a constant stands in front. The
row being scaled counts in its own statistics, so a feature's first value, however large, is already in line: once,
whatever its weight, so that its answer does not depend on that. The sums take it in as often as it counts. While the
stream is narrow (`is_narrow`), a feature whose scale changes is followed: its last values overrule those before. The
many features of wide rows come too seldom for that.

Real targets are learned less their running mean and measured in their running deviation. A target beyond 10 deviations
is clipped before anything learns it, and so is an error beyond 7 deviations of the noise. Of a thousand rows, one may
be clipped by accident. With c the clipped rows beyond that, both limits are (1 + c)^(1/4) times as far: large values
that keep coming are no accident.

Counts and amounts are noticed: while none of ten targets or more has been negative, no answer is, and while all have
been positive none is below half the least.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, OTHER
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import padded
from shoal.online.common.logistic import times, within

CONSTANT = 0.3
BAND = 3.0  # a feature's r.m.s. is brought within this factor of the overall one
TOO_SMALL = 1e-300  # sum of squares whose inverse might not be finite: such a feature stays as it is
SQUARES, ENTRIES, NORMS, L1, ROWS, LENGTH = range(6)  # positions in `sums`
NEARLY, SETTLED = 0.01, 1000.0  # rows are measured by their mean norm, which after 1,000 rows may be off by 1 %
RECENT = 30.0  # values of a feature that may overrule all those before
FAR = 36.0  # times their mean square, which the mean square of all values is kept within
OUTLIER = 100.0  # times a feature's mean square, beyond which a value is clipped
FEW = 10.0  # values of a feature before which none is clipped


class Scale(NamedTuple):
    """Running sums over the rows so far."""

    features: (
        Annotated[
            FloatArray, FEATURE, OTHER
        ]  # (features, 2) sum of squares of the feature's non-zero values, and how many, in one cache line
    )
    recent: Annotated[FloatArray, FEATURE]  # mean square of its last ones while the stream was narrow
    sums: FloatArray  # (6,) squares, entries, norms and 1-norms of scaled rows, rows, the estimate of their mean norm


class ScaledRow(NamedTuple):
    """One row as the learner sees it; zeros fill up whole turns of SIMD loops (`padded`)."""

    x: FloatArray  # scaled values
    feature: IntArray  # their slots: 0 is the constant, feature j is j + 1
    squares: FloatArray  # sum of the feature's squares, how many, and mean of the last ones, this row's included
    counts: FloatArray
    recent: FloatArray  # if the stream is narrow
    measures: FloatArray  # (2,) the row's sum of squares, its norm before it is brought to usual length


def new_scale(n_features: int) -> Scale:
    """Nothing seen."""
    return Scale(aligned_zeros((n_features, 2), np.float64), np.zeros(n_features), np.zeros(6))


@kernel(alone=False)
def current(squares: float, count: float, recent: float) -> float:
    """The sum of squares, kept near its value if all entries were like the last ones."""
    return max(count * recent / FAR, min(count * recent * FAR, squares))


@kernel(alone=False)
def _into_band(n: int, usual: float, narrow: bool, row: ScaledRow) -> None:
    """Bring every feature's r.m.s. near the usual one; most rows need no root, for all of theirs are."""
    x, squares, counts, recent = row.x, row.squares, row.counts, row.recent
    low, high, outside = usual / BAND, usual * BAND, 0
    least, most = low * low, high * high
    for i in range(n):
        outside += int((squares[i] < least * counts[i]) | (squares[i] > most * counts[i]))
    if narrow:  # if the mean squares of all values and of the last ones are inside, so is what they make
        for i in range(n):
            outside += int((recent[i] * FAR < least) | (recent[i] > most * FAR))
    if outside == 0:
        return
    for i in range(n):
        total = current(squares[i], counts[i], recent[i]) if narrow else squares[i]
        inverse = math.sqrt(counts[i] / total)  # of the r.m.s.
        x[i] *= max(low * inverse, min(high * inverse, 1.0)) if total > TOO_SMALL else 1.0


@kernel(sums="in order", alone=False)
def _times(n: int, factor: float, x: FloatArray) -> None:
    """In order, or the compiler undoes the one division that makes the factor and divides every entry."""
    for i in range(n):
        x[i] *= factor


@kernel(alone=False)
def scaled_row(
    rounds: Rounds, bounds: tuple[int, int], scale: Scale, narrow: bool, shorten: bool, out: ScaledRow
) -> int:
    """Fill `out`; return how many entries it has. Rows longer than usual are shortened, or only all measured alike."""
    first, last = bounds
    x, feature, squares, counts, recent = out.x, out.feature, out.squares, out.counts, out.recent
    x[0], feature[0], counts[0] = 0.0, 0, 1.0
    entry, total = np.uint32(1), 0.0  # unsigned: no wrap-around to test for
    for p in range(first, last):
        value, j = rounds.values[p], np.uint32(p - first if rounds.width > 0 else rounds.indices[p])
        sum_before, count, mean_last = scale.features[j, 0], scale.features[j, 1], 0.0
        in_use = sum_before
        if narrow:
            mean_last = scale.recent[j]
            in_use = current(sum_before, count, mean_last)
        if value * value * count > OUTLIER * in_use and count >= FEW:
            value = math.copysign(math.sqrt(OUTLIER * in_use / count), value)
        x[entry], feature[entry], counts[entry] = value, np.int64(j) + 1, count + 1.0
        squares[entry] = sum_before + value * value
        if narrow:
            share = 1.0 / RECENT if count + 1.0 >= RECENT else 1.0 / (count + 1.0)
            recent[entry] = mean_last + (value * value - mean_last) * share
        total += value * value
        entry += np.uint32(value != 0.0)  # a zero is written over
    n = int(np.int64(entry))
    entries = scale.sums[ENTRIES] + (n - 1)
    usual = math.sqrt((scale.sums[SQUARES] + total) / entries) if entries > 0.0 else 0.0
    squares[0] = recent[0] = usual * usual
    for i in range(n, padded(n)):  # whole turns of SIMD loops, here and in the learner
        x[i], squares[i], counts[i], recent[i] = 0.0, usual * usual, 1.0, usual * usual
    _into_band(padded(n), usual, narrow, out)
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
def _learn_weighted(scale: Scale, row: ScaledRow, n: int, h: float, narrow: bool, l1: float) -> None:
    """Take h times the row into the sums."""
    for i in range(1, n):
        j = row.feature[i] - 1
        of = scale.features[j]
        if narrow:
            square = scale.recent[j] + (row.recent[i] - scale.recent[j]) * min(row.counts[i], RECENT)  # of the value
            scale.recent[j] += h / (min(of[1], RECENT - 1.0) + h) * (square - scale.recent[j])
        of[0] += h * (row.squares[i] - of[0])
        of[1] += h
    scale.sums[SQUARES] += h * row.measures[0]
    scale.sums[ENTRIES] += h * (n - 1)
    scale.sums[NORMS] += h * row.measures[1]
    scale.sums[L1] += h * l1
    scale.sums[ROWS] += h


@kernel(alone=False)
def learn_scale(scale: Scale, row: ScaledRow, n: int, h: float, narrow: bool) -> None:
    """Take the row, which counts h times, into the sums."""
    l1 = 0.0
    for i in range(padded(n)):
        l1 += abs(row.x[i])
    if h != 1.0:
        _learn_weighted(scale, row, n, h, narrow, l1)
        learn_length(scale)
        return
    for i in range(1, n):
        j = np.uint32(row.feature[i] - 1)
        scale.features[j, 0], scale.features[j, 1] = row.squares[i], row.counts[i]
        if narrow:
            scale.recent[j] = row.recent[i]
    scale.sums[SQUARES] += row.measures[0]
    scale.sums[ENTRIES] += n - 1
    scale.sums[NORMS] += row.measures[1]
    scale.sums[L1] += l1
    scale.sums[ROWS] += 1.0
    learn_length(scale)


# Positions in `targets`. LAST: mean square of the last ones, JUMPS: of the steps from one to the next. All of them less
# the mean and clipped, but for LEAST, the least target as it came.
COUNT, MEAN, SCATTER, LARGEST, LAST, CLIPPED, PREVIOUS, JUMPS, LEAST = range(9)
N_TARGETS, N_ERRORS = 9, 5
ERROR_SQUARES, ERROR_ROWS, LAST_ERRORS, CLIPPED_ERRORS, ALL_ERROR_ROWS = range(5)  # positions in `errors`
SLOWLY = 1e-3  # times the usual step from one target to the next
NOISE_ROWS = 300.0  # rows that the noise level remembers
ERROR_OUTLIER = 49.0  # times the noise's variance, beyond which the square of an error is clipped
ACCIDENTS = 1e-3  # of all rows


@kernel(entry="too")
def deviation(targets: FloatArray) -> float:
    """Of the targets so far, from the mean."""
    return float(math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0)


@kernel(entry="too")
def least_answer(targets: FloatArray) -> float:
    """0 while no target has been negative, half the least one while all have been positive; not of the first ten."""
    return float(0.5 * targets[LEAST] if targets[COUNT] >= FEW and targets[LEAST] >= 0.0 else -np.inf)


@kernel(alone=False)
def _farther(n_clipped: float, n: float) -> float:
    """The factor of a limit after this number of clipped rows among n."""
    return float(max(1.0 + n_clipped - ACCIDENTS * n, 1.0) ** 0.25)


@kernel(alone=False)
def _share(h: float, n: float) -> float:
    """The part of a row that counts h times in the mean of the last rows, after n others."""
    return h / (min(n, RECENT - 1.0) + h)


@kernel(inline=False, alone=False)
def learn_target(y: float, h: float, targets: FloatArray) -> float:
    """Take a real target h times into the running numbers; return it less the mean before it, clipped.

    Where the last targets are far beyond the deviation of all, their own deviation counts.
    """
    if targets[COUNT] == 0.0:
        targets[MEAN] = targets[LEAST] = y
    targets[LEAST] = min(targets[LEAST], y)
    off = y - targets[MEAN]
    if targets[COUNT] >= FEW and targets[SCATTER] > 0.0:
        square = max(targets[SCATTER] / targets[COUNT], targets[LAST] / FAR)
        limit = math.sqrt(OUTLIER * square) * _farther(targets[CLIPPED], targets[COUNT])
        if abs(off) > limit:
            off = within(limit, off)
            targets[CLIPPED] += h
    share, jump = _share(h, targets[COUNT]), off - targets[PREVIOUS]
    targets[COUNT] += h
    targets[LAST] += share * (off * off - targets[LAST])
    targets[JUMPS] += share * (jump * jump - targets[JUMPS])
    step = times(h, off) / targets[COUNT]
    if targets[COUNT] > SETTLED:
        step = within(times(h, SLOWLY * math.sqrt(targets[JUMPS])), step)
    targets[MEAN] += step
    targets[PREVIOUS] = off - step
    targets[SCATTER] += times(h, off) * (off - step)
    targets[LARGEST] = max(targets[LARGEST], abs(off))
    return float(off)


@kernel(entry="too")
def noise(errors: FloatArray) -> float:
    """The variance of targets around the mixture of all tasks."""
    if errors[ERROR_ROWS] == 0.0:
        return 0.0
    return float(current(errors[ERROR_SQUARES], errors[ERROR_ROWS], errors[LAST_ERRORS]) / errors[ERROR_ROWS])


@kernel(inline=False, alone=False)
def learn_error(e: float, h: float, unit: float, errors: FloatArray) -> float:
    """Take an error of the mixture of all tasks h times into the noise level; return it, clipped.

    `unit` is the targets' deviation: a smaller error is never clipped, however exact forecasts have been.
    """
    variance = noise(errors)
    if errors[ERROR_ROWS] >= FEW and variance > 0.0:
        limit = max(
            math.sqrt(ERROR_OUTLIER * variance) * _farther(errors[CLIPPED_ERRORS], errors[ALL_ERROR_ROWS]), unit
        )
        if abs(e) > limit:
            e = within(limit, e)
            errors[CLIPPED_ERRORS] += h
    errors[LAST_ERRORS] += _share(h, errors[ERROR_ROWS]) * (e * e - errors[LAST_ERRORS])
    errors[ERROR_SQUARES] += h * e * e
    errors[ERROR_ROWS] += h
    errors[ALL_ERROR_ROWS] += h
    if errors[ERROR_ROWS] > NOISE_ROWS:
        errors[ERROR_SQUARES] *= NOISE_ROWS / errors[ERROR_ROWS]
        errors[ERROR_ROWS] = NOISE_ROWS
    return e
