"""The area under the ROC curve, of all rows and of every task at once.

A positive row wins over each negative row of lower score, half over one of equal score; the AUC is the share
of pairs won. Scores are sorted apart from their rows, which is much faster than to find an order of the rows: those
of all positive and of all negative rows, and those of each task.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.protocol import Values
from shoal.ops import jit, leaf
from shoal.rounds import FloatArray, IntArray

MAX_SCORES = 20_000_000
SEED = 20_20
FEW = 32  # scores that are sorted by insertion: a call of NumPy's sort would take longer

BoolArray = NDArray[np.bool_]


class Kept(NamedTuple):
    """Rows as the AUC needs them."""

    tag: NDArray[np.int32]  # (n,) twice the task's number, and one more if the label is the larger one
    score: FloatArray  # (n,)


@jit
def _grouped(rows: Kept, n_tags: int) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """The scores by tag, those of few rows sorted, and where each tag begins; and all negative, all positive scores."""
    starts = np.zeros(n_tags + 1, np.int64)
    for tag in rows.tag:
        starts[np.uint32(tag) + 1] += 1
    n_positive = 0
    for tag in range(n_tags):
        n_positive += starts[tag + 1] * (tag % 2)
        starts[tag + 1] += starts[tag]
    place, scores = starts.copy(), np.empty(len(rows.tag))
    by_label = np.empty(len(rows.tag))
    next_of = np.array([0, len(rows.tag) - n_positive])
    for row in range(len(rows.tag)):
        tag, score = np.uint32(rows.tag[row]), rows.score[row]
        scores[np.uint64(place[tag])] = by_label[np.uint64(next_of[tag & np.uint32(1)])] = score
        place[tag] += 1
        next_of[tag & np.uint32(1)] += 1
    for tag in range(n_tags):
        if starts[tag + 1] - starts[tag] <= FEW:
            _insertion_sort(scores[starts[tag] : starts[tag + 1]])
    return scores, starts, by_label[: len(rows.tag) - n_positive], by_label[len(rows.tag) - n_positive :]


@leaf
def _insertion_sort(scores: FloatArray) -> None:
    for i in range(1, len(scores)):
        score, p = scores[i], i
        while p > 0 and scores[p - 1] > score:
            scores[p] = scores[p - 1]
            p -= 1
        scores[p] = score


@leaf
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


@jit
def _shares_won(scores: FloatArray, starts: IntArray, negative: FloatArray, positive: FloatArray) -> FloatArray:
    """Of each task, and last of all rows; all scores are sorted."""
    n_tasks = len(starts) // 2
    shares = np.empty(n_tasks + 1)
    for task in range(n_tasks):
        a, b, c = starts[2 * task], starts[2 * task + 1], starts[2 * task + 2]
        shares[task] = _share_won(scores[a:b], scores[b:c])
    shares[n_tasks] = _share_won(negative, positive)
    return shares


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
    return _aucs(Kept(np.asarray(2 * code + positive, np.int32), np.asarray(score, np.float64)), n_tasks)


def _aucs(rows: Kept, n_tasks: int) -> tuple[float, FloatArray]:
    scores, starts, *by_label = _grouped(rows, 2 * n_tasks)
    for part in by_label:
        part.sort()
    for tag in np.flatnonzero(np.diff(starts) > FEW):
        scores[starts[tag] : starts[tag + 1]].sort()
    shares = _shares_won(scores, starts, *by_label)
    return float(shares[-1]), shares[:-1]


class Ranking:
    """AUC: exact over all rows up to `max_scores`, beyond that over a uniform sample of that many rows."""

    names = ("auc",)

    def __init__(self, max_scores: int = MAX_SCORES) -> None:
        self.max_scores = max_scores
        self.seen = 0
        self._pieces: list[Kept] = []
        self._kept = 0
        self._random = np.random.default_rng(SEED)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Keep the rows: task code, label, score."""
        rows = Kept(np.asarray(2 * code + (truth > 0), np.int32), score)
        room = self.max_scores - self._kept
        if room > 0:
            copied = score[:room].copy()  # kept scores are replaced in place, the caller's must not be
            self._pieces.append(Kept(rows.tag[:room], copied))
            self._kept += len(score[:room])
            self.seen += len(score[:room])
        if len(score) > room:
            self._replace(Kept(rows.tag[room:], score[room:]))

    def _replace(self, rows: Kept) -> None:
        """Algorithm R, a piece at a time: row t takes the place of a kept row with chance max_scores / t."""
        t = self.seen + np.arange(1, len(rows.tag) + 1)
        place = (self._random.random(len(rows.tag)) * t).astype(np.int64)
        taken = np.flatnonzero(place < self.max_scores)
        kept = self._joined()
        kept.tag[place[taken]] = rows.tag[taken]  # of two rows for one place the later stays
        kept.score[place[taken]] = rows.score[taken]
        self.seen += len(rows.tag)

    def _joined(self) -> Kept:
        if len(self._pieces) > 1:
            self._pieces = [Kept(*map(np.concatenate, zip(*self._pieces, strict=True)))]
        return self._pieces[0]

    def values(self, n_tasks: int) -> dict[str, Values]:
        """AUC over the rows kept."""
        if not self._pieces:
            return {"auc": Values(float("nan"), np.full(n_tasks, np.nan))}
        return {"auc": Values(*_aucs(self._joined(), n_tasks))}

    def notes(self) -> list[str]:
        """What the reader must know: whether the AUC is that of a sample."""
        if self.seen <= self.max_scores:
            return []
        return [f"AUC is that of a uniform sample of {self.max_scores:,} of {self.seen:,} rows"]
