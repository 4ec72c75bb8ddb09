"""Decimal numbers in text as the nearest double, exactly as Python's `float` reads them.

With the digits as an integer w and the exponent q, the value is w 10^q. If w and 10^|q| are doubles, one multiplication
or division rounds once and is exact (Clinger, "How to read floating point numbers accurately", PLDI 1990). Otherwise w
is multiplied by 5^q to 128 bits, which nearly always decides the rounding (Lemire, "Number parsing at a gigabyte per
second", Software: Practice and Experience 2021, algorithm 1). The rest (subnormal and infinite values, words such as
nan) falls back to `float`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.sparse_text.bytes import (
    HIGHS,
    bytes_before,
    count_bytes,
    equal_bytes,
    load_word,
    repeated,
    smaller_bytes,
)

LOWEST, HIGHEST = -342, 308  # powers of ten in the table
MOST_DIGITS = 19  # that always fit 64 bits
FAILED = -1  # "position" behind a token that is no plain decimal number


def _powers() -> NDArray[np.uint64]:
    """(n, 2): the 128 leading bits of 5^q, rounded down for q >= 0 and up below, as high and low half."""
    rows = []
    for q in range(LOWEST, HIGHEST + 1):
        five = 5 ** abs(q)
        power = five << 256 if q >= 0 else (1 << (2 * five.bit_length() + 256)) // five
        power >>= power.bit_length() - 128
        power += int(q < 0)
        rows.append((power >> 64, power & (2**64 - 1)))
    return np.array(rows, np.uint64)


POWERS = _powers()
TENS = np.array([float(f"1e{q}") for q in range(23)])  # those that are doubles
HALF = np.uint64(2**32 - 1)
U = np.uint64


@kernel(sums="exact", alone=False)
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The high and the low half of a b."""
    a1, a0, b1, b0 = a >> U(32), a & HALF, b >> U(32), b & HALF
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carried = (low >> U(32)) + (middle & HALF) + (other & HALF)
    high = a1 * b1 + (middle >> U(32)) + (other >> U(32)) + (carried >> U(32))
    return high, (carried << U(32)) | (low & HALF)


@kernel(inline=False, sums="exact", alone=False)
def nearest_double(w: np.uint64, q: int) -> float:
    """The double nearest to w 10^q; -1 if 128 bits of 5^q do not decide it or it is no normal number."""
    if w == U(0) or q < LOWEST or q > HIGHEST:
        return -1.0
    shift = U(0)
    while w >> U(63) == 0:
        w = w << U(1)
        shift += U(1)
    high, low = _product(w, POWERS[q - LOWEST, 0])
    if high & U(0x1FF) == U(0x1FF):  # a carry may still reach the mantissa
        more, _ = _product(w, POWERS[q - LOWEST, 1])
        low += more
        if low < more:
            high += U(1)
        if low == U(2**64 - 1):
            return -1.0
    top = high >> U(63)
    mantissa = high >> (top + U(9))
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - np.int64(shift) + 1023
    if exponent <= 0 or exponent >= 2046:  # (nearly) subnormal or infinite
        return -1.0
    if low <= U(1) and mantissa & U(3) == U(1) and mantissa << (top + U(9)) == high and -4 <= q <= 23:
        mantissa -= U(1)  # exactly half way: to the even one
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    return math.ldexp(np.float64(mantissa), int(exponent) - 1075)


@kernel(sums="exact", alone=False)
def _digits(data: NDArray[np.uint8], i: int, end: int, w: np.uint64, n: int) -> tuple[int, np.uint64, int, int]:
    """Append the digits from i on to w, which has n significant ones: position behind, w, n, digits read."""
    first = i
    while i < end and U(data[i]) - U(48) < U(10):
        if n < MOST_DIGITS:
            w = w * U(10) + (U(data[i]) - U(48))
            n += int(w != U(0))
        else:
            n += 1
        i += 1
    return i, w, n, i - first


