"""The compiled scan of VW text: the common lines of a block; the others are left to the parser in `vw`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.files.decimals import FAILED, read_number
from shoal.files.exact import leaf_exact, leaf_exact_apart
from shoal.files.names import NameTable, has_room, hash_byte, hash_prefix, is_same, number_of
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
    has_space,
    is_known,
    is_space,
    line_end,
    pack,
    skip_spaces,
    sort_keys,
)

BAR, COLON, QUOTE = 124, 58, 39
UNUSUAL, UNROOMY = -1, -2
U = np.uint64


@leaf_exact
def _word_end(data: NDArray[np.uint8], i: int, end: int) -> int:
    """Where the word that starts at i ends: at a space, a bar or the end of the line."""
    while i < end and data[i] != BAR and not is_space(data[i]):
        i += 1
    return i


@leaf_exact_apart
def _read_head(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, float]:
    """Position of the first bar, and the label before it; UNUSUAL unless it reads `label [1] [tag]|`."""
    i, label = read_number(data, i, end)
    if i == FAILED or _word_end(data, i, end) != i:
        return UNUSUAL, 0.0
    weighted = tagged = False
    while True:
        i = skip_spaces(data, i, end)
        if i == end:
            return UNUSUAL, 0.0
        if data[i] == BAR:
            return i, label
        if tagged:
            return UNUSUAL, 0.0
        first, i = i, _word_end(data, i, end)
        tagged = data[first] == QUOTE or (i < end and data[i] == BAR)
        if not tagged:
            behind, weight = read_number(data, first, i)
            if weighted or behind != i or weight != 1.0:
                return UNUSUAL, 0.0
            weighted = True


@leaf_exact_apart
def _read_space(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int, float]:
    """What touches a bar: position behind it, where the namespace's name ends, its scale."""
    last = i
    while last < end and data[last] != COLON and data[last] != BAR and not is_space(data[last]):
        last += 1
    if last == end or data[last] != COLON:
        return last, last, 1.0
    i, scale = read_number(data, last + 1, end)
    if i == FAILED or _word_end(data, i, end) != i:
        return UNUSUAL, last, scale
    return i, last, scale


@leaf_exact_apart
def _read_features(
    data: NDArray[np.uint8], i: int, end: int, space: int, space_end: int, scale: float, sheet: Sheet,
    tokens: NDArray[np.int64], hashes: NDArray[np.uint64], n: int,
) -> tuple[int, int]:  # fmt: skip
    """The features of a namespace into `tokens`: position of the next bar or the end, how many there are now."""
    prefix = hash_prefix(data, space, space_end)
    while True:
        i = skip_spaces(data, i, end)
        if i == end or data[i] == BAR:
            return i, n
        if n == len(tokens):
            return UNROOMY, n
        first, mixed, value = i, prefix, scale
        while i < end and data[i] != COLON and data[i] != BAR and not is_space(data[i]):
            mixed = hash_byte(mixed, data[i])
            i += 1
        tokens[n, 0], tokens[n, 1], tokens[n, 2], tokens[n, 3] = space, space_end, first, i
        if i == first:
            return UNUSUAL, n
        if i < end and data[i] == COLON:
            i, value = read_number(data, i + 1, end)
            if i == FAILED or _word_end(data, i, end) != i:
                return UNUSUAL, n
            value *= scale
        hashes[n] = mixed
        sheet.found[n] = value
        n += 1


@leaf_exact
def _letters(tokens: NDArray[np.int64], n: int) -> int:
    """How many letters the names of the tokens have, at most."""
    total = 0
    for k in range(n):
        total += tokens[k, 3] - tokens[k, 2] + tokens[k, 1] - tokens[k, 0] + 1
    return total


@leaf_exact_apart
def _scan_line(
    data: NDArray[np.uint8], i: int, end: int, with_task: bool, task_space: NDArray[np.uint8], sheet: Sheet,
    names: NameTable, tasks: NameTable, tokens: NDArray[np.int64], hashes: NDArray[np.uint64],
) -> int:  # fmt: skip
    """Add the row of a line that is not blank; END if that is done, else what is in the way."""
    i, label = _read_head(data, i, end)
    if i == UNUSUAL or not is_known(sheet, label):
        return ODD
    n, task, task_end = 0, 0, 0
    while i < end:
        space = i + 1
        i, space_end, scale = _read_space(data, space, end)
        if i == UNUSUAL:
            return ODD
        if with_task and space_end - space == len(task_space) and is_same(task_space, 0, data, space, space_end):
            i = skip_spaces(data, i, end)
            first = i
            while i < end and data[i] != COLON and data[i] != BAR and not is_space(data[i]):
                i += 1
            if task == task_end:
                task, task_end = first, i
            while i < end and data[i] != BAR:
                i += 1
            continue
        i, n = _read_features(data, i, end, space, space_end, scale, sheet, tokens, hashes, n)
        if i == UNUSUAL:
            return ODD
        if i == UNROOMY:
            sheet.marks[NEED], sheet.marks[NEED_LETTERS] = 2 * n, 0
            return ROOM
    if with_task and task == task_end:
        return ODD
    letters = _letters(tokens, n)
    if not (has_space(sheet, n) and has_room(names, n, letters) and has_room(tasks, 1, task_end - task)):
        sheet.marks[NEED], sheet.marks[NEED_LETTERS] = n, letters + task_end - task
        return ROOM
    for k in range(n):
        column = number_of(names, hashes[k], data, tokens[k, 0], tokens[k, 1], tokens[k, 2], tokens[k, 3])
        sheet.keys[k] = pack(column, k)
    sort_keys(sheet.keys, n)
    number = NO_TASK
    if with_task:
        mixed = U(0)
        for k in range(task, task_end):
            mixed = hash_byte(mixed, data[k])
        number = number_of(tasks, mixed, data, 0, 0, task, task_end)
    add_row(sheet, n, label, number)
    return END


@leaf_exact_apart
def scan_vw(
    data: NDArray[np.uint8], plain: bool, with_task: bool, task_space: NDArray[np.uint8], sheet: Sheet,
    names: NameTable, tasks: NameTable, tokens: NDArray[np.int64], hashes: NDArray[np.uint64],
) -> int:  # fmt: skip
    """Add rows from the line at POSITION on until something is in the way: END, FULL, ODD (up to LINE_END) or ROOM.

    Parameters
    ----------
    plain : bool
        Whether bytes beyond ASCII are letters like others.
    with_task, task_space : bool, bytes
        Whether a namespace has the task, and which.
    tokens, hashes : (room for a row, 4) and (room for a row,)
        Where the namespace and the name of each feature of a row stand, and the hash of both.
    """
    marks = sheet.marks
    while marks[ROWS] < len(sheet.labels):
        if marks[POSITION] >= len(data):
            return END
        end, odd = line_end(data, marks[POSITION], plain)
        marks[LINE_END] = end
        i = skip_spaces(data, marks[POSITION], end)
        if odd:
            return ODD
        if i < end:
            stop = _scan_line(data, i, end, with_task, task_space, sheet, names, tasks, tokens, hashes)
            if stop != END:
                return stop
        marks[POSITION] = end + 1
        marks[LINE] += 1
    return FULL
