"""The engine asked from an event loop: what takes longer is done in a thread, so others are served meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from shoal.serve.contract import Rows, Service

SMALL = 64  # rows that are handled at once


async def in_thread(work: Callable[[], Any]) -> Any:
    """The result of work that takes a while."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


async def predictions(service: Service, rows: Rows) -> list[dict[str, Any]]:
    """Answers in plain values."""
    return [answer._asdict() for answer in await _asked(partial(service.predict, rows), rows)]


async def learned(service: Service, rows: Rows, key: str | None) -> dict[str, Any]:
    """The receipt in plain values."""
    receipt = await _asked(partial(service.learn, rows, key), rows)
    return dict(receipt._asdict())


class Answered:
    """Futures of threads, awaited by an event loop: what is done meanwhile wakes it up once, not once each."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._is_woken = False

    async def __call__(self, future: Future[Any]) -> Any:
        """Its result."""
        if future.done():
            return future.result()
        waiter = self._loop.create_future()
        future.add_done_callback(partial(self._finish, waiter))
        return (await waiter).result()

    def _finish(self, waiter: asyncio.Future[Any], future: Future[Any]) -> None:
        self._done.append((waiter, future))
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        self._is_woken = False  # first: what is done from now on wakes the loop again
        while self._done:
            waiter, future = self._done.popleft()
            if not waiter.done():
                waiter.set_result(future)


async def _asked(ask: Callable[[], Future[Any]], rows: Rows) -> Any:
    return await asyncio.wrap_future(ask() if rows.frame.height <= SMALL else await in_thread(ask))
