"""How rows become columns, and the Kalman filters that learn them: full matrices while few features have come.

A feature has the column that it got when it came first. Full matrices, levels and effects see the scaled row, trees the
values as they came. Where more features have come than full matrices have room for, rows of nine entries in ten that
are there go on to low-rank filters, from the tenth row on; before it all groups wait, and on other rows they sleep for
good. That depends on counts alone, of features, columns, entries and rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.handles import Handle, whole
from shoal.engine.rounds import Rounds
from shoal.engine.rows import feature_at, padded, row_bounds, weight_of
from shoal.online.boosted_trees import STAGES, Effort
from shoal.online.common.dense import whole_turns
from shoal.online.common.logistic import LIMIT, within
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    DECIDING,
    FEATURES,
    FEW_FEATURES,
    FULL,
    INDEPENDENT,
    OWN_PART,
    SEEN_ENTRIES,
    SEEN_ROWS,
    SHARED_PART,
    is_narrow,
    learn_seen,
    new_features,
    parts_of,
)
from shoal.online.hedged_sharing.scaling import (
    COUNT,
    LARGEST,
    MEAN,
    Scale,
    ScaledRow,
    learn_scale,
    learn_target,
    scaled_row,
)
from shoal.online.kalman_filters import full_matrix, low_rank
from shoal.online.kalman_filters.full_matrix import PLACES, SLOTS, Full, FullRow
from shoal.online.kalman_filters.low_rank import MOST_WIDE, WAIT, LowRank, is_dense

# Positions of margins.
LEVELS, LOG_LEVELS, FULL_POOLED, FULL_OWN, EFFECTS, IMPLICIT, TREES = range(7)
N_MARGINS = TREES + len(STAGES)
IS_WIDE, N_OUT = N_MARGINS, N_MARGINS + 1  # behind them: a number while low-rank filters are in use
MOST_EFFECTS, MOST_IMPLICIT, MOST_TREES = 63, 31, 119  # features of levels and effects, of implicit ones, of trees
SIDE = whole_turns(1 + MOST_EFFECTS)
POOLED_DRIFT, OWN_DRIFT = FULL[0].a, FULL[1].a
FILTERS, IMPLICIT_TOO, FORESTS = 1, 2, 4  # groups that a row is for, by bits: levels and effects, the implicit, trees


class DenseSettings(NamedTuple):
    """The settings of the groups."""

    regression: bool
    sharing: int
    memory: float  # bytes, of full matrices
    most: int  # features, beyond which all groups sleep, or all but low-rank filters
    wide: bool  # whether there are these
    filters: float  # squares of columns that levels and effects may go through, one a row; then they sleep
    trees: Effort


class Columns(NamedTuple):
    """How rows become columns, and full matrices."""

    full: Full
    low: LowRank
    scale: Scale  # of rows, as the other experts have it
    targets: FloatArray  # (9,) as theirs
    seen: IntArray  # (3,) as theirs


Held: TypeAlias = Handle[Any]  # of a state that has them as `dense`


class Rows(NamedTuple):
    """A piece of a chunk by columns."""

    x: FloatArray  # (rows, SIDE) scaled, the constant first
    raw: FloatArray  # (rows, MOST_TREES) as they came, a column less
    columns: IntArray  # (rows,) in use, with those of the row
    groups: IntArray  # (rows,) that are awake
    target: FloatArray  # (rows,) 0 or 1, or the real target, clipped
    mean: FloatArray  # (rows,) of real targets before the row
    h: FloatArray  # (rows,) how often it counts


def new_rows(n: int) -> Rows:
    """Room for n rows."""
    reals, ints = np.zeros((3, n)), np.zeros((2, n), np.int64)
    return Rows(np.zeros((n, SIDE)), np.zeros((n, MOST_TREES)), ints[0], ints[1], reals[0], reals[1], reals[2])


@kernel(entry="too")
def groups_for(features: int, rows: int, settings: DenseSettings) -> int:
    """Groups beside full matrices, given the numbers of features and rows so far."""
    if features > settings.most:
        return 0
    found = 0
    shares = settings.sharing not in (ALL_POOLED, INDEPENDENT)
    if shares and features <= MOST_EFFECTS and rows * float(1 + features) ** 2 <= settings.filters:
        found |= FILTERS
        if features <= MOST_IMPLICIT and not settings.regression:
            found |= IMPLICIT_TOO
    if settings.sharing != INDEPENDENT and settings.trees.once >= 0.0 and features <= MOST_TREES:
        found |= FORESTS
    return found


class Reading(NamedTuple):
    """Scratch of one row."""

    row: ScaledRow
    full: FullRow
    low: low_rank.FilterWork


@kernel(entry="too")
def features_with(rounds: Rounds, row: int, columns: Columns) -> int:
    """Features that have come with a row; how many matters only up to FEW_FEATURES."""
    features, (begin, end) = columns.seen[FEATURES], row_bounds(rounds, row)
    if features > FEW_FEATURES:
        return int(features)
    for p in range(begin, end):
        j = p - begin if rounds.width > 0 else np.int64(rounds.indices[p])
        features += int(rounds.values[p] != 0.0 and columns.scale.features[j, 1] == 0.0)
    return int(features)


@kernel(alone=False)
def new_columns(rounds: Rounds, row: int, full: Full) -> int:
    """Entries of a row whose feature has no column."""
    new, (first, last) = 0, row_bounds(rounds, row)
    for p in range(first, last):
        has_none = full.place[feature_at(rounds, row, p)] == 0
        new += int(has_none and (rounds.width == 0 or rounds.values[p] != 0.0))
    return new


@kernel(alone=False)
def scale(
    rounds: Rounds,
    row: int,
    settings: DenseSettings,
    columns: Columns,
    rows: Rows,
    reading: Reading,
    margins: FloatArray,
) -> int:
    """Scale a row, which no group has answered yet; return its entries."""
    for i in range(len(margins)):
        margins[i] = np.nan
    rows.groups[row], rows.h[row] = 0, 0.0
    narrow = is_narrow(1, 0, columns.seen)
    return scaled_row(rounds, row_bounds(rounds, row), columns.scale, narrow, not settings.regression, reading.row)


@kernel(alone=False)
def read(
    rounds: Rounds,
    row: int,
    settings: DenseSettings,
    columns: Columns,
    rows: Rows,
    reading: Reading,
    margins: FloatArray,
) -> int:
    """Scale a row, fill the margins of full matrices and the inputs of other groups; return its entries."""
    n = scale(rounds, row, settings, columns, rows, reading, margins)
    features = columns.seen[FEATURES] + new_features(n, reading.row.feature, columns.scale.features, columns.seen)
    full, task, parts = columns.full, rounds.task[row], parts_of(settings.sharing)
    full_matrix.full_row(n, reading.row.x, reading.row.feature, full, reading.full)
    if parts & SHARED_PART:
        margins[FULL_POOLED] = full_matrix.full_margin(n, reading.full, full.pooled)
    if parts & OWN_PART:
        slot = full.slot[task] if task >= 0 else 0
        most = settings.memory // full_matrix.matrix_bytes(full.pooled.shape[1], full.pooled.itemsize)
        if slot > 0:
            margins[FULL_OWN] = full_matrix.full_margin(n, reading.full, full.own[slot - 1])
        elif full.counters[SLOTS] < most:
            margins[FULL_OWN] = 0.0
    rows.groups[row], rows.mean[row] = groups_for(features, columns.seen[SEEN_ROWS], settings), columns.targets[MEAN]
    rows.columns[row] = full.counters[PLACES]
    _fill(rounds, row, n, full, rows, reading)
    return n


@kernel(alone=False)
def _fill(rounds: Rounds, row: int, n: int, full: Full, rows: Rows, reading: Reading) -> None:
    """The row by columns; a feature without one is left out."""
    if rows.groups[row] & FILTERS:
        x = rows.x[row]
        for j in range(len(x)):
            x[j] = 0.0
        for i in range(n):
            x[reading.full.place[i]] += reading.full.x[i]  # 0 of a feature without a column
    if rows.groups[row] & FORESTS:
        raw = rows.raw[row]
        for j in range(full.counters[PLACES] - 1):
            raw[j] = 0.0
        first, last = row_bounds(rounds, row)
        for p in range(first, last):
            column = full.place[p - first if rounds.width > 0 else rounds.indices[p]]
            if column > 0 and rounds.values[p] != 0.0:  # -0.0 is 0
                raw[column - 1] = rounds.values[p]


@kernel(alone=False)
def take_target(y: float, h: float, row: int, regression: bool, targets: FloatArray, rows: Rows) -> tuple[float, float]:
    """The target as filters learn it, and the bound of their margins: real targets are off their mean, and clipped."""
    limit, off = LIMIT, 0.5 * (y + 1.0)
    rows.h[row], rows.target[row] = h, off
    if regression:
        limit, before = 2.0 * targets[LARGEST], targets[MEAN] if targets[COUNT] > 0.0 else y
        off = learn_target(y, h, targets)
        rows.target[row] = before + off
    return off, limit


@kernel(alone=False)
def learn(
    rounds: Rounds,
    row: int,
    n: int,
    h: float,
    settings: DenseSettings,
    columns: Columns,
    rows: Rows,
    reading: Reading,
    margins: FloatArray,
) -> None:
    """Learn a row of n entries that was read: its scale and its target's, and full matrices."""
    regression, task, full = settings.regression, rounds.task[row], columns.full
    off, limit = take_target(rounds.y[row], h, row, regression, columns.targets, rows)
    new = new_features(n, reading.row.feature, columns.scale.features, columns.seen)
    full_matrix.give_places(n, reading.row.x, reading.row.feature, full, reading.full)
    used = rows.columns[row] = full.counters[PLACES]
    if not math.isnan(margins[FULL_POOLED]):
        m = within(limit, margins[FULL_POOLED])
        full_matrix.kalman_step(n, reading.full, m, off, h, POOLED_DRIFT, used, regression, full.pooled)
    if not math.isnan(margins[FULL_OWN]):
        if full.slot[task] == 0:
            full.counters[SLOTS] += 1
            full.slot[task] = full.counters[SLOTS]
        m, own = within(limit, margins[FULL_OWN]), full.own[full.slot[task] - 1]
        full_matrix.kalman_step(n, reading.full, m, off, h, OWN_DRIFT, used, regression, own)
    if new > 0:
        _fill(rounds, row, n, full, rows, reading)
    learn_scale(columns.scale, reading.row, n, h, is_narrow(1, 0, columns.seen))
    learn_seen(n, new, columns.seen)


