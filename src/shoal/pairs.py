"""Numbers for each (task, feature) pair that has occurred: memory goes by the pairs there are, not by K x d.

Every task has a hash table of its own, all in one arena, so that what a row touches lies close together. Open
addressing over a power of two of slots, at most three quarters of them taken. A table that gets too full moves into
a piece twice its size; the old one is used again. When the arena is used up, a loop stops before the round that
might not fit, and its caller makes the arena four times as large: what is not written yet takes no memory.

Most pairs that are asked for do not occur. A bit for each of eight features in a byte for each slot tells so without
a look at the table, wrongly only where two blocks of features share a home.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.ops import in_lines, leaf, leaf_apart, leaf_entry, prefetch
from shoal.rounds import FloatArray, IndexArray, IntArray, Rounds

FREE = 0
FIRST_ROOM, FIRST_SIZE = 256, 8
CACHED = 2**14  # slots of records of eight numbers: a MiB, which a core's own cache holds
BLOCK = 3  # features whose numbers differ in the last 3 bits lie side by side: in text, frequent words do
U = np.uint64  # unsigned positions cannot wrap around, so there is no test for it


class Pairs(NamedTuple):
    """The tables; task k's slots are start[k] to start[k] + size[k] - 1. Nothing is written before it is needed."""

    keys: IndexArray  # (room,) FREE, or a feature + 1
    records: FloatArray  # (room + 1, numbers a pair); the last is zero: what a pair that is not there has
    hints: NDArray[np.uint8]  # (room,) bit j & 7 at the home of feature j's block: j may occur
    start: IntArray  # (tasks,)
    size: IntArray  # (tasks,) a power of two, or 0
    filled: IntArray  # (tasks,) pairs of the task
    used: IntArray  # (1,) slots of the arena that were ever given away
    spare: IntArray  # (32,) 1 + where a blank piece of 2^i slots starts, whose first key is that of the next; or 0


def new_pairs(n_numbers: int, n_tasks: int, room: int = FIRST_ROOM, dtype: Any = np.float64) -> Pairs:
    """Empty tables."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    keys, records, hints = np.zeros(room, np.int32), in_lines((room + 1, n_numbers), dtype), np.zeros(room, np.uint8)
    return Pairs(keys, records, hints, start, size, filled, np.zeros(1, np.int64), np.zeros(32, np.int64))


def for_tasks(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same arena for another number of tasks, whose tables are still to be told."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    return pairs._replace(start=start, size=size, filled=filled)


@leaf
def block_home(size: np.uint64, feature: np.uint32) -> np.uint64:
    """A slot that depends on the feature's block; Fibonacci hashing: the high bits are mixed."""
    return (U(feature >> np.uint32(BLOCK)) * U(0x9E3779B97F4A7C15) >> U(34)) & (size - U(1))


@leaf
def home(size: np.uint64, feature: np.uint32) -> np.uint64:
    """Where in its task's table a feature goes if the slot is free."""
    return (block_home(size, feature) << U(BLOCK) | U(feature & np.uint32(7))) & (size - U(1))


