"""The area under the ROC curve, of all rows and of every task at once.

A positive row wins over each negative row of lower score, half over one of equal score; the AUC is the share
of pairs won. Scores are sorted apart from their rows, which is much faster than to find an order of the rows: those
of all positive and of all negative rows, and those of each task. What is sorted already is merged with what comes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel

FEW = 32  # scores that are sorted by insertion: a call of NumPy's sort would take longer

BoolArray = NDArray[np.bool_]


class Kept(NamedTuple):
    """Rows as the AUC needs them."""

    tag: NDArray[np.int32]  # (n,) twice the task's number, and one more if the label is the larger one
    score: FloatArray  # (n,)


class Sorted(NamedTuple):
    """The scores of rows, in order within each tag, and again within each label."""

    scores: FloatArray  # (n,) by tag
    starts: IntArray  # (2 n_tasks + 1,) where the scores of each tag begin, and the end
    negative: FloatArray
    positive: FloatArray


@kernel(entry=True, allocates=True)
def _grouped(rows: Kept, n_tags: int) -> Sorted:
    """The scores by tag and by label; of the tags, only those of few rows are sorted."""
    starts = np.zeros(n_tags + 1, np.int64)
    for tag in rows.tag:
        starts[np.uint32(tag) + 1] += 1
    n_positive = 0
    for tag in range(n_tags):
        n_positive += starts[tag + 1] * (tag % 2)
        starts[tag + 1] += starts[tag]
    place, scores = starts.copy(), np.empty(len(rows.tag))
    by_label = np.empty(len(rows.tag))
    next_of = np.zeros(2, np.int64)  # np.array of two numbers takes longer to compile
    next_of[1] = len(rows.tag) - n_positive
    for row in range(len(rows.tag)):
        tag, score = np.uint32(rows.tag[row]), rows.score[row]
        scores[np.uint64(place[tag])] = by_label[np.uint64(next_of[tag & np.uint32(1)])] = score
        place[tag] += 1
        next_of[tag & np.uint32(1)] += 1
    for tag in range(n_tags):
        if starts[tag + 1] - starts[tag] <= FEW:
            _insertion_sort(scores[starts[tag] : starts[tag + 1]])
    return Sorted(scores, starts, by_label[: len(rows.tag) - n_positive], by_label[len(rows.tag) - n_positive :])


@kernel(alone=False)
def _insertion_sort(scores: FloatArray) -> None:
    for i in range(1, len(scores)):
        score, p = scores[i], i
        while p > 0 and scores[p - 1] > score:
            scores[p] = scores[p - 1]
            p -= 1
        scores[p] = score


@kernel(alone=False)
def _share_won(negative: FloatArray, positive: FloatArray) -> float:
    """Of the pairs, from sorted scores; NaN if there are none."""
    wins = lower = not_higher = 0  # wins count twice, negative rows those below and up to the score
    for score in positive:
        while lower < len(negative) and negative[lower] < score:
            lower += 1
        not_higher = max(lower, not_higher)
        while not_higher < len(negative) and negative[not_higher] <= score:
            not_higher += 1
        wins += lower + not_higher
    pairs = float(len(negative)) * len(positive)
    return 0.5 * wins / pairs if pairs > 0.0 else np.nan


@kernel(entry=True, allocates=True)
def _shares_won(rows: Sorted) -> FloatArray:
    """Of each task, and last of all rows."""
    n_tasks = len(rows.starts) // 2
    shares = np.empty(n_tasks + 1)
    for task in range(n_tasks):
        a, b, c = rows.starts[2 * task], rows.starts[2 * task + 1], rows.starts[2 * task + 2]
        shares[task] = _share_won(rows.scores[a:b], rows.scores[b:c])
    shares[n_tasks] = _share_won(rows.negative, rows.positive)
    return shares


@kernel(alone=False)
def _merge(a: FloatArray, b: FloatArray, merged: FloatArray) -> None:
    """Two sorted runs as one; without a branch that depends on the scores, which no processor could foresee."""
    i = j = p = 0
    while i < len(a) and j < len(b):
        x, y = a[i], b[j]
        from_b = y < x
        merged[p] = y if from_b else x
        i += 1 - int(from_b)
        j += int(from_b)
        p += 1
    for q in range(p, p + len(a) - i):
        merged[q] = a[i + q - p]
    for q in range(p + len(a) - i, len(merged)):
        merged[q] = b[q - len(a)]


@kernel(entry=True, allocates=True)
def merged(a: Sorted, b: Sorted) -> Sorted:
    """Both, of the same tasks."""
    starts, scores = a.starts + b.starts, np.empty(len(a.scores) + len(b.scores))
    for tag in range(len(starts) - 1):
        mine, theirs = slice(a.starts[tag], a.starts[tag + 1]), slice(b.starts[tag], b.starts[tag + 1])
        _merge(a.scores[mine], b.scores[theirs], scores[starts[tag] : starts[tag + 1]])
    negative, positive = np.empty(len(a.negative) + len(b.negative)), np.empty(len(a.positive) + len(b.positive))
    _merge(a.negative, b.negative, negative)
    _merge(a.positive, b.positive, positive)
    return Sorted(scores, starts, negative, positive)


def aucs(code: IntArray, positive: BoolArray, score: FloatArray, n_tasks: int) -> tuple[float, FloatArray]:
    """AUC over all rows, and of each task.

    Parameters
    ----------
    code : (n,) integers
        The row's task, from 0 to `n_tasks` - 1.
    positive : (n,) bool
        Whether the label is the larger one.
    score : (n,) float64
        Decision values; ties count half.

    Returns
    -------
    overall : float
    per_task : (n_tasks,) float64
        NaN where a task lacks one of the labels.

    Examples
    --------
    >>> overall, per_task = aucs(np.array([0, 0, 1, 1]), np.array([True, False, True, False]),
    ...                          np.array([0.5, 0.1, 0.2, 0.2]), 2)
    >>> overall, per_task.tolist()
    (0.875, [1.0, 0.5])
    """
    rows = Kept(np.asarray(2 * code + positive, np.int32), np.asarray(score, np.float64))
    return aucs_of(in_order(rows, n_tasks))


def in_order(rows: Kept, n_tasks: int) -> Sorted:
    """The scores, sorted."""
    grouped = _grouped(rows, 2 * n_tasks)
    for label in (grouped.negative, grouped.positive):
        label.sort()
    for tag in np.flatnonzero(np.diff(grouped.starts) > FEW):
        grouped.scores[grouped.starts[tag] : grouped.starts[tag + 1]].sort()
    return grouped


def for_tasks(rows: Sorted, n_tasks: int) -> Sorted:
    """The same rows, beside tasks that have none."""
    more = 2 * n_tasks + 1 - len(rows.starts)
    return rows._replace(starts=np.pad(rows.starts, (0, more), mode="edge")) if more > 0 else rows


def in_any_order(rows: Sorted) -> Kept:
    """The rows again, though not in the order in which they came."""
    return Kept(np.repeat(np.arange(len(rows.starts) - 1, dtype=np.int32), np.diff(rows.starts)), rows.scores)


def aucs_of(rows: Sorted) -> tuple[float, FloatArray]:
    """AUC over all rows, and of each task."""
    shares = _shares_won(rows)
    return float(shares[-1]), shares[:-1]
