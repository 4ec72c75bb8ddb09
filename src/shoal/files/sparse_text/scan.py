"""`RowBuffer`: the compiled scans append rows to it, and a full buffer becomes the matrix of a chunk."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.engine.arrays import lengthened
from shoal.engine.compile import kernel
from shoal.files.sparse_text.bytes import line_end

U = np.uint64
FEW = 32  # keys of a block that `_sort_few` sorts: fastest for so few, although it takes the square of the time


@kernel(sums="exact", alone=False)
def _sort_few(keys: NDArray[np.int64], first: int, last: int, ordered: NDArray[np.int64]) -> None:
    """Sort keys[first:last] without a branch on keys: the place of each is the number of smaller ones."""
    for i in range(first, last):
        key, place = keys[U(i)], first
        for j in range(first, last):
            place += keys[U(j)] < key
        ordered[U(place)] = key


@kernel(sums="exact", alone=False)
def _merge(keys: NDArray[np.int64], first: int, middle: int, last: int, ordered: NDArray[np.int64]) -> None:
    """Merge the sorted keys[first:middle] and keys[middle:last]."""
    i, j = first, middle
    for k in range(first, last):
        left = j == last or (i < middle and keys[U(i)] < keys[U(j)])
        ordered[U(k)] = keys[U(i)] if left else keys[U(j)]
        i += left
        j += not left


@kernel(inline=False, sums="exact", alone=False)
def sort_keys(keys: NDArray[np.int64], n: int, ordered: NDArray[np.int64]) -> None:
    """Sort the first n keys, which are distinct, into `ordered`: a merge sort without the allocations of NumPy's."""
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
def is_ordered(columns: NDArray[np.int32], first: int, last: int) -> bool:
    """Whether columns[first:last] increase strictly."""
    ordered = True
    for i in range(first + 1, last):
        ordered &= columns[U(i - 1)] < columns[U(i)]
    return ordered


NO_TASK = -1
# A scan stops at the end of the text, when all rows are full, at a line for the parser, or without capacity.
END, FULL, UNUSUAL_LINE, NO_CAPACITY = range(4)
# Entries of a buffer's cursor. LABELED is the kind of labels; WEIGHTED is 1 if a row has another weight than 1; ZERO is
# the column of feature 0 in LIBSVM text.
POSITION, LINE, LINE_END, ROWS, WIDTH, NEED, NEED_LETTERS, LABELED, WEIGHTED, ZERO = range(10)
UNLABELED, NUMBERS, WHOLE_NUMBERS = range(3)
EXACT = 2.0**53  # whole numbers below it are exact as float64


class RowBuffer(NamedTuple):
    """The rows so far, with capacity for more, and the position of the scan in the text."""

    ends: NDArray[np.int32]  # (capacity for rows + 1,) offsets of the rows
    columns: NDArray[np.int32]  # (capacity,) increasing within a row; those of the next row in any order
    values: NDArray[np.float64]  # (capacity,)
    labels: NDArray[np.float64]  # (capacity for rows,)
    tasks: NDArray[np.int64]  # (capacity for rows,) numbers of the task ids
    weights: NDArray[np.float64]  # (capacity for rows,)
    keys: NDArray[np.int64]  # (capacity for a row,) for sorting: column << 32 | place in the file
    ordered: NDArray[np.int64]  # (capacity for a row,) the keys, sorted
    found: NDArray[np.float64]  # (capacity for a row,) its values in the order of the file
    classes: NDArray[np.float64]  # the accepted labels; empty: any
    cursor: NDArray[np.int64]  # see POSITION and following


@kernel(sums="exact", alone=False)
def capacity_left(buffer: RowBuffer) -> int:
    """The capacity for features of the next row."""
    return min(len(buffer.columns) - int(buffer.ends[buffer.cursor[ROWS]]), len(buffer.keys))


@kernel(sums="exact", alone=False)
def is_known(buffer: RowBuffer, label: float) -> bool:
    """Whether the label is accepted; if not, the parser judges the line."""
    if abs(label) >= EXACT or (buffer.cursor[LABELED] == WHOLE_NUMBERS and label != math.floor(label)):
        return False
    for known in buffer.classes:
        if label == known:
            return True
    return len(buffer.classes) == 0


