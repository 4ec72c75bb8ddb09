"""The kind of a column (numbers, dates, times, categories or text), its values, and the rows that do not fit.

A column is text, that is words, if most of its values are distinct and have three words or more on average. Other
strings are categories. Dates are those of ISO 8601, in every format.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.ids import ids
from shoal.files.labels import CLEAR_MAJORITY
from shoal.files.tables.batches import Problem
from shoal.files.tables.values_in_text import (
    MISSING,
    OTHER_DATE,
    Notation,
    are_times,
    date_parts,
    hours_of_day,
    looks_like_numbers,
    numbers,
)

Kind = Literal["numeric", "date", "time", "category", "text"]
KINDS: tuple[str, ...] = get_args(Kind)
WORDS_IN_TEXT = 3  # or more, on average
LETTERS_ALONE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # scripts without spaces
WORD = rf"{LETTERS_ALONE}|[\p{{L}}\p{{N}}]+"


class Values(NamedTuple):
    """The values of one column in one batch; only the fields of its kind are set."""

    numbers: NDArray[np.float64]  # numeric: nan where missing
    texts: tuple[pl.Series, ...]  # category, text: the value; date: weekday, month, hour; null where missing
    present: NDArray[np.bool_]  # (n,)

    def keep(self, rows: NDArray[np.bool_]) -> Values:
        """The values of some of the rows."""
        mask = pl.Series(rows)
        numbers = self.numbers[rows] if len(self.numbers) else self.numbers
        return Values(numbers, tuple(text.filter(mask) for text in self.texts), self.present[rows])


NO_NUMBERS = np.zeros(0)


def decide(column: pl.Series, notation: Notation, given: str | None = None) -> Kind | None:
    """The kind of a column by a sample of it; None if it has no value.

    Parameters
    ----------
    given : str, optional
        The option that names the column. "date" allows times of day, too.

    Examples
    --------
    >>> decide(pl.Series(["1.5", "?", "-2"]), Notation())
    'numeric'
    >>> decide(pl.Series(["2013-01-31", "2013-02-01 06:00"]), Notation())
    'date'
    >>> decide(pl.Series(["Late again, sorry", "The new gate is 9"]), Notation())
    'text'
    """
    if column.count() == 0:
        return None
    if given in ("numeric", "category", "text"):
        return given  # type: ignore[return-value]
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return "numeric"
    if column.dtype in (pl.Date, pl.Datetime):
        return "date"
    column = column.cast(pl.String)
    found = column.filter(pl.Series(~missing(column, notation)))
    if len(found) == 0:
        return None
    if given == "date":
        return "time" if are_times(found, notation) else "date"
    least = CLEAR_MAJORITY * len(found)
    if notation.strings and len(found) - len(numbers(found, notation)[1]) >= least:
        return "numeric"
    if len(found) - len(date_parts(found, Notation())[1]) >= least:
        return "date"
    mostly_distinct = found.n_unique() > len(found) / 2
    return "text" if mostly_distinct and found.str.count_matches(WORD).mean() >= WORDS_IN_TEXT else "category"  # type: ignore[operator]


def read(column: pl.Series, kind: Kind, notation: Notation, *, given: bool = False) -> tuple[Values, list[Problem]]:
    """The values of a column, and the problems of the rows (counted from 0) that do not fit its kind.

    Parameters
    ----------
    given : bool
        Whether an option names the column: then numbers may have currency signs and the like.
    """
    way_out = f"(category={[column.name]!r} takes its values as they are)"
    if kind == "numeric":
        values, bad = numbers(column, notation, lenient=given)
        problems = _problems(column, bad, f"a finite number {way_out}")
        return Values(values, (), ~np.isnan(values)), problems
    if kind == "time":
        hours, bad = hours_of_day(column, notation)
        problems = _problems(column, bad, f"a time of day such as 10:30 {way_out}")
        return Values(NO_NUMBERS, (hours,), hours.is_not_null().to_numpy()), problems
    if kind == "date":
        parts, bad = date_parts(column, notation if given else Notation())
        form = notation.date_format if given and notation.date_format else "2013-01-31 or 2013-01-31 06:00"
        problems = _problems(column, bad, f"a date such as {form} {way_out}")
        return Values(NO_NUMBERS, parts, parts[0].is_not_null().to_numpy()), problems
    text = ids(column)
    absent = missing(text, notation)
    if absent.sum() > text.null_count():
        text = text.set(pl.Series(absent), None)
    return Values(NO_NUMBERS, (text,), ~absent), []


def hint(column: pl.Series, notation: Notation) -> str:
    """The option that reads a column of categories as numbers or dates, if its values look like those."""
    text = column.cast(pl.String)
    found = text.filter(pl.Series(~missing(text, notation)))
    if len(found) == 0:
        return ""
    if found.str.contains(r"^\s*[\[{].*[\]}]\s*$").mean() >= CLEAR_MAJORITY:  # type: ignore[operator]
        return f"looks like nested JSON such as {shown(found[0])}, which is taken as it is"
    example = f"looks like {{}} such as {shown(found[0])}, which"
    if looks_like_numbers(found, notation, CLEAR_MAJORITY):
        return f"{example.format('numbers')} numeric={[column.name]!r} would read"
    if are_times(found, Notation()):
        return f"{example.format('times of day')} date={[column.name]!r} would read"
    if found.str.contains(OTHER_DATE).mean() >= CLEAR_MAJORITY:  # type: ignore[operator]
        return f"{example.format('dates')} date={[column.name]!r} would read, with date_format= such as %d/%m/%Y"
    return ""


def missing(text: pl.Series, notation: Notation) -> NDArray[np.bool_]:
    """(n,) whether the value is missing; MISSING counts in text formats only."""
    found = np.zeros(len(text), bool) if text.null_count() == 0 else text.is_null().to_numpy()
    if notation.strings:
        tokens = text.cast(pl.Enum(MISSING), strict=False)
        if tokens.null_count() < len(tokens):
            found = found | tokens.is_not_null().to_numpy()
    return found


def _problems(column: pl.Series, bad: NDArray[np.int64], expected: str) -> list[Problem]:
    values = [column[int(row)] for row in bad]
    again = [" (a second header? give files by their names)" if value == column.name else "" for value in values]
    return [
        (int(row), f"column {column.name!r} has {shown(value)}{header}, expected {expected}")
        for row, value, header in zip(bad, values, again, strict=True)
    ]


def shown(value: object) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
