"""The AUC of any number of rows in bounded memory, with a bound on its error.

Scores are rounded to so many bits of their mantissa, and rows of equal task, label and rounded score are counted
together. Rounding keeps the order of scores but makes ties, which count half; so the AUC is wrong by at most half the
share of pairs that are tied. That bound is known, because the ties are counted. Sketches of parts of a stream merge
exactly, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray

MANTISSA = 10  # bits of it that are kept: scores within 0.1 % of each other are tied
MAX_CELLS = 4_000_000  # of 16 bytes; beyond, a bit less is kept
PENDING = 200_000  # rows that wait to be counted
SCORE_BITS = 12 + MANTISSA  # sign, exponent and mantissa


class BoundedAUC(NamedTuple):
    """AUC over all rows and of each task, and how far it may be off; NaN where it is undefined."""

    overall: float
    per_task: FloatArray
    overall_bound: float
    per_task_bound: FloatArray


class ScoreSketch:
    """Counts of rounded scores by task and label."""

    def __init__(self, max_cells: int = MAX_CELLS) -> None:
        self.max_cells = max_cells
        self.rows = 0
        self._dropped = 0  # further bits
        self._keys = np.zeros(0, np.int64)  # sorted: tag, then rounded score
        self._counts = np.zeros(0, np.int64)
        self._pending: list[IntArray] = []
        self._n_pending = 0

    def update(self, tag: NDArray[np.int32], score: FloatArray) -> None:
        """Count rows; a tag is twice the task's number, and one more for the larger label."""
        self._pending.append(self._coarser((tag.astype(np.int64) << SCORE_BITS) | _rounded(score)))
        self._n_pending += len(score)
        self.rows += len(score)
        if self._n_pending >= PENDING:
            self._settle()

    def merge(self, other: ScoreSketch) -> None:
        """Add the counts of another sketch; do not use it afterwards."""
        other._settle()
        self._settle()
        dropped = max(self._dropped, other._dropped)
        for sketch in (self, other):
            sketch._drop_to(dropped)
        self._count(np.concatenate([self._keys, other._keys]), np.concatenate([self._counts, other._counts]))
        self.rows += other.rows

    def _settle(self) -> None:
        """Count the rows that wait."""
        if self._pending:
            keys = [self._keys, *self._pending]
            counts = np.ones(self._n_pending, np.int64)
            self._pending, self._n_pending = [], 0
            self._count(np.concatenate(keys), np.concatenate([self._counts, counts]))

    def _count(self, keys: IntArray, counts: IntArray) -> None:
        """Add up equal keys; keep a bit less of the scores while there are too many."""
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        self._keys, self._counts = keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts
        while len(self._keys) > self.max_cells and self._dropped < MANTISSA:
            self._drop_to(self._dropped + 1)

    def _drop_to(self, dropped: int) -> None:
        if dropped > self._dropped:
            self._dropped = dropped
            self._count(self._coarser(self._keys), self._counts)

    def _coarser(self, keys: IntArray) -> IntArray:
        return (keys >> self._dropped) << self._dropped

    @property
    def largest_task(self) -> int:
        """The largest number of a task; -1 without rows."""
        self._settle()
        return int(self._keys[-1] >> (SCORE_BITS + 1)) if len(self._keys) else -1

    def auc(self, n_tasks: int) -> BoundedAUC:
        """The AUC and its bounds."""
        self._settle()
        tag, score = self._keys >> SCORE_BITS, self._keys & ((1 << SCORE_BITS) - 1)
        cells, which = np.unique((tag >> 1 << SCORE_BITS) | score, return_inverse=True)
        positive = (tag & 1).astype(bool)
        counts = np.zeros((2, len(cells)))
        for row, mine in enumerate((~positive, positive)):
            np.add.at(counts[row], which[mine], self._counts[mine])
        per_task, per_task_bound = _auc(cells >> SCORE_BITS, counts, n_tasks)
        values, place = np.unique(cells & ((1 << SCORE_BITS) - 1), return_inverse=True)
        all_tasks = np.zeros((2, len(values)))
        for row in range(2):
            np.add.at(all_tasks[row], place, counts[row])
        overall, overall_bound = _auc(np.zeros(len(values), np.int64), all_tasks, 1)
        return BoundedAUC(float(overall[0]), per_task, float(overall_bound[0]), per_task_bound)


def _rounded(score: FloatArray) -> IntArray:
    """Integers below 2**SCORE_BITS in the order of the scores: the leading bits of each number."""
    bits = (score + 0.0).view(np.int64)  # + 0.0 makes -0.0 the zero that it equals
    ordered = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return (ordered >> (64 - SCORE_BITS)) + (1 << (SCORE_BITS - 1))


def _auc(group: IntArray, counts: FloatArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
    """Of each group, whose cells stand together in the order of scores: the AUC, and half the share of tied pairs."""
    negative, positive = counts
    n_negative, n_positive = (np.bincount(group, row, n_groups) for row in counts)
    before = np.cumsum(negative) - negative
    below = before - (np.cumsum(n_negative) - n_negative)[group]  # negatives of the same group with lower scores
    won = np.bincount(group, positive * (below + 0.5 * negative), n_groups)
    tied = np.bincount(group, 0.5 * positive * negative, n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = n_negative * n_positive
        return np.true_divide(won, pairs), np.true_divide(tied, pairs)