@kernel(inline=False, sums="exact", alone=False)
def _exponent(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:
    """The exponent behind an e: position behind it (or FAILED), and exponent."""
    negative = False
    if i < end and (data[i] == 43 or data[i] == 45):
        negative = data[i] == 45
        i += 1
    i, value, n, read = _digits(data, i, end, U(0), 0)
    if read == 0 or n > 4:
        return FAILED, 0
    exponent = int(np.int64(value))
    return i, -exponent if negative else exponent


@kernel(inline=False, sums="exact", alone=False)
def read_number(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, float]:
    """The number at i: position behind it (FAILED if it is one for `float`), and value."""
    negative = False
    if i < end and (data[i] == 43 or data[i] == 45):
        negative = data[i] == 45
        i += 1
    i, w, n, whole = _digits(data, i, end, U(0), 0)
    fraction = 0
    if i < end and data[i] == 46:
        i, w, n, fraction = _digits(data, i + 1, end, w, n)
    if whole + fraction == 0:
        return FAILED, 0.0
    q = max(n - MOST_DIGITS, 0) - fraction
    if i < end and (data[i] == 101 or data[i] == 69):
        i, exponent = _exponent(data, i + 1, end)
        if i == FAILED:
            return FAILED, 0.0
        q += exponent
    if w < U(2**53) and -22 <= q <= 22 and n <= MOST_DIGITS:
        value = np.float64(w) * TENS[q] if q >= 0 else np.float64(w) / TENS[-q]
    else:
        value = _by_128_bits(w, q, n)
        if value < 0.0:
            return FAILED, 0.0
    return i, -value if negative else value


@kernel(inline=False, sums="exact", alone=False)
def _by_128_bits(w: np.uint64, q: int, n: int) -> float:
    """The double nearest to w 10^q, where w has the leading ones of n digits; -1 if it is undecided."""
    if w == U(0):
        return 0.0
    value = -1.0
    for more in range(2 if n > MOST_DIGITS else 1):  # a loop, because two calls would be inlined twice
        nearest = nearest_double(w + U(more), q)
        if more > 0 and nearest != value:
            return -1.0
        value = nearest
    return value


SPACE, MINUS, DOT, ZERO, NINE = 32, 45, 46, 48, 57
SIGNED_TENS = np.array([float(f"{sign}1e{q}") for sign in ("", "-") for q in range(9)])  # signed divisors
ABOVE_NINE = repeated(127 - NINE)  # added to a byte above "9", it sets the highest bit
NO_DIGIT = repeated(127 - 9)
DOTS, ZEROS = repeated(DOT), repeated(ZERO)
PAIRS = np.uint64(0x000000FF000000FF)


@kernel(sums="exact", alone=False)
def no_digits(word: np.uint64) -> np.uint64:
    """The mask of the bytes that are no digits."""
    return smaller_bytes(word, ZEROS) | ((word + ABOVE_NINE) | word) & HIGHS


@kernel(sums="exact", alone=False)
def digits_before(word: np.uint64, n: int) -> tuple[np.uint64, bool]:
    """The first n bytes (1 to 8) as a number, in three multiplications, and whether all are digits.

    Neighbors are joined to numbers of two digits; the even and the odd ones of these are then weighted and added.
    """
    digits = (word ^ ZEROS) << U(8 * (8 - n))
    right = ((digits + NO_DIGIT) | digits) & HIGHS == U(0)
    pairs = digits * U(10) + (digits >> U(8))
    even, odd = pairs & PAIRS, (pairs >> U(16)) & PAIRS
    return (even * U((1_000_000 << 32) + 100) + odd * U((10_000 << 32) + 1)) >> U(32), right


@kernel(sums="exact", alone=False)
def read_short(data: NDArray[np.uint8], i: int) -> tuple[int, float]:
    """The number of up to eight digits and a dot at i: position behind it (or FAILED), and value.

    The caller has to check that the number ends there.
    """
    negative = int(np.int64(data[U(i)] == MINUS))
    i += negative
    word = load_word(data, i)
    token = bytes_before(smaller_bytes(word, DOTS) | ((word + ABOVE_NINE) | word) & HIGHS)
    dots = equal_bytes(word, DOTS) & token
    whole = bytes_before(dots)
    length = count_bytes(token)
    n = length - (1 if dots != U(0) else 0)
    if n == 0:
        return FAILED, 0.0
    number, right = digits_before((word & whole) | ((word >> U(8)) & ~whole), n)
    if not right:
        return FAILED, 0.0
    fraction = n - count_bytes(token & whole)
    return i + length, np.float64(np.int64(number)) / SIGNED_TENS[U(9 * negative + fraction)]


@kernel(sums="exact", alone=False)
def read_value(data: NDArray[np.uint8], i: int, mark: np.uint8) -> tuple[int, float]:
    """The number at i, of any length, up to a space or a mark: position behind it (or FAILED), and value."""
    end, value = read_short(data, i)
    if end == FAILED or (data[U(end)] > SPACE and data[U(end)] != mark):
        end, value = read_number(data, i, len(data))
        if end != FAILED and data[U(end)] > SPACE and data[U(end)] != mark:
            return FAILED, 0.0
    return end, value
