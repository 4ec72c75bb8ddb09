"""The kind of a column (numbers, dates, times, categories or text), its values, and the rows that do not fit.

A column is text, that is words, if most of its values are distinct and have three words or more on average. Other
strings are categories. Dates are those of ISO 8601 and other forms that cannot be mistaken, in every format.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.ids import ids
from shoal.files.labels import CLEAR_MAJORITY
from shoal.files.tables.batches import Problem
from shoal.files.tables.values_in_text import (
    Notation,
    are_times,
    date_forms,
    date_parts,
    decimal_mark,
    hours_of_day,
    looks_like_numbers,
    numbers,
)

Kind = Literal["numeric", "date", "time", "category", "text", "forecast"]
KINDS: tuple[str, ...] = get_args(Kind)
NAME_OF_ID = r"(?i:(^|[\W_])(id|uuid|guid)$)|[a-z]I[dD]$"
FEWEST_IDS = 20  # rows in a sample
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


class Way(NamedTuple):
    """How a column is read."""

    kind: Kind
    form: str = ""  # numbers: "," if that is their decimal mark; dates and times: their form, unless it is of ISO 8601


def decide(column: pl.Series, notation: Notation, given: str | None = None) -> Way | None:
    """How a column is to be read, by a sample of it; None if it has no value.

    Parameters
    ----------
    given : str, optional
        The option that names the column. "date" allows times of day, too.

    Examples
    --------
    >>> decide(pl.Series(["1,5", "?", "-2"]), Notation())
    Way(kind='numeric', form=',')
    >>> decide(pl.Series(["2013-01-31", "2013-02-01 06:00"]), Notation())
    Way(kind='date', form='')
    >>> decide(pl.Series(["31.01.2013", "1.2.2013"]), Notation())
    Way(kind='date', form='%d.%m.%Y')
    >>> decide(pl.Series(["Late again, sorry", "The new gate is 9"]), Notation())
    Way(kind='text', form='')
    """
    if given == "forecast":  # also where the first rows have none
        return Way("forecast", form_of("numeric", column, notation))
    if column.count() == 0:
        return None
    if given in ("category", "text"):
        return Way(given)  # type: ignore[arg-type]
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return Way("numeric")
    if column.dtype in (pl.Date, pl.Datetime, pl.Time):
        return Way("time" if column.dtype == pl.Time else "date")
    found = _present(column, notation)
    if given == "numeric":
        return Way("numeric", form_of("numeric", column, notation))
    if len(found) == 0:
        return None
    least = CLEAR_MAJORITY * len(found)
    if given is None and notation.strings:
        form = form_of("numeric", column, notation)
        if len(found) - len(numbers(found, notation._replace(decimal=form or "."))[1]) >= least:
            return Way("numeric", form)
    form = form_of("date", column, notation, (notation.date_format or "") if given else "")
    if are_times(found, notation._replace(date_format=form or None)) if given or form else False:
        return Way("time", form)
    if given or form or len(found) - len(date_parts(found, Notation())[1]) >= least:
        return Way("date", form)
    mostly_distinct = found.n_unique() > len(found) / 2
    is_text = mostly_distinct and found.str.count_matches(WORD).mean() >= WORDS_IN_TEXT  # type: ignore[operator]
    return Way("text" if is_text else "category")


def form_of(kind: Kind, column: pl.Series, notation: Notation, known: str = "") -> str:
    """The form of the values, see `Way`; the known one if the sample does not tell."""
    found = _present(column, notation) if column.dtype == pl.String else column.clear().cast(pl.String)
    if len(found) == 0 or kind in ("category", "text"):
        return known
    if kind in ("numeric", "forecast"):
        tells = notation.decimal is not None or found.str.contains(r"\d[.,]\d").any()
        return known if not tells else "," if decimal_mark(found, notation) == "," else ""
    if notation.date_format is not None:
        parts_of = hours_of_day if are_times(found, notation) else date_parts
        with_form = len(found) - len(parts_of(found, notation)[1])
        if with_form >= CLEAR_MAJORITY * len(found):
            return notation.date_format
    if len(found) - len(date_parts(found, Notation())[1]) >= CLEAR_MAJORITY * len(found):
        return ""
    forms = date_forms(found, CLEAR_MAJORITY)
    return forms[0] if len(forms) == 1 else known


def _present(column: pl.Series, notation: Notation) -> pl.Series:
    """The values that are there, as text."""
    text = column.cast(pl.String)
    return text.filter(pl.Series(~missing(text, notation)))


def read(column: pl.Series, way: Way, notation: Notation, *, given: bool = False) -> tuple[Values, list[Problem]]:
    """The values of a column, and the problems of the rows (counted from 0) that do not fit its kind.

    Parameters
    ----------
    given : bool
        Whether an option names the column: then numbers may have currency signs and the like.
    """
    kind, form = way
    way_out = f"(category={[column.name]!r} takes its values as they are)"
    if kind in ("numeric", "forecast"):
        values, bad = numbers(column, notation._replace(decimal=form or "."), lenient=given)
        if column.dtype == pl.String:
            way_out = f"{way_out[:-1]}, missing= names words for missing values)"
        expected = "a finite number" if kind == "forecast" else f"a finite number {way_out}"
        problems = _problems(column, bad, expected)
        return Values(values, (), ~np.isnan(values)), problems
    dated = notation._replace(date_format=form or None)
    if kind == "time":
        hours, bad = hours_of_day(column, dated)
        problems = _problems(column, bad, f"a time of day such as 10:30 {way_out}")
        return Values(NO_NUMBERS, (hours,), hours.is_not_null().to_numpy()), problems
    if kind == "date":
        parts, bad = date_parts(column, dated)
        shown = form or "2013-01-31 or 2013-01-31 06:00 (date_format= names another form)"
        problems = _problems(column, bad, f"a date such as {shown} {way_out}")
        return Values(NO_NUMBERS, parts, parts[0].is_not_null().to_numpy()), problems
    text = ids(column)
    absent = missing(text, notation)
    if absent.sum() > text.null_count():
        text = text.set(pl.Series(absent), None)
    return Values(NO_NUMBERS, (text,), ~absent), []


def hint(column: pl.Series, notation: Notation, kind: str = "category") -> str:
    """The option that leaves out an id of rows, or reads a column of categories as the numbers or dates they look like.

    Examples
    --------
    >>> hint(pl.Series("id", range(2000, 2100)), Notation(), "numeric")
    "looks like an id of the rows, which ignore=['id'] does not learn"
    """
    if re.search(NAME_OF_ID, column.name) and _are_ids(column):
        return f"looks like an id of the rows, which ignore={[column.name]!r} does not learn"
    if kind not in ("category", "text"):
        return ""
    found = _present(column, notation)
    if len(found) == 0:
        return ""
    if found.str.contains(r"^\s*[\[{].*[\]}]\s*$").mean() >= CLEAR_MAJORITY:  # type: ignore[operator]
        return f"looks like nested JSON such as {shown(found[0])}, which is taken as it is"
    example = f"looks like {{}} such as {shown(found[0])}, which"
    mark = decimal_mark(found, notation)
    if looks_like_numbers(found, notation._replace(decimal=mark), CLEAR_MAJORITY):
        commas = mark == "." and notation.decimal is None and found.str.contains(r"^[-+]?\d+,\d+$").any()
        thousands = " as thousands, and decimal=',' as decimals" if commas else ""
        return f"{example.format('numbers')} numeric={[column.name]!r} would read{thousands}"
    if are_times(found, Notation()):
        return f"{example.format('times of day')} date={[column.name]!r} would read"
    forms = date_forms(found, CLEAR_MAJORITY)
    return f"{example.format('dates')} date_format= would read, as {' or '.join(forms)}" if forms else ""


def _are_ids(column: pl.Series) -> bool:
    """Is every value present, distinct and whole?"""
    if len(column) < FEWEST_IDS or column.null_count() or column.n_unique() < len(column):
        return False
    return not column.dtype.is_float() and not (
        column.dtype == pl.String and bool(column.str.contains(r"^[-+]?\d*[.,]\d+$").any())
    )


def missing(text: pl.Series, notation: Notation) -> NDArray[np.bool_]:
    """(n,) whether the value is missing; of typed formats, the words of `notation.missing` count alone."""
    found = np.zeros(len(text), bool) if text.null_count() == 0 else text.is_null().to_numpy()
    if notation.words:
        tokens = text.cast(pl.Enum(list(dict.fromkeys(notation.absent))), strict=False)
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
