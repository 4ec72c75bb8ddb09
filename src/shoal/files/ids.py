"""Ids of tasks and labels: one rule for all formats and for all routes of the service.

A text is its own id, so `07` and `7` are two. A whole number is its digits, whatever its type: pandas makes floats of a
column of integers with a gap, and its 3.0 is still 3. Other numbers are their shortest decimals, truth values are
`true` and `false`. CSV holds text only, so `3.0` stays `3.0` there.

`labels` decides which ids are learned as whole numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

LARGEST_EXACT = 1e38  # whole floats below it fit integers of 128 bits


def id_of(value: Any) -> str | None:
    """The id of a value of JSON or Python; None if it is missing.

    >>> [id_of(value) for value in (3, 3.0, "3.0", "03", 2**53 + 1, 0.1, 1e-7, True)]
    ['3', '3', '3.0', '03', '9007199254740993', '0.1', '0.0000001', 'true']
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float):
        return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else str(value)
    if value.is_integer():
        return str(int(value))
    return np.format_float_positional(value, trim="-") if math.isfinite(value) else str(value)


TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": "true".__eq__, "str": str}  # of ids


def type_of(column: pl.Series) -> str:
    """The type of ids of a column, by its name in `TYPES`."""
    kind = column.dtype
    return "int" if kind.is_integer() else "float" if kind.is_float() else "bool" if str(kind) == "Boolean" else "str"


def typed(text: str, type: str | None) -> Any:
    """An id in the type in which it came; the text itself if it is none of that type.

    >>> [typed("3", name) for name in ("int", "float", "str", None)], typed("none", "int")
    ([3, 3.0, '3', '3'], 'none')
    """
    try:
        return TYPES[type or "str"](text)
    except ValueError:
        return text


def ids(column: pl.Series) -> pl.Series:
    """The ids of a column of any type, as strings; null for missing values."""
    import polars as pl

    kind = column.dtype
    if kind.is_decimal():
        text = column.cast(pl.String)
        return text.str.replace(r"\.0*$|(\.\d*?)0+$", "${1}")
    if not kind.is_float():
        return column.cast(pl.String)
    column = column.fill_nan(None)
    small = column.set((column.abs() >= LARGEST_EXACT).fill_null(False), None)
    whole = small.cast(pl.Int128, strict=False)
    is_whole = (whole.cast(kind) == small).fill_null(False)
    if is_whole.sum() == len(column) - column.null_count():
        return whole.cast(pl.String)
    rest = column.filter(~is_whole & column.is_not_null())
    shortest = rest.cast(pl.String)
    odd = shortest.str.contains("e") | shortest.str.ends_with(".0")  # polars writes these in another way
    if odd.any():
        shortest = shortest.zip_with(~odd, shortest.map_elements(lambda text: id_of(float(text)), pl.String))
    places = (~is_whole & column.is_not_null()).arg_true()
    return whole.cast(pl.String).scatter(places, shortest)
