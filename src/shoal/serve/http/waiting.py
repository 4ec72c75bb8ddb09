"""Waiting for what is mostly there already: a timer is set only if it is not.

To set one and take it back takes longer than to decide a row.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any


async def within(seconds: float, awaited: Awaitable[Any]) -> Any:
    """What is awaited. Raises TimeoutError if it does not come within that time."""
    steps = awaited.__await__()
    try:
        first = next(steps)
    except StopIteration as ended:
        return ended.value
    async with asyncio.timeout(seconds):
        return await _continued(steps, first)


@types.coroutine
def _continued(steps: Generator[Any, Any, Any], first: Any) -> Generator[Any, Any, Any]:
    """The rest of what has been begun, which waits for `first`."""
    waits_for = first
    while True:
        step = partial(next, steps)
        try:
            yield waits_for
        except BaseException as error:  # such as a cancellation: it goes to who waits
            step = partial(steps.throw, error)
        try:
            waits_for = step()
        except StopIteration as ended:
            return ended.value
