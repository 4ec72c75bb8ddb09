"""Groups of tasks, by the ids of the tasks, for cores that learn by group, too."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal.engine.arrays import IntArray
from shoal.model.tasks import TaskIndex


def group_of(task: Hashable) -> Any:
    """The group that a task id names: all of it but the last part; None if it has one part.

    Parts are those of a tuple, or of text the fields of a line of CSV, as tables join the columns of an id.

    >>> [group_of(task) for task in (("France", "shop 7"), ("EU", "France", "shop 7"), "France,shop 7", "shop 7", 7)]
    ['France', ('EU', 'France'), 'France', None, None]
    """
    if isinstance(task, tuple) and len(task) > 1:
        return task[0] if len(task) == 2 else task[:-1]
    if not isinstance(task, str):
        return None
    end = task.rfind(",")
    while end >= 0 and task.count('"', 0, end) % 2:  # within quotes
        end = task.rfind(",", 0, end)
    return None if end < 0 else task[:end]


class Groups:
    """The group of each task, and the column of each group; groups are known as long as they have a task.

    A row of a task that the model has not seen has -2 - g in place of the task's column if its group is known, g the
    group's column; -1 if not.
    """

    def __init__(self) -> None:
        self.index = TaskIndex()
        self._of = np.zeros(0, np.int64)  # with room for more tasks
        self._n_tasks = 0

    def __len__(self) -> int:
        return len(self.index)

    @property
    def of(self) -> IntArray:
        """(n_tasks,) the column of each task's group."""
        return self._of[: self._n_tasks]

    def name(self, first: int, tasks: Sequence[Any]) -> None:
        """Tasks get the columns from `first` on."""
        self.keep_first(first)
        self.index.add(map(group_of, tasks))
        n = first + len(tasks)
        if n > len(self._of):
            self._of = np.append(self._of, np.zeros(max(n - len(self._of), len(self._of)), np.int64))
        self._of[first:n] = [self.index.column[group_of(task)] for task in tasks]
        self._n_tasks = n

    def keep_first(self, n_tasks: int) -> None:
        """Take back the tasks that were named last."""
        if n_tasks < self._n_tasks:
            self._n_tasks = n_tasks
            self.index.keep_first(int(self.of.max(initial=-1)) + 1)

    def forget(self, k: int) -> int | None:
        """Task k goes, those after it move up; the column of its group, if it was its last task."""
        g, rest = int(self._of[k]), np.delete(self.of, k)
        is_empty = not (rest == g).any()
        if is_empty:
            rest[rest > g] -= 1
            ids = self.index.ids
            self.index = TaskIndex(ids[:g] + ids[g + 1 :])
        self._of, self._n_tasks = rest, len(rest)
        return g if is_empty else None

    def unseen(self, tasks: Sequence[Any], named_next: Sequence[Any] = ()) -> IntArray:
        """(n,) what stands for the columns of unseen tasks, once those named next are known."""
        column, new = self.index.column, dict[Any, int]()
        for group in map(group_of, named_next):
            if group not in column:
                new.setdefault(group, len(column) + len(new))
        found = (column.get(group, new.get(group, -1)) for group in map(group_of, tasks))
        return np.fromiter((-2 - g for g in found), np.int64, len(tasks))

    def of_rows(self, task: IntArray) -> IntArray:
        """(n,) the columns of the groups of rows, -1 where a group is unknown."""
        known = task >= 0
        if known.all():
            return self._of[task]
        group = -2 - task
        group[known] = self._of[task[known]]
        return group

    def reorder(self, of: IntArray) -> None:
        """Give the groups the columns that they have by `of`: a group that loses its first task keeps its column.

        Raises
        ------
        ValueError
            If these are not the groups of the tasks.
        """
        n, place = len(self), np.full(len(self), -1)
        place[self.of] = of
        if not (np.array_equal(place[self.of], of) and np.array_equal(np.sort(place), np.arange(n))):
            raise ValueError("its groups are not those of its tasks")
        ids = self.index.ids
        self.index = TaskIndex(ids[g] for g in np.argsort(place).tolist())
        self._of, self._n_tasks = of.copy(), len(of)
