"""What stands between the features in VW text: weight, tag, and the names of namespaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.decimals import FAILED
from shoal.files.lines import NEWLINE, SPACE, skip_gaps
from shoal.files.name_hash import BAR, BYTE, COLON, Hash, no_name, read_name, with_bits
from shoal.files.name_table import CARET
from shoal.files.short_decimals import read_short

QUOTE = 39
UNUSUAL = -1  # "position" where the parser has to look
U = np.uint64


@kernel(sums="exact")
def _ends_word(byte: np.uint8) -> bool:
    return bool(byte <= SPACE or byte == BAR)


@kernel(sums="exact")
def _word_end(data: NDArray[np.uint8], i: int) -> int:
    """Where the word that starts at i ends: at a space, a bar or the end of the line."""
    while not _ends_word(data[U(i)]):
        i += 1
    return i


@kernel(sums="exact")
def skip_weight_and_tag(data: NDArray[np.uint8], i: int) -> int:
    """Position of the first bar from the label's end on; UNUSUAL unless between them stands `[1] [tag]`."""
    weighted = tagged = False
    while True:
        i = skip_gaps(data, i)
        if data[U(i)] == BAR:
            return i
        if tagged or data[U(i)] == NEWLINE:
            return UNUSUAL
        first, i = i, _word_end(data, i)
        tagged = data[U(first)] == QUOTE or data[U(i)] == BAR
        if not tagged:
            behind, weight = read_short(data, first)
            if weighted or behind != i or weight != 1.0:
                return UNUSUAL
            weighted = True


@kernel(sums="exact")
def read_space(data: NDArray[np.uint8], i: int) -> tuple[int, int, float]:
    """What touches a bar: position behind it, where the namespace's name ends, its scale."""
    last = i
    while data[U(last)] != COLON and not _ends_word(data[U(last)]):
        last += 1
    if data[U(last)] != COLON:
        return last, last, 1.0
    i, scale = read_short(data, last + 1)
    if i == FAILED or not _ends_word(data[U(i)]):
        return UNUSUAL, last, scale
    return i, last, scale


@kernel(sums="exact")
def is_task(data: NDArray[np.uint8], first: int, last: int, task_space: NDArray[np.uint8]) -> bool:
    """Whether the namespace data[first:last] has the task."""
    if last - first != len(task_space):
        return False
    for k in range(len(task_space)):  # noqa: SIM110 (compiled)
        if data[U(first + k)] != task_space[U(k)]:
            return False
    return True


@kernel(sums="exact")
def prefix(data: NDArray[np.uint8], first: int, last: int) -> Hash:
    """The hash of what stands before a name: nothing, or the namespace data[first:last] and a caret."""
    name = no_name()
    if first < last:
        _, name = read_name(data, first, name)
        name = with_bits(name, U(CARET), BYTE)
    return name
