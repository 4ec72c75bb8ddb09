"""LIBSVM text: `label [qid:task] index:value ...  # comment`, indices from 0 or 1 and no index twice.

Feature i is column i - 1 of X. If a file has a feature 0, it gets the next free column when it first appears, and the
features that are new then stand behind it: no feature ever moves, and the same index is the same feature in all files.

The compiled scan reads the common lines of a block; the parser reads or refuses the others.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.ids import id_of
from shoal.files.labels import Labels
from shoal.files.messages import BadRows
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State
from shoal.files.source import Sources
from shoal.files.sparse_text import scan
from shoal.files.sparse_text.bytes import (
    NEWLINE,
    SLACK,
    SPACE,
    bytes_before,
    count_bytes,
    is_ascii,
    is_space,
    line_end,
    load_word,
    skip_spaces,
)
from shoal.files.sparse_text.names import (
    BYTE,
    COLON,
    TABLE_FULL,
    Hash,
    NameTable,
    Place,
    no_name,
    number_of_outlined,
    with_bits,
)
from shoal.files.sparse_text.numbers import FAILED, digits_before, no_digits, read_value
from shoal.files.sparse_text.reader import MalformedLine, Row, SparseReader, label_of, number, one_task

HASH = 35
LARGEST_INDEX = 2**31 - 1  # columns of X are int32
UNUSUAL, NEEDS_CAPACITY = -1, -2  # "positions" in a line for the parser, and where the capacity ends
MARK = np.uint8(HASH)  # ends a word as a space does
NO_LETTERS = np.int64(0)
U = np.uint64


@kernel(sums="exact", alone=False)
def _ends_word(byte: np.uint8) -> bool:
    """Whether a byte ends a word; a comment does, too."""
    return bool(byte <= SPACE or byte == HASH)


@kernel(sums="exact", alone=False)
def _read_task(data: NDArray[np.uint8], i: int) -> tuple[int, int, Hash]:
    """The qid at i: start, end and hash of its task; without a qid, start and end are i."""
    name = no_name()
    if data[U(i)] != 113 or data[U(i + 1)] != 105 or data[U(i + 2)] != 100 or data[U(i + 3)] != COLON:
        return i, i, name
    first = last = i + 4
    while not _ends_word(data[U(last)]):
        name = with_bits(name, U(data[U(last)]), BYTE)
        last += 1
    return first, last, name


@kernel(inline=False, sums="exact", alone=False)
def _long_index(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """`_read_index` for more than seven digits."""
    index, first = 0, i
    while U(data[U(i)]) - U(48) < U(10) and i - first < 10:
        index = 10 * index + int(np.int64(data[U(i)])) - 48
        i += 1
    if data[U(i)] != COLON or index > LARGEST_INDEX:
        return UNUSUAL, 0
    return i + 1, index


@kernel(sums="exact", alone=False)
def _read_index(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The index at i: position behind its colon (or UNUSUAL), and index."""
    word = load_word(data, i)
    bits = bytes_before(no_digits(word))
    n = count_bytes(bits)
    if n == 0 or n == 8:
        return _long_index(data, i)
    index = int(np.int64(digits_before(word, n)[0]))
    if data[U(i + n)] != COLON:
        return UNUSUAL, 0
    return i + n + 1, index


@kernel(sums="exact", alone=False)
def _read_pairs(data: NDArray[np.uint8], i: int, buffer: scan.RowBuffer, at: int, last: int) -> tuple[int, int]:
    """Read the features into the buffer from `at` on: position behind them, and the next `at`."""
    columns, values, zero = buffer.columns, buffer.values, buffer.cursor[scan.ZERO]
    while True:
        byte = data[U(i)]
        if is_space(byte):
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
            return NEEDS_CAPACITY, at
        if index == 0:
            if zero == LARGEST_INDEX:
                return UNUSUAL, at
            columns[U(at)] = zero
        else:
            columns[U(at)] = index - 1 + (index > zero)
        values[U(at)] = value
        at += 1


