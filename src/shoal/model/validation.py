"""Are the rows that came from outside finite numbers in columns that there are, each column once and in order?

Rows of a large table are brought from memory once if a few are checked just before they are learnt (`good_until`): to
read all of them only to check them takes as long as learning from them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds

BAD = -1
AT_ONCE = 2**7  # numbers; while more are only checked, memory brings no others
THREAD_PAYS = 2**18  # numbers; starting a thread takes as long as checking about 2^16


@kernel
def _all_finite(values: FloatArray) -> bool:
    """A sum is finite only if its terms are: one fast pass."""
    total = 0.0
    for p in range(len(values)):
        total += values[p] * 0.0
    return total == 0.0


@kernel(entry=True, allocates=True)
def first_not_finite(values: FloatArray) -> int:
    """Position of the first NaN or infinity, or -1."""
    if _all_finite(values):
        return -1
    for p in range(len(values)):
        if not np.isfinite(values[p]):
            return p
    return -1


@kernel
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


def _beside(check: Callable[[], Any], other: Callable[[], Any]) -> tuple[Any, Any]:
    """The results of two compiled checks, which hold no lock, side by side on two cores."""
    results: list[Any] = []
    thread = Thread(target=lambda: results.append(other()))
    thread.start()
    result = check()
    thread.join()
    return result, results[0]


def both_checks(indptr: IntArray, indices: IndexArray, values: FloatArray, n_features: int) -> tuple[bool, int]:
    """Whether the rows are canonical, and where the first value is that is not finite."""
    if len(values) < THREAD_PAYS:
        return is_canonical(indptr, indices, n_features), first_not_finite(values)
    return _beside(lambda: is_canonical(indptr, indices, n_features), lambda: first_not_finite(values))


@kernel
def are_good(rounds: Rounds, first: int, last: int) -> bool:
    """Are these rows finite and canonical, or known to be?"""
    if rounds.n_columns == 0:
        return True
    if rounds.width > 0:
        return _all_finite(rounds.values[first * rounds.width : last * rounds.width])
    indptr = rounds.indptr
    return _in_order(indptr, rounds.indices, rounds.n_columns, first, last) and _all_finite(
        rounds.values[indptr[first] : indptr[last]]
    )


@kernel
def good_until(rounds: Rounds, good: int, row: int) -> int:
    """Rows before `good` are good. Check some more until those before `row` are; the new `good`, or BAD."""
    if rounds.n_columns == 0:
        return row
    n = len(rounds.task)
    some = max(AT_ONCE * n // max(len(rounds.values), 1), 1)
    while good < row:
        last = max(min(good + some, n), row)
        if not are_good(rounds, good, last):
            return BAD
        good = last
    return good
