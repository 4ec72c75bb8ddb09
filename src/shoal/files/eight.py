"""Eight bytes of text as one number, the first in its lowest bits: they are looked at together, without a loop.

A mask has the highest bit of each byte that was sought; above the first of them others may be set wrongly
(Mycroft's test for zero bytes, as in Warren, "Hacker's Delight", section 6-1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel

U = np.uint64
SLACK = 8  # bytes behind a text that may be read though they are none of it
ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)


@kernel(sums="exact")
def eight(data: NDArray[np.uint8], i: int) -> np.uint64:
    """The bytes from i on; the compiler makes it one load."""
    low = U(data[U(i)]) | U(data[U(i + 1)]) << U(8) | U(data[U(i + 2)]) << U(16) | U(data[U(i + 3)]) << U(24)
    high = U(data[U(i + 4)]) | U(data[U(i + 5)]) << U(8) | U(data[U(i + 6)]) << U(16) | U(data[U(i + 7)]) << U(24)
    return low | high << U(32)


def times_eight(byte: int) -> np.uint64:
    """A word of eight equal bytes."""
    return ONES * U(byte)


@kernel(sums="exact")
def equal(word: np.uint64, bytes_: np.uint64) -> np.uint64:
    """The mask of the bytes that are as in the other word."""
    difference = word ^ bytes_
    return (difference - ONES) & ~difference & HIGHS


@kernel(sums="exact")
def less(word: np.uint64, limits: np.uint64) -> np.uint64:
    """The mask of the bytes that are less than the (equal) bytes of the other word, which are at most 128."""
    return (word - limits) & ~word & HIGHS


@kernel(sums="exact")
def before(mask: np.uint64) -> np.uint64:
    """All bits of the bytes before the first one of the mask; all bits if it has none."""
    return ((mask & (~mask + U(1))) >> U(7)) - U(1)


@kernel(sums="exact")
def count(bits: np.uint64) -> int:
    """How many bytes have all their bits, if the others have none."""
    return int(np.int64(((bits & ONES) * ONES) >> U(56)))
