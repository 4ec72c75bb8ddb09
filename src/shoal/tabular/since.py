"""The rows of a table since a row, or since a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.messages import unknown_name
from shoal.files.tables.label_columns import Clock
from shoal.files.tables.reader import SAMPLE
from shoal.files.tables.values_in_text import Notation


def column_of_times(named: str | None, kinds: Mapping[str, str]) -> str:
    """The column that says when a row was: the named one, or the first of dates. Raises ValueError if there is none."""
    found = named or next((name for name, kind in kinds.items() if kind == "date"), None)
    if found is None:
        raise ValueError("the model has no column of dates: give the number of a row")
    return found


class Since:
    """The rows since a time in a column, or, if this is None, since a row by its number.

    Parameters
    ----------
    first : the earliest time, as text, date or datetime, or the number of the first row
    column : str or None
    frame : the first rows, which say how times are written

    Raises
    ------
    ValueError
        If there is no such column, or `first` is no time as the column has them.
    """

    def __init__(self, first: Any, column: str | None, frame: pl.DataFrame, notation: Notation) -> None:
        self.column, self.first = column, first
        if column is None:
            return
        if column not in frame.columns:
            raise ValueError(unknown_name("X has no column", column, frame.columns))
        self._clock = Clock(column, frame[column].head(SAMPLE), notation)
        [self._start], problems = self._clock.read(pl.Series(column, [str(first)]))
        if problems:
            raise ValueError(f"{str(first)!r} is no time as column {column!r} has them")

    def of(self, frame: pl.DataFrame, number: int = 0) -> NDArray[np.bool_]:
        """(n,) whether each row belongs to the second part; `number` is the first one's. None without a time does."""
        if self.column is None:
            return np.asarray(np.arange(number, number + frame.height) >= self.first)
        return np.asarray(self._clock.read(frame[self.column])[0] >= self._start)

    def check(self, n_before: int, n_since: int) -> None:
        """Raise ValueError if a part has no rows."""
        if n_before == 0 or n_since == 0:
            what = f"row {self.first:,}" if self.column is None else f"{self.first} in column {self.column!r}"
            where = "before" if n_since == 0 else "since"
            raise ValueError(f"all rows are {where} {what}: there is nothing to compare")
