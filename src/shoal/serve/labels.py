"""Labels that come later: the rows that waited for them, completed."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl

from shoal.files.ids import id_of
from shoal.serve.bodies import are_alike, concat, unpack
from shoal.serve.commands import Label, parse_id, time_of
from shoal.serve.contract import Fault, LabelReceipt, Refused, Rows
from shoal.serve.log import Waiting

MOST_LAGS, LAG_SECONDS = 1_000, 3600.0  # of the newest labels, and no older ones


class Completed(NamedTuple):
    """What became of the labels of one request."""

    rows: Rows | None  # None if no label was accepted
    labeled: list[Waiting]  # what waits still, with the marks of the labels that have come
    receipt: LabelReceipt
    predicted: list[float]  # when, of each row


class Lags:
    """How long after their predictions the last labels came."""

    def __init__(self) -> None:
        self._lags: deque[tuple[float, float]] = deque(maxlen=MOST_LAGS)  # when a label came, and how late
        self._lock = threading.Lock()

    def add(self, predicted: Iterable[float]) -> None:
        """Labels have come now for what was predicted then."""
        now = time.time()
        with self._lock:
            self._lags.extend((now, max(now - then, 0.0)) for then in predicted)

    def median(self) -> float | None:
        """Seconds; None if no label came lately."""
        with self._lock:
            last = [lag for when, lag in self._lags if when > time.time() - LAG_SECONDS]
        return statistics.median(last) if last else None


def requests_of(command: Label) -> set[str]:
    """The predictions that labels are for."""
    return {parsed[0] for name, _ in command.labels if (parsed := parse_id(name))}


def complete(command: Label, waiting: Mapping[str, Waiting], column: str, oldest: str) -> Completed:
    """Put labels into the rows that they are for.

    Parameters
    ----------
    waiting : mapping
        The rows that wait, by request.
    column : str
        Where the label belongs.
    oldest : str
        Rows of requests before this one no longer wait.

    Raises
    ------
    Refused
        If the rows cannot be one table.
    """
    late: list[str] = []
    double: list[str] = []
    unknown: list[str] = []
    pieces: list[Rows] = []
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
            rows = unpack(entry.body)
            one = rows.frame.slice(row, 1).drop(column, strict=False)
            pieces.append(Rows(one.with_columns(pl.Series(column, [id_of(truth)], pl.String)), rows.strings))
    if any(not are_alike(pieces[0], other) for other in pieces):
        raise Refused(Fault(None, None, "the labels are of predictions with columns of other types; send them apart"))
    receipt = LabelReceipt(None, len(pieces), late, double, unknown)
    return Completed(concat(pieces) if pieces else None, [*labeled.values()], receipt, predicted)
