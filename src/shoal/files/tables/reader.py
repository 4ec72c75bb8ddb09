"""`TableReader`: the batches of any table format become chunks of features, labels and task ids.

The way of a row: `table_files` (bytes to frames of strings or typed columns), `check_rows` (values, labels, tasks;
problems of bad rows), `encoder` (values to features).
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from shoal.files.labels import Labels
from shoal.files.messages import BadRows, unknown_name
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State, check_state, reading_state
from shoal.files.stream import Piece
from shoal.files.tables.batches import Batch, Problem, join, regroup, rows_a_batch, same_columns, split
from shoal.files.tables.check_rows import Roles, RowReader, needed_columns
from shoal.files.tables.column_kinds import Values
from shoal.files.tables.encoder import StreamEncoder
from shoal.files.tables.label_columns import Clock, decide_labels
from shoal.files.tables.meanings import Meaning
from shoal.files.tables.table_files import GivenTables, TableFiles, TableSource, sorted_batches
from shoal.files.tables.values_in_text import Notation
from shoal.parallel.read_ahead import read_ahead

SAMPLE = 1_000  # rows that decide the kinds of the columns, for chunks of any size
KINDS = ("text", "category", "numeric", "date", "forecast")


class TableReader:
    """Chunks from a table.

    The first rows are read at once, so that a wrong column is found before any row is learned.

    Parameters
    ----------
    source : TableSource
        The files of the table, or tables in memory.
    state : dict, optional
        The `to_dict` of an earlier reader.
    read_ahead : bool
        Whether chunks are encoded ahead of their use; the rows of files are read ahead in any case.

    Raises
    ------
    ValueError
        If a column does not exist (the message lists those that do) or has two roles.
    """

    def __init__(
        self,
        source: TableSource,
        bad: BadRows,
        labels: Labels,
        options: ReadOptions,
        state: State | None = None,
        *,
        read_ahead: bool = False,
    ) -> None:
        self._bad, self._labels, self._read_ahead, self._source = bad, labels, read_ahead, source
        self._apart = source.every_row_has_every_column  # so a batch of other columns lacks some, or has more
        missing, points = tuple(options.missing), not self._apart
        self._notation = Notation(source.strings, options.decimal, options.date_format, missing, points)
        given = {column: kind for kind in KINDS for column in getattr(options, kind)}
        self._encoder = StreamEncoder(given, self._notation, options.hash_bits, keep_names=options.keep_names)
        if state is not None:
            check_state(
                isinstance(state, dict) and {"encoder", "roles", "task_type"} <= state.keys(), "parts of it are missing"
            )
            self._encoder = StreamEncoder.from_dict(state["encoder"], self._notation)
        self._roles = Roles.of(options, state["roles"] if state else None)
        self._keep, self._labeled = list(options.keep), options.labeled
        self._learns = options.labeled or state is None
        self.rows_total = source.rows_total
        batches = source.batches()
        if options.sort:
            batches = sorted_batches(batches, str(options.time), self._notation, bad.name)
        head, batches = _take(batches, SAMPLE, apart=self._apart)
        size = head.frame.estimated_size() / max(head.frame.height, 1)
        self._chunk_rows = options.chunk_rows or rows_a_batch(head.frame.width, size)
        self._batches = itertools.chain([head], batches)
        sample = split(head, SAMPLE)[0].frame
        if not head.frame.columns:  # not one line of NDJSON is an object
            self._report(head, [])
        named = [*given, *options.ignore] if state is None else []  # columns may go away again
        self._check_columns(head.frame.columns, [*named, *self._keep], options)
        clock = None
        time = self._roles.time if self._learns else options.time  # rows to predict may be older
        if time is not None and time in sample.columns:
            last = state.get("last_time") if state else None
            check_state(last is None or isinstance(last, float), "last time")
            clock = Clock(time, sample[time], self._notation, last if self._learns else None)
        if self._labeled:
            decide_labels(labels, sample[str(self._roles.label)], self._notation)
        self._encoder.decide(self._roles.features(sample))
        any_column = state is None and not self._apart
        most = None if any_column else len(self._encoder.column_names) + options.new_columns
        self._encoder.unmatched.strict = options.strict
        self._values: dict[str, Values] = {}  # of the last chunk
        self._rows = RowReader(
            self._encoder,
            labels,
            self._roles,
            clock,
            labeled=self._labeled,
            learns=self._learns,
            most_columns=most,
            task_type=state["task_type"] if state else None,
        )

    def _check_columns(self, found: list[str], named: list[str], options: ReadOptions) -> None:
        """Raise ValueError if a named column does not exist or has two roles."""
        roles = self._roles
        if self._labeled and roles.label is None:
            raise ValueError(f"{self._bad.name} is a table: label= is missing, expected the column of the labels")
        for name in [*named, *needed_columns(roles, options)]:
            if name not in found:
                raise ValueError(unknown_name(f"{self._bad.name} has no column", name, found))
        seen: dict[str, str] = {}
        roles_of = [("task", name) for name in roles.tasks] + [("label", roles.label), ("weight", roles.weight)]
        for role, column in roles_of:
            if column is not None and column in seen:
                raise ValueError(f"column {column!r} is both {role} and {seen[column]}, expected two columns")
            seen[str(column)] = role

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X so far."""
        return self._encoder.feature_names

    @property
    def feature_columns(self) -> list[str | None]:
        """The column that each feature comes from."""
        return self._encoder.feature_columns

    def chunks(self) -> Iterator[Piece]:
        """All good rows in order; bad ones are reported. A thread reads the batches of files ahead."""
        encoded = self._encoded()
        return read_ahead(encoded, self._chunk_rows, live=self._source.live) if self._read_ahead else encoded

    def _encoded(self) -> Generator[Piece]:
        batches = regroup(self._batches, self._chunk_rows, apart=self._apart)
        for batch in read_ahead(batches, self._chunk_rows, live=self._source.live):
            yield from self._chunk(batch)

    def meanings(self, row: int) -> dict[int, Meaning]:
        """Meanings of the features of a row of the last chunk, by their columns of X."""
        return self._encoder.meanings(self._values, row)

    def notes(self) -> list[str]:
        """The files, and how each column became features, a sentence each."""
        return self._source.notes() + self._encoder.notes() + self.unmatched

    @property
    def unmatched(self) -> list[str]:
        """The columns that are absent, and those that are not used because the saved state does not know them."""
        return self._encoder.unmatched.notes()

    def to_dict(self) -> State:
        """The state of the encoder and the roles of the columns, for JSON."""
        clock = self._rows.clock
        last = clock.last if clock else None
        return {**self._rows.to_dict(), "last_time": last}

    def _chunk(self, batch: Batch) -> Iterator[Piece]:
        """The chunk of a batch, or nothing if no row is good. Bad rows change no statistic."""
        checked, problems = self._rows.check(batch.frame, self._notation)
        self._report(batch, problems)
        if len(checked.good) == 0:
            return
        self._values = checked.values
        carried = batch.frame.select(self._keep)[checked.good] if self._keep else None
        yield Piece(self._rows.encode(checked, lambda row: self._bad.place(int(batch.lines[row]))), carried)

    def _report(self, batch: Batch, problems: list[Problem]) -> None:
        """Report each bad line once, in file order."""
        numbered = batch.problems + [(int(batch.lines[row]), problem) for row, problem in problems]
        first: dict[int, str] = {}
        for line, problem in numbered:
            first.setdefault(line, problem)
        for line in sorted(first):
            self._bad.report(line, first[line])


