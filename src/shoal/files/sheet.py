"""Sparse rows under construction: compiled scanners write them, a full sheet becomes the matrix of a chunk."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.files.exact import leaf_exact, leaf_exact_apart

NO_TASK = -1
END, FULL, ODD, ROOM = range(4)  # why a scan stops: no text, no free row, a line for Python, no room
POSITION, LINE, LINE_END, ROWS, WIDTH, NEED, NEED_LETTERS = range(7)  # places of a sheet's marks
FEW = 24  # so many numbers are sorted fastest by insertion
T = TypeVar("T", bound=np.generic)


class Sheet(NamedTuple):
    """Rows so far, with room for more, and where in the text the scanner is."""

    ends: NDArray[np.int32]  # (room for rows + 1,) offsets of the rows
    columns: NDArray[np.int32]  # (room,) sorted within a row, none twice
    values: NDArray[np.float64]  # (room,)
    labels: NDArray[np.float64]  # (room for rows,)
    tasks: NDArray[np.int64]  # (room for rows,) numbers of the task ids
    keys: NDArray[np.int64]  # (room for a row,) its columns and where each one's value stands, see `pack`
    found: NDArray[np.float64]  # (room for a row,) the values in the order of the file
    classes: NDArray[np.float64]  # the labels a row may have; none: any
    marks: NDArray[np.int64]  # where the scan is, and what it lacks


@leaf_exact
def pack(column: int, position: int) -> int:
    """Column and position as one number, so that sorting puts equal columns in the order of the file."""
    return (column << 32) | position


@leaf_exact
def _sift(keys: NDArray[np.int64], root: int, n: int) -> None:
    """Let the key at `root` sink to where none below it is larger."""
    key = keys[root]
    child = 2 * root + 1
    while child < n:
        if child + 1 < n and keys[child] < keys[child + 1]:
            child += 1
        if keys[child] <= key:
            break
        keys[root] = keys[child]
        root, child = child, 2 * child + 1
    keys[root] = key


@leaf_exact_apart
def _heap_sort(keys: NDArray[np.int64], n: int) -> None:
    for root in range(n // 2 - 1, -1, -1):
        _sift(keys, root, n)
    for last in range(n - 1, 0, -1):
        keys[0], keys[last] = keys[last], keys[0]
        _sift(keys, 0, last)


@leaf_exact_apart
def sort_keys(keys: NDArray[np.int64], n: int) -> None:
    """Sort the first n, without the memory that NumPy's sort takes."""
    if n > FEW:
        ordered = True
        for i in range(1, n):
            ordered &= keys[i - 1] < keys[i]
        if not ordered:
            _heap_sort(keys, n)
        return
    for i in range(1, n):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@leaf_exact
def first_repeat(keys: NDArray[np.int64], n: int) -> int:
    """Where in sorted keys a column stands for the second time, or -1."""
    for i in range(1, n):
        if keys[i] >> 32 == keys[i - 1] >> 32:
            return i
    return -1


@leaf_exact
def has_space(sheet: Sheet, n: int) -> bool:
    """Whether one more row with n features fits."""
    row = sheet.marks[ROWS]
    return bool(row < len(sheet.labels) and sheet.ends[row] + n <= len(sheet.columns))


@leaf_exact
def is_known(sheet: Sheet, label: float) -> bool:
    """Whether the label is one that needs no thought."""
    if len(sheet.classes) == 0:
        return True
    return bool(label == sheet.classes[0] or label == sheet.classes[1])


@leaf_exact_apart
def add_row(sheet: Sheet, n: int, label: float, task: int) -> None:
    """The row whose n keys (sorted) and values are in `sheet`; values of equal columns add up."""
    row = sheet.marks[ROWS]
    at = sheet.ends[row]
    last = np.int64(-1)
    for i in range(n):
        column, value = sheet.keys[i] >> 32, sheet.found[sheet.keys[i] & 0xFFFFFFFF]
        if column == last:
            sheet.values[at - 1] += value
        else:
            sheet.columns[at] = column
            sheet.values[at] = value
            at += 1
            last = column
    if last >= sheet.marks[WIDTH]:
        sheet.marks[WIDTH] = last + 1
    sheet.ends[row + 1] = at
    sheet.labels[row] = label
    sheet.tasks[row] = task
    sheet.marks[ROWS] = row + 1


@leaf_exact
def line_end(data: NDArray[np.uint8], i: int, plain: bool) -> tuple[int, bool]:
    """Where the line that starts at i ends, and whether bytes beyond ASCII in it leave it to Python."""
    high = np.uint8(0)
    while i < len(data) and data[i] != 10:
        high |= data[i]
        i += 1
    return i, bool(high >= 128 and not plain)


@leaf_exact
def is_space(byte: np.uint8) -> bool:
    """Whether `str.split` splits there."""
    return bool(byte <= 32 and (byte == 32 or 9 <= byte <= 13 or byte >= 28))


@leaf_exact
def skip_spaces(data: NDArray[np.uint8], i: int, end: int) -> int:
    """The first byte from i on that is no space, or end."""
    while i < end and is_space(data[i]):
        i += 1
    return i


def next_line(data: NDArray[np.uint8], sheet: Sheet) -> int:
    """A scan that leaves every line to Python."""
    sheet.marks[LINE_END], _ = line_end(data, sheet.marks[POSITION], True)
    return ODD


def empty_sheet(rows: int, classes: int) -> Sheet:
    """A sheet for `rows` rows, with little room for features; nan labels are equal to none."""
    room = 1 << 10
    return Sheet(
        np.zeros(rows + 1, np.int32), np.zeros(room, np.int32), np.zeros(room), np.zeros(rows),
        np.zeros(rows, np.int64), np.zeros(room, np.int64), np.zeros(room), np.full(classes, np.nan),
        np.zeros(7, np.int64),
    )  # fmt: skip


def with_room(sheet: Sheet, n: int) -> Sheet:
    """The sheet with room for one more row of n features (there is room for a row's label and task)."""
    used = int(sheet.ends[sheet.marks[ROWS]])
    if used + n > len(sheet.columns):
        room = max(2 * len(sheet.columns), used + n)
        sheet = sheet._replace(columns=_grown(sheet.columns, room), values=_grown(sheet.values, room))
    if n > len(sheet.keys):
        sheet = sheet._replace(keys=np.zeros(2 * n, np.int64), found=np.zeros(2 * n))
    return sheet


def with_rows(sheet: Sheet, most: int) -> Sheet:
    """The sheet with room for more rows, at most that many."""
    room = min(2 * len(sheet.labels), most)
    return sheet._replace(
        ends=_grown(sheet.ends, room + 1), labels=_grown(sheet.labels, room), tasks=_grown(sheet.tasks, room)
    )


def take_rows(sheet: Sheet, width: int) -> tuple[csr_matrix, NDArray[np.float64], NDArray[np.int64]]:
    """Features, labels and task numbers of all rows; the sheet is blank afterwards."""
    rows = int(sheet.marks[ROWS])
    n = int(sheet.ends[rows])
    arrays = (sheet.values[:n].copy(), sheet.columns[:n].copy(), sheet.ends[: rows + 1].copy())
    matrix = csr_matrix(arrays, shape=(rows, width))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    sheet.marks[ROWS] = 0
    return matrix, sheet.labels[:rows].copy(), sheet.tasks[:rows].copy()


def _grown(array: NDArray[T], size: int) -> NDArray[T]:
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
