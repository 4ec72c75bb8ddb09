"""The page at `/`: a few files, and events that bring it up to date once a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import msgspec
from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Stream

from shoal.serve.contract import Service

SECONDS = 1.0
KINDS = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript",
    "charts.js": "text/javascript",
    "parts.js": "text/javascript",
    "tasks.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}


def page_routes(service: Service) -> list[Any]:
    """Handlers for Litestar."""
    files = {name: resources.files(__package__).joinpath(name).read_bytes() for name in KINDS}

    def file(name: str) -> Response[bytes]:
        return Response(files[name], media_type=KINDS[name])

    @get("/")
    async def index() -> Response[bytes]:
        return file("index.html")

    @get("/page/{name:str}")
    async def part(name: FromPath[str]) -> Response[bytes]:
        return file(name) if name in files else Response(b"", status_code=404)

    @get("/v1/events")
    async def events() -> Stream:
        return Stream(_events(service), media_type="text/event-stream")

    return [index, part, events]


async def _events(service: Service) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    while True:
        yield b"data: " + msgspec.json.encode(await loop.run_in_executor(None, service.overview)) + b"\n\n"
        await asyncio.sleep(SECONDS)
