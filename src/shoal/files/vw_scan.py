"""The compiled scan of VW text: the common lines of a block; the others are left to the parser in `vw`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.decimals import FAILED
from shoal.files.eight import SLACK
from shoal.files.lines import NEWLINE, SPACE, is_ascii, is_gap, skip_gaps
from shoal.files.name_hash import BAR, COLON, no_name, read_name
from shoal.files.name_table import UNROOMY, NameTable, Place, forget, number_apart, number_of
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
from shoal.files.short_decimals import read_value
from shoal.files.vw_words import UNUSUAL, is_task, prefix, read_space, skip_weight_and_tag

CROWDED = -2  # "position" where room is needed
MARK = np.uint8(BAR)  # ends a word as a space does
U = np.uint64


@kernel(inline="source", sums="exact")
def _read_features(
    data: NDArray[np.uint8], i: int, space: int, space_end: int, scale: float, columns: NDArray[np.int32],
    values: NDArray[np.float64], names: NameTable, at: int, last: int,
) -> tuple[int, int]:  # fmt: skip
    """The features of a namespace into the sheet from `at` on: position behind them, where the next one's place is."""
    namespace = prefix(data, space, space_end)
    while True:
        byte = data[U(i)]
        if is_gap(byte):
            i += 1
            continue
        if byte == BAR or byte <= SPACE:
            return i, at
        first = i
        i, name = read_name(data, i, namespace)
        value = scale
        if i == first:
            return UNUSUAL, at
        place = i
        if data[U(i)] == COLON:
            i, value = read_value(data, i + 1, MARK)
            if i == FAILED:
                return UNUSUAL, at
            value *= scale
        if at == last:
            return CROWDED, at
        column = number_of(names, name, data, Place(space, space_end, first, place))
        if column == UNROOMY:
            return CROWDED, at
        columns[U(at)] = column
        values[U(at)] = value
        at += 1


@kernel(inline="source", sums="exact")
def _scan_line(
    data: NDArray[np.uint8], i: int, with_task: bool, task_space: NDArray[np.uint8], sheet: Sheet,
    names: NameTable, tasks: NameTable,
) -> tuple[int, int]:  # fmt: skip
    """Add the row of a line that is not blank: END if that is done, else what is in the way; where the line ends."""
    i, label = read_value(data, i, MARK)
    if i == FAILED or not is_known(sheet, label):
        return ODD, i
    i = skip_weight_and_tag(data, i)
    if i == UNUSUAL:
        return ODD, i
    start = at = int(np.int64(sheet.ends[sheet.marks[ROWS]]))
    last = at + room_in(sheet)
    task = Place(0, 0, 0, 0)
    task_name = no_name()
    while data[U(i)] == BAR:
        space = i + 1
        i, space_end, scale = read_space(data, space)
        if i == UNUSUAL:
            return ODD, i
        if with_task and is_task(data, space, space_end, task_space):
            first = skip_gaps(data, i)
            i, name = read_name(data, first, no_name())
            if task_name.length == 0:
                task, task_name = Place(0, 0, first, i), name
            while data[U(i)] != BAR and (data[U(i)] > SPACE or is_gap(data[U(i)])):
                i += 1
            continue
        i, at = _read_features(data, i, space, space_end, scale, sheet.columns, sheet.values, names, at, last)
        if i < 0:
            return ODD if i == UNUSUAL else ROOM, i
    if data[U(i)] != NEWLINE or (with_task and task_name.length == 0):
        return ODD, i
    number = NO_TASK
    if with_task:
        number = number_apart(tasks, task_name, data, task)
        if number == UNROOMY:
            return ROOM, i
    add_row(sheet, in_order(sheet, at - start), label, number)
    return END, i


@kernel(entry=True, inline=False, sums="exact")
def scan_vw(
    data: NDArray[np.uint8], plain: bool, with_task: bool, task_space: NDArray[np.uint8], sheet: Sheet,
    names: NameTable, tasks: NameTable,
) -> int:  # fmt: skip
    """Add rows from the line at POSITION on until something is in the way: END, FULL, ODD (up to LINE_END) or ROOM.

    Parameters
    ----------
    data : bytes
        With PADDING behind the text.
    plain : bool
        Whether bytes beyond ASCII are letters like others.
    with_task, task_space : bool, bytes
        Whether a namespace has the task, and which.
    """
    marks = sheet.marks
    while marks[ROWS] < len(sheet.labels):
        if marks[POSITION] >= len(data) - SLACK:
            return END
        i = skip_gaps(data, marks[POSITION])
        known = names.used[0]
        stop = END if plain or is_ascii(data, i) else ODD
        if stop == END and data[U(i)] != NEWLINE:
            stop, i = _scan_line(data, i, with_task, task_space, sheet, names, tasks)
        if stop != END:
            letters = names.ends[names.used[0]] - names.ends[known]
            forget(names, known)
            return stopped(data, sheet, stop, letters)
        marks[POSITION] = i + 1
        marks[LINE] += 1
    return FULL
