"""The area under the ROC curve of a stream: exact up to a million rows, with a stated bound on its error beyond.

A positive row wins over each negative row of lower score, and half over one of equal score; the AUC is the share of
pairs won, over all rows and within each task.

Exact: the scores of each task and label are sorted by themselves, which is much faster than to find an order of the
rows, and sorted pieces are merged as the stream goes on.

Beyond `max_rows`: scores are rounded to the leading bits of their mantissa, and rows of equal task, label and rounded
score are counted together. Rounding keeps the order of scores but makes ties, which count half; so the AUC is wrong by
at most half the share of pairs that are tied, and these are counted. Sketches of parts of a stream merge exactly, in
any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.evaluation.metrics.metric import Values

MAX_ROWS = 1_000_000
FEW = 32  # scores that are sorted by insertion: a call of NumPy's sort would take longer
MANTISSA = 10  # bits of it that a sketch keeps: scores within 0.1 % of each other are tied
SCORE_BITS = 12 + MANTISSA  # sign, exponent and mantissa
MAX_CELLS = 4_000_000  # of 16 bytes; a larger sketch drops further bits
PENDING = 200_000  # rows that a sketch collects before it counts them

BoolArray = NDArray[np.bool_]


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


class Ranking:
    """The metric: AUC of all rows up to `max_rows` of them, then that of a sketch of bounded size.

    Parameters
    ----------
    max_rows : int
        Rows whose scores are kept.
    """

    names = ("auc",)

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self.max_rows = max_rows
        self.seen = 0
        self._pieces: list[Kept] = []  # unsorted rows
        self._sorted: Sorted | None = None  # all other kept rows
        self._sketch: ScoreSketch | None = None  # of all rows, beyond `max_rows`

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Take in rows: task code, label, score."""
        rows = Kept(np.asarray(2 * code + (truth > 0), np.int32), np.asarray(score, np.float64))
        self.seen += len(rows.tag)
        if self._sketch is None and self.seen > self.max_rows:
            self._sketch = self._as_sketch()
        if self._sketch is None:
            self._pieces.append(rows)
        else:
            self._sketch.update(*rows)

    def _as_sketch(self) -> ScoreSketch:
        """The kept rows as a sketch; the rows themselves are dropped."""
        if self._sketch is not None:
            return self._sketch
        sketch = ScoreSketch()
        for rows in [*self._pieces, *([] if self._sorted is None else [in_any_order(self._sorted)])]:
            sketch.update(*rows)
        self._pieces, self._sorted = [], None
        return sketch

    def absorb(self, later: Ranking, n_tasks: int) -> None:
        """Merge the rows of `later`; do not use it afterwards."""
        if self.seen + later.seen > self.max_rows:
            sketch = self._as_sketch()
            sketch.merge(later._as_sketch())
            self._sketch = sketch
        elif self.seen == 0:
            self._pieces, self._sorted = later._pieces, later._sorted
        elif later.seen > 0:
            self._sorted = merged(self._in_order(n_tasks), later._in_order(n_tasks))
        self.seen += later.seen

    def _in_order(self, n_tasks: int) -> Sorted:
        """All kept rows, sorted; there must be some."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            rows = in_order(Kept(*map(np.concatenate, zip(*pieces, strict=True))), n_tasks)
            self._sorted = rows if self._sorted is None else merged(for_tasks(self._sorted, n_tasks), rows)
        assert self._sorted is not None
        return for_tasks(self._sorted, n_tasks)

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The AUC so far."""
        if self._sketch is not None:
            found = self._sketch.auc(n_tasks)
            return {"auc": Values(found.overall, found.per_task)}
        if self.seen == 0:
            return {"auc": Values(float("nan"), np.full(n_tasks, np.nan))}
        return {"auc": Values(*aucs_of(self._in_order(n_tasks)))}

    def notes(self) -> list[str]:
        """How far the AUC may be off."""
        if self._sketch is None:
            return []
        n_tasks = 1 + max(self._sketch.largest_task, 0)
        found = self._sketch.auc(n_tasks)
        worst = np.nanmax(found.per_task_bound, initial=0.0)
        return [
            f"AUC of more than {self.max_rows:,} rows is that of rounded scores: within {found.overall_bound:.1g} of "
            f"the exact one, and within {worst:.1g} in every task"
        ]


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