@leaf
def hint(pairs: Pairs, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """1 if the pair may occur, 0 if it does not."""
    return U(pairs.hints[start + block_home(size, feature)] >> np.uint8(feature & np.uint32(7))) & U(1)


@leaf
def find(keys: IndexArray, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """The pair's slot, or the free slot where it would go; the table has at least one."""
    slot, key = home(size, feature), np.int32(feature) + np.int32(1)
    while keys[start + slot] != key:
        if keys[start + slot] == FREE:
            break
        slot = (slot + U(9)) & (size - U(1))  # the next block; odd, so that every slot's turn comes
    return start + slot


@leaf
def put(pairs: Pairs, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """A slot for a pair that does not occur in the table yet."""
    slot = home(size, feature)
    while pairs.keys[start + slot] != FREE:
        slot = (slot + U(9)) & (size - U(1))
    pairs.keys[start + slot] = np.int32(feature) + np.int32(1)
    pairs.hints[start + block_home(size, feature)] |= np.uint8(1) << np.uint8(feature & np.uint32(7))
    return start + slot


@leaf
def bring(pairs: Pairs, task: int, features: IntArray) -> None:
    """Have what is at the homes of a row's pairs brought from memory, if caches do not hold it.

    A search ends in a branch, which is often foreseen wrongly, and each wrong one would wait for memory by itself.
    """
    if task < 0 or pairs.size[task] == 0 or pairs.used[0] < CACHED:
        return
    start, size = U(pairs.start[task]), U(pairs.size[task])
    for i in range(len(features)):
        slot = start + home(size, np.uint32(features[i]))
        prefetch(pairs.keys, slot)
        prefetch(pairs.records, slot * U(pairs.records.shape[1]))


@leaf
def find_or_zero(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """The pair's slot, or that of the zero record."""
    if task < 0 or pairs.size[task] == 0:
        return len(pairs.keys)
    slot = find(pairs.keys, U(pairs.start[task]), U(pairs.size[task]), np.uint32(feature))
    return int(np.int64(slot)) if pairs.keys[slot] != FREE else len(pairs.keys)


@leaf
def too_full(n: int, size: int) -> bool:
    """Would n pairs take more than three quarters of the slots?"""
    return 4 * n > 3 * size


@leaf_entry
def size_for(n: int) -> int:
    """Slots of the smallest table for n pairs."""
    size = FIRST_SIZE
    while too_full(n, size):
        size *= 2
    return size


@leaf
def has_room(rounds: Rounds, first: int, last: int, pairs: Pairs) -> bool:
    """Could the tasks of rows `first` to `last` (and one more pair each) all move at once, should they have to?"""
    wanted = 0
    for row in range(first, last):
        n = rounds.width if rounds.width > 0 else rounds.indptr[row + 1] - rounds.indptr[row]
        after = pairs.filled[rounds.task[row]] + n + 1
        if too_full(after, pairs.size[rounds.task[row]]):
            wanted += size_for(after)
    return bool(pairs.used[0] + wanted <= len(pairs.keys))


@leaf
def add_pair(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """The slot of a pair, which starts with zeros if it is new; `make_room` came first."""
    start, size = U(pairs.start[task]), U(pairs.size[task])
    slot = find(pairs.keys, start, size, np.uint32(feature))
    if pairs.keys[slot] == FREE:
        slot = put(pairs, start, size, np.uint32(feature))
        pairs.filled[task] += 1
    return int(np.int64(slot))


@leaf
def _power(size: int) -> int:
    """i for a size of 2^i."""
    i = 0
    while 1 << i < size:
        i += 1
    return i


@leaf
def _piece(pairs: Pairs, size: int) -> int:
    """Where blank slots start: those of a table that moved, or new ones."""
    i = _power(size)
    if pairs.spare[i] > 0:
        start = int(pairs.spare[i]) - 1
        pairs.spare[i] = pairs.keys[start]
        pairs.keys[start] = FREE
        return start
    pairs.used[0] += size
    return int(pairs.used[0]) - size


@leaf
def _give_back(pairs: Pairs, start: int, size: int) -> None:
    """Blank the slots of a table, for the next that is so large."""
    for slot in range(U(start), U(start + size)):
        pairs.keys[slot] = FREE
        pairs.hints[slot] = 0
        for i in range(pairs.records.shape[1]):
            pairs.records[slot, i] = 0.0
    i = _power(size)
    pairs.keys[start] = pairs.spare[i]
    pairs.spare[i] = start + 1


@leaf_apart
def make_room(pairs: Pairs, task: int, n: int) -> None:
    """Let the task's table take n more pairs; it may move."""
    if not too_full(pairs.filled[task] + n, pairs.size[task]):
        return
    old, old_size = pairs.start[task], pairs.size[task]
    size = size_for(pairs.filled[task] + n)
    start = _piece(pairs, size)
    for slot in range(U(old), U(old + old_size)):
        if pairs.keys[slot] != FREE:
            to = put(pairs, U(start), U(size), np.uint32(pairs.keys[slot] - 1))
            for i in range(pairs.records.shape[1]):
                pairs.records[to, i] = pairs.records[slot, i]
    if old_size > 0:
        _give_back(pairs, old, old_size)
    pairs.start[task], pairs.size[task] = start, size


@leaf_entry
def _copy(old: Pairs, new: Pairs, n_tasks: int) -> None:
    for task in range(n_tasks):
        if old.filled[task] > 0:
            make_room(new, task, old.filled[task])
            for slot in range(old.start[task], old.start[task] + old.size[task]):
                if old.keys[slot] != FREE:
                    to = add_pair(new, task, old.keys[slot] - 1)
                    for i in range(old.records.shape[1]):
                        new.records[to, i] = old.records[slot, i]


def roomier(pairs: Pairs) -> Pairs:
    """The same tables, where they are, in an arena four times as large."""
    new = new_pairs(pairs.records.shape[1], len(pairs.start), 4 * len(pairs.keys), pairs.records.dtype)
    used = int(pairs.used[0])
    for name in ("keys", "records", "hints"):
        getattr(new, name)[:used] = getattr(pairs, name)[:used]
    return new._replace(start=pairs.start, size=pairs.size, filled=pairs.filled, used=pairs.used, spare=pairs.spare)


def compact(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same pairs of the first tasks in no more room than they need."""
    room = sum(size_for(int(n)) for n in pairs.filled[:n_tasks] if n > 0)
    new = new_pairs(pairs.records.shape[1], n_tasks, max(room, FIRST_ROOM), pairs.records.dtype)
    _copy(pairs, new, n_tasks)
    return new


@leaf_entry
def _forget(pairs: Pairs, task: int) -> None:
    if pairs.size[task] > 0:
        _give_back(pairs, pairs.start[task], pairs.size[task])
    pairs.size[task] = pairs.filled[task] = 0


def without_task(pairs: Pairs, task: int) -> None:
    """Empty a task's table; its slots are there for others."""
    _forget(pairs, task)


def task_records(pairs: Pairs, task: int, n_features: int) -> NDArray[np.float64]:
    """(n_features, numbers) of a task as a dense array."""
    mine = slice(pairs.start[task], pairs.start[task] + pairs.size[task])
    keys, records = pairs.keys[mine], pairs.records[mine]
    dense = np.zeros((n_features, records.shape[1]))
    dense[keys[keys != FREE] - 1] = records[keys != FREE]
    return dense
