"""The compiled scan of LIBSVM text: the common lines of a block; the others are left to the parser in `libsvm`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.files.decimals import FAILED, read_number
from shoal.files.exact import leaf_exact, leaf_exact_apart
from shoal.files.names import NameTable, has_room, hash_byte, number_of
from shoal.files.sheet import (
    END,
    FULL,
    LINE,
    LINE_END,
    NEED,
    NEED_LETTERS,
    NO_TASK,
    ODD,
    POSITION,
    ROOM,
    ROWS,
    Sheet,
    add_row,
    first_repeat,
    has_space,
    is_known,
    is_space,
    line_end,
    pack,
    skip_spaces,
    sort_keys,
)

HASH, COLON = 35, 58
LARGEST_INDEX = 2**31 - 1  # columns of X are int32
UNUSUAL, UNROOMY = -1, -2
U = np.uint64


@leaf_exact
def _text_end(data: NDArray[np.uint8], i: int, end: int) -> int:
    """Where the line's comment starts."""
    while i < end and data[i] != HASH:
        i += 1
    return i


@leaf_exact
def _at_word_end(data: NDArray[np.uint8], i: int, end: int) -> bool:
    return i >= end or is_space(data[i])


@leaf_exact
def _read_task(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:
    """The qid at i, if there is one: where its task starts and ends; both are i if there is none."""
    if end - i < 4 or data[i] != 113 or data[i + 1] != 105 or data[i + 2] != 100 or data[i + 3] != COLON:
        return i, i
    last = i + 4
    while not _at_word_end(data, last, end):
        last += 1
    return i + 4, last


@leaf_exact
def _read_index(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:
    """The index before the colon: position behind the colon, index; UNUSUAL if it is no index."""
    index, first = 0, i
    while i < end and U(data[i]) - U(48) < U(10) and i - first < 10:
        index = 10 * index + int(np.int64(data[i])) - 48
        i += 1
    if i >= end or data[i] != COLON or not 1 <= index <= LARGEST_INDEX:
        return UNUSUAL, 0
    return i + 1, index


@leaf_exact_apart
def _read_pairs(data: NDArray[np.uint8], i: int, end: int, sheet: Sheet) -> tuple[int, int]:
    """The features into keys and values: position of the end, how many."""
    n = 0
    while True:
        i = skip_spaces(data, i, end)
        if i >= end:
            return end, n
        if n == len(sheet.keys):
            return UNROOMY, n
        i, index = _read_index(data, i, end)
        if i == UNUSUAL:
            return UNUSUAL, n
        i, value = read_number(data, i, end)
        if i == FAILED or not _at_word_end(data, i, end):
            return UNUSUAL, n
        sheet.keys[n] = pack(index - 1, n)
        sheet.found[n] = value
        n += 1


@leaf_exact_apart
def _scan_line(data: NDArray[np.uint8], i: int, end: int, with_task: bool, sheet: Sheet, tasks: NameTable) -> int:
    """Add the row of a line that is not blank; END if that is done, else what is in the way."""
    i, label = read_number(data, i, end)
    if i == FAILED or not _at_word_end(data, i, end) or not is_known(sheet, label):
        return ODD
    task, task_end = _read_task(data, skip_spaces(data, i, end), end)
    if with_task and task == task_end:
        return ODD
    i, n = _read_pairs(data, task_end, end, sheet)
    if i == UNUSUAL:
        return ODD
    if i == UNROOMY or not (has_space(sheet, n) and has_room(tasks, 1, task_end - task)):
        sheet.marks[NEED], sheet.marks[NEED_LETTERS] = 2 * n if i == UNROOMY else n, task_end - task
        return ROOM
    sort_keys(sheet.keys, n)
    if first_repeat(sheet.keys, n) >= 0:
        return ODD
    number = NO_TASK
    if with_task:
        mixed = U(0)
        for k in range(task, task_end):
            mixed = hash_byte(mixed, data[k])
        number = number_of(tasks, mixed, data, 0, 0, task, task_end)
    add_row(sheet, n, label, number)
    return END


@leaf_exact_apart
def scan_libsvm(data: NDArray[np.uint8], plain: bool, with_task: bool, sheet: Sheet, tasks: NameTable) -> int:
    """Add rows from the line at POSITION on until something is in the way: END, FULL, ODD (up to LINE_END) or ROOM.

    Parameters
    ----------
    plain : bool
        Whether bytes beyond ASCII are letters like others.
    with_task : bool
        Whether `qid:` is the task.
    """
    marks = sheet.marks
    while marks[ROWS] < len(sheet.labels):
        if marks[POSITION] >= len(data):
            return END
        end, odd = line_end(data, marks[POSITION], plain)
        marks[LINE_END] = end
        if odd:
            return ODD
        last = _text_end(data, marks[POSITION], end)
        i = skip_spaces(data, marks[POSITION], last)
        if i < last:
            stop = _scan_line(data, i, last, with_task, sheet, tasks)
            if stop != END:
                return stop
        marks[POSITION] = end + 1
        marks[LINE] += 1
    return FULL
