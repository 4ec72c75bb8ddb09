"""The rows of a command, from what the command line names to the chunks that a learner takes.

`open_data` opens files, standard input or a built-in data set; `ask_kind` asks at a terminal how to take the labels;
`fitting` checks the learner against them; `Stream.begun` reads up to the second label, and `warmed_up` compiles before
the clock starts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier

from shoal.cli.guards import with_guard
from shoal.cli.options import PassOptions, RowOptions, in_options
from shoal.cli.outputs import STDOUT
from shoal.cli.predictions import as_written
from shoal.engine.rounds import Chunk
from shoal.evaluation.predictions import Predictions
from shoal.files import FileStream, ReadOptions, open_stream
from shoal.files.ids import id_of
from shoal.files.labels import MANY, Labels, Target, cost_of
from shoal.files.options import CONSTANT
from shoal.files.paths import choose_format, find_files
from shoal.learner import Learner
from shoal.model.labels import InOrder
from shoal.model.slicing import rows_of
from shoal.model_file import Reading, knows_no_table
from shoal.wrappers.hierarchy import with_hierarchy
from shoal.wrappers.multi_class import MultiClass
from shoal.wrappers.outside_forecast import with_forecasts

if TYPE_CHECKING:
    from shoal.evaluation import Evaluation

DATASET = "dataset:"
STANDARD_INPUT = "standard input"
MOST_HELD = 100_000  # rows to read in search of the second label
OF_RUNS_ONLY = ("regression", "classify", "labels", "sort", "skip_bad", "format")  # a model does not remember them
FEW_ROWS = 64  # to warm up with: enough for every branch that depends on the number of rows


@dataclass
class Stream:
    """Chunks and their metadata."""

    chunks: Iterator[Chunk]
    kind: str  # "binary", "multiclass" or "regression"
    classes: Sequence[Any] | None  # the labels, if they are known before the first row
    title: str
    total_rows: int | None
    file: FileStream | None
    names: tuple[str, ...] = ()  # feature names of a built-in data set
    first: Chunk | None = None  # if it has been read

    def begun(self) -> Stream:
        """The stream, read up to the second label: learners take both labels with the first row.

        Labels that are numbers are left to the learners, which know the order of 0 and 1.
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

    def judged(self) -> Stream:
        """The stream with its first chunk read, so that bad rows are found before anything is printed.

        Rows of standard input may be late and are not waited for.
        """
        if self.title == STANDARD_INPUT:
            return self
        held = list(islice(self.chunks, 1))
        return replace(self, chunks=chain(held, self.chunks), first=held[0] if held else None)

    def as_written(self, found: Predictions) -> Predictions:
        """Predictions with the labels as the file wrote them."""
        return found if self.file is None else as_written(found, self.file.as_written)

    def fraction(self, rows: int) -> float | None:
        """The fraction of the stream that has been read, if its size is known."""
        if self.total_rows:
            return rows / self.total_rows
        if self.file is not None and self.file.total_bytes:
            return (self.file.bytes_read or 0) / self.file.total_bytes
        return None

    def with_columns(self, evaluations: dict[str, Evaluation]) -> dict[str, Evaluation]:
        """The evaluations with the columns from which the features come."""
        columns = self.file.feature_columns if self.file else [None if one == CONSTANT else one for one in self.names]
        return {name: replace(one, columns=columns or None) for name, one in evaluations.items()}

    def notes(self) -> list[str]:
        """Notes about labels and columns, and the bad rows that were skipped."""
        if self.file is None:
            return []
        return [in_options(note) for note in (*self._signs(), *self.file.notes, *self.file.bad_rows)]

    def _signs(self) -> list[str]:
        """Which of two labels is positive; of two numbers, by default the larger one."""
        assert self.file is not None
        labels = self.file.classes
        if self.kind != "binary" or len(labels) != 2 or (self.file.labels_are_numbers and labels == sorted(labels)):
            return []
        return [f"of the labels {labels[1]!r} is positive, {labels[0]!r} negative"]


def is_dataset(data: Sequence[str]) -> bool:
    """Is it the name of a built-in data set?"""
    return any(name.startswith(DATASET) for name in data)


def read_options(rows: RowOptions, reading: Reading | None, **others: Any) -> ReadOptions:
    """How to read: typed options before those that the model remembers."""
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
        raise ValueError("the model's file holds unknown options of reading") from None


def reading_of(data: Sequence[str], rows: RowOptions, model: str, learner: Learner, reading: Reading | None) -> Reading:
    """How the rows of a model are read. A learner alone reads LIBSVM text: feature i is its column i - 1.

    Raises ValueError for other rows of a learner alone.
    """
    if reading is not None:
        return reading
    if choose_format(find_files(list(data)), rows.format) != "libsvm":
        raise knows_no_table(model, learner)
    labels = Labels("auto" if is_classifier(learner) else "regression", rows.labels or None)
    columns = {"width": learner.n_features_in_, "zero": None, "from_one": True}
    return Reading({}, {"family": "libsvm", "labels": labels.to_dict(), "reader": columns})


def in_ids_of(learner: Any, stream: FileStream) -> Iterator[Chunk]:
    """The chunks, with the ids of tasks as the learner has them: LIBSVM has text, Python may have numbers."""
    are_others = isinstance(learner, Learner) and not stream.is_table
    known = getattr(learner, "tasks_", []) if are_others else []  # a new learner has none
    own = {id_of(task): task for task in known if not isinstance(task, str)}
    for chunk in stream:
        if own and chunk.task is not None:
            chunk = chunk._replace(
                task=np.array([*(own.get(task, task) for task in chunk.task), None], np.object_)[:-1]
            )
        yield chunk


