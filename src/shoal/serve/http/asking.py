"""The engine asked from an event loop: what takes longer is done in a thread, so others are served meanwhile."""

from __future__ import annotations

import asyncio
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


async def _asked(ask: Callable[[], Future[Any]], rows: Rows) -> Any:
    return await asyncio.wrap_future(ask() if rows.frame.height <= SMALL else await in_thread(ask))
