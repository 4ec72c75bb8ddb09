"""`OneRow`: the features of one row of plain values without a data frame, which takes longer than the row itself.

They are bit for bit those of `StreamEncoder.encode(..., learns=False)` for a frame of one row. `learn_one` is the same
for a row to learn.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.ids import id_of
from shoal.files.tables.column_kinds import Way
from shoal.files.tables.column_state import ZERO, Categories, Column
from shoal.files.tables.unmatched import Unmatched, note
from shoal.files.tables.values_in_text import LARGEST, Notation, date_parts
from shoal.files.tables.words import bag_of

HALVES = re.compile("[\ud800-\udfff]")
NUMBERS = frozenset((float, int, bool))  # true is 1


class Unread(Exception):
    """Raised for a value that only the frame encoder can read or refuse."""


class Number(NamedTuple):
    """A column of numbers: its columns of X and its scaling."""

    name: str
    column: int  # of X, -1 for none yet
    missing: int  # the same for missing values
    mean: float
    deviation: float
    most: float  # deviations to which a value is clipped


class Choice(NamedTuple):
    """A column of categories, or a part of a date."""

    categories: Categories
    columns: NDArray[np.int32]  # of X, of each slot; learning replaces the array


class Names:
    """The columns of rows, compared with those of the model. Mostly a row has the names of the one before.

    Parameters
    ----------
    columns : list of str
        Columns that are features.
    tasks : sequence of str
        Columns of the task.
    not_features : collection of str
        Further ones that a row may have, such as the label.
    """

    def __init__(self, columns: list[str], tasks: Sequence[str], not_features: Collection[str | None]) -> None:
        self._columns, self._not_features = columns, not_features
        self.usual = {*columns, *tasks}
        self._latest: tuple[list[str], list[str], list[str], str | None] = ([], [], [], None)

    def compared(self, row: Mapping[str, Any]) -> tuple[list[str], list[str], str | None]:
        """The columns that a row lacks, those of it that are unknown, and the note on them."""
        names, latest = [*row], self._latest
        if names != latest[0]:
            absent = [name for name in self._columns if name not in row]
            unknown = [name for name in names if name not in self.usual and name not in self._not_features]
            latest = self._latest = names, absent, unknown, note(absent, unknown)
        return latest[1:]


class Row(NamedTuple):
    """The features of one row."""

    indices: NDArray[np.int32]  # (nnz,) increasing
    values: NDArray[np.float64]  # (nnz,)


class OneRow:
    """Turns single rows into features, with the columns of one moment.

    Parameters
    ----------
    columns : list of Column
        Columns that have had a value.
    texts : mapping of str to (2**bits,) array
        For each column of text, the columns of X of its hashed words.
    bits : int
        Their words share 2**bits features.
    width : int
        Number of features.
    absent : collection of str
        Words for missing values.
    names : Names
        The columns that a row should have, and others that it may have.
    unmatched : Unmatched
        Counts rows that lack some or have further ones.
    """

    def __init__(
        self,
        columns: list[Column],
        texts: Mapping[str, NDArray[np.int32]],
        bits: int,
        width: int,
        absent: Collection[str],
        names: Names,
        unmatched: Unmatched,
    ) -> None:
        self._width, self._bits, self._absent = width, bits, frozenset(absent)
        self._names, self._unmatched = names, unmatched
        self._numbers: list[Number] = []
        self._forecasts: list[tuple[str, int]] = []  # name, column of X
        self._choices: list[tuple[str, Way, list[Choice]]] = []
        self._texts: list[tuple[str, int, NDArray[np.int32]]] = []  # name, column of a missing text, words
        for column in columns:
            if not column.in_sample:
                continue  # its first value has not been learned yet
            if column.kind == "numeric":
                own, missing = column.slots.index.tolist()
                self._numbers.append(Number(column.name, own, missing, *column.scaling()))
            elif column.kind == "forecast":
                self._forecasts.append((column.name, int(column.slots.index[0])))
            elif column.kind == "text":
                self._texts.append((column.name, int(column.slots.index[0]), texts[column.name]))
            else:
                parts = [Choice(part, part.index) for part in column.categories]
                self._choices.append((column.name, Way(column.kind, column.form), parts))

    def read(self, row: Mapping[str, Any]) -> Row:
        """The features of a row of JSON values.

        Raises
        ------
        Unread
            If a value is not of the usual kind of its column.
        ValueError
            If the row lacks a column or has a further one, and that is not allowed.
        """
        if row.keys() != self._names.usual:
            absent, unknown, _ = self._names.compared(row)
            self._unmatched.count(absent, unknown, 1)
        found: dict[int, float] = {0: 1.0}
        get = row.get
        for name, column, missing, mean, deviation, most in self._numbers:
            value: Any = get(name)
            if type(value) in NUMBERS and value == value:  # three times as fast as `isinstance`
                if not -LARGEST <= value <= LARGEST:
                    raise Unread
                if column >= 0 and deviation > 0.0 and (z := (value - mean) / deviation) != 0.0:
                    found[column] = z if -most <= z <= most else math.copysign(most, z)
            elif value is None or value != value or (isinstance(value, str) and value in self._absent):
                if missing >= 0:
                    found[missing] = 1.0
            else:
                raise Unread
        for name, column in self._forecasts:
            if (forecast := number_of(get(name), self._absent)) == forecast:
                found[column] = forecast or ZERO
        for name, way, parts in self._choices:
            values = parts_of(text_of(get(name), self._absent), way, len(parts))
            for (categories, places), value in zip(parts, values, strict=True):
                slot = categories.slot_of(value)
                if 0 <= slot < len(places) and places[slot] >= 0:
                    found[int(places[slot])] = 1.0
        for name, missing, index in self._texts:
            text = text_of(get(name), self._absent)
            if text is None:
                if missing >= 0:
                    found[missing] = 1.0
                continue
            counts = Counter(index[bag_of(text, self._bits)].tolist())
            found |= {at: math.log1p(n) for at, n in counts.items() if 0 <= at < self._width}
        return row_of(found)

    def note(self, row: Mapping[str, Any]) -> str | None:
        """Which columns the row lacks, and which are not known; None if it has those of the model."""
        return None if row.keys() == self._names.usual else self._names.compared(row)[2]


def row_of(found: Mapping[int, float]) -> Row:
    """The features as arrays."""
    nonzero = sorted(found)
    return Row(np.array(nonzero, np.int32), np.array([found[j] for j in nonzero]))


def number_of(value: Any, absent: Collection[str]) -> float:
    """A JSON value as a number; nan if it is missing. Raises Unread for all else."""
    if type(value) in NUMBERS and -LARGEST <= value <= LARGEST:
        return float(value)
    if value is None or value != value or (isinstance(value, str) and value in absent):
        return math.nan
    raise Unread


def text_of(value: Any, absent: Collection[str]) -> str | None:
    """A JSON value as the text in a file; None if it is missing."""
    if isinstance(value, str):
        return None if value in absent else whole(value)
    if value is None or value != value:
        return None
    if type(value) not in NUMBERS:
        raise Unread
    return id_of(value)


def whole(text: str) -> str:
    """The text itself. Raises Unread if it has half of a surrogate pair, which a frame refuses."""
    if not text.isascii() and HALVES.search(text):
        raise Unread
    return text


def parts_of(text: str | None, way: Way, n: int) -> tuple[str | None, ...]:
    """The n values of a category or of a date."""
    if text is None or way.kind == "category":
        return (text,) * n
    if way.kind != "date":
        raise Unread
    return _date(text, way.form)


@lru_cache(maxsize=4096)
def _date(text: str, form: str) -> tuple[str, ...]:
    """Weekday, month and hour of a date."""
    parts, bad = date_parts(pl.Series([text]), Notation(date_format=form or None))
    if len(bad):
        raise Unread
    return tuple(part[0] for part in parts)
