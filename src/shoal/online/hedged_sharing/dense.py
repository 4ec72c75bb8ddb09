"""Groups of experts on dense rows, which need no other expert's answer, while few features have come.

Each group is a room of its own, with its state, twin and page: tasks' levels and mixed effects are public learners
(`task_levels`, `mixed_effects`), boosted trees and Kalman filters serve here alone (`boosted_trees`,
`kalman_filters`). A group answers a row by margins, NaN while it sleeps, and learns the row from its own forecasts. So
a piece of a chunk is read first (`read_rows`, with full matrices), then each group goes through all of its rows by
itself, before the other experts and the mixings see the piece.

`columns` says how rows become columns, and what goes on where many features have come. Levels are there twice for real
targets: `levels-log` learns log y while all targets have been positive, and answers exp(min(f + v/2, largest log y +
0.7)), v the mean squared error of f, each at most 9 times the mean before.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import by_kind, kernel
from shoal.engine.handles import Handle
from shoal.engine.rounds import Rounds, cut
from shoal.engine.rows import weight_of
from shoal.engine.rows import whole_turns as whole_lanes
from shoal.online import boosted_trees
from shoal.online.boosted_trees import FIRST_COLUMN, LANES
from shoal.online.common.dense import whole_turns
from shoal.online.hedged_sharing.columns import (
    ASLEEP,
    EFFECTS,
    FILTERS,
    FORESTS,
    IMPLICIT,
    IMPLICIT_TOO,
    LEVELS,
    LOG_LEVELS,
    MATRICES,
    MOST_EFFECTS,
    MOST_TREES,
    N_MARGINS,
    SIDE,
    TREES,
    Columns,
    DenseSettings,
    Held,
    Reading,
    Rows,
    features_with,
    groups_for,
    learn,
    new_columns,
    new_rows,
    phase_of,
    read,
    run_wide,
)
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    FEATURES,
    SEEN_ENTRIES,
    SEEN_ROWS,
)
from shoal.online.hedged_sharing.scaling import (
    N_TARGETS,
    ScaledRow,
    new_scale,
)
from shoal.online.kalman_filters import full_matrix, low_rank
from shoal.online.kalman_filters.full_matrix import PLACES, SIDES, SLOTS, FullRow
from shoal.online.kalman_filters.low_rank import MOST_WIDE, WAIT
from shoal.online.mixed_effects import effects as mixed_effects
from shoal.online.mixed_effects.effects import Effects
from shoal.online.task_levels import levels as task_levels
from shoal.online.task_levels.levels import Levels

SHARE_OF_MEMORY = 0.25  # of what full matrices may take, for each of the effects
LOG_ROWS, LOG_NOISE, LARGEST_LOG, BROKEN = range(4)  # positions in `logs`; the last: whether a target was not positive
ABOVE = 0.7  # the largest log y, answers may be
LOG_MEMORY, LOG_OUTLIER, LOG_FEW = 2000.0, 9.0, 5.0  # rows of the mean squared error; times it; rows before it counts


class Dense(NamedTuple):
    """The learned state of the groups."""

    columns: Columns
    levels: Levels
    log_levels: Levels
    logs: FloatArray  # (4,)
    effects: Effects
    implicit: Effects
    trees: boosted_trees.State


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
    dtype: Any  # of matrices


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
    return GroupScratch(Handle(work), Handle(new_rows(1)), dtype)


@kernel(entry=True)
def run_groups(
    rounds: Rounds, settings: DenseSettings, state: Held, rows: Rows, margins: FloatArray, begin: int, learns: bool,
    work: GroupWork,
) -> int:  # fmt: skip
    """Answer rows from `begin` on, and learn them; return the first without room, or of too many features."""
    dense = state.dense
    end = read_rows(rounds, settings, dense, rows, margins, begin, learns, work.reading)
    run_filters(rounds.task, begin, end, settings.regression, dense, rows, margins, work)
    run_trees(rounds.task, begin, end, settings, dense.trees, rows, margins, work.possible)
    return end


@kernel(inline=False, alone=False)
def read_rows(
    rounds: Rounds, settings: DenseSettings, dense: Dense, rows: Rows, margins: FloatArray, begin: int, learns: bool,
    reading: Reading,
) -> int:  # fmt: skip
    """Read rows from `begin` on and learn them here; return the first row that is wide or has no room."""
    columns, room, new_effects = dense.columns, room_of(settings, dense), 0
    for row in range(begin, len(margins)):
        if not learns and features_with(rounds, row, columns) > settings.most:
            return row
        if learns:
            new_effects += int(dense.effects.slot[rounds.task[row]] == 0)
            if not has_room(rounds, row, row + 1 - begin, new_effects, settings, columns, room):
                return row
        n = read(rounds, row, settings, columns, rows, reading, margins[row])
        h = weight_of(rounds, row) if learns else 0.0
        if h > 0.0:
            learn(rounds, row, n, h, settings, columns, rows, reading, margins[row])
    return len(margins)


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
    full, seen = full_matrix.new_full(n_tasks, n_features, dtype), np.zeros(3, np.int64)
    return Dense(
        Columns(full, low_rank.new_low_rank(n_tasks, 0, dtype), new_scale(n_features), np.zeros(N_TARGETS), seen),
        task_levels.new_levels(n_tasks, 0),
        task_levels.new_levels(n_tasks if regression else 0, 0),
        np.zeros(4),
        mixed_effects.new_effects(n_tasks, 0, 0),
        mixed_effects.new_effects(0 if regression else n_tasks, 0, 0),
        boosted_trees.new_state(n_tasks),
    )


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
        return False
    side, used = full.pooled.shape[1], full.counters[PLACES] + new_columns(rounds, row, full)
    most = np.int64(settings.memory // full_matrix.matrix_bytes(side, full.pooled.itemsize))
    slots = min(full.counters[SLOTS] + int(full.slot[task] == 0), most)
    if min(used, settings.most + 1) > side or (settings.sharing != ALL_POOLED and slots > len(full.own)):
        return False
    groups = groups_for(features, columns.seen[SEEN_ROWS], settings)
    if groups & FILTERS and (min(used, 1 + MOST_EFFECTS) > room.columns or new_effects > room.new_effects):
        return False
    return groups & FORESTS == 0 or (n <= room.rows and min(used - 1, MOST_TREES) <= room.values)


def rows_for(n: int, scratch: GroupScratch) -> Handle[Rows]:
    """Room for a piece of n rows."""
    return scratch.single if n == 1 else Handle(new_rows(n))


def one(
    rounds: Rounds, settings: DenseSettings, state: Held, margins: FloatArray, learns: bool, scratch: GroupScratch
) -> bool:
    """Fill the margins of one row, and learn it if that is wanted; False, and nothing done, if there is no room."""
    rows, work = scratch.single, scratch.work
    return bool(by_kind(run_groups, scratch.dtype, rounds, settings, state, rows, margins, 0, learns, work) == 1)


def answered(
    rounds: Rounds, settings: DenseSettings, state: Held, margins: FloatArray, scratch: GroupScratch
) -> Handle[Rows]:
    """Fill the margins of rows of which nothing is learned; the rows by columns."""
    rows, kind = rows_for(len(margins), scratch), scratch.dtype
    run, done = run_groups, 0
    while True:
        done = by_kind(run, kind, rounds, settings, state, rows, margins, done, False, scratch.work)
        if done == len(margins):
            return rows
        run = run_wide if run is run_groups else run_groups


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
    run, done, rows, kind = run_groups, 0, rows_for(n, scratch), scratch.dtype
    while True:
        done = by_kind(run, kind, rounds, settings, state, rows, margins, done, True, scratch.work)
        if done == n:
            return state
        rest, dense = cut(rounds, done, n), state.of.dense
        of_row = run_wide if features_with(rest, 0, dense.columns) > settings.most else run_groups
        if run is of_row:
            state = Handle(state.of._replace(dense=extended(rest, settings, dense)))
        run = of_row


@kernel(entry="too")
def most_effects(memory: float, side: int) -> int:
    """Tasks whose effects have room in memory."""
    return int(SHARE_OF_MEMORY * memory // mixed_effects.slot_bytes(side)) if side > 0 else 0


def sleeps(dense: Dense | PackedDense, settings: DenseSettings) -> bool:
    """Whether all groups sleep for good. Nothing of them is kept then."""
    return dense.columns.seen.item(FEATURES) > settings.most and is_in(dense, settings, ASLEEP)


def is_in(dense: Dense | PackedDense, settings: DenseSettings, phase: int) -> bool:
    """Whether that is the phase; of many features most often that without columns, which takes no call to tell."""
    seen = dense.columns.seen
    if seen.item(FEATURES) <= settings.most:
        return phase == MATRICES
    columns = dense.columns.full.counters.item(PLACES) - 1
    if seen.item(SEEN_ROWS) >= WAIT and columns <= settings.most:
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
    used = int(full.counters[PLACES]) + full_matrix.most_new(full, rounds)
    features, rows_so_far = features_with(rounds, 0, dense.columns), int(dense.columns.seen[SEEN_ROWS])
    if features > settings.most:
        return with_low_rank(rounds, used, settings, dense)
    groups = groups_for(features, rows_so_far, settings)
    full = full_matrix.extended(full, rounds, settings.memory, settings.most)
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
    return dense._replace(columns=dense.columns._replace(full=full_matrix.emptied(full), low=low))


def forget(dense: Dense, k: int) -> None:
    """A task leaves."""
    if k < len(dense.levels.rows):
        full_matrix.forget(dense.columns.full, k)
        low_rank.forget(dense.columns.low, k)
        mixed_effects.forget(dense.effects, k)
        boosted_trees.forget(dense.trees, k)
    if k < len(dense.implicit.slot):
        mixed_effects.forget(dense.implicit, k)


def pack(dense: Dense) -> PackedDense:
    """The arrays, cut to the part in use."""
    return PackedDense(
        dense.columns._replace(
            full=full_matrix.pack(dense.columns.full),
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
    full_matrix.check(packed.columns.full)
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
        packed.columns._replace(full=full_matrix.unpack(packed.columns.full), low=low_rank.unpack(packed.columns.low)),
        task_levels.unpack(packed.levels),
        task_levels.unpack(packed.log_levels),
        packed.logs,
        mixed_effects.unpack(packed.effects),
        mixed_effects.unpack(packed.implicit),
        boosted_trees.unpack(packed.trees),
    )
