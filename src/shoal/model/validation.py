"""Are rows finite numbers in columns that exist, each column once and in order?

A large table is validated in blocks of rows just before they are learned: to read all of it from memory only to
validate it takes as long as learning from it.
"""

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds

LARGEST = 1e151  # of a number's size: products of two are finite
BLOCK = 2**16  # numbers that are validated and then learned at once: they stay in a core's own cache in between


@kernel(alone=False)
def _all_in_range(values: FloatArray) -> bool:
    """One SIMD pass; NaN is not in range."""
    outside = 0
    for p in range(len(values)):
        outside += int(not abs(values[p]) <= LARGEST)
    return outside == 0


@kernel(entry=True, allocates=True)
def first_out_of_range(values: FloatArray) -> int:
    """Position of the first NaN, infinity or number beyond `LARGEST`, or -1."""
    if _all_in_range(values):
        return -1
    for p in range(len(values)):
        if not abs(values[p]) <= LARGEST:
            return p
    return -1


@kernel(alone=False)
def _in_order(indptr: IntArray, indices: IndexArray, n_features: int, first: int, last: int) -> bool:
    """Are offsets and columns of these rows in range, columns sorted and none twice in a row? Almost all work is one
    SIMD pass."""
    if indptr[first] < 0:
        return False
    steps_back, columns = np.int64(0), indices[indptr[first] : max(indptr[last], 0)]
    for p in range(1, len(columns)):
        steps_back += np.int64(columns[p] <= columns[p - 1])
    for row in range(first, last):
        start, end = indptr[row], indptr[row + 1]
        if start < indptr[first] or start > end or end > len(indices):
            return False
        if start < end:
            if indices[start] < 0 or indices[end - 1] >= n_features:
                return False
            steps_back -= np.int64(start > indptr[first] and indices[start] <= indices[start - 1])  # a row's first may
    return bool(steps_back == 0)


@kernel(entry=True, allocates=True)
def is_canonical(indptr: IntArray, indices: IndexArray, n_features: int) -> bool:
    """Is this a CSR matrix whose columns are sorted in every row, none twice?"""
    return bool(indptr[0] == 0 and indptr[-1] == len(indices)) and _in_order(
        indptr, indices, n_features, 0, len(indptr) - 1
    )


@kernel(entry=True, allocates=True)
def first_malformed(indptr: IntArray, indices: IndexArray, n_features: int) -> int:
    """First row whose offsets or column numbers are out of range, or -1."""
    for row in range(len(indptr) - 1):
        if indptr[row] > indptr[row + 1] or indptr[row + 1] > len(indices):
            return row
        for p in range(indptr[row], indptr[row + 1]):
            if indices[p] < 0 or indices[p] >= n_features:
                return row
    return -1


@kernel(entry=True)
def are_valid(rounds: Rounds, n_features: int, first: int, last: int) -> bool:
    """Are these rows in range and canonical?"""
    if rounds.width > 0:
        return _all_in_range(rounds.values[first * rounds.width : last * rounds.width])
    indptr = rounds.indptr
    return _in_order(indptr, rounds.indices, n_features, first, last) and _all_in_range(
        rounds.values[indptr[first] : indptr[last]]
    )


def blocks(rounds: Rounds) -> list[int]:
    """Rounds at which blocks of about `BLOCK` numbers begin, and where the last ends."""
    n_rounds, n_numbers = len(rounds.starts) - 1, len(rounds.values)
    if n_numbers <= 2 * BLOCK:
        return [0, n_rounds]
    numbers = np.arange(BLOCK, n_numbers, BLOCK)
    rows = -(-numbers // rounds.width) if rounds.width > 0 else np.searchsorted(rounds.indptr, numbers)
    edges = np.searchsorted(rounds.starts, rows)
    found: list[int] = np.unique(np.clip([0, *edges, n_rounds], 0, n_rounds)).tolist()
    return found
