"""Names as they stand in a file, numbered in order of appearance by compiled code: a hash table of bytes.

A name may be put together of two pieces of the file, `namespace^feature`, without a copy of them being made.
Names become Python strings only when somebody asks for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.files.exact import leaf_exact, leaf_exact_apart

CARET = 94
EMPTY = -1
FACTOR = np.uint64(0x9E3779B97F4A7C15)
U = np.uint64
T = TypeVar("T", bound=np.generic)


class NameTable(NamedTuple):
    """All names so far, with room for more."""

    letters: NDArray[np.uint8]  # the names, one behind the other
    ends: NDArray[np.int64]  # (room + 1,) ends[i] is where name i begins, ends[i + 1] where it ends
    hashes: NDArray[np.uint64]  # (room,)
    slots: NDArray[np.int64]  # (power of two, at least twice room) the number of a name, or EMPTY
    used: NDArray[np.int64]  # (1,) how many there are


@leaf_exact
def hash_byte(mixed: np.uint64, byte: np.uint8) -> np.uint64:
    """The hash of a name with one more byte."""
    return (mixed ^ U(byte)) * FACTOR


@leaf_exact
def hash_prefix(data: NDArray[np.uint8], first: int, last: int) -> np.uint64:
    """The hash of what stands before a name: nothing, or a namespace and a caret."""
    mixed = U(0)
    if first < last:
        for i in range(first, last):
            mixed = hash_byte(mixed, data[i])
        mixed = hash_byte(mixed, np.uint8(CARET))
    return mixed


@leaf_exact
def is_same(letters: NDArray[np.uint8], at: int, data: NDArray[np.uint8], first: int, last: int) -> bool:
    """Whether the letters from `at` on are data[first:last]."""
    for j in range(last - first):  # noqa: SIM110 (compiled)
        if letters[at + j] != data[first + j]:
            return False
    return True


@leaf_exact
def _is(table: NameTable, i: int, data: NDArray[np.uint8], space: int, space_end: int, first: int, last: int) -> bool:
    """Whether name i is the one that stands in data[space:space_end] (may be empty) and data[first:last]."""
    at = table.ends[i]
    n_space = space_end - space
    if table.ends[i + 1] - at != last - first + (n_space + 1 if n_space > 0 else 0):
        return False
    if n_space > 0:
        if not is_same(table.letters, at, data, space, space_end) or table.letters[at + n_space] != CARET:
            return False
        at += n_space + 1
    return is_same(table.letters, at, data, first, last)


@leaf_exact_apart
def _append(
    table: NameTable, mixed: np.uint64, data: NDArray[np.uint8], space: int, space_end: int, first: int, last: int
) -> int:
    """A new name, for which there must be room."""
    n = table.used[0]
    at = table.ends[n]
    if space < space_end:
        for j in range(space, space_end):
            table.letters[at] = data[j]
            at += 1
        table.letters[at] = CARET
        at += 1
    for j in range(first, last):
        table.letters[at] = data[j]
        at += 1
    table.ends[n + 1] = at
    table.hashes[n] = mixed
    table.used[0] = n + 1
    return int(n)


@leaf_exact_apart
def number_of(
    table: NameTable, mixed: np.uint64, data: NDArray[np.uint8], space: int, space_end: int, first: int, last: int
) -> int:
    """The number of a name with the hash `mixed`; a new one gets the next. There must be room for it."""
    mask = len(table.slots) - 1
    slot = np.int64(mixed >> U(32)) & mask
    while True:
        i = table.slots[slot]
        if i == EMPTY:
            table.slots[slot] = table.used[0]
            return _append(table, mixed, data, space, space_end, first, last)
        if table.hashes[i] == mixed and _is(table, i, data, space, space_end, first, last):
            return int(i)
        slot = (slot + 1) & mask


@leaf_exact
def has_room(table: NameTable, names: int, letters: int) -> bool:
    """Whether that many more fit."""
    n = table.used[0]
    return bool(n + names <= len(table.hashes) and table.ends[n] + letters <= len(table.letters))


@leaf_exact_apart
def _fill_slots(table: NameTable) -> None:
    mask = len(table.slots) - 1
    for i in range(table.used[0]):
        slot = np.int64(table.hashes[i] >> U(32)) & mask
        while table.slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        table.slots[slot] = i


@leaf_exact_apart
def _number_all(table: NameTable, data: NDArray[np.uint8], ends: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    for k in range(len(numbers)):
        mixed = U(0)
        for i in range(ends[k], ends[k + 1]):
            mixed = hash_byte(mixed, data[i])
        numbers[k] = number_of(table, mixed, data, 0, 0, ends[k], ends[k + 1])


class Names:
    """A table of names that grows.

    Examples
    --------
    >>> names = Names(["a", "b"])
    >>> names.numbers(["b", "été", "b"]).tolist()
    [1, 2, 1]
    >>> names.texts(0, len(names))
    ['a', 'b', 'été']
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        room = 64
        self.table = NameTable(
            np.zeros(16 * room, np.uint8),
            np.zeros(room + 1, np.int64),
            np.zeros(room, np.uint64),
            np.full(2 * room, EMPTY),
            np.zeros(1, np.int64),
        )
        self.numbers(texts)

    def __len__(self) -> int:
        return int(self.table.used[0])

    def make_room(self, names: int, letters: int) -> None:
        """Room for that many more; what is there at least doubles if it must grow."""
        old = self.table
        n, used = len(self), int(old.ends[len(self)])
        room, space = len(old.hashes), len(old.letters)
        if used + letters > space:
            old = old._replace(letters=_grown(old.letters, max(2 * space, used + letters)))
        if n + names > room:
            room = 1 << (max(2 * room, n + names) - 1).bit_length()
            old = old._replace(
                ends=_grown(old.ends, room + 1), hashes=_grown(old.hashes, room), slots=np.full(2 * room, EMPTY)
            )
            _fill_slots(old)
        self.table = old

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of names; new ones get the next."""
        pieces = [text.encode() for text in texts]
        ends = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=ends[1:])
        numbers = np.empty(len(pieces), np.int64)
        self.make_room(len(pieces), int(ends[-1]))
        _number_all(self.table, np.frombuffer(b"".join(pieces), np.uint8), ends, numbers)
        return numbers

    def texts(self, first: int, last: int) -> list[str]:
        """The names with these numbers."""
        ends = self.table.ends[first : last + 1].tolist()
        start, letters = ends[0], self.table.letters[ends[0] : ends[-1]].tobytes()
        return [letters[a - start : b - start].decode() for a, b in itertools.pairwise(ends)]


def _grown(array: NDArray[T], size: int) -> NDArray[T]:
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