@kernel(sums="exact", alone=False)
def _scan_line(
    data: NDArray[np.uint8], i: int, with_task: bool, buffer: scan.RowBuffer, tasks: NameTable
) -> tuple[int, int]:
    """Add the row of a line that is not blank: END, or the reason to stop; and the position behind its features."""
    start_of_line = i
    i, label = read_value(data, i, MARK)
    if i == FAILED and buffer.cursor[scan.LABELED] == 0:
        i, label = start_of_line, 0.0
    if i == FAILED or not scan.is_known(buffer, label):
        return scan.UNUSUAL_LINE, i
    first, i, task = _read_task(data, skip_spaces(data, i))
    if with_task and task.length == 0:
        return scan.UNUSUAL_LINE, i
    start = int(np.int64(buffer.ends[buffer.cursor[scan.ROWS]]))
    task_end = i
    i, at = _read_pairs(data, i, buffer, start, start + scan.capacity_left(buffer))
    if i < 0:
        return scan.UNUSUAL_LINE if i == UNUSUAL else scan.NO_CAPACITY, i
    n = at - start
    if (data[U(i)] != NEWLINE and data[U(i)] != HASH) or scan.put_in_order(buffer, n) < n:
        return scan.UNUSUAL_LINE, i
    number = scan.NO_TASK
    if with_task:
        number = number_of_outlined(tasks, task, data, Place(0, 0, first, task_end))
        if number == TABLE_FULL:
            return scan.NO_CAPACITY, i
    scan.add_row(buffer, n, label, number)
    return scan.END, i


@kernel(entry=True, inline=False, sums="exact")
def scan_libsvm(data: NDArray[np.uint8], plain: bool, with_task: bool, buffer: scan.RowBuffer, tasks: NameTable) -> int:
    """Add rows from the line at POSITION on, and return the reason to stop.

    An UNUSUAL_LINE reaches up to LINE_END.

    Parameters
    ----------
    data : bytes
        With PADDING behind the text.
    plain : bool
        Whether bytes beyond ASCII are letters like others.
    with_task : bool
        Whether `qid:` is the task.
    """
    cursor = buffer.cursor
    while cursor[scan.ROWS] < len(buffer.labels):
        if cursor[scan.POSITION] >= len(data) - SLACK:
            return scan.END
        i = skip_spaces(data, cursor[scan.POSITION])
        stop = scan.END if plain or is_ascii(data, i) else scan.UNUSUAL_LINE
        if stop == scan.END and data[U(i)] != NEWLINE and data[U(i)] != HASH:
            stop, i = _scan_line(data, i, with_task, buffer, tasks)
        if stop != scan.END:
            return scan.stopped(data, buffer, stop, NO_LETTERS)
        cursor[scan.POSITION] = (i if data[U(i)] == NEWLINE else line_end(data, i)) + 1
        cursor[scan.LINE] += 1
    return scan.FULL


