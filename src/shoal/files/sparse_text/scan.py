"""Sparse rows under construction: the compiled scans append them, a full buffer becomes the matrix of a chunk."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.engine.compile import kernel
from shoal.files.sparse_text.bytes import line_end

U = np.uint64
FEW = 32  # so many are sorted fastest by counting the smaller ones, though that takes the square of the time


@kernel(sums="exact", alone=False)
def _sort_few(keys: NDArray[np.int64], first: int, last: int, ordered: NDArray[np.int64]) -> None:
    """Sort keys[first:last]: each goes behind as many as are smaller. No branch depends on the keys."""
    for i in range(first, last):
        key, place = keys[U(i)], first
        for j in range(first, last):
            place += keys[U(j)] < key
        ordered[U(place)] = key


@kernel(sums="exact", alone=False)
def _merge(keys: NDArray[np.int64], first: int, middle: int, last: int, ordered: NDArray[np.int64]) -> None:
    """Join the sorted keys[first:middle] and keys[middle:last]."""
    i, j = first, middle
    for k in range(first, last):
        left = j == last or (i < middle and keys[U(i)] < keys[U(j)])
        ordered[U(k)] = keys[U(i)] if left else keys[U(j)]
        i += left
        j += not left


@kernel(inline=False, sums="exact", alone=False)
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


@kernel(sums="exact", alone=False)
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


@kernel(sums="exact", alone=False)
def is_ordered(columns: NDArray[np.int32], first: int, last: int) -> bool:
    """Whether columns[first:last] ascend and none stands there twice."""
    ordered = True
    for i in range(first + 1, last):
        ordered &= columns[U(i - 1)] < columns[U(i)]
    return ordered


NO_TASK = -1
# Why a scan stops: no text, no free row, a line for the parser, no capacity for the next row.
END, FULL, UNUSUAL_LINE, NO_CAPACITY = range(4)
# Places of a buffer's cursor. LABELED: which labels lines have. WEIGHTED: a row has another weight than 1.
POSITION, LINE, LINE_END, ROWS, WIDTH, NEED, NEED_LETTERS, LABELED, WEIGHTED = range(9)
UNLABELED, NUMBERS, WHOLE_NUMBERS = range(3)
EXACT = 2.0**53  # whole numbers below it are exact as float64
T = TypeVar("T", bound=np.generic)


class RowBuffer(NamedTuple):
    """Rows so far, with capacity for more, and where in the text the scanner is."""

    ends: NDArray[np.int32]  # (capacity for rows + 1,) offsets of the rows
    columns: NDArray[np.int32]  # (capacity,) sorted within a row, none twice; those of the next row as they come
    values: NDArray[np.float64]  # (capacity,)
    labels: NDArray[np.float64]  # (capacity for rows,)
    tasks: NDArray[np.int64]  # (capacity for rows,) numbers of the task ids
    weights: NDArray[np.float64]  # (capacity for rows,)
    keys: NDArray[np.int64]  # (capacity for a row,) for sorting: its columns and where each one's value stands
    ordered: NDArray[np.int64]  # (capacity for a row,) the keys, sorted
    found_columns: NDArray[np.int32]  # (capacity for a row,) its columns in the order of the file
    found: NDArray[np.float64]  # (capacity for a row,) its values in the order of the file
    classes: NDArray[np.float64]  # the labels a row may have; none: any
    cursor: NDArray[np.int64]  # where the scan is, and what it lacks


@kernel(sums="exact", alone=False)
def capacity_left(buffer: RowBuffer) -> int:
    """How many features the next row may have."""
    return min(len(buffer.columns) - int(buffer.ends[buffer.cursor[ROWS]]), len(buffer.keys))


@kernel(sums="exact", alone=False)
def is_known(buffer: RowBuffer, label: float) -> bool:
    """Whether the label is one that needs no thought."""
    if abs(label) >= EXACT or (buffer.cursor[LABELED] == WHOLE_NUMBERS and label != math.floor(label)):
        return False
    for known in buffer.classes:
        if label == known:
            return True
    return len(buffer.classes) == 0


@kernel(inline=False, sums="exact", alone=False)
def _sort(buffer: RowBuffer, first: int, last: int) -> int:
    """Sort the features first to last by column; values of equal columns add up in the order of the file."""
    n = last - first
    for i in range(n):
        buffer.found_columns[i] = buffer.columns[first + i]
        buffer.found[i] = buffer.values[first + i]
    if n <= FEW and sort_few(buffer.found_columns, buffer.found, n, buffer.columns, buffer.values, first):
        return n
    for i in range(n):
        buffer.keys[i] = np.int64(buffer.found_columns[i]) << 32 | i
    sort_keys(buffer.keys, n, buffer.ordered)
    at, column = first, np.int64(-1)
    for i in range(n):
        key = buffer.ordered[i]
        value = buffer.found[key & 0xFFFFFFFF]
        if key >> 32 == column:
            buffer.values[at - 1] += value
        else:
            column = key >> 32
            buffer.columns[at] = column
            buffer.values[at] = value
            at += 1
    return at - first


@kernel(inline=False, sums="exact", alone=False)
def put_in_order(buffer: RowBuffer, n: int) -> int:
    """Put the n features of the next row in order: how many columns they have."""
    first = buffer.ends[buffer.cursor[ROWS]]
    if is_ordered(buffer.columns, first, first + n):
        return n
    return _sort(buffer, first, first + n)


@kernel(inline=False, sums="exact", alone=False)
def add_row(buffer: RowBuffer, n: int, label: float, task: int) -> None:
    """The row whose n features stand, in order, behind those of the last row."""
    row = buffer.cursor[ROWS]
    end = buffer.ends[row] + n
    if n > 0:
        buffer.cursor[WIDTH] = max(buffer.cursor[WIDTH], np.int64(buffer.columns[end - 1]) + 1)
    buffer.ends[row + 1] = end
    buffer.labels[row] = label
    buffer.tasks[row] = task
    buffer.cursor[ROWS] = row + 1


@kernel(inline=False, sums="exact", alone=False)
def weigh_row(buffer: RowBuffer, weight: float) -> None:
    """Set the weight of the row that was added last."""
    if weight != 1.0:
        buffer.weights[buffer.cursor[ROWS] - 1] = weight
        buffer.cursor[WEIGHTED] = 1


@kernel(entry=True, inline=False, sums="exact")
def add_parsed_row(buffer: RowBuffer, n: int, label: float, task: int, weight: float) -> None:
    """The row whose n features stand, in any order, behind those of the last row."""
    add_row(buffer, put_in_order(buffer, n), label, task)
    weigh_row(buffer, weight)


@kernel(inline=False, sums="exact", alone=False)
def stopped(data: NDArray[np.uint8], buffer: RowBuffer, stop: int, letters: np.int64) -> int:
    """Note what the line at POSITION needs that the scan has left; `letters` of its names were there already."""
    cursor = buffer.cursor
    cursor[LINE_END] = line_end(data, cursor[POSITION])
    size = cursor[LINE_END] - cursor[POSITION]
    cursor[NEED], cursor[NEED_LETTERS] = size // 2 + 1, letters + size
    return stop


@kernel(entry=True, inline=False, sums="exact")
def next_line(data: NDArray[np.uint8], buffer: RowBuffer) -> int:
    """A scan that leaves every line to Python."""
    return stopped(data, buffer, UNUSUAL_LINE, np.int64(0))


def new_buffer(rows: int, classes: int, labeled: int) -> RowBuffer:
    """A buffer for `rows` rows, with little capacity for features; nan labels are equal to none."""
    capacity = 1 << 10
    cursor = np.zeros(9, np.int64)
    cursor[LABELED] = labeled
    return RowBuffer(
        np.zeros(rows + 1, np.int32), np.zeros(capacity, np.int32), np.zeros(capacity), np.zeros(rows),
        np.zeros(rows, np.int64), np.ones(rows), np.zeros(capacity, np.int64), np.zeros(capacity, np.int64),
        np.zeros(capacity, np.int32), np.zeros(capacity), np.full(classes, np.nan), cursor,
    )  # fmt: skip


def with_capacity(buffer: RowBuffer, n: int) -> RowBuffer:
    """The buffer with capacity for one more row of n features (there is capacity for a row's label and task)."""
    used = int(buffer.ends[buffer.cursor[ROWS]])
    if used + n > len(buffer.columns):
        capacity = max(2 * len(buffer.columns), used + n)
        buffer = buffer._replace(columns=_grown(buffer.columns, capacity), values=_grown(buffer.values, capacity))
    if n > len(buffer.keys):
        capacity = 2 * n
        buffer = buffer._replace(
            keys=np.zeros(capacity, np.int64),
            ordered=np.zeros(capacity, np.int64),
            found_columns=np.zeros(capacity, np.int32),
            found=np.zeros(capacity),
        )
    return buffer


def with_more_rows(buffer: RowBuffer, most: int) -> RowBuffer:
    """The buffer with capacity for more rows, at most that many."""
    capacity = min(2 * len(buffer.labels), most)
    return buffer._replace(
        ends=_grown(buffer.ends, capacity + 1),
        labels=_grown(buffer.labels, capacity),
        tasks=_grown(buffer.tasks, capacity),
        weights=np.concatenate([buffer.weights, np.ones(capacity - len(buffer.weights))]),
    )


class Rows(NamedTuple):
    """The rows of a chunk."""

    matrix: csr_matrix
    labels: NDArray[np.float64]
    tasks: NDArray[np.int64]
    weights: NDArray[np.float64] | None  # None: all are 1


def take_rows(buffer: RowBuffer, width: int) -> Rows:
    """All rows; the buffer is blank afterwards."""
    rows = int(buffer.cursor[ROWS])
    n = int(buffer.ends[rows])
    arrays = (buffer.values[:n].copy(), buffer.columns[:n].copy(), buffer.ends[: rows + 1].copy())
    matrix = csr_matrix(arrays, shape=(rows, width))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    weights = None
    if buffer.cursor[WEIGHTED]:
        weights = buffer.weights[:rows].copy()
        buffer.weights[:rows] = 1.0
        buffer.cursor[WEIGHTED] = 0
    buffer.cursor[ROWS] = 0
    return Rows(matrix, buffer.labels[:rows].copy(), buffer.tasks[:rows].copy(), weights)


def _grown(array: NDArray[T], size: int) -> NDArray[T]:
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