def in_order(rows: Kept, n_tasks: int) -> Sorted:
    """The scores, sorted."""
    grouped = _grouped(rows, 2 * n_tasks)
    for label in (grouped.negative, grouped.positive):
        label.sort()
    for tag in np.flatnonzero(np.diff(grouped.starts) > FEW):
        grouped.scores[grouped.starts[tag] : grouped.starts[tag + 1]].sort()
    return grouped


def for_tasks(rows: Sorted, n_tasks: int) -> Sorted:
    """The same rows with tasks that have none added."""
    more = 2 * n_tasks + 1 - len(rows.starts)
    return rows._replace(starts=np.pad(rows.starts, (0, more), mode="edge")) if more > 0 else rows


def in_any_order(rows: Sorted) -> Kept:
    """The rows in arbitrary order."""
    return Kept(np.repeat(np.arange(len(rows.starts) - 1, dtype=np.int32), np.diff(rows.starts)), rows.scores)


def aucs_of(rows: Sorted) -> tuple[float, FloatArray]:
    """AUC over all rows, and of each task."""
    shares = _shares_won(rows)
    return float(shares[-1]), shares[:-1]


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
    """The share of pairs won, from sorted scores; NaN if there are no pairs."""
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
    """AUC of each task, and last that of all rows."""
    n_tasks = len(rows.starts) // 2
    shares = np.empty(n_tasks + 1)
    for task in range(n_tasks):
        a, b, c = rows.starts[2 * task], rows.starts[2 * task + 1], rows.starts[2 * task + 2]
        shares[task] = _share_won(rows.scores[a:b], rows.scores[b:c])
    shares[n_tasks] = _share_won(rows.negative, rows.positive)
    return shares


@kernel(alone=False)
def _merge(a: FloatArray, b: FloatArray, merged: FloatArray) -> None:
    """Merge two sorted runs, without a branch on the scores, which no processor could predict."""
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


@kernel(entry="too", allocates=True)
def merged(a: Sorted, b: Sorted) -> Sorted:
    """The rows of both, which must have the same tasks."""
    starts, scores = a.starts + b.starts, np.empty(len(a.scores) + len(b.scores))
    for tag in range(len(starts) - 1):
        of_a, of_b = slice(a.starts[tag], a.starts[tag + 1]), slice(b.starts[tag], b.starts[tag + 1])
        _merge(a.scores[of_a], b.scores[of_b], scores[starts[tag] : starts[tag + 1]])
    negative, positive = np.empty(len(a.negative) + len(b.negative)), np.empty(len(a.positive) + len(b.positive))
    _merge(a.negative, b.negative, negative)
    _merge(a.positive, b.positive, positive)
    return Sorted(scores, starts, negative, positive)


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
        self._dropped = 0  # bits of the mantissa, besides those beyond `MANTISSA`
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
        """Count the pending rows."""
        if self._pending:
            keys = [self._keys, *self._pending]
            counts = np.ones(self._n_pending, np.int64)
            self._pending, self._n_pending = [], 0
            self._count(np.concatenate(keys), np.concatenate([self._counts, counts]))

    def _count(self, keys: IntArray, counts: IntArray) -> None:
        """Add up equal keys; drop bits of the scores while there are too many."""
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
        for row, selected in enumerate((~positive, positive)):
            np.add.at(counts[row], which[selected], self._counts[selected])
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
    """AUC and half the share of tied pairs of each group; its cells are consecutive, in the order of scores."""
    negative, positive = counts
    n_negative, n_positive = (np.bincount(group, row, n_groups) for row in counts)
    before = np.cumsum(negative) - negative
    below = before - (np.cumsum(n_negative) - n_negative)[group]  # negatives of the same group with lower scores
    won = np.bincount(group, positive * (below + 0.5 * negative), n_groups)
    tied = np.bincount(group, 0.5 * positive * negative, n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = n_negative * n_positive
        return np.true_divide(won, pairs), np.true_divide(tied, pairs)
