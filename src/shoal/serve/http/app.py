"""The routes. What comes in is checked by `door` first: token, and the one route that must be fast."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
from litestar import Litestar, MediaType, Request, Response, delete, get, post
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from shoal.serve.contract import Fault, Refused, Rows, Service
from shoal.serve.http import bodies
from shoal.serve.http.asking import in_thread, learned, predictions
from shoal.serve.http.bodies import ARROW, JSON, NDJSON, Caps
from shoal.serve.http.metrics import Metrics
from shoal.serve.http.openapi import description
from shoal.serve.http.problems import Problem, reply_of

SHORT = 4096  # bytes that are read at once
PAGE = 50  # tasks


def create_app(service: Service, caps: Caps, metrics: Metrics, routes: Sequence[Any] = ()) -> Litestar:
    """The application behind the door; `routes` are further handlers, such as those of the page."""

    async def rows_of(body: bytes, kind: str) -> Rows:
        read = partial(bodies.rows_of, body, kind, caps)
        return read() if len(body) < SHORT else await in_thread(read)

    @post("/v1/predict", status_code=200)
    async def predict(request: Request[Any, Any, Any]) -> Response[bytes]:
        kind = bodies.media_type(request.headers.get("content-type"))
        rows = await rows_of(await bodies.whole(request.receive, caps), kind)
        found = await predictions(service, rows)
        accepted = bodies.accepted(request.headers.get("accept", ""), kind)
        return Response(bodies.table(found, accepted), media_type=accepted)

    @post("/v1/learn", status_code=200)
    async def learn(request: Request[Any, Any, Any]) -> Response[bytes]:
        kind = bodies.media_type(request.headers.get("content-type"))
        rows = await rows_of(await bodies.whole(request.receive, caps), kind)
        receipt = await learned(service, rows, _key(request))
        return Response(msgspec.json.encode(receipt), media_type=JSON)

    @post("/v1/labels", status_code=200)
    async def labels(request: Request[Any, Any, Any]) -> Response[bytes]:
        kind = bodies.media_type(request.headers.get("content-type"))
        if kind == ARROW:
            raise Problem(415, f"labels come as {JSON} or {NDJSON}")
        body = await bodies.whole(request.receive, caps)
        found = [bodies.value_of(line) for line in body.splitlines() if line.strip()] if kind == NDJSON else None
        if found is None:
            value = bodies.value_of(body)
            found = [value] if isinstance(value, dict) else value
        pairs = _labels(found, caps)
        receipt = await asyncio.wrap_future(service.label(pairs, _key(request)))
        return Response(msgspec.json.encode(receipt._asdict()), media_type=JSON)

    @post("/v1/query", status_code=200)
    async def query(request: Request[Any, Any, Any]) -> Response[bytes]:
        kind = bodies.media_type(request.headers.get("content-type"))
        rows = await rows_of(await bodies.whole(request.receive, caps), kind)
        found = [one._asdict() for one in await in_thread(partial(service.worth, rows))]
        accepted = bodies.accepted(request.headers.get("accept", ""), kind)
        return Response(bodies.table(found, accepted), media_type=accepted)

    @get("/v1/model")
    async def model() -> Response[bytes]:
        return Response(msgspec.json.encode(await in_thread(service.describe)), media_type=JSON)

    @get("/v1/tasks")
    async def tasks(sort: FromQuery[str] = "rows", q: FromQuery[str] = "", page: FromQuery[int] = 1) -> Response[bytes]:
        if sort not in bodies.SORTS:
            raise Problem(400, f"sort={sort!r}, expected {', '.join(bodies.SORTS)}")
        if page < 1:
            raise Problem(400, f"page={page}, expected 1 or more")
        found, total = await in_thread(partial(service.list_tasks, sort, q, (page - 1) * PAGE, PAGE))
        return Response(msgspec.json.encode({"tasks": found, "page": page, "total": total}), media_type=JSON)

    @get("/v1/tasks/{task:str}")
    async def task(task: FromPath[str]) -> Response[bytes]:
        return Response(msgspec.json.encode(await in_thread(partial(service.task, unquote(task)))), media_type=JSON)

    @delete("/v1/tasks/{task:str}", status_code=200)
    async def forget(task: FromPath[str]) -> Response[bytes]:
        receipt = await asyncio.wrap_future(service.forget(unquote(task)))
        return Response(msgspec.json.encode(receipt._asdict()), media_type=JSON)

    @get("/v1/export")
    async def export() -> Stream:
        path = await in_thread(service.export)

        async def content() -> AsyncIterator[bytes]:
            try:
                with path.open("rb") as file:
                    while block := await in_thread(partial(file.read, 1 << 20)):
                        yield block
            finally:
                path.unlink(missing_ok=True)

        return Stream(content(), media_type="application/octet-stream")

    @get("/health")
    async def health() -> Response[bytes]:
        return Response(b'{"status":"ok"}', media_type=JSON)

    @get("/ready")
    async def ready() -> Response[bytes]:
        state, status = ("ready", 200) if await in_thread(lambda: service.is_ready) else ("not ready", 503)
        return Response(msgspec.json.encode({"status": state}), status_code=status, media_type=JSON)

    @get("/metrics")
    async def numbers() -> Response[bytes]:
        return Response(await in_thread(partial(metrics.text, service)), media_type=MediaType.TEXT)

    @get("/v1/openapi.json")
    async def described() -> Response[bytes]:
        return Response(msgspec.json.encode(description(service)), media_type=JSON)

    handlers = [predict, learn, labels, query, model, tasks, task, forget, export, health, ready, numbers, described]
    return Litestar(
        [*handlers, *routes],
        exception_handlers={Exception: _answer},
        openapi_config=None,
        request_max_body_size=None,  # bodies are counted while they are read
        cors_config=None,
        debug=False,
        logging_config=None,
    )


def _answer(_: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    reply = reply_of(error)
    headers = {name.decode(): value.decode() for name, value in reply.headers if name != b"content-type"}
    return Response(reply.body, status_code=reply.status, headers=headers, media_type="application/problem+json")


def _key(request: Request[Any, Any, Any]) -> str | None:
    return bodies.checked_key(request.headers.get("idempotency-key"))


def _labels(found: Any, caps: Caps) -> list[tuple[str, Any]]:
    """Pairs of id and label."""
    if not isinstance(found, list) or not found:
        raise Problem(400, 'expected {"id": …, "label": …}, or an array of these')
    if len(found) > caps.rows:
        raise Problem(413, f"{len(found):,} labels, at most {caps.rows:,} are taken at once")
    pairs = []
    for row, one in enumerate(found):
        right = isinstance(one, dict) and set(one) == {"id", "label"} and isinstance(one["id"], str)
        if not right or isinstance(one["label"], dict | list):
            raise Refused(Fault(row, None, f'label {row}: expected {{"id": "…", "label": …}}'))
        pairs.append((one["id"], one["label"]))
    return pairs
