"""Columns of a table become features on the fly: no pass over the data, no looking ahead.

Numbers are standardised by what was seen so far (`running`), text and the parts of dates are one-hot, a
missing value is 0 (for a number: the mean) and sets the feature `column=missing`. Features get their column
of X in the order of the rows in which they first appear, so neither the values nor the columns depend on how
the rows are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from shoal.files.tables import columns
from shoal.files.tables.batches import Problem
from shoal.files.tables.columns import Kind, Values
from shoal.files.tables.features import BUCKETS, LIMIT, Cells, assemble
from shoal.files.tables.running import Column, standardise

State = dict[str, Any]  # what JSON can hold
CONSTANT = "constant"


class TableEncoder:
    """Frames to sparse features, a chunk at a time.

    Parameters
    ----------
    text, numeric : collections of str
        Columns whose kind is given; that of the others is decided from the first rows.
    strings : bool
        Whether all columns come as strings (CSV, NDJSON), so that numbers and dates have to be recognised.
    limit : int
        Distinct values of a text column that get a feature of their own; later ones are hashed.
    buckets : int
        Features for the hashed values of one column.

    Examples
    --------
    >>> frame = pl.DataFrame({"delay": ["2", "4", ""], "carrier": ["UA", "B6", "UA"]})
    >>> encoder = TableEncoder(strings=True)
    >>> encoder.decide(frame)
    >>> values, problems = encoder.read(frame)
    >>> encoder.encode(values, 3).toarray()
    array([[1., 0., 1., 0., 0.],
           [1., 1., 0., 1., 0.],
           [1., 0., 1., 0., 1.]])
    >>> encoder.feature_names
    ['constant', 'delay', 'carrier=UA', 'carrier=B6', 'delay=missing']
    """

    def __init__(
        self,
        text: Collection[str] = (),
        numeric: Collection[str] = (),
        *,
        strings: bool = False,
        limit: int = LIMIT,
        buckets: int = BUCKETS,
    ) -> None:
        both = sorted(set(text) & set(numeric))
        if both:
            raise ValueError(f"columns {both} are both in text and in numeric, expected one of them")
        self.feature_names = [CONSTANT]
        self.strings = strings
        self._restored = False
        self._given: dict[str, Kind] = {**dict.fromkeys(text, "text"), **dict.fromkeys(numeric, "numeric")}
        self._limit, self._buckets = limit, buckets
        self._columns: dict[str, Column | None] = {}  # None: no value seen yet, so the kind is open

    def decide(self, sample: pl.DataFrame) -> None:
        """Choose the kind of every column from the first rows; a restored encoder knows them."""
        if self._restored:
            return
        for column in sample:
            self._open(column, born=True)

    def read(self, frame: pl.DataFrame) -> tuple[dict[str, Values], list[Problem]]:
        """The values of every column, and the rows (counted from 0) with a value that does not fit.

        No statistic changes yet, except the kind of columns that show their first value.
        """
        values: dict[str, Values] = {}
        problems: list[Problem] = []
        for name in self._columns.keys() - set(frame.columns):
            frame = frame.with_columns(pl.lit(None, pl.String).alias(name))
        for series in frame:
            column = self._open(series, born=False)
            if column is not None:
                values[column.name], found = columns.read(series, column.kind, strings=self.strings)
                problems += found
        return values, problems

    def encode(self, values: dict[str, Values], n_rows: int) -> csr_matrix:
        """(n_rows, len(feature_names)) features; what is remembered of the columns moves on."""
        there = {column: column.begin(values[column.name]) for column in self._known() if column.name in values}
        columns = [column for column, first in there.items() if first < n_rows]
        laid_out = sorted(columns, key=lambda column: column.kind != "numeric")  # those to be scaled side by side
        parts = [part for column in laid_out for part in column.parts]
        cells = Cells(np.empty((n_rows, len(parts)), np.int32), np.empty((n_rows, len(parts))))
        place: dict[Column, range] = {}
        for column in laid_out:
            first = sum(map(len, place.values()))
            place[column] = range(first, first + len(column.parts))
            if column.kind != "numeric":
                column.encode(values[column.name], cells.of(first, first + len(column.parts)))
        numeric = [column for column in laid_out if column.kind == "numeric"]
        if numeric:
            moments = np.stack([column.moments for column in numeric], axis=1)
            standardise(np.stack([values[column.name].numbers for column in numeric]), moments, cells)
            for column, found in zip(numeric, moments.T, strict=True):
                column.moments = found.copy()
        for column in columns:
            if there[column] > 0:
                cells.local[: there[column], place[column]] = -1
        return assemble(parts, cells, [part for column in columns for part in place[column]], self.feature_names)

    def notes(self) -> list[str]:
        """What was done with each column, a sentence each."""
        unused = [f"{name}: no value, not used" for name, column in self._columns.items() if column is None]
        return [column.note() for column in self._columns.values() if column is not None] + unused

    def to_dict(self) -> State:
        """The whole state for JSON; `from_dict` gives an encoder that goes on bit for bit."""
        saved = {name: column.to_dict() if column else None for name, column in self._columns.items()}
        options = {"limit": self._limit, "buckets": self._buckets, "given": dict(self._given)}
        return {**options, "columns": saved, "feature_names": list(self.feature_names)}

    @classmethod
    def from_dict(cls, state: State, *, strings: bool = False) -> TableEncoder:
        """The encoder as it was saved; the next file may have another format."""
        encoder = cls(strings=strings, limit=state["limit"], buckets=state["buckets"])
        encoder._restored = True
        encoder.feature_names = list(state["feature_names"])
        encoder._given = dict(state["given"])
        sizes = {"limit": state["limit"], "buckets": state["buckets"]}
        encoder._columns = {
            name: Column.from_dict(saved, **sizes) if saved else None for name, saved in state["columns"].items()
        }
        return encoder

    @property
    def column_names(self) -> list[str]:
        """The columns seen so far, in order."""
        return list(self._columns)

    def _open(self, series: pl.Series, *, born: bool) -> Column | None:
        """The column of that name, created when its kind is known."""
        column = self._columns.get(series.name)
        if column is None:
            kind = self._kind(series, whole=born)
            if kind is not None:
                column = Column(series.name, kind, born=born, limit=self._limit, buckets=self._buckets)
            self._columns[series.name] = column
        return column

    def _kind(self, series: pl.Series, *, whole: bool) -> Kind | None:
        """By all values of the sample, later by the first value alone: chunks must not matter."""
        kind = columns.decide(series, strings=self.strings)
        if kind is None or series.name in self._given:
            return self._given.get(series.name) if kind else None
        if whole:
            return kind
        present = columns.read(series, "text", strings=self.strings)[0].present
        return columns.decide(series.slice(int(np.argmax(present)), 1), strings=self.strings)

    def _known(self) -> list[Column]:
        return [column for column in self._columns.values() if column is not None]
