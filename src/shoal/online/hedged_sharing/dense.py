"""Groups of experts on dense rows, which need no other expert's answer, while few features have come.

Each group is a room of its own, with its state, twin and page: tasks' levels and mixed effects are public learners
(`task_levels`, `mixed_effects`), boosted trees and full matrices serve here alone (`boosted_trees`, `kalman`). A group
answers a row by margins, NaN while it sleeps, and learns the row from its own forecasts. So a piece of a chunk is read
first (`read_rows`, with full matrices), then each group goes through all of its rows by itself, before the other
experts and the mixings see the piece.

Where more features have come than full matrices have room for, rows of nine entries in ten that are there go on to
`low_rank`, from the tenth row on; before it all groups wait, and on other rows they sleep for good. That depends on
counts alone, of features, columns, entries and rows.

A feature has the column that `kalman` gives it. Full matrices, levels and effects see the scaled row, trees the values
as they came. Levels are there twice for real targets: `levels-log` learns log y while all targets have been positive,
and answers exp(min(f + v/2, largest log y + 0.7)), v the mean squared error of f, each at most 9 times the mean before.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import by_kind, kernel
from shoal.engine.handles import Handle, whole
from shoal.engine.rounds import Rounds, cut
from shoal.engine.rows import feature_at, padded, row_bounds, weight_of
from shoal.engine.rows import whole_turns as whole_lanes
from shoal.online import boosted_trees
from shoal.online.boosted_trees import FIRST_COLUMN, LANES, STAGES, Effort
from shoal.online.common.dense import whole_turns
from shoal.online.hedged_sharing import kalman, low_rank
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    DECIDING,
    FEATURES,
    FEW_FEATURES,
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
from shoal.online.hedged_sharing.kalman import OWN_DRIFT, PLACES, POOLED_DRIFT, SIDES, SLOTS, Full, FullRow
from shoal.online.hedged_sharing.low_rank import MOST_WIDE, WAIT, LowRank, is_dense
from shoal.online.hedged_sharing.mixing import LIMIT, within
from shoal.online.hedged_sharing.scaling import (
    COUNT,
    LARGEST,
    MEAN,
    N_TARGETS,
    Scale,
    ScaledRow,
    learn_scale,
    learn_target,
    new_scale,
    scaled_row,
)
from shoal.online.mixed_effects import effects as mixed_effects
from shoal.online.mixed_effects.effects import Effects
from shoal.online.task_levels import levels as task_levels
from shoal.online.task_levels.levels import Levels

# Positions of margins.
LEVELS, LOG_LEVELS, FULL_POOLED, FULL_OWN, EFFECTS, IMPLICIT, TREES = range(7)
N_MARGINS = TREES + len(STAGES)
IS_WIDE, N_OUT = N_MARGINS, N_MARGINS + 1  # behind them: a number while low-rank filters are in use
MOST_EFFECTS, MOST_IMPLICIT, MOST_TREES = 63, 31, 119  # features of levels and effects, of implicit ones, of trees
SIDE = whole_turns(1 + MOST_EFFECTS)
SHARE_OF_MEMORY = 0.25  # of what full matrices may take, for each of the effects
LOG_ROWS, LOG_NOISE, LARGEST_LOG, BROKEN = range(4)  # positions in `logs`; the last: whether a target was not positive
ABOVE = 0.7  # the largest log y, answers may be
LOG_MEMORY, LOG_OUTLIER, LOG_FEW = 2000.0, 9.0, 5.0  # rows of the mean squared error; times it; rows before it counts


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


class Dense(NamedTuple):
    """The learned state of the groups."""

    columns: Columns
    levels: Levels
    log_levels: Levels
    logs: FloatArray  # (4,)
    effects: Effects
    implicit: Effects
    trees: boosted_trees.State


Held: TypeAlias = Handle[Any]  # of a state that has them as `dense`


class PackedDense(NamedTuple):
    """The saved arrays."""

    columns: Columns
    levels: Levels
    log_levels: Levels
    logs: FloatArray
    effects: Effects
    implicit: Effects
    trees: boosted_trees.Packed


class Room(NamedTuple):
    """The room of the groups."""

    columns: int  # of levels and effects
    new_effects: int  # tasks
    rows: int  # of trees
    values: int


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


FILTERS, IMPLICIT_TOO, FORESTS = 1, 2, 4  # groups that a row is for, by bits: levels and effects, the implicit, trees


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


class GroupWork(NamedTuple):
    """Scratch of one call."""

    reading: Reading
    levels: task_levels.Scratch
    effects: mixed_effects.Scratch
    possible: NDArray[np.uint32]  # (LANES,) of trees


class GroupScratch(NamedTuple):
    """Of a thread."""

    work: Handle[GroupWork]
    single: Handle[Rows]  # a piece of one row


def new_scratch(longest: int, dtype: type[np.floating]) -> GroupScratch:
    """Scratch for rows of at most `longest` entries."""
    n, few = whole_lanes(longest + 1), whole_lanes(SIDES[-1])
    reals, vectors, matrices = np.zeros((4, n)), np.zeros((5, SIDE)), np.zeros((2, SIDE, SIDE))
    work = GroupWork(
        Reading(
            ScaledRow(reals[0], np.zeros(n, np.int64), reals[1], reals[2], reals[3], np.zeros(2)),
            FullRow(np.zeros(few), np.zeros(few, np.int64), np.zeros(SIDES[-1], dtype), np.zeros(SIDES[-1], dtype)),
            low_rank.new_filter_work(whole_lanes(1 + MOST_WIDE), 2 * low_rank.RANK, dtype),
        ),
        task_levels.Scratch(vectors[4], np.zeros((2, task_levels.G))),
        mixed_effects.Scratch(*vectors[:4], *matrices),
        np.zeros(LANES, np.uint32),
    )
    return GroupScratch(Handle(work), Handle(new_rows(1)))


@kernel(entry=True)
def run_groups(
    rounds: Rounds, settings: DenseSettings, state: Held, rows: Rows, margins: FloatArray, begin: int, learns: bool,
    work: GroupWork,
) -> int:  # fmt: skip
    """Answer rows from `begin` on, and learn them; return the one before which room ended."""
    dense = whole(state.dense)
    end = read_rows(rounds, settings, dense, rows, margins, begin, learns, work.reading)
    run_filters(rounds.task, begin, end, settings.regression, dense, rows, margins, work)
    run_trees(rounds.task, begin, end, settings, dense.trees, rows, margins, work.possible)
    return end


@kernel(inline=False, alone=False)
def read_rows(
    rounds: Rounds, settings: DenseSettings, dense: Dense, rows: Rows, margins: FloatArray, begin: int, learns: bool,
    reading: Reading,
) -> int:  # fmt: skip
    """Read rows from `begin` on and learn them here; return the first row for which there was no room."""
    columns, room, new_effects = dense.columns, room_of(settings, dense), 0
    for row in range(begin, len(margins)):
        if phase_now(columns, settings) == ASLEEP:  # for good
            margins[row:] = np.nan
            rows.groups[row:] = 0
            break
        if learns:
            new_effects += int(dense.effects.slot[rounds.task[row]] == 0)
            if not has_room(rounds, row, row + 1 - begin, new_effects, settings, columns, room):
                return row
        n = read(rounds, row, settings, columns, rows, reading, margins[row])
        h = weight_of(rounds, row) if learns else 0.0
        if h > 0.0:
            learn(rounds, row, n, h, settings, columns, rows, reading, margins[row])
    return len(margins)


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
    for i in range(len(margins)):
        margins[i] = np.nan
    rows.groups[row], rows.h[row] = 0, 0.0
    narrow = is_narrow(1, 0, columns.seen)
    n = scaled_row(rounds, row_bounds(rounds, row), columns.scale, narrow, not settings.regression, reading.row)
    new = new_features(n, reading.row.feature, columns.scale.features, columns.seen)
    phase = phase_with(n, new, reading.row.feature, columns, settings)
    if phase == LOW_RANK:
        low_rank_margins(n, rounds.task[row], settings, columns, reading, margins)
    if phase != MATRICES:
        return n
    features = columns.seen[FEATURES] + new
    full, task, parts = columns.full, rounds.task[row], parts_of(settings.sharing)
    kalman.full_row(n, reading.row.x, reading.row.feature, full, reading.full)
    if parts & SHARED_PART:
        margins[FULL_POOLED] = kalman.full_margin(n, reading.full, full.pooled)
    if parts & OWN_PART:
        slot = full.slot[task] if task >= 0 else 0
        most = settings.memory // kalman.matrix_bytes(full.pooled.shape[1], full.pooled.itemsize)
        if slot > 0:
            margins[FULL_OWN] = kalman.full_margin(n, reading.full, full.own[slot - 1])
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
    """Learn a row of n entries that was read: its scale and its targets', and full matrices."""
    regression, y, task, full = settings.regression, rounds.y[row], rounds.task[row], columns.full
    limit, off = LIMIT, 0.5 * (y + 1.0)
    rows.h[row], rows.target[row] = h, off
    if regression:
        limit, before = 2.0 * columns.targets[LARGEST], columns.targets[MEAN] if columns.targets[COUNT] > 0.0 else y
        off = learn_target(y, h, columns.targets)
        rows.target[row] = before + off  # clipped
    new = new_features(n, reading.row.feature, columns.scale.features, columns.seen)
    phase = phase_with(n, new, reading.row.feature, columns, settings)
    if phase in (WAITING, LOW_RANK):
        give_columns(n, reading.row.feature, full)
    if phase == LOW_RANK:
        learn_low_rank(n, task, off, h, limit, settings, columns, reading, margins)
    if phase == MATRICES:
        kalman.give_places(n, reading.row.x, reading.row.feature, full, reading.full)
        used = rows.columns[row] = full.counters[PLACES]
        if not math.isnan(margins[FULL_POOLED]):
            m = within(limit, margins[FULL_POOLED])
            kalman.kalman_step(n, reading.full, m, off, h, POOLED_DRIFT, used, regression, full.pooled)
        if not math.isnan(margins[FULL_OWN]):
            if full.slot[task] == 0:
                full.counters[SLOTS] += 1
                full.slot[task] = full.counters[SLOTS]
            m = within(limit, margins[FULL_OWN])
            kalman.kalman_step(n, reading.full, m, off, h, OWN_DRIFT, used, regression, full.own[full.slot[task] - 1])
        if new > 0:
            _fill(rounds, row, n, full, rows, reading)
    learn_scale(columns.scale, reading.row, n, h, is_narrow(1, 0, columns.seen))
    learn_seen(n, new, columns.seen)


