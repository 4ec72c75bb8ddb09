"""One row of plain values to features, without a frame: for answers that must not wait for one to be made.

The same features as `StreamEncoder.encode(..., learns=False)` gives a frame of one row, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.ids import id_of
from shoal.files.tables import dates
from shoal.files.tables.categories import Categories
from shoal.files.tables.notation import LARGEST, MISSING, Notation
from shoal.files.tables.running import Column
from shoal.files.tables.words import bags_of

ABSENT = frozenset(MISSING)
NUMBERS = frozenset((float, int, bool))  # true is 1


class Unread(Exception):
    """A value that takes a frame to be read, or to say what is wrong with it."""


class Number(NamedTuple):
    """A column of numbers: where it and its missing values stand in X, and how it is scaled."""

    name: str
    column: int
    missing: int
    mean: float
    deviation: float
    most: float  # deviations from the mean, either way


class Choice(NamedTuple):
    """A column of categories, or a part of a date."""

    categories: Categories
    columns: NDArray[np.int32]  # of X, of each slot, as it is now: what learns on replaces the array


class Row(NamedTuple):
    """The features of one row."""

    indices: NDArray[np.int32]  # (nnz,) increasing
    values: NDArray[np.float64]  # (nnz,)


class OneRow:
    """What is known of the columns at one moment, laid out for single rows.

    Parameters
    ----------
    columns : list of Column
        Those that have shown a value.
    texts : list of (name, index)
        Columns of text, and where their hashed words stand in X.
    bits : int
        Their words share 2**bits features.
    width : int
        Features of now.
    given : collection of str
        Columns that an option named, whose dates may be written in another way.
    """

    def __init__(
        self, columns: list[Column], texts: Mapping[str, NDArray[np.int32]], bits: int, width: int,
        given: Collection[str] = (),
    ) -> None:  # fmt: skip
        self._width, self._bits = width, bits
        self._numbers: list[Number] = []
        self._choices: list[tuple[str, str, list[Choice]]] = []  # name, kind, parts
        self._texts: list[tuple[str, int, NDArray[np.int32]]] = []  # name, column of a missing text, words
        for column in columns:
            if not column.in_sample:
                continue  # it begins with its first value, which nothing has learned yet
            if column.kind == "numeric":
                own, missing = column.slots.index.tolist()
                self._numbers.append(Number(column.name, own, missing, *column.scaling()))
            elif column.kind == "text":
                self._texts.append((column.name, int(column.slots.index[0]), texts[column.name]))
            else:
                kind = column.kind if column.name not in given or column.kind == "category" else "time"
                parts = [Choice(part, part.index) for part in column.categories]
                self._choices.append((column.name, kind, parts))

    def read(self, row: Mapping[str, Any]) -> Row:
        """The features of a row of JSON values.

        Raises
        ------
        Unread
            If a value is not what its column mostly has.
        """
        found: dict[int, float] = {0: 1.0}
        get = row.get
        for name, column, missing, mean, deviation, most in self._numbers:
            value: Any = get(name)
            if type(value) in NUMBERS:  # to look a type up takes a third of the time of asking with `isinstance`
                if not -LARGEST <= value <= LARGEST:
                    raise Unread
                if column >= 0 and deviation > 0.0 and (z := (value - mean) / deviation) != 0.0:
                    found[column] = min(max(z, -most), most)
            elif value is None or (isinstance(value, str) and value in ABSENT):
                if missing >= 0:
                    found[missing] = 1.0
            else:
                raise Unread
        for name, kind_of_column, parts in self._choices:
            text = _text(get(name))
            if kind_of_column == "category":
                values: tuple[str | None, ...] = (text,)
            elif text is None:
                values = (None,) * len(parts)
            elif kind_of_column == "date":
                values = _date(text)
            else:
                raise Unread
            for (categories, places), value in zip(parts, values, strict=True):
                slot = categories.slot_of(value)
                if 0 <= slot < len(places) and places[slot] >= 0:
                    found[int(places[slot])] = 1.0
        for name, missing, index in self._texts:
            text = _text(get(name))
            if text is None:
                if missing >= 0:
                    found[missing] = 1.0
                continue
            buckets = bags_of([pl.Series([text])], self._bits).buckets
            columns, counts = np.unique(index[buckets], return_counts=True)
            for at, count in zip(columns.tolist(), counts.tolist(), strict=True):
                if 0 <= at < self._width:
                    found[at] = math.log1p(count)
        nonzero = sorted(found)
        return Row(np.array(nonzero, np.int32), np.array([found[j] for j in nonzero]))


def _text(value: Any) -> str | None:
    """A JSON value as the text that a file would hold; None if it is missing."""
    if isinstance(value, str):
        return None if value in ABSENT else value
    if value is not None and type(value) not in NUMBERS:
        raise Unread
    return id_of(value)


@lru_cache(maxsize=4096)
def _date(text: str) -> tuple[str, ...]:
    """Weekday, month and hour of a date."""
    parts, bad = dates.parts(pl.Series([text]), Notation())
    if len(bad):
        raise Unread
    return tuple(part[0] for part in parts)
