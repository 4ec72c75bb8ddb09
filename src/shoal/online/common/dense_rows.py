"""Rows of few features as dense ones: the constant 1 first, then a column for each feature, in the order they came.

A value is divided by the r.m.s. of its feature, over the values that are not 0, itself included. After ten values, one
beyond 10 times that r.m.s. is clipped first.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import FEATURE, OTHER
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import feature_at, row_bounds
from shoal.model.algorithm import Setup, Size, doubled
from shoal.online.common.dense import turns, whole_turns

MOST_FEATURES = 511
OUTLIER, FEW = 100.0, 10.0  # times a feature's mean square, beyond which a value is clipped; values before it
TOO_SMALL = 1e-300  # a square whose inverse might not be finite
SQUARES, COUNT = range(2)  # positions in `sums`


class Columns(NamedTuple):
    """The columns of all features."""

    place: Annotated[IntArray, FEATURE]  # the feature's column, or 0
    sums: Annotated[FloatArray, FEATURE, OTHER]  # (features, 2) of squares that are not 0, and how many


def new_columns(n_features: int) -> Columns:
    """No row has come."""
    return Columns(np.zeros(n_features, np.int64), np.zeros((n_features, 2)))


@kernel(alone=False)
def _within(value: float, sums: FloatArray) -> float:
    """The value, or as much of it as counts."""
    if sums[COUNT] >= FEW and value * value * sums[COUNT] > OUTLIER * sums[SQUARES]:
        return math.copysign(math.sqrt(OUTLIER * sums[SQUARES] / sums[COUNT]), value)
    return value


@kernel(entry="too")
def scaled(value: float, sums: FloatArray) -> float:
    value = _within(value, sums)
    total = sums[SQUARES] + value * value
    return value * math.sqrt((sums[COUNT] + 1.0) / total) if total > TOO_SMALL else value


@kernel(inline=False, alone=False)
def fill_row(rounds: Rounds, row: int, used: int, columns: Columns, x: FloatArray) -> int:
    """Fill the columns in use, up to a whole turn; return how many more the row's features need."""
    first, last = row_bounds(rounds, row)
    for j in range(turns(used)):
        x[j] = 0.0
    x[0] = 1.0
    missing = 0
    for p in range(first, last):
        feature = feature_at(rounds, row, p)
        at = columns.place[feature]
        if at > 0:
            x[at] = scaled(rounds.values[p], columns.sums[feature])
        missing += int(at == 0 and rounds.values[p] != 0.0)
    return missing


@kernel(inline=False, alone=False)
def add_columns(rounds: Rounds, row: int, used: int, columns: Columns, x: FloatArray) -> int:
    """Give the row's new features columns and fill these; return how many are in use."""
    first, last = row_bounds(rounds, row)
    for p in range(first, last):
        feature = feature_at(rounds, row, p)
        if columns.place[feature] == 0 and rounds.values[p] != 0.0:
            columns.place[feature] = used
            x[used] = scaled(rounds.values[p], columns.sums[feature])
            used += 1
    for j in range(used, turns(used)):
        x[j] = 0.0
    return used


@kernel(inline=False, alone=False)
def learn_columns(rounds: Rounds, row: int, h: float, columns: Columns) -> None:
    """Take h times the row into the sums."""
    first, last = row_bounds(rounds, row)
    for p in range(first, last):
        feature = feature_at(rounds, row, p)
        if rounds.values[p] != 0.0:
            sums = columns.sums[feature]
            value = _within(rounds.values[p], sums)
            sums[SQUARES] += h * value * value
            sums[COUNT] += h


@kernel(entry="too")
def columns_after(rounds: Rounds, first: int, last: int, used: int, columns: Columns) -> int:
    """How many are in use after these rows, at most: a new feature counts once for each of its entries."""
    used = max(used, 1)
    for row in range(first, last):
        begin, end = row_bounds(rounds, row)
        for p in range(begin, end):
            used += int(columns.place[feature_at(rounds, row, p)] == 0 and rounds.values[p] != 0.0)
    return int(min(used, 1 + len(columns.place)))


def side_for(need: int, side: int) -> int:
    """The side of matrices with room for this number of columns, at least a quarter more than before if it grows."""
    return side if need <= side else max(whole_turns(need), whole_turns(side + side // 4))


def few_features(setup: Setup, have: Size, need: Size) -> Size:
    """Capacity for features, whose number matrices limit."""
    if need.features > MOST_FEATURES:
        raise ValueError(
            f"X has {need.features} features, and full matrices take at most {MOST_FEATURES}: use HedgedSharing, or "
            "fewer features"
        )
    return doubled(setup, have, need)


def check_columns(columns: Columns, used: int) -> None:
    """Raise ValueError unless places and sums are in range."""
    places = columns.place[columns.place > 0]
    if (columns.place < 0).any() or (places >= used).any() or len(np.unique(places)) != len(places):
        raise ValueError("places of features in its matrices are out of range")
    if (columns.sums < 0).any():
        raise ValueError("its sums over features are negative")


def scaled_values(columns: Columns, features: IndexArray, values: FloatArray | None) -> FloatArray:
    """Entries of a dense row for these values of features, or (None) for 1 in a usual row; 0 without a column."""
    found = np.zeros(len(features))
    for i, j in enumerate(features.tolist()):
        if columns.place[j] > 0 and values is not None:
            found[i] = scaled(float(values[i]), columns.sums[j])
        elif columns.place[j] > 0:
            found[i] = math.sqrt(columns.sums[j, COUNT] / max(columns.sums[j, SQUARES], TOO_SMALL))
    return found


def per_feature(columns: Columns, weights: FloatArray) -> FloatArray:
    """Weights of dense rows, in the last axis, as weights of raw features; 0 for those without a column."""
    rates: FloatArray = scaled_values(columns, np.arange(len(columns.place), dtype=np.int32), None)
    found: FloatArray = weights[..., columns.place] * rates
    return found
