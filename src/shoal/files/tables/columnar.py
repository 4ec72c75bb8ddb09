"""Parquet and Arrow IPC: typed columns in batches, so that the file may be larger than memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

import numpy as np
import polars as pl

from shoal.files.tables.batches import Batch, rows_a_batch

WITHOUT_MEANING = (pl.Binary, pl.Object, pl.Duration, pl.Time)
NAMES = {"parquet": "a Parquet", "arrow": "an Arrow IPC (Feather)"}


class Columnar:
    """A Parquet or Arrow IPC file as batches of typed columns; rows are numbered from 1.

    Raises ValueError if the file is damaged or of another format, or if a column has a type that gives no features.
    """

    def __init__(self, path: str, format: Literal["parquet", "arrow"], leave_out: Collection[str] = ()) -> None:
        self._path, self._format = path, format
        scan = pl.scan_parquet if format == "parquet" else pl.scan_ipc
        try:
            self._table = scan(path, glob=False)
            self.n_rows = int(self._table.select(pl.len()).collect().item())
            self.schema = dict(self._table.collect_schema())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._damaged(error) from None
        self._check_types(leave_out)

    def _check_types(self, leave_out: Collection[str]) -> None:
        for name, kind in self.schema.items():
            if name not in leave_out and (kind.is_nested() or kind in WITHOUT_MEANING):
                raise ValueError(
                    f"{self._path}: column {name!r} is of type {kind}, expected numbers, text, booleans or"
                    " dates: convert it or leave it out with ignore="
                )

    def batches(self) -> Iterator[Batch]:
        """All rows in order."""
        first, schema = 1, self.schema
        yield Batch(pl.DataFrame(schema=schema), np.zeros(0, np.int64), [])
        try:
            for frame in self._table.collect_batches(chunk_size=rows_a_batch(len(schema)), maintain_order=True):
                yield Batch(frame, np.arange(first, first + frame.height), [])
                first += frame.height
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> ValueError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return ValueError(f"{self._path} is damaged or not {NAMES[self._format]} file: {reason}")
