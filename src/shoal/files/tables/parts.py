"""The files of a table, one after the other: the same columns in each, rows numbered so that their file is known."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, Protocol, cast

import polars as pl

from shoal.files.messages import FILE, unknown_name
from shoal.files.source import ByteSource, Sources
from shoal.files.tables.batches import Batch
from shoal.files.tables.columnar import Columnar
from shoal.files.tables.csv import Delimited
from shoal.files.tables.ndjson import NDJSON

TYPED = ("parquet", "arrow")


class TableFormat(Protocol):
    """What `Delimited`, `NDJSON` and `Columnar` have in common."""

    def batches(self) -> Iterator[Batch]:
        """All rows in order; strings or typed columns."""


class TableSource(Protocol):
    """What `Parts` and `Given` have in common."""

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


class Parts:
    """The files of a table.

    Attributes
    ----------
    strings : bool
        Whether all values are strings.
    sources : Sources or None
        The bytes of text formats.
    rows_total : int or None
        Rows of all files, where the format says.
    """

    def __init__(self, paths: list[str], format: str, delimiter: str | None, ignore: Collection[str]) -> None:
        self._paths, self._format, self._ignore = paths, format, ignore
        self._delimiter = "\t" if format == "tsv" and delimiter is None else delimiter
        self.strings = format not in TYPED
        self.sources = Sources(paths) if self.strings else None
        self.rows_total: int | None = None
        self._typed: list[Columnar] = []
        if not self.strings:
            kind = cast(Literal["parquet", "arrow"], format)
            self._typed = [Columnar(path, kind, leave_out=ignore) for path in paths]
            self.rows_total = sum(table.n_rows for table in self._typed)
            for table, path in zip(self._typed, paths, strict=True):
                self._check_schema(path, table.schema)

    @property
    def live(self) -> bool:
        """Whether rows come from standard input."""
        return self.sources is not None and self.sources.is_standard_input

    @property
    def every_row_has_every_column(self) -> bool:
        """Not so in NDJSON, where a key may well be absent."""
        return self._format != "ndjson"

    def batches(self) -> Iterator[Batch]:
        """All rows in order."""
        for k, table in enumerate(self._tables()):
            for batch in table.batches():
                problems = [(k * FILE + line, problem) for line, problem in batch.problems]
                yield Batch(batch.frame, batch.lines + k * FILE, problems)

    def notes(self) -> list[str]:
        """What was found out about the files."""
        files = [f"{len(self._paths)} files, read in the order of their names"] if len(self._paths) > 1 else []
        found = self._format == "csv" and self._delimiter not in (None, ",")
        return files + ([f"fields are separated by {self._delimiter!r}"] if found else [])

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
            _check_names(source.name, names, table.names)
            yield table

    def _delimited(self, source: ByteSource) -> Delimited:
        table = Delimited(source, self._delimiter)
        self._delimiter = table.delimiter
        return table

    def _check_schema(self, path: str, schema: dict[str, pl.DataType]) -> None:
        """The columns of the first file are in this one, too, and of the same kind."""
        first = self._typed[0].schema
        _check_names(path, list(first), list(schema))
        for name, kind in first.items():
            other = schema[name]
            if name not in self._ignore and other != kind and not (kind.is_numeric() and other.is_numeric()):
                raise ValueError(f"{path}: column {name!r} is of type {other}, but {kind} in {self._paths[0]}")


def _check_names(path: str, expected: list[str], found: list[str]) -> None:
    for name in expected:
        if name not in found:
            raise ValueError(unknown_name(f"{path} has no column", name, found))
