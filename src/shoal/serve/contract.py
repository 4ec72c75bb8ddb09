"""The interface of the service: rows in, receipts and answers out, and the errors.

`engine` implements `Service` and knows no HTTP. HTTP, Kafka and the cluster's actors know `Service` and not the engine.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from shoal.tabular.reasons import Reasons


class Rows(NamedTuple):
    """Rows of one request, as columns."""

    frame: pl.DataFrame  # (n, columns)
    strings: bool  # whether values are strings, read as those of a CSV file (JSON); Arrow has typed columns


class Fault(NamedTuple):
    """A fault of one row."""

    row: int | None  # counted from 0; None: with all
    column: str | None
    sentence: str  # what was found, what was expected


class Refused(ValueError):
    """The rows of a request are invalid; nothing has changed. HTTP: 422."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.sentence for fault in faults))
        self.faults = faults

    def __reduce__(self) -> Any:  # to pickle it between processes
        return type(self), self.faults


class Conflict(ValueError):
    """The same idempotency key came with other rows, or there is no model to go back to or to promote. HTTP: 409."""


class UnknownTask(ValueError):
    """There is no such task. HTTP: 404."""


class LimitExceeded(ValueError):
    """Too many new tasks or columns; `retry_after` is None if waiting does not help. HTTP: 429."""

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
    """The log cannot be written (disk full, database away): nothing was accepted. HTTP: 503, but for predictions, which
    are answered without ids."""


class Receipt(NamedTuple):
    """The rows are in the log, and no crash keeps them out of the model."""

    position: int  # of the record in the log, counted from 1
    rows: int
    repeated: bool = False  # an earlier request had the same key
    note: str | None = None  # columns that the rows lack, or that the model does not know


class LabelReceipt(NamedTuple):
    """The outcome for each label; accepted ones are in the log."""

    position: int | None  # of the record; None if no label was accepted
    accepted: int
    late: list[str]  # ids whose rows no longer wait
    double: list[str]  # ids that have their label already
    unknown: list[str]  # ids that no prediction gave
    repeated: bool = False


class Messages(NamedTuple):
    """Messages of topics in order, with the offsets behind them; one commit has both, so none is learned twice."""

    labeled: Sequence[Mapping[str, Any]]  # rows of JSON values, with their labels
    unlabeled: Sequence[tuple[str, Mapping[str, Any]]]  # rows by the ids that their labels will name
    labels: Sequence[tuple[str, Any]]  # by the ids of their rows; either may come first
    offsets: Mapping[str, int]  # of the next message of each partition
    sources: Sequence[tuple[str, int]]  # of each labeled row, its partition and offset


class Followed(NamedTuple):
    """The outcome for messages; they are in the log."""

    position: int | None  # of the record; None if no row has its label yet
    rows: int  # that are learned
    double: int  # rows and labels whose ids had theirs before
    refused: tuple[Fault, ...]  # rows that cannot be learned; they are left out


class Answer(NamedTuple):
    """The prediction of a row."""

    id: str | None  # for its label, later; None if rows do not wait
    task: str | None
    predicted: Any  # a label, or a number
    probability: float | None  # of the positive label of two, or of the predicted one of several
    known_task: bool  # an unseen task is predicted from what tasks share
    # Why there is no id; columns that the row lacks, or that the model does not know (of a table, in its first row).
    note: str | None = None
    # Of a model with intervals (`Conformal`), which hold its `coverage` of the targets: ends, infinite before 50 rows.
    low: float | None = None
    high: float | None = None
    set: list[Any] | None = None  # of labels: those in the set, likewise
    quantiles: dict[str, float] | None = None  # by level, of a model of several; the one nearest to 0.5 is `predicted`

    def plain(self) -> dict[str, Any]:
        """Values by name, without those of intervals, sets and quantiles where there are none."""
        return {name: value for name, value in self._asdict().items() if value is not None or name not in OF_SOME}


OF_SOME = ("low", "high", "set", "quantiles")  # models


class Pending(NamedTuple):
    """Some of the requested rows, whose answers come together."""

    places: Sequence[int]  # of these rows in the request
    answers: Future[list[Any]]  # an Answer or an error for each row


class Worth(NamedTuple):
    """Whether the label of a row is worth asking for."""

    task: str | None
    ask: bool
    margin: float  # |decision value|: small ones are worth most


class Service(Protocol):
    """The engine as its callers see it. Any thread may call any method."""

    def predict(self, rows: Rows, *, wait: bool = True) -> Future[list[Answer]]:
        """Answers in the order of the rows; with `wait`, done when the rows are stored to wait for their labels."""
        ...

    def predict_each(self, rows: Sequence[Mapping[str, Any]], *, wait: bool = True) -> list[Pending]:
        """Predict rows of JSON values (numbers, strings, booleans, None) from different requests, fast. Each row has
        its own answer or error."""
        ...

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        """Done when the rows are in the log; they are learned soon after, in that order."""
        ...

    def label(self, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Future[LabelReceipt]:
        """Learn predicted rows, given as pairs (id of the prediction, label)."""
        ...

    def explain(self, rows: Rows) -> list[Reasons]:
        """Why the forecast of each row is what it is. Nothing changes. Raises Refused if they are more than 100."""
        ...

    def follow(self, messages: Messages) -> Future[Followed]:
        """Done when labeled rows, waiting rows and labels, and the offsets are in the log."""
        ...

    def worth(self, rows: Rows) -> list[Worth]:
        """Say which labels are worth asking for. Nothing changes."""
        ...

    def forget(self, task: str) -> Future[Receipt]:
        """Forget a task; done when the model has forgotten it. Snapshots and records do soon after."""
        ...

    def new_file(self) -> Path:
        """A path for a model file that `change` takes."""
        ...

    def has_taken(self, file: Path) -> bool:
        """Whether `change` took a file of this content before."""
        ...

    def change(self, what: str, file: Path | None = None) -> Receipt:
        """Change the model while the log goes on; returns when the other one answers. "swap" and "shadow" put the model
        of a file in place, or beside it as a candidate; "promote" puts the candidate in place, "drop" ends it, and
        "rollback" returns to the model that was replaced last.

        Raises Refused if the file is no model of such rows, Conflict if there is none to promote or to return to."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """The model in plain values: learner, parameters, kind ("binary", "multiclass", "regression"), labels,
        quantiles, columns (name, kind of each), task and label columns, rows, tasks, features, position learned,
        position logged."""
        ...

    def overview(self) -> Mapping[str, Any]:
        """The numbers on the page: sums and series of errors, calibration, gauges."""
        ...

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """A part of the tasks with their counts, and the number of tasks that contain the text; sorted by "rows",
        "error", "loss" or "auc" (worst first), "newest" or "name"."""
        ...

    def task(self, task: str) -> Mapping[str, Any]:
        """One task in plain values: rows, error, log-loss, calibration, nearest tasks, weights of the ways of sharing.

        Raises UnknownTask."""
        ...

    def export(self) -> Path:
        """Write a model file for `shoal.load` and `shoal run --load`; the caller deletes it."""
        ...

    def gauges(self) -> Mapping[str, float]:
        """Queue length, positions, size of the log in bytes, age of the last snapshot in seconds, waiting rows, ..."""
        ...

    @property
    def trouble(self) -> str:
        """Why nothing can be learned now; empty if all is well."""
        ...
