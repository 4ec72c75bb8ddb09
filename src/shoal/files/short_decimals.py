"""Short decimal numbers, such as -0.125: up to eight digits and dots are read at once, not one by one.

The digits as an integer and the power of ten are doubles, so that one division rounds once and is right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.decimals import FAILED, read_number
from shoal.files.eight import HIGHS, before, count, eight, equal, less, times_eight

SPACE, MINUS, DOT, ZERO, NINE = 32, 45, 46, 48, 57
TENS = np.array([float(f"{sign}1e{q}") for sign in ("", "-") for q in range(9)])  # to divide by, with the sign
ABOVE_NINE = times_eight(127 - NINE)  # added to a byte above the digit 9, it sets the highest bit
NO_DIGIT = times_eight(127 - 9)
DOTS, ZEROS = times_eight(DOT), times_eight(ZERO)
PAIRS = np.uint64(0x000000FF000000FF)
U = np.uint64


@kernel(sums="exact")
def no_digits(word: np.uint64) -> np.uint64:
    """The mask of the bytes that are no digits."""
    return less(word, ZEROS) | ((word + ABOVE_NINE) | word) & HIGHS


@kernel(sums="exact")
def digits_before(word: np.uint64, n: int) -> tuple[np.uint64, bool]:
    """The number that the first n bytes (1 to 8) are, and whether all are digits; three multiplications.

    Neighbours are joined to numbers of two digits, of which the even ones and the odd ones are weighed.
    """
    digits = (word ^ ZEROS) << U(8 * (8 - n))
    right = ((digits + NO_DIGIT) | digits) & HIGHS == U(0)
    pairs = digits * U(10) + (digits >> U(8))
    even, odd = pairs & PAIRS, (pairs >> U(16)) & PAIRS
    return (even * U((1_000_000 << 32) + 100) + odd * U((10_000 << 32) + 1)) >> U(32), right


@kernel(sums="exact")
def read_short(data: NDArray[np.uint8], i: int) -> tuple[int, float]:
    """The number of up to eight digits and a dot at i: position behind it (FAILED if it is none) and value.

    Behind it may stand what makes it a longer number: that is for who calls to see.
    """
    negative = int(np.int64(data[U(i)] == MINUS))
    i += negative
    word = eight(data, i)
    token = before(less(word, DOTS) | ((word + ABOVE_NINE) | word) & HIGHS)
    dots = equal(word, DOTS) & token
    whole = before(dots)
    length = count(token)
    n = length - (1 if dots != U(0) else 0)
    if n == 0:
        return FAILED, 0.0
    number, right = digits_before((word & whole) | ((word >> U(8)) & ~whole), n)
    if not right:
        return FAILED, 0.0
    fraction = n - count(token & whole)
    return i + length, np.float64(np.int64(number)) / TENS[U(9 * negative + fraction)]


@kernel(sums="exact")
def read_value(data: NDArray[np.uint8], i: int, mark: np.uint8) -> tuple[int, float]:
    """The number at i, however long, up to a space or a mark: position behind it, FAILED if it is none, and value."""
    end, value = read_short(data, i)
    if end == FAILED or (data[U(end)] > SPACE and data[U(end)] != mark):
        end, value = read_number(data, i, len(data))
        if end != FAILED and data[U(end)] > SPACE and data[U(end)] != mark:
            return FAILED, 0.0
    return end, value
