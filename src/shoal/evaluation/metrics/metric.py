"""The protocol of metrics: take a piece of the stream at a time, give values for all rows and for each task.

All see `code` (the row's task as a number), `truth` (+1/-1, a real target or the number of a class) and `score` (the
decision value or prediction given before learning; for several classes see `shoal.evaluation.metrics.multiclass`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray

# Least rows of a task whose value counts in the mean over tasks. Within a task of few rows the AUC punishes learning
# the task's level by the row: after a positive the forecast rises, and fewer positives are left to come.
LEAST_ROWS = {"auc": 100}


class Values(NamedTuple):
    """One metric: over all rows, and per task (NaN where it is undefined)."""

    overall: float
    per_task: FloatArray  # (n_tasks,)


class Metric(Protocol):
    """The methods that `progressive_validate` calls; `metrics=` takes any class or function that makes one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The values it gives."""

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Take in a piece of the stream."""

    def absorb(self, later: Self, n_tasks: int) -> None:
        """Merge the sums of another of its kind, which saw later rows; do not use `later` afterwards."""

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far, by name."""

    def notes(self) -> list[str]:
        """Sentences that a reader of the values must know; most metrics have none."""


def counted(metric: str, per_task: FloatArray, rows: Any) -> NDArray[np.bool_]:
    """Which tasks count in the mean over tasks: those that have the metric, and the AUC's 100 rows.

    Parameters
    ----------
    metric : str
    per_task : (..., n_tasks) float64
        Of one learner, or of several that all have it; NaN where it is undefined.
    rows : (n_tasks,) integers
        The tasks' rows.

    Examples
    --------
    >>> counted("auc", np.array([0.8, 0.7, np.nan]), [100, 99, 100]).tolist()
    [True, False, False]
    >>> counted("error", np.array([0.8, 0.7, np.nan]), [100, 99, 100]).tolist()
    [True, True, False]
    """
    table = np.atleast_2d(per_task)
    found: NDArray[np.bool_] = ~np.isnan(table).any(axis=0) & (np.asarray(rows) >= LEAST_ROWS.get(metric, 0))
    return found


def mean_over_tasks(metric: str, per_task: FloatArray, rows: Any) -> float:
    """The mean over the tasks that count in it; NaN if none does.

    Examples
    --------
    >>> mean_over_tasks("auc", np.array([0.8, 0.7, np.nan, 0.6]), [100, 99, 100, 200])
    0.7
    """
    values = per_task[counted(metric, per_task, rows)]
    return float(values.mean()) if len(values) else float("nan")


class TaskSums:
    """The base of most metrics: sums over the rows of each task, one column a number."""

    width: int  # columns

    def __init__(self) -> None:
        self._sums = np.zeros((16, self.width))

    def add(self, code: IntArray, n_tasks: int, *terms: Any) -> None:
        """Add a term a column."""
        self._sums = grown(self._sums, n_tasks)
        for j, term in enumerate(terms):
            np.add.at(self._sums[:, j], code, term)

    def absorb(self, later: Self, n_tasks: int) -> None:
        """Add the sums of `later`."""
        self._sums = grown(self._sums, n_tasks)
        self._sums[:n_tasks] += grown(later._sums, n_tasks)[:n_tasks]

    def notes(self) -> list[str]:
        """None."""
        return []


def grown(sums: NDArray[Any], n_tasks: int) -> NDArray[Any]:
    """`sums` with a row for each task at least; doubled, so that growth is amortised."""
    if n_tasks <= len(sums):
        return sums
    larger = np.zeros((max(n_tasks, 2 * len(sums)), *sums.shape[1:]), sums.dtype)
    larger[: len(sums)] = sums
    return larger


def ratio(numerator: Any, denominator: Any) -> Any:
    """NaN where the denominator is zero: undefined, not perfect and not worst."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.true_divide(numerator, denominator)


def stacked(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Pieces of a column one below the other; of several classes the narrower ones, which are older, get zeros."""
    width = max(column.shape[1] if column.ndim == 2 else 0 for column in columns)
    return np.concatenate([_widened(column, width) for column in columns])


def _widened(column: NDArray[Any], width: int) -> NDArray[Any]:
    return np.pad(column, ((0, 0), (0, width - column.shape[1]))) if column.ndim == 2 else column
