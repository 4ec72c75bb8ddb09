"""Sparse weights: one hash table per task in a shared arena. Memory grows with the pairs seen, not with K x d.

A table has a power of two of groups. A group is a cache line: the keys of its slots, which one instruction compares,
then their values. A value is a float64 (five slots a group), or an int32, the place of the pair's numbers if it has
several (eight slots). At most three quarters of the slots are taken; a pair whose group is full goes to the next group.
A table that is too full moves to a piece of the arena four times its size, later twice; the old piece is reused. When
the arena is full, the loop stops before the round that might not fit, and its caller makes the arena at least four
times larger: pages that are not written yet take no memory.

Most look-ups of a mistake-driven learner miss. So each table of float64 has a small filter (`hints`), four bytes a
group, that answers "absent" without touching the table; it is wrong only where two blocks of eight features share a
home group.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LINE, IndexArray, IntArray, aligned_zeros
from shoal.engine.axes import ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import equal, lowest_bit, number_in, prefetch, set_number
from shoal.engine.rounds import Rounds

FREE = 0
WORDS = 16  # int32 numbers of a group: five keys, one that is not used, five times two; or eight keys, eight places
NUMBERS, PLACES = 5, 8  # slots of a group
HINTS = 4  # bytes a group
FIRST_CAPACITY, FIRST_SIZE = 64, 1  # groups
SMALL = 512  # groups, 32 KiB
MOST_CAPACITY = 2**28  # groups; places are int32
MOST_AT_ONCE = 2**21  # groups that an arena gets because of rows to come, not because it was full
PAIRS_A_GROUP = 2  # of tables that grow fourfold and leave blank pieces behind
BLOCK = 3  # features whose numbers differ in the last 3 bits lie close together: in text, frequent words do
U = np.uint64  # unsigned positions cannot wrap around, so there is no test for it
FEATURE, SLOT, SOURCE = 0, 1, 2  # positions in `waiting`
MOST_WAITING = 64


class Tables(NamedTuple):
    """Task k's groups are start[k] to start[k] + size[k] - 1. Nothing is written before it is needed."""

    # (16 capacity,) of each group: its keys (FREE, or a feature + 1), then the content of its slots
    words: Annotated[IndexArray, ROW]
    # (capacity,) number of used slots per group; they are its first ones
    taken: Annotated[NDArray[np.uint8], ROW]
    # (4 capacity,) bit j & 7 at the home of feature j's block: j may occur; empty for places
    hints: Annotated[NDArray[np.uint8], ROW]
    start: Annotated[IntArray, TASK]
    size: Annotated[IntArray, TASK]  # groups, a power of two, or 0
    filled: Annotated[IntArray, TASK]  # pairs of the task
    used: Annotated[IntArray, ROW]  # (1,) groups that tables took so far
    # (3, 64) scratch: features to be put into a table, their slots, and the new content of these
    waiting: Annotated[IntArray, ROW]
    # (32,) 1 + the start of a blank piece of 2^i groups, whose first word is that of the next one; or 0
    spare: Annotated[IntArray, ROW]


def new_tables(n_tasks: int, capacity: int, slots: int) -> Tables:
    """Empty tables for NUMBERS or PLACES."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    taken, may_occur = np.zeros(capacity, np.uint8), np.zeros(HINTS * capacity if slots == NUMBERS else 0, np.uint8)
    used, waiting, spare = np.zeros(1, np.int64), np.zeros((3, MOST_WAITING), np.int64), np.zeros(32, np.int64)
    return Tables(
        aligned_zeros((WORDS * capacity,), np.int32), taken, may_occur, start, size, filled, used, waiting, spare
    )


def for_tasks(tables: Tables, n_tasks: int) -> Tables:
    """The same arena for another number of tasks, whose tables the caller sets."""
    start, size, filled = np.zeros((3, n_tasks), np.int64)
    return tables._replace(start=start, size=size, filled=filled)


@kernel(entry="too")
def slots_of(tables: Tables) -> int:
    """Slots of a group, by the kind of the tables."""
    return NUMBERS if len(tables.hints) > 0 else PLACES


@kernel
def place_of(tables: Tables, task: int) -> tuple[np.uint64, np.uint64]:
    """Start and size of a task's table."""
    return U(tables.start[task]), U(tables.size[task])


@kernel
def block_home(size: np.uint64, feature: np.uint32) -> np.uint64:
    """A byte of hints that depends on the feature's block; Fibonacci hashing: the high bits are mixed."""
    return (U(feature >> np.uint32(BLOCK)) * U(0x9E3779B97F4A7C15) >> U(32)) & (size * U(HINTS) - U(1))