def remember(rows: RowOptions, reading: Reading | None) -> dict[str, Any]:
    """The options that a saved model keeps for reading the next file."""
    before = {} if reading is None else reading.options
    typed = rows.given()
    return before | {name: value for name, value in typed.items() if name not in OF_RUNS_ONLY}


def open_data(
    data: Sequence[str], rows: RowOptions, learner: Learner | None, reading: Reading | None, **others: Any
) -> Stream:
    """Open the named data; with a learner, the labels must be of its kind. `others` are further options of reading."""
    if is_dataset(data):
        return _open_dataset(data, rows)
    options = read_options(rows, reading, kind=_kind(rows, learner), labels=rows.labels or None, **others)
    state = None if reading is None else reading.state
    file = open_stream(list(data), options, state=state, read_ahead=True)
    file.bound_labels(getattr(learner, "targets", None))
    kind = "binary" if file.kind == "auto" else file.kind
    classes = InOrder(file.classes) if file.classes_are_given and kind != "regression" else None
    return Stream(in_ids_of(learner, file), kind, classes, title(data), file.rows_total, file)


def ask_kind(
    data: Sequence[str], rows: RowOptions, stream: Stream, *, quiet: bool, **others: Any
) -> tuple[Stream, RowOptions]:
    """Ask whether labels with many numbers are to be predicted as numbers, and whether many labels are meant.

    Return the stream and options to go on with. Nothing is asked, and nothing changes, where options decide it or no
    terminal can answer; then more than 50 labels are refused. `others` are the further options that opened the stream.
    """
    chosen = rows.regression or rows.classify or rows.labels
    if chosen or stream.file is None:
        return stream, rows
    name, n = rows.label or "the label", stream.file.labels_in_sample
    many = stream.kind == "multiclass" and n > MANY
    if many and (quiet or not _at_terminal()):
        stream.file.close()
        raise ValueError(f"{name} has {n} values in the first rows, {cost_of(n)}: --classify takes each as a label")
    if quiet or not (many or stream.kind == "regression") or not _at_terminal():
        return stream, rows
    from rich.console import Console
    from rich.prompt import Confirm

    question = f"{name} has many values: is it a number to predict (--regression)?"
    if many:
        question = f"{name} has {n} values in the first rows, {cost_of(n)}: learn them all (--classify)?"
    try:
        yes = Confirm.ask(question, console=Console(stderr=True), default=not many)
    except EOFError:
        return stream, rows
    if many and not yes:
        stream.file.close()
        raise ValueError(f"{name} is no label: --label names another column")
    if yes and not many:
        return stream, replace(rows, regression=True)
    stream.file.close()
    rows = replace(rows, classify=True)
    return open_data(data, rows, None, None, **others), rows


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def fitting(
    learner: Learner,
    stream: Stream,
    *,
    guard: bool = False,
    hierarchy: bool = False,
    forecasts: int = 0,
    is_new: bool = True,
) -> Learner:
    """The learner, checked to take the stream's kind of labels; several labels are learned one against the rest.

    A new learner is guarded, has levels of tasks, and gets the forecasts of so many columns beside its own.
    """
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
        learner.new_core()  # raises now if the learner cannot be copied for each label
    if guard and is_new:
        learner = with_guard(learner)
    if hierarchy and is_new:
        learner = with_hierarchy(learner)
    return with_forecasts(learner, forecasts) if forecasts and is_new else learner


def protocol_of(options: PassOptions, stream: Stream, needed: Sequence[str] = ()) -> dict[str, Any]:
    """How to make the pass, as `progressive_validate` takes it; `needed` are scores beside those that were chosen."""
    found: dict[str, Any] = {"window": options.window, "delay": options.delay, "classes": stream.classes}
    if options.metrics:
        found["metrics"] = list(dict.fromkeys([*options.metrics, *needed]))
    if options.class_weight:
        found["class_weight"] = _class_weight(options.class_weight, stream)
    return found


def _class_weight(texts: Sequence[str], stream: Stream) -> dict[Any, float] | str:
    if tuple(texts) == ("balanced",):
        return "balanced"
    numbers = stream.file is None or stream.file.labels_are_numbers
    found: dict[Any, float] = {}
    for text in texts:
        label, equals, weight = text.rpartition("=")
        try:
            found[float(label) if numbers else label] = float(weight)
        except ValueError:
            equals = ""
        if not equals or not 0.0 <= float(weight) < float("inf"):
            raise ValueError(f"--class-weight takes balanced, or labels and weights as in yes=5,no=1, got {text!r}")
    return found


def warmed_up(chunks: Iterator[Chunk], learners: Mapping[str, Learner], **options: Any) -> Iterator[Chunk]:
    """The chunks; before the first, clones of the learners learn a few of its rows, so that all code is compiled.

    Parameters
    ----------
    options :
        Of `progressive_validate`.
    """
    for first in chunks:
        warm_up(first, learners, **options)
        yield first
        break
    yield from chunks


def warm_up(chunk: Chunk, learners: Mapping[str, Learner], **options: Any) -> None:
    """Run clones of the learners on a few rows; the learners themselves do not change."""
    from shoal.evaluation import progressive_validate

    if options.get("classes") is None and all(is_classifier(learner) for learner in learners.values()):
        labels = np.unique(np.asarray(chunk.y))
        options["classes"] = labels if len(labels) == 2 else None
    few = Chunk(*(rows_of(part, 0, FEW_ROWS) for part in chunk))
    try:
        progressive_validate({name: clone(learner) for name, learner in learners.items()}, [few], **options)
    except ValueError:  # such as a first label of unknown kind; the run itself raises it again
        return


def title(data: Sequence[str]) -> str:
    """A name for the files."""
    first = STANDARD_INPUT if data[0] == STDOUT else Path(data[0]).name or data[0]
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
