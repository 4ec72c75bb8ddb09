"""A record of several numbers for each (task, feature) pair that has occurred.

Records lie in the order in which their pairs came, without gaps, and never move: the pair's slot tells where.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.compile import kernel
from shoal.engine.task_weights import hash_table as _tables
from shoal.engine.task_weights.hash_table import (
    FEATURE,
    FIRST_ROOM,
    MOST_WAITING,
    PLACES,
    SLOT,
    WORDS,
    Tables,
    fetch,
    find,
    make_room,
    new_tables,
    of_task,
    place_at,
    put_all,
)

CACHED = 2**11  # groups; with records of eight numbers about a MiB, which a core's own cache holds
U = np.uint64
NOWHERE = 0  # the place of the zero record


class Pairs(NamedTuple):
    """Slots hold their records' places."""

    tables: Tables
    records: FloatArray  # (1 + most pairs, numbers a pair); the first is zero: what a pair that is not there has
    used: IntArray  # (1,) records, with the first


class Found(NamedTuple):
    """Where the pairs of a row are; room for the longest row each."""

    place: IntArray  # of the record, or NOWHERE
    entry: IntArray  # first the entries of the row whose pairs do not occur


def _new_records(tables: Tables, n_numbers: int, dtype: Any) -> FloatArray:
    return aligned_zeros((1 + 3 * PLACES * len(tables.taken) // 4, n_numbers), dtype)  # tables are never fuller


def new_pairs(n_numbers: int, n_tasks: int, room: int = FIRST_ROOM, dtype: Any = np.float64) -> Pairs:
    """No pairs."""
    tables = new_tables(n_tasks, room, PLACES)
    return Pairs(tables, _new_records(tables, n_numbers, dtype), np.ones(1, np.int64))


def for_tasks(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same records for another number of tasks, whose tables are still to be told."""
    return pairs._replace(tables=_tables.for_tasks(pairs.tables, n_tasks))


@kernel
def find_all(pairs: Pairs, task: int, features: IntArray, found: Found) -> int:
    """Look for a row's pairs, and say how many do not occur yet."""
    tables, place, entry, missing = pairs.tables, found.place, found.entry, 0
    if task < 0 or tables.size[task] == 0:
        for i in range(len(features)):
            place[i], entry[i] = NOWHERE, i
        return len(features)
    start, size = U(tables.start[task]), U(tables.size[task])
    if tables.used[0] >= CACHED:
        for i in range(len(features)):
            fetch(tables, start, size, np.uint32(features[i]))
    for i in range(len(features)):
        place[i] = tables.words[place_at(find(tables, start, size, np.uint32(features[i])))]
        entry[missing] = i
        missing += int(place[i] == NOWHERE)
    return missing


@kernel
def add_all(pairs: Pairs, task: int, features: IntArray, missing: int, found: Found) -> None:
    """Give those pairs of a row that `find_all` missed their records, which are zero."""
    tables = pairs.tables
    make_room(tables, task, missing)
    for first in range(0, missing, MOST_WAITING):
        n = min(missing - first, MOST_WAITING)
        for k in range(n):
            tables.waiting[FEATURE, k] = features[np.uint32(found.entry[first + k])]
        put_all(tables, task, n)
        for k in range(n):
            place = pairs.used[0] + k
            found.place[np.uint32(found.entry[first + k])] = place
            tables.words[place_at(tables.waiting[SLOT, k])] = place
        pairs.used[0] += n


def roomier(pairs: Pairs, n_more: int = 0) -> Pairs:
    """The same pairs with room for four times as many, or for so many more if that is more."""
    used = int(pairs.used[0])
    tables = _tables.roomier(pairs.tables, used + n_more)
    records = _new_records(tables, pairs.records.shape[1], pairs.records.dtype)
    records[:used] = pairs.records[:used]
    return pairs._replace(tables=tables, records=records)


@kernel(entry=True)
def _renumber(pairs: Pairs, new: Pairs, n_tasks: int) -> None:
    """Copy the records in the order of their slots."""
    tables = new.tables
    for task in range(n_tasks):
        for group in range(tables.start[task], tables.start[task] + tables.size[task]):
            for slot in range(WORDS * group, WORDS * group + tables.taken[group]):
                at, place = place_at(slot), new.used[0]
                for number in range(pairs.records.shape[1]):
                    new.records[place, number] = pairs.records[tables.words[at], number]
                tables.words[at] = place
                new.used[0] += 1


def compact(pairs: Pairs, n_tasks: int) -> Pairs:
    """The same pairs of the first tasks in no more room than they need."""
    tables = _tables.compact(pairs.tables, n_tasks)
    new = Pairs(tables, _new_records(tables, pairs.records.shape[1], pairs.records.dtype), np.ones(1, np.int64))
    _renumber(pairs, new, n_tasks)
    return new


def without_task(pairs: Pairs, task: int) -> None:
    """Empty a task's table; the other records close up."""
    stays = np.ones(pairs.used[0], bool)
    stays[of_task(pairs.tables, task)[1]] = False
    _tables.without_task(pairs.tables, task)
    place, groups = np.cumsum(stays) - 1, pairs.tables.words.reshape(-1, WORDS)[: pairs.tables.used[0]]
    groups[:, PLACES:] = place[groups[:, PLACES:]]  # of a free slot: NOWHERE, as before
    n_left = int(place[-1]) + 1
    pairs.records[:n_left] = pairs.records[: pairs.used[0]][stays]
    pairs.records[n_left : pairs.used[0]] = 0.0
    pairs.used[0] = n_left


def task_records(pairs: Pairs, task: int, n_features: int) -> NDArray[np.float64]:
    """(n_features, numbers) of a task as a dense array."""
    dense = np.zeros((n_features, pairs.records.shape[1]))
    features, places = of_task(pairs.tables, task)
    dense[features] = pairs.records[places]
    return dense
