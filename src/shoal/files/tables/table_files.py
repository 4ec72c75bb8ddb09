"""The sources of a table: its files one after the other (`TableFiles`), or tables in memory (`GivenTables`).

A file or table that lacks a column of the first one, or has a further one, gives batches of its own columns; options
may ask for the same columns in all. The number of a row tells its file to messages. `sorted_batches` sorts the rows of
either by time, on disk if they are many.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol, cast
from urllib.parse import unquote

import numpy as np
import polars as pl

from shoal.engine.arrays import FloatArray
from shoal.files.messages import FILE, unknown_name
from shoal.files.options import ReadOptions
from shoal.files.paths import TYPED
from shoal.files.source import ByteSource, Sources
from shoal.files.tables.batches import Batch, Problem, join, rows_a_batch
from shoal.files.tables.columnar import Columnar
from shoal.files.tables.csv import Delimited
from shoal.files.tables.json import NDJSON
from shoal.files.tables.label_columns import Clock
from shoal.files.tables.values_in_text import Notation

INDEX = re.compile(r"__index_level_\d+__")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
IN_MEMORY = 1 << 27  # bytes of rows that are sorted in memory
TIME, LINE = "\0time", "\0line"  # columns beside those of the table


class TableFormat(Protocol):
    """The common interface of `Delimited`, `NDJSON` and `Columnar`."""

    def batches(self) -> Iterator[Batch]:
        """All rows in order; strings or typed columns."""


class TableSource(Protocol):
    """The common interface of `TableFiles` and `GivenTables`."""

    @property
    def strings(self) -> bool: ...
    @property
    def rows_total(self) -> int | None: ...
    @property
    def live(self) -> bool: ...
    @property
    def every_row_has_every_column(self) -> bool: ...
    def batches(self) -> Iterator[Batch]: ...
    def notes(self) -> list[str]: ...


class TableFiles:
    """The files of a table, read one after the other.

    Folders named as `shop=Berlin` give their files a column, unless all files have the same value and nothing names the
    column. The index that pandas saves is left out, unless something names it.

    Parameters
    ----------
    wanted : set of str
        The columns that options or a saved stream name.
    needed : list of str
        The columns that no file may lack.

    Attributes
    ----------
    strings : bool
        Whether all values are strings.
    sources : Sources or None
        The bytes of the files, in text formats.
    rows_total : int or None
        Rows of all files, in formats that know it.
    """

    def __init__(
        self,
        paths: list[str],
        format: str,
        options: ReadOptions,
        wanted: Collection[str] = (),
        needed: Collection[str] = (),
    ) -> None:
        self._wanted, self._index = wanted, ""
        self._needed, self._all_alike = needed, options.strict or options.sort
        self._paths, self._format, self._ignore = paths, format, options.ignore
        self._delimiter = "\t" if format == "tsv" and options.delimiter is None else options.delimiter
        self.strings = format not in TYPED
        self.sources = Sources(paths, options.encoding) if self.strings else None
        self.rows_total: int | None = None
        self._typed: list[Columnar] = []
        self._folders = _folder_columns(paths, wanted, typed=not self.strings)
        if not self.strings:
            kind = cast(Literal["parquet", "arrow"], format)
            self._typed = [Columnar(path, kind, leave_out=self._ignore) for path in paths]
            self.rows_total = sum(table.n_rows for table in self._typed)
            for table, path in zip(self._typed, paths, strict=True):
                table.drop([name for name in table.schema if INDEX.fullmatch(name) and not self._is_wanted(name)])
                self._check_schema(path, table.schema)

    @property
    def live(self) -> bool:
        """Whether rows come from standard input."""
        return self.sources is not None and self.sources.is_standard_input

    @property
    def every_row_has_every_column(self) -> bool:
        """False for JSON, where keys may be absent."""
        return self._format != "ndjson"

    def batches(self) -> Iterator[Batch]:
        """All rows in order."""
        for k, table in enumerate(self._tables()):
            for batch in table.batches():
                problems = [(k * FILE + line, problem) for line, problem in batch.problems]
                frame = batch.frame.drop(self._index) if self._index in batch.frame.columns else batch.frame
                own = [
                    pl.repeat(column[k], frame.height, dtype=column.dtype, eager=True).alias(column.name)
                    for column in self._folders
                    if column.name not in frame.columns
                ]
                yield Batch(frame.with_columns(own) if own else frame, batch.lines + k * FILE, problems)

    def notes(self) -> list[str]:
        """Notes on the files for the stream."""
        files = [f"{len(self._paths)} files, read in the order of their names"] if len(self._paths) > 1 else []
        found = self._format == "csv" and self._delimiter not in (None, ",")
        names = ", ".join(column.name for column in self._folders)
        files += [f"{names}: from the names of the folders"] if names else []
        index = f"{self._index}: left out, as it is the index that pandas saves (an option that names it reads it)"
        files += [index] if self._index else []
        encodings = self.sources.notes() if self.sources is not None else []
        return files + encodings + ([f"fields are separated by {self._delimiter!r}"] if found else [])

    def close(self) -> None:
        """Close the file that is being read."""
        if self.sources is not None:
            self.sources.close()

    def _tables(self) -> Iterator[TableFormat]:
        if self.sources is None:
            yield from self._typed
            return
        names: list[str] = []
        for source in self.sources:
            if self._format == "ndjson":
                yield NDJSON(source)
                continue
            table = self._delimited(source)
            names = names or table.names
            self._check_names(source.name, names, table.names)
            yield table

    def _delimited(self, source: ByteSource) -> Delimited:
        table = Delimited(source, self._delimiter)
        self._delimiter = table.delimiter
        if table.index is not None:
            self._is_wanted(table.index)
        return table

    def _is_wanted(self, index: str) -> bool:
        """Whether something names the column of the index; if not, it is left out."""
        self._index = self._index if index in self._wanted else index
        return index in self._wanted

    def _check_names(self, path: str, first: Collection[str], found: Collection[str]) -> None:
        """Raise ValueError if the file lacks a column that it needs: those of the first file, if all must be alike."""
        folders = [column.name for column in self._folders]
        for name in first if self._all_alike else [name for name in self._needed if name in (*first, *folders)]:
            if name not in (*found, *folders):
                raise ValueError(unknown_name(f"{path} has no column", name, list(found)))

    def _check_schema(self, path: str, schema: dict[str, pl.DataType]) -> None:
        """Raise ValueError if the file lacks a column that it needs, or has one of the first file with another type."""
        first = self._typed[0].schema
        self._check_names(path, list(first), list(schema))
        for name, kind in first.items():
            other = schema.get(name, kind)
            if name not in self._ignore and other != kind and not (kind.is_numeric() and other.is_numeric()):
                raise ValueError(f"{path}: column {name!r} is of type {other}, but {kind} in {self._paths[0]}")


def _folder_columns(paths: list[str], wanted: Collection[str], *, typed: bool) -> list[pl.Series]:
    """The values that the folders of the files give, by the name of the column: text, or integers in typed formats."""
    found = [dict(pair for part in Path(path).parts[:-1] if (pair := _pair(part))) for path in paths]
    columns: list[pl.Series] = []
    for name in found[0]:
        values = [own.get(name) for own in found]
        if (name in wanted or len(set(values)) > 1) and all(name in own for own in found):
            whole = typed and all(value is None or re.fullmatch(r"-?(0|[1-9]\d*)", value) for value in values)
            columns.append(pl.Series(name, values, pl.String).cast(pl.Int64 if whole else pl.String))
    return columns


def _pair(folder: str) -> tuple[str, str | None] | None:
    """Column and value of a folder such as `shop=Berlin`, as Hive, Spark, polars and pyarrow name them."""
    name, sign, value = folder.partition("=")
    return (unquote(name), None if value == NO_VALUE else unquote(value)) if name and sign else None


class GivenTables:
    """Tables in memory, taken one after the other; parameters as of `TableFiles`.

    Raises ValueError if a table lacks a column that it needs, or has one of the first table with another type.
    """

    strings = False
    rows_total = None
    live = False
    every_row_has_every_column = True

    def __init__(self, tables: Iterable[Any], needed: Collection[str], options: ReadOptions) -> None:
        self._tables, self._needed, self._all_alike = tables, needed, options.strict or options.sort

    def batches(self) -> Iterator[Batch]:
        """All rows in order, numbered from 1."""
        from shoal.files.tables.frames import as_frame  # and with it narwhals, which files do without

        line, schema = 1, None
        for number, table in enumerate(self._tables, 1):
            frame = as_frame(table)
            schema = dict(frame.schema) if schema is None else schema
            for name in schema if self._all_alike else self._needed:
                if name in schema and name not in frame.columns:
                    raise ValueError(unknown_name(f"table {number} has no column", name, frame.columns))
            for name, kind in schema.items():
                other = frame.schema.get(name, kind)
                if other != kind and not (kind.is_numeric() and other.is_numeric()):
                    raise ValueError(f"table {number}: column {name!r} is of type {other}, but {kind} in the first")
            yield Batch(frame, np.arange(line, line + frame.height), [])
            line += frame.height
        if schema is None:
            raise ValueError("there are no tables to read")

    def notes(self) -> list[str]:
        """Nothing to say."""
        return []


def sorted_batches(batches: Iterable[Batch], time: str, notation: Notation, name: str) -> Iterator[Batch]:
    """All rows, stably sorted by time; rows without a time come last.

    If there are more than IN_MEMORY bytes, pieces of that size are sorted, written to a temporary folder and merged. Of
    all rows, 16 bytes are in memory then. (The streaming engine of polars 2.1 sorts in memory up to a share of the
    machine's.)

    Raises
    ------
    ValueError
        If no column is called so or holds times, or if the disk is full.
    """
    pieces = _large(batches)
    first = next(pieces)
    if time not in first.frame.columns:
        raise ValueError(unknown_name(f"{name} has no column", time, first.frame.columns))
    clock = Clock(time, first.frame[time], notation)
    second = next(pieces, None)
    if second is None:
        frame = _with_times(first, clock).sort(TIME, maintain_order=True)
        yield Batch(first.frame.clear(), first.lines[:0], first.problems)
        yield Batch(frame.drop(TIME, LINE), frame[LINE].to_numpy(), [])
        return
    empty = Batch(first.frame.clear(), first.lines[:0], [])
    try:
        with TemporaryDirectory(prefix="shoal-sort-") as folder:
            problems: list[Problem] = []
            files: list[list[Path]] = []
            times: list[FloatArray] = []
            n = rows_a_batch(empty.frame.width)
            for piece in itertools.chain([first, second], pieces):
                problems += piece.problems
                # A batch of objects (JSON) may lack the column of the times.
                frame = _with_times(join([empty, piece]), clock).sort(TIME, maintain_order=True)
                times.append(frame[TIME].to_numpy().copy())
                files.append([])
                for part in frame.iter_slices(n):
                    files[-1].append(Path(folder, f"{len(files)}-{len(files[-1])}.arrow"))
                    part.write_ipc(files[-1][-1])
            del first, second, piece, frame, part
            yield empty._replace(problems=problems)
            yield from _merged(files, times, n)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{name} cannot be sorted on disk: {str(error).splitlines()[0]}") from None


def _merged(files: list[list[Path]], times: list[FloatArray], n: int) -> Iterator[Batch]:
    """All rows by time, n at a time: each batch is the next ones of every piece, sorted."""
    ends, order = np.cumsum([len(one) for one in times]), np.argsort(np.concatenate(times), kind="stable")
    rests = [iter(one) for one in files]
    held = [pl.read_ipc(next(rest)) for rest in rests]
    for first in range(0, len(order), n):
        taken = np.bincount(np.searchsorted(ends, order[first : first + n], side="right"), minlength=len(files))
        for k, count in enumerate(taken):
            while held[k].height < count:
                held[k] = pl.concat([held[k], pl.read_ipc(next(rests[k]))])
        parts = [frame.head(count) for frame, count in zip(held, taken, strict=True)]
        frame = pl.concat(parts, how="diagonal_relaxed").sort(TIME, maintain_order=True)
        yield Batch(frame.drop(TIME, LINE), frame[LINE].to_numpy(), [])
        held = [frame.slice(count) for frame, count in zip(held, taken, strict=True)]


def _large(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The rows in batches of IN_MEMORY bytes; at least one batch."""
    held: list[Batch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        # The estimate of polars counts the letters of strings, but not the 16 bytes that each of them takes besides.
        size += int(batch.frame.estimated_size()) + 16 * batch.frame.height * batch.frame.width
        if size > IN_MEMORY:
            yield join(held)
            held, size = [], 0
    if held:
        yield join(held)


def _with_times(batch: Batch, clock: Clock) -> pl.DataFrame:
    """The rows with their times, inf where the reader will report a bad one, and their lines."""
    times, bad = clock.read(batch.frame[clock.name])
    times = times + 0.0
    times[[row for row, _ in bad]] = np.inf
    return batch.frame.with_columns(pl.Series(TIME, times), pl.Series(LINE, batch.lines))
