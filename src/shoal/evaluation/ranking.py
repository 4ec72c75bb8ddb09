"""The area under the ROC curve, of all rows and of every task at once.

A positive row wins over each negative row of lower score, half over one of equal score; the AUC is the share
of pairs won. One sort by score and one pass over it serve all tasks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.protocol import Values
from shoal.ops import jit
from shoal.rounds import FloatArray, IntArray

MAX_SCORES = 20_000_000
SEED = 20_20

BoolArray = NDArray[np.bool_]


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
    order = np.argsort(score)
    tagged = np.asarray(2 * code + positive, np.int32)  # gathered once: rows in the order of their scores lie anywhere
    wins, positives, negatives = _count_wins(tagged[order], score[order], n_tasks)
    with np.errstate(invalid="ignore"):
        values = wins / (2.0 * positives * negatives)
    return float(values[-1]), values[:-1]


class Ranking:
    """AUC: exact over all rows up to `max_scores`, beyond that over a uniform sample of that many rows."""

    names = ("auc",)

    def __init__(self, max_scores: int = MAX_SCORES) -> None:
        self.max_scores = max_scores
        self.seen = 0
        self._pieces: list[tuple[IntArray, BoolArray, FloatArray]] = []
        self._kept = 0
        self._random = np.random.default_rng(SEED)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Keep the rows: task code, label, score."""
        room = self.max_scores - self._kept
        if room > 0:
            self._pieces.append((code[:room].astype(np.int32), truth[:room] > 0, score[:room]))
            self._kept += len(score[:room])
            self.seen += len(score[:room])
            code, truth, score = code[room:], truth[room:], score[room:]
        if len(score):
            self._replace(code, truth > 0, score)

    def _replace(self, code: IntArray, positive: BoolArray, score: FloatArray) -> None:
        """Algorithm R, a piece at a time: row t takes the place of a kept row with chance max_scores / t."""
        t = self.seen + np.arange(1, len(score) + 1)
        place = (self._random.random(len(score)) * t).astype(np.int64)
        taken = np.flatnonzero(place < self.max_scores)
        for kept, new in zip(self._joined(), (code, positive, score), strict=True):
            kept[place[taken]] = new[taken]  # of two rows for one place the later stays
        self.seen += len(score)

    def _joined(self) -> tuple[IntArray, BoolArray, FloatArray]:
        if len(self._pieces) != 1:
            joined = tuple(np.concatenate(column) for column in zip(*self._pieces, strict=True))
            self._pieces = [joined]  # type: ignore[list-item]
        return self._pieces[0]

    def values(self, n_tasks: int) -> dict[str, Values]:
        """AUC over the rows kept."""
        if not self._pieces:
            return {"auc": Values(float("nan"), np.full(n_tasks, np.nan))}
        return {"auc": Values(*aucs(*self._joined(), n_tasks))}

    def notes(self) -> list[str]:
        """What the reader must know: whether the AUC is that of a sample."""
        if self.seen <= self.max_scores:
            return []
        return [f"AUC is that of a uniform sample of {self.max_scores:,} of {self.seen:,} rows"]