@kernel
def home(start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """The group where a feature goes if there is a free slot; those of a block have groups side by side."""
    group = block_home(size, feature) // U(HINTS) ^ U(feature & np.uint32(7))
    return start + (group & (size - U(1)))


@kernel
def next_group(start: np.uint64, size: np.uint64, group: np.uint64) -> np.uint64:
    """The group to look in next if other pairs have all slots of a group."""
    return start + ((group - start + U(1)) & (size - U(1)))


@kernel
def hint(tables: Tables, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """1 if the pair may occur, 0 if it does not."""
    byte = tables.hints[start * U(HINTS) + block_home(size, feature)]
    return U(byte >> np.uint8(feature & np.uint32(7))) & U(1)


@kernel
def fetch(tables: Tables, start: np.uint64, size: np.uint64, feature: np.uint32) -> None:
    """Prefetch the group where `find` will look first."""
    prefetch(tables.words, home(start, size, feature) * U(WORDS))


@kernel
def fetch_hints(tables: Tables, task: int) -> None:
    """Prefetch all hints of a task."""
    for first in range(U(HINTS * tables.start[task]), U(HINTS * (tables.start[task] + tables.size[task])), U(LINE)):
        prefetch(tables.hints, first)


@kernel
def find_from(tables: Tables, start: np.uint64, size: np.uint64, group: np.uint64, feature: np.uint32) -> np.uint64:
    """`find`, from the feature's home on."""
    words, keys, key = tables.words, (U(1) << U(slots_of(tables))) - U(1), np.int32(feature) + np.int32(1)
    while True:
        first = group * U(WORDS)
        alike = (equal(words, first, key) | equal(words, first, np.int32(FREE))) & keys
        if alike != U(0):
            return first + lowest_bit(alike)  # free slots come last
        group = next_group(start, size, group)


@kernel
def find(tables: Tables, start: np.uint64, size: np.uint64, feature: np.uint32) -> np.uint64:
    """The pair's slot, which is where its key lies; if it does not occur, a free one, which holds zero."""
    return find_from(tables, start, size, home(start, size, feature), feature)


@kernel
def number_at(slot: int | np.uint64) -> np.uint64:
    """Where the number of a slot lies."""
    return U(slot) + U(NUMBERS + 1) + (U(slot) & U(WORDS - 1))


@kernel
def place_at(slot: int | np.uint64) -> np.uint64:
    """Where the place that a slot holds lies."""
    return U(slot) + U(PLACES)


@kernel
def take_slot(tables: Tables, start: np.uint64, size: np.uint64, feature: np.uint32, k: int) -> None:
    """Take a free slot for the k-th queued pair, which is not in the table; `write_key` follows when all have one.

    All slots are found before the first key is written: a processor that does not know yet where it will write does
    not read ahead, and pairs would wait for memory one by one, which takes twice as long.
    """
    group = home(start, size, feature)
    while tables.taken[group] == slots_of(tables):
        group = next_group(start, size, group)
    tables.waiting[SLOT, k] = group * U(WORDS) + U(tables.taken[group])
    prefetch(tables.words, group * U(WORDS))
    tables.taken[group] += np.uint8(1)
    if len(tables.hints) > 0:
        bit = np.uint8(1) << np.uint8(feature & np.uint32(7))
        tables.hints[start * U(HINTS) + block_home(size, feature)] |= bit


@kernel
def write_key(tables: Tables, feature: np.uint32, k: int) -> None:
    """Write the key of the k-th queued pair into its slot."""
    tables.words[U(tables.waiting[SLOT, k])] = np.int32(feature) + np.int32(1)


@kernel
def put_all(tables: Tables, task: int, n: int) -> None:
    """Insert the n queued pairs, none of which is in the task's table; `make_capacity` came first."""
    start, size = place_of(tables, task)
    for k in range(n):
        take_slot(tables, start, size, np.uint32(tables.waiting[FEATURE, k]), k)
    for k in range(n):
        write_key(tables, np.uint32(tables.waiting[FEATURE, k]), k)
    tables.filled[task] += n


@kernel
def too_full(n: int, size: int, slots: int) -> bool:
    """Would n pairs take more than three quarters of all slots?"""
    return 4 * n > 3 * slots * size


@kernel(entry="too")
def size_for(n: int, slots: int) -> int:
    """Groups of the smallest table for n pairs."""
    size = FIRST_SIZE
    while too_full(n, size, slots):
        size *= 2
    return size


@kernel
def _next_size(tables: Tables, task: int, n: int) -> int:
    """Groups of a table that has to move since n pairs are too many; small ones grow more, to move less often."""
    now = tables.size[task]
    return max(size_for(n, slots_of(tables)), 4 * now if now < SMALL else 0)


@kernel
def has_capacity(rounds: Rounds, first: int, last: int, tables: Tables) -> bool:
    """Could the tasks of rows `first` to `last` (and one more pair each) all move at once, should they have to?"""
    wanted = 0
    for row in range(first, last):
        n = rounds.width if rounds.width > 0 else rounds.indptr[row + 1] - rounds.indptr[row]
        task = rounds.task[row]
        if task < 0:  # a row without weight, of a task that has not come yet
            continue
        after = tables.filled[task] + n + 1
        if too_full(after, tables.size[task], slots_of(tables)):
            wanted += _next_size(tables, task, after)
    return bool(tables.used[0] + wanted <= len(tables.taken))


@kernel
def _power(size: int) -> int:
    """i for a size of 2^i."""
    i = 0
    while 1 << i < size:
        i += 1
    return i


@kernel
def _piece(tables: Tables, size: int) -> int:
    """Where blank groups start: those of a table that moved, or new ones."""
    i = _power(size)
    if tables.spare[i] > 0:
        start = int(tables.spare[i]) - 1
        tables.spare[i] = tables.words[WORDS * start]
        tables.words[WORDS * start] = FREE
        return start
    tables.used[0] += size
    return int(tables.used[0]) - size


@kernel
def _give_back(tables: Tables, start: int, size: int) -> None:
    """Blank the groups of a table, for the next table of that size."""
    for i in range(U(WORDS * start), U(WORDS * (start + size))):
        tables.words[i] = 0
    for group in range(U(start), U(start + size)):
        tables.taken[group] = 0
    for i in range(U(HINTS * start), U(HINTS * (start + size) if len(tables.hints) > 0 else HINTS * start)):
        tables.hints[i] = 0
    i = _power(size)
    tables.words[WORDS * start] = tables.spare[i]
    tables.spare[i] = start + 1


@kernel
def _put_contents(source: Tables, target: Tables, start: int, size: int, n: int) -> None:
    """Insert the queued pairs with the values of their slots in the source."""
    for k in range(n):
        take_slot(target, U(start), U(size), np.uint32(target.waiting[FEATURE, k]), k)
    for k in range(n):
        write_key(target, np.uint32(target.waiting[FEATURE, k]), k)
        old, new = target.waiting[SOURCE, k], target.waiting[SLOT, k]
        if slots_of(target) == PLACES:
            target.words[place_at(new)] = source.words[place_at(old)]
        else:
            set_number(target.words, number_at(new), number_in(source.words, number_at(old)))


@kernel
def _copy_table(source: Tables, old: int, old_size: int, target: Tables, start: int, size: int) -> None:
    """Put all of a table into blank groups."""
    n = 0
    for group in range(U(old), U(old + old_size)):
        for slot in range(U(WORDS) * group, U(WORDS) * group + U(slots_of(source))):
            target.waiting[FEATURE, n], target.waiting[SOURCE, n] = source.words[slot] - 1, slot
            n += int(source.words[slot] != FREE)  # no branch: how many a group holds is not foreseen
        if n > MOST_WAITING - slots_of(source):
            _put_contents(source, target, start, size, n)
            n = 0
    _put_contents(source, target, start, size, n)


@kernel(inline=False)
def make_capacity(tables: Tables, task: int, n: int) -> None:
    """Let the task's table take n more pairs."""
    old, old_size, after = tables.start[task], tables.size[task], tables.filled[task] + n
    if not too_full(after, old_size, slots_of(tables)):
        return
    size = _next_size(tables, task, after)
    start = _piece(tables, size)
    _copy_table(tables, old, old_size, tables, start, size)
    if old_size > 0:
        _give_back(tables, old, old_size)
    tables.start[task] = start
    tables.size[task] = size


def with_capacity(tables: Tables, pairs: int = 0) -> Tables:
    """The same tables, where they are, in an arena four times as large, or for this many pairs if that is more."""
    capacity, slots = len(tables.taken), slots_of(tables)
    if capacity >= MOST_CAPACITY:
        raise OverflowError(f"no capacity for more (task, feature) pairs: all {slots * MOST_CAPACITY:,} slots are used")
    wanted = min(pairs // PAIRS_A_GROUP, MOST_AT_ONCE)
    new, used = new_tables(0, min(max(4 * capacity, wanted), MOST_CAPACITY), slots), int(tables.used[0])
    new.words[: WORDS * used] = tables.words[: WORDS * used]
    new.taken[:used] = tables.taken[:used]
    new.hints[: HINTS * used] = tables.hints[: HINTS * used]  # if any
    return tables._replace(words=new.words, taken=new.taken, hints=new.hints)


@kernel(entry=True)
def without_task(tables: Tables, task: int) -> None:
    """Empty a task's table; other tasks may take its groups."""
    if tables.size[task] > 0:
        _give_back(tables, tables.start[task], tables.size[task])
    tables.size[task] = tables.filled[task] = 0


def of_task(tables: Tables, task: int) -> tuple[IntArray, NDArray[Any]]:
    """The features that occur in a task, and the contents of their slots."""
    first, last, slots = tables.start[task], tables.start[task] + tables.size[task], slots_of(tables)
    groups = tables.words.reshape(-1, WORDS)[first:last]
    keys, taken = groups[:, :slots], groups[:, :slots] != FREE
    held = groups[:, PLACES:] if slots == PLACES else groups.view(np.float64)[:, (NUMBERS + 1) // 2 :]
    return keys[taken] - 1, held[taken]