@kernel(inline=False, sums="exact", alone=False)
def _sort(buffer: RowBuffer, first: int, last: int) -> int:
    """Sort the features first to last by column; values of equal columns are added in the order of the file."""
    n = last - first
    for i in range(n):
        buffer.keys[i] = np.int64(buffer.columns[first + i]) << 32 | i
        buffer.found[i] = buffer.values[first + i]
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
    """Sort the n features of the next row by column; the number of distinct columns."""
    first = buffer.ends[buffer.cursor[ROWS]]
    if is_ordered(buffer.columns, first, first + n):
        return n
    return _sort(buffer, first, first + n)


@kernel(inline=False, sums="exact", alone=False)
def add_row(buffer: RowBuffer, n: int, label: float, task: int) -> None:
    """Add the row whose n features stand, sorted, behind those of the last row."""
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
    """Set the weight of the last row."""
    if weight != 1.0:
        buffer.weights[buffer.cursor[ROWS] - 1] = weight
        buffer.cursor[WEIGHTED] = 1


@kernel(entry=True, inline=False, sums="exact")
def add_parsed_row(buffer: RowBuffer, n: int, label: float, task: int, weight: float) -> None:
    """Add the row whose n features stand, in any order, behind those of the last row."""
    add_row(buffer, put_in_order(buffer, n), label, task)
    weigh_row(buffer, weight)


@kernel(inline=False, sums="exact", alone=False)
def stopped(data: NDArray[np.uint8], buffer: RowBuffer, stop: int, letters: np.int64) -> int:
    """Set LINE_END and the capacity that the line at POSITION needs; `letters` of its names were added already."""
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
    """A buffer for `rows` rows with little capacity for features; its classes are nan, which equals no label."""
    capacity = 1 << 10
    cursor = np.zeros(10, np.int64)
    cursor[LABELED] = labeled
    return RowBuffer(
        ends=np.zeros(rows + 1, np.int32),
        columns=np.zeros(capacity, np.int32),
        values=np.zeros(capacity),
        labels=np.zeros(rows),
        tasks=np.zeros(rows, np.int64),
        weights=np.ones(rows),
        keys=np.zeros(capacity, np.int64),
        ordered=np.zeros(capacity, np.int64),
        found=np.zeros(capacity),
        classes=np.full(classes, np.nan),
        cursor=cursor,
    )


def with_capacity(buffer: RowBuffer, n: int) -> RowBuffer:
    """The buffer with capacity for n features of the next row."""
    used = int(buffer.ends[buffer.cursor[ROWS]])
    if used + n > len(buffer.columns):
        capacity = max(2 * len(buffer.columns), used + n)
        buffer = buffer._replace(
            columns=lengthened(buffer.columns, capacity), values=lengthened(buffer.values, capacity)
        )
    if n > len(buffer.keys):
        capacity = 2 * n
        buffer = buffer._replace(
            keys=np.zeros(capacity, np.int64),
            ordered=np.zeros(capacity, np.int64),
            found=np.zeros(capacity),
        )
    return buffer


def with_more_rows(buffer: RowBuffer, most: int) -> RowBuffer:
    """The buffer with capacity for twice as many rows, at most `most`."""
    capacity = min(2 * len(buffer.labels), most)
    return buffer._replace(
        ends=lengthened(buffer.ends, capacity + 1),
        labels=lengthened(buffer.labels, capacity),
        tasks=lengthened(buffer.tasks, capacity),
        weights=np.concatenate([buffer.weights, np.ones(capacity - len(buffer.weights))]),
    )


class Rows(NamedTuple):
    """The rows of a chunk."""

    matrix: csr_matrix
    labels: NDArray[np.float64]
    tasks: NDArray[np.int64]
    weights: NDArray[np.float64] | None  # None if all are 1


def take_rows(buffer: RowBuffer, width: int) -> Rows:
    """Take all rows out of the buffer."""
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
