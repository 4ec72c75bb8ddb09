"""The served model: a learner, its shadows, and the readers of its rows. It knows no threads and no log.

Shadows are the same learner without sharing ("independent") and with one model for all tasks ("pooled"). They learn the
same rows, so that the page shows what sharing is worth.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk, form_rounds
from shoal.evaluation.predictions import Predictions, predict_chunk
from shoal.files.messages import unknown_name
from shoal.files.tables.check_rows import Checked, RowReader
from shoal.files.tables.encode_one import OneRow
from shoal.files.tables.label_columns import Tasks
from shoal.files.tables.unmatched import note
from shoal.files.tables.values_in_text import Notation
from shoal.learner import Learner, weights_for
from shoal.model.explanations import Turn
from shoal.model.slicing import rows_of
from shoal.model.tasks import TaskIndex
from shoal.model_file import knows_no_table, load_baselines, load_model
from shoal.serve.contract import Fault, Refused, Rows
from shoal.tabular.reasons import Reasons
from shoal.tabular.table_model import TableModel

HINT = re.compile(r" \([a-z_]+=.*\)$")  # names an option of the readers, which requests do not have


class Readers(NamedTuple):
    """Readers of rows to predict, with the columns of one moment; learning does not change them."""

    one_row: OneRow
    table: RowReader


class Learned(NamedTuple):
    """Learned rows with the decision values from before; NaN for refused rows."""

    times: FloatArray  # when each was accepted
    tasks: Sequence[str | None]
    truth: NDArray[Any]
    decisions: FloatArray
    shadows: dict[str, FloatArray]


class ServedModel:
    """A model file, in memory.

    Parameters
    ----------
    path : Path
        A file that `shoal run --save` wrote from a table, or a snapshot.
    with_shadows : bool
        Whether the file's shadows learn too.

    Raises
    ------
    ValueError
        If the file is damaged, or does not say how rows of a table are read.
    """

    def __init__(self, path: Path, *, with_shadows: bool = True) -> None:
        learner, reading = load_model(path)
        if reading is None or reading.state.get("family") != "table":
            raise knows_no_table(path, learner)
        self._table = TableModel.loaded(learner, reading)
        self.learner, self.rows_to_learn = self._table.learner, self._table.rows
        self.encoder, self.roles, self.labels = self._table.encoder, self._table.roles, self._table.labels
        self.shadows: dict[str, Learner] = load_baselines(path) if with_shadows else {}
        self._written = self._table.notation._replace(strings=True)
        self.encoder.notation = self._written

    def save(self, path: Path) -> Path:
        """Write a model file for any command of the program, and for `shoal.load`."""
        return self._table.save(path, self.shadows)

    # ---- rows in -------------------------------------------------------------------------------------------

    def check(self, rows: Rows) -> tuple[Checked, list[Fault]]:
        """Check rows to learn; return the valid ones and the faults of the others. The model does not change."""
        self._refuse_missing(rows.frame, labeled=True)
        checked, problems = self.rows_to_learn.check(rows.frame, self._notation(rows))
        return checked, [self._fault(row, sentence) for row, sentence in problems]

    def readers(self) -> Readers:
        """New readers of rows to predict. Nothing may be encoded until this returns."""
        table = RowReader(self.encoder.frozen(), self.labels, self.roles, labeled=False, learns=False)
        return Readers(table.one_row(), table)

    def rows_of(self, rows: Rows, reader: RowReader) -> Chunk:
        """Read rows to predict. Raises Refused if one cannot be read."""
        return reader.encode(self._to_predict(rows, reader))

    def reasons_of(self, rows: Rows, reader: RowReader, turn: Turn) -> list[Reasons]:
        """Why the forecast of each row is what it is; the model is read in turns. Raises Refused, also for a learner
        whose decisions are no sums."""
        checked = self._to_predict(rows, reader)
        chunk, found = reader.encode(checked), []
        for i in range(rows.frame.height):
            meanings = reader.encoder.meanings(checked.values, i)
            try:
                with turn():
                    found.append(self._table.reasons_of(chunk, i, meanings))
            except ValueError as error:
                raise Refused(Fault(i, None, str(error))) from None
        return found

    def _to_predict(self, rows: Rows, reader: RowReader) -> Checked:
        self._refuse_missing(rows.frame, labeled=False)
        try:
            checked, problems = reader.check(rows.frame, self._notation(rows))
        except ValueError as error:  # columns, where they must be those of the model
            raise Refused(Fault(None, None, str(error))) from None
        if problems:
            raise Refused(*(self._fault(row, sentence) for row, sentence in sorted(problems)))
        return checked

    def matched(self, rows: Rows, *, new_columns: bool, kept: Collection[str] = ()) -> tuple[Rows, str | None]:
        """Rows to learn without the columns that are not learned, so that the log holds none, and a note on them.
        Those of `kept` stay, for another model.

        Raises Refused if rows must have the columns of the model, and these have not.
        """
        absent, unknown = self._unmatched(rows.frame)
        if self.encoder.unmatched.strict and (absent or unknown):
            raise Refused(Fault(None, (unknown or absent)[0], str(note(absent, unknown))))
        if new_columns or not unknown:
            return rows, note(absent, [])
        self.encoder.unmatched.count(absent, unknown, rows.frame.height)
        dropped = [name for name in unknown if name not in kept]
        return rows._replace(frame=rows.frame.drop(dropped)), note(absent, unknown)

    def note(self, frame: pl.DataFrame) -> str | None:
        """Which columns rows lack, and which are not known."""
        return note(*self._unmatched(frame))

    def _unmatched(self, frame: pl.DataFrame) -> tuple[list[str], list[str]]:
        known, not_features, found = self.encoder.column_names, self.roles.not_features, set(frame.columns)
        absent = [name for name in known if name not in found]
        return absent, [name for name in frame.columns if name not in not_features and name not in set(known)]

    def task_ids(self, frame: pl.DataFrame) -> list[str | None]:
        """The task of each row."""
        return Tasks(self.roles.tasks).read(frame)[0].tolist() if self.roles.tasks else [None] * frame.height

    def _notation(self, rows: Rows) -> Notation:
        return self._written._replace(strings=rows.strings)

    def _refuse_missing(self, frame: pl.DataFrame, *, labeled: bool) -> None:
        """Raise Refused if a column of tasks, label or weight is missing; features may be."""
        needed = [*self.roles.tasks]
        if labeled:
            needed += [name for name in (self.roles.label, self.roles.weight) if name is not None]
        missing = [name for name in needed if name not in frame.columns]
        if missing:
            raise Refused(
                *(Fault(None, name, unknown_name("the rows have no column", name, frame.columns)) for name in missing)
            )

    def _fault(self, row: int, sentence: str) -> Fault:
        """A reader's sentence as a fault; the sentence names the column as `column 'name'`."""
        _, _, rest = sentence.partition("column '")
        name, quote, _ = rest.partition("'")
        return Fault(row, name if quote else self.roles.label, HINT.sub("", sentence))

    # ---- learning ------------------------------------------------------------------------------------------

    def encode(self, checked: Checked) -> Chunk:
        """Encode rows for the learner; the columns' statistics are updated."""
        return self.rows_to_learn.encode(checked)

    def cuts(self, chunk: Chunk) -> IntArray:
        """The places where a chunk may be cut without changing what is learned: behind each row, or behind each round
        if the learner takes the rows of a round together."""
        n = chunk.X.shape[0]
        if not self.learner.simultaneous:
            return np.arange(1, n + 1)
        columns, tasks = TaskIndex().encode(chunk.task, n)
        return form_rounds(columns, len(tasks), None, simultaneous=True)[1:]

    def forget(self, task: str) -> None:
        """Forget a task, if it is known."""
        for learner in (self.learner, *self.shadows.values()):
            if learner.knows_task(task):
                learner.forget_task(task)

    # ---- answering -----------------------------------------------------------------------------------------

    def predict(self, chunk: Chunk) -> Predictions:
        """Predict rows."""
        return predict_chunk(self.learner, chunk)


def part_of(chunk: Chunk, first: int, last: int) -> Chunk:
    """Rows `first` to `last - 1` of a chunk."""
    return Chunk(*(rows_of(column, first, last) for column in chunk))


def learn(learner: Learner, chunk: Chunk) -> FloatArray:
    """Learn rows, which may have new features; return the decision values from before."""
    wider = chunk.X.shape[1] - learner.n_features_in_
    if wider > 0:
        learner.add_features(wider)
    weights = weights_for(learner, chunk.weight)
    return np.asarray(learner.test_then_train(chunk.X, chunk.y, chunk.task, **weights))
