"""`RowReader`: checks the rows of a frame, then encodes the good ones.

A check changes no statistic, so that rows can still be refused. It may add columns and labels; `rollback` removes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.rounds import Chunk
from shoal.files.ids import TYPES, id_of
from shoal.files.labels import Labels
from shoal.files.messages import unknown_name
from shoal.files.options import ReadOptions
from shoal.files.saved_state import State, check_state, reading_state
from shoal.files.tables.batches import Problem
from shoal.files.tables.column_kinds import Values
from shoal.files.tables.encode_one import OneRow, Row, Unread, number_of, whole
from shoal.files.tables.encoder import Mark, RowName, StreamEncoder
from shoal.files.tables.label_columns import Clock, Tasks, read_labels, read_weights
from shoal.files.tables.values_in_text import Notation


class Roles(NamedTuple):
    """The columns that are no features; saved with a stream, so that the next file needs no options."""

    tasks: list[str]
    label: str | None
    weight: str | None
    time: str | None
    ignore: list[str]

    @classmethod
    def of(cls, options: ReadOptions, saved: State | None) -> Roles:
        """The roles of the options, completed by those that were saved."""
        with reading_state():
            return cls._of(options, saved)

    @classmethod
    def _of(cls, options: ReadOptions, saved: State | None) -> Roles:
        given = cls(options.tasks, options.label, options.weight, options.time, list(options.ignore))
        if saved is None:
            return given
        for name in ("tasks", "label"):
            new, known = getattr(given, name), saved[name]
            if new and new != known:
                raise ValueError(f"{name.rstrip('s')}={new!r}, but {known!r} in the saved state: rename it")
        ignore = list(dict.fromkeys([*saved["ignore"], *given.ignore]))
        weight, time = given.weight or saved["weight"], given.time or saved["time"]
        tasks, label = list(saved["tasks"]), saved["label"]
        names = [*tasks, *ignore, *(name for name in (label, weight, time) if name is not None)]
        check_state(all(isinstance(name, str) for name in names), "roles of columns")
        return cls(tasks, label, weight, time, ignore)

    @property
    def not_features(self) -> set[str | None]:
        """All columns that are no features; the time is a feature unless it is ignored."""
        return {*self.tasks, self.label, self.weight, *self.ignore}

    def features(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns that are features."""
        no_feature = self.not_features
        return pl.DataFrame([column for column in frame.get_columns() if column.name not in no_feature])


def needed_columns(roles: Roles, options: ReadOptions) -> list[str]:
    """The columns that no file may lack. Others are features, whose values are missing then."""
    named = [*roles.tasks, *options.keep, options.time]
    if options.labeled:
        named += [roles.label, roles.weight]
    return [name for name in named if name is not None]


class Checked(NamedTuple):
    """The good rows of a frame, before they are encoded."""

    good: NDArray[np.intp]  # (n,) their numbers in the frame
    values: dict[str, Values]
    y: Any  # None if rows are not labeled
    task: Any  # None if there are no tasks
    weight: NDArray[np.float64] | None


