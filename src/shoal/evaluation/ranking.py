"""The AUC of a stream: exact up to a million rows, with a stated bound on its error beyond."""

from __future__ import annotations

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.auc import Kept, Sorted, aucs_of, for_tasks, in_any_order, in_order, merged
from shoal.evaluation.protocol import Values
from shoal.evaluation.score_sketch import ScoreSketch

MAX_ROWS = 1_000_000


class Ranking:
    """AUC: of all rows as long as there are at most `max_rows`, then of a sketch of bounded size.

    Parameters
    ----------
    max_rows : int
        Rows whose scores are kept.
    """

    names = ("auc",)

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self.max_rows = max_rows
        self.seen = 0
        self._pieces: list[Kept] = []  # rows as they came
        self._sorted: Sorted | None = None  # the others
        self._sketch: ScoreSketch | None = None  # of all rows, once there are too many

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
        """A sketch of the rows kept, which are given up."""
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
        """All rows kept, of which there are some, sorted."""
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
        """What the reader must know: how far the AUC may be off."""
        if self._sketch is None:
            return []
        n_tasks = 1 + max(self._sketch.largest_task, 0)
        found = self._sketch.auc(n_tasks)
        worst = np.nanmax(found.per_task_bound, initial=0.0)
        return [
            f"AUC of more than {self.max_rows:,} rows is that of rounded scores: within {found.overall_bound:.1g} of "
            f"the exact one, and within {worst:.1g} in every task"
        ]
