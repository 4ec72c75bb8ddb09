"""The layers of the application: their order, and that no spelling of a path or host lends more than the token."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

from shoal.serve.contract import Receipt, Rows
from shoal.serve.http.access import READ, WRITE, Token
from shoal.serve.http.app import application
from shoal.serve.http.metrics import Metrics
from shoal.serve.http.middleware import LAYERS, KnownRoutes, Problems, Tokens, layered
from shoal.serve.http.request_bodies import JSON, NDJSON, BodyLimits
from shoal.serve.http.routes import Api

READER, WRITER = "reader" * 3, "writer" * 3


class Recorder:
    """The part of a service that these requests could reach; it keeps what reached it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        return self._done((rows, key))

    def forget(self, task: str) -> Future[Receipt]:
        return self._done(task)

    def gauges(self) -> dict[str, float]:
        return {}

    def _done(self, what: Any) -> Future[Receipt]:
        self.calls.append(what)
        future: Future[Receipt] = Future()
        future.set_result(Receipt(len(self.calls), 1))
        return future


def ask(service: Any, method: str, path: str, token: str, kind: str, body: bytes, key: str | None = None) -> int:
    app: Any = application(service, [Token(READER.encode(), READ), Token(WRITER.encode(), WRITE)])
    headers = {"authorization": f"Bearer {token}", "content-type": kind}
    headers |= {} if key is None else {"idempotency-key": key}

    async def send() -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            return (await client.request(method, path, content=body, headers=headers)).status_code

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/learn/"), ("POST", "/v1//learn"), ("POST", "/v1/labels/"), ("GET", "/v1/export/"),
     ("DELETE", "/v1/tasks/a%0Ab"), ("DELETE", "/v1/tasks/%0A"), ("POST", "/v1/learn")],
)  # fmt: skip
def test_no_spelling_lends_a_reader_more(method: str, path: str) -> None:
    service = Recorder()
    assert ask(service, method, path, READER, JSON, b'[{"id": "1", "label": 1}]') in (403, 404, 405)
    assert service.calls == []


def test_keys_of_streams_are_never_cut_short() -> None:
    service = Recorder()
    for key in ("k" * 190 + "1", "k" * 190 + "2", ""):
        assert ask(service, "POST", "/v1/learn", WRITER, NDJSON, b'{"u": 1}', key) == 400
    assert service.calls == []
    assert ask(service, "POST", "/v1/learn", WRITER, NDJSON, b'{"u": 1}', "k" * 180) == 200
    assert service.calls[0][1] == "k" * 180 + "/0"


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [("localhost", True), ("LOCALHOST:8000", True), ("127.0.0.1:8000", True), ("[::1]:8000", True), ("x.org", False),
     ("localhost.x.org", False), ("127.0.0.1.x.org:8000", False), ("[::1]x.org", False), ("", False)],
)  # fmt: skip
def test_without_tokens_only_local_names_are_answered(host: str, is_answered: bool) -> None:
    """A page may lead its own name to 127.0.0.1; a browser then sends it."""
    service: Any = Recorder()

    async def ask(tokens: list[Token]) -> httpx.Response:
        app: Any = application(service, tokens)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://any") as client:
            headers = {"host": host, "authorization": f"Bearer {WRITER}"}
            return await client.post("/v1/learn", json={"u": 1}, headers=headers)

    answer = asyncio.run(ask([]))
    assert answer.status_code == (200 if is_answered else 421)
    assert is_answered or answer.headers["content-type"] == "application/problem+json"
    assert len(service.calls) == is_answered
    assert asyncio.run(ask([Token(WRITER.encode(), WRITE)])).status_code == 200


