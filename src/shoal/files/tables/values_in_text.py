"""Numbers, dates, times of day and missing values as text writes them.

Numbers become float64. Dates become the parts that are features (weekday, month, hour) or, to compare rows, instants.
`decimal_mark` and `date_forms` find how a column writes them, by a sample of its values.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "None", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN",
           "-nan", "1.#IND", "1.#QNAN", "<NA>", "NULL", "n/a")  # fmt: skip
"""The words of pandas, and a question mark."""
ABSENT_IN_LOWER_CASE = [word.lower() for word in MISSING]
LARGEST = 1e150  # squares of larger numbers overflow
ORNAMENTS = r"[\p{Sc}%\s'’_]|(?i:USD|EUR|GBP|CHF)"  # around and in numbers such as `$5` and `1'000`
DATE = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$"
IN_DIGITS = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})([ T]\d{1,2}:\d\d(:\d\d)?( ?[AaPp][Mm])?)?")
IN_WORDS = ("%B %d, %Y", "%d %B %Y", "%d-%B-%Y", "%d-%B-%y", "%d. %B %Y", "%Y年%m月%d日")
FIRST_YEAR = 1000  # 31.12.25 is no date of the first century
TRIED = 3  # values that say which forms a date may have
TIME = r"^\d{1,2}:\d\d(:\d\d(\.\d+)?)?$"
SECOND = 1_000_000  # in microseconds
# The second differs from the first in its hour, the third in day, month, year and century.
MOMENTS = [datetime(2013, 2, 3, 13, 20, 30), datetime(2013, 2, 3, 14, 20, 30), datetime(1987, 11, 25, 13, 20, 30)]


class Notation(NamedTuple):
    """How a file writes its values."""

    strings: bool = True  # the format has strings only, so numbers have to be recognized
    decimal: str | None = None  # None: found for each column
    date_format: str | None = None  # None: found for each column
    missing: tuple[str, ...] = ()  # words for missing values beside MISSING
    points: bool = False  # numbers with a decimal point are read in any case, as JSON writes them

    @property
    def absent(self) -> tuple[str, ...]:
        """All words for missing values."""
        return MISSING + self.missing

    @property
    def words(self) -> tuple[str, ...]:
        """Those that are missing in columns of text, too, which typed formats have beside null."""
        return self.absent if self.strings else self.missing


def numbers(
    column: pl.Series, notation: Notation, *, lenient: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """float64 values (nan where missing; true is 1, false is 0), and the rows without a finite number.

    Parameters
    ----------
    lenient : bool
        Whether `$5`, `1,234` and `5 %` are numbers.
    """
    typed = column.dtype.is_numeric() or column.dtype == pl.Boolean
    written = column
    if not typed:
        written = column = column.cast(pl.String)
        if notation.decimal == ",":  # then no number has a dot
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
        words = written.gather(unread).str.strip_chars()
        if notation.points:
            other = other.fill_null(words.cast(pl.Float64, strict=False))
        values[unread] = other.to_numpy()
        absent = words.is_in(notation.absent) | words.str.to_lowercase().is_in(ABSENT_IN_LOWER_CASE)
        bad[unread] = (other.is_null() & ~absent).to_numpy()
        bad |= np.abs(values) > LARGEST
    return values, np.flatnonzero(bad)


def decimal_mark(found: pl.Series, notation: Notation) -> str:
    """The given mark; else a comma, if more of the values are numbers so. A comma that may mark thousands is none.

    >>> [decimal_mark(pl.Series(values), Notation()) for values in (["1,5", "2"], ["1,234", "17"], ["1.5", "2"])]
    [',', '.', '.']
    """
    if notation.decimal is not None or not found.str.contains(",", literal=True).any():
        return notation.decimal or "."
    unread = [len(numbers(found, notation._replace(decimal=mark), lenient=True)[1]) for mark in (".", ",")]
    return "," if unread[1] < unread[0] else "."


def looks_like_numbers(found: pl.Series, notation: Notation, share: float) -> bool:
    """Whether that share of the values are numbers, possibly with ornaments such as `$5`."""
    return len(found) - len(numbers(found, notation, lenient=True)[1]) >= share * len(found)


def _bare(text: pl.Series, thousands: str) -> pl.Series:
    """Numbers without ornaments and marks of thousands; null for other texts.

    >>> _bare(pl.Series(["$1,234.50", "5 %", "1,23"]), ",").to_list()
    ['1234.50', '5', None]
    """
    bare = text.str.replace_all(ORNAMENTS, "")
    grouped = bare.str.contains(rf"^[-+]?(\d+|\d{{1,3}}({thousands}\d{{3}})+)(\.\d*)?$")
    return bare.str.replace_all(thousands, "", literal=True).set(~grouped.fill_null(False), None)


def date_parts(column: pl.Series, notation: Notation) -> tuple[tuple[pl.Series, ...], NDArray[np.int64]]:
    """Weekday (1 is Monday), month and hour as strings, and the rows without a date.

    The hour is that of the file, whatever the time zone; null if the file gives only a day. Dates of ISO 8601 are read
    beside those of the notation.
    """
    if column.dtype in (pl.Date, pl.Datetime):
        day, bad = column, np.zeros(0, np.int64)
        hour = column.dt.hour() if column.dtype == pl.Datetime else _nothing(len(column))
    elif notation.date_format:
        text, absent = _stripped(column, notation)
        day = _parsed(text, notation.date_format)
        hour = day.dt.hour() if day.dtype == pl.Datetime else _nothing(len(column))
        if isinstance(day.dtype, pl.Datetime) and day.dtype.time_zone:  # polars converted to UTC; %s is in UTC
            hour = text.str.to_time(notation.date_format, strict=False).dt.hour().fill_null(hour)
            day = text.str.to_date(notation.date_format, strict=False).fill_null(day.dt.date())
        bad = (~absent & day.is_null()).arg_true().to_numpy().astype(np.int64)
    else:
        return _iso_parts(column.cast(pl.String), notation)
    parts = tuple(part.cast(pl.String) for part in (day.dt.weekday(), day.dt.month(), hour))
    if len(bad):
        iso, still_bad = _iso_parts(column.cast(pl.String).gather(bad), notation)
        parts, bad = tuple(part.scatter(bad, other) for part, other in zip(parts, iso, strict=True)), bad[still_bad]
    return parts, bad


def date_forms(found: pl.Series, share: float) -> list[str]:
    """The forms in which that share of the values are dates; two if day and month cannot be told apart.

    >>> [date_forms(pl.Series([day]), 0.9) for day in ("31.12.2025", "12/31/2025 9:30", "1/2/2025", "June 30, 2006")]
    [['%d.%m.%Y'], ['%m/%d/%Y %H:%M'], ['%d/%m/%Y', '%m/%d/%Y'], ['%B %d, %Y']]
    """
    forms: list[str] = []
    for value in found.head(TRIED).str.strip_chars().to_list():
        shape = IN_DIGITS.fullmatch(value)
        if shape is not None:
            forms += _forms_in_digits(shape)
        elif re.search(r"\d", value) and re.search(r"[^\W\d_]", value):
            forms += IN_WORDS
    text = found.str.strip_chars()
    return [form for form in dict.fromkeys(forms) if _parsed(text, form).count() >= share * len(text)]


def _forms_in_digits(shape: re.Match[str]) -> list[str]:
    """The forms that a date such as 31/12/2025 17:30 may have; one with dots begins with its day or its year."""
    first, mark, _, last, clock, seconds, half = shape.groups()
    year = "%Y" if len(last) == 4 or len(first) == 4 else "%y" if len(first) == len(last) == 2 else None
    if year is None:
        return []
    days = [f"%Y{mark}%m{mark}%d"] if len(first) == 4 else [f"%d{mark}%m{mark}{year}"]
    days += [f"%m{mark}%d{mark}{year}"] if mark != "." and len(first) < 4 else []
    time = f"{'%I' if half else '%H'}:%M{':%S' if seconds else ''}"
    half = half and half.replace(half.strip(), "%p")
    return [f"{day}{clock[0]}{time}{half or ''}" if clock else day for day in days]


def _iso_parts(column: pl.Series, notation: Notation) -> tuple[tuple[pl.Series, ...], NDArray[np.int64]]:
    """`date_parts` of ISO dates, in one query, because a query costs as much as a hundred rows."""
    text = pl.col(column.name).str.strip_chars()
    day = text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    hour = text.str.slice(11, 2).cast(pl.Int8, strict=False)
    right = text.str.contains(DATE) & day.is_not_null() & (hour.is_null() | (hour < 24))
    found = column.to_frame().select(
        day.dt.weekday().cast(pl.String).alias("weekday"),
        day.dt.month().cast(pl.String).alias("month"),
        hour.cast(pl.String).alias("hour"),
        (text.is_not_null() & ~text.is_in(notation.absent) & ~right.fill_null(False)).alias("bad"),
    )
    *texts, bad = found.get_columns()
    return tuple(texts), bad.arg_true().to_numpy().astype(np.int64)


def are_times(found: pl.Series, notation: Notation) -> bool:
    """Whether the values are times of day, not dates."""
    if notation.date_format:
        return not _shown(notation.date_format).day
    if found.dtype == pl.Time:
        return True
    return bool(found.str.contains(TIME).mean() >= 0.9)  # type: ignore[operator]


def hours_of_day(column: pl.Series, notation: Notation) -> tuple[pl.Series, NDArray[np.int64]]:
    """The hours of times of day as strings, and the rows without a time."""
    if column.dtype == pl.Time:
        return column.dt.hour().cast(pl.String), np.zeros(0, np.int64)
    text, absent = _stripped(column, notation)
    if notation.date_format:
        _shown(notation.date_format)
        hour = text.str.to_time(notation.date_format, strict=False).dt.hour().cast(pl.Int8)
    else:
        hour = text.str.extract(r"^(\d{1,2}):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?$").cast(pl.Int8, strict=False)
    wrong = ~absent & ~(hour < 24).fill_null(False)
    return hour.cast(pl.String), wrong.arg_true().to_numpy().astype(np.int64)


def instants(column: pl.Series, notation: Notation) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Microseconds since 1970 (UTC if the time zone is given), and the rows without a date."""
    if column.dtype in (pl.Date, pl.Datetime):
        day = column.cast(pl.Datetime("us"))
        bad = column.is_null()
    else:
        text, _ = _stripped(column, notation)
        if notation.date_format:
            day = _parsed(text, notation.date_format).cast(pl.Datetime("us"))
            bad = day.is_null()
        else:
            date = text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
            day = date.cast(pl.Datetime("us")) + (_clock(text) - _offset(text)).cast(pl.Duration("us"))
            bad = ~text.str.contains(DATE).fill_null(False) | date.is_null()
    return day.to_physical().cast(pl.Float64).to_numpy(), bad.arg_true().to_numpy().astype(np.int64)


