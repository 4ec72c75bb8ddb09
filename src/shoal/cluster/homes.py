"""Where each task lives, and where a new one goes: by its hash, as a mapping says, or with others of its block."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import repeat
from typing import Any

import narwhals as nw
import numpy as np

from shoal.cluster.places import Places, no_places
from shoal.cluster.routing import Plan
from shoal.engine.arrays import IntArray

Assign = Mapping[Any, int] | str | None
Blocks = Mapping[Hashable, Hashable]


class Homes:
    """The shard of each task.

    Parameters
    ----------
    plan : Plan
    column : str or None
        The column whose value is a task's block: blocks go to shards by their hash, and a task lives with its block.

    Attributes
    ----------
    plan : Plan
    column : str or None
    places : Places
    blocks : dict
        Of each task that lives somewhere its block, if there is a column.
    """

    def __init__(self, plan: Plan, column: str | None = None) -> None:
        self.plan, self.column = plan, column
        self.places: Places = no_places(plan.n_shards)
        self.blocks: dict[Hashable, Hashable] = {}
        self._announced: dict[Hashable, Hashable] = {}

    @classmethod
    def of(cls, shards: int, assign: Assign) -> Homes:
        """Nobody lives anywhere yet."""
        return cls(Plan(shards), assign) if isinstance(assign, str) else cls(Plan(shards, (), assign))

    def announce(self, task: Any, values: Iterable[Any]) -> None:
        """Say of rows to come which blocks their tasks belong to; what is said first of a task counts."""
        for one, block in blocks_of(task, values).items():
            if one not in self.blocks:
                self._announced.setdefault(one, block)

    def new(self, tasks: list[Any], blocks: Blocks) -> IntArray:
        """Where new tasks go, by the blocks they come with or that were announced.

        Raises
        ------
        ValueError
            If a task's block is not known.
        """
        if self.column is None:
            return self.plan.shards_of(tasks)
        for task in tasks:
            if task not in blocks and task not in self._announced:
                raise ValueError(
                    f"no {self.column!r} is known of task {task!r}: give frames that have this column, a stream that "
                    "keeps it, or say it before by live_together(tasks, values)"
                )
        return self._by_block([blocks[task] if task in blocks else self._announced[task] for task in tasks], tasks)

    def would(self, tasks: list[Any]) -> IntArray:
        """Where tasks live, or would live; without a known block that is by their own hash."""
        known = self.blocks
        return self._by_block([known.get(task) for task in tasks], tasks) if known else self.plan.shards_of(tasks)

    def _by_block(self, blocks: list[Any], tasks: list[Any]) -> IntArray:
        pairs = zip(blocks, tasks, strict=True)
        return self.plan.shards_of([task if block is None else block for block, task in pairs])

    def settle(self, tasks: list[Any], shards: IntArray, blocks: Blocks) -> None:
        """New tasks move in, after the known ones."""
        self.places = self.places.with_tasks(shards)
        for task in tasks if self.column is not None else ():
            announced = self._announced.pop(task, None)
            self.blocks[task] = blocks.get(task, announced)

    def at(self, columns: IntArray, task: Any) -> tuple[IntArray, IntArray]:
        """Of each row its shard, and its task's column there, -1 where it has none: a new task goes where it would.

        Parameters
        ----------
        columns : (n,) of each row's task in the router, -1 where it is not known
        task : (n,) ids or None
        """
        places, unknown = self.places, np.flatnonzero(columns < 0)
        shard, column = places.shard[columns] if len(places.shard) else columns.copy(), columns.copy()
        if len(places.shard):
            column = np.where(columns < 0, -1, places.column[columns])
        if len(unknown):
            shard[unknown] = self.would(_ids_at(task, unknown))
        return shard, column

    def without(self, k: int, task: Hashable) -> int:
        """A task moves out; where it lived."""
        shard = int(self.places.shard[k])
        self.places = self.places.without(k)
        self.blocks.pop(task, None)
        return shard

    def halved(self, ids: list[Any]) -> tuple[int, list[Any], list[Any]]:
        """A new shard takes half of the fullest one: that shard, and its tasks that stay and that go."""
        donor = int(self.places.counts.argmax())
        self.plan = self.plan.with_split(donor)
        of_donor = np.flatnonzero(self.places.shard == donor)
        after = self.places.shard.copy()
        after[of_donor] = self.would([ids[k] for k in of_donor.tolist()])
        self.places = no_places(self.plan.n_shards).with_tasks(after)
        stay = [ids[k] for k in of_donor.tolist() if after[k] == donor]
        return donor, stay, [ids[k] for k in of_donor.tolist() if after[k] != donor]


def taken_out(X: Any, column: str | None) -> tuple[Any, list[Any] | None]:
    """A frame without a column, and the column; anything else as it is."""
    frame: Any = X if column is None else nw.from_native(X, eager_only=True, pass_through=True)
    if column is None or not isinstance(frame, nw.DataFrame) or column not in frame.columns:
        return X, None
    return frame.drop(column).to_native(), frame[column].to_list()


def blocks_of(task: Any, values: Iterable[Any]) -> dict[Hashable, Hashable]:
    """Of each task the value in its first row."""
    found: dict[Hashable, Hashable] = {}
    for one, value in zip(repeat(None) if task is None else _ids(task), values, strict=task is not None):
        found.setdefault(one, value)
    return found


def _ids_at(task: Any, rows: IntArray) -> list[Any]:
    """Ids of some rows."""
    if task is None:
        return [None] * len(rows)
    values = _ids(task)
    return [values[row] for row in rows.tolist()]


def _ids(task: Any) -> Any:
    return task.to_numpy() if hasattr(task, "to_numpy") else task
