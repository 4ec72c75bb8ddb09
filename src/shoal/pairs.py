"""Numbers for each (task, feature) pair that has occurred: memory goes by the pairs there are, not by K x d.

Every task has a hash table of its own, all in one arena, so that what a row touches lies close together. A table is
a power of two of slots, at most three quarters of them taken, in groups of eight: a line of memory, whose keys one
instruction compares, so that what is asked for is mostly known without a branch. A pair whose group is full goes to
the next. A table that gets too full moves into a piece twice its size; the old one is used again. When the arena is
used up, a loop stops before the round that might not fit, and its caller makes the arena four times as large: what
is not written yet takes no memory. The numbers themselves lie in records in the order in which their pairs came,
without gaps, and never move: a slot tells where.

Learners that err rarely ask for pairs most of which do not occur. For these learners a bit for each of eight features
in a byte for each slot tells so without a look at the table, wrongly only where two blocks of features share a home.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.ops import GROUP, equal, in_lines, leaf, leaf_apart, leaf_entry, lowest_bit, prefetch
from shoal.rounds import FloatArray, IntArray, Rounds

FREE = 0
FIRST_ROOM, FIRST_SIZE = 256, 8
MOST_ROOM = 2**31  # slots; places are int32
CACHED = 2**14  # slots; with records of eight numbers about a MiB, which a core's own cache holds
BLOCK = 3  # features whose numbers differ in the last 3 bits lie close together: in text, frequent words do
U = np.uint64  # unsigned positions cannot wrap around, so there is no test for it
KEY, PLACE = 0, 1  # positions in a group, of eight numbers each
SLOTS, RECORDS = 0, 1  # positions in `used`
FEATURE, SLOT = 0, 2  # positions in `waiting`, besides PLACE
MOST_WAITING = 64
NOWHERE = 0  # the place of the zero record


class Pairs(NamedTuple):
    """The tables; task k's slots are start[k] to start[k] + size[k] - 1. Nothing is written before it is needed."""

    slots: IntArray  # (2 room,) int32: of each group eight keys (FREE, or a feature + 1), then where their records are
    taken: NDArray[np.uint8]  # (room / 8,) so many of a group's slots, the first ones, are
    records: FloatArray  # (1 + most pairs, numbers a pair); the first is zero: what a pair that is not there has
    hints: NDArray[np.uint8]  # (room,) bit j & 7 at the home of feature j's block: j may occur; or none
    start: IntArray  # (tasks,)
    size: IntArray  # (tasks,) a power of two, or 0
    filled: IntArray  # (tasks,) pairs of the task
    used: IntArray  # (2,) slots that were ever given away; records
    waiting: IntArray  # (3, 64) scratch: features and places that are to be put into a table, and where they go
    spare: IntArray  # (32,) 1 + where a blank piece of 2^i slots starts, whose first key is that of the next; or 0


def new_pairs(
    n_numbers: int, n_tasks: int, room: int = FIRST_ROOM, dtype: Any = np.float64, *, hints: bool = True
) -> Pairs:
    """Empty tables."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    slots = in_lines((2 * room,), np.int32)
    records = in_lines((1 + 3 * room // 4, n_numbers), dtype)  # tables are never fuller
    taken, may_occur = np.zeros(room // GROUP, np.uint8), np.zeros(room if hints else 0, np.uint8)
    used, waiting, spare = np.array([0, 1]), np.zeros((3, MOST_WAITING), np.int64), np.zeros(32, np.int64)
    return Pairs(slots, taken, records, may_occur, start, size, filled, used, waiting, spare)


def for_tasks(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same arena for another number of tasks, whose tables are still to be told."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    return pairs._replace(start=start, size=size, filled=filled)


@leaf
def block_home(size: np.uint64, feature: np.uint32) -> np.uint64:
    """A slot that depends on the feature's block; Fibonacci hashing: the high bits are mixed."""
    return (U(feature >> np.uint32(BLOCK)) * U(0x9E3779B97F4A7C15) >> U(34)) & (size - U(1))


