"""Labels and task ids as columns of a table: what each row says in these two places, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.tables import columns
from shoal.files.tables.batches import Problem
from shoal.files.targets import Labels

MAX_KNOWN = 10_000  # task ids that are kept for the next chunk


def decide_labels(labels: Labels, sample: pl.Series, *, strings: bool) -> None:
    """Whether labels are numbers, from the first rows, unless that is known."""
    if labels.numeric is None:
        labels.numeric = columns.decide(sample, strings=strings) in ("numeric", None)


def read_labels(labels: Labels, column: pl.Series, *, strings: bool) -> tuple[NDArray[Any], list[Problem]]:
    """(n,) labels as float64 or str, and the problems of the others (their entries mean nothing)."""
    kind: columns.Kind = "numeric" if labels.numeric else "text"
    values, _ = columns.read(column, kind, strings=strings)
    usable = values.present
    if labels.numeric:
        numbers = values.numbers
        usable = usable & (np.abs(numbers) <= columns.LARGEST)
        if usable.all() and labels.knows_all(numbers):
            return numbers, []
        found = pl.Series(numbers)
    else:
        found = values.texts[0]
    problems: list[Problem] = []
    if labels.kind == "binary":
        for label in labels.refuse(found.filter(pl.Series(usable)).unique(maintain_order=True).to_list()):
            rows = (found == label).fill_null(False).arg_true()
            problems += [(int(row), labels.third(label)) for row in rows]
    problems += [(int(row), _unusable(labels, column, int(row))) for row in np.flatnonzero(~usable)]
    if labels.numeric:
        return values.numbers, problems
    return found.fill_null("").to_numpy().astype(np.str_), problems


def _unusable(labels: Labels, column: pl.Series, row: int) -> str:
    value = column[row]
    found = "no label" if value is None or value == "" else f"label {value!r}"
    return f"{found} in column {column.name!r}, expected {labels.expected()}"


class Tasks:
    """The task ids of a stream, one string object each: dictionaries find the same object faster than an equal one.

    Ids are strings whatever the format, so that a model that learned from CSV can go on with Parquet. Only an
    empty field is a missing task: "NA" is a country.
    """

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._known: Any = None  # the ids as a polars type, unless they are too many
        self._objects = np.zeros(0, np.object_)

    def read(self, column: pl.Series) -> tuple[NDArray[np.object_], list[Problem]]:
        """(n,) task ids, and the problems of the rows without one."""
        if column.dtype.is_float():
            column = column.fill_nan(None)
        text = column.cast(pl.String)
        if self._known is not None:
            codes = text.cast(self._known, strict=False).to_physical()
            if codes.null_count() == 0:
                return self._objects[codes.to_numpy()], []
        text = text.fill_null("")
        missing = np.flatnonzero((text == "").to_numpy())
        where = f"no task in column {column.name!r}, expected a task id"
        return self._new(text), [(int(row), where) for row in missing]

    def _new(self, text: pl.Series) -> NDArray[np.object_]:
        """The ids of a column of which some are not known."""
        ids = text.unique(maintain_order=True)
        objects = [self._ids.setdefault(task, task) for task in ids.to_list()]
        self._known = None
        if len(self._ids) <= MAX_KNOWN:
            self._objects = np.array([*filter(None, self._ids)], np.object_)
            self._known = pl.Enum(self._objects.tolist())
        codes = text.cast(pl.Enum(ids)).to_physical().to_numpy()
        found: NDArray[np.object_] = np.array([*objects, None], np.object_)[codes]
        return found
