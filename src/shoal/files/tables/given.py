"""Tables that somebody else has read, one after the other: the same columns in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from shoal.files.messages import unknown_name
from shoal.files.tables.batches import Batch
from shoal.files.tables.frames import as_frame


class Given:
    """What `Parts` is for files.

    Raises ValueError if a table lacks a column of the first one, or has it of another kind.
    """

    strings = False
    rows_total = None
    live = False  # tables may be read ahead
    every_row_has_every_column = True

    def __init__(self, tables: Iterable[Any]) -> None:
        self._tables = tables

    def batches(self) -> Iterator[Batch]:
        """All rows in order, numbered from 1."""
        line, schema = 1, None
        for number, table in enumerate(self._tables, 1):
            frame = as_frame(table)
            schema = dict(frame.schema) if schema is None else schema
            for name, kind in schema.items():
                if name not in frame.columns:
                    raise ValueError(unknown_name(f"table {number} has no column", name, frame.columns))
                other = frame.schema[name]
                if other != kind and not (kind.is_numeric() and other.is_numeric()):
                    raise ValueError(f"table {number}: column {name!r} is of type {other}, but {kind} in the first")
            yield Batch(frame, np.arange(line, line + frame.height), [])
            line += frame.height
        if schema is None:
            raise ValueError("there are no tables to read")

    def notes(self) -> list[str]:
        """Nothing was found out."""
        return []
