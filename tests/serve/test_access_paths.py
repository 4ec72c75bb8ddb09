"""What a request says of its path or its host must not lend it more than its token."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

from shoal.serve.contract import Receipt, Rows
from shoal.serve.http.access import READ, WRITE, Token
from shoal.serve.http.app import create_app
from shoal.serve.http.bodies import JSON, NDJSON, Caps
from shoal.serve.http.door import Door
from shoal.serve.http.metrics import Metrics

READER, WRITER = "reader" * 3, "writer" * 3


class Recorder:
    """The part of a service that these requests could reach; it keeps what reached it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        return self._done((rows, key))

    def forget(self, task: str) -> Future[Receipt]:
        return self._done(task)

    def _done(self, what: Any) -> Future[Receipt]:
        self.calls.append(what)
        future: Future[Receipt] = Future()
        future.set_result(Receipt(len(self.calls), 1))
        return future


def ask(service: Any, method: str, path: str, token: str, kind: str, body: bytes, key: str | None = None) -> int:
    caps, metrics = Caps(), Metrics()
    tokens = [Token(READER.encode(), READ), Token(WRITER.encode(), WRITE)]
    app = Door(create_app(service, caps, metrics), service, tokens, caps, metrics)
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
    caps, metrics = Caps(), Metrics()
    service: Any = Recorder()

    async def ask(tokens: list[Token]) -> httpx.Response:
        app = Door(create_app(service, caps, metrics), service, tokens, caps, metrics)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://any") as client:
            headers = {"host": host, "authorization": f"Bearer {WRITER}"}
            return await client.post("/v1/learn", json={"u": 1}, headers=headers)

    answer = asyncio.run(ask([]))
    assert answer.status_code == (200 if is_answered else 421)
    assert is_answered or answer.headers["content-type"] == "application/problem+json"
    assert len(service.calls) == is_answered
    assert asyncio.run(ask([Token(WRITER.encode(), WRITE)])).status_code == 200
