"""Vowpal Wabbit text: `label [importance] ['tag]|namespace[:scale] feature[:value] ...|namespace ...`.

The compiled scan reads the common lines of a block; the parser reads or refuses the others.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.labels import Labels
from shoal.files.messages import BadRows, unknown_name
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State
from shoal.files.source import Sources
from shoal.files.sparse_text import scan
from shoal.files.sparse_text.bytes import NEWLINE, SLACK, SPACE, is_ascii, is_space, skip_spaces
from shoal.files.sparse_text.names import (
    BAR,
    BYTE,
    CARET,
    COLON,
    TABLE_FULL,
    Hash,
    Names,
    NameTable,
    Place,
    no_name,
    number_of,
    number_of_outlined,
    read_name,
    truncate,
    with_bits,
)
from shoal.files.sparse_text.numbers import FAILED, read_short, read_value
from shoal.files.sparse_text.reader import MalformedLine, Row, SparseReader, label_of, number, one_task

QUOTE = 39
UNUSUAL = -1  # "position" in a line for the parser
U = np.uint64


class Namespace(NamedTuple):
    """A namespace: its name is data[first:last], its features are multiplied by the scale."""

    first: int
    last: int
    scale: float


@kernel(sums="exact", alone=False)
def _ends_word(byte: np.uint8) -> bool:
    return bool(byte <= SPACE or byte == BAR)


@kernel(sums="exact", alone=False)
def _word_end(data: NDArray[np.uint8], i: int) -> int:
    """The end of the word that starts at i: a space, a bar or the end of the line."""
    while not _ends_word(data[U(i)]):
        i += 1
    return i


@kernel(sums="exact", alone=False)
def read_weight_and_tag(data: NDArray[np.uint8], i: int) -> tuple[int, float]:
    """Read `[weight] [tag]` between label and first bar: position of the bar (or UNUSUAL), and weight."""
    weighted = tagged = False
    weight = 1.0
    while True:
        i = skip_spaces(data, i)
        if data[U(i)] == BAR:
            return i, weight
        if tagged or data[U(i)] == NEWLINE:
            return UNUSUAL, weight
        first, i = i, _word_end(data, i)
        tagged = data[U(first)] == QUOTE or data[U(i)] == BAR
        if not tagged:
            behind, weight = read_short(data, first)
            if weighted or behind != i or weight < 0.0:
                return UNUSUAL, weight
            weighted = True


@kernel(sums="exact", alone=False)
def read_space(data: NDArray[np.uint8], first: int) -> tuple[int, Namespace]:
    """The namespace behind a bar, and the position behind its name and scale."""
    last = first
    while data[U(last)] != COLON and not _ends_word(data[U(last)]):
        last += 1
    if data[U(last)] != COLON:
        return last, Namespace(first, last, 1.0)
    i, scale = read_short(data, last + 1)
    if i == FAILED or not _ends_word(data[U(i)]):
        return UNUSUAL, Namespace(first, last, scale)
    return i, Namespace(first, last, scale)


@kernel(sums="exact", alone=False)
def is_task(data: NDArray[np.uint8], space: Namespace, task_space: NDArray[np.uint8]) -> bool:
    """Whether the namespace is the one of the task."""
    if space.last - space.first != len(task_space):
        return False
    for k in range(len(task_space)):  # noqa: SIM110 (compiled)
        if data[U(space.first + k)] != task_space[U(k)]:
            return False
    return True


@kernel(sums="exact", alone=False)
def prefix(data: NDArray[np.uint8], space: Namespace) -> Hash:
    """The hash of the prefix of names: empty, or the namespace and a caret."""
    name = no_name()
    if space.first < space.last:
        _, name = read_name(data, space.first, name)
        name = with_bits(name, U(CARET), BYTE)
    return name


NEEDS_CAPACITY = -2  # "position" where the capacity ends
MARK = np.uint8(BAR)  # ends a word as a space does


@kernel(sums="exact", alone=False)
def _read_features(
    data: NDArray[np.uint8],
    i: int,
    space: Namespace,
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    names: NameTable,
    at: int,
    last: int,
) -> tuple[int, int]:
    """Read the features of a namespace into the buffer from `at` on: position behind them, and the next `at`."""
    namespace = prefix(data, space)
    while True:
        byte = data[U(i)]
        if is_space(byte):
            i += 1
            continue
        if byte == BAR or byte <= SPACE:
            return i, at
        first = i
        i, name = read_name(data, i, namespace)
        value = space.scale
        if i == first:
            return UNUSUAL, at
        place = i
        if data[U(i)] == COLON:
            i, value = read_value(data, i + 1, MARK)
            if i == FAILED:
                return UNUSUAL, at
            value *= space.scale
        if at == last:
            return NEEDS_CAPACITY, at
        column = number_of(names, name, data, Place(space.first, space.last, first, place))
        if column == TABLE_FULL:
            return NEEDS_CAPACITY, at
        columns[U(at)] = column
        values[U(at)] = value
        at += 1


@kernel(sums="exact", alone=False)
def _scan_line(
    data: NDArray[np.uint8],
    i: int,
    with_task: bool,
    task_space: NDArray[np.uint8],
    buffer: scan.RowBuffer,
    names: NameTable,
    tasks: NameTable,
) -> tuple[int, int]:
    """Add the row of a line that is not blank: END, or the reason to stop; and the position behind its features."""
    label = 0.0
    if buffer.cursor[scan.LABELED] != 0 or data[U(i)] != BAR:
        i, label = read_value(data, i, MARK)
    if i == FAILED or not scan.is_known(buffer, label):
        return scan.UNUSUAL_LINE, i
    i, weight = read_weight_and_tag(data, i)
    if i == UNUSUAL:
        return scan.UNUSUAL_LINE, i
    start = at = int(np.int64(buffer.ends[buffer.cursor[scan.ROWS]]))
    last = at + scan.capacity_left(buffer)
    task = Place(0, 0, 0, 0)
    task_name = no_name()
    while data[U(i)] == BAR:
        i, space = read_space(data, i + 1)
        if i == UNUSUAL:
            return scan.UNUSUAL_LINE, i
        if with_task and is_task(data, space, task_space):
            first = skip_spaces(data, i)
            i, name = read_name(data, first, no_name())
            if task_name.length == 0:
                task, task_name = Place(0, 0, first, i), name
            while data[U(i)] != BAR and (data[U(i)] > SPACE or is_space(data[U(i)])):
                i += 1
            continue
        i, at = _read_features(data, i, space, buffer.columns, buffer.values, names, at, last)
        if i < 0:
            return scan.UNUSUAL_LINE if i == UNUSUAL else scan.NO_CAPACITY, i
    if data[U(i)] != NEWLINE or (with_task and task_name.length == 0):
        return scan.UNUSUAL_LINE, i
    number = scan.NO_TASK
    if with_task:
        number = number_of_outlined(tasks, task_name, data, task)
        if number == TABLE_FULL:
            return scan.NO_CAPACITY, i
    scan.add_row(buffer, scan.put_in_order(buffer, at - start), label, number)
    scan.weigh_row(buffer, weight)
    return scan.END, i


@kernel(entry=True, inline=False, sums="exact")
def scan_vw(
    data: NDArray[np.uint8],
    plain: bool,
    with_task: bool,
    task_space: NDArray[np.uint8],
    buffer: scan.RowBuffer,
    names: NameTable,
    tasks: NameTable,
) -> int:
    """Add rows from the line at POSITION on, and return the reason to stop.

    An UNUSUAL_LINE reaches up to LINE_END.

    Parameters
    ----------
    data : bytes
        With PADDING behind the text.
    plain : bool
        Whether bytes beyond ASCII are letters like others.
    with_task, task_space : bool, bytes
        Whether a namespace holds the task, and its name.
    """
    cursor = buffer.cursor
    while cursor[scan.ROWS] < len(buffer.labels):
        if cursor[scan.POSITION] >= len(data) - SLACK:
            return scan.END
        i = skip_spaces(data, cursor[scan.POSITION])
        known = names.used[0]
        stop = scan.END if plain or is_ascii(data, i) else scan.UNUSUAL_LINE
        if stop == scan.END and data[U(i)] != NEWLINE:
            stop, i = _scan_line(data, i, with_task, task_space, buffer, names, tasks)
        if stop != scan.END:
            letters = names.ends[names.used[0]] - names.ends[known]
            truncate(names, known)
            return scan.stopped(data, buffer, stop, letters)
        cursor[scan.POSITION] = i + 1
        cursor[scan.LINE] += 1
    return scan.FULL


class VWReader(SparseReader):
    """Chunks from VW text; features are called `namespace^feature` (`feature` in a namespace without a name).

    They get columns of X in the order in which they appear and keep their values; a feature that stands twice
    in a row counts twice.

    Parameters
    ----------
    options : ReadOptions
        Their task is the namespace whose first feature is the task id (it gives no features); None: one task.
    names : list of str
        Features to begin with.
    frozen : bool
        Whether there are no other features.
    """

    def __init__(
        self,
        sources: Sources,
        bad: BadRows,
        labels: Labels,
        options: ReadOptions,
        *,
        names: list[str] | None = None,
        frozen: bool = False,
    ) -> None:
        task = one_task(options)
        super().__init__(sources, bad, labels, options)
        self._most_columns = len(names or []) if frozen else None
        self._task = task
        # No name contains a space: so no namespace is the one of the task.
        self._task_space = np.frombuffer((task or " ").encode(), np.uint8)
        self._names = Names(names or [])
        self._seen_width = self.width
        self.reserve(0, 0)

    @property
    def width(self) -> int:
        return len(self._names)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X in the chunks given so far."""
        return self._names.texts(0, self._seen_width)

    def to_dict(self) -> State:
        """The names, for JSON."""
        return {"names": self.feature_names}

    def scan(self, data: NDArray[np.uint8], plain: bool) -> int:
        return scan_vw(
            data, plain, self._task is not None, self._task_space, self._buffer, self._names.table, self._tasks.table
        )

    def columns_of(self, features: list[Any]) -> NDArray[np.int64]:
        return self._names.numbers(features)

    def reserve(self, features: int, letters: int) -> None:
        super().reserve(features, letters)
        self._names.reserve(features, letters)

    def parse(self, line: str) -> Row | None:
        head, *namespaces = line.split("|")
        if not head.strip() and not namespaces:
            return None
        if not namespaces:
            raise MalformedLine("no '|', expected LABEL |NAMESPACE FEATURE ...")
        label, weight = _label(head, labeled=self._labeled)
        names: list[str] = []
        values: list[float] = []
        task = None
        for text in namespaces:
            space, scale, tokens = _namespace(text)
            if space == self._task and space:
                task = task or (tokens[0].partition(":")[0] if tokens else None)
                continue
            prefix = f"{space}^" if space else ""
            for token in tokens:
                name, colon, value = token.partition(":")
                if not name:
                    raise MalformedLine(f"token {token!r}, expected FEATURE or FEATURE:VALUE")
                names.append(prefix + name)
                values.append(scale * number(value, f"value of feature {name!r}") if colon else scale)
        if self._task is not None and not task:
            spaces = {_namespace(text)[0] for text in namespaces} - {""}
            raise MalformedLine(unknown_name("no task, expected it in namespace", self._task, sorted(spaces)))
        return Row(label, task, names, values, weight)


def _label(head: str, *, labeled: bool) -> tuple[float, float]:
    """The label and the importance weight, by default 1; a tag with a quote or touching the bar may follow."""
    words = head.split()
    if words and (words[-1].startswith("'") or (len(words) > 1 and not head[-1:].isspace())):
        words.pop()
    if not words and not labeled:
        return 0.0, 1.0
    if not words:
        raise MalformedLine("no label, expected a number before the first '|'")
    label = label_of(words[0])
    if len(words) > 2:
        raise MalformedLine(f"initial prediction {words[2]!r}, expected none: learners begin with their own")
    weight = number(words[1], "importance weight") if len(words) == 2 else 1.0
    if weight < 0.0:
        raise MalformedLine(f"importance weight {words[1]!r}, expected a number >= 0")
    return label, weight


def _namespace(text: str) -> tuple[str, float, list[str]]:
    """Name, scale and tokens of the text behind a bar; a space behind the bar means no name."""
    tokens = text.split()
    if not tokens or text[0].isspace():
        return "", 1.0, tokens
    name, colon, scale = tokens[0].partition(":")
    return name, number(scale, f"scale of namespace {name!r}") if colon else 1.0, tokens[1:]
