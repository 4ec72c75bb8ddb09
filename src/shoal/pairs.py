"""Numbers for each (task, feature) pair that has occurred: memory goes by the pairs there are, not by K x d.

Every task has a hash table of its own, all in one arena, so that what a row touches lies close together. Open
addressing over a power of two of slots, at most three quarters of them taken. A table that gets too full moves into
a piece twice its size; the old one is used again. When the arena is used up, a loop stops before the round that
might not fit, and its caller makes the arena four times as large: what is not written yet takes no memory. The
numbers themselves lie in records in the order in which their pairs came, without gaps, and never move: a slot tells
where.

Learners that err rarely ask for pairs most of which do not occur. For these learners a bit for each of eight features
in a byte for each slot tells so without a look at the table, wrongly only where two blocks of features share a home.
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
    hints: NDArray[np.uint8]  # (room,) bit j & 7 at the home of feature j's block: j may occur; or none
    start: IntArray  # (tasks,)
    size: IntArray  # (tasks,) a power of two, or 0
    filled: IntArray  # (tasks,) pairs of the task
    used: IntArray  # (2,) slots that were ever given away; records
    spare: IntArray  # (32,) 1 + where a blank piece of 2^i slots starts, whose first key is that of the next; or 0


def new_pairs(
    n_numbers: int, n_tasks: int, room: int = FIRST_ROOM, dtype: Any = np.float64, *, hints: bool = True
) -> Pairs:
    """Empty tables."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    slots = in_lines((room, 2), np.int32)
    records = in_lines((1 + 3 * room // 4, n_numbers), dtype)  # tables are never fuller
    may_occur, used = np.zeros(room if hints else 0, np.uint8), np.array([0, 1])
    return Pairs(slots, records, may_occur, start, size, filled, used, np.zeros(32, np.int64))


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
def next_slot(size: np.uint64, slot: np.uint64) -> np.uint64:
    """Where to look if another pair is there: in the next block; odd, so that every slot's turn comes."""
    return (slot + U(9)) & (size - U(1))


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
        slot = next_slot(size, slot)
    return start + slot


@leaf
def put_from(pairs: Pairs, start: np.uint64, size: np.uint64, slot: np.uint64, feature: np.uint32, place: int) -> None:
    """`put` that goes from a slot on."""
    while pairs.slots[start + slot, KEY] != FREE:
        slot = next_slot(size, slot)
    pairs.slots[start + slot, KEY], pairs.slots[start + slot, PLACE] = np.int32(feature) + np.int32(1), place
    if len(pairs.hints) > 0:
        pairs.hints[start + block_home(size, feature)] |= np.uint8(1) << np.uint8(feature & np.uint32(7))


@leaf
def put(pairs: Pairs, start: np.uint64, size: np.uint64, feature: np.uint32, place: int) -> None:
    """Let a slot say where the record of a pair lies that is not in the table yet."""
    put_from(pairs, start, size, home(size, feature), feature, place)


class Found(NamedTuple):
    """Where the pairs of a row are; room for the longest row each."""

    slot: IntArray  # the pair's, or the free one where it would go
    place: IntArray  # of its record, or NOWHERE
    entry: IntArray  # first the entries of the row whose pairs do not occur


@leaf
def find_all(pairs: Pairs, task: int, features: IntArray, found: Found) -> int:
    """Look for a row's pairs, and say how many do not occur yet."""
    slot, place, entry, missing = found.slot, found.place, found.entry, 0
    if task < 0 or pairs.size[task] == 0:
        for i in range(len(features)):
            place[i], entry[i] = NOWHERE, i
        return len(features)
    start, size = U(pairs.start[task]), U(pairs.size[task])
    if pairs.used[SLOTS] < CACHED:
        for i in range(len(features)):
            slot[i] = find(pairs.slots, start, size, np.uint32(features[i]))
            place[i] = pairs.slots[U(slot[i]), PLACE]
    else:
        _find_together(pairs.slots, start, size, features, found)
    for i in range(len(features)):
        entry[missing] = i
        missing += int(place[i] == NOWHERE)
    return missing


@leaf
def _find_together(slots: IntArray, start: np.uint64, size: np.uint64, features: IntArray, found: Found) -> None:
    """All that are not found yet go one slot further at a time, without a branch for each.

    A branch that is foreseen wrongly would wait for memory by itself.
    """
    slot, entry, left = found.slot, found.entry, len(features)
    for i in range(left):
        slot[i], entry[i] = start + home(size, np.uint32(features[i])), i
        prefetch(slots, U(2) * U(slot[i]))
    while left > 0:
        left = _look_once(left, start, size, slots, features, found)


@leaf
def _look_once(n: int, start: np.uint64, size: np.uint64, slots: IntArray, features: IntArray, found: Found) -> int:
    """Look at a slot for each of the first entries; those that found another pair there come first."""
    slot, place, entry, left = found.slot, found.place, found.entry, 0
    for k in range(n):
        i = np.uint32(entry[k])
        here = U(slot[i])
        key = slots[here, KEY]
        another = (key != FREE) & (key != np.int32(features[i]) + np.int32(1))
        place[i], entry[left] = slots[here, PLACE], i
        slot[i] = start + next_slot(size, here - start) if another else here
        left += int(another)
    return left


@leaf
def add_all(pairs: Pairs, task: int, features: IntArray, missing: int, found: Found) -> None:
    """Give those pairs of a row that `find_all` missed their records, which are zero."""
    if make_room(pairs, task, missing):
        find_all(pairs, task, features, found)
    start, size = U(pairs.start[task]), U(pairs.size[task])
    for k in range(missing):
        i, place = np.uint32(found.entry[k]), int(pairs.used[RECORDS]) + k
        put_from(pairs, start, size, U(found.slot[i]) - start, np.uint32(features[i]), place)
        found.place[i] = place
    pairs.used[RECORDS] += missing
    pairs.filled[task] += missing


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
        if len(pairs.hints) > 0:
            pairs.hints[slot] = 0
    i = _power(size)
    pairs.slots[start, KEY] = pairs.spare[i]
    pairs.spare[i] = start + 1


@leaf_apart
def make_room(pairs: Pairs, task: int, n: int) -> bool:
    """Let the task's table take n more pairs; did it move?"""
    if not too_full(pairs.filled[task] + n, pairs.size[task]):
        return False
    old, old_size = pairs.start[task], pairs.size[task]
    size = size_for(pairs.filled[task] + n)
    start = _piece(pairs, size)
    for slot in range(U(old), U(old + old_size)):
        if pairs.slots[slot, KEY] != FREE:
            put(pairs, U(start), U(size), np.uint32(pairs.slots[slot, KEY] - 1), pairs.slots[slot, PLACE])
    if old_size > 0:
        _give_back(pairs, old, old_size)
    pairs.start[task], pairs.size[task] = start, size
    return True


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
    new = new_pairs(pairs.records.shape[1], len(pairs.start), room, pairs.records.dtype, hints=len(pairs.hints) > 0)
    n_slots, n_records = map(int, pairs.used)
    new.slots[:n_slots], new.hints[:n_slots] = pairs.slots[:n_slots], pairs.hints[:n_slots]  # if any
    new.records[:n_records] = pairs.records[:n_records]
    return pairs._replace(slots=new.slots, records=new.records, hints=new.hints)


def compact(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same pairs of the first tasks in no more room than they need."""
    room = sum(size_for(int(n)) for n in pairs.filled[:n_tasks] if n > 0)
    room, hints = max(room, FIRST_ROOM), len(pairs.hints) > 0
    new = new_pairs(pairs.records.shape[1], n_tasks, room, pairs.records.dtype, hints=hints)
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
