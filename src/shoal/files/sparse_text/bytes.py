"""Bytes of text for the scans: tests of eight bytes at once, and the spaces of `str.split`.

A mask has the highest bit of each byte that was found. Above the lowest of them other bits may be set wrongly
(Mycroft's test for zero bytes, as in Warren, "Hacker's Delight", section 6-1).
"""

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel

U = np.uint64
SLACK = 8  # bytes behind a text that may be read, too
ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)


@kernel(sums="exact", alone=False)
def load_word(data: NDArray[np.uint8], i: int) -> np.uint64:
    """The eight bytes from i on; the compiler turns this into one load."""
    low = U(data[U(i)]) | U(data[U(i + 1)]) << U(8) | U(data[U(i + 2)]) << U(16) | U(data[U(i + 3)]) << U(24)
    high = U(data[U(i + 4)]) | U(data[U(i + 5)]) << U(8) | U(data[U(i + 6)]) << U(16) | U(data[U(i + 7)]) << U(24)
    return low | high << U(32)


def repeated(byte: int) -> np.uint64:
    """A word of eight equal bytes."""
    return ONES * U(byte)


@kernel(sums="exact", alone=False)
def equal_bytes(word: np.uint64, bytes_: np.uint64) -> np.uint64:
    """The mask of the bytes that equal those of the other word."""
    difference = word ^ bytes_
    return (difference - ONES) & ~difference & HIGHS


@kernel(sums="exact", alone=False)
def smaller_bytes(word: np.uint64, limits: np.uint64) -> np.uint64:
    """The mask of the bytes that are less than the byte repeated in `limits`, which is at most 128."""
    return (word - limits) & ~word & HIGHS


@kernel(sums="exact", alone=False)
def bytes_before(mask: np.uint64) -> np.uint64:
    """All bits of the bytes before the first byte of the mask; all bits if the mask is empty."""
    return ((mask & (~mask + U(1))) >> U(7)) - U(1)


@kernel(sums="exact", alone=False)
def count_bytes(bits: np.uint64) -> int:
    """The number of bytes with all bits set, if the others have none."""
    return int(np.int64(((bits & ONES) * ONES) >> U(56)))


NEWLINE, SPACE = 10, 32
PADDING = b"\n" * SLACK  # behind a text: ends its last line, and lets words of eight bytes be read


@kernel(sums="exact", alone=False)
def is_space(byte: np.uint8) -> bool:
    """Whether a byte is a space within a line."""
    return bool(byte <= SPACE and (byte == SPACE or byte == 9 or 11 <= byte <= 13 or byte >= 28))


@kernel(sums="exact", alone=False)
def skip_spaces(data: NDArray[np.uint8], i: int) -> int:
    """The first byte from i on that is no space; the end of a line is none."""
    while is_space(data[U(i)]):
        i += 1
    return i


@kernel(inline=False, sums="exact", alone=False)
def line_end(data: NDArray[np.uint8], i: int) -> int:
    """The end of the line that contains i."""
    while data[U(i)] != NEWLINE:
        i += 1
    return i


@kernel(inline=False, sums="exact", alone=False)
def is_ascii(data: NDArray[np.uint8], i: int) -> bool:
    """Whether the rest of the line from i on is ASCII."""
    while data[U(i)] != NEWLINE:
        if data[U(i)] >= 128:
            return False
        i += 1
    return True


@kernel(entry=True, inline=False, sums="exact")
def has_other_space(data: NDArray[np.uint8]) -> bool:
    """Whether a text in UTF-8 has a space beyond ASCII, at which `str.split` splits, too."""
    for i in range(len(data) - 2):
        first = data[U(i)]
        if first == 0xC2 and (data[U(i + 1)] == 0x85 or data[U(i + 1)] == 0xA0):
            return True
        if 0xE1 <= first <= 0xE3:
            last = (np.int64(data[U(i + 1)]) & 63) << 6 | (np.int64(data[U(i + 2)]) & 63)
            code = (np.int64(first) & 15) << 12 | last
            if 0x2000 <= code <= 0x200A or code == 0x2028 or code == 0x2029 or code == 0x202F:
                return True
            if code == 0x1680 or code == 0x205F or code == 0x3000:
                return True
    return False
