"""Numbers for each (task, feature) pair that has occurred: memory goes by the pairs there are, not by K x d.

Every task has a hash table of its own, all in one arena, so that what a row touches lies close together. Open
addressing over a power of two of slots, at most half of them taken. A table that gets too full moves into a piece
twice its size at the arena's end; when the arena is used up, a loop stops before the round that might not fit, and
its caller doubles the arena, leaving the gaps behind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.ops import leaf, leaf_apart
from shoal.rounds import FloatArray, IndexArray, IntArray, Rounds

FREE = -1
FIRST_ROOM, FIRST_SIZE = 256, 8
BLOCK = 3  # features whose numbers differ in the last 3 bits lie side by side: in text, frequent words do


class Pairs(NamedTuple):
    """The tables; task k's slots are start[k] to start[k] + size[k] - 1."""

    keys: IndexArray  # (room,) FREE or a feature
    records: FloatArray  # (room + 1, numbers a pair); the last is zero: what a pair that is not there has
    start: IntArray  # (tasks,)
    size: IntArray  # (tasks,) a power of two, or 0
    filled: IntArray  # (tasks,) pairs of the task
    used: IntArray  # (1,) slots of the arena that are given away


def new_pairs(n_numbers: int, n_tasks: int, room: int = FIRST_ROOM) -> Pairs:
    """Empty tables."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    keys, records = np.full(room, FREE, np.int32), np.zeros((room + 1, n_numbers))
    return Pairs(keys, records, start, size, filled, np.zeros(1, np.int64))


@leaf
def home(size: int, feature: int) -> int:
    """Where in its task's table a feature goes if the slot is free."""
    mixed = np.uint64(feature >> BLOCK) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: the high bits are mixed
    return int(((np.int64(mixed >> np.uint64(34)) << BLOCK) | (feature & 7)) & (size - 1))


@leaf
def find(keys: IndexArray, start: int, size: int, feature: int) -> int:
    """The pair's slot, or the free slot where it would go; the table has at least one."""
    slot = home(size, feature)
    while keys[start + slot] != feature and keys[start + slot] != FREE:
        slot = (slot + 9) & (size - 1)  # the next block; odd, so that every slot's turn comes
    return int(start + slot)


@leaf
def find_or_zero(pairs: Pairs, task: int, feature: int) -> int:
    """The pair's slot, or that of the zero record."""
    if task < 0 or pairs.size[task] == 0:
        return len(pairs.keys)
    slot = find(pairs.keys, pairs.start[task], pairs.size[task], feature)
    return slot if pairs.keys[slot] == feature else len(pairs.keys)


@leaf
def size_for(n: int) -> int:
    """Slots of a table that n pairs fill at most by half."""
    size = FIRST_SIZE
    while size < 2 * n:
        size *= 2
    return size


@leaf
def has_room(rounds: Rounds, first: int, last: int, pairs: Pairs) -> bool:
    """Could the tasks of rows `first` to `last` (and one more pair each) all move at once, should they have to?"""
    wanted = 0
    for row in range(first, last):
        n = rounds.width if rounds.width > 0 else rounds.indptr[row + 1] - rounds.indptr[row]
        after = pairs.filled[rounds.task[row]] + n + 1
        if 2 * after > pairs.size[rounds.task[row]]:
            wanted += size_for(after)
    return bool(pairs.used[0] + wanted <= len(pairs.keys))


@leaf
def add_pair(pairs: Pairs, task: int, feature: int) -> int:
    """The slot of a pair, which starts with zeros if it is new; `make_room` came first."""
    slot = find(pairs.keys, pairs.start[task], pairs.size[task], feature)
    if pairs.keys[slot] == FREE:
        pairs.keys[slot] = feature
        pairs.filled[task] += 1
    return slot


@leaf_apart
def make_room(pairs: Pairs, task: int, n: int) -> None:
    """Let the task's table take n more pairs; it may move to the arena's end."""
    if 2 * (pairs.filled[task] + n) <= pairs.size[task]:
        return
    keys, records = pairs.keys, pairs.records
    old, old_size = pairs.start[task], pairs.size[task]
    start, size = pairs.used[0], size_for(pairs.filled[task] + n)
    pairs.start[task], pairs.size[task] = start, size
    pairs.used[0] += size
    for slot in range(old, old + old_size):
        if keys[slot] != FREE:
            to = find(keys, start, size, keys[slot])
            keys[to] = keys[slot]
            for i in range(records.shape[1]):
                records[to, i] = records[slot, i]


@leaf
def _copy(old: Pairs, new: Pairs, n_tasks: int) -> None:
    for task in range(n_tasks):
        if old.filled[task] > 0:
            make_room(new, task, old.filled[task])
            for slot in range(old.start[task], old.start[task] + old.size[task]):
                if old.keys[slot] != FREE:
                    to = add_pair(new, task, old.keys[slot])
                    for i in range(old.records.shape[1]):
                        new.records[to, i] = old.records[slot, i]


def roomier(pairs: Pairs) -> Pairs:
    """The same pairs in an arena twice as large, without gaps."""
    new = new_pairs(pairs.records.shape[1], len(pairs.start), 2 * len(pairs.keys))
    _copy(pairs, new, len(pairs.start))
    return new


def compact(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same pairs of the first tasks in no more room than they need."""
    room = sum(size_for(int(n)) for n in pairs.filled[:n_tasks] if n > 0)
    new = new_pairs(pairs.records.shape[1], n_tasks, max(room, FIRST_ROOM))
    _copy(pairs, new, n_tasks)
    return new


def without_task(pairs: Pairs, task: int) -> None:
    """Empty a task's table; its slots are a gap from now on."""
    pairs.size[task] = pairs.filled[task] = 0


def task_records(pairs: Pairs, task: int, n_features: int) -> NDArray[np.float64]:
    """(n_features, numbers) of a task as a dense array."""
    mine = slice(pairs.start[task], pairs.start[task] + pairs.size[task])
    keys, records = pairs.keys[mine], pairs.records[mine]
    dense = np.zeros((n_features, records.shape[1]))
    dense[keys[keys != FREE]] = records[keys != FREE]
    return dense
