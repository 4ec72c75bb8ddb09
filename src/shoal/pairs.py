"""Numbers for each (task, feature) pair that has occurred: memory goes by the pairs there are, not by K x d.

Every task has a hash table of its own, all in one arena, so that what a row touches lies close together. Open
addressing over a power of two of slots, at most three quarters of them taken. A table that gets too full moves into
a piece twice its size; the old one is used again. When the arena is used up, a loop stops before the round that
might not fit, and its caller makes the arena four times as large: what is not written yet takes no memory. The
numbers themselves lie in records in the order in which their pairs came, without gaps, and never move: a slot tells
where.

Most pairs that are asked for do not occur. A bit for each of eight features in a byte for each slot tells so without
a look at the table, wrongly only where two blocks of features share a home.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.ops import in_lines, leaf, leaf_apart, leaf_entry, prefetch
from shoal.rounds import FloatArray, IntArray, Rounds

FREE = 0
FIRST_ROOM, FIRST_SIZE = 256, 8
MOST_ROOM = 2**31  # slots; places are int32
CACHED = 2**14  # slots; with records of eight numbers about a MiB, which a core's own cache holds
BLOCK = 3  # features whose numbers differ in the last 3 bits lie side by side: in text, frequent words do
U = np.uint64  # unsigned positions cannot wrap around, so there is no test for it
KEY, PLACE = 0, 1  # positions in a slot
SLOTS, RECORDS = 0, 1  # positions in `used`
NOWHERE = 0  # the place of the zero record


class Pairs(NamedTuple):
    """The tables; task k's slots are start[k] to start[k] + size[k] - 1. Nothing is written before it is needed."""

    slots: IntArray  # (room, 2) int32: FREE, or a feature + 1; the place of its record
    records: FloatArray  # (1 + most pairs, numbers a pair); the first is zero: what a pair that is not there has
    hints: NDArray[np.uint8]  # (room,) bit j & 7 at the home of feature j's block: j may occur
    start: IntArray  # (tasks,)
    size: IntArray  # (tasks,) a power of two, or 0
    filled: IntArray  # (tasks,) pairs of the task
    used: IntArray  # (2,) slots that were ever given away; records
    spare: IntArray  # (32,) 1 + where a blank piece of 2^i slots starts, whose first key is that of the next; or 0


def new_pairs(n_numbers: int, n_tasks: int, room: int = FIRST_ROOM, dtype: Any = np.float64) -> Pairs:
    """Empty tables."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    slots, hints = in_lines((room, 2), np.int32), np.zeros(room, np.uint8)
    records = in_lines((1 + 3 * room // 4, n_numbers), dtype)  # tables are never fuller
    return Pairs(slots, records, hints, start, size, filled, np.array([0, 1]), np.zeros(32, np.int64))


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
def find(slots: IntArray, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """The pair's slot, or the free slot where it would go, which has the place of the zero record; there is one."""
    slot, key = home(size, feature), np.int32(feature) + np.int32(1)
    while slots[start + slot, KEY] != key:
        if slots[start + slot, KEY] == FREE:
            break
        slot = (slot + U(9)) & (size - U(1))  # the next block; odd, so that every slot's turn comes
    return start + slot


@leaf
def put(pairs: Pairs, start: np.uint64, size: np.uint64, feature: np.uint32, place: int) -> None:
    """Let a slot say where the record of a pair lies that is not in the table yet."""
    slot = home(size, feature)
    while pairs.slots[start + slot, KEY] != FREE:
        slot = (slot + U(9)) & (size - U(1))
    pairs.slots[start + slot, KEY], pairs.slots[start + slot, PLACE] = np.int32(feature) + np.int32(1), place
    pairs.hints[start + block_home(size, feature)] |= np.uint8(1) << np.uint8(feature & np.uint32(7))


@leaf
def bring(pairs: Pairs, task: int, features: IntArray) -> None:
    """Have the homes of a row's pairs brought from memory, if caches do not hold them.

    A search ends in a branch, which is often foreseen wrongly, and each wrong one would wait for memory by itself.
    """
    if task < 0 or pairs.size[task] == 0 or pairs.used[SLOTS] < CACHED:
        return
    start, size = U(pairs.start[task]), U(pairs.size[task])
    for i in range(len(features)):
        prefetch(pairs.slots, U(2) * (start + home(size, np.uint32(features[i]))))


