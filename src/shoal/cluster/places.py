"""Where each task is, and rows split by that: every shard gets its own in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import IntArray
from shoal.engine.rounds import Rounds, starts_without_repeats


class Places(NamedTuple):
    """Of each task, by its column in the router, the shard and its column there."""

    shard: IntArray
    column: IntArray
    counts: IntArray  # (shards,) tasks of each

    def with_tasks(self, shards: IntArray) -> Places:
        """New tasks come after the known ones."""
        counts, columns = self.counts.copy(), np.empty(len(shards), np.int64)
        for shard in np.unique(shards):
            mine = np.flatnonzero(shards == shard)
            columns[mine] = counts[shard] + np.arange(len(mine))
            counts[shard] += len(mine)
        return Places(np.append(self.shard, shards), np.append(self.column, columns), counts)

    def without(self, k: int) -> Places:
        """Those after a task move up, here and in its shard."""
        shard, counts = self.shard[k], self.counts.copy()
        counts[shard] -= 1
        after = (self.shard == shard) & (self.column > self.column[k])
        column = self.column - after
        return Places(np.delete(self.shard, k), np.delete(column, k), counts)


def no_places(n_shards: int) -> Places:
    """No tasks."""
    none = np.zeros(0, np.int64)
    return Places(none, none, np.zeros(n_shards, np.int64))


class Part(NamedTuple):
    """What one shard gets of some rows."""

    shard: int
    rows: IntArray
    rounds: Rounds


def split(rounds: Rounds, first: int, last: int, shard: IntArray, column: IntArray) -> Iterator[Part]:
    """Rows `first` to `last` by shard; a round of several shards becomes one round in each.

    Parameters
    ----------
    shard, column : (n,) of each row of `rounds`, its shard and its task's column there
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
    indptr, indices, values = _gathered(rounds, order)
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
        yield Part(which, rows, part)


def _gathered(rounds: Rounds, order: IntArray) -> tuple[IntArray, np.ndarray, np.ndarray]:
    """indptr, indices and values of rows in an order."""
    if rounds.width:
        return rounds.indptr, rounds.indices, rounds.values.reshape(-1, rounds.width)[order].ravel()
    lengths = np.diff(rounds.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(indptr[-1]) + np.repeat(rounds.indptr[order] - indptr[:-1], lengths)
    return indptr, rounds.indices[at], rounds.values[at]


def as_simultaneous(part: Part) -> Part:
    """The shard's rows in its own rounds: maximal runs in which no task repeats."""
    task = part.rounds.task
    starts = starts_without_repeats(task, int(task.max()) + 1)
    return part._replace(rounds=part.rounds._replace(starts=starts))