@leaf
def home(start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """The group where a feature goes if there is a free slot; those of a block have groups side by side."""
    group = block_home(size, feature) // U(GROUP) ^ U(feature & np.uint32(7))
    return start // U(GROUP) + (group & (size // U(GROUP) - U(1)))


@leaf
def next_group(start: np.uint64, size: np.uint64, group: np.uint64) -> np.uint64:
    """Where to look if all of a group's slots are other pairs'."""
    first = start // U(GROUP)
    return first + ((group - first + U(1)) & (size // U(GROUP) - U(1)))


@leaf
def hint(pairs: Pairs, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """1 if the pair may occur, 0 if it does not."""
    return U(pairs.hints[start + block_home(size, feature)] >> np.uint8(feature & np.uint32(7))) & U(1)


@leaf
def with_key(slots: IntArray, group: np.uint64, key: np.int32) -> np.uint64:
    """Bit i: the group's slot i has this key."""
    return equal(slots, group * U(2 * GROUP), key)


@leaf
def fetch(slots: IntArray, start: np.uint64, size: np.uint64, feature: np.uint32) -> None:
    """Have the group brought from memory where `find` will look first."""
    prefetch(slots, home(start, size, feature) * U(2 * GROUP))


@leaf
def find(slots: IntArray, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint32:
    """The place of the pair's record; if it does not occur, that of a free slot: NOWHERE."""
    group, key = home(start, size, feature), np.int32(feature) + np.int32(1)
    while True:
        here, free = with_key(slots, group, key), with_key(slots, group, np.int32(FREE))
        if here | free != U(0):
            return np.uint32(slots[group * U(2 * GROUP) + U(GROUP) + lowest_bit(here if here != U(0) else free)])
        group = next_group(start, size, group)


@leaf
def put_all(pairs: Pairs, task_start: int, task_size: int, n: int) -> None:
    """Let slots say where the records of the n pairs that wait lie, none of which is in the table yet.

    It is known where all go before the first is written: a processor that does not know yet where it will write does
    not read ahead, and pairs would wait for memory one by one, which takes twice as long.
    """
    start, size = U(task_start), U(task_size)
    for k in range(n):
        feature = np.uint32(pairs.waiting[FEATURE, k])
        group = home(start, size, feature)
        while pairs.taken[group] == GROUP:
            group = next_group(start, size, group)
        pairs.waiting[SLOT, k] = group * U(2 * GROUP) + U(pairs.taken[group])
        prefetch(pairs.slots, group * U(2 * GROUP))
        pairs.taken[group] += np.uint8(1)
        if len(pairs.hints) > 0:
            pairs.hints[start + block_home(size, feature)] |= np.uint8(1) << np.uint8(feature & np.uint32(7))
    for k in range(n):
        slot = U(pairs.waiting[SLOT, k])
        pairs.slots[slot] = np.int32(pairs.waiting[FEATURE, k]) + np.int32(1)
        pairs.slots[slot + U(GROUP)] = pairs.waiting[PLACE, k]


class Found(NamedTuple):
    """Where the pairs of a row are; room for the longest row each."""

    place: IntArray  # of the record, or NOWHERE
    entry: IntArray  # first the entries of the row whose pairs do not occur


@leaf
def find_all(pairs: Pairs, task: int, features: IntArray, found: Found) -> int:
    """Look for a row's pairs, and say how many do not occur yet."""
    place, entry, missing = found.place, found.entry, 0
    if task < 0 or pairs.size[task] == 0:
        for i in range(len(features)):
            place[i], entry[i] = NOWHERE, i
        return len(features)
    start, size = U(pairs.start[task]), U(pairs.size[task])
    if pairs.used[SLOTS] >= CACHED:
        for i in range(len(features)):
            fetch(pairs.slots, start, size, np.uint32(features[i]))
    for i in range(len(features)):
        place[i] = find(pairs.slots, start, size, np.uint32(features[i]))
        entry[missing] = i
        missing += int(place[i] == NOWHERE)
    return missing


@leaf
def add_all(pairs: Pairs, task: int, features: IntArray, missing: int, found: Found) -> None:
    """Give those pairs of a row that `find_all` missed their records, which are zero."""
    make_room(pairs, task, missing)
    for first in range(0, missing, MOST_WAITING):
        n = min(missing - first, MOST_WAITING)
        for k in range(n):
            i = np.uint32(found.entry[first + k])
            pairs.waiting[FEATURE, k] = features[i]
            found.place[i] = pairs.used[RECORDS] + k
        add_waiting(pairs, task, n)


@leaf
def add_waiting(pairs: Pairs, task: int, n: int) -> None:
    """Give n new pairs the next records."""
    for k in range(n):
        pairs.waiting[PLACE, k] = pairs.used[RECORDS] + k
    put_all(pairs, pairs.start[task], pairs.size[task], n)
    pairs.used[RECORDS] += n
    pairs.filled[task] += n


@leaf
def place_of(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """Where the pair's record lies, or the zero record."""
    if task < 0 or pairs.size[task] == 0:
        return NOWHERE
    return int(find(pairs.slots, U(pairs.start[task]), U(pairs.size[task]), np.uint32(feature)))


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
    return bool(pairs.used[SLOTS] + wanted <= len(pairs.slots) // 2)


@leaf
def new_pair(pairs: Pairs, task: int, feature: int | np.uint32) -> int:
    """The place of a pair that does not occur yet; its record is zero. `make_room` came first."""
    place = int(pairs.used[RECORDS])
    pairs.waiting[FEATURE, 0] = feature
    add_waiting(pairs, task, 1)
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
        pairs.spare[i] = pairs.slots[2 * start]
        pairs.slots[2 * start] = FREE
        return start
    pairs.used[SLOTS] += size
    return int(pairs.used[SLOTS]) - size


@leaf
def _give_back(pairs: Pairs, start: int, size: int) -> None:
    """Blank the slots of a table, for the next that is so large."""
    for i in range(U(2 * start), U(2 * (start + size))):
        pairs.slots[i] = 0
    for group in range(U(start // GROUP), U((start + size) // GROUP)):
        pairs.taken[group] = 0
    for i in range(U(start), U(start + size) if len(pairs.hints) > 0 else U(start)):
        pairs.hints[i] = 0
    i = _power(size)
    pairs.slots[2 * start] = pairs.spare[i]
    pairs.spare[i] = start + 1


@leaf_apart
def make_room(pairs: Pairs, task: int, n: int) -> None:
    """Let the task's table take n more pairs."""
    if not too_full(pairs.filled[task] + n, pairs.size[task]):
        return
    old, old_size = pairs.start[task], pairs.size[task]
    size = size_for(pairs.filled[task] + n)
    start = _piece(pairs, size)
    waiting = 0
    for group in range(U(old // GROUP), U((old + old_size) // GROUP)):
        for slot in range(U(2 * GROUP) * group, U(2 * GROUP) * group + U(pairs.taken[group])):
            pairs.waiting[FEATURE, waiting] = pairs.slots[slot] - 1
            pairs.waiting[PLACE, waiting] = pairs.slots[slot + U(GROUP)]
            waiting += 1
        if waiting > MOST_WAITING - GROUP:
            put_all(pairs, start, size, waiting)
            waiting = 0
    put_all(pairs, start, size, waiting)
    if old_size > 0:
        _give_back(pairs, old, old_size)
    pairs.start[task], pairs.size[task] = start, size


@leaf_entry
def _copy(old: Pairs, new: Pairs, n_tasks: int) -> None:
    for task in range(n_tasks):
        if old.filled[task] > 0:
            make_room(new, task, old.filled[task])
            for group in range(old.start[task] // GROUP, (old.start[task] + old.size[task]) // GROUP):
                for i in range(2 * GROUP * group, 2 * GROUP * group + old.taken[group]):
                    place = new_pair(new, task, old.slots[i] - 1)
                    for number in range(old.records.shape[1]):
                        new.records[place, number] = old.records[old.slots[i + GROUP], number]


def roomier(pairs: Pairs) -> Pairs:
    """The same tables, where they are, in an arena four times as large."""
    room = len(pairs.slots) // 2
    if room >= MOST_ROOM:
        raise OverflowError(f"no room for more (task, feature) pairs: all {MOST_ROOM:,} slots of the tables are used")
    larger, hints = min(4 * room, MOST_ROOM), len(pairs.hints) > 0
    new = new_pairs(pairs.records.shape[1], len(pairs.start), larger, pairs.records.dtype, hints=hints)
    n_slots, n_records = map(int, pairs.used)
    new.slots[: 2 * n_slots] = pairs.slots[: 2 * n_slots]
    new.taken[: n_slots // GROUP] = pairs.taken[: n_slots // GROUP]
    new.hints[:n_slots] = pairs.hints[:n_slots]  # if any
    new.records[:n_records] = pairs.records[:n_records]
    return pairs._replace(slots=new.slots, taken=new.taken, records=new.records, hints=new.hints)


def compact(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same pairs of the first tasks in no more room than they need."""
    room = sum(size_for(int(n)) for n in pairs.filled[:n_tasks] if n > 0)
    room, hints = max(room, FIRST_ROOM), len(pairs.hints) > 0
    new = new_pairs(pairs.records.shape[1], n_tasks, room, pairs.records.dtype, hints=hints)
    _copy(pairs, new, n_tasks)
    new.waiting[:] = 0  # equal models are saved alike
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
    groups = pairs.slots[: 2 * n_slots].reshape(-1, 2, GROUP)
    groups[:, PLACE] = place[groups[:, PLACE]]  # of a free slot: NOWHERE, as before
    n_left = int(place[-1]) + 1
    pairs.records[:n_left] = pairs.records[:n_records][stays]
    pairs.records[n_left:n_records] = 0.0
    pairs.used[RECORDS] = n_left


def of_task(pairs: Pairs, task: int) -> tuple[IntArray, IntArray]:
    """The features that occur in a task, and the places of their records."""
    first, last = 2 * pairs.start[task], 2 * (pairs.start[task] + pairs.size[task])
    groups = pairs.slots[first:last].reshape(-1, 2, GROUP)
    taken = groups[:, KEY] != FREE
    return groups[:, KEY][taken] - 1, groups[:, PLACE][taken]


def task_records(pairs: Pairs, task: int, n_features: int) -> NDArray[np.float64]:
    """(n_features, numbers) of a task as a dense array."""
    dense = np.zeros((n_features, pairs.records.shape[1]))
    features, places = of_task(pairs, task)
    dense[features] = pairs.records[places]
    return dense