# ---- rows with which more features have come: all groups wait, low-rank filters, all sleep for good ------------------

MATRICES, WAITING, LOW_RANK, ASLEEP = range(4)


@kernel(entry=True)
def run_wide(
    rounds: Rounds, settings: DenseSettings, state: Held, rows: Rows, margins: FloatArray, begin: int, learns: bool,
    work: Any,
) -> int:  # fmt: skip
    """Answer rows from `begin` on, and learn them; return the first without room, or with which few features have come.

    Python calls it apart, so that streams of few features compile no low-rank filters. `work` has a `Reading`.
    """
    columns, reading = whole(state.dense).columns, work.reading
    for row in range(begin, len(margins)):
        if features_with(rounds, row, columns) <= settings.most:  # the row before had new ones, and was not learned
            return row
        if phase_now(columns, settings) == ASLEEP:  # for good
            margins[row:] = np.nan
            rows.groups[row:] = 0
            break
        if learns and not low_rank_has_room(rounds, row, settings, columns):
            return row
        n = read_wide(rounds, row, settings, columns, rows, reading, margins[row])
        h = weight_of(rounds, row) if learns else 0.0
        if h > 0.0:
            learn_wide(rounds, row, n, h, settings, columns, rows, reading, margins[row])
    return len(margins)


