"""What a system answered on a stream, each row before it was learned, and how good that was."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from shoal.evaluation import aucs
from shoal.evaluation.metrics.metric import mean_over_tasks

PASSES = 3
LONG = 0.5  # seconds; a pass that takes longer is not repeated
CERTAIN = math.log(1e15)  # forecasts are clipped to [1e-15, 1 - 1e-15], as river does, before the log-loss


class Stream(NamedTuple):
    """Rows in order of arrival."""

    name: str
    X: Any  # (n, d) CSR matrix or array
    y: Any  # (n,) -1 or +1, or a real target
    task: Any  # (n,) 0 to K - 1

    def first(self, n_rows: int) -> Stream:
        """A prefix."""
        return Stream(self.name, self.X[:n_rows], self.y[:n_rows], self.task[:n_rows])


class Scores(NamedTuple):
    """A line of the table."""

    auc: float  # of all rows
    macro_auc: float  # mean over the tasks that have both labels and 100 rows
    error: float  # a logit of 0 answers +1
    log_loss: float
    speed: float  # rows a second


def score(stream: Stream, logits: Any, seconds: float, first: int = 0) -> Scores:
    """Scores of the answers that were given before each row was learned, from row `first` on."""
    auc, per_task = task_aucs(stream, logits, first)
    macro_auc = mean_over_tasks("auc", per_task, np.bincount(stream.task[first:], minlength=len(per_task)))
    error, log_loss = (float(by_row[first:].mean()) for by_row in (errors(stream, logits), log_losses(stream, logits)))
    return Scores(auc, macro_auc, error, log_loss, len(logits) / seconds)


def task_aucs(stream: Stream, logits: Any, first: int = 0) -> tuple[float, Any]:
    """AUC over the rows from `first` on, and (K,) that of each task; NaN where it lacks one of the labels there."""
    n_tasks = int(stream.task.max()) + 1
    return aucs(stream.task[first:], stream.y[first:] > 0, logits[first:], n_tasks)


def errors(stream: Stream, logits: Any) -> Any:
    """(n,) whether the answer was wrong."""
    return (logits >= 0) != (stream.y > 0)


def log_losses(stream: Stream, logits: Any) -> Any:
    """(n,) of forecasts that are never quite certain."""
    return np.logaddexp(0.0, -stream.y * np.clip(logits, -CERTAIN, CERTAIN))


def best_of(scores: Iterable[Scores]) -> Scores:
    """The best value of every column, whichever run it comes from: what tuning in hindsight can reach."""
    auc, macro_auc, error, log_loss, speed = zip(*scores, strict=True)
    return Scores(max(auc), max(macro_auc), min(error), min(log_loss), max(speed))


def timed(one_pass: Callable[[], Any]) -> tuple[Any, float]:
    """What a pass gives, and its seconds: the median of 3, or one pass if it is long."""
    times: list[float] = []
    result = None
    while len(times) < PASSES and (not times or times[0] < LONG):
        start = time.perf_counter()
        result = one_pass()
        times.append(time.perf_counter() - start)
    return result, statistics.median(times)
