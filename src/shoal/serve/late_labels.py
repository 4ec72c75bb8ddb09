"""Labels that come after the prediction: ids of predictions, and the rows that labels complete."""

import random
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from shoal.files.ids import id_of
from shoal.serve.commands import Label
from shoal.serve.contract import Answer, Fault, LabelReceipt, Refused, Rows
from shoal.serve.log import Waiting
from shoal.serve.row_codec import are_alike, concat, unpack

MOST_LAGS, LAG_SECONDS = 1_000, 3600.0  # of the newest labels, and their greatest age
_random = random.Random()  # seeded by the system; an id is no secret


class Completed(NamedTuple):
    """The rows that the labels of one request complete."""

    rows: Rows | None  # None if no label was accepted
    labeled: list[Waiting]  # the stored predictions, with these labels marked
    receipt: LabelReceipt
    predicted: list[float]  # the time of each row's prediction


def requests_of(command: Label) -> set[str]:
    """The requests whose predictions the labels name."""
    return {parsed[0] for name, _ in command.labels if (parsed := parse_id(name))}


def complete(command: Label, waiting: Mapping[str, Waiting], column: str, oldest: str) -> Completed:
    """Add labels to the rows of their predictions.

    Parameters
    ----------
    waiting : mapping
        The stored predictions, by request.
    column : str
        The column of the label.
    oldest : str
        Labels of earlier requests are late.

    Raises
    ------
    Refused
        If the rows differ in their columns' types.
    """
    late: list[str] = []
    double: list[str] = []
    unknown: list[str] = []
    chosen: list[tuple[str, list[int], list[str | None]]] = []  # rows of a request and their labels, in order
    predicted: list[float] = []
    labeled: dict[str, Waiting] = {}
    for name, truth in command.labels:
        parsed = parse_id(name)
        if parsed is None:
            unknown.append(name)
            continue
        request, row = parsed
        entry = labeled.get(request, waiting.get(request))
        if request < oldest:
            late.append(name)
        elif entry is None or row >= entry.rows:
            unknown.append(name)
        elif entry.labeled[row]:
            double.append(name)
        else:
            labeled[request] = entry._replace(labeled=entry.labeled[:row] + b"\1" + entry.labeled[row + 1 :])
            predicted.append(time_of(request))
            if not chosen or chosen[-1][0] != request:
                chosen.append((request, [], []))
            chosen[-1][1].append(row)
            chosen[-1][2].append(id_of(truth))
    tables = {request: unpack(entry.body) for request, entry in labeled.items()}  # once: a table may have many rows
    pieces = []
    for request, places, truths in chosen:
        rows = tables[request]
        some = rows.frame[places].drop(column, strict=False)
        pieces.append(Rows(some.with_columns(pl.Series(column, truths, pl.String)), rows.strings))
    if any(not are_alike(pieces[0], other) for other in pieces):
        raise Refused(Fault(None, None, "the labels are of predictions with columns of other types; send them apart"))
    receipt = LabelReceipt(None, len(predicted), late, double, unknown)
    return Completed(concat(pieces) if pieces else None, [*labeled.values()], receipt, predicted)


class Lags:
    """The delays of the last labels behind their predictions."""

    def __init__(self) -> None:
        self._lags: deque[tuple[float, float]] = deque(maxlen=MOST_LAGS)  # when a label came, and how late
        self._lock = threading.Lock()

    def add(self, predicted: Iterable[float]) -> None:
        """Count labels that come now, by the times of their predictions."""
        now = time.time()
        with self._lock:
            self._lags.extend((now, max(now - then, 0.0)) for then in predicted)

    def median(self) -> float | None:
        """Seconds; None if no label came lately."""
        with self._lock:
            last = [lag for when, lag in self._lags if when > time.time() - LAG_SECONDS]
        return statistics.median(last) if last else None


# ---- ids of predictions: a time in milliseconds, chance, and the row -----------------------------------------


def new_request() -> str:
    """A new id of a request for predictions; later requests have greater ones."""
    return f"{int(time.time() * 1000):012x}{_random.getrandbits(40):010x}"


def prediction_id(request: str, row: int) -> str:
    """The id of one prediction of a request."""
    return f"{request}-{row}"


def parse_id(text: str) -> tuple[str, int] | None:
    """Request and row of a prediction's id; None if the text is not an id."""
    request, mark, row = text.rpartition("-")
    if len(request) != 22 or not mark or not row.isdecimal() or len(row) > 9:
        return None
    try:
        int(request, 16)
    except ValueError:
        return None
    return request, int(row)


def time_of(request: str) -> float:
    """The time of a request."""
    return int(request[:12], 16) / 1000


def first_request(moment: float) -> str:
    """The least id of a request at or after a time."""
    return f"{max(int(moment * 1000), 0):012x}" + "0" * 10


def with_ids(answers: Sequence[Answer], request: str) -> list[Answer]:
    """The answers of a request, with their ids."""
    return [answer._replace(id=prediction_id(request, row)) for row, answer in enumerate(answers)]
