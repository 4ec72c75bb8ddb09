"""Two systems on the same rows: differences of their scores, with standard errors."""

import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks.scores import Stream, errors, log_losses, task_aucs
from shoal.evaluation.metrics.metric import counted


class Gap(NamedTuple):
    """A mean difference."""

    mean: float
    standard_error: float  # NaN of fewer than two


class Gaps(NamedTuple):
    """Scores of one system less those of another."""

    macro_auc: Gap  # its standard error is over tasks
    error: Gap  # over rows
    log_loss: Gap  # over rows
    won: int  # tasks of higher AUC
    tasks: int  # tasks with an AUC


def gaps(stream: Stream, one: Any, other: Any) -> Gaps:
    """From the logits of both; the AUC is that of tasks of 100 rows or more.

    Neighboring rows are taken as independent: where drift makes both err together, the difference is not hurt.
    """
    by_task = task_aucs(stream, one)[1] - task_aucs(stream, other)[1]
    by_task = by_task[counted("auc", by_task, np.bincount(stream.task))]
    return Gaps(
        _gap(by_task),
        _gap(errors(stream, one).astype(float) - errors(stream, other)),
        _gap(log_losses(stream, one) - log_losses(stream, other)),
        int((by_task > 0).sum()),
        len(by_task),
    )


def _gap(differences: Any) -> Gap:
    n = len(differences)
    if n == 0:
        return Gap(math.nan, math.nan)
    return Gap(float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan)
