"""What a column means (numbers, dates or text), its values as such, and the rows that hold something else."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.tables.batches import Problem

Kind = Literal["numeric", "date", "text"]
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?"]
LARGEST = 1e150  # squares of larger numbers overflow
CLEAR_MAJORITY = 0.9  # of the values in the sample; the others are then bad rows, not a reason to call it text
DATE = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$"


class Values(NamedTuple):
    """The values of one column in one batch, as its kind says; only that kind's fields are set."""

    numbers: NDArray[np.float64]  # numeric: nan where missing
    texts: tuple[pl.Series, ...]  # text: the value; date: weekday, month, hour; null where missing
    present: NDArray[np.bool_]  # (n,)

    def keep(self, rows: NDArray[np.bool_]) -> Values:
        """The values of some of the rows."""
        mask = pl.Series(rows)
        numbers = self.numbers[rows] if len(self.numbers) else self.numbers
        return Values(numbers, tuple(text.filter(mask) for text in self.texts), self.present[rows])


NO_NUMBERS = np.zeros(0)


def decide(column: pl.Series, *, strings: bool) -> Kind | None:
    """The kind of a column, from a sample of it; None if it holds no value.

    Parameters
    ----------
    strings : bool
        Whether the format knows only strings, so that numbers and dates have to be recognised.

    Examples
    --------
    >>> decide(pl.Series(["1.5", "?", "-2"]), strings=True)
    'numeric'
    >>> decide(pl.Series(["2013-01-31", "2013-02-01 06:00"]), strings=True)
    'date'
    """
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return "numeric" if column.count() else None
    if column.dtype in (pl.Date, pl.Datetime):
        return "date" if column.count() else None
    column = column.cast(pl.String)
    found = column.filter(pl.Series(~_missing(column, strings=strings)))
    if len(found) == 0:
        return None
    if not strings:
        return "text"
    allowed = (1 - CLEAR_MAJORITY) * len(found)
    if len(numbers(found)[1]) <= allowed:
        return "numeric"
    return "date" if len(dates(found)[1]) <= allowed else "text"


def read(column: pl.Series, kind: Kind, *, strings: bool) -> tuple[Values, list[Problem]]:
    """The values of a column, and the rows (counted from 0) that hold something else."""
    if kind == "numeric":
        values, bad = numbers(column)
        expected = f"a finite number (text=[{column.name!r}] reads the column as text)"
        return Values(values, (), ~np.isnan(values)), _problems(column, bad, expected)
    if kind == "date":
        parts, bad = dates(column)
        return Values(NO_NUMBERS, parts, parts[0].is_not_null().to_numpy()), _problems(
            column,
            bad,
            f"a date such as 2013-01-31 or 2013-01-31 06:00 (text=[{column.name!r}] reads it as text)",
        )
    text = column.cast(pl.String)
    missing = _missing(text, strings=strings)
    if missing.sum() > text.null_count():
        text = text.set(pl.Series(missing), None)
    return Values(NO_NUMBERS, (text,), ~missing), []


def numbers(column: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """float64 values (nan where missing; true is 1, false is 0), and the rows that hold no finite number."""
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        column = column.cast(pl.String)
    cast = column.cast(pl.Float64, strict=False)
    values = cast.to_numpy()  # null becomes nan
    bad = np.abs(values) > LARGEST
    if cast.null_count() > column.null_count():
        values = values.copy()
        odd = (cast.is_null() & column.is_not_null()).arg_true().to_numpy()
        text = column.gather(odd).str.strip_chars().str.to_lowercase()
        other = text.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
        values[odd] = other.to_numpy()
        bad[odd] = (other.is_null() & ~text.is_in([token.lower() for token in MISSING])).to_numpy()
        bad |= np.abs(values) > LARGEST
    return values, np.flatnonzero(bad)


def dates(column: pl.Series) -> tuple[tuple[pl.Series, ...], NDArray[np.int64]]:
    """Weekday (1 is Monday), month and hour as strings, and the rows that hold no date.

    The hour is the one that the file shows, whatever its time zone; null where it gives only a day.
    """
    if column.dtype in (pl.Date, pl.Datetime):
        day, bad = column, np.zeros(0, np.int64)
        hour = column.dt.hour() if column.dtype == pl.Datetime else pl.Series([None] * len(column), dtype=pl.Int8)
    else:
        text = column.cast(pl.String).str.strip_chars()
        missing = text.is_null() | text.is_in(MISSING)
        day = text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
        hour = text.str.slice(11, 2).cast(pl.Int8, strict=False)
        right = text.str.contains(DATE) & day.is_not_null() & (hour.is_null() | (hour < 24))
        bad = (~missing & ~right.fill_null(False)).arg_true().to_numpy().astype(np.int64)
    parts = (day.dt.weekday(), day.dt.month(), hour)
    return tuple(part.cast(pl.String) for part in parts), bad


def _missing(text: pl.Series, *, strings: bool) -> NDArray[np.bool_]:
    """(n,) whether there is no value; the tokens of MISSING say so only in a text format."""
    missing = text.is_null()
    if strings:
        missing |= text.cast(pl.Enum(MISSING), strict=False).is_not_null()
    return missing.to_numpy()


def _problems(column: pl.Series, bad: NDArray[np.int64], expected: str) -> list[Problem]:
    return [(int(row), f"column {column.name!r} has {_shown(column[int(row)])}, expected {expected}") for row in bad]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