@kernel(alone=False)
def read_wide(
    rounds: Rounds,
    row: int,
    settings: DenseSettings,
    columns: Columns,
    rows: Rows,
    reading: Reading,
    margins: FloatArray,
) -> int:
    """Scale a row and fill the margins of filters; return its entries."""
    n = scale(rounds, row, settings, columns, rows, reading, margins)
    new = new_features(n, reading.row.feature, columns.scale.features, columns.seen)
    if phase_with(n, new, reading.row.feature, columns, settings) == LOW_RANK:
        low_rank_margins(n, rounds.task[row], settings, columns, reading, margins)
    return n


@kernel(alone=False)
def learn_wide(
    rounds: Rounds,
    row: int,
    n: int,
    h: float,
    settings: DenseSettings,
    columns: Columns,
    rows: Rows,
    reading: Reading,
    margins: FloatArray,
) -> None:
    """Learn a row of n entries that was read: its scale and its target's, and filters."""
    off, limit = take_target(rounds.y[row], h, row, settings.regression, columns.targets, rows)
    new = new_features(n, reading.row.feature, columns.scale.features, columns.seen)
    phase = phase_with(n, new, reading.row.feature, columns, settings)
    if phase != ASLEEP:
        give_columns(n, reading.row.feature, columns.full)
    if phase == LOW_RANK:
        learn_low_rank(n, rounds.task[row], off, h, limit, settings, columns, reading, margins)
    learn_scale(columns.scale, reading.row, n, h, is_narrow(1, 0, columns.seen))
    learn_seen(n, new, columns.seen)


@kernel(entry="too")
def phase_of(features: int, columns: int, entries: int, rows: int, most: int, wide: bool) -> int:
    """The phase after this number of rows, entries, features and columns, the constant's not counted."""
    if features <= most:
        return MATRICES
    if wide and rows < WAIT:
        return WAITING
    return (
        LOW_RANK if wide and most < columns <= MOST_WIDE and is_dense(columns, entries, min(rows, DECIDING)) else ASLEEP
    )


@kernel(alone=False)
def phase_now(columns: Columns, settings: DenseSettings) -> int:
    """The phase so far."""
    seen, used = columns.seen, columns.full.counters[PLACES]
    return phase_of(seen[FEATURES], used - 1, seen[SEEN_ENTRIES], seen[SEEN_ROWS], settings.most, settings.wide)


