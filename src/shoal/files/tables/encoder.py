"""Columns of a table become features on the fly: no pass over the data, no looking ahead.

Numbers are standardised by what was seen so far, odd ones clipped (`running`), categories and the parts of dates are
one-hot, words are hashed (`words`), a missing value is 0 (for a number: the mean) and sets the feature
`column=missing`. Features get their column of X in the order of the rows in which they first appear, so neither the
values nor the columns depend on how the rows are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from shoal.files.saved_state import State, check_state, reading_state
from shoal.files.tables import columns
from shoal.files.tables.batches import Problem
from shoal.files.tables.columns import Values
from shoal.files.tables.features import Cells, TextSlots, assemble, shallow
from shoal.files.tables.notation import Notation
from shoal.files.tables.one_row import OneRow
from shoal.files.tables.running import Column, Moments, scale, standardise
from shoal.files.tables.word_names import name_buckets
from shoal.files.tables.words import bags_of

CONSTANT = "constant"
RowName = Callable[[int], str]


class Mark(NamedTuple):
    """The columns that are known."""

    columns: dict[str, Column | None]
    n_texts: int


class StreamEncoder:
    """Frames to sparse features, a chunk at a time.

    Parameters
    ----------
    given : mapping of str to str
        Columns whose kind is given ("text", "category", "numeric" or "date"); that of the others is decided from the
        first rows.
    notation : Notation
        How the values are written.
    hash_bits : int
        The words of a column of text share 2**hash_bits features.
    keep_names : bool
        Whether hashed words keep their names.

    Examples
    --------
    >>> frame = pl.DataFrame({"delay": ["2", "4", ""], "carrier": ["UA", "B6", "UA"]})
    >>> encoder = StreamEncoder()
    >>> encoder.decide(frame)
    >>> values, problems = encoder.read(frame)
    >>> encoder.encode(values, 3).toarray()
    array([[1., 0., 1., 0., 0.],
           [1., 1., 0., 1., 0.],
           [1., 0., 1., 0., 1.]])
    >>> encoder.feature_names
    ['constant', 'delay', 'carrier=UA', 'carrier=B6', 'delay=missing']
    """

    def __init__(
        self, given: Mapping[str, str] | None = None, notation: Notation | None = None, hash_bits: int = 18,
        *, keep_names: bool = False,
    ) -> None:  # fmt: skip
        self.feature_names = [CONSTANT]
        self._width = 1  # of X
        self._n_rows = 0  # encoded to learn
        self.notation = notation or Notation()
        self._given = dict(given or {})
        self._restored = False
        self._texts = TextSlots(hash_bits, keep_names=keep_names)
        self._columns: dict[str, Column | None] = {}  # None: no value seen yet, so the kind is open

    def decide(self, sample: pl.DataFrame) -> None:
        """Choose the kind of every column from the first rows; a restored encoder knows them."""
        if self._restored:
            return
        for column in sample:
            self._open(column, self.notation, in_sample=True)

    def read(
        self, frame: pl.DataFrame, notation: Notation | None = None, *, learns: bool = True
    ) -> tuple[dict[str, Values], list[Problem]]:
        """The values of every column, and the rows (counted from 0) with a value that does not fit.

        No statistic changes yet, but a column that shows its first value is new. Without `learns`, only the columns
        that are known are read.
        """
        notation = notation or self.notation
        values: dict[str, Values] = {}
        problems: list[Problem] = []
        absent = [pl.lit(None, pl.String).alias(name) for name in self._columns.keys() - set(frame.columns)]
        if absent:
            frame = frame.with_columns(absent)
        for series in frame:
            column = self._open(series, notation, in_sample=False) if learns else self._columns.get(series.name)
            if column is not None:
                given = series.name in self._given
                values[column.name], found = columns.read(series, column.kind, notation, given=given)
                problems += found
        return values, problems

    def mark(self) -> Mark:
        """What `rollback` needs to undo what `read` opens from now on."""
        return Mark(dict(self._columns), len(self._texts.names))

    def rollback(self, mark: Mark) -> None:
        """Only the columns of then are known; nothing may have been encoded of the others."""
        self._columns = mark.columns
        self._texts.keep_first(mark.n_texts)

    def encode(
        self, values: dict[str, Values], n_rows: int, name_row: RowName | None = None, *, learns: bool = True
    ) -> csr_matrix:
        """(n_rows, len(feature_names)) features; what is remembered of the columns moves on, unless not `learns`.

        Parameters
        ----------
        name_row : function of int
            What one of these rows is called; by default "row" and its number among all rows so far.
        """
        begins = {column: column.begin(values[column.name]) for column in self._known() if column.name in values}
        found = [column for column, first in begins.items() if first < n_rows]
        if learns:
            for column, first in begins.items():
                column.count(values[column.name], first)
        laid_out = sorted(found, key=lambda column: column.kind != "numeric")  # those to be scaled side by side
        parts = [part for column in laid_out for part in column.parts]
        cells = Cells(np.empty((n_rows, len(parts)), np.int32), np.empty((n_rows, len(parts))))
        place: dict[Column, range] = {}
        first = 0
        for column in laid_out:
            place[column] = range(first, first + len(column.parts))
            first += len(column.parts)
            if column.kind != "numeric":
                part = cells.of(place[column].start, place[column].stop)
                column.encode(values[column.name], part, learns=learns)
        self._scale([column for column in laid_out if column.kind == "numeric"], values, cells, name_row, learns=learns)
        for column in found:
            if begins[column] > 0:
                cells.local[: begins[column], place[column]] = -1
        order = [part for column in found for part in (*place[column], *self._text_of(column))]
        texts = [self._texts_of(name, values, n_rows) for name in self._texts.names]
        bags = bags_of(texts, self._texts.bits)
        if learns and self._texts.words is not None:
            for i, (text, names) in enumerate(zip(texts, self._texts.words, strict=True)):
                name_buckets(text, bags.ends[i], bags.buckets, self._texts.index[i], names)
        X, appeared = assemble(parts, cells, self._texts, bags, order, self._width, learns=learns)
        self.feature_names += appeared
        self._width = X.shape[1]
        self._n_rows += n_rows if learns else 0
        return X

    def frozen(self) -> StreamEncoder:
        """The encoder as it is now, for `read` and `encode` without `learns`, while this one goes on in another thread.

        Nothing is copied that grows with the stream, so `feature_names` may get names of features it does not know.
        """
        found = shallow(self)
        found._columns = {name: column.frozen() if column else None for name, column in self._columns.items()}
        found._texts = self._texts.frozen()
        return found

    def one_row(self) -> OneRow:
        """What reads single rows as the columns are now; later encoding does not change it."""
        texts = dict(zip(self._texts.names, self._texts.index, strict=True))
        return OneRow(self._known(), texts, self._texts.bits, self._width, self._given)

    def notes(self) -> list[str]:
        """What was done with each column, a sentence each."""
        unused = [f"{name}: no value, not used" for name, column in self._columns.items() if column is None]
        clipped = [note for column in self._known() if (note := column.note_clipped())]
        return [column.note(self._texts.bits) for column in self._known()] + unused + clipped

    def to_dict(self) -> State:
        """The whole state for JSON; `from_dict` gives an encoder that goes on bit for bit."""
        saved = {name: column.to_dict() if column else None for name, column in self._columns.items()}
        texts = {"bits": self._texts.bits, **self._texts.to_dict()}
        state: State = {"given": dict(self._given), "columns": saved, "texts": texts}
        return {**state, "width": self._width, "rows": self._n_rows}

    @classmethod
    def from_dict(cls, state: State, notation: Notation | None = None) -> StreamEncoder:
        """The encoder as it was saved; the next file may have another format."""
        with reading_state():
            bits = state["texts"]["bits"]
            check_state(isinstance(bits, int) and 1 <= bits <= 24, "hash_bits")
            encoder = cls(state["given"], notation, bits, keep_names="words" in state["texts"])
            encoder._restored, encoder._n_rows = True, state["rows"]
            check_state(isinstance(encoder._n_rows, int), "rows")
            encoder._texts.restore(state["texts"])
            for name, saved in state["columns"].items():
                encoder._columns[name] = Column.from_dict(saved) if saved else None
            texts = [column.name for column in encoder._known() if column.kind == "text"]
            check_state(sorted(texts) == sorted(encoder._texts.names), "columns of text")
            check_state(all(name == column.name for name, column in encoder._columns.items() if column), "columns")
            encoder._name_features(state["width"])
        return encoder

    def _name_features(self, width: int) -> None:
        """Names in the order of X; every column of X must have exactly one feature, for loops index by them."""
        slots = [part for column in self._known() for part in column.parts]
        placed = [(int(at), part.names[i]) for part in slots for i, at in enumerate(part.index) if at >= 0]
        places = self._texts.index.ravel()
        placed += [(int(places[slot]), self._texts.name_of(slot)) for slot in np.flatnonzero(places >= 0).tolist()]
        placed.sort(key=lambda pair: pair[0])
        check_state([column for column, _ in placed] == list(range(1, width)), "columns of X")
        self.feature_names = [CONSTANT, *(name for _, name in placed)]
        self._width = width

    @property
    def column_names(self) -> list[str]:
        """The columns seen so far, in order."""
        return list(self._columns)

    @property
    def column_kinds(self) -> dict[str, str]:
        """What each column is that has shown a value."""
        return {column.name: column.kind for column in self._known()}

    def _scale(
        self, numeric: list[Column], values: dict[str, Values], cells: Cells, name_row: RowName | None, *, learns: bool
    ) -> None:
        if not numeric:
            return None
        moments = Moments(*np.stack([column.moments for column in numeric], axis=1))
        numbers = np.stack([values[column.name].numbers for column in numeric])
        if not learns:
            return scale(numbers, moments, cells)
        first_clipped = np.full(len(numeric), -1)
        standardise(numbers, moments, first_clipped, cells)
        for i, column in enumerate(numeric):
            column.moments = np.array([known[i] for known in moments])
            if first_clipped[i] >= 0:
                row = int(first_clipped[i])
                column.first_clipped = f"row {self._n_rows + row + 1:,}" if name_row is None else name_row(row)
        return None

    def _text_of(self, column: Column) -> list[int]:
        """The place of its words in the order of parts, if it has any."""
        return [-1 - self._texts.names.index(column.name)] if column.kind == "text" else []

    def _texts_of(self, name: str, values: dict[str, Values], n_rows: int) -> pl.Series:
        return values[name].texts[0] if name in values else pl.Series([None] * n_rows, dtype=pl.String)

    def _open(self, series: pl.Series, notation: Notation, *, in_sample: bool) -> Column | None:
        """The column of that name, created when its kind is known."""
        column = self._columns.get(series.name)
        if column is None:
            if not in_sample and len(series):  # by the first value alone: chunks must not matter
                present = columns.read(series, "category", notation)[0].present
                series = series.slice(int(np.argmax(present)), 1)
            given = self._given.get(series.name)
            kind = columns.decide(series, notation, given)
            if kind is not None:
                hint = columns.hint(series, notation) if kind in ("category", "text") and not given else ""
                column = Column(series.name, kind, in_sample=in_sample, hint=hint)
                if kind == "text":
                    self._texts.add(series.name)
            self._columns[series.name] = column
        return column

    def _known(self) -> list[Column]:
        return [column for column in self._columns.values() if column is not None]
