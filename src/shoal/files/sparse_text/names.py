"""Names in a file, hashed eight bytes at a time and numbered in order of appearance by compiled code.

The hash of a prefix can be continued, so `namespace^feature` has the same hash in one piece or in two, without a copy.
Names become Python strings only on request.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import lengthened
from shoal.engine.compile import kernel
from shoal.files.sparse_text.bytes import (
    SLACK,
    bytes_before,
    count_bytes,
    equal_bytes,
    load_word,
    repeated,
    smaller_bytes,
)

BAR, COLON, SPACE = 124, 58, 32
BARS, COLONS, ABOVE_SPACES = repeated(BAR), repeated(COLON), repeated(SPACE + 1)
BYTE, WORD = np.uint64(8), np.uint64(64)  # bits
FACTOR = np.uint64(0x9E3779B97F4A7C15)
U = np.uint64


class Hash(NamedTuple):
    """The hash of a name that may be continued; see `finished`."""

    mixed: np.uint64  # of the full words
    word: np.uint64  # the last bytes, fewer than eight
    bits: np.uint64  # the number of their bits
    length: int  # bytes of the name


@kernel(sums="exact", alone=False)
def no_name() -> Hash:
    """The hash of the empty name."""
    return Hash(U(0), U(0), U(0), 0)


@kernel(sums="exact", alone=False)
def _mix(mixed: np.uint64, word: np.uint64) -> np.uint64:
    """Mix a word into the hash: different words give different results, and each bit reaches the highest ones."""
    return (mixed ^ (mixed >> U(32)) ^ word) * FACTOR


@kernel(sums="exact", alone=False)
def with_bits(name: Hash, word: np.uint64, more: np.uint64) -> Hash:
    """Continue the hash by the lowest `more` bits of the word (eight per byte); its other bits are 0."""
    mixed, bits = name.mixed, name.bits + more
    joined = name.word | word << name.bits
    if bits >= WORD:
        # Two shifts, because one by 64 bits is undefined.
        mixed, joined, bits = _mix(mixed, joined), word >> U(1) >> (U(63) - name.bits), bits - WORD
    return Hash(mixed, joined, bits, name.length + int(np.int64(more >> U(3))))


@kernel(sums="exact", alone=False)
def finished(name: Hash) -> np.uint64:
    """The hash of a complete name. Two names of the same length, up to eight bytes, never share it."""
    return _mix(name.mixed, name.word)


@kernel(sums="exact", alone=False)
def read_name(data: NDArray[np.uint8], i: int, name: Hash) -> tuple[int, Hash]:
    """Continue the hash up to a space, a bar, a colon or the end of the line; the position there, and the hash."""
    word = load_word(data, i)
    stops = smaller_bytes(word, ABOVE_SPACES) | equal_bytes(word, COLONS) | equal_bytes(word, BARS)
    while stops == U(0):
        name = with_bits(name, word, WORD)
        i += 8
        word = load_word(data, i)
        stops = smaller_bytes(word, ABOVE_SPACES) | equal_bytes(word, COLONS) | equal_bytes(word, BARS)
    bits = bytes_before(stops)
    n = count_bytes(bits)
    return i + n, with_bits(name, word & bits, U(8 * n))


CARET = 94
EMPTY = np.uint64(2**64 - 1)
NUMBER = np.uint64(2**32 - 1)  # mask of a name's number in a slot
TABLE_FULL = -1  # "number" of a new name without capacity


class NameTable(NamedTuple):
    """All names so far, with capacity for more."""

    letters: NDArray[np.uint8]  # (capacity + SLACK,) the names, concatenated
    ends: NDArray[np.int64]  # (capacity + 1,) name i is letters[ends[i]:ends[i + 1]]
    hashes: NDArray[np.uint64]  # (capacity,)
    slots: NDArray[np.uint64]  # (3 capacity, 2) the hash of a name; its length << 32 | its number, or EMPTY
    used: NDArray[np.int64]  # (1,) number of names


class Place(NamedTuple):
    """The place of a name in a text: data[space:space_end], which may be empty, and data[first:last]."""

    space: int
    space_end: int
    first: int
    last: int


@kernel(sums="exact", alone=False)
def _is_same(letters: NDArray[np.uint8], at: int, data: NDArray[np.uint8], first: int, last: int) -> bool:
    """Whether the letters from `at` on equal data[first:last]."""
    while first + 8 <= last:
        if load_word(letters, at) != load_word(data, first):
            return False
        first += 8
        at += 8
    return first == last or (load_word(letters, at) ^ load_word(data, first)) << U(8 * (8 - last + first)) == U(0)


@kernel(sums="exact", alone=False)
def _is(table: NameTable, i: int, data: NDArray[np.uint8], place: Place) -> bool:
    """Whether name i equals the one at that place, of the same length."""
    at = table.ends[U(i)]
    n = place.space_end - place.space
    if n > 0:
        if not _is_same(table.letters, at, data, place.space, place.space_end) or table.letters[U(at + n)] != CARET:
            return False
        at += n + 1
    return _is_same(table.letters, at, data, place.first, place.last)


@kernel(sums="exact", alone=False)
def _slot(table: NameTable, mixed: np.uint64) -> int:
    """The first slot to search for a name."""
    return int(np.int64((mixed >> U(32)) * U(len(table.slots)) >> U(32)))


@kernel(inline=False, sums="exact", alone=False)
def _append(table: NameTable, slot: int, mixed: np.uint64, length: int, data: NDArray[np.uint8], place: Place) -> int:
    """Append a new name, and return its number; TABLE_FULL without capacity."""
    n = table.used[0]
    at = table.ends[n]
    if n == len(table.hashes) or at + length + SLACK > len(table.letters):
        return TABLE_FULL
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


@kernel(sums="exact", alone=False)
def number_of(table: NameTable, name: Hash, data: NDArray[np.uint8], place: Place) -> int:
    """The number of a name; a new one gets the next number, or TABLE_FULL without capacity."""
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


@kernel(inline=False, sums="exact", alone=False)
def number_of_outlined(table: NameTable, name: Hash, data: NDArray[np.uint8], place: Place) -> int:
    """`number_of`, called and not inlined."""
    return number_of(table, name, data, place)


@kernel(entry=True, inline=False, sums="exact")
def fill_slots(table: NameTable) -> None:
    """Enter all names into empty slots."""
    for i in range(table.used[0]):
        slot = _slot(table, table.hashes[i])
        while table.slots[slot, 1] != EMPTY:
            slot = (slot + 1) % len(table.slots)
        table.slots[slot, 0] = table.hashes[i]
        table.slots[slot, 1] = U(table.ends[i + 1] - table.ends[i]) << U(32) | U(i)


@kernel(inline=False, sums="exact", alone=False)
def truncate(table: NameTable, n: int) -> None:
    """Remove all names after the first n; the slots become what they were before."""
    for i in range(table.used[0] - 1, n - 1, -1):
        slot = _slot(table, table.hashes[i])
        while table.slots[slot, 1] & NUMBER != U(i):
            slot = (slot + 1) % len(table.slots)
        table.slots[slot, 1] = EMPTY
    table.used[0] = n


@kernel(entry=True, inline=False, sums="exact")
def number_all(table: NameTable, data: NDArray[np.uint8], ends: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """The numbers of the names data[ends[k]:ends[k + 1]]; needs capacity for them and SLACK bytes behind the last."""
    for k in range(len(numbers)):
        name = no_name()
        for i in range(ends[k], ends[k + 1]):
            name = with_bits(name, U(data[i]), BYTE)
        numbers[k] = number_of_outlined(table, name, data, Place(0, 0, ends[k], ends[k + 1]))


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
        capacity = 64
        self.table = NameTable(
            np.zeros(16 * capacity + SLACK, np.uint8),
            np.zeros(capacity + 1, np.int64),
            np.zeros(capacity, np.uint64),
            np.full((3 * capacity, 2), EMPTY),
            np.zeros(1, np.int64),
        )
        self.numbers(texts)

    def __len__(self) -> int:
        return int(self.table.used[0])

    def reserve(self, names: int, letters: int) -> None:
        """Ensure capacity for that many more; arrays at least double when they grow."""
        old = self.table
        n, used = len(self), int(old.ends[len(self)])
        capacity, space = len(old.hashes), len(old.letters) - SLACK
        if used + letters > space:
            old = old._replace(letters=lengthened(old.letters, max(2 * space, used + letters) + SLACK))
        if n + names > capacity:
            capacity = max(2 * capacity, n + names)
            slots = np.full((3 * capacity, 2), EMPTY)
            old = old._replace(
                ends=lengthened(old.ends, capacity + 1), hashes=lengthened(old.hashes, capacity), slots=slots
            )
            fill_slots(old)
        self.table = old

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of names; new ones get the next numbers."""
        pieces = [text.encode() for text in texts]
        ends = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=ends[1:])
        numbers = np.empty(len(pieces), np.int64)
        if not pieces:
            return numbers  # without compiling
        self.reserve(len(pieces), int(ends[-1]))
        number_all(self.table, np.frombuffer(b"".join([*pieces, bytes(SLACK)]), np.uint8), ends, numbers)
        return numbers

    def texts(self, first: int, last: int) -> list[str]:
        """The names with these numbers."""
        ends = self.table.ends[first : last + 1].tolist()
        start, letters = ends[0], self.table.letters[ends[0] : ends[-1]].tobytes()
        return [letters[a - start : b - start].decode() for a, b in itertools.pairwise(ends)]
