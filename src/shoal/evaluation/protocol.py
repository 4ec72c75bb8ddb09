"""What a metric is: sums that take a piece of the stream at a time and give values when asked.

All see `code` (the row's task as a number), `truth` (+1/-1, a real target or the number of a class) and `score` (the
decision value or prediction given before learning; for several classes see `shoal.evaluation.classes`).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

from shoal.engine.arrays import FloatArray, IntArray


class Values(NamedTuple):
    """One metric: over all rows, and per task (NaN where it is undefined)."""

    overall: float
    per_task: FloatArray  # (n_tasks,)


class Metric(Protocol):
    """What `progressive_validate` asks of a metric; `metrics=` takes any class or function that makes one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The values it gives."""

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Take in a piece of the stream."""

    def absorb(self, later: Self, n_tasks: int) -> None:
        """Merge what another of its kind has seen after it; `later` is not used afterwards."""

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far, by name."""

    def notes(self) -> list[str]:
        """Sentences a reader of the values must know; mostly none."""
