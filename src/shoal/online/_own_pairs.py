"""Sparse rows against a task's table of pairs, most of which do not occur: hints are looked at first, 64 at a time.

Going from bit to bit of a word of hints costs no branch for each entry of the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.ops import leaf, leaf_in_order, lowest_bit
from shoal.pairs import FEATURE, NOWHERE, RECORDS, Pairs, add_waiting, fetch, find, hint, place_of
from shoal.rounds import FloatArray, IndexArray

WORD = 64  # bits
U = np.uint64


class Row(NamedTuple):
    """A row of features; if it is dense, its columns are 0, 1, 2, ..."""

    dense: bool
    columns: IndexArray
    x: FloatArray


@leaf
def _column(row: Row, i: int | np.uint64) -> np.uint32:
    return np.uint32(i) if row.dense else np.uint32(row.columns[i])  # i or columns[i] would be a float


@leaf
def _hints(row: Row, first: int, last: int, task: int, pairs: Pairs) -> np.uint64:
    """Bit i: the pair of entry first + i may occur."""
    start, size, bits = U(pairs.start[task]), U(pairs.size[task]), U(0)
    for i in range(U(first), U(last)):
        bits |= hint(pairs, start, size, _column(row, i)) << (i - U(first))
    return bits


@leaf
def _fetch(row: Row, first: int, bits: np.uint64, task: int, pairs: Pairs) -> None:
    """Have all pairs looked for at once; one after the other each would wait for memory."""
    start, size = U(pairs.start[task]), U(pairs.size[task])
    while bits != U(0):
        fetch(pairs.slots, start, size, _column(row, U(first) + lowest_bit(bits)))
        bits &= bits - U(1)


@leaf_in_order
def dot_pairs(row: Row, task: int, pairs: Pairs, w: FloatArray) -> tuple[float, float]:
    """<v_task, x> and, unless w is empty, <w, x>: one pass over the row for its hints and w, then two over the hits."""
    start, size, total, other = U(pairs.start[task]), U(pairs.size[task]), 0.0, 0.0
    for first in range(0, len(row.x), WORD):
        bits = U(0)
        for i in range(U(first), U(min(first + WORD, len(row.x)))):
            j = _column(row, i)
            bits |= hint(pairs, start, size, j) << (i - U(first))
            if len(w) > 0:
                other += row.x[i] * w[j]
        _fetch(row, first, bits, task, pairs)
        while bits != U(0):
            hit = U(first) + lowest_bit(bits)
            bits &= bits - U(1)
            total += row.x[hit] * pairs.records[find(pairs.slots, start, size, _column(row, hit)), 0]  # or NOWHERE's: 0
    return total, other


@leaf
def add_pairs(row: Row, scale: float, task: int, pairs: Pairs) -> None:
    """There is room. A pair without a hint is new, so nothing needs to be compared."""
    start, size = U(pairs.start[task]), U(pairs.size[task])
    for first in range(0, len(row.x), WORD):
        last = min(first + WORD, len(row.x))
        bits, n, place = _hints(row, first, last, task, pairs), 0, pairs.used[RECORDS]
        others = ~bits & (~U(0) >> U(WORD - last + first))
        while others != U(0):
            i = U(first) + lowest_bit(others)
            others &= others - U(1)
            pairs.waiting[FEATURE, n], pairs.records[place + n, 0] = _column(row, i), scale * row.x[i]
            n += 1
        while bits != U(0):
            i = U(first) + lowest_bit(bits)
            bits &= bits - U(1)
            known = find(pairs.slots, start, size, _column(row, i))
            if known != NOWHERE:
                pairs.records[known, 0] += scale * row.x[i]
            else:
                pairs.waiting[FEATURE, n], pairs.records[place + n, 0] = _column(row, i), scale * row.x[i]
                n += 1
        add_waiting(pairs, task, n)


@leaf
def missing_pairs(row: Row, task: int, pairs: Pairs) -> int:
    """How many of the pairs do not occur yet."""
    missing = len(row.x)
    if pairs.size[task] == 0:
        return missing
    for first in range(0, len(row.x), WORD):
        bits = _hints(row, first, min(first + WORD, len(row.x)), task, pairs)
        while bits != U(0):
            i = U(first) + lowest_bit(bits)
            bits &= bits - U(1)
            missing -= int(place_of(pairs, task, _column(row, i)) != NOWHERE)
    return missing