# ---- groups: each answers rows begin, ..., end - 1 and learns those that count -------------------------------------


@kernel(inline=False, alone=False)
def run_filters(
    task: IntArray,
    begin: int,
    end: int,
    regression: bool,
    dense: Dense,
    rows: Rows,
    margins: FloatArray,
    work: GroupWork,
) -> None:
    """Tasks' levels and mixed effects."""
    rule = mixed_effects.Rule(regression, True, mixed_effects.LEARNED)
    run_levels(task, begin, end, regression, dense.levels, rows, margins, work.levels)
    run_effects(task, begin, end, rule, dense.effects, rows, margins, work.effects)
    if regression:
        run_logs(task, begin, end, dense.log_levels, dense.logs, rows, margins, work.levels)
    else:
        implicit = mixed_effects.Rule(regression, False, mixed_effects.LEARNED)
        run_effects(task, begin, end, implicit, dense.implicit, rows, margins, work.effects)


@kernel(inline=False, alone=False)
def run_levels(
    task: IntArray, begin: int, end: int, regression: bool, levels: Levels, rows: Rows, margins: FloatArray,
    scratch: task_levels.Scratch,
) -> None:  # fmt: skip
    """Tasks' levels."""
    for row in range(begin, end):
        if rows.groups[row] & FILTERS:
            d, x, y, h = rows.columns[row], rows.x[row], rows.target[row], rows.h[row]
            f = task_levels.ask(d, x, task[row], regression, levels, scratch)
            margins[row, LEVELS] = task_levels.answer(f, regression, levels) - rows.mean[row]
            if h > 0.0:
                task_levels.learn(d, x, y, h, task[row], regression, f, levels, scratch)


