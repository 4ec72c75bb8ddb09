"""`TableModel`: a learner and the reader of its rows. The service and the estimators of Python are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from shoal.engine.rounds import Chunk
from shoal.files.labels import Labels
from shoal.files.messages import unknown_name
from shoal.files.options import ReadOptions
from shoal.files.saved_state import check_state, reading_state
from shoal.files.tables.check_rows import Roles, RowReader
from shoal.files.tables.encode_one import Row
from shoal.files.tables.encoder import StreamEncoder
from shoal.files.tables.label_columns import Clock, decide_labels
from shoal.files.tables.meanings import Meaning
from shoal.files.tables.reader import KINDS, SAMPLE
from shoal.files.tables.values_in_text import Notation
from shoal.model_file import Reading, save_model
from shoal.tabular.explained import PartialDependence, dependence_of, unit_of
from shoal.tabular.reasons import Reasons, reasons_of

ROWS = 30_000  # encoded at once
OPTIONS = ("weight", "time", *KINDS, "ignore", "date_format", "decimal", "missing", "hash_bits", "keep_names")
"""How rows are read: the names are those of the program and of the estimators."""


class TableModel:
    """A learner, and how the rows of its tables are read.

    Parameters
    ----------
    learner : a learner of this library
    rows : RowReader
        Of rows to learn.
    reading : Reading
        What a model file says of reading rows; `rows` has its newer state.
    """

    def __init__(self, learner: Any, rows: RowReader, reading: Reading) -> None:
        self.learner, self.rows, self._reading = learner, rows, reading
        missing = tuple(reading.options.get("missing", ()))
        self.notation = Notation(
            False, None, reading.options.get("date_format"), missing, points=True
        )  # of typed tables
        self.encoder.notation = self.notation
        self.labels.bound(getattr(learner, "targets", None))

    @classmethod
    def loaded(cls, learner: Any, reading: Reading) -> TableModel:
        """The model of a file. Raises ValueError if the reading is damaged, or is not of a table."""
        with reading_state():
            check_state(reading.state["family"] == "table", "the format")
            rows = RowReader.from_dict(reading.state["reader"], Labels.from_dict(reading.state["labels"]))
            date_format = reading.options.get("date_format")
            last = reading.state["reader"].get("last_time")
            check_state(last is None or isinstance(last, float), "last time")
            check_state(date_format is None or isinstance(date_format, str), "date_format")
            check_state(all(isinstance(word, str) for word in reading.options.get("missing", ())), "missing")
        return cls(learner, rows, reading)

    @classmethod
    def begun(cls, learner: Any, options: ReadOptions, frame: pl.DataFrame, *, floats: bool = False) -> TableModel:
        """A new model; the first rows decide the kinds of columns and labels, and are not learned yet.

        `floats`: labels that are whole numbers came as floats.
        """
        given = {column: kind for kind in KINDS for column in getattr(options, kind)}
        missing = tuple(options.missing)
        notation = Notation(False, options.decimal, options.date_format, missing, points=True)
        encoder = StreamEncoder(given, notation, options.hash_bits, keep_names=options.keep_names)
        as_text = any(isinstance(label, str) for label in options.labels or ())
        rows = RowReader(encoder, Labels(options.kind, options.labels, as_text=as_text), Roles.of(options, None))
        decide_labels(rows.labels, frame[str(options.label)].head(SAMPLE), notation)
        encoder.decide(rows.roles.features(frame.head(SAMPLE)))
        saved = {"task": options.tasks, "label": options.label} | {name: getattr(options, name) for name in OPTIONS}
        saved = {name: list(value) if isinstance(value, tuple) else value for name, value in saved.items() if value}
        return cls(learner, rows, Reading(saved, {"family": "table", "reader": {"last_time": None, "floats": floats}}))

    @property
    def encoder(self) -> StreamEncoder:
        """The encoder of values as features."""
        return self.rows.encoder

    @property
    def roles(self) -> Roles:
        """The columns that are no features."""
        return self.rows.roles

    @property
    def labels(self) -> Labels:
        """The labels so far."""
        return self.rows.labels

    @property
    def floats(self) -> bool:
        """Whether labels that are whole numbers came as floats."""
        return bool(self._reading.state["reader"].get("floats"))

    @property
    def options(self) -> dict[str, Any]:
        """The options of reading, as the program has them."""
        return self._reading.options

    def reading(self) -> Reading:
        """How rows are read by now."""
        state = self._reading.state
        last = {} if self.rows.clock is None else {"last_time": self.rows.clock.last}
        reader = {**state["reader"], **self.rows.to_dict(), **last}
        return self._reading._replace(state={**state, "reader": reader, "labels": self.labels.to_dict()})

    def save(self, path: Path, shadows: Mapping[str, Any] | None = None) -> Path:
        """Write a model file, for any command of the program, the service and `shoal.load`."""
        return save_model(path, {type(self.learner).__name__: self.learner, **(shadows or {})}, self.reading())

    def drop_columns(self, names: Sequence[str]) -> None:
        """Read these columns no more. Raises ValueError if the model does not know one; then nothing changes."""
        self.rows.drop(names)
        options = dict(self.options)
        for kind in KINDS:
            options[kind] = [name for name in options.get(kind, ()) if name not in names]
        options["ignore"] = [*options.get("ignore", ()), *names]
        self._reading = self._reading._replace(options={name: value for name, value in options.items() if value != []})

    # ---- rows of Python --------------------------------------------------------------------------------------

    def to_learn(self, frame: pl.DataFrame) -> Chunk:
        """Rows with their labels as features; the statistics of the columns are updated.

        Raises
        ------
        ValueError
            If a row cannot be learned, by its number; then nothing changes.
        """
        time, clock = self.roles.time, self.rows.clock
        if time is not None and time not in frame.columns:
            raise ValueError(unknown_name("X has no column", time, frame.columns))
        if time is not None and clock is None:
            clock = Clock(time, frame[time].head(SAMPLE), self.notation, self._reading.state["reader"].get("last_time"))
            self.rows.clock = clock
        mark, last = self.rows.mark(), None if clock is None else clock.last
        try:
            checked = self._checked(self.rows, frame)
        except ValueError:
            self.rows.rollback(mark)
            if clock is not None:
                clock.last = last
            raise
        return _joined([self.rows.encode(one) for one in checked])

    def to_predict(self, frame: pl.DataFrame) -> Chunk:
        """Rows without labels as features; nothing changes. Raises ValueError for a row that cannot be read."""
        rows = RowReader(self.encoder, self.labels, self.roles, labeled=False, learns=False)
        return _joined([rows.encode(one) for one in self._checked(rows, frame)])

    # ---- reasons ---------------------------------------------------------------------------------------------

    def reasons(self, frame: pl.DataFrame, label: Any = None) -> list[Reasons]:
        """Why the forecast of each row is what it is. Raises ValueError as `to_predict`, or if it has no reasons."""
        rows = RowReader(self.encoder, self.labels, self.roles, labeled=False, learns=False)
        [checked] = self._checked(rows, frame)
        chunk = rows.encode(checked)
        return [self.reasons_of(chunk, i, self.encoder.meanings(checked.values, i), label) for i in range(frame.height)]

    def reasons_of(self, chunk: Chunk, i: int, meanings: Mapping[int, Meaning], label: Any = None) -> Reasons:
        """The same of a row of a chunk, whose features have these meanings."""
        X, task = chunk.X[i], None if chunk.task is None else chunk.task[i]
        names = self.roles.tasks, str(self.roles.label)
        return reasons_of(self.learner, Row(X.indices, X.data), task, meanings, names, self.as_given, label)

    def dependence(
        self, column: str, X: Any, task: Sequence[Any] | None, values: Sequence[Any] | None = None, label: Any = None
    ) -> PartialDependence:
        """The mean forecasts of encoded rows with a column set to values; `label` is one of the learner's."""
        settings = self.encoder.settings(column, X, values)
        average, by_task, label = dependence_of(self.learner, settings, X, task, label)
        unit = unit_of(self.learner, str(self.roles.label), None if label is None else self.as_given([label])[0])
        return PartialDependence(column, unit, X.shape[0], [one.value for one in settings], average, by_task)

    def as_given(self, labels: list[Any]) -> list[Any]:
        """Labels of the learner in the type in which they came."""
        found = self.labels.as_written(labels)
        return [float(label) for label in found] if self.floats else found

    def _checked(self, rows: RowReader, frame: pl.DataFrame) -> list[Any]:
        found, first = [], 0
        for piece in frame.iter_slices(ROWS) if frame.height else [frame]:
            checked, problems = rows.check(piece, self.notation)
            if problems:
                row, problem = min(problems)
                raise ValueError(f"row {first + row}: {problem}")
            found.append(checked)
            first += piece.height
        return found


def _joined(chunks: list[Chunk]) -> Chunk:
    """Chunks of growing width as one."""
    if len(chunks) == 1:
        return chunks[0]
    width = chunks[-1].X.shape[1]
    ends = np.cumsum([0, *(chunk.X.nnz for chunk in chunks)])
    starts = [chunk.X.indptr[:-1] + first for chunk, first in zip(chunks, ends.tolist(), strict=False)]
    data, indices = (np.concatenate([getattr(chunk.X, part) for chunk in chunks]) for part in ("data", "indices"))
    indptr = np.concatenate([*starts, ends[-1:]])
    X = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, width))
    y, task, weight = (
        None if getattr(chunks[0], part) is None else np.concatenate([getattr(chunk, part) for chunk in chunks])
        for part in ("y", "task", "weight")
    )
    return Chunk(X, y, task, weight=weight)
