"""Rows that come one by one, sent to a shard many at a time: a call of an actor costs more than a row.

Rows that come while a call is on its way go with the next one, so a row waits for nothing when few come.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

MOST = 256  # rows of a call
Asked = tuple[Mapping[str, Any], bool, Future[Any]]


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

    def predict_one(self, row: Mapping[str, Any], wait: bool) -> Future[Any]:
        """The answer, or what Ray or the shard raises."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((row, wait, future))
            first, self._is_busy = not self._is_busy, True
        if first:
            self._send()
        return future

    def _send(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            self._is_busy = bool(batch)
        if batch:
            call = self._actor.predict_each.remote([(row, wait) for row, wait, _ in batch])
            call.future().add_done_callback(partial(self._hand_over, batch))

    def _hand_over(self, batch: list[Asked], done: Future[Any]) -> None:
        self._send()  # first: the shard need not wait for who reads its answers
        error = done.exception()
        found = [error] * len(batch) if error is not None else done.result()
        for (_, _, future), one in zip(batch, found, strict=True):
            if isinstance(one, BaseException):
                future.set_exception(one)
            else:
                future.set_result(one)
