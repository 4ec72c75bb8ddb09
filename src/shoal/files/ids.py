"""What a task or a label is called: one rule for all formats, and for all routes of the service.

Text is its own id, so `07` and `7` are two. A whole number is its digits, whatever type holds it: pandas makes floats
of a column of integers with a gap, and 3.0 there is still 3. Other numbers are their shortest decimals, truth values
are `true` and `false`. CSV knows text alone, so `3.0` is `3.0` there.

A label is learned as a whole number if that loses nothing of its id; see `whole_number`.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

INT64 = np.iinfo(np.int64)
LARGEST_EXACT = 1e38  # whole floats below it are integers of 128 bits
TRUTH = {"true": 1, "false": 0}
WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)(\.0)?")


def id_of(value: Any) -> str | None:
    """The id that a value of JSON or of Python is; None if it is missing.

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


def ids(column: pl.Series) -> pl.Series:
    """The ids of a column of any type, as strings; null where a value is missing."""
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
    odd = shortest.str.contains("e") | shortest.str.ends_with(".0")  # what polars writes in another way
    if odd.any():
        shortest = shortest.zip_with(~odd, shortest.map_elements(lambda text: id_of(float(text)), pl.String))
    places = (~is_whole & column.is_not_null()).arg_true()
    return whole.cast(pl.String).scatter(places, shortest)


def whole_number(text: str, decimal: str = ".") -> int | None:
    """The whole number that a label is; None if a number would lose something of how it is written.

    That is so of codes (`01234`), of what may be a version or a code (`1.50`, `1e3`), and of more than 64 bits. A plus,
    a `.0` (of a column that was one of floats) and blanks around are the notation of a number.

    >>> [whole_number(text) for text in ("1", "-1", "+1", "1.0", "True", str(2**53 + 1))]
    [1, -1, 1, 1, 1, 9007199254740993]
    >>> [whole_number(text) for text in ("01234", "1.50", "1e3", str(2**63), "spam")]
    [None, None, None, None, None]
    """
    bare = text.strip()
    if decimal == ",":
        bare = bare.replace(".", "#").replace(",", ".")
    if WHOLE.fullmatch(bare) is None:
        return TRUTH.get(bare.lower())
    number = int(bare.removesuffix(".0"))
    return number if INT64.min <= number <= INT64.max else None


def as_typed(text: str) -> int | float | bool | str:
    """The value that is written so, and in no other way, in typed formats: 1, 1.0, true; else the text.

    >>> [as_typed(text) for text in ("1", "1.0", "01", "true", "True")]
    [1, 1.0, '01', True, 'True']
    """
    if text in TRUTH:
        return bool(TRUTH[text])
    if WHOLE.fullmatch(text) is None or text.startswith("+"):
        return text
    number = float(text) if text.endswith(".0") else int(text)
    return number if str(number) == text else text