@kernel(inline=False, alone=False)
def run_logs(
    task: IntArray, begin: int, end: int, levels: Levels, logs: FloatArray, rows: Rows, margins: FloatArray,
    scratch: task_levels.Scratch,
) -> None:  # fmt: skip
    """Tasks' levels of log y."""
    for row in range(begin, end):
        if rows.groups[row] & FILTERS and logs[BROKEN] == 0.0:
            d, x, y, h = rows.columns[row], rows.x[row], rows.target[row], rows.h[row]
            f = task_levels.ask(d, x, task[row], True, levels, scratch)
            answer = task_levels.answer(f, True, levels)
            if logs[LOG_ROWS] > 0.0:
                log = min(answer + 0.5 * logs[LOG_NOISE], logs[LARGEST_LOG] + ABOVE)
                margins[row, LOG_LEVELS] = math.exp(log) - rows.mean[row]
            if h > 0.0 and y <= 0.0:
                logs[BROKEN] = 1.0
            elif h > 0.0:
                learn_log(math.log(y), answer, h, logs)
                task_levels.learn(d, x, math.log(y), h, task[row], True, f, levels, scratch)


@kernel(alone=False)
def learn_log(y: float, answer: float, h: float, logs: FloatArray) -> None:
    """Take a logarithm and its forecast into the running numbers."""
    square = (y - answer) ** 2
    if logs[LOG_ROWS] > LOG_FEW:
        square = min(square, LOG_OUTLIER * logs[LOG_NOISE])
    logs[LARGEST_LOG] = y if logs[LOG_ROWS] == 0.0 else max(logs[LARGEST_LOG], y)
    logs[LOG_ROWS] += h
    logs[LOG_NOISE] += h / min(logs[LOG_ROWS], LOG_MEMORY + h) * (square - logs[LOG_NOISE])


