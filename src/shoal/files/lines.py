"""The bytes between words: what ends a line and what splits words, as `str.split` does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.eight import SLACK

NEWLINE, SPACE = 10, 32
U = np.uint64
PADDING = b"\n" * SLACK  # behind a text, so that its last line ends too and words of eight bytes may be read


@kernel(sums="exact")
def is_gap(byte: np.uint8) -> bool:
    """Whether it is a space within a line."""
    return bool(byte <= SPACE and (byte == SPACE or byte == 9 or 11 <= byte <= 13 or byte >= 28))


@kernel(sums="exact")
def skip_gaps(data: NDArray[np.uint8], i: int) -> int:
    """The first byte from i on that is no space, at the latest the end of the line."""
    while is_gap(data[U(i)]):
        i += 1
    return i


@kernel(inline=False, sums="exact")
def line_end(data: NDArray[np.uint8], i: int) -> int:
    """Where the line that goes on at i ends."""
    while data[U(i)] != NEWLINE:
        i += 1
    return i


@kernel(inline=False, sums="exact")
def is_ascii(data: NDArray[np.uint8], i: int) -> bool:
    """Whether the rest of the line at i is."""
    while data[U(i)] != NEWLINE:
        if data[U(i)] >= 128:
            return False
        i += 1
    return True


@kernel(entry=True, inline=False, sums="exact")
def has_other_space(data: NDArray[np.uint8]) -> bool:
    """Whether a text in UTF-8 has a space beyond ASCII, where `str.split` would split too."""
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
