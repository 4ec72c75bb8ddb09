"""The columns of a table that are no features: labels, task ids, weights and times, checked row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.ids import ids, type_of
from shoal.files.labels import Labels
from shoal.files.tables import column_kinds
from shoal.files.tables.batches import Problem
from shoal.files.tables.values_in_text import LARGEST, Notation, decimal_mark, instants, numbers

EXACT = 2**53  # whole numbers below it are exact as float64
MAX_KNOWN = 10_000  # task ids that are looked up by polars


def decide_labels(labels: Labels, sample: pl.Series, notation: Notation) -> None:
    """Decide by the first rows the kind of the labels, and whether they are numbers, unless both are known."""
    is_text = not (notation.strings or sample.dtype.is_numeric() or sample.dtype == pl.Boolean)
    if is_text and labels.numeric is None:
        labels.numeric = False
    texts = _texts(sample, notation).drop_nulls()
    distinct = texts.unique(maintain_order=True)
    labels.decimal = decimal_mark(distinct, notation) if notation.strings else "."
    targets, bad = numbers(distinct, notation._replace(decimal=labels.decimal))
    found = dict(zip(distinct.to_list(), texts.unique_counts().to_list(), strict=True))
    labels.decide(found, None if len(bad) else targets.tolist())


def _texts(column: pl.Series, notation: Notation) -> pl.Series:
    """The labels as they are written; null where the label is missing."""
    text = ids(column)
    absent = column_kinds.missing(text, notation)
    return text.set(pl.Series(absent), None) if absent.sum() > text.null_count() else text


def read_labels(labels: Labels, column: pl.Series, notation: Notation) -> tuple[NDArray[Any], list[Problem]]:
    """(n,) labels as int64 or str, or targets as float64, and the problems of the rows without a usable one."""
    what = f"in column {column.name!r}"
    if labels.kind == "regression":
        targets, _ = numbers(column, notation._replace(decimal=labels.decimal))
        wrong = np.flatnonzero(~((targets >= labels.least) & (np.abs(targets) <= LARGEST))).tolist()
        return targets, [(row, f"{_found('label', column[row])} {what}, expected {labels.expected()}") for row in wrong]
    known = _known_labels(labels, column)
    if known is not None:
        return known, []
    texts = _texts(column, notation)
    distinct = texts.drop_nulls().unique(maintain_order=True)
    codes = np.array([*labels.codes(distinct.to_list()), -1])
    rows = texts.cast(pl.Enum(distinct)).to_physical().fill_null(len(distinct)).to_numpy()
    found = codes[rows]
    classes = np.array([*labels.classes, *([0] if labels.numeric else [""])])  # the last one stands for bad rows
    problems: list[Problem] = []
    for row in np.flatnonzero(found < 0).tolist():
        text = texts[row]
        if text is None:
            problems.append((row, f"{_found('label', column[row])} {what}, expected {labels.expected()}"))
        else:
            problems.append((row, labels.unexpected(text, column.name)))
    return classes[found], problems


def _known_labels(labels: Labels, column: pl.Series) -> NDArray[Any] | None:
    """A faster way for most columns: the labels, if all are known classes in their known spelling."""
    if column.null_count() or not labels.classes:
        return None
    classes, kind = np.array(labels.classes), column.dtype
    if kind == pl.String:
        codes = column.cast(pl.Enum(labels.written), strict=False)
        return None if codes.null_count() else classes[codes.to_physical().to_numpy()]
    is_exact = kind.is_signed_integer() or (kind == pl.Float64 and labels.numeric and np.abs(classes).max() < EXACT)
    if not labels.numeric or not is_exact:
        return None
    values = column.to_numpy()
    return values.astype(np.int64) if np.isin(values, classes).all() else None


def read_weights(column: pl.Series, notation: Notation) -> tuple[NDArray[np.float64], list[Problem]]:
    """(n,) weights, and the problems of the rows without a usable one."""
    mark = decimal_mark(column.drop_nulls(), notation) if column.dtype == pl.String else "."
    values, _ = numbers(column, notation._replace(decimal=mark))
    wrong = np.flatnonzero(~((values >= 0) & (values <= LARGEST)))
    where = f"in column {column.name!r}, expected a finite number >= 0"
    return values, [(row, f"{_found('weight', column[row])} {where}") for row in wrong.tolist()]


def _found(what: str, value: object) -> str:
    return f"no {what}" if value is None or value == "" else f"{what} {column_kinds.shown(value)}"


class Clock:
    """The times of the rows, which must not decrease.

    Attributes
    ----------
    last : float or None
        The latest time so far, in microseconds or as the number in the file.
    """

    def __init__(self, name: str, sample: pl.Series, notation: Notation, last: float | None = None) -> None:
        self.name, self.last = name, last
        way = column_kinds.decide(sample, notation, "date" if notation.date_format else None)
        if way is not None and way.kind in ("category", "text", "time"):
            raise ValueError(
                f"column {name!r} has {column_kinds.shown(sample.drop_nulls()[0])}, expected times: numbers, dates as"
                " 2013-01-31 06:00, or the form that date_format= gives"
            )
        self._numeric = way is not None and way.kind == "numeric"
        form = way.form if way is not None else ""
        self._notation = notation._replace(decimal=form or ".") if self._numeric else notation
        if way is not None and not self._numeric:
            self._notation = notation._replace(date_format=form or None)

    def read(self, column: pl.Series) -> tuple[NDArray[np.float64], list[Problem]]:
        """(n,) times, and the problems of the rows without one."""
        times, bad = (numbers if self._numeric else instants)(column, self._notation)
        wrong = np.isnan(times)
        wrong[bad] = True
        where = f"in column {self.name!r}, expected {'a number' if self._numeric else 'a date'}"
        return times, [(row, f"{_found('time', column[row])} {where}") for row in np.flatnonzero(wrong).tolist()]

    def check(self, times: NDArray[np.float64], column: pl.Series) -> list[Problem]:
        """The problems of the rows that are earlier than a row before them; updates `last`."""
        start = -np.inf if self.last is None else self.last
        latest = np.maximum.accumulate(np.concatenate([[start], times]))
        self.last = float(latest[-1]) if np.isfinite(latest[-1]) else None
        rows = np.flatnonzero(times < latest[:-1]).tolist()
        how = "than a row before it, expected rows in the order of time (sort= sorts them first)"
        return [(row, f"{self.name} {column_kinds.shown(column[row])} is earlier {how}") for row in rows]


class Tasks:
    """The task ids of a stream, one string object each: dictionaries find the same object faster than an equal one.

    Ids are strings in every format, so that a model can go on from CSV to Parquet. Only an empty field is a missing
    task: "NA" is a country. The values of several columns are joined like a line of CSV, so that ids stay distinct.

    Attributes
    ----------
    type : str or None
        The type of the ids where they were first read: "int", "float", "bool" or "str".
    """

    def __init__(self, names: Sequence[str], type: str | None = None) -> None:
        self._names, self.type = list(names), type
        self._ids: dict[str, str] = {}
        self._known: Any = None  # the ids as a polars type, unless they are too many
        self._objects = np.zeros(0, np.object_)

    def read(self, frame: pl.DataFrame) -> tuple[NDArray[np.object_], list[Problem]]:
        """(n,) task ids, and the problems of the rows without one."""
        if self.type is None and frame.height:
            self.type = type_of(frame[self._names[0]]) if len(self._names) == 1 else "str"
        found = [ids(frame[name]) for name in self._names]
        if len(found) == 1:
            text = found[0]
        else:
            text = pl.select(pl.concat_str([_quoted(part) for part in found], separator=",")).to_series()
        if self._known is not None:
            codes = text.cast(self._known, strict=False).to_physical()
            if codes.null_count() == 0:
                return self._objects[codes.to_numpy()], []
        problems: list[Problem] = []
        for name, part in zip(self._names, found, strict=True):
            missing = (part.fill_null("") == "").arg_true().to_list()
            problems += [(row, f"no task in column {name!r}, expected a task id") for row in missing]
        return self._new(text.fill_null("")), problems

    def _new(self, text: pl.Series) -> NDArray[np.object_]:
        """The ids of a column that has new ones."""
        ids = text.unique(maintain_order=True)
        objects = [self._ids.setdefault(task, task) for task in ids.to_list()]
        self._known = None
        if len(self._ids) <= MAX_KNOWN:
            self._objects = np.array([*filter(None, self._ids)], np.object_)
            self._known = pl.Enum(self._objects.tolist())
        codes = text.cast(pl.Enum(ids)).to_physical().to_numpy()
        found: NDArray[np.object_] = np.array([*objects, None], np.object_)[codes]
        return found


def _quoted(part: pl.Series) -> pl.Series:
    """The values as fields of CSV; an empty one is null, which makes the whole id null."""
    part = part.set((part == "").fill_null(False), None)
    special = part.str.contains(r'[",\r\n]').fill_null(False)
    escaped = pl.select(pl.concat_str([pl.lit('"'), part.str.replace_all('"', '""'), pl.lit('"')])).to_series()
    return part.zip_with(~special, escaped)
