"""How numbers and missing values are written in text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?"]
LARGEST = 1e150  # squares of larger numbers overflow
ORNAMENTS = r"[\p{Sc}%\s'’_]|(?i:USD|EUR|GBP|CHF)"  # what may stand around and in a number for people


class Notation(NamedTuple):
    """How the values of a file are written."""

    strings: bool = True  # the format knows only strings, so that numbers have to be recognised
    decimal: str = "."
    date_format: str | None = None


def numbers(
    column: pl.Series, notation: Notation, *, lenient: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """float64 values (nan where missing; true is 1, false is 0), and the rows that hold no finite number.

    Parameters
    ----------
    lenient : bool
        Whether `$5`, `1,234` and `5 %` are numbers.
    """
    typed = column.dtype.is_numeric() or column.dtype == pl.Boolean
    if not typed:
        column = column.cast(pl.String)
        if notation.decimal == ",":  # a dot is no decimal mark then, and no number has it
            column = column.str.replace_all(".", "#", literal=True).str.replace(",", ".", literal=True)
    cast = column.cast(pl.Float64, strict=False)
    values = cast.to_numpy()  # null becomes nan
    bad = np.abs(values) > LARGEST
    if cast.null_count() > column.null_count():
        values = values.copy()
        unread = (cast.is_null() & column.is_not_null()).arg_true().to_numpy()
        text = column.gather(unread).str.strip_chars().str.to_lowercase()
        other = text.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
        if lenient:
            other = other.fill_null(_bare(text, "#" if notation.decimal == "," else ",").cast(pl.Float64, strict=False))
        values[unread] = other.to_numpy()
        bad[unread] = (other.is_null() & ~text.is_in([token.lower() for token in MISSING])).to_numpy()
        bad |= np.abs(values) > LARGEST
    return values, np.flatnonzero(bad)


def looks_like_numbers(found: pl.Series, notation: Notation, share: float) -> bool:
    """Whether so many of the values are numbers for people, such as `$5`."""
    return len(numbers(found, notation, lenient=True)[1]) <= (1 - share) * len(found)


def _bare(text: pl.Series, thousands: str) -> pl.Series:
    """Numbers without ornaments and marks of thousands; null if what stands there is no number.

    >>> _bare(pl.Series(["$1,234.50", "5 %", "1,23"]), ",").to_list()
    ['1234.50', '5', None]
    """
    bare = text.str.replace_all(ORNAMENTS, "")
    grouped = bare.str.contains(rf"^[-+]?(\d+|\d{{1,3}}({thousands}\d{{3}})+)(\.\d*)?$")
    return bare.str.replace_all(thousands, "", literal=True).set(~grouped.fill_null(False), None)
