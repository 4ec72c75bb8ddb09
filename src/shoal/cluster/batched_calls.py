"""Calls of Ray actors as Python futures: batched for one shard, joined over several, with the contract's errors.

`CallBatcher` batches small requests to a shard, because a call of an actor costs more than a row. Rows that arrive
during a call go with the next call, so a lone row waits for nothing.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, NoReturn

from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from shoal.serve.contract import Unavailable

AWAY = (RayActorError, ObjectLostError, GetTimeoutError)
MOST = 256  # rows of a call, unless more came together


class PendingRows(NamedTuple):
    """The rows of one request that are to be sent."""

    rows: Sequence[Mapping[str, Any]]
    wait: bool  # for their labels
    answers: Future[list[Any]]


class CallBatcher:
    """The rows to be predicted by one shard.

    Parameters
    ----------
    actor : Ray's handle of a `ShardEngine`
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._pending: list[PendingRows] = []
        self._is_busy = False
        self._lock = threading.Lock()

    def predict_each(self, rows: Sequence[Mapping[str, Any]], wait: bool) -> Future[list[Any]]:
        """The answer to each row, or its error; the future may raise Ray's errors."""
        pending = PendingRows(rows, wait, Future())
        with self._lock:
            self._pending.append(pending)
            first, self._is_busy = not self._is_busy, True
        if first:
            self._send()
        return pending.answers

    def _send(self) -> None:
        with self._lock:
            batch = self._next()
            self._is_busy = bool(batch)
        if batch:
            rows = [row for pending in batch for row in pending.rows]
            call = self._actor.predict_each.remote(rows, batch[0].wait)
            call.future().add_done_callback(partial(self._hand_over, batch))

    def _next(self) -> list[PendingRows]:
        """The oldest requests with the same `wait`."""
        batch: list[PendingRows] = []
        n = 0
        while self._pending and (not batch or (self._pending[0].wait == batch[0].wait and n < MOST)):
            batch.append(self._pending.pop(0))
            n += len(batch[-1].rows)
        return batch

    def _hand_over(self, batch: list[PendingRows], done: Future[list[Any]]) -> None:
        self._send()  # first, so that the shard is busy while answers are handed over
        error, first = done.exception(), 0
        for rows, _, answers in batch:
            if error is not None:
                answers.set_exception(error)
            else:
                answers.set_result(done.result()[first : first + len(rows)])
            first += len(rows)


# ---- futures -------------------------------------------------------------------------------------------------


def future_of(reference: Any) -> Future[Any]:
    """The future of a Ray reference."""
    found: Future[Any] = reference.future()
    return found


def copy_to(done: Future[Any], to: Future[Any], edited: Callable[[Any], Any] = lambda found: found) -> None:
    """Complete a future as another one: with its edited result, or its exception."""
    error = done.exception()
    if error is None:
        to.set_result(edited(done.result()))
    else:
        to.set_exception(error)


def joined(futures: Sequence[Future[Any]], join: Callable[[list[Any]], Any]) -> Future[Any]:
    """The join of several results, when all are there."""
    return when_done(futures, lambda done: join([result(one) for one in done]))


def when_done(futures: Sequence[Future[Any]], join: Callable[[list[Future[Any]]], Any]) -> Future[Any]:
    """The join of several futures, when all are done, whether they succeeded or not."""
    joined: Future[Any] = Future()
    missing, counting = len(futures), threading.Lock()

    def finish() -> None:
        try:
            joined.set_result(join(list(futures)))
        except Exception as error:
            joined.set_exception(error)

    def one_more(_: object) -> None:
        nonlocal missing
        with counting:
            missing -= 1
            last = missing == 0
        if last:
            finish()

    if not futures:
        finish()
    for one in futures:
        one.add_done_callback(one_more)
    return joined


def chained(first: Future[Any], then: Callable[[Any], Future[Any]]) -> Future[Any]:
    """The future that `then` makes of the first result, or the first exception."""
    chained: Future[Any] = Future()

    def go_on(done: Future[Any]) -> None:
        try:
            then(done.result()).add_done_callback(lambda found: copy_to(found, chained))
        except Exception as error:
            chained.set_exception(error)

    first.add_done_callback(go_on)
    return chained


def result(future: Future[Any]) -> Any:
    """The result; Ray's errors become the contract's."""
    try:
        return future.result()
    except (*AWAY, RayTaskError) as error:
        raise_for_contract(error)


def raise_for_contract(error: BaseException) -> NoReturn:
    """Raise the error of the shard's own code that Ray wraps, or else Unavailable."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        raise error.cause from None
    raise Unavailable("a shard is down; it restarts from its snapshot and log") from None
