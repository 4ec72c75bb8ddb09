"""A hash table of names as they stand in a file, for compiled code: bytes, numbered in order of appearance.

A name may be put together of two pieces of the file, `namespace^feature`, without a copy of them being made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.eight import SLACK, eight
from shoal.files.name_hash import BYTE, Hash, finished, no_name, with_bits

CARET = 94
EMPTY = np.uint64(2**64 - 1)
NUMBER = np.uint64(2**32 - 1)  # the bits of a slot that are a name's number
UNROOMY = -1  # "number" of a new name for which there is no room
U = np.uint64


class NameTable(NamedTuple):
    """All names so far, with room for more."""

    letters: NDArray[np.uint8]  # (room + SLACK,) the names, one behind the other
    ends: NDArray[np.int64]  # (room + 1,) ends[i] is where name i begins, ends[i + 1] where it ends
    hashes: NDArray[np.uint64]  # (room,)
    slots: NDArray[np.uint64]  # (3 room, 2) the hash of a name; its length << 32 | its number, or EMPTY
    used: NDArray[np.int64]  # (1,) how many there are


class Place(NamedTuple):
    """Where a name stands: data[space:space_end], which may be empty, and data[first:last]."""

    space: int
    space_end: int
    first: int
    last: int


@kernel(sums="exact")
def _is_same(letters: NDArray[np.uint8], at: int, data: NDArray[np.uint8], first: int, last: int) -> bool:
    """Whether the letters from `at` on are data[first:last]."""
    while first + 8 <= last:
        if eight(letters, at) != eight(data, first):
            return False
        first += 8
        at += 8
    return first == last or (eight(letters, at) ^ eight(data, first)) << U(8 * (8 - last + first)) == U(0)


@kernel(sums="exact")
def _is(table: NameTable, i: int, data: NDArray[np.uint8], place: Place) -> bool:
    """Whether name i is the one that stands there; it is as long."""
    at = table.ends[U(i)]
    n = place.space_end - place.space
    if n > 0:
        if not _is_same(table.letters, at, data, place.space, place.space_end) or table.letters[U(at + n)] != CARET:
            return False
        at += n + 1
    return _is_same(table.letters, at, data, place.first, place.last)


@kernel(sums="exact")
def _slot(table: NameTable, mixed: np.uint64) -> int:
    """Where the search for a name begins."""
    return int(np.int64((mixed >> U(32)) * U(len(table.slots)) >> U(32)))


@kernel(inline=False, sums="exact")
def _append(table: NameTable, slot: int, mixed: np.uint64, length: int, data: NDArray[np.uint8], place: Place) -> int:
    """A new name, if there is room for it."""
    n = table.used[0]
    at = table.ends[n]
    if n == len(table.hashes) or at + length + SLACK > len(table.letters):
        return UNROOMY
    table.slots[slot, 0] = mixed
    table.slots[slot, 1] = U(length) << U(32) | U(n)
    before_caret = place.space_end - place.space
    for j in range(length):
        source = place.last - length + j if j > before_caret or before_caret == 0 else place.space + j
        table.letters[at + j] = data[source]
    if before_caret > 0:
        table.letters[at + before_caret] = CARET
    table.ends[n + 1] = at + length
    table.hashes[n] = mixed
    table.used[0] = n + 1
    return int(n)


@kernel(sums="exact")
def number_of(table: NameTable, name: Hash, data: NDArray[np.uint8], place: Place) -> int:
    """The number of a name; a new one gets the next, UNROOMY if there is no room for it."""
    mixed, length = finished(name), U(name.length)
    slot = _slot(table, mixed)
    while True:
        found = table.slots[U(slot), U(1)]
        if found == EMPTY:
            return _append(table, slot, mixed, name.length, data, place)
        if table.slots[U(slot), U(0)] == mixed and found >> U(32) == length:
            i = int(np.int64(found & NUMBER))
            if name.length <= 8 or _is(table, i, data, place):
                return i
        slot += 1
        if slot == len(table.slots):
            slot = 0


@kernel(inline=False, sums="exact")
def number_apart(table: NameTable, name: Hash, data: NDArray[np.uint8], place: Place) -> int:
    """`number_of`, called and not inlined."""
    return number_of(table, name, data, place)


@kernel(entry=True, inline=False, sums="exact")
def fill_slots(table: NameTable) -> None:
    """Put all names into empty slots."""
    for i in range(table.used[0]):
        slot = _slot(table, table.hashes[i])
        while table.slots[slot, 1] != EMPTY:
            slot = (slot + 1) % len(table.slots)
        table.slots[slot, 0] = table.hashes[i]
        table.slots[slot, 1] = U(table.ends[i + 1] - table.ends[i]) << U(32) | U(i)


@kernel(inline=False, sums="exact")
def forget(table: NameTable, n: int) -> None:
    """Only the first n names stay; the slots are as they were before the others came."""
    for i in range(table.used[0] - 1, n - 1, -1):
        slot = _slot(table, table.hashes[i])
        while table.slots[slot, 1] & NUMBER != U(i):
            slot = (slot + 1) % len(table.slots)
        table.slots[slot, 1] = EMPTY
    table.used[0] = n


@kernel(entry=True, inline=False, sums="exact")
def number_all(table: NameTable, data: NDArray[np.uint8], ends: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """The numbers of the names data[ends[k]:ends[k + 1]], for which there is room; SLACK bytes follow the last."""
    for k in range(len(numbers)):
        name = no_name()
        for i in range(ends[k], ends[k + 1]):
            name = with_bits(name, U(data[i]), BYTE)
        numbers[k] = number_apart(table, name, data, Place(0, 0, ends[k], ends[k + 1]))
