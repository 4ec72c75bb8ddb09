"""Which shard a task lives on, and how rows are split accordingly.

`shards_of` hashes task ids, `RoutingPlan` adds later shards and tasks that the user assigns, `Placement` remembers the
shard of each task of a cluster, and `split` cuts rounds by shard.

The hash is BLAKE2b of the id as text with its kind, so every process, machine and version computes the same. With n
shards a task goes to the one that scores highest for it (rendezvous hashing: Thaler, Ravishankar, A name-based mapping
scheme for rendezvous, 1996). A shard that is added later takes half of the tasks of one other shard: these tasks move
with their whole state, and no other task moves.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from shoal.engine.arrays import IntArray
from shoal.engine.random import GOLDEN, mixed
from shoal.engine.rounds import Rounds, starts_without_repeats

if TYPE_CHECKING:
    import polars as pl

    from shoal.files.tables.batches import Problem

Assign = Mapping[Any, int] | str | None
Blocks = Mapping[Hashable, Hashable]


# ---- by hash, and by plan ------------------------------------------------------------------------------------


def shards_of(tasks: Sequence[Hashable], n_shards: int) -> IntArray:
    """The shard of each task by its hash."""
    keys = _keys_of(tasks)
    best, found = np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.int64)
    for shard in range(n_shards):
        score = _scores(keys, shard)
        found[score > best] = shard
        np.maximum(best, score, out=best)
    return found


def key_of(task: Hashable) -> int:
    """64 bits that depend on the id alone; ids that are equal (1, 1.0, True) have equal keys.

    Raises
    ------
    ValueError
        If the id has no plain form, so that another process could not compute its key.
    """
    return int.from_bytes(hashlib.blake2b(_text_of(task).encode(), digest_size=8).digest(), "little")


def _keys_of(tasks: Sequence[Hashable]) -> Any:
    return np.fromiter(map(key_of, tasks), np.uint64, len(tasks))


def _text_of(task: Any) -> str:
    if isinstance(task, np.generic):
        task = task.item()
    if isinstance(task, float) and task.is_integer():
        task = int(task)
    if task is None or isinstance(task, int | float | str | bytes | datetime.date | datetime.datetime):
        return f"{task:d}" if isinstance(task, bool) else repr(task)
    if isinstance(task, tuple):
        return "(" + ",".join(map(_text_of, task)) + ")"
    if isinstance(task, frozenset):
        return "{" + ",".join(sorted(map(_text_of, task))) + "}"
    raise ValueError(
        f"cannot route a task id of type {type(task).__name__}: use text, numbers, dates or tuples of them"
    )


def _scores(keys: Any, shard: int) -> Any:
    """64 random bits of each key for one shard."""
    mix = getattr(mixed, "py_func", mixed)  # in NumPy, so that routing waits for no compiler
    return mix(keys ^ mix(np.array([shard + 1], np.uint64) * GOLDEN))


class RoutingPlan(NamedTuple):
    """How tasks go to shards."""

    first: int  # number of shards at the start
    splits: tuple[tuple[int, int], ...] = ()  # (shard that was halved, its new shard), in order
    assign: Mapping[Any, int] | None = None

    @property
    def n_shards(self) -> int:
        """Shards after all splits."""
        return self.first + len(self.splits)

    def with_split(self, shard: int) -> RoutingPlan:
        """The plan with a new shard that takes half of the tasks of another."""
        return self._replace(splits=(*self.splits, (shard, self.n_shards)))

    def shards_of(self, tasks: Sequence[Hashable]) -> IntArray:
        """The shard of each task; those that `assign` does not name go by their hash.

        Raises
        ------
        ValueError
            If a task is assigned to a shard that does not exist.
        """
        found = shards_of(tasks, self.first)
        if self.splits:
            keys = _keys_of(tasks)
            for halved, new in self.splits:
                goes = _scores(keys, new) >> np.uint64(63) > 0
                found[(found == halved) & goes] = new
        for k, task in enumerate(tasks if self.assign else ()):
            shard = (self.assign or {}).get(task)
            if shard is None:
                continue
            if isinstance(shard, bool) or not isinstance(shard, int | np.integer) or not 0 <= shard < self.n_shards:
                last = self.n_shards - 1
                raise ValueError(f"task {task!r} is assigned to shard {shard!r}; there are shards 0 to {last}")
            found[k] = shard
        return found


# ---- the tasks of a cluster ----------------------------------------------------------------------------------


class TaskAddresses(NamedTuple):
    """The shard of each task and its column there, by the task's column in the router."""

    shard: IntArray
    column: IntArray
    counts: IntArray  # (shards,) number of tasks

    def with_tasks(self, shards: IntArray) -> TaskAddresses:
        """The addresses with new tasks behind the known ones."""
        counts, columns = self.counts.copy(), np.empty(len(shards), np.int64)
        for shard in np.unique(shards):
            own = np.flatnonzero(shards == shard)
            columns[own] = counts[shard] + np.arange(len(own))
            counts[shard] += len(own)
        return TaskAddresses(np.append(self.shard, shards), np.append(self.column, columns), counts)

    def without(self, k: int) -> TaskAddresses:
        """The addresses without task k; later tasks move up by one, here and in its shard."""
        shard, counts = self.shard[k], self.counts.copy()
        counts[shard] -= 1
        after = (self.shard == shard) & (self.column > self.column[k])
        column = self.column - after
        return TaskAddresses(np.delete(self.shard, k), np.delete(column, k), counts)


