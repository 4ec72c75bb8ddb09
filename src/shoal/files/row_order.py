"""The features of a row in the order of their columns: in text they may stand in any."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.eight import U

FEW = 32  # so many are sorted fastest by counting the smaller ones, though that takes the square of the time


@kernel(sums="exact")
def _sort_few(keys: NDArray[np.int64], first: int, last: int, ordered: NDArray[np.int64]) -> None:
    """Sort keys[first:last]: each goes behind as many as are smaller. No branch depends on the keys."""
    for i in range(first, last):
        key, place = keys[U(i)], first
        for j in range(first, last):
            place += keys[U(j)] < key
        ordered[U(place)] = key


@kernel(sums="exact")
def _merge(keys: NDArray[np.int64], first: int, middle: int, last: int, ordered: NDArray[np.int64]) -> None:
    """Join the sorted keys[first:middle] and keys[middle:last]."""
    i, j = first, middle
    for k in range(first, last):
        left = j == last or (i < middle and keys[U(i)] < keys[U(j)])
        ordered[U(k)] = keys[U(i)] if left else keys[U(j)]
        i += left
        j += not left


@kernel(entry=True, inline=False, sums="exact")
def sort_keys(keys: NDArray[np.int64], n: int, ordered: NDArray[np.int64]) -> None:
    """Sort the first n into `ordered`, without the memory that NumPy's sort takes; none stands there twice."""
    for first in range(0, n, FEW):
        _sort_few(keys, first, min(first + FEW, n), ordered)
    width = FEW
    while width < n:
        for i in range(n):
            keys[i] = ordered[i]
        for first in range(0, n, 2 * width):
            _merge(keys, first, min(first + width, n), min(first + 2 * width, n), ordered)
        width *= 2


@kernel(sums="exact")
def sort_few(
    found: NDArray[np.int32], found_values: NDArray[np.float64], n: int, columns: NDArray[np.int32],
    values: NDArray[np.float64], first: int,
) -> bool:  # fmt: skip
    """Put n features from `first` on in the order of their columns; False (and nonsense) if one stands there twice.

    Each goes behind as many as are smaller; these numbers add up to that of all pairs where no two are equal.
    """
    pairs = 0
    for i in range(n):
        column, place = found[U(i)], np.int32(0)
        for j in range(n):
            place += np.int32(found[U(j)] < column)
        columns[U(first + place)] = column
        values[U(first + place)] = found_values[U(i)]
        pairs += int(np.int64(place))
    return pairs == n * (n - 1) // 2


@kernel(sums="exact")
def is_ordered(columns: NDArray[np.int32], first: int, last: int) -> bool:
    """Whether columns[first:last] ascend and none stands there twice."""
    ordered = True
    for i in range(first + 1, last):
        ordered &= columns[U(i - 1)] < columns[U(i)]
    return ordered
