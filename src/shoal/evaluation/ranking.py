"""The AUC of a stream: its scores are kept, sorted when someone asks; beyond a limit a sample of them stands for all.

The sample is uniform: it is kept by Algorithm R (Vitter 1985), and of two parts of a stream, each takes the share of
the sample that it would have got.
"""

from __future__ import annotations

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.auc import Kept, Sorted, aucs_of, for_tasks, in_any_order, in_order, merged
from shoal.evaluation.protocol import Values

MAX_SCORES = 20_000_000
SEED = 20_20
LARGEST_URN = 10**9  # NumPy's hypergeometric draws take no more


class Ranking:
    """AUC: exact over all rows up to `max_scores`, beyond that over a uniform sample of that many rows."""

    names = ("auc",)

    def __init__(self, max_scores: int = MAX_SCORES) -> None:
        self.max_scores = max_scores
        self.seen = 0
        self._pieces: list[Kept] = []  # rows as they came
        self._sorted: Sorted | None = None  # the others
        self._random = np.random.default_rng(SEED)

    @property
    def n_kept(self) -> int:
        """Rows kept: all, or those of the sample."""
        return min(self.seen, self.max_scores)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Keep the rows: task code, label, score."""
        rows = Kept(np.asarray(2 * code + (truth > 0), np.int32), score)
        room = self.max_scores - self.n_kept
        if room > 0:
            copied = score[:room].copy()  # kept scores are replaced in place, the caller's must not be
            self._pieces.append(Kept(rows.tag[:room], copied))
            self.seen += len(copied)
        if len(score) > room:
            self._sample_in(Kept(rows.tag[room:], score[room:]))

    def _sample_in(self, rows: Kept) -> None:
        """Algorithm R, a piece at a time: row t takes the place of a kept row with chance max_scores / t."""
        t = self.seen + np.arange(1, len(rows.tag) + 1)
        place = (self._random.random(len(rows.tag)) * t).astype(np.int64)
        taken = np.flatnonzero(place < self.max_scores)
        kept = self._rows()
        kept.tag[place[taken]] = rows.tag[taken]  # of two rows for one place the later stays
        kept.score[place[taken]] = rows.score[taken]
        self.seen += len(rows.tag)

    def _rows(self) -> Kept:
        """All rows kept in one piece, none sorted."""
        if self._sorted is not None:
            self._pieces.insert(0, in_any_order(self._sorted))
            self._sorted = None
        if len(self._pieces) > 1:
            self._pieces = [Kept(*map(np.concatenate, zip(*self._pieces, strict=True)))]
        return self._pieces[0]

    def absorb(self, later: Ranking, n_tasks: int) -> None:
        """Go on with the rows that `later` has seen, which is given up."""
        if self.seen == 0:
            self._pieces, self._sorted = later._pieces, later._sorted
        elif 0 < later.seen <= self.max_scores - self.seen:
            self._sorted = merged(self._in_order(n_tasks), later._in_order(n_tasks))
        elif later.seen > 0:
            self._pieces, self._sorted = [self._sample_of_both(later)], None
        self.seen += later.seen

    def _sample_of_both(self, later: Ranking) -> Kept:
        """A uniform sample of two parts of a stream from one of each: an urn says how many rows are whose."""
        scale = max(1.0, (self.seen + later.seen) / LARGEST_URN)
        urn = (int(later.seen / scale), int(self.seen / scale))
        n_theirs = int(self._random.hypergeometric(*urn, self.max_scores))
        picked = []
        for rows, n in ((self._rows(), self.max_scores - n_theirs), (later._rows(), n_theirs)):
            which = self._random.choice(len(rows.tag), n, replace=False, shuffle=False)
            picked.append(Kept(rows.tag[which], rows.score[which]))
        return Kept(*map(np.concatenate, zip(*picked, strict=True)))

    def _in_order(self, n_tasks: int) -> Sorted:
        """All rows kept, of which there are some, sorted."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            rows = in_order(Kept(*map(np.concatenate, zip(*pieces, strict=True))), n_tasks)
            self._sorted = rows if self._sorted is None else merged(for_tasks(self._sorted, n_tasks), rows)
        assert self._sorted is not None
        return for_tasks(self._sorted, n_tasks)

    def values(self, n_tasks: int) -> dict[str, Values]:
        """AUC over the rows kept."""
        if self.seen == 0:
            return {"auc": Values(float("nan"), np.full(n_tasks, np.nan))}
        return {"auc": Values(*aucs_of(self._in_order(n_tasks)))}

    def notes(self) -> list[str]:
        """What the reader must know: whether the AUC is that of a sample."""
        if self.seen <= self.max_scores:
            return []
        return [f"AUC is that of a uniform sample of {self.max_scores:,} of {self.seen:,} rows"]
