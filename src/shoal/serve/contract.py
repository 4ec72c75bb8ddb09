"""What the service's parts say to each other: rows in, receipts and answers out, and what can go wrong.

The engine (`engine`) knows no HTTP; what stands in front of it (HTTP, Kafka, a cluster's actor) sees `Service` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl


class Rows(NamedTuple):
    """Rows of one request, as columns."""

    frame: pl.DataFrame  # (n, columns)
    strings: bool  # whether every value is a string that is read as CSV's are: so JSON; Arrow has typed columns


class Fault(NamedTuple):
    """What is wrong with one row."""

    row: int | None  # counted from 0; None: with all
    column: str | None
    sentence: str  # what was found, what was expected


class Refused(ValueError):
    """The request asks for what cannot be; nothing has changed. HTTP: 422."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.sentence for fault in faults))
        self.faults = faults

    def __reduce__(self) -> Any:  # so that it travels between processes
        return type(self), self.faults


class Conflict(ValueError):
    """The same idempotency key came with other rows. HTTP: 409."""


class UnknownTask(ValueError):
    """There is no such task. HTTP: 404."""


class LimitExceeded(ValueError):
    """More new tasks or columns than this service takes; `retry_after` is None if waiting does not help. HTTP: 429."""

    def __init__(self, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.retry_after)


class Busy(RuntimeError):
    """The queue is full; try again in `retry_after` seconds. HTTP: 429."""

    def __init__(self, sentence: str, retry_after: float) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.retry_after)


class Unavailable(RuntimeError):
    """The log cannot be written (disk full, database away): nothing was accepted. HTTP: 503."""


class Receipt(NamedTuple):
    """The rows are in the log and will be in the model, whatever crashes."""

    position: int  # of the record in the log, counted from 1
    rows: int
    repeated: bool = False  # the same key had brought them before


class LabelReceipt(NamedTuple):
    """What became of each label: those accepted are in the log."""

    position: int | None  # of the record; None if no label was accepted
    accepted: int
    late: list[str]  # ids whose rows no longer wait
    double: list[str]  # ids that have their label already
    unknown: list[str]  # ids that no prediction gave
    repeated: bool = False


class Messages(NamedTuple):
    """What a topic brought, in order, and where to go on: read and learned exactly once, as it is one commit."""

    labeled: Sequence[Mapping[str, Any]]  # rows of JSON values, with their labels
    unlabeled: Sequence[tuple[str, Mapping[str, Any]]]  # rows by the ids that their labels will name
    labels: Sequence[tuple[str, Any]]  # by the ids of their rows, which may come later
    offsets: Mapping[str, int]  # of the next message of each partition
    sources: Sequence[tuple[str, int]] = ()  # of each labeled row, its partition and offset


class Followed(NamedTuple):
    """What became of messages: they are in the log."""

    position: int | None  # of the record; None if no row has its label yet
    rows: int  # that are learned
    double: int  # rows and labels whose ids had theirs before
    refused: tuple[Fault, ...]  # rows that cannot be learned; they are left out


class Answer(NamedTuple):
    """What is predicted for a row."""

    id: str | None  # to give its label with, later; None if rows do not wait
    task: str | None
    predicted: Any  # a label, or a number
    probability: float | None  # of two labels: of the positive one; of several: of the predicted one
    known_task: bool  # a task that the model has not seen is answered from what tasks share


class Pending(NamedTuple):
    """Some of the rows that were asked, and their answers, which come together."""

    places: Sequence[int]  # of these rows among all that were asked
    answers: Future[list[Any]]  # of each an Answer, or the error that is its own


class Worth(NamedTuple):
    """Is the label of a row worth asking for?"""

    task: str | None
    ask: bool
    margin: float  # |decision value|: small ones are worth most


class Service(Protocol):
    """The engine, as what stands in front of it sees it. Every method may be called by any thread."""

    def predict(self, rows: Rows, *, wait: bool = True) -> Future[list[Answer]]:
        """Answers in the order of the rows; with `wait`, done when the rows wait for their labels in the log."""
        ...

    def predict_each(self, rows: Sequence[Mapping[str, Any]], *, wait: bool = True) -> list[Pending]:
        """The same of rows of JSON values (numbers, strings, booleans, None) that came apart, quickly: what is wrong
        with one is nothing to the others."""
        ...

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        """Done when the rows are in the log; they are learned soon after, in the order of the log."""
        ...

    def label(self, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Future[LabelReceipt]:
        """Learn rows as they were predicted: (id of the prediction, label) each."""
        ...

    def follow(self, messages: Messages) -> Future[Followed]:
        """Done when the messages are in the log: the rows that have their labels, those that wait, and the offsets."""
        ...

    def worth(self, rows: Rows) -> list[Worth]:
        """Which labels are worth asking for; nothing changes."""
        ...

    def forget(self, task: str) -> Future[Receipt]:
        """Forget a task: gone from the model with its place in the log, from snapshots and records soon after."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """The model in plain values: learner, parameters, kind ("binary", "multiclass", "regression"), labels,
        columns (name, kind of each), task and label columns, rows, tasks, features, position learned, position
        logged."""
        ...

    def overview(self) -> Mapping[str, Any]:
        """What the page shows: sums and series of errors, calibration, gauges."""
        ...

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """Some tasks with what was counted of them, and how many contain the text: sorted by "rows", "error" (the
        worst first), "newest" or "name"."""
        ...

    def task(self, task: str) -> Mapping[str, Any]:
        """One task in plain values: rows, error, log-loss, calibration, nearest tasks, which way of sharing won.

        Raises UnknownTask."""
        ...

    def export(self) -> Path:
        """A model file that `shoal.load` and `shoal run --load` read; the caller deletes it."""
        ...

    def gauges(self) -> Mapping[str, float]:
        """Queue length, positions, log size in bytes, age of the last snapshot in seconds, rows that wait, ..."""
        ...

    @property
    def is_ready(self) -> bool:
        """Replayed, and the log can be written."""
        ...