@leaf
def place_of(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """Where the pair's record lies, or the zero record."""
    if task < 0 or pairs.size[task] == 0:
        return NOWHERE
    return int(pairs.slots[find(pairs.slots, U(pairs.start[task]), U(pairs.size[task]), np.uint32(feature)), PLACE])


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
    return bool(pairs.used[SLOTS] + wanted <= len(pairs.slots))


@leaf
def new_pair(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """The place of a pair that does not occur yet; its record is zero. `make_room` came first."""
    place = int(pairs.used[RECORDS])
    put(pairs, U(pairs.start[task]), U(pairs.size[task]), np.uint32(feature), place)
    pairs.used[RECORDS] += 1
    pairs.filled[task] += 1
    return place


@leaf
def add_pair(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """The place of a pair, new or not; `make_room` came first."""
    place = place_of(pairs, task, feature)
    return place if place != NOWHERE else new_pair(pairs, task, feature)


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
        pairs.spare[i] = pairs.slots[start, KEY]
        pairs.slots[start, KEY] = FREE
        return start
    pairs.used[SLOTS] += size
    return int(pairs.used[SLOTS]) - size


@leaf
def _give_back(pairs: Pairs, start: int, size: int) -> None:
    """Blank the slots of a table, for the next that is so large."""
    for slot in range(U(start), U(start + size)):
        pairs.slots[slot, KEY], pairs.slots[slot, PLACE] = FREE, NOWHERE
        pairs.hints[slot] = 0
    i = _power(size)
    pairs.slots[start, KEY] = pairs.spare[i]
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
        if pairs.slots[slot, KEY] != FREE:
            put(pairs, U(start), U(size), np.uint32(pairs.slots[slot, KEY] - 1), pairs.slots[slot, PLACE])
    if old_size > 0:
        _give_back(pairs, old, old_size)
    pairs.start[task], pairs.size[task] = start, size


@leaf_entry
def _copy(old: Pairs, new: Pairs, n_tasks: int) -> None:
    for task in range(n_tasks):
        if old.filled[task] > 0:
            make_room(new, task, old.filled[task])
            for slot in range(old.start[task], old.start[task] + old.size[task]):
                if old.slots[slot, KEY] != FREE:
                    place = new_pair(new, task, old.slots[slot, KEY] - 1)
                    for i in range(old.records.shape[1]):
                        new.records[place, i] = old.records[old.slots[slot, PLACE], i]


def roomier(pairs: Pairs) -> Pairs:
    """The same tables, where they are, in an arena four times as large."""
    if len(pairs.slots) >= MOST_ROOM:
        raise OverflowError(f"no room for more (task, feature) pairs: all {MOST_ROOM:,} slots of the tables are used")
    room = min(4 * len(pairs.slots), MOST_ROOM)
    new = new_pairs(pairs.records.shape[1], len(pairs.start), room, pairs.records.dtype)
    n_slots, n_records = map(int, pairs.used)
    new.slots[:n_slots], new.hints[:n_slots] = pairs.slots[:n_slots], pairs.hints[:n_slots]
    new.records[:n_records] = pairs.records[:n_records]
    return pairs._replace(slots=new.slots, records=new.records, hints=new.hints)


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
    """Empty a task's table: its slots are there for others, and the other records close up."""
    n_slots, n_records = map(int, pairs.used)
    stays = np.ones(n_records, bool)
    stays[of_task(pairs, task)[1]] = False
    _forget(pairs, task)
    place = np.cumsum(stays) - 1
    pairs.slots[:n_slots, PLACE] = place[pairs.slots[:n_slots, PLACE]]  # of a free slot: NOWHERE, as before
    n_left = int(place[-1]) + 1
    pairs.records[:n_left] = pairs.records[:n_records][stays]
    pairs.records[n_left:n_records] = 0.0
    pairs.used[RECORDS] = n_left


def of_task(pairs: Pairs, task: int) -> tuple[IntArray, IntArray]:
    """The features that occur in a task, and the places of their records."""
    slots = pairs.slots[pairs.start[task] : pairs.start[task] + pairs.size[task]]
    taken = slots[slots[:, KEY] != FREE]
    return taken[:, KEY] - 1, taken[:, PLACE]


def task_records(pairs: Pairs, task: int, n_features: int) -> NDArray[np.float64]:
    """(n_features, numbers) of a task as a dense array."""
    dense = np.zeros((n_features, pairs.records.shape[1]))
    features, places = of_task(pairs, task)
    dense[features] = pairs.records[places]
    return dense
