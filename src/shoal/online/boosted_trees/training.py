"""The buffer of rows, and how a forest is trained on it: at fixed counts of rows, one small slice of work a row.

A training freezes the last 16,384 rows: targets, weights and tasks at once, then column by column the codes of their
values; 240 trees follow, and then the new forest answers. The work of one row is bounded by BUDGET, or is one column
or one tree. The buffer has room for the rows that come while columns are coded, so that nothing is copied. All depends
on the sequence of rows alone, and not on time or on how it is cut into chunks.
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.online.boosted_trees.forest import (
    FEW_LEAVES,
    FIRST_COLUMN,
    LAST_COLUMN,
    MEAN_COLUMN,
    N_CODES,
    N_LEAVES,
    N_PLACES,
    N_SMALL,
    N_TREES,
    TASK_COLUMN,
    SetArray,
    Tasks,
    U,
    ValueArray,
    ask,
    code_of,
    fill_sets,
    last_of,
    learn_target,
    mean_of,
    shares,
)
from shoal.online.boosted_trees.state import (
    BEGIN,
    BUFFER,
    DUE,
    FROZEN,
    NEXT,
    ROWS,
    SIDE,
    SPARE,
    SPENT,
    STEP,
    STORED,
    State,
)
from shoal.online.boosted_trees.tree import (
    SAMPLE,
    enter,
    grow,
)

FEWEST_NEW = 30  # rows, from one training to the next
LATEST = 2.0**60  # rows
BUDGET = 1_000_000  # additions to a histogram, about a nanosecond each, that a row may do at least


class Effort(NamedTuple):
    """Limits of the cost of trainings, in additions to a histogram: together `once` and `a_row` for each row so far."""

    once: float
    a_row: float


# ---- answering ------------------------------------------------------------------------------------------------


@kernel(alone=False)
def margins(d: int, x: FloatArray, task: int, state: State, possible: SetArray, out: FloatArray) -> bool:
    """out[i] <- the forecast of the i-th expert: a logit, or a target; and whether there is a forest.

    d, x : the row's values, of the columns that have come so far; task : -1 for an unseen one
    possible : (240,) scratch
    """
    side = state.counters[SIDE] - 1
    if side < 0:
        for i in range(len(out)):
            out[i] = 0.0
        return False
    ask(d, x, task, side, state.forests, state.tasks, possible, out)
    return True


@kernel(alone=False)
def explain(d: int, x: FloatArray, task: int, stage: int, state: State, out: FloatArray) -> float:
    """out[c] <- how much column c (task, its mean, its last value, x) moves the answer of a stage.

    The answer is their sum and the number returned; all are 0 while there is no forest.
    """
    side = state.counters[SIDE] - 1
    if side < 0:
        for c in range(len(out)):
            out[c] = 0.0
        return 0.0
    return shares(d, x, task, side, stage, state.forests, state.tasks, out)


# ---- the buffer -----------------------------------------------------------------------------------------------


def rows_left(state: State) -> int:
    """How many more rows fit."""
    n_rows = len(state.values)
    return 2**60 if n_rows == BUFFER + SPARE else int(n_rows - state.counters[STORED])


def has_room(n: int, d: int, state: State) -> bool:
    """Whether n more rows of d values fit."""
    return bool(FIRST_COLUMN + d <= state.values.shape[1] and n <= rows_left(state))


@kernel(inline=False, alone=False)
def learn(d: int, x: FloatArray, y: float, h: float, task: int, regression: bool, effort: Effort, state: State) -> None:
    """A row of d values, with its target (0 or 1, or real), that counts h > 0 times; there is room for it."""
    counters, at = state.counters, state.counters[NEXT]
    values = state.values[at]
    values[MEAN_COLUMN], values[LAST_COLUMN] = mean_of(task, state.tasks), last_of(task, state.tasks)
    for j in range(len(values) - FIRST_COLUMN):
        values[FIRST_COLUMN + j] = x[j] if j < d else 0.0
    state.task[at], state.targets[at, 0], state.targets[at, 1] = task, y, h
    learn_target(task, y, h, regression, state.tasks)
    counters[NEXT] = (at + 1) % (BUFFER + SPARE)
    counters[STORED] = min(counters[STORED] + 1, BUFFER + SPARE)
    counters[ROWS] += 1
    if counters[STEP] == 0 and counters[ROWS] >= counters[DUE]:
        _freeze(FIRST_COLUMN + d, regression, effort, state)
    elif counters[STEP] > 0:
        _train(regression, state)


# ---- a training -----------------------------------------------------------------------------------------------


@kernel(alone=False)
def next_due(rows: int, cost: int, spent: int, effort: Effort) -> int:
    """At how many rows the training after one at this many begins, if it costs as much and all so far have `spent`."""
    afforded = int(min((spent + cost - effort.once) / effort.a_row, LATEST))
    return max(rows + max(FEWEST_NEW, (rows * 3) // 20), afforded)


@kernel(inline=False, sums="exact", alone=False)
def _freeze(n_columns: int, regression: bool, effort: Effort, state: State) -> None:
    """Begin a training: take targets, weights and tasks of the rows in the buffer."""
    counters, training, forests = state.counters, state.training, state.forests
    n, side, n_rows = min(counters[STORED], BUFFER), counters[SIDE] % 2, len(state.values)
    counters[STEP], counters[FROZEN] = 1, n
    counters[BEGIN] = (counters[NEXT] - n) % (BUFFER + SPARE)
    cost = 0
    for step in range(1, n_columns + N_TREES):
        cost += cost_of(step, n, n_columns)
    counters[SPENT] += cost
    counters[DUE] = next_due(counters[ROWS], cost, counters[SPENT], effort)
    total = weighted = largest = 0.0
    for i in range(n):
        row = state.targets[(counters[BEGIN] + i) % n_rows]
        y, h = row[0], row[1]
        training.target[i], training.weight[i] = y, h
        total, weighted, largest = total + h, weighted + h * y, max(largest, h)
    intercept, scale, mean = 0.0, 1.0, weighted / total
    if regression:
        squares = 0.0
        for i in range(n):
            squares += training.weight[i] * (training.target[i] - mean) ** 2
        intercept, scale = mean, math.sqrt(squares / total)
        for i in range(n):
            training.target[i] = (training.target[i] - mean) / scale if scale > 0.0 else 0.0
        mean = 0.0
    else:
        intercept = math.log((weighted + 1.0) / (total - weighted + 1.0))
    for i in range(n):
        training.margin[i], training.lengths[i] = 0.0 if regression else intercept, 0
    training.units[0] = largest
    forests.units[side, 0], forests.units[side, 1], forests.sizes[side] = intercept, scale, n_columns
    fill_sets(side, forests)
    for t in range(N_TREES):
        for s in range(N_LEAVES - 1):
            forests.column[side, t, s], forests.parent[side, t, s], forests.left[side, t, s] = -1, 0, U(0)
        for s in range(2 * N_LEAVES - 1):
            forests.values[side, t, s] = 0.0
    _place_tasks(side, state.tasks)
    for i in range(n):
        task = state.task[(counters[BEGIN] + i) % n_rows]
        training.codes[TASK_COLUMN, i] = state.tasks.places[task, side]
    enter(TASK_COLUMN, n, training)


@kernel(inline=False, alone=False)
def _place_tasks(side: int, tasks: Tasks) -> None:
    """A place for each task; none if there are more than places."""
    places, n = tasks.places, len(tasks.places)
    n_seen = 0
    for k in range(n):
        places[k, side] = 0
        n_seen += int(tasks.sums[k, 0] > 0.0)
    at = 0
    if n_seen <= N_PLACES:
        for k in range(n):
            if tasks.sums[k, 0] > 0.0:
                at += 1
                places[k, side] = at


@kernel(inline=False, alone=False)
def _sort(n: int, values: ValueArray) -> None:
    """Shell's sort: numba's would take a second to compile."""
    gap = n
    while gap > 1:
        gap = max(gap * 4 // 9, 1)
        for i in range(gap, n):
            value, k = values[i], i
            while k >= gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value


@kernel(inline=False, sums="exact", alone=False)
def cut(n: int, values: ValueArray, edges: ValueArray) -> None:
    """Edges between values, sorted, so that bins hold equal shares of what is left for them; then infinity."""
    left, held, k = n, 0, 0
    for e in range(len(edges)):
        edges[e] = np.inf
    for i in range(n - 1):
        held += 1
        if values[i] != values[i + 1] and k < len(edges) and held * (len(edges) + 1 - k) >= left:
            edges[k] = values[i] + 0.5 * (values[i + 1] - values[i])
            left, held, k = left - held, 0, k + 1


@kernel(inline=False, sums="exact", alone=False)
def _code_column(c: int, side: int, state: State) -> None:
    """Edges and codes of one column of the frozen rows."""
    counters, training, n_rows = state.counters, state.training, len(state.values)
    n, begin, n_sample, known = counters[FROZEN], counters[BEGIN], min(counters[FROZEN], SAMPLE), 0
    for i in range(n_sample):
        value = state.values[(begin + i * n // n_sample) % n_rows, c]
        if value == value:
            training.sample[known] = value
            known += 1
    _sort(known, training.sample)
    edges, codes = state.forests.edges[side, c], training.codes[c]
    cut(known, training.sample, edges)
    for i in range(n):
        codes[i] = code_of(state.values[(begin + i) % n_rows, c], edges)
    enter(c, n, training)


@kernel(alone=False)
def cost_of(step: int, n: int, n_columns: int) -> int:
    """The cost of a step of a training, in additions to a histogram."""
    if step < n_columns:
        return 40 * n
    return (3 * n + 2 * (FEW_LEAVES if step < n_columns + N_SMALL else N_LEAVES) * N_CODES) * n_columns


@kernel(inline=False, alone=False)
def _train(regression: bool, state: State) -> None:
    """The next slice of the training: steps 1, ... code a column each, then each grows a tree."""
    counters, forests, done = state.counters, state.forests, 0
    side, n = counters[SIDE] % 2, counters[FROZEN]
    n_columns = forests.sizes[side]
    while counters[STEP] > 0:
        step = counters[STEP]
        done += cost_of(step, n, n_columns)
        if done > BUDGET and done > cost_of(step, n, n_columns):
            return
        if step < n_columns:
            _code_column(step, side, state)
        else:
            grow(step - n_columns, n, side, regression, state.training, forests)
        counters[STEP] += 1
        if counters[STEP] == n_columns + N_TREES:
            counters[STEP], counters[SIDE] = 0, side + 1
