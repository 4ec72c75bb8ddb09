"""A forest: its columns, the codes of their values, what it answers and why.

Columns are the task, its running mean, its last value, and the row's values. Each value has a code: how many of the
column's edges lie below it (0 to 31), or MISSING; the task's code is the place that it had when the forest was trained.
A split sends a set of codes to the left, so that numbers, missing values and categories are split alike.

A tree is answered without walking it (Lucchese et al. 2015): each column and code has a set of leaves that they leave
possible, one bit a leaf; what is possible by all columns is the one leaf that the row reaches. A column's sets of all
trees lie side by side, so that one SIMD operation does 8 or 16 trees.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import INFINITE, OTHER, ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import lowest_bit

TASK_COLUMN, MEAN_COLUMN, LAST_COLUMN, FIRST_COLUMN = range(4)  # the row's values begin at the last of these
N_CODES = 64
N_EDGES = 31
MISSING = 32  # the code of NaN
N_PLACES = 63  # of tasks, from 1; 0 is the place of those that came after the training
N_SMALL, N_TREES = 120, 240  # trees of 16 leaves, and with those of 32 leaves after them
FEW_LEAVES, N_LEAVES = 16, 32
STAGES = (20, 60, N_SMALL, N_TREES)  # where the trees end whose sum an expert answers; the last has the large ones
LANES = N_TREES  # whole SIMD vectors
PRIOR_ROWS = 3.0  # of the mean of all, in a task's running mean
ALL = np.uint32(2**32 - 1)  # leaves
KEPT = 0.7  # of a task's last value when the next label comes

CodeArray = NDArray[np.uint8]
SetArray = NDArray[np.uint32]
SmallArray = NDArray[np.int8]
ValueArray = NDArray[np.float32]
U = np.uint64


class Forests(NamedTuple):
    """Two: one answers while the other is trained."""

    edges: Annotated[ValueArray, ROW, INFINITE]  # (2, columns, 31) ascending, filled up by infinity
    possible: Annotated[SetArray, ROW]  # (2, columns, 64, 240) sets of leaves, by column, code and tree
    leaves: Annotated[FloatArray, ROW]  # (2, 240, 32) values
    is_used: Annotated[IntArray, ROW]  # (2, columns) whether any split is on the column
    column: Annotated[SmallArray, ROW]  # (2, 240, 31) of each split in order, or -1
    parent: Annotated[SmallArray, ROW]  # (2, 240, 31) the leaf that was split; its right part is leaf 1 + the split
    left: Annotated[NDArray[np.uint64], ROW]  # (2, 240, 31) which codes go to the left, one bit each
    values: Annotated[FloatArray, ROW]  # (2, 240, 63) of the root, then of each split's left and right part
    units: Annotated[FloatArray, ROW]  # (2, 2) intercept and scale: an answer is intercept + scale * sum of leaves
    sizes: Annotated[IntArray, ROW]  # (2,) columns


class Tasks(NamedTuple):
    """The source of two columns and of the places of tasks."""

    sums: Annotated[FloatArray, TASK, OTHER]  # (tasks, 3) weight, weighted targets, last value
    places: Annotated[IntArray, TASK, OTHER]  # (tasks, 2) from 1, in each forest; 0: none
    total: FloatArray  # (2,) weight and weighted targets of all


def new_forests(n_columns: int) -> Forests:
    """Untrained forests for this number of columns."""
    trees = N_TREES if n_columns > 0 else 0
    splits = (2, trees, N_LEAVES - 1)
    return Forests(
        np.full((2, n_columns, N_EDGES), np.inf, np.float32),
        aligned_zeros((2, n_columns, N_CODES, LANES), np.uint32),
        np.zeros((2, trees, N_LEAVES)),
        np.zeros((2, n_columns), np.int64),
        np.full(splits, -1, np.int8),
        np.zeros(splits, np.int8),
        np.zeros(splits, np.uint64),
        np.zeros((2, trees, 2 * N_LEAVES - 1)),
        np.zeros((2, 2)),
        np.zeros(2, np.int64),
    )


def new_tasks(n_tasks: int) -> Tasks:
    """Nothing seen."""
    return Tasks(np.zeros((n_tasks, 3)), np.zeros((n_tasks, 2), np.int64), np.zeros(2))


@kernel(sums="exact", alone=False)
def mean_of_all(tasks: Tasks) -> float:
    return float(tasks.total[1] / tasks.total[0]) if tasks.total[0] > 0.0 else 0.0


@kernel(sums="exact", alone=False)
def mean_of(task: int, tasks: Tasks) -> float:
    """The task's running mean, with three rows of the mean of all; that mean if the task is unseen (-1)."""
    overall = mean_of_all(tasks)
    if task < 0 or tasks.sums[task, 0] == 0.0:
        return overall
    return float((tasks.sums[task, 1] + PRIOR_ROWS * overall) / (tasks.sums[task, 0] + PRIOR_ROWS))


@kernel(sums="exact", alone=False)
def last_of(task: int, tasks: Tasks) -> float:
    """The task's last value, or the mean of all."""
    return tasks.sums[task, 2] if task >= 0 and tasks.sums[task, 0] > 0.0 else mean_of_all(tasks)


