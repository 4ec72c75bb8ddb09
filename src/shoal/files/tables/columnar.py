"""Parquet and Arrow IPC: typed columns in batches, so that the file may be larger than memory."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from shoal.files.source import is_url
from shoal.files.tables.batches import Batch, rows_a_batch

WITHOUT_MEANING = (pl.Binary, pl.Object, pl.Duration)
NAMES = {"parquet": "a Parquet", "arrow": "an Arrow IPC (Feather)"}
ANY_TIME_ZONE = "POLARS_IGNORE_TIMEZONE_PARSE_ERROR"  # without it polars panics at zones such as +05:30
DIGITS = 38  # of the decimals of polars
STREAM = b"\xff\xff\xff\xff"  # the first bytes of an Arrow stream
ERRORS = (pl.exceptions.PolarsError, OSError)


class Columnar:
    """A Parquet or Arrow IPC file as batches of typed columns; rows are numbered from 1.

    An Arrow stream, which has no directory of its parts, is read into memory as a whole.

    Raises ValueError if the file is damaged or of another format, or if a column has a type that gives no features.
    """

    def __init__(self, path: str, format: Literal["parquet", "arrow"], leave_out: Collection[str] = ()) -> None:
        os.environ.setdefault(ANY_TIME_ZONE, "1")
        self._path, self._format = path, format
        with self._sound(), _panics_in_silence():
            self._table = _as_written(self._scan())
            self.n_rows = int(self._table.select(pl.len()).collect().item())
            self.schema = dict(self._table.collect_schema())
        self._check_types(leave_out)

    def drop(self, names: Collection[str]) -> None:
        """Read the file without these columns."""
        self._table = self._table.drop(names)
        self.schema = {name: kind for name, kind in self.schema.items() if name not in names}

    def batches(self) -> Iterator[Batch]:
        """All rows in order."""
        first, schema = 1, self.schema
        yield Batch(pl.DataFrame(schema=schema), np.zeros(0, np.int64), [])
        with self._sound():
            for frame in self._table.collect_batches(chunk_size=rows_a_batch(len(schema)), maintain_order=True):
                yield Batch(frame, np.arange(first, first + frame.height), [])
                first += frame.height
        if first <= self.n_rows:  # polars ends without a word if one of its threads panics
            raise self._damaged(f"it breaks off after row {first - 1:,} of {self.n_rows:,}")

    def _scan(self) -> pl.LazyFrame:
        if self._format == "parquet":
            return pl.scan_parquet(self._path, glob=False)
        return pl.read_ipc_stream(self._path).lazy() if self._is_stream() else pl.scan_ipc(self._path, glob=False)

    def _is_stream(self) -> bool:
        if self._format == "parquet" or is_url(self._path):
            return False
        with open(self._path, "rb") as file:
            return file.read(len(STREAM)) == STREAM

    def _check_types(self, leave_out: Collection[str]) -> None:
        for name, kind in list(self.schema.items()):
            wide = isinstance(kind, pl.Decimal) and (kind.precision or 0) > DIGITS
            if wide and name in leave_out:
                self._table = self._table.with_columns(pl.lit(None, pl.String).alias(name))
                self.schema[name] = pl.String()
            elif name not in leave_out and (kind.is_nested() or kind in WITHOUT_MEANING or wide):
                raise ValueError(
                    f"{self._path}: column {name!r} is of type {kind}, expected numbers, text, booleans, dates or"
                    " times: convert it or leave it out with ignore="
                )

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Turn the errors of polars, panics of its code among them, into a ValueError of one line."""
        try:
            yield
        except ERRORS as error:
            raise self._damaged(error) from None
        except pl.exceptions.PanicException as panic:
            raise ValueError(f"{self._path} cannot be read: {self._unread()}{_first_line(panic)}") from None

    def _unread(self) -> str:
        """The column that polars cannot read, if pyarrow is there to say so."""
        try:
            import pyarrow.dataset
            import pyarrow.ipc

            if self._is_stream():
                found: Any = pyarrow.ipc.open_stream(self._path).schema
            else:
                found = pyarrow.dataset.dataset(self._path, format=self._format).schema
            for field in found:
                try:
                    with _panics_in_silence():
                        pl.from_arrow(pyarrow.table({field.name: pyarrow.nulls(1, field.type)}))
                except (*ERRORS, pl.exceptions.PanicException):
                    return f"column {field.name!r} is of type {field.type}: "
        except (ImportError, OSError, ValueError):
            pass
        return ""

    def _damaged(self, error: object) -> ValueError:
        return ValueError(f"{self._path} is damaged or not {NAMES[self._format]} file: {_first_line(error)}")


def _first_line(error: object) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _as_written(table: pl.LazyFrame) -> pl.LazyFrame:
    """The table with hours as written where polars does not know the time zone, as offsets such as +05:30 are."""
    changed: list[pl.Expr] = []
    for name, kind in table.collect_schema().items():
        zone = kind.time_zone if isinstance(kind, pl.Datetime) else None
        if zone is None or _is_known(zone):
            continue
        offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone)
        minutes = int(f"{offset[1]}1") * (60 * int(offset[2]) + int(offset[3])) if offset else 0
        unit = kind.time_unit if isinstance(kind, pl.Datetime) else "us"
        changed.append(pl.col(name).to_physical().cast(pl.Datetime(unit)) + pl.duration(minutes=minutes))
    return table.with_columns(changed) if changed else table


def _is_known(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError):
        return False
    return True


@contextmanager
def _panics_in_silence() -> Iterator[None]:
    """Keep back the page that polars prints when it panics; all else that was printed comes after it."""
    try:
        printed = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
        stderr = os.dup(2)
    except OSError:  # there is no folder for it, or no standard error
        yield
        return
    with printed:
        os.dup2(printed.fileno(), 2)
        try:
            yield
        except pl.exceptions.PanicException:
            printed.truncate(0)
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            printed.seek(0)
            os.write(2, printed.read())
