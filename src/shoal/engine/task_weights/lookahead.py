"""Hides memory latency: while a row is processed, the next row's table groups are located and prefetched.

Most pairs of a sparse row do not occur in its task's table, so one-byte hints are tested before any slot is read.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import SCRATCH, lowest_bit, number_in, prefetch, set_number
from shoal.engine.rows import SUMS, accumulator_of
from shoal.engine.task_weights import hash_table

WORD = 64  # bits
ONE_SUM = np.eye(SUMS)  # a product times 1 for its sum and 0 for the others: branches would be foreseen wrongly
MOST = SCRATCH // 2 - 3  # entries of a row that is noted
ROW, FILLED, N, HITS = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)  # positions in the notes about a row
NO_ROW = np.uint64(2**64 - 1)
ENTRY_BITS = np.uint64(32)  # of a hit; the others are its group's
U = np.uint64
Lookahead: TypeAlias = NDArray[np.uint64]  # scratch: notes about the row that is learned and about the next


class Row(NamedTuple):
    """A row of features; if it is dense, its columns are 0, 1, 2, ..."""

    dense: bool
    columns: IndexArray
    x: FloatArray


@kernel
def rounded(number: float, like: FloatArray) -> float:
    """To what an array of this type would hold."""
    return float(like.dtype.type(number))


@kernel
def _column(row: Row, i: int | np.uint64) -> np.uint32:
    return np.uint32(i) if row.dense else np.uint32(row.columns[i])  # i or columns[i] would be a float


@kernel
def _note(number: int, ahead: Lookahead) -> np.uint64:
    """The first word of a row's notes; two rows have notes, this one and the next."""
    return U(number & 1) * U(len(ahead) // 2)


@kernel
def nothing_ahead(ahead: Lookahead) -> None:
    """Clear the notes of both rows."""
    for number in range(2):
        ahead[_note(number, ahead) + ROW] = NO_ROW


@kernel
def _look(
    row: Row, first: int, last: int, task: int, tables: hash_table.Tables, hits: np.uint64, ahead: Lookahead
) -> np.uint64:
    """Note the entries from `first` on that may occur, and prefetch their groups; return how many they are."""
    (start, size), n = hash_table.place_of(tables, task), U(0)
    for i in range(U(first), U(last)):
        ahead[hits + n] = i
        n += hash_table.hint(tables, start, size, _column(row, i))  # a branch would often be foreseen wrongly
    for hit in range(hits, hits + n):
        group = hash_table.home(start, size, _column(row, ahead[hit]))
        prefetch(tables.words, group * U(hash_table.WORDS))
        ahead[hit] |= group << ENTRY_BITS
    return n


@kernel
def look_ahead(row: Row, number: int, task: int, tables: hash_table.Tables, ahead: Lookahead) -> None:
    """Note which entries of the row of this number may occur, and prefetch their groups before its turn comes."""
    note = _note(number, ahead)
    if tables.size[task] > 0 and len(row.x) <= MOST:
        ahead[note + ROW], ahead[note + FILLED] = number, tables.filled[task]
        ahead[note + N] = _look(row, 0, len(row.x), task, tables, note + HITS, ahead)


@kernel(sums="exact")
def dot_pairs(row: Row, number: int, task: int, tables: hash_table.Tables, ahead: Lookahead) -> float:
    """<v_task, x> of the row of this number."""
    (start, size), note = hash_table.place_of(tables, task), _note(number, ahead)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    known = ahead[note + ROW] == U(number) and ahead[note + FILLED] == U(tables.filled[task])  # no pair came since
    ahead[note + ROW] = NO_ROW
    for first in range(0, len(row.x), MOST):
        last = min(first + MOST, len(row.x))
        n = ahead[note + N] if known else _look(row, first, last, task, tables, note + HITS, ahead)
        for hit in range(note + HITS, note + HITS + n):
            i = U(np.uint32(ahead[hit]))
            slot = hash_table.find_from(tables, start, size, ahead[hit] >> ENTRY_BITS, _column(row, i))
            product = row.x[i] * number_in(tables.words, hash_table.number_at(slot))  # zero if the pair does not occur
            of = ONE_SUM[accumulator_of(i, len(row.x))]
            a, b, c, d = a + product * of[0], b + product * of[1], c + product * of[2], d + product * of[3]
    return (a + b) + (c + d)


@kernel
def _hints(row: Row, first: int, last: int, task: int, tables: hash_table.Tables) -> np.uint64:
    """Bit i: the pair of entry first + i may occur."""
    start, size, bits = U(tables.start[task]), U(tables.size[task]), U(0)
    for i in range(U(first), U(last)):
        bits |= hash_table.hint(tables, start, size, _column(row, i)) << (i - U(first))
    return bits


@kernel
def fetch_row(row: Row, first: int, bits: np.uint64, task: int, tables: hash_table.Tables) -> None:
    """Prefetch the groups of the entries first + i whose bit i is set."""
    start, size = U(tables.start[task]), U(tables.size[task])
    while bits != U(0):
        hash_table.fetch(tables, start, size, _column(row, U(first) + lowest_bit(bits)))
        bits &= bits - U(1)


@kernel
def add_pairs(row: Row, scale: float, task: int, tables: hash_table.Tables, like: FloatArray) -> None:
    """v_task <- v_task + scale x, for which there is capacity. A pair without a hint is new: no slot is compared."""
    start, size = U(tables.start[task]), U(tables.size[task])
    for first in range(0, len(row.x), WORD):
        last = min(first + WORD, len(row.x))
        bits, n = _hints(row, first, last, task, tables), 0
        fetch_row(row, first, bits, task, tables)
        new = ~bits & (~U(0) >> U(WORD - last + first))
        while new != U(0):
            i = U(first) + lowest_bit(new)
            new &= new - U(1)
            hash_table.take_slot(tables, start, size, _column(row, i), n)
            tables.waiting[hash_table.SOURCE, n] = i
            n += 1
        while bits != U(0):
            i = U(first) + lowest_bit(bits)
            bits &= bits - U(1)
            slot = hash_table.find(tables, start, size, _column(row, i))
            if tables.words[slot] != hash_table.FREE:
                at = hash_table.number_at(slot)
                set_number(tables.words, at, rounded(number_in(tables.words, at) + scale * row.x[i], like))
            else:
                hash_table.take_slot(tables, start, size, _column(row, i), n)
                tables.waiting[hash_table.SOURCE, n] = i
                n += 1
        tables.filled[task] += n
        for k in range(n):
            i = U(tables.waiting[hash_table.SOURCE, k])
            hash_table.write_key(tables, _column(row, i), k)
            set_number(
                tables.words, hash_table.number_at(tables.waiting[hash_table.SLOT, k]), rounded(scale * row.x[i], like)
            )


@kernel
def missing_pairs(row: Row, task: int, tables: hash_table.Tables) -> int:
    """How many of the pairs do not occur yet; called only when the table may be too full."""
    start, size, missing = U(tables.start[task]), U(tables.size[task]), len(row.x)
    for i in range(len(row.x) if size > U(0) else 0):
        feature = _column(row, i)
        if hash_table.hint(tables, start, size, feature) != U(0):
            missing -= int(tables.words[hash_table.find(tables, start, size, feature)] != hash_table.FREE)
    return missing
