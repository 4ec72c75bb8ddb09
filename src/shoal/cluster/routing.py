"""Which shard a task belongs to: by a stable hash of its id, or as it is assigned.

The hash is BLAKE2b of the id as text with its kind, so it is the same in every process, on every machine and in every
version. With n shards a task goes to the one that scores highest for it (rendezvous hashing: Thaler, Ravishankar, A
name-based mapping scheme for rendezvous, 1996). A shard that is added later halves one that was there: so what a task
has travels in one piece, and no task of another shard moves.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import IntArray

MIX, MIX_AGAIN, GOLDEN = (np.uint64(n) for n in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15))


def key_of(task: Hashable) -> int:
    """64 bits that depend on the id alone; ids that are equal (1, 1.0, True) have equal keys.

    Raises
    ------
    ValueError
        If the id has no plain form, so that another process could not tell it.
    """
    return int.from_bytes(hashlib.blake2b(_text_of(task).encode(), digest_size=8).digest(), "little")


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


def shards_of(tasks: Sequence[Hashable], n_shards: int) -> IntArray:
    """The shard of each task by its hash."""
    keys = np.fromiter(map(key_of, tasks), np.uint64, len(tasks))
    best, found = np.zeros(len(keys), np.uint64), np.zeros(len(keys), np.int64)
    for shard in range(n_shards):
        score = _mixed(keys ^ _mixed(np.array([shard + 1], np.uint64) * GOLDEN))
        found[score > best] = shard
        np.maximum(best, score, out=best)
    return found


def _mixed(keys: Any) -> Any:
    """SplitMix64's finalizer."""
    keys = (keys ^ (keys >> np.uint64(30))) * MIX
    keys = (keys ^ (keys >> np.uint64(27))) * MIX_AGAIN
    return keys ^ (keys >> np.uint64(31))


class Plan(NamedTuple):
    """How tasks go to shards."""

    first: int  # shards at first
    splits: tuple[tuple[int, int], ...] = ()  # of the halved shard the number, and that of the new one
    assign: Mapping[Any, int] | None = None

    @property
    def n_shards(self) -> int:
        """How many there are by now."""
        return self.first + len(self.splits)

    def with_split(self, shard: int) -> Plan:
        """A new shard takes half of the tasks of another."""
        return self._replace(splits=(*self.splits, (shard, self.n_shards)))

    def shards_of(self, tasks: Sequence[Hashable]) -> IntArray:
        """The shard of each task; those that `assign` does not name go by their hash.

        Raises
        ------
        ValueError
            If a task is assigned to a shard that there is not.
        """
        found = shards_of(tasks, self.first)
        if self.splits:
            keys = np.fromiter(map(key_of, tasks), np.uint64, len(tasks))
            for halved, new in self.splits:
                goes = _mixed(keys ^ _mixed(np.array([new + 1], np.uint64) * GOLDEN)) >> np.uint64(63) > 0
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
