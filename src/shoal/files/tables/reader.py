"""From the batches of any table format to chunks of features, labels and task ids."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Generator, Iterator
from typing import Any, Literal, Protocol, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.rounds import Chunk
from shoal.files.bad_rows import BadRows
from shoal.files.source import ByteSource
from shoal.files.suggest import unknown_name
from shoal.files.tables.batches import Batch, Problem, join, regroup, rows_a_batch, split
from shoal.files.tables.columnar import Columnar
from shoal.files.tables.columns import Values
from shoal.files.tables.csv import Delimited
from shoal.files.tables.encoder import TableEncoder
from shoal.files.tables.ndjson import NDJSON
from shoal.files.tables.targets import Tasks, decide_labels, read_labels
from shoal.files.targets import Labels, State
from shoal.parallel.read_ahead import read_ahead

SAMPLE = 1_000  # rows that decide the kinds of the columns, whatever the chunks


class TableFormat(Protocol):
    """What `Delimited`, `NDJSON` and `Columnar` have in common."""

    n_rows: int | None  # where the format says

    def batches(self) -> Iterator[Batch]:
        """All rows in order; strings or typed columns."""


class TableReader:
    """Chunks from a table.

    The first rows are read at once, so that a wrong column is found before any row is learned.

    Parameters
    ----------
    table : TableFormat
    label, task : str, str or None
        Their columns; a task of None puts all rows into one task.
    ignore : collection of str
        Columns that are no features.
    every_row_has_every_column : bool
        Not so in NDJSON, where a key of the saved state may well be absent.
    chunk_rows : int or None
        Rows of a chunk; None: by the number of columns.
    live : bool
        Whether rows come from standard input; those of a file are read ahead of their encoding.
    ahead : bool
        Whether chunks are encoded ahead of their use, too.

    Raises
    ------
    ValueError
        A column that is not there (the message lists those that are), or that is asked to be two things.
    """

    def __init__(
        self,
        table: TableFormat,
        bad: BadRows,
        labels: Labels,
        encoder: TableEncoder,
        *,
        label: str,
        task: str | None,
        ignore: Collection[str],
        named: Collection[str],
        chunk_rows: int | None,
        every_row_has_every_column: bool,
        live: bool = False,
        ahead: bool = False,
    ) -> None:
        self._bad, self._labels, self._encoder, self._live, self._ahead = bad, labels, encoder, live, ahead
        self._label, self._task = label, task
        self.rows_total = table.n_rows
        self._tasks = Tasks()
        batches = table.batches()
        head = _take(batches, SAMPLE)
        self._chunk_rows = chunk_rows or rows_a_batch(head.frame.width)
        self._batches = itertools.chain([head], batches)
        sample = split(head, SAMPLE)[0].frame
        known = encoder.column_names if every_row_has_every_column else []
        for name in [label, *([task] if task is not None else []), *ignore, *named, *known]:
            if name not in head.frame.columns:
                raise ValueError(unknown_name(f"{bad.name} has no column", name, head.frame.columns))
        if label == task:
            raise ValueError(f"column {label!r} is both label and task, expected two columns")
        self._not_features = {label, task, *ignore}
        decide_labels(labels, sample[label], strings=encoder.strings)
        encoder.decide(self._features(sample))

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X so far."""
        return self._encoder.feature_names

    def chunks(self) -> Iterator[Chunk]:
        """All good rows in order; bad ones are reported. The batches of a file are read in a thread."""
        return read_ahead(self._encoded(), self._chunk_rows, live=self._live) if self._ahead else self._encoded()

    def _encoded(self) -> Generator[Chunk]:
        batches = regroup(self._batches, self._chunk_rows)
        for batch in read_ahead(batches, self._chunk_rows, live=self._live):
            yield from self._chunk(batch)

    def notes(self) -> list[str]:
        """What was done with each column."""
        return self._encoder.notes()

    def to_dict(self) -> State:
        """The state of the encoder, for JSON."""
        return self._encoder.to_dict()

    def _features(self, frame: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame([column for column in frame.get_columns() if column.name not in self._not_features])

    def _chunk(self, batch: Batch) -> Iterator[Chunk]:
        """The chunk of a batch, or nothing if no row is good. Bad rows change nothing."""
        frame = batch.frame
        values, problems = self._encoder.read(self._features(frame))
        tasks: NDArray[Any] | None = None
        if self._task is not None:
            tasks, found = self._tasks.read(frame[self._task])
            problems += found
        good = _without(np.arange(frame.height), problems)
        label = frame[self._label]
        # Labels last: a row that is bad anyway must not choose one of the two classes.
        y, found = read_labels(self._labels, label.gather(good) if problems else label, strings=self._encoder.strings)
        kept = _without(np.arange(len(good)), found)
        problems += [(int(good[row]), problem) for row, problem in found]
        self._report(batch, problems)
        if len(kept) == 0:
            return
        if problems:
            rows = good[kept]
            values, y = _keep(values, rows, frame.height), y[kept]
            tasks = None if tasks is None else tasks[rows]
        yield Chunk(self._encoder.encode(values, len(kept)), y, tasks)

    def _report(self, batch: Batch, problems: list[Problem]) -> None:
        """Report each bad line once, in file order."""
        numbered = batch.problems + [(int(batch.lines[row]), problem) for row, problem in problems]
        first: dict[int, str] = {}
        for line, problem in numbered:
            first.setdefault(line, problem)
        for line in sorted(first):
            self._bad.report(line, first[line])


def open_table(
    path: str, source: ByteSource | None, format: str, bad: BadRows, labels: Labels, features: State | None,
    *, text: Collection[str], numeric: Collection[str], ignore: Collection[str], **options: Any,
) -> TableReader:  # fmt: skip
    """The reader of a table; `features` is what an earlier reader saved, `source` the bytes of a text format."""
    strings = source is not None
    encoder = TableEncoder(text, numeric, strings=strings)
    if features is not None:
        encoder = TableEncoder.from_dict(features, strings=strings)
    table: TableFormat
    if source is None:
        table = Columnar(path, cast(Literal["parquet", "arrow"], format), leave_out=ignore)
    elif format == "ndjson":
        table = NDJSON(source)
    else:
        table = Delimited(source, "," if format == "csv" else "\t")
    return TableReader(
        table, bad, labels, encoder, ignore=ignore, named=[*text, *numeric],
        every_row_has_every_column=format != "ndjson", live=source is not None and source.is_standard_input, **options,
    )  # fmt: skip


def _take(batches: Iterator[Batch], rows: int) -> Batch:
    """One batch of at least that many rows, if there are as many."""
    taken: list[Batch] = []
    for batch in batches:
        taken.append(batch)
        if sum(len(other.lines) for other in taken) >= rows:
            break
    return join(taken)


def _without(rows: NDArray[np.intp], problems: list[Problem]) -> NDArray[np.intp]:
    """The rows that no problem names."""
    good = np.ones(len(rows), np.bool_)
    good[[row for row, _ in problems]] = False
    return rows[good]


def _keep(values: dict[str, Values], rows: NDArray[np.intp], n: int) -> dict[str, Values]:
    mask = np.zeros(n, np.bool_)
    mask[rows] = True
    return {name: column.keep(mask) for name, column in values.items()}
