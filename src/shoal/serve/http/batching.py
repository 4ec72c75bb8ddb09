"""Calls of the engine from an event loop: slow ones in threads, single rows of one loop turn as one batch."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from shoal.serve.contract import Answer, Rows, Service

SMALL = 64  # rows that are handled in the loop itself


LOOKING = ThreadPoolExecutor(2, "shoal-look")


async def looked(work: Callable[[], Any]) -> Any:
    """The result of work that reads the model or its counts, two at a time: more would take the interpreter, and the
    threads of `in_thread`, from predictions."""
    return await asyncio.get_running_loop().run_in_executor(LOOKING, work)


async def in_thread(work: Callable[[], Any]) -> Any:
    """The result of slow work."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def predictions(service: Service, rows: Rows) -> list[dict[str, Any]]:
    """Answers in plain values."""
    return [answer.plain() for answer in await _result_of(partial(service.predict, rows), rows)]


async def learned(service: Service, rows: Rows, key: str | None) -> dict[str, Any]:
    """The receipt in plain values."""
    receipt = await _result_of(partial(service.learn, rows, key), rows)
    return dict(receipt._asdict())


class OneByOne:
    """Batches single-row requests per event-loop turn.

    One call of the compiled code, one command to the log and one wake-up then serve all of them.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._loop = service, asyncio.get_running_loop()
        self._queue: list[tuple[Mapping[str, Any], asyncio.Future[Answer]]] = []

    async def predict(self, row: Mapping[str, Any]) -> Answer:
        """The answer to a row of JSON values."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        if not self._queue:
            self._loop.call_soon(self._ask)  # after the other requests of this turn
        self._queue.append((row, answer))
        return await answer

    def _ask(self) -> None:
        batch, self._queue = self._queue[:SMALL], self._queue[SMALL:]
        if self._queue:
            self._loop.call_soon(self._ask)
        try:
            parts = self._service.predict_each([row for row, _ in batch])
        except Exception as error:
            _hand_over([answer for _, answer in batch], [error] * len(batch))
            return
        for places, answers in parts:
            waiting = [batch[place][1] for place in places]
            if answers.done():
                _finish(waiting, answers)
            else:
                answers.add_done_callback(partial(self._wake, waiting))

    def _wake(self, waiting: Sequence[asyncio.Future[Answer]], answers: Future[list[Any]]) -> None:
        self._loop.call_soon_threadsafe(_finish, waiting, answers)


def _finish(waiting: Sequence[asyncio.Future[Answer]], answers: Future[list[Any]]) -> None:
    error = answers.exception()
    _hand_over(waiting, answers.result() if error is None else [error] * len(waiting))


def _hand_over(waiting: Sequence[asyncio.Future[Answer]], found: Sequence[Any]) -> None:
    for answer, one in zip(waiting, found, strict=True):
        if answer.done():  # canceled: the client is gone
            continue
        if isinstance(one, BaseException):
            answer.set_exception(one)
        else:
            answer.set_result(one)


async def _result_of(ask: Callable[[], Future[Any]], rows: Rows) -> Any:
    return await asyncio.wrap_future(ask() if rows.frame.height <= SMALL else await in_thread(ask))
