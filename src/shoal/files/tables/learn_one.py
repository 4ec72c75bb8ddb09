"""`RowLearner`: one row of plain values becomes features, and its columns learn, without a data frame.

Features and columns are bit for bit those of `StreamEncoder.encode` for a frame of one row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from shoal.files.tables.assemble import Cells, TextSlots
from shoal.files.tables.column_kinds import Way
from shoal.files.tables.column_state import ZERO, Column, Moments, standardize
from shoal.files.tables.encode_one import Names, Row, Unread, number_of, parts_of, row_of, text_of
from shoal.files.tables.words import bag_of, name_buckets


class Part(NamedTuple):
    """A column, or the weekday, month or hour of a date."""

    order: int  # in which features that are new in one row get columns of X
    column: Column
    slots: Any
    places: dict[int, int]  # the column of X of each slot that has one


class RowLearner:
    """Learns single rows, as long as nothing else learns the columns: it keeps their moments side by side, and looks up
    the columns of X of their features in dictionaries.

    Parameters
    ----------
    columns : mapping of str to Column or None
        None: a column without a value yet.
    texts : TextSlots
        The columns of X of hashed words.
    absent : collection of str
        Words for missing values.
    names : Names
        The columns that a row should have, and others that it may have.
    """

    def __init__(
        self, columns: Mapping[str, Column | None], texts: TextSlots, absent: Collection[str], names: Names
    ) -> None:
        self._texts, self._absent, self.names = texts, frozenset(absent), names
        known = [column for column in columns.values() if column is not None and column.in_sample]
        self._waiting = [name for name, column in columns.items() if column is None or not column.in_sample]
        pairs = [(column, slots) for column in known for slots in column.parts]
        parts = [
            Part(i, column, slots, {slot: at for slot, at in enumerate(slots.index.tolist()) if at >= 0})
            for i, (column, slots) in enumerate(pairs)
        ]
        self._numeric = [part for part in parts if part.column.kind == "numeric"]
        self._choices = [part for part in parts if part.column.categories]
        self._forecasts = [(part.column, int(part.slots.index[0])) for part in parts if part.column.kind == "forecast"]
        self._bags = [part for part in parts if part.column.kind == "text"]
        self._names_of_numbers = [part.column.name for part in self._numeric]
        self._ways = [(c.name, Way(c.kind, c.form), len(c.categories)) for c in known if c.categories]
        n = len(self._numeric)
        moments = np.array([part.column.moments for part in self._numeric]).reshape(n, len(Moments._fields)).T.copy()
        for i, part in enumerate(self._numeric):
            part.column.moments = moments[:, i]
        self._moments, self._numbers, self._clipped = Moments(*moments), np.empty((n, 1)), np.full(n, -1)
        self._cells = Cells(np.empty((1, n), np.int32), np.empty((1, n)))

    def learn(self, row: Mapping[str, Any], width: int, number: int) -> tuple[Row, list[str]]:
        """The features of a row, and the names of those that appeared, which get the columns from `width` on.

        Raises Unread, and changes nothing, if a value is not of the usual kind of its column, or the first one of it.

        Parameters
        ----------
        number : int
            The number of the row among all, for notes.
        """
        get, absent = row.get, self._absent
        for waiting in self._waiting:
            if text_of(get(waiting), absent) is not None:
                raise Unread
        numbers = [number_of(get(column), absent) for column in self._names_of_numbers]
        texts = [text_of(get(part.column.name), absent) for part in self._bags]
        forecasts = [number_of(get(one.name), absent) for one, _ in self._forecasts]
        choices = list[str | None]()
        for column, way, n in self._ways:
            choices += parts_of(text_of(get(column), absent), way, n)

        found, new = {0: 1.0}, list[tuple[Part, int, Any]]()
        for part, given, value in zip(self._numeric, numbers, self._scaled(numbers, number), strict=True):
            slot = 0
            if given != given:
                part.column.n_missing += 1
                slot = 1
            if slot not in part.places:
                new.append((part, slot, value))
            elif value != 0.0:
                found[part.places[slot]] = value
        for (own, place), forecast in zip(self._forecasts, forecasts, strict=True):
            if forecast != forecast:
                own.n_missing += 1
            else:
                found[place] = forecast or ZERO
        for part, choice in zip(self._choices, choices, strict=True):
            slot = part.slots.learn(choice)
            if choice is None and slot >= 0:
                part.column.n_missing += 1
            if slot in part.places:
                found[part.places[slot]] = 1.0
            elif slot >= 0:
                new.append((part, slot, 1.0))
        for part, text in zip(self._bags, texts, strict=True):
            part.column.n_missing += text is None
            new.append((part, 0, 1.0) if text is None else (part, -1, text))
        names = self._placed(new, found, width)
        return row_of(found), names

    def _placed(self, cells: list[tuple[Part, int, Any]], found: dict[int, float], width: int) -> list[str]:
        """Add cells whose features may be new, slot -1 for the words of a text; the names of the new features."""
        names = list[str]()
        for part, slot, value in sorted(cells):
            if slot < 0:
                self._place_words(part.column.name, value, found, width, names)
                continue
            if slot not in part.places:
                part.places[slot] = width + len(names)
                names.append(part.slots.names[slot])
                part.slots.index = part.slots.index.copy()  # readers of rows to predict have the old one
                part.slots.index[slot] = part.places[slot]
            if value != 0.0:
                found[part.places[slot]] = value
        return names

    def _scaled(self, numbers: list[float], number: int) -> list[float]:
        """The values of the features of numbers; the moments learn."""
        self._numbers[:, 0] = numbers
        standardize(self._numbers, self._moments, self._clipped, self._cells)
        if max(self._clipped.tolist(), default=-1) >= 0:
            for i in np.flatnonzero(self._clipped >= 0).tolist():
                self._numeric[i].column.first_clipped = f"row {number:,}"
            self._clipped[:] = -1
        values: list[float] = self._cells.values[0].tolist()
        return values

    def _place_words(self, column: str, text: str, found: dict[int, float], width: int, names: list[str]) -> None:
        """Add the words of a text."""
        texts, buckets = self._texts, bag_of(text, self._texts.bits)
        i = texts.names.index(column)
        index = texts.index[i]
        if texts.words is not None:
            name_buckets([text], np.array([0, len(buckets)]), buckets, index, texts.words[i])
        for bucket in buckets[index[buckets] < 0].tolist():
            if index[bucket] < 0:  # it may occur twice
                index[bucket] = width + len(names)
                names.append(texts.name_of((i << texts.bits) + bucket))
        found |= {at: math.log1p(n) for at, n in Counter(index[buckets].tolist()).items()}
