"""The layers around Litestar: ASGI middlewares, each with one concern.

`LAYERS` has them from the outermost to the innermost. Each class names the layers that must stand around it, and
`layered` checks this when the application is built. The innermost ones answer in front of Litestar: NDJSON, because
Litestar reads the request while it streams an answer, to see whether the client is there; and single JSON rows, because
its routing and arguments cost more than the model's prediction.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar
from urllib.parse import quote

import msgspec

from shoal.serve.contract import Refused, Rows, Unavailable
from shoal.serve.http import request_bodies
from shoal.serve.http.access import OPEN, allowed, is_local
from shoal.serve.http.batching import OneByOne, in_thread, learned, predictions
from shoal.serve.http.problems import HttpProblem, Reply, reply_of
from shoal.serve.http.request_bodies import JSON, NDJSON
from shoal.serve.http.routes import Api, label_of, routes_of, scope_of

TASKS = "/v1/tasks/"
STREAMED = ("/v1/predict", "/v1/learn")
BY_NAME = "headers by name"  # of a scope: the last of each
SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
]

EXPOSED = [(b"access-control-expose-headers", b"retry-after")]
PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type, idempotency-key"),
    (b"access-control-max-age", b"600"),
]

App = Callable[[Any, Any, Any], Awaitable[None]]  # ASGI: scope, receive, send


class Layer:
    """An ASGI application around another one. One that only checks is no coroutine of its own, to be fast."""

    within: ClassVar[tuple[type, ...]] = ()  # the layers that must stand around it

    def __init__(self, app: App, api: Api) -> None:
        self._app, self._api = app, api

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """Answer a request, or have the application within do it."""
        raise NotImplementedError


class HeadAsGet(Layer):
    """HEAD is answered as GET; the server leaves out the body."""

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        return self._app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, send)


class Metered(Layer):
    """Requests are counted and timed, by route and status."""

    within = (HeadAsGet,)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        begun, status = time.perf_counter(), 500

        def noted(message: Any) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            sent: Awaitable[None] = send(message)
            return sent

        await self._app(scope, receive, noted)
        self._api.metrics.count(scope["method"], label_of(scope["path"]), status, time.perf_counter() - begun)


class SafeHeaders(Layer):
    """Every answer has the headers that keep browsers from misusing it."""

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        def send_safely(message: Any) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *SAFE]}
            sent: Awaitable[None] = send(message)
            return sent

        return self._app(scope, receive, send_safely)


class CrossOrigin(Layer):
    """Pages of the listed origins may ask from a browser (the Fetch standard's CORS protocol); it asks for leave first,
    without a token."""

    within = (SafeHeaders,)

    def __init__(self, app: App, api: Api) -> None:
        super().__init__(app, api)
        self._origins = {origin.encode() for origin in api.origins}

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        if not self._origins or (origin := _header(scope, b"origin")) not in self._origins:
            return self._app(scope, receive, send)
        allowed = [(b"access-control-allow-origin", origin), (b"vary", b"origin"), *EXPOSED]
        if scope["method"] == "OPTIONS" and _header(scope, b"access-control-request-method"):
            return _send(send, Reply(204, [*allowed, *PREFLIGHT], b""))

        def send_allowed(message: Any) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *allowed]}
            sent: Awaitable[None] = send(message)
            return sent

        return self._app(scope, receive, send_allowed)


class Traced(Layer):
    """Each request is a span of OpenTelemetry where a provider was set up, as by `opentelemetry-instrument`."""

    within = (HeadAsGet,)

    def __init__(self, app: App, api: Api) -> None:
        super().__init__(app, api)
        self._tracer = _tracer()

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        return self._app(scope, receive, send) if self._tracer is None else self._trace(scope, receive, send)

    async def _trace(self, scope: Any, receive: Any, send: Any) -> None:
        from opentelemetry import propagate, trace

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method, route, kind = scope["method"], label_of(scope["path"]), trace.SpanKind.SERVER
        about = {"http.request.method": method, "http.route": route}
        with self._tracer.start_as_current_span(
            f"{method} {route}", context=propagate.extract(headers), kind=kind, attributes=about
        ) as span:

            def noted(message: Any) -> Awaitable[None]:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(trace.StatusCode.ERROR)
                sent: Awaitable[None] = send(message)
                return sent

            await self._app(scope, receive, noted)


class Problems(Layer):
    """An error becomes an answer with problem details, unless an answer has begun: then the connection ends, as half an
    answer must not look like a whole one."""

    within = (Metered, SafeHeaders)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        has_begun = False

        def noted(message: Any) -> Awaitable[None]:
            nonlocal has_begun
            has_begun = True
            sent: Awaitable[None] = send(message)
            return sent

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:  # the server ends, and has waited long enough
            if not has_begun:
                await _send(send, reply_of(Unavailable("the service ends")))
        except Exception as error:
            reply = reply_of(error)
            if has_begun:
                raise
            await _send(send, reply)


class Hosts(Layer):
    """A request names one host; without tokens, a name of this computer, and it comes from no other site's page.

    A browser sends some requests of foreign pages without asking for leave (CORS), and names the page in `Origin`.
    """

    within = (Problems,)

    def __init__(self, app: App, api: Api) -> None:
        super().__init__(app, api)
        self._is_local_only = not api.tokens

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1:
            raise HttpProblem(400, "the request has two Host headers")
        if self._is_local_only and not is_local(hosts[0] if hosts else b""):
            raise HttpProblem(421, "without tokens this service answers to localhost, 127.0.0.1 and [::1] only")
        origin = _header(scope, b"origin")
        if self._is_local_only and origin and scope["method"] != "GET":
            is_own = origin.partition(b"://")[2] == hosts[0]
            if not is_own and origin.decode("latin-1") not in self._api.origins:
                raise HttpProblem(403, "a page of another site sent the request; --origins lists the sites that may")
        return self._app(scope, receive, send)


class Tokens(Layer):
    """A request needs a token with the scope of its route."""

    within = (Problems, Hosts)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        needed = scope_of(scope["method"], scope["path"])
        if needed != OPEN:
            found = allowed(self._api.tokens, _header(scope, b"authorization"))
            if found == OPEN:
                raise HttpProblem(401, "Authorization: Bearer TOKEN is missing, or holds no token of this service")
            if found < needed:
                raise HttpProblem(403, "this token's scope does not allow this request")
        return self._app(scope, receive, send)


class KnownRoutes(Layer):
    """Other paths are answered 404, other methods 405. Only a request with a token learns which there are."""

    within = (Problems, Tokens)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        method, methods = scope["method"], routes_of(scope["path"])
        if method not in methods:
            if not methods:
                raise HttpProblem(404, "there is no such route")
            allow = [*methods, *(["HEAD"] if "GET" in methods else [])]
            raise HttpProblem(405, f"{method} is not allowed here", allow=allow)
        return self._app(scope, receive, send)


class PlainBodies(Layer):
    """Compressed bodies are refused, as a small one may become large."""

    within = (Problems, KnownRoutes)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        if _header(scope, b"content-encoding", b"identity") != b"identity":
            raise HttpProblem(415, "the body is compressed (Content-Encoding); send it as it is")
        return self._app(scope, receive, send)


class Streams(Layer):
    """NDJSON rows are predicted or learned piece by piece while the body comes, so that memory stays bounded."""

    within = (Problems, KnownRoutes, PlainBodies)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        is_stream = scope["path"] in STREAMED and request_bodies.NAMES.get(_media_type(scope)) == NDJSON
        is_stream = is_stream and b"explain" not in scope["query_string"]
        return (self._stream if is_stream else self._app)(scope, receive, send)

    async def _stream(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        given = _header(scope, b"idempotency-key", None)
        key = request_bodies.checked_key(None if given is None else given.decode("latin-1"))
        head = [(b"content-type", NDJSON.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        async for part in self._answers(path, key, receive):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _answers(self, path: str, key: str | None, receive: Any) -> AsyncIterator[bytes]:
        """Lines for each piece of the body: answers, or a receipt.

        An error ends the stream with a line that has the problem, as the status has been sent. Earlier pieces stand.
        """
        rows_before = number = 0
        try:
            async for piece in request_bodies.pieces(receive, self._api.limits):
                rows = await in_thread(partial(request_bodies.rows_of, piece, NDJSON, self._api.limits))
                found = await self._done(path, rows, None if key is None else f"{key}/{number}")
                yield b"".join(msgspec.json.encode(one) + b"\n" for one in found)
                number, rows_before = number + 1, rows_before + rows.frame.height
            if number == 0:
                raise Refused(request_bodies.NO_ROWS)
        except Exception as error:
            problem = msgspec.json.decode(reply_of(_of_stream(error, rows_before)).body)
            yield msgspec.json.encode({"problem": problem, "rows_before": rows_before}) + b"\n"

    async def _done(self, path: str, rows: Rows, key: str | None) -> list[dict[str, Any]]:
        if path == "/v1/learn":
            return [await learned(self._api.service, rows, key)]
        return await predictions(self._api.service, rows)


class SingleRows(Layer):
    """JSON predictions are answered as JSON: an object alone together with others of its event-loop turn."""

    within = (Problems, KnownRoutes, PlainBodies)

    def __init__(self, app: App, api: Api) -> None:
        super().__init__(app, api)
        self._one_by_one: OneByOne | None = None  # made in the loop that serves

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        is_json = scope["path"] == "/v1/predict" and _media_type(scope) == JSON and _takes_json(scope)
        is_json = is_json and b"explain" not in scope["query_string"]
        return (self._answer if is_json else self._app)(scope, receive, send)

    async def _answer(self, _: Any, receive: Any, send: Any) -> None:
        await _send(send, Reply(200, [(b"content-type", JSON.encode())], await self._predict(receive)))

    async def _predict(self, receive: Any) -> bytes:
        body = await request_bodies.whole(receive, self._api.limits)
        row = request_bodies.flat(body)
        if row is None:  # an array of rows, or an error that `rows_of_value` raises
            value = request_bodies.value_of(body)
            rows = await in_thread(partial(request_bodies.rows_of_value, value, self._api.limits))
            found: Any = await predictions(self._api.service, rows)
            return msgspec.json.encode(found if isinstance(value, list) else found[0])
        request_bodies.refuse_too_wide(len(row), self._api.limits)
        if self._one_by_one is None:
            self._one_by_one = OneByOne(self._api.service)
        answer = await self._one_by_one.predict(row)
        return msgspec.json.encode(answer.plain())


class WholeTaskNames(Layer):
    """A task's name is one segment of the path for Litestar, slashes and all."""

    within = (KnownRoutes,)

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        path = scope["path"]
        if path.startswith(TASKS):
            scope = {**scope, "path": TASKS + quote(path.removeprefix(TASKS), safe="")}
        return self._app(scope, receive, send)


LAYERS: tuple[type[Layer], ...] = (
    HeadAsGet,
    Traced,
    Metered,
    SafeHeaders,
    CrossOrigin,
    Problems,
    Hosts,
    Tokens,
    KnownRoutes,
    PlainBodies,
    Streams,
    SingleRows,
    WholeTaskNames,
)


def with_names(scope: Any) -> Any:
    """The scope with its headers by name, which several layers ask for."""
    return {**scope, BY_NAME: dict(scope["headers"])}


def layered(app: App, api: Api, layers: Sequence[type[Layer]] | None = None) -> App:
    """Put layers around an application, the first of them outermost.

    Raises
    ------
    ValueError
        If a layer stands outside of one that must stand around it.
    """
    layers = LAYERS if layers is None else layers
    for i, layer in enumerate(layers):
        if missing := [other.__name__ for other in layer.within if other not in layers[:i]]:
            raise ValueError(f"{layer.__name__} must stand within {', '.join(missing)}")
    for layer in reversed(layers):
        app = layer(app, api)
    return app


def _tracer() -> Any:
    """The tracer, if OpenTelemetry is there and a provider was set up: without one, spans cost and tell nobody."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    found = trace.get_tracer_provider()
    return None if isinstance(found, trace.ProxyTracerProvider) else found.get_tracer("shoal")


def _header(scope: Any, wanted: bytes, default: Any = b"") -> Any:
    """The last header of a name, as bytes."""
    return scope[BY_NAME].get(wanted, default)


def _media_type(scope: Any) -> str:
    return _media_type_of(_header(scope, b"content-type"))


@lru_cache(256)
def _media_type_of(header: bytes) -> str:
    return header.partition(b";")[0].strip().lower().decode("latin-1")


def _takes_json(scope: Any) -> bool:
    return request_bodies.accepted(_header(scope, b"accept").decode("latin-1"), JSON) == JSON


def _of_stream(error: Exception, rows: int) -> Exception:
    """An error with its rows counted from the first row of the stream."""
    if not isinstance(error, Refused):
        return error
    return Refused(*(fault._replace(row=None if fault.row is None else fault.row + rows) for fault in error.faults))


async def _send(send: Any, reply: Reply) -> None:
    headers = [*reply.headers, (b"content-length", str(len(reply.body)).encode())]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
