"""The bytes between words: what ends a line and what splits words, as `str.split` does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.files.eight import SLACK
from shoal.files.exact import leaf_exact, leaf_exact_apart

NEWLINE, SPACE = 10, 32
U = np.uint64
PADDING = b"\n" * SLACK  # behind a text, so that its last line ends too and words of eight bytes may be read


@leaf_exact
def is_gap(byte: np.uint8) -> bool:
    """Whether it is a space within a line."""
    return bool(byte <= SPACE and (byte == SPACE or byte == 9 or 11 <= byte <= 13 or byte >= 28))


@leaf_exact
def skip_gaps(data: NDArray[np.uint8], i: int) -> int:
    """The first byte from i on that is no space, at the latest the end of the line."""
    while is_gap(data[U(i)]):
        i += 1
    return i


@leaf_exact_apart
def line_end(data: NDArray[np.uint8], i: int) -> int:
    """Where the line that goes on at i ends."""
    while data[U(i)] != NEWLINE:
        i += 1
    return i


@leaf_exact_apart
def is_ascii(data: NDArray[np.uint8], i: int) -> bool:
    """Whether the rest of the line at i is."""
    while data[U(i)] != NEWLINE:
        if data[U(i)] >= 128:
            return False
        i += 1
    return True