@kernel(inline=False, alone=False)
def run_effects(
    task: IntArray, begin: int, end: int, rule: mixed_effects.Rule, effects: Effects, rows: Rows, margins: FloatArray,
    scratch: mixed_effects.Scratch,
) -> None:  # fmt: skip
    """Mixed effects: by moments, or the implicit ones."""
    group, place = (FILTERS, EFFECTS) if rule.match else (IMPLICIT_TOO, IMPLICIT)
    for row in range(begin, end):
        if rows.groups[row] & group:
            d, x, y, h = rows.columns[row], rows.x[row], rows.target[row], rows.h[row]
            f = mixed_effects.ask(d, x, task[row], effects, scratch)
            margins[row, place] = mixed_effects.answer(f, rule, effects) - rows.mean[row]
            if h > 0.0:
                mixed_effects.learn(d, x, y, h, task[row], rule, f, effects, scratch)


@kernel(inline=False, alone=False)
def run_trees(
    task: IntArray, begin: int, end: int, settings: DenseSettings, trees: boosted_trees.State, rows: Rows,
    margins: FloatArray, possible: NDArray[np.uint32],
) -> None:  # fmt: skip
    """Boosted trees; one model for all tasks takes all rows to be of the first."""
    regression, pooled, effort = settings.regression, settings.sharing == ALL_POOLED, settings.trees
    for row in range(begin, end):
        if rows.groups[row] & FORESTS:
            of, d, x = 0 if pooled else task[row], rows.columns[row] - 1, rows.raw[row]
            out = margins[row, TREES:N_MARGINS]
            awake = boosted_trees.margins(d, x, of, trees, possible, out)
            for i in range(len(out)):
                out[i] = out[i] - rows.mean[row] if awake else np.nan
            if rows.h[row] > 0.0:
                boosted_trees.learn(d, x, rows.target[row], rows.h[row], of, regression, effort, trees)


