"""`RowLearner`: one row of plain values becomes features, and its columns learn, without a data frame.

Features and columns are bit for bit those of `StreamEncoder.encode` for a frame of one row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from shoal.files.tables.assemble import Cells, Slots, TextSlots
from shoal.files.tables.column_kinds import Way
from shoal.files.tables.column_state import Column, Moments, standardize
from shoal.files.tables.encode_one import Row, Unread, number_of, parts_of, row_of, text_of
from shoal.files.tables.words import bag_of, name_buckets


class RowLearner:
    """Learns single rows, as long as nothing else learns the columns: it keeps their moments side by side.

    Parameters
    ----------
    columns : mapping of str to Column or None
        None: a column without a value yet.
    texts : TextSlots
        The columns of X of hashed words.
    absent : collection of str
        Words for missing values.
    """

    def __init__(self, columns: Mapping[str, Column | None], texts: TextSlots, absent: Collection[str]) -> None:
        self._texts, self._absent = texts, frozenset(absent)
        self._columns = [column for column in columns.values() if column is not None and column.in_sample]
        self._waiting = [name for name, column in columns.items() if column is None or not column.in_sample]
        self._numeric = [column for column in self._columns if column.kind == "numeric"]
        self._others = [column for column in self._columns if column.kind != "numeric"]
        n = len(self._numeric)
        moments = np.array([column.moments for column in self._numeric]).reshape(n, len(Moments._fields)).T.copy()
        for i, column in enumerate(self._numeric):
            column.moments = moments[:, i]
        self._moments, self._numbers, self._clipped = Moments(*moments), np.empty((n, 1)), np.full(n, -1)
        self._cells = Cells(np.empty((1, n), np.int32), np.empty((1, n)))

    def learn(self, row: Mapping[str, Any], width: int, name: str) -> tuple[Row, list[str]]:
        """The features of a row, and the names of those that appeared, which get the columns from `width` on.

        Raises Unread, and changes nothing, if a value is not of the usual kind of its column, or the first one of it.

        Parameters
        ----------
        name : str
            The name of the row for notes.
        """
        get, absent, read = row.get, self._absent, list[Any]()
        for waiting in self._waiting:
            if text_of(get(waiting), absent) is not None:
                raise Unread
        numbers = [number_of(get(column.name), absent) for column in self._numeric]
        for column in self._others:
            text = text_of(get(column.name), absent)
            if text is not None and not text.isascii():
                text.encode()  # refuses half letters now
            if column.kind != "text":
                read.append(parts_of(text, Way(column.kind, column.form), len(column.categories)))
            else:
                read.append((text, None if text is None else bag_of(text, self._texts.bits)))
        scaled, others = self._scaled(numbers, name), iter(read)
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

        for column in self._columns:
            if column.kind == "numeric":
                slot, value = next(scaled)
                column.n_missing += slot
                place(column.slots, slot, value)
                continue
            parts = next(others)
            column.n_missing += parts[0] is None
            if column.kind != "text":
                for part, text in zip(column.categories, parts, strict=True):
                    if (slot := part.learn(text)) >= 0:
                        place(part, slot, 1.0)
            elif parts[0] is None:
                place(column.slots, 0, 1.0)
            else:
                self._place_words(column.name, parts, found, width, names)
        return row_of(found), names

    def _scaled(self, numbers: list[float], name: str) -> Any:
        """Slot and value of each number; the moments learn."""
        self._numbers[:, 0] = numbers
        standardize(self._numbers, self._moments, self._clipped, self._cells)
        if max(self._clipped.tolist(), default=-1) >= 0:
            for i in np.flatnonzero(self._clipped >= 0).tolist():
                self._numeric[i].first_clipped = name
            self._clipped[:] = -1
        return zip(self._cells.local[0].tolist(), self._cells.values[0].tolist(), strict=True)

    def _place_words(self, column: str, text: Any, found: dict[int, float], width: int, names: list[str]) -> None:
        """Add the words of a text, given with its hashed words."""
        texts, (_, buckets) = self._texts, text
        i = texts.names.index(column)
        index = texts.index[i]
        if texts.words is not None:
            name_buckets(text[:1], np.array([0, len(buckets)]), buckets, index, texts.words[i])
        for bucket in buckets[index[buckets] < 0].tolist():
            if index[bucket] < 0:  # it may occur twice
                index[bucket] = width + len(names)
                names.append(texts.name_of((i << texts.bits) + bucket))
        found |= {at: math.log1p(n) for at, n in Counter(index[buckets].tolist()).items()}