@kernel(sums="exact", alone=False)
def learn_target(task: int, y: float, h: float, regression: bool, tasks: Tasks) -> None:
    """A task's target, 0 or 1 or real, that counts h times."""
    sums, total = tasks.sums[task], tasks.total
    sums[2] = y if regression else KEPT * last_of(task, tasks) + (1.0 - KEPT) * y
    sums[0] += h
    sums[1] += h * y
    total[0] += h
    total[1] += h * y


@kernel(alone=False)
def code_of(value: np.float32, edges: ValueArray) -> int:
    """How many of the 31 edges are below the value; MISSING for NaN."""
    if value != value:
        return MISSING
    at = 0
    for step in (16, 8, 4, 2, 1):
        at += step * int(edges[U(at + step - 1)] < value)
    return at


@kernel(alone=False)
def row_code(c: int, d: int, x: FloatArray, task: int, side: int, forests: Forests, tasks: Tasks) -> int:
    """The code in column c of a row of d values; those that it has not got are 0."""
    if c == TASK_COLUMN:
        return tasks.places[task, side] if task >= 0 else 0
    value = 0.0
    if c == MEAN_COLUMN:
        value = mean_of(task, tasks)
    elif c == LAST_COLUMN:
        value = last_of(task, tasks)
    elif c - FIRST_COLUMN < d:
        value = x[c - FIRST_COLUMN]
    return code_of(np.float32(value), forests.edges[side, c])


@kernel(inline=False, sums="exact")
def ask(
    d: int, x: FloatArray, task: int, side: int, forests: Forests, tasks: Tasks, possible: SetArray, out: FloatArray
) -> None:
    """out[i] <- the answer of the i-th expert's trees; `possible` is scratch, one set a tree."""
    for t in range(len(possible)):
        possible[t] = ALL
    for c in range(forests.sizes[side]):
        if forests.is_used[side, c]:
            sets = forests.possible[side, c, row_code(c, d, x, task, side, forests, tasks)]
            for t in range(len(possible)):
                possible[t] &= sets[t]
    leaves, first, total = forests.leaves[side], 0, 0.0
    intercept, scale = forests.units[side, 0], forests.units[side, 1]
    for i in range(len(STAGES)):
        even = odd = 0.0
        total = 0.0 if first == N_SMALL else total
        for t in range(first, STAGES[i], 2):
            even += leaves[t, lowest_bit(U(possible[t]))]
            odd += leaves[t + 1, lowest_bit(U(possible[t + 1]))]
        total += even + odd
        out[i] = intercept + scale * total
        first = STAGES[i]


@kernel(inline=False, sums="exact")
def shares(
    d: int, x: FloatArray, task: int, side: int, stage: int, forests: Forests, tasks: Tasks, out: FloatArray
) -> float:
    """out[c] <- how much column c moves the answer of a stage; return the rest, which no column moves.

    Each split moves the answer from its leaf's value to that of the part which the row belongs to (Saabas 2014).
    """
    intercept, scale = forests.units[side, 0], forests.units[side, 1]
    for c in range(len(out)):
        out[c] = 0.0
    for t in range(N_SMALL if stage > N_SMALL else 0, stage):
        values, leaf = forests.values[side, t], 0
        value = values[0]
        intercept += scale * value
        for s in range(N_LEAVES - 1):
            c = forests.column[side, t, s]
            if c >= 0 and forests.parent[side, t, s] == leaf:
                code = row_code(c, d, x, task, side, forests, tasks)
                goes_left = (forests.left[side, t, s] >> U(code)) & U(1) == U(1)
                new = values[1 + 2 * s] if goes_left else values[2 + 2 * s]
                out[c] += scale * (new - value)
                value, leaf = new, leaf if goes_left else 1 + s
    return float(intercept)


@kernel(inline=False, alone=False)
def fill_sets(side: int, forests: Forests) -> None:
    """No column says anything."""
    for c in range(len(forests.is_used[side])):
        forests.is_used[side, c] = 0
        for code in range(N_CODES):
            sets = forests.possible[side, c, code]
            for t in range(len(sets)):
                sets[t] = ALL


@kernel(inline=False, alone=False)
def spread(side: int, t: int, forests: Forests) -> None:
    """Fill the leaves and the sets of tree t, for `ask`, from its splits. The sets of all columns are full so far."""
    column, parent, values = forests.column[side, t], forests.parent[side, t], forests.values[side, t]
    leaves = forests.leaves[side, t]
    leaves[0] = values[0]
    for s in range(N_LEAVES - 1):
        if column[s] < 0:
            return
        leaves[parent[s]], leaves[s + 1] = values[1 + 2 * s], values[2 + 2 * s]
        forests.is_used[side, column[s]] = 1
        left, right = U(1) << U(parent[s]), U(1) << U(s + 1)
        for later in range(s + 1, N_LEAVES - 1):
            if column[later] >= 0:
                child, bit = U(1) << U(later + 1), U(parent[later])
                left |= child * ((left >> bit) & U(1))
                right |= child * ((right >> bit) & U(1))
        sets = forests.possible[side, column[s]]
        for code in range(N_CODES):
            goes_left = (forests.left[side, t, s] >> U(code)) & U(1) == U(1)
            sets[code, t] &= np.uint32(U(ALL) ^ (right if goes_left else left))