def no_addresses(n_shards: int) -> TaskAddresses:
    """The addresses of no tasks."""
    none = np.zeros(0, np.int64)
    return TaskAddresses(none, none, np.zeros(n_shards, np.int64))


class Placement:
    """The shard of each task of a cluster.

    Parameters
    ----------
    plan : RoutingPlan
    column : str or None
        The column whose value is a task's block: blocks go to shards by their hash, and a task lives with its block.

    Attributes
    ----------
    plan : RoutingPlan
    column : str or None
    addresses : TaskAddresses
    blocks : dict
        The block of each placed task, if there is a column.
    """

    def __init__(self, plan: RoutingPlan, column: str | None = None) -> None:
        self.plan, self.column = plan, column
        self.addresses: TaskAddresses = no_addresses(plan.n_shards)
        self.blocks: dict[Hashable, Hashable] = {}
        self._announced: dict[Hashable, Hashable] = {}

    @classmethod
    def of(cls, shards: int, assign: Assign) -> Placement:
        """An empty placement."""
        if isinstance(assign, str):
            return cls(RoutingPlan(shards), assign)
        return cls(RoutingPlan(shards, (), assign))

    def announce(self, task: Any, values: Iterable[Any]) -> None:
        """Record the block of each task in advance; the first value wins."""
        for one, block in blocks_of(task, values).items():
            if one not in self.blocks:
                self._announced.setdefault(one, block)

    def shards_of_new(self, tasks: list[Any], blocks: Blocks) -> IntArray:
        """The shards of new tasks, by the blocks that come with them or were announced.

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
                    f"the {self.column!r} of task {task!r} is not known: give frames that have this column, a stream "
                    "that keeps it, or call live_together(tasks, values) before"
                )
        return self._by_block([blocks[task] if task in blocks else self._announced[task] for task in tasks], tasks)

    def expected_shards(self, tasks: list[Any]) -> IntArray:
        """The shards that tasks have or would get; a task without a known block goes by its own hash."""
        return self._by_block([self.blocks.get(task) for task in tasks], tasks)

    def _by_block(self, blocks: list[Any], tasks: list[Any]) -> IntArray:
        pairs = zip(blocks, tasks, strict=True)
        return self.plan.shards_of([task if block is None else block for block, task in pairs])

    def add(self, tasks: list[Any], shards: IntArray, blocks: Blocks) -> None:
        """Place new tasks behind the known ones."""
        self.addresses = self.addresses.with_tasks(shards)
        for task in tasks if self.column is not None else ():
            announced = self._announced.pop(task, None)
            self.blocks[task] = blocks.get(task, announced)

    def of_rows(self, columns: IntArray, task: Any) -> tuple[IntArray, IntArray]:
        """The shard of each row, and its task's column there; -1 for a new task, whose shard is the one it would get.

        Parameters
        ----------
        columns : (n,) column of each row's task in the router, -1 where it is not known
        task : (n,) ids or None
        """
        addresses, unknown = self.addresses, np.flatnonzero(columns < 0)
        shard, column = columns.copy(), columns.copy()
        if len(addresses.shard):
            shard = addresses.shard[columns]
            column = np.where(columns < 0, -1, addresses.column[columns])
        if len(unknown):
            shard[unknown] = self.expected_shards(_ids_at(task, unknown))
        return shard, column

    def remove(self, k: int, task: Hashable) -> int:
        """Remove a task; return the shard where it lived."""
        shard = int(self.addresses.shard[k])
        self.addresses = self.addresses.without(k)
        self.blocks.pop(task, None)
        return shard

    def halve(self, ids: list[Any]) -> tuple[int, list[Any], list[Any]]:
        """Give half of the fullest shard to a new one; return that shard, its tasks that stay, and those that go."""
        donor = int(self.addresses.counts.argmax())
        self.plan = self.plan.with_split(donor)
        of_donor = np.flatnonzero(self.addresses.shard == donor)
        after = self.addresses.shard.copy()
        after[of_donor] = self.expected_shards([ids[k] for k in of_donor.tolist()])
        self.addresses = no_addresses(self.plan.n_shards).with_tasks(after)
        stay = [ids[k] for k in of_donor.tolist() if after[k] == donor]
        return donor, stay, [ids[k] for k in of_donor.tolist() if after[k] != donor]


def without_column(X: Any, column: str | None) -> tuple[Any, list[Any] | None]:
    """A frame without a column, and the column's values; X as it is and None where there is no such column."""
    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if column is None or not isinstance(frame, nw.DataFrame) or column not in frame.columns:
        return X, None
    return frame.drop(column).to_native(), frame[column].to_list()


