"""The hash of a name, eight bytes at a time, as far as the name is known: a prefix is a name that goes on.

So `namespace^feature` has the same hash whether it stands so in one piece or is put together of two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.eight import before, count, eight, equal, less, times_eight

BAR, COLON, SPACE = 124, 58, 32
BARS, COLONS, ABOVE_SPACES = times_eight(BAR), times_eight(COLON), times_eight(SPACE + 1)
BYTE, WORD = np.uint64(8), np.uint64(64)  # bits
FACTOR = np.uint64(0x9E3779B97F4A7C15)
U = np.uint64


class Hash(NamedTuple):
    """The hash of a name that may go on; see `finished`."""

    mixed: np.uint64  # of the full words
    word: np.uint64  # the last bytes, fewer than eight
    bits: np.uint64  # how many bits they have
    length: int  # bytes of the name


@kernel(sums="exact")
def no_name() -> Hash:
    """The hash of nothing."""
    return Hash(U(0), U(0), U(0), 0)


@kernel(sums="exact")
def _mix(mixed: np.uint64, word: np.uint64) -> np.uint64:
    """Different words give different results, and each bit of them reaches the highest."""
    return (mixed ^ (mixed >> U(32)) ^ word) * FACTOR


@kernel(sums="exact")
def with_bits(name: Hash, word: np.uint64, more: np.uint64) -> Hash:
    """The hash with more bits (eight for each byte), the lowest ones of the word, whose others are 0."""
    mixed, bits = name.mixed, name.bits + more
    joined = name.word | word << name.bits
    if bits >= WORD:
        # Two shifts, because by 64 bits at once there is none.
        mixed, joined, bits = _mix(mixed, joined), word >> U(1) >> (U(63) - name.bits), bits - WORD
    return Hash(mixed, joined, bits, name.length + int(np.int64(more >> U(3))))


@kernel(sums="exact")
def finished(name: Hash) -> np.uint64:
    """The hash of a complete name. Two names of the same length, up to eight bytes, never share it."""
    return _mix(name.mixed, name.word)


@kernel(sums="exact")
def read_name(data: NDArray[np.uint8], i: int, name: Hash) -> tuple[int, Hash]:
    """The hash with the bytes from i on, up to a byte that ends a word, a bar or a colon; and where that is."""
    word = eight(data, i)
    stops = less(word, ABOVE_SPACES) | equal(word, COLONS) | equal(word, BARS)
    while stops == U(0):
        name = with_bits(name, word, WORD)
        i += 8
        word = eight(data, i)
        stops = less(word, ABOVE_SPACES) | equal(word, COLONS) | equal(word, BARS)
    bits = before(stops)
    n = count(bits)
    return i + n, with_bits(name, word & bits, U(8 * n))
