"""`SparseReader`, common to both formats: compiled code scans the common lines, a Python parser judges the others.

A scan adds rows to a buffer until it meets a line that it does not know, or needs capacity; a full buffer becomes a
chunk. The parser alone decides the meaning of an unusual line and writes the message about a bad one.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.rounds import Chunk
from shoal.files.encodings import no_text
from shoal.files.ids import id_of
from shoal.files.labels import Labels
from shoal.files.messages import FILE, BadRows
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State
from shoal.files.source import Sources
from shoal.files.sparse_text import scan
from shoal.files.sparse_text.bytes import PADDING, has_other_space
from shoal.files.sparse_text.names import Names
from shoal.files.stream import Piece
from shoal.parallel.read_ahead import read_ahead

SAMPLE = 1_000  # lines that decide the kind of the labels
ROWS_A_CHUNK, FEATURES_A_CHUNK = 30_000, 2**19  # whichever is reached first, unless a number of rows is given


class MalformedLine(ValueError):
    """A line that cannot be read; the message gives the wrong part, and the reader adds the number of the line."""


class Step(NamedTuple):
    """A chunk, and the state that users see with it."""

    chunk: Chunk | None
    width: int  # columns of X
    labels: Any  # the mark of the labels
    skipped: int
    messages: list[str]  # of the first few bad rows


class Row(NamedTuple):
    """One parsed line. Its features are indices or names; names get indices only if the row is good."""

    label: float  # an int if float64 would not be exact
    task: str | None
    features: list[int] | list[str]
    values: list[float]
    weight: float = 1.0


def number(token: str, what: str) -> float:
    """A finite number, or MalformedLine.

    >>> number("-1.5", "label")
    -1.5
    """
    try:
        value = float(token)
    except ValueError:
        raise MalformedLine(f"{what} {token!r}, expected a number") from None
    if not math.isfinite(value) or "_" in token:
        raise MalformedLine(f"{what} {token!r}, expected a finite number")
    return value


def label_of(token: str) -> float:
    """A label as a number, exactly if it is whole.

    >>> label_of("-1.5"), label_of("9007199254740993")
    (-1.5, 9007199254740993)
    """
    value = number(token, "label")
    return value if abs(value) < scan.EXACT else int(token) if token.lstrip("+-").isdecimal() else int(value)


def one_task(options: ReadOptions) -> str | None:
    """The place of the task, which is a single one in sparse text."""
    if options.task is not None and not isinstance(options.task, str):
        raise ValueError(f"task={list(options.task)!r}, expected one name: only tables have ids of several columns")
    return options.task


def is_plain(text: bytes) -> bool:
    """Whether all bytes beyond ASCII are letters of names, which scans can read; PADDING follows the text."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not has_other_space(np.frombuffer(text, np.uint8))