def _clock(text: pl.Series) -> pl.Series:
    """Microseconds since midnight of ISO dates."""
    hour = text.str.slice(11, 2).cast(pl.Int64, strict=False).fill_null(0)
    minute = text.str.slice(14, 2).cast(pl.Int64, strict=False).fill_null(0)
    second = text.str.extract(r":\d\d:(\d\d(?:\.\d+)?)").cast(pl.Float64, strict=False).fill_null(0)
    return (hour * 60 + minute) * 60 * SECOND + (second * SECOND).round().cast(pl.Int64)


def _offset(text: pl.Series) -> pl.Series:
    """Microseconds by which the time zone of ISO dates is ahead of UTC."""
    zone = r"[T ].*([+-]\d\d):?(\d\d)$"
    hour = text.str.extract(zone, 1).cast(pl.Int64, strict=False).fill_null(0)
    minute = text.str.extract(zone, 2).cast(pl.Int64, strict=False).fill_null(0)
    sign = 1 - 2 * text.str.contains(r"[T ].*-\d\d:?\d\d$").fill_null(False).cast(pl.Int64)
    return (hour * 60 + sign * minute) * 60 * SECOND


def _stripped(column: pl.Series, notation: Notation) -> tuple[pl.Series, pl.Series]:
    """The values as text, and whether each is missing."""
    text = column.cast(pl.String).str.strip_chars()
    return text, text.is_null() | text.is_in(notation.absent)


