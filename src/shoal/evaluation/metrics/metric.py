"""The protocol of metrics: take a piece of the stream at a time, give values for all rows and for each task.

All see `code` (the row's task as a number), `truth` (+1/-1, a real target or the number of a class) and `score` (the
decision value or prediction given before learning; for several classes see `shoal.evaluation.metrics.multiclass`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray


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
        """Merge what another of its kind has seen after it; do not use `later` afterwards."""

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far, by name."""

    def notes(self) -> list[str]:
        """Sentences that a reader of the values must know; most metrics have none."""


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
