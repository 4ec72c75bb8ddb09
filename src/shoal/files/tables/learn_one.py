"""`learn_one`: one row of plain values becomes features, and its columns learn, without a data frame.

Features and columns are bit for bit those of `StreamEncoder.encode` for a frame of one row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.files.tables.assemble import Cells, Slots, TextSlots
from shoal.files.tables.column_kinds import Way
from shoal.files.tables.column_state import Column
from shoal.files.tables.encode_one import Row, number_of, parts_of, row_of, text_of
from shoal.files.tables.words import bag_of, name_buckets

NO_WORDS = np.zeros(0, np.int32)
Scale = Callable[[list[Column], NDArray[np.float64], Cells], None]


class Read(NamedTuple):
    """The value of one column."""

    column: Column
    number: float
    parts: tuple[str | None, ...]  # of a category, a date or a text
    words: NDArray[np.int32]  # hashed, of a text

    @property
    def is_missing(self) -> bool:
        """Whether the row has none."""
        return self.parts[0] is None if self.parts else self.number != self.number


def read_one(columns: list[Column], row: Mapping[str, Any], absent: Collection[str], bits: int) -> list[Read]:
    """The values of a row. Raises Unread if one is not of the usual kind of its column."""
    found = []
    for column in columns:
        value = row.get(column.name)
        if column.kind == "numeric":
            read = Read(column, number_of(value, absent), (), NO_WORDS)
        else:
            text = text_of(value, absent)
            if text is not None and not text.isascii():
                text.encode()  # refuses half letters now
            if column.kind == "text":
                read = Read(column, 0.0, (text,), NO_WORDS if text is None else bag_of(text, bits))
            else:
                parts = parts_of(text, Way(column.kind, column.form), len(column.categories))
                read = Read(column, 0.0, parts, NO_WORDS)
        if column.in_sample or not read.is_missing:  # a column begins with its first value
            found.append(read)
    return found


def learn_one(values: list[Read], texts: TextSlots, width: int, scale: Scale) -> tuple[Row, list[str]]:
    """The features of a row, and the names of those that appeared, which get the columns from `width` on."""
    found, names = {0: 1.0}, list[str]()

    def place(part: Slots, slot: int, value: float) -> None:
        at = int(part.index[slot])
        if at < 0:
            at = width + len(names)
            names.append(part.names[slot])
            part.index = part.index.copy()  # readers of rows to predict have the old one
            part.index[slot] = at
        if value != 0.0:
            found[at] = value

    numeric = [read for read in values if read.column.kind == "numeric"]
    cells = Cells(np.empty((1, len(numeric)), np.int32), np.empty((1, len(numeric))))
    scale([read.column for read in numeric], np.array([[read.number] for read in numeric]), cells)
    numbers = zip(cells.local[0].tolist(), cells.values[0].tolist(), strict=True)
    for read in values:
        column = read.column
        column.in_sample = True
        column.n_missing += read.is_missing
        if column.kind == "numeric":
            place(column.slots, *next(numbers))
        elif column.kind != "text":
            for part, text in zip(column.categories, read.parts, strict=True):
                if (slot := part.learn(text)) >= 0:
                    place(part, slot, 1.0)
        elif read.parts[0] is None:
            place(column.slots, 0, 1.0)
        else:
            i = texts.names.index(column.name)
            index, buckets = texts.index[i], read.words
            if texts.words is not None:
                name_buckets(read.parts, np.array([0, len(buckets)]), buckets, index, texts.words[i])
            for bucket in buckets[index[buckets] < 0].tolist():
                if index[bucket] < 0:  # it may occur twice
                    index[bucket] = width + len(names)
                    names.append(texts.name_of((i << texts.bits) + bucket))
            found |= {at: math.log1p(n) for at, n in Counter(index[buckets].tolist()).items()}
    return row_of(found), names