def _parsed(text: pl.Series, form: str) -> pl.Series:
    """Dates in the form of `date_format`; null for other texts."""
    parse = text.str.to_datetime if _shown(form).hour else text.str.to_date
    day = parse(form, strict=False)
    return pl.select(pl.when(day.dt.year() >= FIRST_YEAR).then(day)).to_series()


class Shown(NamedTuple):
    """Whether dates in some form have a day and an hour."""

    day: bool
    hour: bool


@lru_cache
def _shown(form: str) -> Shown:
    """Whether `date_format` has a day and an hour: polars writes moments in it, so no directive is known here.

    Raises
    ------
    ValueError
        If polars does not know the form, or misreads the hours that it wrote.
    """
    moments = pl.Series(MOMENTS).dt.replace_time_zone("UTC")  # made here, not at import: forks need an unused polars
    try:
        text = moments.dt.strftime(form.replace("%#z", "%z")).str.strip_chars()  # %#z can only be read
    except pl.exceptions.PolarsError:
        raise _unusable(form, "a directive of it is not known") from None
    shown = Shown(day=text[0] != text[2], hour=text[0] != text[1])
    try:
        found = (text.str.to_datetime if shown.day else text.str.to_time)(form, strict=False).dt.hour()
    except pl.exceptions.PolarsError as error:
        raise _unusable(form, error) from None
    if shown.hour and not found.equals(moments.dt.hour()):
        raise _unusable(form, "hours need minutes, and those up to 12 need AM or PM")
    return shown


def _unusable(form: str, why: object) -> ValueError:
    return ValueError(f"date_format={form!r} cannot be used: {str(why).splitlines()[0]}")


def _nothing(n: int) -> pl.Series:
    return pl.Series([None] * n, dtype=pl.Int8)
