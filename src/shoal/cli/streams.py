"""The rows of a command: files, standard input or a built-in data set as chunks; and the learner that fits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from shoal.cli.messages import in_options
from shoal.cli.options import RowOptions
from shoal.cli.outputs import STDOUT
from shoal.engine.rounds import Chunk
from shoal.evaluation.predictions import Predictions
from shoal.files import FileStream, ReadOptions, open_stream
from shoal.files.labels import Target
from shoal.learner import Learner
from shoal.model.labels import InOrder
from shoal.model_file import Reading
from shoal.wrappers.multi_class import MultiClass

DATASET = "dataset:"
MOST_HELD = 100_000  # rows that are read in search of the second label
OF_RUNS_ONLY = ("regression", "classify", "labels", "sort", "skip_bad", "format")  # not of the next file, too


@dataclass
class Stream:
    """The chunks, and what is known about them."""

    chunks: Iterator[Chunk]
    kind: str  # "binary", "multiclass" or "regression"
    classes: Sequence[Any] | None  # the labels, if they are known: learners need not wait for the second
    title: str
    total_rows: int | None
    file: FileStream | None
    names: tuple[str, ...] = ()  # of the features of a built-in data set

    def begun(self) -> Stream:
        """The stream read up to where both labels are known, which learners want to know with the first row.

        Numbers are left to the learners, which know what 0 and 1 are.
        """
        if self.file is None or self.kind != "binary" or self.classes is not None or self.file.labels_are_numbers:
            return self
        held: list[Chunk] = []
        for chunk in self.chunks:
            held.append(chunk)
            if len(self.file.classes) == 2 or self.file.n_rows > MOST_HELD:
                break
        labels = self.file.classes
        return replace(self, chunks=chain(held, self.chunks), classes=InOrder(labels) if len(labels) == 2 else None)

    def as_written(self, found: Predictions) -> Predictions:
        """Predictions with the labels as the file wrote them."""
        if self.file is None:
            return found
        write = self.file.as_written
        return found._replace(
            predicted=write(found.predicted), label=None if found.label is None else write(found.label)
        )

    def fraction(self, rows: int) -> float | None:
        """How much of the stream has been read."""
        if self.total_rows:
            return rows / self.total_rows
        if self.file is not None and self.file.total_bytes:
            return (self.file.bytes_read or 0) / self.file.total_bytes
        return None

    def notes(self) -> list[str]:
        """What was done with labels and columns, and the bad rows that were skipped."""
        if self.file is None:
            return []
        return [in_options(note) for note in (*self._signs(), *self.file.notes, *self.file.bad_rows)]

    def _signs(self) -> list[str]:
        """Which of two labels is positive, unless they are numbers, of which everybody expects the larger one."""
        assert self.file is not None
        labels = self.file.classes
        if self.kind != "binary" or len(labels) != 2 or (self.file.labels_are_numbers and labels == sorted(labels)):
            return []
        return [f"of the labels {labels[1]!r} is positive, {labels[0]!r} negative"]


def is_dataset(data: Sequence[str]) -> bool:
    """Is it the name of a built-in data set?"""
    return any(name.startswith(DATASET) for name in data)


def read_options(rows: RowOptions, reading: Reading | None, **others: Any) -> ReadOptions:
    """How to read: what the model remembers, where nothing else was typed."""
    typed = rows.given()
    options: dict[str, Any] = {} if reading is None else dict(reading.options)
    options |= {name: value for name, value in typed.items() if name not in ("regression", "classify")}
    if len(options.get("task", ())) == 1:
        [options["task"]] = options["task"]  # LIBSVM and VW have ids of one column
    try:
        return ReadOptions(**{**options, **others})
    except (TypeError, AttributeError):
        if reading is None:
            raise
        raise ValueError("the model's file holds options of reading that there are not") from None


def remember(rows: RowOptions, reading: Reading | None) -> dict[str, Any]:
    """What a saved model says of how to read the next file."""
    before = {} if reading is None else reading.options
    typed = rows.given()
    return before | {name: value for name, value in typed.items() if name not in OF_RUNS_ONLY}


def open_data(
    data: Sequence[str], rows: RowOptions, learner: Learner | None, reading: Reading | None, keep: Sequence[str] = ()
) -> Stream:
    """Open what the command line names; with a learner, the labels must be of its kind."""
    if is_dataset(data):
        return _open_dataset(data, rows)
    options = read_options(rows, reading, kind=_kind(rows, learner), labels=rows.labels or None, keep=keep)
    state = None if reading is None else reading.state
    file = open_stream(list(data), options, state=state, read_ahead=True)
    kind = "binary" if file.kind == "auto" else file.kind
    classes = InOrder(file.classes) if file.classes_are_given and kind != "regression" else None
    return Stream(file, kind, classes, title(data), file.rows_total, file)


def fitting(learner: Learner, stream: Stream, *, is_new: bool = True) -> Learner:
    """The learner, which must be for labels of the stream's kind; several labels are learned one against the rest."""
    is_number = stream.kind == "regression"
    if is_classifier(learner) == is_number:
        name, known = type(learner).__name__, "`shoal learners` lists all"
        if is_number:
            raise ValueError(
                f"the labels of {stream.title} are numbers with many values, and {name} is for labels: choose a "
                f"regressor ({known}), or --classify to take each number as a label"
            )
        raise ValueError(f"{stream.title} has labels, and {name} is for numbers ({known})")
    if stream.kind == "multiclass" and is_new and not isinstance(learner, MultiClass):
        learner = MultiClass(learner)
        learner.new_core()  # says now whether the learner can be copied for each label
    return learner


def title(data: Sequence[str]) -> str:
    """What the files are called in one line."""
    first = "standard input" if data[0] == STDOUT else Path(data[0]).name or data[0]
    return first if len(data) == 1 else f"{first} and {len(data) - 1} more"


def _kind(rows: RowOptions, learner: Learner | None) -> Target:
    if rows.regression and rows.classify:
        raise ValueError("--regression and --classify contradict each other")
    if rows.regression or rows.classify:
        if learner is not None and is_classifier(learner) == rows.regression:
            takes, given = ("labels", "--regression") if rows.regression else ("numbers", "--classify")
            raise ValueError(f"{type(learner).__name__} is for {takes}: leave out {given} or --learner")
        return "regression" if rows.regression else "multiclass"
    return "auto" if learner is None or is_classifier(learner) else "regression"


def _open_dataset(data: Sequence[str], rows: RowOptions) -> Stream:
    if len(data) > 1:
        raise ValueError("a built-in data set cannot be one of several files")
    typed = [f"--{name.replace('_', '-')}" for name in rows.given()]
    if typed:
        raise ValueError(f"a built-in data set has its task and label: leave out {', '.join(typed)}")
    from shoal.datasets import load as load_dataset

    found = load_dataset(data[0].removeprefix(DATASET))
    return Stream(found.stream(), found.kind, None, found.name, len(found), None, found.feature_names)