class RowReader:
    """Turns frames into chunks.

    Parameters
    ----------
    clock : Clock, optional
        Given if the rows must come in the order of time.
    labeled : bool
        Whether rows have labels, and weights if a column holds them.
    learns : bool
        Whether columns and features may be new.
    most_columns : int, optional
        The most columns that are used. [default: each new column is learned]
    task_type : str, optional
        The type in which the ids of tasks came first.
    """

    def __init__(
        self,
        encoder: StreamEncoder,
        labels: Labels,
        roles: Roles,
        clock: Clock | None = None,
        *,
        labeled: bool = True,
        learns: bool = True,
        most_columns: int | None = None,
        task_type: str | None = None,
    ) -> None:
        self.encoder, self.labels, self.roles, self.clock = encoder, labels, roles, clock
        self._labeled, self._learns = labeled, learns
        self.most_columns = most_columns if learns else 0
        self._tasks = Tasks(roles.tasks, task_type)

    @property
    def task_type(self) -> str | None:
        """The type in which the ids of tasks came first."""
        return self._tasks.type

    def to_dict(self) -> State:
        """The encoder, the roles of the columns and the type of the ids, for JSON."""
        return {"encoder": self.encoder.to_dict(), "roles": self.roles._asdict(), "task_type": self.task_type}

    @classmethod
    def from_dict(cls, state: State, labels: Labels) -> RowReader:
        """The reader of a saved state."""
        with reading_state():
            kind = state["task_type"]
            check_state(kind is None or kind in TYPES, "type of the tasks")
            return cls(StreamEncoder.from_dict(state["encoder"]), labels, Roles(**state["roles"]), task_type=kind)

    def check(self, frame: pl.DataFrame, notation: Notation) -> tuple[Checked, list[Problem]]:
        """The good rows, and the problems of the others (rows counted from 0)."""
        tasks, weight, times = None, None, None
        features = self._matched(self.roles.features(frame))
        if features.width == 0:  # a frame without columns has no rows
            nothing = pl.Series([None] * frame.height, dtype=pl.String)
            features = pl.DataFrame([nothing.alias(name) for name in self.encoder.column_names])
        values, problems = self.encoder.read(features, notation, learns=self._learns)
        if self.roles.tasks:
            tasks, found = self._tasks.read(frame)
            problems += found
        if self._labeled and self.roles.weight is not None:
            weight, found = read_weights(frame[self.roles.weight], notation)
            problems += found
        if self.clock is not None:
            times, found = self.clock.read(frame[self.clock.name])
            problems += found
        good = _without(np.arange(frame.height), problems)
        if self.clock is not None and times is not None:
            found = self.clock.check(times[good], frame[self.clock.name].gather(good))
            problems += [(int(good[row]), problem) for row, problem in found]
            good = _without(np.arange(frame.height), problems)
        y = None
        if self._labeled:  # last: a bad row must not add a class
            column = frame[str(self.roles.label)]
            y, found = read_labels(self.labels, column.gather(good) if problems else column, notation)
            kept = _without(np.arange(len(good)), found)
            problems += [(int(good[row]), problem) for row, problem in found]
            good, y = good[kept], y[kept] if found else y
        if problems:
            mask = np.zeros(frame.height, np.bool_)
            mask[good] = True
            values = {name: column.keep(mask) for name, column in values.items()}
            tasks = None if tasks is None else tasks[good]
            weight = None if weight is None else weight[good]
        return Checked(good, values, y, tasks, weight), problems

    def one_row(self) -> OneRow:
        """An encoder of single rows to predict, with the columns of now."""
        return self.encoder.one_row(self.roles.tasks, self.roles.not_features)

    def learn_one(self, row: Mapping[str, Any], label: Any) -> tuple[Row, Any, str | None]:
        """Features, label and task of one row of plain values; updates the statistics of the columns.

        They are those of a frame of one row. Raises Unread, and changes nothing, if only a frame can be read.
        """
        task, encoder = self.task_of(row), self.encoder
        y = number_of(label, ()) if self.labels.kind == "regression" else self.labels.known(label)
        odd = y is None or y != y or self.roles.time is not None or self.roles.weight in row
        learner = encoder.row_learner or encoder.begin_rows(self.roles.tasks, self.roles.not_features)
        absent, unknown, _ = learner.names.compared(row)
        odd |= bool(unknown) or (bool(absent) and encoder.unmatched.strict)
        if odd:
            raise Unread
        found = encoder.learn_one(row)
        if absent:
            encoder.unmatched.count(absent, [], 1)
        return found, y, task

    def task_of(self, row: Mapping[str, Any]) -> str | None:
        """The task of one row of plain values. Raises Unread if only a frame can be read."""
        if not self.roles.tasks:
            return None
        value = row.get(self.roles.tasks[0])
        task = id_of(value)
        if len(self.roles.tasks) > 1 or not task or value != value or self.task_type is None:
            raise Unread
        return whole(task)

    def _matched(self, features: pl.DataFrame) -> pl.DataFrame:
        """The columns that are known or may be learned; the others are counted, and known ones that are absent."""
        if self.most_columns is None:
            return features
        return self.encoder.matched(features, self.most_columns)

    def drop(self, names: Collection[str]) -> None:
        """Read these columns no more. Raises ValueError if one is not a known column of features."""
        for name in names:
            if name not in self.encoder.column_names:
                raise ValueError(unknown_name("the model has no column", name, self.encoder.column_names))
        self.encoder.drop(names)
        self.roles = self.roles._replace(ignore=[*self.roles.ignore, *names])

    def mark(self) -> tuple[Mark, Any]:
        """The known columns and labels, for `rollback`."""
        return self.encoder.mark(), self.labels.mark()

    def rollback(self, mark: tuple[Mark, Any]) -> None:
        """Undo all checks since the mark; none of their rows may have been encoded, and a clock is not set back."""
        self.encoder.rollback(mark[0])
        self.labels.rollback(mark[1])

    def encode(self, checked: Checked, name_row: RowName | None = None) -> Chunk:
        """The chunk of the checked rows; updates the statistics of the columns if the reader learns.

        `name_row` gives the name of a row of the frame for messages.
        """
        found = None if name_row is None else lambda row: name_row(int(checked.good[row]))
        X = self.encoder.encode(checked.values, len(checked.good), found, learns=self._learns)
        return Chunk(X, checked.y, checked.task, weight=checked.weight)


def _without(rows: NDArray[np.intp], problems: list[Problem]) -> NDArray[np.intp]:
    """The rows without a problem."""
    good = np.ones(len(rows), np.bool_)
    good[[row for row, _ in problems]] = False
    return rows[good]