class LibsvmReader(SparseReader):
    """Chunks from LIBSVM text; values stay as they are.

    Parameters
    ----------
    options : ReadOptions
        Their task is "qid", or the index of the feature whose value is the task id (it is then no feature); None:
        `qid:` if the first line has one, otherwise one task.
    width : int
        Columns of X to begin with.
    zero : int, optional
        The column of feature 0, if it has one.
    frozen : bool
        Whether there are no other features.
    from_one : bool
        Whether there is no feature 0: column 0 of X is feature 1.
    """

    def __init__(
        self,
        sources: Sources,
        bad: BadRows,
        labels: Labels,
        options: ReadOptions,
        *,
        width: int = 0,
        zero: int | None = None,
        frozen: bool = False,
        from_one: bool = False,
    ) -> None:
        task = one_task(options)
        if task is not None and task != "qid" and not task.isdecimal():
            raise ValueError(
                f"task={task!r}, expected 'qid' or the index of a feature, because the file is LIBSVM text"
            )
        super().__init__(sources, bad, labels, options)
        self._most_columns, self._from_one = width if frozen else None, from_one
        self._buffer.cursor[scan.WIDTH] = self._seen_width = width
        self._buffer.cursor[scan.ZERO] = LARGEST_INDEX if zero is None else zero
        self._task_index = int(task) if task is not None and task != "qid" else None
        self._with_qid: bool | None = None if task is None else task == "qid"

    @property
    def width(self) -> int:
        return int(self._buffer.cursor[scan.WIDTH])

    @property
    def feature_names(self) -> list[str]:
        """The indices as they stand in the file."""
        return index_names(**self.to_dict())

    def to_dict(self) -> State:
        """The width and the column of feature 0, for JSON."""
        zero = int(self._buffer.cursor[scan.ZERO])
        return {"width": self._seen_width, "zero": zero if zero < self._seen_width else None}

    def scan(self, data: NDArray[np.uint8], plain: bool) -> int:
        if self._with_qid is None or self._task_index is not None:
            return scan.next_line(data, self._buffer)
        return scan_libsvm(data, plain, self._with_qid, self._buffer, self._tasks.table)

    def columns_of(self, features: list[Any]) -> NDArray[np.int64]:
        cursor, indices = self._buffer.cursor, np.array(features, np.int64)
        if cursor[scan.ZERO] == LARGEST_INDEX and 0 in features:
            cursor[scan.ZERO] = cursor[scan.WIDTH]
        columns: NDArray[np.int64] = np.where(
            indices == 0, cursor[scan.ZERO], indices - 1 + (indices > cursor[scan.ZERO])
        )
        return columns

    def parse(self, line: str) -> Row | None:
        tokens = line.partition("#")[0].split()
        if not tokens:
            return None
        if not self._labeled and ":" in tokens[0]:
            tokens.insert(0, "0")
        label = label_of(tokens[0])
        start, task = 1, None
        has_qid = len(tokens) > 1 and tokens[1].startswith("qid:")
        if self._with_qid is None:
            self._with_qid = has_qid
        if has_qid:
            start = 2
            task = tokens[1][4:] if self._with_qid else None
        if self._with_qid and not task:
            raise MalformedLine("no task, expected qid:TASK after the label")
        indices, values = _pairs(tokens[start:])
        if self._task_index is not None:
            task = self._take_task(indices, values)
        if self._from_one and 0 in indices:
            raise MalformedLine(
                "feature index 0, expected 1 or more: the first column that the learner knows is feature 1 "
                "(zero_based=False writes it so in scikit-learn)"
            )
        return Row(label, task, indices, values)

    def _take_task(self, indices: list[int], values: list[float]) -> str:
        """Remove the feature of the task, and return its value; an absent feature is 0."""
        if self._task_index not in indices:
            return "0"
        position = indices.index(self._task_index)
        del indices[position]
        value = values.pop(position)
        return str(id_of(value))


def index_names(width: int, zero: int | None) -> list[str]:
    """The index of each column, as in the file.

    >>> index_names(3, None), index_names(3, 2)
    (['1', '2', '3'], ['1', '2', '0'])
    """
    names = [str(i + 1) for i in range(width if zero is None else width - 1)]
    return names if zero is None else [*names[:zero], "0", *names[zero:]]


def _pairs(tokens: list[str]) -> tuple[list[int], list[float]]:
    """Indices and values; the slow path writes the message if one is wrong."""
    try:
        pairs = [token.split(":") for token in tokens]
        indices = [int(index) for index, _ in pairs]
        values = [float(value) for _, value in pairs]
        # One test of the sum finds every nan and inf (and overflowing sums, which the slow path accepts).
        right = sum(values) - sum(values) == 0.0 and "_" not in "".join(tokens)
    except ValueError:
        right = False
    if not right:
        indices, values = [], []
        for token in tokens:
            index, colon, value = token.partition(":")
            if not colon or not index.isdecimal():
                raise MalformedLine(f"token {token!r}, expected INDEX:VALUE")
            indices.append(int(index))
            values.append(number(value, f"value of feature {index}"))
    if indices and not (min(indices) >= 0 and max(indices) <= LARGEST_INDEX):
        wrong = next(index for index in indices if not 0 <= index <= LARGEST_INDEX)
        raise MalformedLine(f"feature index {wrong}, expected 0 to {LARGEST_INDEX}")
    if len(set(indices)) < len(indices):
        twice = next(index for index in indices if indices.count(index) > 1)
        raise MalformedLine(f"feature {twice} twice, expected each index once")
    return indices, values
