"""Sparse rows under construction: compiled scanners write them, a full sheet becomes the matrix of a chunk."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.engine.compile import kernel
from shoal.files.lines import line_end
from shoal.files.row_order import FEW, is_ordered, sort_few, sort_keys

NO_TASK = -1
END, FULL, ODD, ROOM = range(4)  # why a scan stops: no text, no free row, a line for Python, no room
POSITION, LINE, LINE_END, ROWS, WIDTH, NEED, NEED_LETTERS = range(7)  # places of a sheet's marks
T = TypeVar("T", bound=np.generic)


class Sheet(NamedTuple):
    """Rows so far, with room for more, and where in the text the scanner is."""

    ends: NDArray[np.int32]  # (room for rows + 1,) offsets of the rows
    columns: NDArray[np.int32]  # (room,) sorted within a row, none twice; those of the next row as they come
    values: NDArray[np.float64]  # (room,)
    labels: NDArray[np.float64]  # (room for rows,)
    tasks: NDArray[np.int64]  # (room for rows,) numbers of the task ids
    keys: NDArray[np.int64]  # (room for a row,) for sorting: its columns and where each one's value stands
    ordered: NDArray[np.int64]  # (room for a row,) the keys, sorted
    found_columns: NDArray[np.int32]  # (room for a row,) its columns in the order of the file
    found: NDArray[np.float64]  # (room for a row,) its values in the order of the file
    classes: NDArray[np.float64]  # the labels a row may have; none: any
    marks: NDArray[np.int64]  # where the scan is, and what it lacks


@kernel(sums="exact")
def room_in(sheet: Sheet) -> int:
    """How many features the next row may have."""
    return min(len(sheet.columns) - int(sheet.ends[sheet.marks[ROWS]]), len(sheet.keys))


@kernel(sums="exact")
def is_known(sheet: Sheet, label: float) -> bool:
    """Whether the label is one that needs no thought."""
    if len(sheet.classes) == 0:
        return True
    return bool(label == sheet.classes[0] or label == sheet.classes[1])


@kernel(inline=False, sums="exact")
def _sort(sheet: Sheet, first: int, last: int) -> int:
    """Sort the features first to last by column; values of equal columns add up in the order of the file."""
    n = last - first
    for i in range(n):
        sheet.found_columns[i] = sheet.columns[first + i]
        sheet.found[i] = sheet.values[first + i]
    if n <= FEW and sort_few(sheet.found_columns, sheet.found, n, sheet.columns, sheet.values, first):
        return n
    for i in range(n):
        sheet.keys[i] = np.int64(sheet.found_columns[i]) << 32 | i
    sort_keys(sheet.keys, n, sheet.ordered)
    at, column = first, np.int64(-1)
    for i in range(n):
        key = sheet.ordered[i]
        value = sheet.found[key & 0xFFFFFFFF]
        if key >> 32 == column:
            sheet.values[at - 1] += value
        else:
            column = key >> 32
            sheet.columns[at] = column
            sheet.values[at] = value
            at += 1
    return at - first


@kernel(entry=True, inline=False, sums="exact")
def in_order(sheet: Sheet, n: int) -> int:
    """Put the n features of the next row in order: how many columns they have."""
    first = sheet.ends[sheet.marks[ROWS]]
    if is_ordered(sheet.columns, first, first + n):
        return n
    return _sort(sheet, first, first + n)


@kernel(entry=True, inline=False, sums="exact")
def add_row(sheet: Sheet, n: int, label: float, task: int) -> None:
    """The row whose n features stand, in order, behind those of the last row."""
    row = sheet.marks[ROWS]
    end = sheet.ends[row] + n
    if n > 0:
        sheet.marks[WIDTH] = max(sheet.marks[WIDTH], np.int64(sheet.columns[end - 1]) + 1)
    sheet.ends[row + 1] = end
    sheet.labels[row] = label
    sheet.tasks[row] = task
    sheet.marks[ROWS] = row + 1


@kernel(entry=True, inline=False, sums="exact")
def stopped(data: NDArray[np.uint8], sheet: Sheet, stop: int, letters: np.int64) -> int:
    """Note what the line at POSITION needs that the scan has left; `letters` of its names were there already."""
    marks = sheet.marks
    marks[LINE_END] = line_end(data, marks[POSITION])
    size = marks[LINE_END] - marks[POSITION]
    marks[NEED], marks[NEED_LETTERS] = size // 2 + 1, letters + size
    return stop


def next_line(data: NDArray[np.uint8], sheet: Sheet) -> int:
    """A scan that leaves every line to Python."""
    return stopped(data, sheet, ODD, np.int64(0))


def empty_sheet(rows: int, classes: int) -> Sheet:
    """A sheet for `rows` rows, with little room for features; nan labels are equal to none."""
    room = 1 << 10
    return Sheet(
        np.zeros(rows + 1, np.int32), np.zeros(room, np.int32), np.zeros(room), np.zeros(rows),
        np.zeros(rows, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int32),
        np.zeros(room), np.full(classes, np.nan), np.zeros(7, np.int64),
    )  # fmt: skip


def with_room(sheet: Sheet, n: int) -> Sheet:
    """The sheet with room for one more row of n features (there is room for a row's label and task)."""
    used = int(sheet.ends[sheet.marks[ROWS]])
    if used + n > len(sheet.columns):
        room = max(2 * len(sheet.columns), used + n)
        sheet = sheet._replace(columns=_grown(sheet.columns, room), values=_grown(sheet.values, room))
    if n > len(sheet.keys):
        room = 2 * n
        sheet = sheet._replace(
            keys=np.zeros(room, np.int64),
            ordered=np.zeros(room, np.int64),
            found_columns=np.zeros(room, np.int32),
            found=np.zeros(room),
        )
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