def _take(batches: Iterator[Batch], rows: int, *, apart: bool) -> tuple[Batch, Iterator[Batch]]:
    """One batch of at least that many rows, unless there are fewer or, if `apart`, other columns follow; the rest."""
    taken: list[Batch] = []
    for batch in batches:
        if apart and taken and not same_columns(taken[0], batch):
            return join(taken), itertools.chain([batch], batches)
        taken.append(batch)
        if sum(len(other.lines) for other in taken) >= rows:
            break
    return join(taken), batches


def open_table(
    paths: list[str],
    format: str,
    bad: BadRows,
    labels: Labels,
    options: ReadOptions,
    state: State | None = None,
    *,
    read_ahead: bool = False,
) -> tuple[TableReader, Any]:
    """The reader of a table in one or several files, and the source of its bytes if the format is text."""
    with reading_state():
        known = set(state["encoder"]["columns"]) | set(state["roles"]["tasks"]) if state else set()
    roles = Roles.of(options, state["roles"] if state else None)
    files = TableFiles(paths, format, options, options.named | known, needed_columns(roles, options))
    try:
        return TableReader(files, bad, labels, options, state, read_ahead=read_ahead), files.sources
    except BaseException:
        files.close()
        raise


def open_given(
    tables: Iterable[Any], bad: BadRows, labels: Labels, options: ReadOptions, state: State | None, *, read_ahead: bool
) -> TableReader:
    """The reader of tables in memory."""
    roles = Roles.of(options, state["roles"] if state else None)
    given = GivenTables(tables, needed_columns(roles, options), options)
    return TableReader(given, bad, labels, options, state, read_ahead=read_ahead)