@kernel(alone=False)
def phase_with(n: int, new: int, feature: IntArray, columns: Columns, settings: DenseSettings) -> int:
    """The same with a row of n entries, the constant included, of which `new` are of new features."""
    seen, place, used = columns.seen, columns.full.place, columns.full.counters[PLACES]
    if seen[FEATURES] + new <= settings.most:
        return MATRICES
    for i in range(1, n):
        used += int(place[feature[i] - 1] == 0)
    entries = seen[SEEN_ENTRIES] + (n - 1 if seen[SEEN_ROWS] < DECIDING else 0)
    features, rows = seen[FEATURES] + new, seen[SEEN_ROWS] + 1
    return phase_of(features, used - 1, entries, rows, settings.most, settings.wide)


@kernel(alone=False)
def give_columns(n: int, feature: IntArray, full: Full) -> None:
    """Columns for features that have none, up to one more than low-rank filters take."""
    for i in range(1, n):
        if full.place[feature[i] - 1] == 0 and full.counters[PLACES] <= MOST_WIDE + 1:
            full.place[feature[i] - 1] = full.counters[PLACES]
            full.counters[PLACES] += 1


@kernel(inline=False, alone=False)
def low_rank_margins(
    n: int, task: int, settings: DenseSettings, columns: Columns, reading: Reading, margins: FloatArray
) -> None:
    """Fill the margins of full matrices by those of low-rank filters."""
    low, full, parts = columns.low, columns.full, parts_of(settings.sharing)
    width = padded(full.counters[PLACES])
    side = min(width, low.pooled.shape[1])  # 0 before the first row that they learn
    low_rank.dense_row(n, reading.row.x, reading.row.feature, full.place, width, reading.low.x)
    margins[IS_WIDE] = 1.0
    if parts & SHARED_PART:
        margins[FULL_POOLED] = low_rank.low_rank_margin(side, reading.low.x, low.pooled)
    if parts & OWN_PART:
        slot = low.slot[task] if task >= 0 else 0
        if slot > 0:
            margins[FULL_OWN] = low_rank.low_rank_margin(side, reading.low.x, low.own[slot - 1])
        elif low.counters[0] < settings.memory // low_rank.filter_bytes(width, low.pooled.itemsize):
            margins[FULL_OWN] = 0.0


@kernel(inline=False, alone=False)
def learn_low_rank(
    n: int, task: int, target: float, h: float, limit: float, settings: DenseSettings, columns: Columns,
    reading: Reading, margins: FloatArray,
) -> None:  # fmt: skip
    """Learn a row of n entries, whose features have columns."""
    low, full, regression = columns.low, columns.full, settings.regression
    width = padded(full.counters[PLACES])
    low_rank.dense_row(n, reading.row.x, reading.row.feature, full.place, width, reading.low.x)
    if not math.isnan(margins[FULL_POOLED]):
        m = within(limit, margins[FULL_POOLED])
        low_rank.low_rank_step(width, m, target, h, POOLED_DRIFT, regression, low.pooled, low.used[:1], reading.low)
    most = settings.memory // low_rank.filter_bytes(width, low.pooled.itemsize)
    if low.slot[task] == 0 and not math.isnan(margins[FULL_OWN]) and low.counters[0] < most:
        low.counters[0] += 1
        low.slot[task] = low.counters[0]
    if low.slot[task] > 0 and not math.isnan(margins[FULL_OWN]):
        m, at = within(limit, margins[FULL_OWN]), low.slot[task]
        low_rank.low_rank_step(
            width, m, target, h, OWN_DRIFT, regression, low.own[at - 1], low.used[at : at + 1], reading.low
        )


@kernel(alone=False)
def low_rank_has_room(rounds: Rounds, row: int, settings: DenseSettings, columns: Columns) -> bool:
    """Whether a row fits that is not for full matrices."""
    seen, low, (first, last) = columns.seen, columns.low, row_bounds(rounds, row)
    entries, rows = seen[SEEN_ENTRIES], seen[SEEN_ROWS] + 1
    if seen[SEEN_ROWS] < DECIDING:
        for p in range(first, last):
            entries += int(rounds.values[p] != 0.0)
    used = columns.full.counters[PLACES] + new_columns(rounds, row, columns.full)
    if phase_of(settings.most + 1, used - 1, entries, rows, settings.most, settings.wide) != LOW_RANK:
        return True
    most = np.int64(settings.memory // low_rank.filter_bytes(padded(used), low.pooled.itemsize))
    slots = min(low.counters[0] + int(low.slot[rounds.task[row]] == 0), most)
    has_slot = settings.sharing == ALL_POOLED or slots <= len(low.own)
    return used <= low.pooled.shape[1] and low.counters[0] <= most and has_slot