def blocks_of(task: Any, values: Iterable[Any]) -> dict[Hashable, Hashable]:
    """The block of each task: the value in its first row."""
    found: dict[Hashable, Hashable] = {}
    for one, value in zip(repeat(None) if task is None else _ids(task), values, strict=task is not None):
        found.setdefault(one, value)
    return found


def _ids_at(task: Any, rows: IntArray) -> list[Any]:
    """The ids of some rows."""
    if task is None:
        return [None] * len(rows)
    values = _ids(task)
    return [values[row] for row in rows.tolist()]


def _ids(task: Any) -> Any:
    return task.to_numpy() if hasattr(task, "to_numpy") else task


# ---- rows by shard -------------------------------------------------------------------------------------------


class ShardRounds(NamedTuple):
    """The rows of a table that one shard gets, in their order."""

    shard: int
    rows: IntArray  # their numbers in the table
    rounds: Rounds


def split(rounds: Rounds, first: int, last: int, shard: IntArray, column: IntArray) -> Iterator[ShardRounds]:
    """Rows `first` to `last` by shard; a round of several shards becomes one round in each.

    Parameters
    ----------
    shard, column : (n,) shard of each row of `rounds`, and its task's column there
    """
    wanted = shard[first:last]
    if len(wanted) == 0:
        return
    if (wanted == wanted[0]).all():
        order, bounds = np.arange(first, last), [(int(wanted[0]), 0, last - first)]
    else:
        order = first + np.argsort(wanted, kind="stable")
        found, begins = np.unique(shard[order], return_index=True)
        ends = np.append(begins[1:], len(order))
        bounds = list(zip(found.tolist(), begins.tolist(), ends.tolist(), strict=True))
    indptr, indices, values = _in_order(rounds, order)
    number = np.searchsorted(rounds.starts, order, "right")
    width = rounds.width
    for which, begin, end in bounds:
        rows = order[begin:end]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(number[begin:end])) + 1, [end - begin]])
        low, high = (begin * width, end * width) if width else (indptr[begin], indptr[end])
        part = Rounds(
            width,
            indptr if width else indptr[begin : end + 1] - low,
            indices if width else indices[low:high],
            values[low:high],
            column[rows],
            rounds.y[rows] if len(rounds.y) else rounds.y,
            starts,
            rounds.weight[rows] if len(rounds.weight) else rounds.weight,
        )
        yield ShardRounds(which, rows, part)


def _in_order(rounds: Rounds, order: IntArray) -> tuple[IntArray, np.ndarray, np.ndarray]:
    """indptr, indices and values of rows in an order."""
    if rounds.width:
        return rounds.indptr, rounds.indices, rounds.values.reshape(-1, rounds.width)[order].ravel()
    lengths = np.diff(rounds.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(indptr[-1]) + np.repeat(rounds.indptr[order] - indptr[:-1], lengths)
    return indptr, rounds.indices[at], rounds.values[at]


def as_simultaneous(part: ShardRounds) -> ShardRounds:
    """The shard's rows in its own rounds: maximal runs in which no task repeats."""
    task = part.rounds.task
    starts = starts_without_repeats(task, int(task.max()) + 1)
    return part._replace(rounds=part.rounds._replace(starts=starts))


# ---- rows of a service, which has the extra that reads tables ------------------------------------------------


def tasks_frame(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pl.DataFrame:
    """The task columns of rows of JSON values."""
    import polars as pl

    from shoal.files.ids import id_of

    columns = {name: [id_of(row.get(name)) for row in rows] for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def shards_of_rows(frame: pl.DataFrame, names: Sequence[str], n_shards: int) -> tuple[IntArray, list[Problem]]:
    """The shard of each row by its task columns, and the problems of the rows without a task."""
    from shoal.files.tables.label_columns import Tasks

    tasks, problems = Tasks(names).read(frame)
    return shards_of(tasks.tolist(), n_shards), problems
