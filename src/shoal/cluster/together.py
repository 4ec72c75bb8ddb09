"""Rows that come a few at a time, sent to a shard many at a time: a call of an actor costs more than a row.

Rows that come while a call is on its way go with the next one, so a row waits for nothing when few come.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

MOST = 256  # rows of a call, unless they came together


class Asked(NamedTuple):
    """Rows, whether they wait for their labels, and where their answers go."""

    rows: Sequence[Mapping[str, Any]]
    wait: bool
    answers: Future[list[Any]]


class Together:
    """The rows to be predicted by one shard.

    Parameters
    ----------
    actor : ShardEngine
        As Ray has it.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._waiting: list[Asked] = []
        self._is_busy = False
        self._lock = threading.Lock()

    def predict_each(self, rows: Sequence[Mapping[str, Any]], wait: bool) -> Future[list[Any]]:
        """The answer to each row, or what is wrong with it; it raises what Ray raises."""
        asked = Asked(rows, wait, Future())
        with self._lock:
            self._waiting.append(asked)
            first, self._is_busy = not self._is_busy, True
        if first:
            self._send()
        return asked.answers

    def _send(self) -> None:
        with self._lock:
            batch = self._next()
            self._is_busy = bool(batch)
        if batch:
            rows = [row for asked in batch for row in asked.rows]
            call = self._actor.predict_each.remote(rows, batch[0].wait)
            call.future().add_done_callback(partial(self._hand_over, batch))

    def _next(self) -> list[Asked]:
        """Those of one kind that have waited longest."""
        batch: list[Asked] = []
        n = 0
        while self._waiting and (not batch or (self._waiting[0].wait == batch[0].wait and n < MOST)):
            batch.append(self._waiting.pop(0))
            n += len(batch[-1].rows)
        return batch

    def _hand_over(self, batch: list[Asked], done: Future[list[Any]]) -> None:
        self._send()  # first: the shard need not wait for who reads its answers
        error, first = done.exception(), 0
        for rows, _, answers in batch:
            if error is not None:
                answers.set_exception(error)
            else:
                answers.set_result(done.result()[first : first + len(rows)])
            first += len(rows)
