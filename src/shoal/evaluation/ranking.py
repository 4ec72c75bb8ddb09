"""The area under the ROC curve, of all rows and of every task at once.

A positive row wins over each negative row of lower score, half over one of equal score; the AUC is the share
of pairs won. One sort by score and one pass over it serve all tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.protocol import Values
from shoal.ops import jit
from shoal.rounds import FloatArray, IntArray

MAX_SCORES = 20_000_000
SEED = 20_20

BoolArray = NDArray[np.bool_]


class Kept(NamedTuple):
    """Rows as the AUC needs them."""

    tag: NDArray[np.int32]  # (n,) twice the task's number, and one more if the label is the larger one
    score: FloatArray  # (n,)


NONE = Kept(np.zeros(0, np.int32), np.zeros(0))


@jit
def _count_wins(tagged: NDArray[np.int32], score: FloatArray, n_tasks: int) -> tuple[IntArray, IntArray, IntArray]:
    """Twice the wins, positives, negatives: of each task, and last of all rows. Rows come by score, tags are 2k + y."""
    wins = np.zeros(n_tasks + 1, np.int64)
    positives = np.zeros(n_tasks + 1, np.int64)
    negatives = np.zeros(n_tasks + 1, np.int64)
    first = 0
    while first < len(score):
        last = first + 1  # rows first to last - 1 have the same score
        while last < len(score) and score[last] == score[first]:
            last += 1
        for after in range(2):  # negatives below count before the tied ones are added, and again after: half a win
            for p in range(first, last):
                if tagged[p] % 2 == 1:
                    wins[tagged[p] // 2] += negatives[tagged[p] // 2]
                    wins[n_tasks] += negatives[n_tasks]
            if after == 0:
                for p in range(first, last):
                    counts = positives if tagged[p] % 2 == 1 else negatives
                    counts[tagged[p] // 2] += 1
                    counts[n_tasks] += 1
        first = last
    return wins, positives, negatives


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
    return _aucs(_by_score(Kept(np.asarray(2 * code + positive, np.int32), score)), n_tasks)


def _aucs(rows: Kept, n_tasks: int) -> tuple[float, FloatArray]:
    wins, positives, negatives = _count_wins(rows.tag, rows.score, n_tasks)
    with np.errstate(invalid="ignore"):
        values = wins / (2.0 * positives * negatives)
    return float(values[-1]), values[:-1]


def _joined(runs: list[Kept]) -> Kept:
    runs = [run for run in runs if len(run.tag)]
    return runs[0] if len(runs) == 1 else Kept(*map(np.concatenate, zip(*runs, strict=True)))


def _by_score(rows: Kept) -> Kept:
    order = np.argsort(rows.score)
    return Kept(rows.tag[order], rows.score[order])


@jit
def _merge(a: Kept, b: Kept) -> Kept:
    """Two runs in the order of their scores as one."""
    n = len(a.tag) + len(b.tag)
    tag, score = np.empty(n, np.int32), np.empty(n)
    i = j = 0
    for p in range(n):
        if j == len(b.tag) or (i < len(a.tag) and a.score[i] <= b.score[j]):
            tag[p], score[p] = a.tag[i], a.score[i]
            i += 1
        else:
            tag[p], score[p] = b.tag[j], b.score[j]
            j += 1
    return Kept(tag, score)


class Ranking:
    """AUC: exact over all rows up to `max_scores`, beyond that over a uniform sample of that many rows."""

    names = ("auc",)

    def __init__(self, max_scores: int = MAX_SCORES) -> None:
        self.max_scores = max_scores
        self.seen = 0
        self._sorted = NONE
        self._pieces: list[Kept] = []  # what came since
        self._kept = 0
        self._random = np.random.default_rng(SEED)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Keep the rows: task code, label, score."""
        rows = Kept(np.asarray(2 * code + (truth > 0), np.int32), score)
        room = self.max_scores - self._kept
        if room > 0:
            self._pieces.append(Kept(rows.tag[:room], score[:room].copy()))
            self._kept += len(score[:room])
            self.seen += len(score[:room])
        if len(score) > room:
            self._replace(Kept(rows.tag[room:], score[room:]))

    def _replace(self, rows: Kept) -> None:
        """Algorithm R, a piece at a time: row t takes the place of a kept row with chance max_scores / t."""
        t = self.seen + np.arange(1, len(rows.tag) + 1)
        place = (self._random.random(len(rows.tag)) * t).astype(np.int64)
        taken = np.flatnonzero(place < self.max_scores)
        kept = _joined([self._sorted, *self._pieces])
        kept.tag[place[taken]] = rows.tag[taken]  # of two rows for one place the later stays
        kept.score[place[taken]] = rows.score[taken]
        self._sorted, self._pieces = NONE, [kept]
        self.seen += len(rows.tag)

    def values(self, n_tasks: int) -> dict[str, Values]:
        """AUC over the rows kept."""
        if not self._kept:
            return {"auc": Values(float("nan"), np.full(n_tasks, np.nan))}
        if self._pieces:
            self._sorted, self._pieces = _merge(self._sorted, _by_score(_joined(self._pieces))), []
        return {"auc": Values(*_aucs(self._sorted, n_tasks))}

    def notes(self) -> list[str]:
        """What the reader must know: whether the AUC is that of a sample."""
        if self.seen <= self.max_scores:
            return []
        return [f"AUC is that of a uniform sample of {self.max_scores:,} of {self.seen:,} rows"]