class SparseReader(ABC):
    """Chunks from sparse text; a format adds its scan and its parser."""

    _most_columns: int | None = None  # further features are left out

    def __init__(self, sources: Sources, bad: BadRows, labels: Labels, options: ReadOptions) -> None:
        self._sources, self._chunk_rows = sources, options.chunk_rows or ROWS_A_CHUNK
        self._chunk_features = FEATURES_A_CHUNK if options.chunk_rows is None else math.inf
        self._labeled = options.labeled
        self._texts = self._numbered_texts()
        if self._labeled:
            self._decide(labels)
        # Users see the state of the chunks that they have; the reader has a state of its own, because it reads ahead.
        self._seen_labels, self._seen_bad, self._seen_width = labels, bad, 0
        self._labels, self._bad = Labels.from_dict(labels.to_dict()), BadRows(bad.names, bad.unit, skip=bad.skip)
        self._tasks = Names()
        self._task_ids = np.zeros(0, np.object_)
        n_classes = len(labels.classes) if labels.given else 2 if labels.kind == "binary" else 0
        n_classes = n_classes if self._labeled else 0
        are_whole = labels.numeric and labels.kind != "regression"
        kind = scan.UNLABELED if not self._labeled else scan.WHOLE_NUMBERS if are_whole else scan.NUMBERS
        self._buffer: scan.RowBuffer = scan.new_buffer(min(self._chunk_rows, 1_024), n_classes, kind)
        self._inexact: list[tuple[int, int]] = []  # rows with a label beyond float64, and its class
        self._learn_classes()

    @abstractmethod
    def parse(self, line: str) -> Row | None:
        """The row of a line; None if the line is blank. Raises MalformedLine."""

    @abstractmethod
    def scan(self, data: NDArray[np.uint8], plain: bool) -> int:
        """Add rows to the buffer, and return the reason to stop."""

    @abstractmethod
    def columns_of(self, features: list[Any]) -> NDArray[np.int64]:
        """The columns of a parsed row's features."""

    def reserve(self, features: int, letters: int) -> None:
        """Ensure capacity for a row with this many features, whose names have this many letters."""
        self._buffer = scan.with_capacity(self._buffer, features)
        self._tasks.reserve(1, letters)

    @property
    @abstractmethod
    def width(self) -> int:
        """Columns of X so far."""

    @property
    @abstractmethod
    def feature_names(self) -> list[str]:
        """Names of the columns of X in the chunks given so far."""

    @property
    def feature_columns(self) -> list[str | None]:
        """Each feature is a column."""
        return [*self.feature_names]

    @property
    def unmatched(self) -> list[str]:
        """Sparse rows lack no columns."""
        return []

    def meanings(self, row: int) -> dict[int, Any]:
        """Features without a table have no meanings but their names."""
        return {}

    @abstractmethod
    def to_dict(self) -> State:
        """The state with which the reader of another file begins, for JSON."""

    def notes(self) -> list[str]:
        """How the features are read."""
        return [*self._sources.notes(), "features taken as they are: not scaled, no constant added"]

    def chunks(self) -> Iterator[Piece]:
        """All good rows in order; bad ones are reported. Large chunks of a file are read ahead."""
        steps = read_ahead(self._steps(), self._chunk_rows, live=self._sources.is_standard_input)
        for chunk, width, seen, skipped, messages in steps:
            self._seen_width = width
            self._seen_labels.rollback(seen)
            self._seen_bad.count = skipped
            self._seen_bad.messages[:] = messages
            if chunk is not None:
                yield Piece(chunk, None)

    def _numbered_texts(self) -> Iterator[tuple[int, bytes]]:
        """Blocks of whole lines, with the number of their file."""
        for k, source in enumerate(self._sources):
            for text in source.whole_lines(padding=PADDING):
                yield k, text

    def _decide(self, labels: Labels) -> None:
        """Decide kind and type of the labels by those of the first lines, if they are open."""
        if labels.numeric is not None and labels.kind != "auto":
            return
        first = list(itertools.islice(self._texts, 1))
        self._texts = itertools.chain(first, self._texts)
        found: list[float] = []
        for line in first[0][1].split(b"\n", SAMPLE)[:SAMPLE] if first else []:
            with suppress(MalformedLine):
                found.append(label_of((line.split() or [b""])[0].decode("utf-8", "replace")))
        labels.decide(Counter(str(id_of(label)) for label in found), list(dict.fromkeys(found)))

    def _steps(self) -> Generator[Step]:
        """The chunks; then the state after the last lines, and their error if there is one."""
        error: Exception | None = None
        width = self.width if self._most_columns is None else self._most_columns
        try:
            for chunk in self._read():
                width = chunk.X.shape[1]
                yield self._step(chunk, width)
        except Exception as raised:
            error = raised
        yield self._step(None, width)
        if error is not None:
            raise error

    def _step(self, chunk: Chunk | None, width: int) -> Step:
        return Step(chunk, width, self._labels.mark(), self._bad.count, list(self._bad.messages))

    def _read(self) -> Iterator[Chunk]:
        cursor = self._buffer.cursor
        file = 0
        for k, text in self._texts:
            if k != file:
                file, cursor[scan.LINE] = k, k * FILE
            data, plain = np.frombuffer(text, np.uint8), is_plain(text)
            cursor[scan.POSITION] = 0
            while cursor[scan.POSITION] < len(text) - len(PADDING):
                stop = self.scan(data, plain)
                if stop == scan.NO_CAPACITY and self._holds_enough():
                    yield self._take()
                elif stop == scan.NO_CAPACITY:
                    self.reserve(int(cursor[scan.NEED]), int(cursor[scan.NEED_LETTERS]))
                elif stop == scan.UNUSUAL_LINE:
                    self._parse_unusual(text[cursor[scan.POSITION] : cursor[scan.LINE_END]], int(cursor[scan.LINE]) + 1)
                    cursor[scan.POSITION] = cursor[scan.LINE_END] + 1
                    cursor[scan.LINE] += 1
                if cursor[scan.ROWS] == self._chunk_rows:
                    yield self._take()
                elif stop == scan.FULL:
                    self._buffer = scan.with_more_rows(self._buffer, self._chunk_rows)
        if cursor[scan.ROWS]:
            yield self._take()

    def _holds_enough(self) -> bool:
        """Whether the chunk is full, because the next row would exceed its features."""
        rows = int(self._buffer.cursor[scan.ROWS])
        return rows > 0 and int(self._buffer.ends[rows] + self._buffer.cursor[scan.NEED]) > self._chunk_features

    def _parse_unusual(self, line: bytes, number: int) -> None:
        """Add the row of a line that the scan left, or report it; a blank line is nothing."""
        labels = self._labels
        try:
            row = self.parse(line.decode("utf-8"))
            if row is not None and self._labeled and labels.kind != "regression":
                text = str(id_of(row.label))
                [code] = labels.codes([text])
                if code < 0:
                    raise MalformedLine(labels.unexpected(text))
                if abs(row.label) >= scan.EXACT:
                    self._inexact.append((int(self._buffer.cursor[scan.ROWS]), code))
        except UnicodeDecodeError as error:
            return self._bad.report(number, no_text(line, error))
        except MalformedLine as error:
            return self._bad.report(number, str(error))
        if row is not None:
            self._add(row)
            self._learn_classes()
        return None

    def _add(self, row: Row) -> None:
        n = len(row.features)
        self._buffer = buffer = scan.with_capacity(self._buffer, n)
        first = int(buffer.ends[buffer.cursor[scan.ROWS]])
        buffer.columns[first : first + n] = self.columns_of(row.features)
        buffer.values[first : first + n] = row.values
        task = scan.NO_TASK if row.task is None else int(self._tasks.numbers([row.task])[0])
        scan.add_parsed_row(buffer, n, float(row.label), task, row.weight)

    def _learn_classes(self) -> None:
        """Let the scan accept the labels that are classes by now."""
        if len(self._buffer.classes):
            self._buffer.classes[: len(self._labels.classes)] = list(map(float, self._labels.classes))

    def _take(self) -> Chunk:
        with_task = self._buffer.tasks[0] != scan.NO_TASK
        rows = scan.take_rows(self._buffer, self.width)
        X = rows.matrix if self._most_columns is None else rows.matrix[:, : self._most_columns]
        y: NDArray[Any] | None = rows.labels if self._labeled else None
        if self._labeled and self._labels.kind != "regression":
            y = self._as_labels(rows.labels)
        return Chunk(X, y, self._ids(rows.tasks) if with_task else None, weight=rows.weights)

    def _as_labels(self, found: NDArray[np.float64]) -> NDArray[Any]:
        """The labels of a chunk; new ones become classes in the order in which they appear."""
        labels = self._labels
        if labels.numeric and (labels.kind == "binary" or labels.given) and not self._inexact:
            return found.astype(np.int64)
        codes = np.empty(len(found), np.int64)
        exact = np.ones(len(found), np.bool_)
        for row, code in self._inexact:
            codes[row], exact[row] = code, False
        self._inexact.clear()
        distinct, first, rows = np.unique(found[exact], return_index=True, return_inverse=True)
        order = np.argsort(first)
        texts = [str(id_of(label)) for label in distinct[order].tolist()]
        places = np.empty(len(order), np.int64)
        places[order] = labels.codes(texts)
        if (places < 0).any():
            refused = texts[int(np.argmin(places[order]))]
            raise ValueError(f"{self._bad.name}: {labels.unexpected(refused)}")
        codes[exact] = places[rows]
        return np.array(labels.classes)[codes]

    def _ids(self, tasks: NDArray[np.int64]) -> NDArray[np.object_]:
        """The task ids: one string object per task, not per row."""
        known = len(self._task_ids)
        if known < len(self._tasks):
            fresh = np.array([*self._tasks.texts(known, len(self._tasks)), None], np.object_)[:-1]
            self._task_ids = np.concatenate([self._task_ids, fresh])
        return self._task_ids[tasks]
