"""The page at `/`: a few files, and events with its numbers once a second."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from importlib import resources
from typing import Any

import msgspec

SECONDS = 1.0
INDEX = "index.html"
KINDS = {
    INDEX: "text/html; charset=utf-8",
    "app.js": "text/javascript",
    "charts.js": "text/javascript",
    "models.js": "text/javascript",
    "parts.js": "text/javascript",
    "rows.js": "text/javascript",
    "sentence.js": "text/javascript",
    "tasks.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}


@cache
def file(name: str) -> bytes:
    """One of the files of `KINDS`."""
    return resources.files(__package__).joinpath(name).read_bytes()


async def events(overview: Callable[[], Awaitable[Any]], *, may_change: bool) -> AsyncIterator[bytes]:
    """The numbers of the page as server-sent events, without end; with them, whether its token may change the model."""
    while True:
        yield b"data: " + msgspec.json.encode({**await overview(), "may_change": may_change}) + b"\n\n"
        await asyncio.sleep(SECONDS)
