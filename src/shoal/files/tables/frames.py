"""`as_frame`: tables of other libraries and lists of dicts as polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from shoal.files.ids import id_of
from shoal.files.messages import HALF_LETTER
from shoal.files.tables.columnar import WITHOUT_MEANING


def as_table(X: Any, names: Sequence[str] = ()) -> pl.DataFrame:
    """As `as_frame`; an array, or a list of rows, becomes a frame, too.

    Parameters
    ----------
    names : sequence of str
        The columns of an array, if it has as many; by default "0", "1" and so on.
    """
    if isinstance(X, list) and X and isinstance(X[0], list | tuple):
        X = np.array(X, object)
    if not isinstance(X, np.ndarray):
        return as_frame(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape your data")
    names = names if len(names) == X.shape[1] else [str(j) for j in range(X.shape[1])]
    return pl.DataFrame([as_series(name, X[:, j]) for j, name in enumerate(names)])


def as_frame(X: Any) -> pl.DataFrame:
    """A polars, pandas or Arrow table, anything else that narwhals knows, or a list of dicts, as a polars frame."""
    if isinstance(X, pl.DataFrame):
        frame = X
    elif isinstance(X, Mapping):
        raise TypeError("a single dict is no table, expected a list of dicts")
    elif isinstance(X, Sequence) and not isinstance(X, str) and all(isinstance(row, Mapping) for row in X):
        names = dict.fromkeys(name for row in X for name in row)
        if X and not names:
            raise ValueError("the dicts have no keys, expected a value of at least one column")
        frame = pl.DataFrame([_series(str(name), [row.get(name) for row in X]) for name in names])
    else:
        try:
            table = nw.from_native(X, eager_only=True)
        except TypeError:
            raise TypeError(f"X is of type {type(X).__name__}, expected a data frame or a list of dicts") from None
        if table.implementation.is_pyarrow():
            frame = pl.DataFrame(X)
        else:
            frame = pl.DataFrame([_column(str(name), table[name]) for name in table.columns])
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in WITHOUT_MEANING:
            raise ValueError(f"column {name!r} is of type {kind}, expected numbers, text, booleans or dates")
    return frame


def as_series(name: str, values: Any) -> pl.Series:
    """A series of any library, an array or a list as a polars series."""
    column = nw.from_native(values, series_only=True, eager_only=True, pass_through=True)
    if isinstance(column, nw.Series):
        return pl.Series(name, values) if column.implementation.is_pyarrow() else _column(name, column)
    found = np.asarray(values)
    if found.ndim != 1:
        raise ValueError(f"{name} has the shape {found.shape}, expected (n,)")
    return pl.Series(name, np.ascontiguousarray(found)) if found.dtype.kind in "fiub" else _series(name, found.tolist())


def _column(name: str, column: Any) -> pl.Series:
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        values = column.to_numpy()
        is_exact = values.dtype.kind != "f" or column.dtype.is_float()  # floats do not hold all integers
        if values.dtype.kind in "fiub" and is_exact:
            return pl.Series(name, np.ascontiguousarray(values))
    if column.dtype in (nw.Datetime, nw.Date):
        return pl.Series(name, column.to_list(), strict=False)
    return _series(name, column.to_list())


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def _series(name: str, values: list[Any]) -> pl.Series:
    """Values of any types; if they differ, each as text."""
    values = [None if _is_nan(value) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float, bool}:
        values = [id_of(value) for value in values]
    try:
        return pl.Series(name, values, strict=False)
    except UnicodeEncodeError:
        raise ValueError(f"column {name!r}: {HALF_LETTER}") from None