# ---- room --------------------------------------------------------------------------------------------------


def new_dense(n_tasks: int, n_features: int, dtype: type[np.floating], *, regression: bool) -> Dense:
    """Nothing learned."""
    full, seen = kalman.new_full(n_tasks, n_features, dtype), np.zeros(3, np.int64)
    return Dense(
        Columns(full, low_rank.new_low_rank(n_tasks, 0, dtype), new_scale(n_features), np.zeros(N_TARGETS), seen),
        task_levels.new_levels(n_tasks, 0),
        task_levels.new_levels(n_tasks if regression else 0, 0),
        np.zeros(4),
        mixed_effects.new_effects(n_tasks, 0, 0),
        mixed_effects.new_effects(0 if regression else n_tasks, 0, 0),
        boosted_trees.new_state(n_tasks),
    )


# ---- phases: full matrices, none of them yet, low-rank filters, all asleep for good -------------------------------

MATRICES, WAITING, LOW_RANK, ASLEEP = range(4)


@kernel(entry="too")
def phase_of(features: int, columns: int, entries: int, rows: int, most: int, wide: bool) -> int:
    """The phase after this number of rows, entries, features and columns, the constant's not counted."""
    if features <= most:
        return MATRICES
    if wide and rows < WAIT:
        return WAITING
    return LOW_RANK if wide and most < columns <= MOST_WIDE and is_dense(columns, entries, rows) else ASLEEP


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
    used = columns.full.counters[PLACES] + _new_columns(rounds, row, columns.full)
    if phase_of(settings.most + 1, used - 1, entries, rows, settings.most, settings.wide) != LOW_RANK:
        return True
    most = np.int64(settings.memory // low_rank.filter_bytes(padded(used), low.pooled.itemsize))
    slots = min(low.counters[0] + int(low.slot[rounds.task[row]] == 0), most)
    has_slot = settings.sharing == ALL_POOLED or slots <= len(low.own)
    return used <= low.pooled.shape[1] and low.counters[0] <= most and has_slot


rows_left = kernel(alone=False)(boosted_trees.rows_left)


@kernel(alone=False)
def room_of(settings: DenseSettings, dense: Dense) -> Room:
    """Effects have room for all if memory has none for more."""
    effects, side, trees = dense.effects, len(dense.levels.mean), dense.trees
    left, most = len(effects.own) - effects.counters[mixed_effects.SLOTS], most_effects(settings.memory, side)
    if len(effects.own) >= most > 0:
        left = 2**60
    return Room(side, left, rows_left(trees), trees.values.shape[1] - FIRST_COLUMN)


@kernel(alone=False)
def has_room(
    rounds: Rounds, row: int, n: int, new_effects: int, settings: DenseSettings, columns: Columns, room: Room
) -> bool:
    """Whether a row fits, when with it the groups have n rows to learn and this number of new effects."""
    full, features, task = columns.full, features_with(rounds, row, columns), rounds.task[row]
    if features > settings.most:
        return low_rank_has_room(rounds, row, settings, columns)
    side, used = full.pooled.shape[1], full.counters[PLACES] + _new_columns(rounds, row, full)
    most = np.int64(settings.memory // kalman.matrix_bytes(side, full.pooled.itemsize))
    slots = min(full.counters[SLOTS] + int(full.slot[task] == 0), most)
    if min(used, settings.most + 1) > side or (settings.sharing != ALL_POOLED and slots > len(full.own)):
        return False
    groups = groups_for(features, columns.seen[SEEN_ROWS], settings)
    if groups & FILTERS and (min(used, 1 + MOST_EFFECTS) > room.columns or new_effects > room.new_effects):
        return False
    return groups & FORESTS == 0 or (n <= room.rows and min(used - 1, MOST_TREES) <= room.values)


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
def _new_columns(rounds: Rounds, row: int, full: Full) -> int:
    """Entries of a row whose feature has no column."""
    new, (first, last) = 0, row_bounds(rounds, row)
    for p in range(first, last):
        has_none = full.place[feature_at(rounds, row, p)] == 0
        new += int(has_none and (rounds.width == 0 or rounds.values[p] != 0.0))
    return new


def rows_for(n: int, scratch: GroupScratch) -> Handle[Rows]:
    """Room for a piece of n rows."""
    return scratch.single if n == 1 else Handle(new_rows(n))


def answered(
    rounds: Rounds, settings: DenseSettings, state: Held, margins: FloatArray, scratch: GroupScratch
) -> Handle[Rows]:
    """Fill the margins of rows of which nothing is learned; the rows by columns."""
    rows, kind = rows_for(len(margins), scratch), state.of.dense.columns.full.pooled.dtype
    by_kind(run_groups, kind, rounds, settings, state, rows, margins, 0, False, scratch.work)
    return rows


def learned(
    rounds: Rounds, settings: DenseSettings, state: Held, margins: FloatArray, again: FloatArray, scratch: GroupScratch
) -> Held:
    """Fill the margins of rows and learn them; return the state, in larger arrays where it had to grow.

    All rows of a round are answered before any of them is learned, and each `again` before itself is learned.
    """
    n = len(margins)
    if len(rounds.starts) - 1 < n:
        for first, last in pairwise(rounds.starts.tolist()):
            piece = cut(rounds, first, last)
            answered(piece, settings, state, margins[first:last], scratch)
            single = piece._replace(starts=np.arange(last - first + 1))
            state = learned(single, settings, state, again[first:last], again[first:last], scratch)
        return state
    rows, done, kind = rows_for(n, scratch), 0, state.of.dense.columns.full.pooled.dtype
    while True:
        end = by_kind(run_groups, kind, rounds, settings, state, rows, margins, done, True, scratch.work)
        if end == n:
            return state
        dense, done = extended(cut(rounds, end, n), settings, state.dense), end
        state = Handle(state.of._replace(dense=dense))


@kernel(entry="too")
def most_effects(memory: float, side: int) -> int:
    """Tasks whose effects have room in memory."""
    return int(SHARE_OF_MEMORY * memory // mixed_effects.slot_bytes(side)) if side > 0 else 0


def sleeps(dense: Dense | PackedDense, settings: DenseSettings) -> bool:
    """Whether all groups sleep for good. Nothing of them is kept then."""
    return is_in(dense, settings, ASLEEP)


def is_in(dense: Dense | PackedDense, settings: DenseSettings, phase: int) -> bool:
    """Whether that is the phase; of many features most often that without columns, which takes no call to tell."""
    seen, columns = dense.columns.seen, dense.columns.full.counters[PLACES] - 1
    if seen[FEATURES] <= settings.most:
        return phase == MATRICES
    if seen[SEEN_ROWS] >= WAIT and columns <= settings.most:
        return phase == ASLEEP
    found = phase_of(seen[FEATURES], columns, seen[SEEN_ENTRIES], seen[SEEN_ROWS], settings.most, settings.wide)
    return bool(found == phase)


def asleep(dense: Dense, *, regression: bool) -> Dense:
    """The state of groups that sleep for good."""
    empty = new_dense(0, 0, dense.columns.full.pooled.dtype.type, regression=regression)
    return empty._replace(columns=empty.columns._replace(seen=dense.columns.seen))


def extended(rounds: Rounds, settings: DenseSettings, dense: Dense) -> Dense:
    """The same with room for the first row, its new features and its task."""
    full = dense.columns.full
    used = int(full.counters[PLACES]) + kalman.most_new(full, rounds)
    features, rows_so_far = features_with(rounds, 0, dense.columns), int(dense.columns.seen[SEEN_ROWS])
    if features > settings.most:
        return with_low_rank(rounds, used, settings, dense)
    groups = groups_for(features, rows_so_far, settings)
    full = kalman.extended(full, rounds, settings.memory, settings.most)
    dense = dense._replace(columns=dense.columns._replace(full=full))
    if groups & FILTERS:
        effects, side = dense.effects, max(len(dense.levels.mean), whole_turns(min(used, 1 + MOST_EFFECTS)))
        have, most = len(effects.own), most_effects(settings.memory, side)
        new = int(effects.slot[rounds.task[0]] == 0)
        wanted = min(int(effects.counters[mixed_effects.SLOTS]) + new, most)
        slots = have if wanted <= have else min(max(2 * have, wanted), most)
        dense = dense._replace(
            levels=task_levels.with_side(dense.levels, side),
            log_levels=task_levels.with_side(dense.log_levels, side),
            effects=mixed_effects.with_room(effects, side, slots),
            implicit=mixed_effects.with_room(dense.implicit, side, 0 if settings.regression else slots),
        )
    d = min(used - 1, MOST_TREES)
    if groups & FORESTS and not boosted_trees.has_room(1, d, dense.trees):
        dense = dense._replace(trees=boosted_trees.extended(dense.trees, 1, d))
    return dense


def with_low_rank(rounds: Rounds, used: int, settings: DenseSettings, dense: Dense) -> Dense:
    """The same with room in low-rank filters for the first row; they begin where full matrices end."""
    full, low = dense.columns.full, dense.columns.low
    new = int(settings.sharing != ALL_POOLED and low.slot[rounds.task[0]] == 0)
    low = low_rank.extended(low, used, new, settings.memory)
    return dense._replace(columns=dense.columns._replace(full=kalman.emptied(full), low=low))


def forget(dense: Dense, k: int) -> None:
    """A task leaves."""
    if k < len(dense.levels.rows):
        kalman.forget(dense.columns.full, k)
        low_rank.forget(dense.columns.low, k)
        mixed_effects.forget(dense.effects, k)
        boosted_trees.forget(dense.trees, k)
    if k < len(dense.implicit.slot):
        mixed_effects.forget(dense.implicit, k)


def pack(dense: Dense) -> PackedDense:
    """The arrays, cut to the part in use."""
    return PackedDense(
        dense.columns._replace(
            full=kalman.pack(dense.columns.full),
            low=low_rank.pack(dense.columns.low, int(dense.columns.full.counters[PLACES])),
        ),
        task_levels.pack(dense.levels),
        task_levels.pack(dense.log_levels),
        dense.logs,
        mixed_effects.pack(dense.effects),
        mixed_effects.pack(dense.implicit),
        boosted_trees.pack(dense.trees),
    )


def blank(n_tasks: int, n_features: int, dtype: type[np.floating], *, regression: bool) -> PackedDense:
    """An empty `pack`."""
    return pack(new_dense(n_tasks, n_features, dtype, regression=regression))


def check(packed: PackedDense, n_tasks: int) -> None:
    """Raise ValueError unless sizes and places are in range."""
    kalman.check(packed.columns.full)
    low_rank.check(packed.columns.low, int(packed.columns.full.counters[PLACES]))
    task_levels.check(packed.levels)
    task_levels.check(packed.log_levels)
    mixed_effects.check(packed.effects)
    mixed_effects.check(packed.implicit)
    boosted_trees.check(packed.trees, n_tasks)
    if (packed.columns.seen < 0).any():
        raise ValueError("its numbers of rows are negative")


def unpack(packed: PackedDense) -> Dense:
    """The inverse of `pack`."""
    return Dense(
        packed.columns._replace(full=kalman.unpack(packed.columns.full), low=low_rank.unpack(packed.columns.low)),
        task_levels.unpack(packed.levels),
        task_levels.unpack(packed.log_levels),
        packed.logs,
        mixed_effects.unpack(packed.effects),
        mixed_effects.unpack(packed.implicit),
        boosted_trees.unpack(packed.trees),
    )
