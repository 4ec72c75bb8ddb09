"""The one table that every learner consumes, and how rows become rounds.

A *round* is the set of examples that arrive together, at most one per task. The papers' protocols are its
two extremes: one task a round (Cavallanti et al., section 2), all tasks a round (section 5; OSMTL; ROMCO).
"""

from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import kernel


class Chunk(NamedTuple):
    """A piece of a stream as users hold it: rows in order of arrival."""

    X: Any  # (n, d) array, CSR matrix or data frame
    y: Any  # (n,) labels or real targets
    task: Any = None  # (n,) task ids, any hashables; None: all rows belong to one task
    rounds: Any = None  # (n,) integers, equal consecutive values form a round; None: the learner's own protocol
    weight: Any = None  # (n,) weights of the rows, >= 0; None: all are 1


NO_WEIGHT = np.zeros(0)


class Rounds(NamedTuple):
    """Rows in the form the jitted loops take: CSR or dense features, task columns, targets, round offsets."""

    width: int  # number of columns if the features are dense, 0 if they are sparse
    indptr: IntArray  # (n + 1,) row offsets into indices and values; empty if dense
    indices: IndexArray  # (nnz,) feature columns; empty if dense
    values: FloatArray  # (nnz,) or (n * width,)
    task: IntArray  # (n,) column of the row's task, -1 for a task the model has not seen
    y: FloatArray  # (n,) +1 or -1, or a real target
    starts: IntArray  # (n_rounds + 1,) row offset of each round
    weight: FloatArray = NO_WEIGHT  # (n,) how often each row counts, or empty if each counts once


def n_numbers(rounds: Rounds) -> int:
    """Numbers that the rows hold; of sparse ones `values` may hold those of others, too."""
    return len(rounds.values) if rounds.width else int(rounds.indptr[-1] - rounds.indptr[0])


NO_INDPTR = np.zeros(0, np.int64)
NO_INDICES = np.zeros(0, np.int32)


@kernel(entry=True, allocates=True)
def starts_without_repeats(task: IntArray, n_tasks: int) -> IntArray:
    """Offsets of the maximal runs of rows in which no task repeats (the simultaneous protocol's rounds)."""
    starts = np.empty(len(task) + 1, np.int64)
    seen_in = np.full(n_tasks, -1, np.int64)  # the last round in which the task was seen
    n_rounds = 0
    starts[0] = 0
    for row in range(len(task)):
        if seen_in[task[row]] == n_rounds:
            n_rounds += 1
            starts[n_rounds] = row
        seen_in[task[row]] = n_rounds
    starts[n_rounds + 1] = len(task)
    return starts[: n_rounds + 2]


@kernel(entry=True, allocates=True)
def first_repeat(task: IntArray, starts: IntArray, n_tasks: int) -> int:
    """First row whose task already occurred in its round, or -1."""
    seen_in = np.full(n_tasks, -1, np.int64)
    for r in range(len(starts) - 1):
        for row in range(starts[r], starts[r + 1]):
            if seen_in[task[row]] == r:
                return row
            seen_in[task[row]] = r
    return -1


def form_rounds(task: IntArray, n_tasks: int, rounds: Any, *, simultaneous: bool) -> IntArray:
    """Row offsets of the rounds.

    Parameters
    ----------
    task : (n,) int64
        Task column of each row, below `n_tasks`.
    rounds : None or (n,) integers
        None: each row is a round, or for the simultaneous protocol a round is a maximal run of rows in which
        no task repeats. Integers: rows with equal consecutive values form a round.

    Raises
    ------
    ValueError
        If `rounds` has another length or kind, or a task stands twice in one round (the row is named).
    """
    n = len(task)
    if rounds is None:
        return starts_without_repeats(task, n_tasks) if simultaneous else np.arange(n + 1)
    rounds = np.asarray(rounds)
    if rounds.ndim != 1 or len(rounds) != n:
        raise ValueError(f"rounds must hold one integer per row: expected shape ({n},), got {rounds.shape}")
    if rounds.dtype.kind not in "iu":
        raise ValueError(f"rounds must be integers, one per row, got {rounds.dtype}")
    starts = np.concatenate([[0], np.flatnonzero(np.diff(rounds)) + 1, [n]]).astype(np.int64)
    row = first_repeat(task, starts, n_tasks)
    if row >= 0:
        raise ValueError(
            f"row {row}: its task already has a row in round {rounds[row]}; a round holds one row per task"
        )
    return starts


def cut(rounds: Rounds, first: int, last: int) -> Rounds:
    """The rows from first to last."""
    if (first, last) == (0, len(rounds.task)):
        return rounds
    width, starts = rounds.width, rounds.starts
    if len(starts) == len(rounds.task) + 1:  # each row is a round
        starts = starts[: last - first + 1]
    else:
        starts = starts[np.searchsorted(starts, first) :]
        starts = starts[: np.searchsorted(starts, last, "right")] - first
    return rounds._replace(
        indptr=rounds.indptr if width else rounds.indptr[first : last + 1],
        values=rounds.values[first * width : last * width] if width else rounds.values,
        task=rounds.task[first:last],
        y=rounds.y[first:last],
        weight=rounds.weight[first:last],
        starts=starts,
    )
