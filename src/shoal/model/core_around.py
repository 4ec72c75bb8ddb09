"""A core that holds another one: it hands calls on, and has numbers of its own for each task."""

from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.model.explanations import bare


class CoreAround:
    """The calls that a core hands on to an inner one; `learn`, `leave`, `adopt` and files are the wrapper's own."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.named_tasks, self.simultaneous, self.may_fail = inner.named_tasks, inner.simultaneous, inner.may_fail
        self.no_weights, self.groups = inner.no_weights, inner.groups

    @property
    def state(self) -> Any:
        return self.inner.state

    @property
    def learns_in_blocks(self) -> bool:
        return False

    def reserve(self, n_tasks: int, n_features: int) -> None:
        self.inner.reserve(n_tasks, n_features)

    def enter(self, n_tasks: int) -> None:
        self.inner.enter(n_tasks)

    def new_out(self, n_rows: int) -> FloatArray:
        return np.asarray(self.inner.new_out(n_rows))

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        self.inner.decide(rounds, out)

    def updates(self, n_tasks: int) -> IntArray:
        return np.asarray(self.inner.updates(n_tasks))

    def likeness(self, k: int, n_tasks: int) -> FloatArray | None:
        """(n_tasks,) how alike tasks are to task k, where the inner core learns it."""
        return bare(self.inner).likeness(k, n_tasks)

    def adopt(self, other: Any) -> None:
        self.inner.adopt(other.inner)
        self.named_tasks, self.simultaneous, self.may_fail = other.named_tasks, other.simultaneous, other.may_fail

    def attach(self, other: Any) -> None:
        self.inner.attach(other.inner)

    def nbytes(self) -> int:
        return int(self.inner.nbytes())

    def expect_labels(self, labels: Any) -> None:
        self.inner.expect_labels(labels)


def with_room(own: FloatArray, n_tasks: int) -> FloatArray:
    """(tasks, numbers) a wrapper's own numbers of each task, zeros for new ones; the same array if there is room."""
    if n_tasks <= len(own):
        return own
    larger = np.zeros((max(n_tasks, 2 * len(own)), own.shape[1]))
    larger[: len(own)] = own
    return larger


def without_task(own: FloatArray, k: int) -> FloatArray:
    """The same without task k; those after it move up, and the last place is free."""
    return np.append(np.delete(own, k, axis=0), np.zeros((1, own.shape[1])), axis=0)
