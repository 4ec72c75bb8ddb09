"""The compiled scan of LIBSVM text: the common lines of a block; the others are left to the parser in `libsvm`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.decimals import FAILED
from shoal.files.eight import SLACK, before, count, eight
from shoal.files.lines import NEWLINE, SPACE, is_ascii, is_gap, line_end, skip_gaps
from shoal.files.name_hash import BYTE, COLON, Hash, no_name, with_bits
from shoal.files.name_table import UNROOMY, NameTable, Place, number_apart
from shoal.files.sheet import (
    END,
    FULL,
    LINE,
    NO_TASK,
    ODD,
    POSITION,
    ROOM,
    ROWS,
    Sheet,
    add_row,
    in_order,
    is_known,
    room_in,
    stopped,
)
from shoal.files.short_decimals import digits_before, no_digits, read_value

HASH = 35
LARGEST_INDEX = 2**31 - 1  # columns of X are int32
UNUSUAL, CROWDED = -1, -2  # "positions" where the parser has to look, and where room is needed
MARK = np.uint8(HASH)  # ends a word as a space does
NO_LETTERS = np.int64(0)
U = np.uint64


@kernel(sums="exact")
def _ends_word(byte: np.uint8) -> bool:
    """Also where a comment begins."""
    return bool(byte <= SPACE or byte == HASH)


@kernel(sums="exact")
def _read_task(data: NDArray[np.uint8], i: int) -> tuple[int, int, Hash]:
    """The qid at i, if there is one: where its task starts and ends, its hash; both are i if there is none."""
    name = no_name()
    if data[U(i)] != 113 or data[U(i + 1)] != 105 or data[U(i + 2)] != 100 or data[U(i + 3)] != COLON:
        return i, i, name
    first = last = i + 4
    while not _ends_word(data[U(last)]):
        name = with_bits(name, U(data[U(last)]), BYTE)
        last += 1
    return first, last, name


@kernel(inline=False, sums="exact")
def _long_index(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """An index of more than seven digits, see `_read_index`."""
    index, first = 0, i
    while U(data[U(i)]) - U(48) < U(10) and i - first < 10:
        index = 10 * index + int(np.int64(data[U(i)])) - 48
        i += 1
    if data[U(i)] != COLON or not 1 <= index <= LARGEST_INDEX:
        return UNUSUAL, 0
    return i + 1, index


@kernel(sums="exact")
def _read_index(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The index before the colon: position behind the colon, index; UNUSUAL if it is no index."""
    word = eight(data, i)
    bits = before(no_digits(word))
    n = count(bits)
    if n == 0 or n == 8:
        return _long_index(data, i)
    index = int(np.int64(digits_before(word, n)[0]))
    if data[U(i + n)] != COLON or index == 0:
        return UNUSUAL, 0
    return i + n + 1, index


@kernel(inline="source", sums="exact")
def _read_pairs(
    data: NDArray[np.uint8], i: int, columns: NDArray[np.int32], values: NDArray[np.float64], at: int, last: int
) -> tuple[int, int]:
    """The features into the sheet from `at` on: position behind them, where the next one's place is."""
    while True:
        byte = data[U(i)]
        if is_gap(byte):
            i += 1
            continue
        if byte == HASH or byte <= SPACE:
            return i, at
        i, index = _read_index(data, i)
        if i == UNUSUAL:
            return UNUSUAL, at
        i, value = read_value(data, i, MARK)
        if i == FAILED:
            return UNUSUAL, at
        if at == last:
            return CROWDED, at
        columns[U(at)] = index - 1
        values[U(at)] = value
        at += 1


@kernel(inline="source", sums="exact")
def _scan_line(data: NDArray[np.uint8], i: int, with_task: bool, sheet: Sheet, tasks: NameTable) -> tuple[int, int]:
    """Add the row of a line that is not blank: END if that is done, else what is in the way; where the pairs end."""
    i, label = read_value(data, i, MARK)
    if i == FAILED or not is_known(sheet, label):
        return ODD, i
    first, i, task = _read_task(data, skip_gaps(data, i))
    if with_task and task.length == 0:
        return ODD, i
    start = int(np.int64(sheet.ends[sheet.marks[ROWS]]))
    task_end = i
    i, at = _read_pairs(data, i, sheet.columns, sheet.values, start, start + room_in(sheet))
    if i < 0:
        return ODD if i == UNUSUAL else ROOM, i
    n = at - start
    if (data[U(i)] != NEWLINE and data[U(i)] != HASH) or in_order(sheet, n) < n:
        return ODD, i
    number = NO_TASK
    if with_task:
        number = number_apart(tasks, task, data, Place(0, 0, first, task_end))
        if number == UNROOMY:
            return ROOM, i
    add_row(sheet, n, label, number)
    return END, i


@kernel(entry=True, inline=False, sums="exact")
def scan_libsvm(data: NDArray[np.uint8], plain: bool, with_task: bool, sheet: Sheet, tasks: NameTable) -> int:
    """Add rows from the line at POSITION on until something is in the way: END, FULL, ODD (up to LINE_END) or ROOM.

    Parameters
    ----------
    data : bytes
        With PADDING behind the text.
    plain : bool
        Whether bytes beyond ASCII are letters like others.
    with_task : bool
        Whether `qid:` is the task.
    """
    marks = sheet.marks
    while marks[ROWS] < len(sheet.labels):
        if marks[POSITION] >= len(data) - SLACK:
            return END
        i = skip_gaps(data, marks[POSITION])
        stop = END if plain or is_ascii(data, i) else ODD
        if stop == END and data[U(i)] != NEWLINE and data[U(i)] != HASH:
            stop, i = _scan_line(data, i, with_task, sheet, tasks)
        if stop != END:
            return stopped(data, sheet, stop, NO_LETTERS)
        marks[POSITION] = (i if data[U(i)] == NEWLINE else line_end(data, i)) + 1
        marks[LINE] += 1
    return FULL
