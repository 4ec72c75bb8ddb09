"""The scores of one learner: since the start, since the last checkpoint, and over the last rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.auc import Ranking
from shoal.evaluation.metrics.binary import Forecasts
from shoal.evaluation.metrics.calibration import Bin
from shoal.evaluation.metrics.from_rows import FromRows
from shoal.evaluation.metrics.metric import Metric, Values, grown, mean_over_tasks, stacked
from shoal.evaluation.metrics.multiclass import ClassErrors

FIRST_BLOCK = 100  # rows
FEWEST_BLOCKS = 10  # with a standard error; twice as many become half as many of twice the size
KEPT_SCORES = 50_000  # of a block for its AUC, beyond which they are rounded


class Scores(NamedTuple):
    """Values by metric name."""

    rows: IntArray  # (n_tasks,)
    overall: dict[str, float]
    macro: dict[str, float]  # mean over the tasks where the metric is defined; the AUC's: of 100 rows or more
    per_task: dict[str, FloatArray]  # (n_tasks,) each


class Tally:
    """All metrics over one set of rows."""

    def __init__(self, makers: Sequence[Callable[[], Metric]], names: Sequence[str]) -> None:
        self.names = names
        self.metrics = [maker() for maker in makers]
        self._rows = np.zeros(16, np.int64)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Take in a piece of the stream."""
        self._rows = grown(self._rows, n_tasks)
        np.add.at(self._rows, code, 1)
        for metric in self.metrics:
            metric.update(code, truth, score, n_tasks)

    def absorb(self, later: Tally, n_tasks: int) -> None:
        """Merge `later` into this tally; do not use `later` afterwards."""
        self._rows = grown(self._rows, n_tasks)
        self._rows[:n_tasks] += grown(later._rows, n_tasks)[:n_tasks]
        for metric, other in zip(self.metrics, later.metrics, strict=True):
            metric.absorb(other, n_tasks)

    def scores(self, n_tasks: int) -> Scores:
        """The values so far."""
        values: dict[str, Values] = {}
        for metric in self.metrics:
            values.update(metric.values(n_tasks))
        rows = self._rows[:n_tasks].copy()
        return Scores(
            rows,
            {name: values[name].overall for name in self.names},
            {name: mean_over_tasks(name, values[name].per_task, rows) for name in self.names},
            {name: values[name].per_task for name in self.names},
        )


class Blocks:
    """Equal parts of a stream, one behind the other, whose values say how exact those of all rows are.

    Blocks have 100 rows, and twice as many whenever there are twenty: at the end there are 10 to 19, and what is left
    behind the last one is less than a block. A metric's standard error is s / sqrt(n), where s is the standard
    deviation of its values in the n blocks. Rows that lie near each other stay together, so that a block averages
    what they have in common; the learner's progress along the stream counts as deviation.
    """

    def __init__(self, new: Callable[[], Tally]) -> None:
        self._new, self._size, self._rows = new, FIRST_BLOCK, 0
        self._full: list[Tally] = []
        self._open = self._next()

    def _next(self) -> Tally:
        tally = self._new()
        for metric in tally.metrics:
            if isinstance(metric, Ranking):
                metric.max_rows = KEPT_SCORES
        return tally

    def update(self, truth: FloatArray, score: FloatArray) -> None:
        """Take in a piece of the stream, as if it were of one task."""
        first, n = 0, len(truth)
        while first < n:
            last = min(n, first + self._size - self._rows)
            self._open.update(np.zeros(last - first, np.int64), truth[first:last], score[first:last], 1)
            self._rows, first = self._rows + last - first, last
            if self._rows == self._size:
                self._full.append(self._open)
                self._open, self._rows = self._next(), 0
            if len(self._full) == 2 * FEWEST_BLOCKS:
                for one, then in zip(self._full[::2], self._full[1::2], strict=True):
                    one.absorb(then, 1)
                self._full, self._size = self._full[::2], 2 * self._size

    def errors(self) -> dict[str, float]:
        """The standard error of each metric; NaN where fewer than ten blocks have the metric."""
        found = {}
        table = [block.scores(1).overall for block in self._full]
        for name in self._open.names:
            values = np.array([scores[name] for scores in table], float)
            values = values[~np.isnan(values)]
            enough = len(values) >= FEWEST_BLOCKS
            found[name] = float(values.std(ddof=1) / np.sqrt(len(values))) if enough else float("nan")
        return found


class Standing(NamedTuple):
    """A learner's scores at a checkpoint."""

    total: Scores  # over all rows so far
    since_last: Scores  # over the rows since the last checkpoint
    windowed: Scores  # over the last `window` rows


class Scoreboard:
    """The metrics of one learner. Rows are counted, and their scores sorted, once: from checkpoint to checkpoint.

    Parameters
    ----------
    makers, names : from `shoal.evaluation.metrics.registry.choose`
    window : int
        Rows of the sliding window.
    """

    def __init__(self, makers: Sequence[Callable[[], Metric]], names: Sequence[str], window: int) -> None:
        self.makers, self.names, self.window = makers, names, window
        self._total, self._recent = self._tally(), self._tally()
        self._blocks = Blocks(self._tally)
        self._tail: deque[tuple[IntArray, FloatArray, FloatArray]] = deque()
        self._tail_rows = 0

    def _tally(self) -> Tally:
        return Tally(self.makers, self.names)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Take in a piece of the stream."""
        self._recent.update(code, truth, score, n_tasks)
        self._blocks.update(truth, score)
        self._tail.append((code, truth, score))
        self._tail_rows += len(code)
        while self._tail_rows - len(self._tail[0][0]) >= self.window:
            self._tail_rows -= len(self._tail.popleft()[0])

    def checkpoint(self, n_tasks: int) -> Standing:
        """The scores at the end of the last piece."""
        since_last = self._recent.scores(n_tasks)
        self._total.absorb(self._recent, n_tasks)
        self._recent = self._tally()
        return Standing(self._total.scores(n_tasks), since_last, self._windowed(n_tasks))

    def _windowed(self, n_tasks: int) -> Scores:
        code, truth, score = (stacked(column)[-self.window :] for column in zip(*self._tail, strict=True))
        tally = self._tally()
        tally.update(code, truth, score, n_tasks)
        return tally.scores(n_tasks)

    @property
    def keeps_rows(self) -> bool:
        """Whether metrics of scikit-learn are among its own."""
        return any(isinstance(metric, FromRows) for metric in self._total.metrics)

    def errors(self) -> dict[str, float]:
        """The standard errors of the values over all rows."""
        return self._blocks.errors()

    def bins(self) -> list[Bin]:
        """Calibration over all rows; empty without probabilities."""
        found = [metric.bins() for metric in self._total.metrics if isinstance(metric, Forecasts)]
        return found[0] if found else []

    def confusion(self) -> dict[tuple[int, int], int]:
        """Rows by (true class, predicted class) over all rows; empty but for several classes."""
        found = [metric.confusion() for metric in self._total.metrics if isinstance(metric, ClassErrors)]
        return found[0] if found else {}

    def notes(self) -> list[str]:
        """Sentences that a reader of the scores must know."""
        return [note for metric in self._total.metrics for note in metric.notes()]
