"""From the batches of any table format to chunks of features, labels and task ids."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.rounds import Chunk
from shoal.files.bad_rows import BadRows
from shoal.files.options import ReadOptions
from shoal.files.stream import Piece
from shoal.files.suggest import unknown_name
from shoal.files.tables.batches import Batch, Problem, join, regroup, rows_a_batch, split
from shoal.files.tables.columns import Values
from shoal.files.tables.encoder import StreamEncoder
from shoal.files.tables.notation import Notation
from shoal.files.tables.parts import Parts
from shoal.files.tables.sorting import sorted_batches
from shoal.files.tables.targets import Clock, Tasks, decide_labels, read_labels, read_weights
from shoal.files.targets import Labels, State, check_state, reading_state
from shoal.parallel.read_ahead import read_ahead

SAMPLE = 1_000  # rows that decide the kinds of the columns, whatever the chunks
KINDS = ("text", "category", "numeric", "date")


class Roles(NamedTuple):
    """Which columns are no features but something else; saved with a stream, so that the next file needs no options."""

    tasks: list[str]
    label: str | None
    weight: str | None
    time: str | None
    ignore: list[str]

    @classmethod
    def of(cls, options: ReadOptions, saved: State | None) -> Roles:
        """Those of the options; what they leave open is as it was saved."""
        with reading_state():
            return cls._of(options, saved)

    @classmethod
    def _of(cls, options: ReadOptions, saved: State | None) -> Roles:
        given = cls(options.tasks, options.label, options.weight, options.time, list(options.ignore))
        if saved is None:
            return given
        for name in ("tasks", "label"):
            asked, known = getattr(given, name), saved[name]
            if asked and asked != known:
                raise ValueError(f"{name.rstrip('s')}={asked!r}, but {known!r} in the saved state: rename it")
        ignore = list(dict.fromkeys([*saved["ignore"], *given.ignore]))
        weight, time = given.weight or saved["weight"], given.time or saved["time"]
        tasks, label = list(saved["tasks"]), saved["label"]
        names = [*tasks, *ignore, *(name for name in (label, weight, time) if name is not None)]
        check_state(all(isinstance(name, str) for name in names), "roles of columns")
        return cls(tasks, label, weight, time, ignore)

    @property
    def not_features(self) -> set[str | None]:
        """All columns that are no features; the time is one too, unless it is ignored."""
        return {*self.tasks, self.label, self.weight, *self.ignore}


class TableReader:
    """Chunks from a table.

    The first rows are read at once, so that a wrong column is found before any row is learned.

    Parameters
    ----------
    parts : Parts
        The files.
    state : dict, optional
        What `to_dict` of an earlier reader said.
    read_ahead : bool
        Whether chunks are encoded ahead of their use; the rows of files are read ahead in any case.

    Raises
    ------
    ValueError
        A column that is not there (the message lists those that are), or that is asked to be two things.
    """

    def __init__(
        self,
        parts: Parts,
        bad: BadRows,
        labels: Labels,
        options: ReadOptions,
        state: State | None = None,
        *,
        read_ahead: bool = False,
    ) -> None:
        self._bad, self._labels, self._read_ahead, self._parts = bad, labels, read_ahead, parts
        self._notation = Notation(parts.strings, options.decimal, options.date_format)
        given = {column: kind for kind in KINDS for column in getattr(options, kind)}
        self._encoder = StreamEncoder(given, self._notation, options.hash_bits, keep_names=options.keep_names)
        if state is not None:
            check_state(isinstance(state, dict) and {"encoder", "roles"} <= state.keys(), "parts of it are missing")
            self._encoder = StreamEncoder.from_dict(state["encoder"], self._notation)
        self._roles = Roles.of(options, state["roles"] if state else None)
        self._keep, self._labeled = list(options.keep), options.labeled
        self._learns = options.labeled or state is None
        self.rows_total = parts.rows_total
        batches = parts.batches()
        if options.sort:
            batches = sorted_batches(batches, str(options.time), self._notation, bad.name)
        head = _take(batches, SAMPLE)
        size = head.frame.estimated_size() / max(head.frame.height, 1)
        self._chunk_rows = options.chunk_rows or rows_a_batch(head.frame.width, size)
        self._batches = itertools.chain([head], batches)
        sample = split(head, SAMPLE)[0].frame
        if not head.frame.columns:  # not one line of NDJSON is an object
            self._report(head, [])
        self._check_columns(head.frame.columns, [*given, *options.ignore, *self._keep], options)
        self._tasks = Tasks(self._roles.tasks)
        self._clock: Clock | None = None
        time = self._roles.time if self._learns else options.time  # rows to be predicted may be older
        if time is not None and time in sample.columns:
            last = state.get("last_time") if state else None
            check_state(last is None or isinstance(last, float), "last time")
            self._clock = Clock(time, sample[time], self._notation, last if self._learns else None)
        if self._labeled:
            decide_labels(labels, sample[str(self._roles.label)], self._notation)
        self._encoder.decide(self._features(sample))

    def _check_columns(self, found: list[str], named: list[str], options: ReadOptions) -> None:
        """Every column that is named is there, and none has two roles."""
        roles = self._roles
        if self._labeled and roles.label is None:
            raise ValueError(f"{self._bad.name} is a table: label= is missing, expected the column of the labels")
        needed = [*roles.tasks, *named, options.time]
        if self._labeled:
            needed += [roles.label, roles.weight]
        if self._parts.every_row_has_every_column:
            needed += self._encoder.column_names
        for name in needed:
            if name is not None and name not in found:
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

    def chunks(self) -> Iterator[Piece]:
        """All good rows in order; bad ones are reported. The batches of a file are read in a thread."""
        encoded = self._encoded()
        return read_ahead(encoded, self._chunk_rows, live=self._parts.live) if self._read_ahead else encoded

    def _encoded(self) -> Generator[Piece]:
        batches = regroup(self._batches, self._chunk_rows)
        for batch in read_ahead(batches, self._chunk_rows, live=self._parts.live):
            yield from self._chunk(batch)

    def notes(self) -> list[str]:
        """What was done with each column."""
        return self._parts.notes() + self._encoder.notes()

    def to_dict(self) -> State:
        """The state of the encoder and the roles of the columns, for JSON."""
        last = self._clock.last if self._clock else None
        return {"encoder": self._encoder.to_dict(), "roles": self._roles._asdict(), "last_time": last}

    def _features(self, frame: pl.DataFrame) -> pl.DataFrame:
        no_feature = self._roles.not_features
        return pl.DataFrame([column for column in frame.get_columns() if column.name not in no_feature])

    def _chunk(self, batch: Batch) -> Iterator[Piece]:
        """The chunk of a batch, or nothing if no row is good. Bad rows change nothing."""
        frame = batch.frame
        rows, tasks, weight = np.arange(frame.height), None, None
        values, problems = self._encoder.read(self._features(frame), learns=self._learns)
        if self._roles.tasks:
            tasks, found = self._tasks.read(frame)
            problems += found
        if self._labeled and self._roles.weight is not None:
            weight, found = read_weights(frame[self._roles.weight], self._notation)
            problems += found
        times = None
        if self._clock is not None:
            times, found = self._clock.read(frame[self._clock.name])
            problems += found
        good = _without(rows, problems)
        if self._clock is not None and times is not None:
            found = self._clock.check(times[good], frame[self._clock.name].gather(good))
            problems += [(int(good[row]), problem) for row, problem in found]
            good = _without(rows, problems)
        y = None
        if self._labeled:  # last: a row that is bad anyway must not choose one of the classes
            column = frame[str(self._roles.label)]
            y, found = read_labels(self._labels, column.gather(good) if problems else column, self._notation)
            kept = _without(np.arange(len(good)), found)
            problems += [(int(good[row]), problem) for row, problem in found]
            good, y = good[kept], y[kept] if found else y
        self._report(batch, problems)
        if len(good) == 0:
            return
        carried = frame.select(self._keep) if self._keep else None
        if problems:
            values = _keep(values, good, frame.height)
            tasks = None if tasks is None else tasks[good]
            weight = None if weight is None else weight[good]
            carried = None if carried is None else carried[good]
        X = self._encoder.encode(values, len(good), learns=self._learns)
        yield Piece(Chunk(X, y, tasks, weight=weight), carried)

    def _report(self, batch: Batch, problems: list[Problem]) -> None:
        """Report each bad line once, in file order."""
        numbered = batch.problems + [(int(batch.lines[row]), problem) for row, problem in problems]
        first: dict[int, str] = {}
        for line, problem in numbered:
            first.setdefault(line, problem)
        for line in sorted(first):
            self._bad.report(line, first[line])


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
    """The reader of a table in one file or several, and the source of its bytes, if it is text."""
    parts = Parts(paths, format, options.delimiter, options.ignore)
    try:
        return TableReader(parts, bad, labels, options, state, read_ahead=read_ahead), parts.sources
    except BaseException:
        parts.close()
        raise
