"""Rows on one scale without looking ahead: every feature near the overall r.m.s., no row longer than usual, a constant.

The row being scaled counts in its own statistics, so a feature's first value, however large, is already in line.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.ops import leaf
from shoal.rounds import FloatArray, IntArray, Rounds

CONSTANT = 0.3
BAND = 3.0  # a feature's r.m.s. is brought within this factor of the overall one
SQUARES, ENTRIES, NORMS, L1, ROWS = range(5)  # positions in `sums`


class Scale(NamedTuple):
    """Running sums over the rows so far."""

    squares: FloatArray  # (features,) of the feature's non-zero values
    counts: FloatArray  # (features,) how many those are
    sums: FloatArray  # (5,) squares, entries, norms and 1-norms of scaled rows, rows


def new_scale(n_features: int) -> Scale:
    """Nothing seen."""
    return Scale(np.zeros(n_features), np.zeros(n_features), np.zeros(5))


@leaf
def row_bounds(rounds: Rounds, row: int) -> tuple[int, int]:
    """Where the row's values lie."""
    if rounds.width > 0:
        return row * rounds.width, (row + 1) * rounds.width
    return rounds.indptr[row], rounds.indptr[row + 1]


@leaf
def scaled_row(rounds: Rounds, row: int, scale: Scale, x: FloatArray, feature: IntArray) -> tuple[int, float]:
    """Fill x and its feature slots (0 is the constant, feature j is j + 1); return how many, and the norm before."""
    first, last = row_bounds(rounds, row)
    squares, entries = scale.sums[SQUARES], scale.sums[ENTRIES]
    for p in range(first, last):
        if rounds.values[p] != 0.0:
            squares += rounds.values[p] * rounds.values[p]
            entries += 1.0
    usual = math.sqrt(squares / entries) if entries > 0.0 else 0.0
    x[0], feature[0] = CONSTANT, 0
    n, norm = 1, 0.0
    for p in range(first, last):
        value = rounds.values[p]
        if value != 0.0:
            j = p - first if rounds.width > 0 else np.int64(rounds.indices[p])
            rms = math.sqrt((scale.squares[j] + value * value) / (scale.counts[j] + 1.0))
            if rms > 0.0:
                value *= min(max(rms, usual / BAND), usual * BAND) / rms
            x[n], feature[n] = value, j + 1
            norm += value * value
            n += 1
    norm = math.sqrt(norm)
    length = max(norm, (scale.sums[NORMS] + norm) / (scale.sums[ROWS] + 1.0))
    if length > 0.0:
        for i in range(1, n):
            x[i] /= length
    return n, norm


@leaf
def learn_scale(rounds: Rounds, row: int, scale: Scale, x: FloatArray, n: int, norm: float) -> None:
    """Take the row into the sums; `x` are its n scaled values, `norm` theirs before the last step."""
    first, last = row_bounds(rounds, row)
    l1 = 0.0
    for i in range(n):
        l1 += abs(x[i])
    for p in range(first, last):
        value = rounds.values[p]
        if value != 0.0:
            j = p - first if rounds.width > 0 else np.int64(rounds.indices[p])
            scale.squares[j] += value * value
            scale.counts[j] += 1.0
            scale.sums[SQUARES] += value * value
            scale.sums[ENTRIES] += 1.0
    scale.sums[NORMS] += norm
    scale.sums[L1] += l1
    scale.sums[ROWS] += 1.0
