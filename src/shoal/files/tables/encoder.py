"""`StreamEncoder`: the columns of a table become features on the fly, in one pass and without looking ahead.

Numbers are standardized by the rows so far and outliers clipped (`column_state`), categories and the parts of dates are
one-hot, words are hashed (`words`). A missing value is 0 (for a number: the mean) and sets the feature
`column=missing`. Features get their columns of X in the order of the rows in which they first appear. Therefore neither
values nor columns depend on the chunks. `encode_one` and `learn_one` are the same for single rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.files.messages import unknown_name
from shoal.files.options import CONSTANT
from shoal.files.saved_state import State, check_state, reading_state
from shoal.files.tables import column_kinds
from shoal.files.tables.assemble import Cells, TextSlots, assemble, shallow
from shoal.files.tables.batches import Problem
from shoal.files.tables.column_kinds import Values, Way
from shoal.files.tables.column_state import Column, Moments, scale, standardize
from shoal.files.tables.encode_one import Names, OneRow, Row
from shoal.files.tables.learn_one import RowLearner
from shoal.files.tables.meanings import Meaning, Setting, meanings_of, settings_of
from shoal.files.tables.unmatched import Unmatched
from shoal.files.tables.values_in_text import Notation
from shoal.files.tables.words import bags_of, name_buckets

RowName = Callable[[int], str]


class Mark(NamedTuple):
    """The known columns, for `rollback`."""

    columns: dict[str, Column | None]
    n_texts: int


class StreamEncoder:
    """Turns frames into sparse features, a chunk at a time.

    Parameters
    ----------
    given : mapping of str to str
        Columns whose kind is given ("text", "category", "numeric" or "date"); the first rows decide the others.
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
        self,
        given: Mapping[str, str] | None = None,
        notation: Notation | None = None,
        hash_bits: int = 18,
        *,
        keep_names: bool = False,
    ) -> None:
        self.feature_names, self._taken = [CONSTANT], {CONSTANT}
        self._width = 1  # of X
        self._n_rows = 0  # encoded to learn
        self.notation = notation or Notation()
        self._given = dict(given or {})
        self._restored = False
        self._dropped: list[str] = []
        self.unmatched = Unmatched()
        self._texts = TextSlots(hash_bits, keep_names=keep_names)
        self._columns: dict[str, Column | None] = {}  # None: no value yet, so the kind is open
        self.row_learner: RowLearner | None = None  # of the columns of now

    def decide(self, sample: pl.DataFrame) -> None:
        """Decide by the first rows how every column is read; of a restored encoder they say how it is written here.

        Forecasts have the first columns of X behind the constant, in the order in which `given` names them.
        """
        first = [name for name, kind in self._given.items() if kind == "forecast" and name in sample.columns]
        for series in sample.select(*first, pl.exclude(first)) if first else sample:
            column = self._columns.get(series.name) if self._restored else None
            if column is not None:
                column.form = column_kinds.form_of(column.kind, series, self.notation, column.form)
            elif not self._restored:
                self._open(series, self.notation, in_sample=True)

    def read(
        self, frame: pl.DataFrame, notation: Notation | None = None, *, learns: bool = True
    ) -> tuple[dict[str, Values], list[Problem]]:
        """The values of every column, and the problems of the rows (counted from 0) whose values do not fit.

        Changes no statistic, but adds columns that have their first value. Without `learns`, it reads known columns
        only.
        """
        notation = notation or self.notation
        values: dict[str, Values] = {}
        problems: list[Problem] = []
        absent = [pl.lit(None, pl.String).alias(name) for name in self.column_names if name not in frame.columns]
        if absent:
            frame = frame.with_columns(absent)
        for series in frame:
            column = self._open(series, notation, in_sample=False) if learns else self._columns.get(series.name)
            if column is not None:
                given = series.name in self._given
                values[column.name], found = column_kinds.read(
                    series, Way(column.kind, column.form), notation, given=given
                )
                problems += found
        return values, problems

    def drop(self, names: Collection[str]) -> None:
        """Read these columns no more. Their features keep their columns of X, where no row has a value again."""
        self._dropped += names
        self.row_learner = None

    def mark(self) -> Mark:
        """The known columns of now, for `rollback`."""
        return Mark(dict(self._columns), len(self._texts.names))

    def rollback(self, mark: Mark) -> None:
        """Forget all columns added since the mark; none of their values may have been encoded."""
        self._columns = mark.columns
        self._texts.keep_first(mark.n_texts)

    def encode(
        self, values: dict[str, Values], n_rows: int, name_row: RowName | None = None, *, learns: bool = True
    ) -> csr_matrix:
        """(n_rows, len(feature_names)) features; with `learns`, updates the statistics of the columns.

        Parameters
        ----------
        name_row : function of int
            The name of one of these rows; by default "row" and its number among all rows so far.
        """
        begins = {column: column.begin(values[column.name]) for column in self._known() if column.name in values}
        found = [column for column, first in begins.items() if first < n_rows]
        if learns:
            self.row_learner = None
            for column, first in begins.items():
                column.count(values[column.name], first)
        laid_out = sorted(found, key=lambda column: column.kind != "numeric")  # numbers side by side, for `_scale`
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
        numeric = [column for column in laid_out if column.kind == "numeric"]
        numbers = np.array([values[column.name].numbers for column in numeric])
        self._scale(numeric, numbers, cells, name_row, learns=learns)
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
        self._add_names(appeared)
        self._width = X.shape[1]
        self._n_rows += n_rows if learns else 0
        return X

    def begin_rows(self, tasks: Sequence[str] = (), not_features: Collection[str | None] = ()) -> RowLearner:
        """A new learner of single rows for `learn_one`; `tasks` and `not_features` as in `one_row`."""
        known = {name: self._columns[name] for name in self.column_names}
        names = Names(self.column_names, tasks, not_features)
        self.row_learner = RowLearner(known, self._texts, self.notation.words, names)
        return self.row_learner

    def learn_one(self, row: Mapping[str, Any]) -> Row:
        """The features of one row of plain values; updates the statistics of the columns, as `encode` does.

        Raises Unread, and changes nothing, if only a frame can be read.
        """
        learner = self.row_learner or self.begin_rows()
        found, appeared = learner.learn(row, self._width, self._n_rows + 1)
        self._add_names(appeared)
        self._width += len(appeared)
        self._n_rows += 1
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "row_learner": None}  # it writes into columns that a copy does not have

    def frozen(self) -> StreamEncoder:
        """A copy for `read` and `encode` without `learns`, while this encoder goes on learning in another thread.

        It copies nothing that grows with the stream, so its `feature_names` may get names of features it does not know.
        """
        self.row_learner = None  # it would write into the moments of the copy
        found = shallow(self)
        found._columns = {name: column.frozen() if column else None for name, column in self._columns.items()}
        found._texts = self._texts.frozen()
        return found

    def one_row(self, tasks: Sequence[str] = (), not_features: Collection[str | None] = ()) -> OneRow:
        """An encoder of single rows, with the columns of now; later encoding does not change it.

        `tasks` are the columns of the task, `not_features` those that are of neither, such as the label.
        """
        texts = dict(zip(self._texts.names, self._texts.index, strict=True))
        names = Names(self.column_names, tasks, not_features)
        absent = self.notation.words
        return OneRow(self._used(), texts, self._texts.bits, self._width, absent, names, self.unmatched)

    def meanings(self, values: dict[str, Values], row: int) -> dict[int, Meaning]:
        """Meanings of the features of a row, by their columns of X, in the words and units of its table."""
        return meanings_of(self._used(), self._texts, values, row)

    def settings(self, name: str, X: csr_matrix, values: Sequence[Any] | None = None) -> list[Setting]:
        """The values that a column may be set to, as features: the given ones, or those that are typical in rows X.

        Raises
        ------
        ValueError
            If there is no such column, it has no typical values, or a given value cannot be read.
        """
        column = next((one for one in self._used() if one.name == name), None)
        if column is None:
            raise ValueError(unknown_name("the model has no column", name, [one.name for one in self._used()]))
        if values is None:
            found = settings_of(column, X)
            if not found:
                why = "has words" if column.kind == "text" else "has no value in these rows"
                raise ValueError(f"column {name!r} {why}: say which values to compare (values=)")
            return found
        frame = pl.DataFrame({name: pl.Series(values, strict=False)})
        read, problems = self.read(frame, learns=False)
        if problems:
            raise ValueError(f"value {problems[0][0]} to compare: {problems[0][1]}")
        rows = self.encode(read, frame.height, learns=False)
        features = np.array([j for j, of in enumerate(self.feature_columns) if of == name], np.int64)
        rows.data[~np.isin(rows.indices, features)] = 0.0
        rows.eliminate_zeros()
        parts = [(rows.indices[first:last], rows.data[first:last]) for first, last in itertools.pairwise(rows.indptr)]
        return [Setting(value, features, *part) for value, part in zip(values, parts, strict=True)]

    def notes(self) -> list[str]:
        """How each column became features, a sentence each."""
        unused = [f"{name}: no value, not used" for name in self.column_names if self._columns[name] is None]
        clipped = [note for column in self._used() if (note := column.note_clipped())]
        return [column.note(self._texts.bits) for column in self._used()] + unused + clipped

    def to_dict(self) -> State:
        """The whole state, for JSON; the encoder of `from_dict` goes on bit for bit."""
        saved = {name: column.to_dict() if column else None for name, column in self._columns.items()}
        texts = {"bits": self._texts.bits, **self._texts.to_dict()}
        state: State = {"given": dict(self._given), "columns": saved, "texts": texts}
        dropped = {"dropped": list(self._dropped)} if self._dropped else {}
        return {**state, "width": self._width, "rows": self._n_rows, **dropped}

    @classmethod
    def from_dict(cls, state: State, notation: Notation | None = None) -> StreamEncoder:
        """The encoder of a saved state; the next file may have another format."""
        with reading_state():
            bits = state["texts"]["bits"]
            check_state(isinstance(bits, int) and 1 <= bits <= 24, "hash_bits")
            encoder = cls(state["given"], notation, bits, keep_names="words" in state["texts"])
            encoder._restored, encoder._n_rows = True, state["rows"]
            check_state(isinstance(encoder._n_rows, int), "rows")
            encoder._dropped = list(state.get("dropped", ()))
            check_state(set(encoder._dropped) <= state["columns"].keys(), "dropped columns")
            encoder._texts.restore(state["texts"])
            for name, saved in state["columns"].items():
                encoder._columns[name] = Column.from_dict(saved) if saved else None
            texts = [column.name for column in encoder._known() if column.kind == "text"]
            check_state(sorted(texts) == sorted(encoder._texts.names), "columns of text")
            check_state(all(name == column.name for name, column in encoder._columns.items() if column), "columns")
            encoder._name_features(state["width"])
        return encoder

    def _name_features(self, width: int) -> None:
        """Set the names in the order of X. Every column of X must have one feature, because loops index by it."""
        slots = [part for column in self._known() for part in column.parts]
        placed = [(int(at), part.names[i]) for part in slots for i, at in enumerate(part.index) if at >= 0]
        places = self._texts.index.ravel()
        placed += [(int(places[slot]), self._texts.name_of(slot)) for slot in np.flatnonzero(places >= 0).tolist()]
        placed.sort(key=lambda pair: pair[0])
        check_state([column for column, _ in placed] == list(range(1, width)), "columns of X")
        self.feature_names, self._taken = [CONSTANT], {CONSTANT}
        self._add_names([name for _, name in placed])
        self._width = width

    def _add_names(self, names: list[str]) -> None:
        """Append names of features; one that is taken, as by a column called `constant`, gets a number."""
        for name in names:
            own = next(filter(lambda tried: tried not in self._taken, _numbered(name)))
            self._taken.add(own)
            self.feature_names.append(own)

    @property
    def feature_columns(self) -> list[str | None]:
        """The column that each feature comes from; None of the constant."""
        found: list[str | None] = [None] * len(self.feature_names)
        parts = [(column.name, part.index) for column in self._known() for part in column.parts]
        for name, index in [*parts, *zip(self._texts.names, self._texts.index, strict=True)]:
            for j in index[index >= 0].tolist():
                found[j] = name
        return found

    @property
    def column_names(self) -> list[str]:
        """The columns so far, in order, without those that were dropped."""
        return [name for name in self._columns if name not in self._dropped] if self._dropped else list(self._columns)

    def compared(self, names: Collection[str]) -> tuple[list[str], list[str]]:
        """The known columns that are absent from `names`, and those of `names` that are new."""
        known, given = dict.fromkeys(self.column_names), set(names)
        return [name for name in known if name not in given], [name for name in names if name not in known]

    def matched(self, frame: pl.DataFrame, most_columns: int) -> pl.DataFrame:
        """The columns that are known, and new ones up to a number in all; the others are counted, and absent ones.

        Raises ValueError if columns must be those that are known, and are not.
        """
        absent, new = self.compared(frame.columns)
        unknown = new[max(most_columns - len(self.column_names), 0) :]
        self.unmatched.count(absent, unknown, frame.height)
        return frame.drop(unknown)

    @property
    def column_kinds(self) -> dict[str, str]:
        """The kind of each column that has had a value."""
        return {column.name: column.kind for column in self._used()}

    def _scale(
        self,
        numeric: list[Column],
        numbers: NDArray[np.float64],
        cells: Cells,
        name_row: RowName | None = None,
        *,
        learns: bool = True,
    ) -> None:
        if not numeric:
            return None
        moments = np.stack([column.moments for column in numeric], axis=1)
        if not learns:
            return scale(numbers, Moments(*moments), cells)
        first_clipped = np.full(len(numeric), -1)
        standardize(numbers, Moments(*moments), first_clipped, cells)
        for i, (column, row) in enumerate(zip(numeric, first_clipped.tolist(), strict=True)):
            column.moments = moments[:, i]
            if row >= 0:
                column.first_clipped = f"row {self._n_rows + row + 1:,}" if name_row is None else name_row(row)
        return None

    def _text_of(self, column: Column) -> list[int]:
        """The place of the column's words in the order of parts, if it is a text."""
        return [-1 - self._texts.names.index(column.name)] if column.kind == "text" else []

    def _texts_of(self, name: str, values: dict[str, Values], n_rows: int) -> pl.Series:
        return values[name].texts[0] if name in values else pl.Series([None] * n_rows, dtype=pl.String)

    def _open(self, series: pl.Series, notation: Notation, *, in_sample: bool) -> Column | None:
        """The column of that name; created when its kind can be decided."""
        column = self._columns.get(series.name)
        if column is None:
            if not in_sample and len(series):  # by the first value alone, so that chunks do not matter
                present = column_kinds.read(series, Way("category"), notation)[0].present
                series = series.slice(int(np.argmax(present)), 1)
            given = self._given.get(series.name)
            way = column_kinds.decide(series, notation, given)
            if way is not None:
                hint = "" if given else column_kinds.hint(series, notation, way.kind)
                column = Column(series.name, way, in_sample=in_sample, hint=hint)
                if way.kind == "text":
                    self._texts.add(series.name)
                if way.kind == "forecast":
                    column.slots.index[0] = self._width
                    self._add_names([series.name])
                    self._width += 1
            self._columns[series.name] = column
        return column

    def _used(self) -> list[Column]:
        return [column for column in self._known() if column.name not in self._dropped]

    def _known(self) -> list[Column]:
        return [column for column in self._columns.values() if column is not None]


def _numbered(name: str) -> Iterator[str]:
    """The name, then `name (2)`, `name (3)` and so on."""
    yield name
    yield from (f"{name} ({i})" for i in itertools.count(2))
