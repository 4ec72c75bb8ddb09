"""A record of several numbers for each (task, feature) pair that has occurred.

Records lie without gaps, and move only when a task is removed: the pair's slot tells where.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray, aligned_zeros
from shoal.engine.axes import OTHER, ROW
from shoal.engine.compile import kernel
from shoal.engine.task_weights import hash_table
from shoal.engine.task_weights import hash_table as _tables
from shoal.engine.task_weights.pairs import check_pairs, sorted_pairs

CACHED = 2**11  # groups; with records of eight numbers about a MiB, which a core's own cache holds
U = np.uint64
NOWHERE = 0  # the place of the zero record


class Records(NamedTuple):
    """Slots hold their records' places."""

    tables: hash_table.Tables
    # (1 + most pairs, numbers a pair); the first is zero, the record of absent pairs
    records: Annotated[FloatArray, ROW]
    used: Annotated[IntArray, ROW]  # (1,) records, with the first


class Found(NamedTuple):
    """Where the pairs of a row are; capacity for the longest row each."""

    place: IntArray  # of the record, or NOWHERE
    entry: IntArray  # first the entries of the row whose pairs do not occur


def _zero_records(tables: hash_table.Tables, n_numbers: int, dtype: Any) -> FloatArray:
    fullest = 3 * hash_table.PLACES * len(tables.taken) // 4
    return aligned_zeros((1 + fullest, n_numbers), dtype)


def new_records(
    n_numbers: int, n_tasks: int, capacity: int = hash_table.FIRST_CAPACITY, dtype: Any = np.float64
) -> Records:
    """No pairs."""
    tables = hash_table.new_tables(n_tasks, capacity, hash_table.PLACES)
    return Records(tables, _zero_records(tables, n_numbers, dtype), np.ones(1, np.int64))


def for_tasks(pairs: Records, n_tasks: int) -> Records:
    """The same records for another number of tasks, whose tables the caller sets."""
    return pairs._replace(tables=_tables.for_tasks(pairs.tables, n_tasks))


@kernel
def find_all(pairs: Records, task: int, features: IntArray, found: Found) -> int:
    """Find the records of a row's pairs; return how many pairs do not occur yet."""
    tables, place, entry, missing = pairs.tables, found.place, found.entry, 0
    if task < 0 or tables.size[task] == 0:
        for i in range(len(features)):
            place[i], entry[i] = NOWHERE, i
        return len(features)
    start, size = U(tables.start[task]), U(tables.size[task])
    if tables.used[0] >= CACHED:
        for i in range(len(features)):
            hash_table.fetch(tables, start, size, np.uint32(features[i]))
    for i in range(len(features)):
        place[i] = tables.words[hash_table.place_at(hash_table.find(tables, start, size, np.uint32(features[i])))]
        entry[missing] = i
        missing += int(place[i] == NOWHERE)
    return missing


@kernel
def add_all(pairs: Records, task: int, features: IntArray, missing: int, found: Found) -> None:
    """Add the pairs of a row that `find_all` missed, with records of zeros."""
    tables = pairs.tables
    hash_table.make_capacity(tables, task, missing)
    for first in range(0, missing, hash_table.MOST_WAITING):
        n = min(missing - first, hash_table.MOST_WAITING)
        for k in range(n):
            tables.waiting[hash_table.FEATURE, k] = features[np.uint32(found.entry[first + k])]
        hash_table.put_all(tables, task, n)
        for k in range(n):
            place = pairs.used[0] + k
            found.place[np.uint32(found.entry[first + k])] = place
            tables.words[hash_table.place_at(tables.waiting[hash_table.SLOT, k])] = place
        pairs.used[0] += n


def with_capacity(pairs: Records, n_more: int = 0) -> Records:
    """The same pairs with capacity for four times as many, or for this many more if that is more."""
    used = int(pairs.used[0])
    tables = _tables.with_capacity(pairs.tables, used + n_more)
    records = _zero_records(tables, pairs.records.shape[1], pairs.records.dtype)
    records[:used] = pairs.records[:used]
    return pairs._replace(tables=tables, records=records)


class Packed(NamedTuple):
    """The saved form: the pairs of each task in the order of their features."""

    starts: Annotated[IntArray, ROW]  # (tasks + 1,) where the pairs of each task begin
    features: Annotated[IndexArray, ROW]  # (pairs,)
    records: Annotated[FloatArray, ROW, OTHER]  # (pairs, numbers)


def pack(pairs: Records, n_tasks: int) -> Packed:
    """The records of this many tasks, the same whatever the order in which pairs came."""
    found = [sorted_pairs(pairs.tables, task) for task in range(n_tasks)]
    starts = np.cumsum([0, *(len(features) for features, _ in found)])
    features = np.concatenate([np.zeros(0, np.int32), *(features for features, _ in found)]).astype(np.int32)
    places = np.concatenate([np.zeros(0, np.int64), *(places for _, places in found)]).astype(np.int64)
    return Packed(starts, features, pairs.records[places])


def blank(n_numbers: int, n_tasks: int, dtype: Any) -> Packed:
    """An empty `pack`."""
    return Packed(np.zeros(n_tasks + 1, np.int64), np.zeros(0, np.int32), np.zeros((0, n_numbers), dtype))


def check(packed: Packed, n_numbers: int, n_tasks: int, n_features: int) -> None:
    """Raise ValueError unless these are records of this many tasks and features."""
    if packed.records.shape != (len(packed.features), n_numbers):
        raise ValueError(f"records have shape {packed.records.shape}, expected {(len(packed.features), n_numbers)}")
    check_pairs(packed.starts, packed.features, len(packed.records), n_tasks, n_features)


def unpack(packed: Packed, n_numbers: int, n_tasks: int) -> Records:
    """The records that `pack` gave."""
    capacity = sum(int(hash_table.size_for(int(n), hash_table.PLACES)) for n in np.diff(packed.starts) if n > 0)
    pairs = new_records(n_numbers, n_tasks, max(capacity, hash_table.FIRST_CAPACITY), packed.records.dtype)
    _put_places(packed.starts, packed.features, pairs.tables)
    pairs.tables.waiting[:] = 0
    pairs.used[0] = 1 + len(packed.records)
    pairs.records[1 : pairs.used[0]] = packed.records
    return pairs


@kernel(entry=True)
def _put_places(starts: IntArray, features: IndexArray, tables: hash_table.Tables) -> None:
    """The p-th pair has record 1 + p."""
    for task in range(len(starts) - 1):
        first, last = starts[task], starts[task + 1]
        if first < last:
            hash_table.make_capacity(tables, task, last - first)
        for p in range(first, last):
            tables.waiting[hash_table.FEATURE, 0] = features[p]
            hash_table.put_all(tables, task, 1)
            tables.words[hash_table.place_at(tables.waiting[hash_table.SLOT, 0])] = 1 + p


def remove(pairs: Records, task: int) -> None:
    """Empty a task's table; the last records take the places of its own."""
    used, gone = int(pairs.used[0]), np.sort(hash_table.of_task(pairs.tables, task)[1])
    _tables.without_task(pairs.tables, task)
    left = used - len(gone)
    moved = np.setdiff1d(np.arange(left, used), gone)
    to = np.full(used - left, NOWHERE)
    to[moved - left] = gone[gone < left]
    places = pairs.tables.words.reshape(-1, hash_table.WORDS)[: pairs.tables.used[0], hash_table.PLACES :]
    slots = np.nonzero(places >= left)
    places[slots] = to[places[slots] - left]
    pairs.records[gone[gone < left]] = pairs.records[moved]
    pairs.records[left:used] = 0.0
    pairs.used[0] = left