@pytest.mark.parametrize(
    ("origin", "is_answered"),
    [(None, True), ("http://127.0.0.1:8000", True), ("https://listed.org", True), ("https://x.org", False),
     ("null", False), ("http://127.0.0.1:3000", False)],
)  # fmt: skip
def test_without_tokens_pages_of_other_sites_change_nothing(origin: str | None, is_answered: bool) -> None:
    """A browser sends a form of theirs without asking for leave."""
    service: Any = Recorder()
    app: Any = application(service, [], origins=["https://listed.org"])

    async def ask() -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000") as client:
            headers = {} if origin is None else {"origin": origin}
            assert (await client.get("/health", headers=headers)).status_code == 200
            return (await client.delete("/v1/tasks/a", headers=headers)).status_code

    assert asyncio.run(ask()) == (200 if is_answered else 403)
    assert len(service.calls) == is_answered


def test_layers_stand_within_those_that_they_need() -> None:
    api: Any = Api(Recorder(), [], BodyLimits(), Metrics())  # type: ignore[arg-type]
    layered(print, api)  # type: ignore[arg-type]
    for i, layer in enumerate(LAYERS):
        for outer in layer.within:
            wrong = [*LAYERS[:i], *LAYERS[i + 1 :]]
            wrong.insert(wrong.index(outer), layer)
            with pytest.raises(ValueError, match=f"{layer.__name__} must stand within"):
                layered(print, api, wrong)  # type: ignore[arg-type]
    for left_out in (Problems, Tokens):
        with pytest.raises(ValueError, match=f"must stand within .*{left_out.__name__}"):
            layered(print, api, [layer for layer in LAYERS if layer is not left_out])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="KnownRoutes must stand within Problems, Tokens"):
        layered(print, api, [KnownRoutes])  # type: ignore[arg-type]


def test_requests_are_counted_by_route_and_status() -> None:
    """HEAD as GET, a path without a route as one that is none."""
    tokens = [Token(READER.encode(), READ)]
    app: Any = application(Recorder(), tokens)  # type: ignore[arg-type]
    asked = [("GET", "/health"), ("HEAD", "/health"), ("GET", "/v1/learn/"), ("PATCH", "/v1/tasks/a/b"), ("GET", "/")]

    async def send() -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            client.headers["authorization"] = f"Bearer {READER}"
            for method, path in asked:
                await client.request(method, path)
            return (await client.get("/metrics")).text

    counted = [line for line in asyncio.run(send()).splitlines() if line.startswith("shoal_requests_total")]
    assert sorted(counted) == [
        'shoal_requests_total{method="GET",route="/",status="200"} 1.0',
        'shoal_requests_total{method="GET",route="/health",status="200"} 2.0',
        'shoal_requests_total{method="GET",route="other",status="404"} 1.0',
        'shoal_requests_total{method="other",route="/v1/tasks",status="405"} 1.0',
    ]


def test_pages_of_listed_sites_may_ask() -> None:
    app: Any = application(Recorder(), [Token(READER.encode(), READ)], origins=["https://shop.org"])  # type: ignore[arg-type]

    async def send(method: str, origin: str, **more: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            return await client.request(method, "/v1/predict", headers={"origin": origin, **more})

    asks = {"access-control-request-method": "POST"}
    leave = asyncio.run(send("OPTIONS", "https://shop.org", **asks))
    assert leave.status_code == 204
    assert leave.headers["access-control-allow-origin"] == "https://shop.org"
    assert "authorization" in leave.headers["access-control-allow-headers"]
    refused = asyncio.run(send("POST", "https://shop.org"))
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://shop.org")
    for method in ("OPTIONS", "POST"):
        other = asyncio.run(send(method, "https://shop.org.evil.org", **asks))
        assert other.status_code in (401, 405)
        assert "access-control-allow-origin" not in other.headers


def test_requests_are_spans_where_a_provider_was_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(pytest.importorskip("opentelemetry.sdk.trace.export").SimpleSpanProcessor(export))
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def send() -> None:
        app: Any = application(Recorder(), [])  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            await client.get("/health", headers={"traceparent": parent})

    asyncio.run(send())
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    asyncio.run(send())
    [span] = export.get_finished_spans()
    assert (span.name, span.attributes["http.response.status_code"]) == ("GET /health", 200)
    assert f"{span.context.trace_id:032x}" == parent.split("-")[1]
