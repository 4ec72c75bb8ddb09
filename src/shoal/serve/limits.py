"""Limits on new tasks and columns, which are never freed: per minute, and for tasks in all."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from shoal.serve.contract import LimitExceeded


class Caps(NamedTuple):
    """The limits."""

    new_tasks_a_minute: int = 10_000
    new_columns_a_minute: int = 0  # 0: columns that the model does not know are not used
    tasks: int = 10_000_000


class Mark(NamedTuple):
    """All that `Limits` has counted."""

    coming: set[str]
    minute: int
    tasks: int
    columns: int


class Limits:
    """Counts of the new tasks and columns of this minute.

    Parameters
    ----------
    caps : Caps
    knows_task : function
        Whether the model has a task.
    n_tasks : function
        The number of the model's tasks.

    Attributes
    ----------
    coming : set of str
        Tasks of accepted rows that have not been learned yet.
    """

    def __init__(self, caps: Caps, knows_task: Callable[[str], bool], n_tasks: Callable[[], int]) -> None:
        self._caps, self._knows_task, self._n_tasks = caps, knows_task, n_tasks
        self.coming: set[str] = set()
        self._minute, self._tasks, self._columns = 0, 0, 0

    def check(self, tasks: Any, n_columns: int) -> None:
        """Count the new tasks and columns of rows to accept.

        Raises
        ------
        LimitExceeded
            If they are too many; then nothing is counted.
        """
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._tasks, self._columns = minute, 0, 0
            self._drop_learned()
        given = set() if tasks is None else set(tasks.tolist())
        new = {task for task in given if task not in self.coming and not self._knows_task(task)}
        wait = 60.0 - time.monotonic() % 60
        if self._columns + n_columns > self._caps.new_columns_a_minute:
            raise LimitExceeded(f"more than {self._caps.new_columns_a_minute:,} new columns a minute", wait)
        if self._tasks + len(new) > self._caps.new_tasks_a_minute:
            raise LimitExceeded(f"more than {self._caps.new_tasks_a_minute:,} new tasks a minute", wait)
        if new and self._n_tasks() + len(self.coming) + len(new) > self._caps.tasks:
            self._drop_learned()
            if self._n_tasks() + len(self.coming) + len(new) > self._caps.tasks:
                raise LimitExceeded(f"this service takes {self._caps.tasks:,} tasks at most")
        self._columns += n_columns
        self._tasks += len(new)
        self.coming = self.coming | new  # a new set: `mark` keeps the one before

    @property
    def takes_columns(self) -> bool:
        """Whether new columns are learned."""
        return self._caps.new_columns_a_minute > 0

    def _drop_learned(self) -> None:
        self.coming = {task for task in self.coming if not self._knows_task(task)}

    def begin_anew(self) -> None:
        """Count no task as coming any more, as another model is in place, which will not learn it."""
        self.coming = set()

    def mark(self) -> Mark:
        """The counts of now, for `rollback`."""
        return Mark(self.coming, self._minute, self._tasks, self._columns)

    def rollback(self, mark: Mark) -> None:
        """Restore the counts of an earlier moment, with the minute that they are of."""
        self.coming, self._minute, self._tasks, self._columns = mark
