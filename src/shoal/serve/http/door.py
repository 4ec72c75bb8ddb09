"""What every request passes: its host and token; and the routes that the framework does not serve: streams, and the one
that must be fast, one row to be predicted.

To route a request, find its arguments and make its answer costs the framework more than a row costs the model.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from shoal.serve.contract import Service, Unavailable
from shoal.serve.http import bodies, streams
from shoal.serve.http.access import OPEN, Token, allowed, is_local, scope_of, scopes_of
from shoal.serve.http.asking import OneByOne, in_thread, predictions
from shoal.serve.http.bodies import Caps
from shoal.serve.http.metrics import Metrics
from shoal.serve.http.problems import Problem, Reply, reply_of

TASKS = "/v1/tasks/"
STREAMED = ("/v1/predict", "/v1/learn")
JSON_HEADER = (b"content-type", b"application/json")
SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
]


class Door:
    """An ASGI application around another one.

    Parameters
    ----------
    app : ASGI application
        The other routes.
    tokens : list of Token
        Without any, every request to a local name is allowed: only for an address that nobody else reaches.
    """

    def __init__(self, app: Any, service: Service, tokens: list[Token], caps: Caps, metrics: Metrics) -> None:
        self._app, self._service, self._tokens, self._caps, self._metrics = app, service, tokens, caps, metrics
        self._one_by_one: OneByOne | None = None  # made in the loop that serves

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        begun, status, has_begun = time.perf_counter(), 500, False
        headers = dict(scope["headers"])
        method, path = scope["method"], scope["path"]
        if method == "HEAD":  # the server leaves out the body
            method, scope = "GET", {**scope, "method": "GET"}

        async def send_safely(message: Any) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
                message = {**message, "headers": [*message["headers"], *SAFE]}
            await send(message)

        try:
            if sum(name == b"host" for name, _ in scope["headers"]) > 1:
                raise Problem(400, "the head names two hosts")
            self._let_in(method, path, headers)
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
            if method == "POST" and path in STREAMED and bodies.NAMES.get(kind) == bodies.NDJSON:
                await self._stream(path, headers, receive, send_safely)
            elif method == "POST" and path == "/v1/predict" and kind == bodies.JSON and _takes_json(headers):
                reply = await self._predict(receive)
                status = reply.status
                await _send(send, reply)
            else:
                await self._app(_one_segment(scope), receive, send_safely)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            if not has_begun:
                status = 503
                await _send(send, reply_of(Unavailable("the service ends")))
        except Exception as error:
            reply = reply_of(error)
            if has_begun:
                raise  # the connection ends: half an answer must not look like a whole one
            status = reply.status
            await _send(send, reply)
        self._metrics.count(method, path, status, time.perf_counter() - begun)

    def _let_in(self, method: str, path: str, headers: dict[bytes, bytes]) -> None:
        if not self._tokens and not is_local(headers.get(b"host", b"")):
            raise Problem(421, "without tokens this service answers to localhost, 127.0.0.1 and [::1] only")
        needed = scope_of(method, path)
        scope = OPEN if needed == OPEN else allowed(self._tokens, headers.get(b"authorization", b""))
        if scope < needed:
            if scope == OPEN:
                raise Problem(401, "Authorization: Bearer TOKEN is missing, or holds no token of this service")
            raise Problem(403, "this token's scope does not reach here")
        if method not in (methods := scopes_of(path)):
            if not methods:
                raise Problem(404, "there is no such route")
            allow = [*methods, *(["HEAD"] if "GET" in methods else [])]
            raise Problem(405, f"{method} is not allowed here", allow=allow)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise Problem(415, "the body is compressed (Content-Encoding); send it as it is")

    async def _stream(self, path: str, headers: dict[bytes, bytes], receive: Any, send: Any) -> None:
        """NDJSON both ways."""
        given = headers.get(b"idempotency-key")
        key = bodies.checked_key(None if given is None else given.decode("latin-1"))
        head = [(b"content-type", bodies.NDJSON.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        async for part in streams.answers(self._service, path, key, receive, self._caps):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _predict(self, receive: Any) -> Reply:
        """One object is answered here, an array by its rows."""
        body = await bodies.whole(receive, self._caps)
        row = bodies.flat(body)
        if row is None:  # rows, or something that is said to be wrong
            value = bodies.value_of(body)
            rows = await in_thread(partial(bodies.rows_of_value, value, self._caps))
            found: Any = await predictions(self._service, rows)
            return Reply(200, [JSON_HEADER], msgspec.json.encode(found if isinstance(value, list) else found[0]))
        bodies.refuse_too_wide(len(row), self._caps)
        if self._one_by_one is None:
            self._one_by_one = OneByOne(self._service)
        answer = await self._one_by_one.predict(row)
        return Reply(200, [JSON_HEADER], msgspec.json.encode(answer._asdict()))


def _takes_json(headers: dict[bytes, bytes]) -> bool:
    return bodies.accepted(headers.get(b"accept", b"").decode("latin-1"), bodies.JSON) == bodies.JSON


def _one_segment(scope: Any) -> Any:
    """A task's name may hold slashes; the framework would take some of them away."""
    path = scope["path"]
    if not path.startswith(TASKS):
        return scope
    return {**scope, "path": TASKS + quote(path.removeprefix(TASKS), safe="")}


async def _send(send: Any, reply: Reply) -> None:
    headers = [*reply.headers, (b"content-length", str(len(reply.body)).encode()), *SAFE]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
