"""A hash table from (task, feature) to a row of numbers: memory goes by the pairs that occur, not by K x d.

Open addressing with linear probing over a power of two of slots, at most half of them taken, so that a look-up
touches one or two cache lines. Growing is the caller's: a loop stops before a round that might not fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.ops import leaf
from shoal.rounds import FloatArray, IntArray

FREE = -1
FIRST_ROOM = 256


class Pairs(NamedTuple):
    """Slots; `keys` hold task * 2^32 + feature."""

    keys: IntArray  # (slots,) FREE or a pair
    records: FloatArray  # (slots + 1, numbers a pair); the last is zero: what a pair that is not there has
    filled: IntArray  # (1,) how many pairs there are


def new_pairs(n_numbers: int, slots: int = FIRST_ROOM) -> Pairs:
    """An empty table."""
    return Pairs(np.full(slots, FREE, np.int64), np.zeros((slots + 1, n_numbers)), np.zeros(1, np.int64))


@leaf
def find(keys: IntArray, task: int, feature: int) -> int:
    """The pair's slot, or the free slot where it would go."""
    key = (np.int64(task) << 32) | np.int64(feature)
    mask = len(keys) - 1
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: the high bits are well mixed
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while keys[slot] != key and keys[slot] != FREE:
        slot = (slot + 1) & mask
    return int(slot)


@leaf
def find_or_add(keys: IntArray, count: IntArray, task: int, feature: int) -> int:
    """The pair's slot; a new pair starts with zeros. (Arrays, not the tuple: counting its references costs 70 ns.)"""
    slot = find(keys, task, feature)
    if keys[slot] == FREE:
        keys[slot] = (np.int64(task) << 32) | np.int64(feature)
        count[0] += 1
    return slot


@leaf
def find_or_zero(keys: IntArray, task: int, feature: int) -> int:
    """The pair's slot, or that of the zero record."""
    slot = find(keys, task, feature)
    return slot if keys[slot] != FREE else len(keys)


@leaf
def has_room(pairs: Pairs, n: int) -> bool:
    """Will the table be at most half full after n more pairs?"""
    return bool(2 * (pairs.filled[0] + n) <= len(pairs.keys))


@leaf
def _move(old: Pairs, new: Pairs, without: int) -> None:
    """Copy all pairs; leave out those of task `without` (if >= 0) and give later tasks the column before theirs."""
    for slot in range(len(old.keys)):
        if old.keys[slot] == FREE:
            continue
        task, feature = old.keys[slot] >> 32, old.keys[slot] & 0xFFFFFFFF
        if task != without:
            to = find_or_add(new.keys, new.filled, task - 1 if 0 <= without < task else task, feature)
            for i in range(old.records.shape[1]):
                new.records[to, i] = old.records[slot, i]


def doubled(pairs: Pairs) -> Pairs:
    """The same pairs in twice the room."""
    new = new_pairs(pairs.records.shape[1], 2 * len(pairs.keys))
    _move(pairs, new, -1)
    return new


def without_task(pairs: Pairs, task: int) -> Pairs:
    """The table after a task and its column are gone."""
    new = new_pairs(pairs.records.shape[1], len(pairs.keys))
    _move(pairs, new, task)
    return new


def task_records(pairs: Pairs, task: int, n_features: int) -> NDArray[np.float64]:
    """(n_features, numbers) of a task as a dense array."""
    mine = (pairs.keys != FREE) & (pairs.keys >> 32 == task)
    dense = np.zeros((n_features, pairs.records.shape[1]))
    dense[pairs.keys[mine] & 0xFFFFFFFF] = pairs.records[:-1][mine]
    return dense
