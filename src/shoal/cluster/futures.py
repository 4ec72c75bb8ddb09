"""Answers of actors as futures of Python's, put together, with errors as the contract has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn

from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from shoal.serve.contract import Unavailable

AWAY = (RayActorError, ObjectLostError, GetTimeoutError)


def future_of(reference: Any) -> Future[Any]:
    """Of what Ray will hand over."""
    found: Future[Any] = reference.future()
    return found


def copy_to(done: Future[Any], to: Future[Any], edited: Callable[[Any], Any] = lambda found: found) -> None:
    """What one has or raises, for another."""
    error = done.exception()
    if error is None:
        to.set_result(edited(done.result()))
    else:
        to.set_exception(error)


def joined(asked: Sequence[Future[Any]], join: Callable[[list[Any]], Any]) -> Future[Any]:
    """What comes of several answers, when all are there."""
    return when_done(asked, lambda done: join([result(one) for one in done]))


def when_done(asked: Sequence[Future[Any]], join: Callable[[list[Future[Any]]], Any]) -> Future[Any]:
    """What comes of several, when none is on its way any more."""
    joined: Future[Any] = Future()
    missing, counting = len(asked), threading.Lock()

    def finish() -> None:
        try:
            joined.set_result(join(list(asked)))
        except Exception as error:
            joined.set_exception(error)

    def one_more(_: object) -> None:
        nonlocal missing
        with counting:
            missing -= 1
            last = missing == 0
        if last:
            finish()

    if not asked:
        finish()
    for one in asked:
        one.add_done_callback(one_more)
    return joined


def chained(first: Future[Any], then: Callable[[Any], Future[Any]]) -> Future[Any]:
    """What comes of the first, or what it raises."""
    chained: Future[Any] = Future()

    def go_on(done: Future[Any]) -> None:
        try:
            then(done.result()).add_done_callback(lambda found: copy_to(found, chained))
        except Exception as error:
            chained.set_exception(error)

    first.add_done_callback(go_on)
    return chained


def result(future: Future[Any]) -> Any:
    """The answer, or the error that the contract has for it."""
    try:
        return future.result()
    except (*AWAY, RayTaskError) as error:
        raise_as_said(error)


def raise_as_said(error: BaseException) -> NoReturn:
    """What the contract has for it."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        raise error.cause from None
    raise Unavailable("a shard is away; it comes back from its snapshot and log") from None
