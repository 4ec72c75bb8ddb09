"""A real server in a thread: routes, formats, tokens, what is refused, and what is malformed, slow or cut."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import re
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
import uvicorn
from tests.serve.material import assert_same, records, rows, write_model

from shoal.serve.client import Client, ServiceError
from shoal.serve.contract import Service
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http.access import ADMIN, OPEN, READ, WRITE, Token, allowed, read_tokens
from shoal.serve.http.app import application
from shoal.serve.http.connection import Connection
from shoal.serve.http.request_bodies import BodyLimits
from shoal.serve.http.routes import ROUTES, scope_of

TOKENS = {READ: "read" * 5, WRITE: "write" * 5, ADMIN: "admin" * 5}
DEPLOY = Path(__file__).parents[2] / "deploy"
N_MALFORMED, N_SLOW = (10_000, 1_000) if "SOAK" in os.environ else (200, 30)
NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"


@contextmanager
def served(engine: Service, tokens: list[Token], limits: BodyLimits | None = None, port: int = 0) -> Iterator[str]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    server = uvicorn.Server(
        uvicorn.Config(
            application(engine, tokens, limits),
            http=Connection,
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
        )
    )
    server.config.timeout_graceful_shutdown = 0.2  # type: ignore[assignment]  # events have no end of their own
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:  # or a test that fails would wait for ever
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("http")
    with Engine(write_model(folder), folder / "engine", EngineSettings(keep_log=True)) as found:
        yield found


@pytest.fixture(scope="module")
def url(engine: Engine) -> Iterator[str]:
    limits = BodyLimits(body=300_000, rows=2_000, columns=50, silence=0.5, patience=1.0)
    with served(engine, [Token(secret.encode(), scope) for scope, secret in TOKENS.items()], limits) as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, TOKENS[ADMIN], retries=0) as found:
        yield found


def unlabeled(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "spam"} for row in found]


def test_a_day_of_a_client(engine: Engine, client: Client, tmp_path: Path) -> None:
    mails = records(120, seed=30)
    before = engine.describe()["rows"]
    one = client.predict_one(unlabeled(mails)[0])
    many = client.predict(unlabeled(mails)[1:40])
    table = client.predict(rows(unlabeled(mails[40:60])).frame.cast({"size": pl.Float64}))
    answers = [one, *many, *table]
    assert len({answer.id for answer in answers}) == 60
    assert all(answer.predicted in ("yes", "no") for answer in answers)
    receipt = client.label([(str(answer.id), mail["spam"]) for answer, mail in zip(answers[:40], mails, strict=False)])
    assert (receipt.accepted, receipt.unknown) == (40, [])
    assert client.learn(mails[60:], key="evening").rows == 60
    assert client.learn(mails[60:], key="evening").repeated
    assert len(client.query(unlabeled(mails)[:5])) == 5
    assert engine.wait_until_learned(timeout=30)  # both are asked of the same model
    why, told = client.explain(mails[0])[0], engine.explain(rows(mails[:1]))[0]
    assert why["text"] == str(told)
    assert why["forecast"] == pytest.approx(why["usual"] + sum(one["share"] for one in why["reasons"]))
    words = {f'subject "{word}"' for word in mails[0]["subject"].split()}
    assert {one.what for one in told.reasons} >= words | {f"sender {mails[0]['sender']}"}
    assert client.task("u0")["latest"]["label"] == "yes"  # of the forecast that was asked for last
    asked = client._http.post("/v1/predict?explain=true", json=unlabeled(mails)[:2])
    assert [one["why"]["unit"] for one in asked.json()] == 2 * ["probability of yes"]
    assert client._http.post("/v1/predict?explain=no", json=unlabeled(mails)[:2]).status_code == 400
    with pytest.raises(ServiceError, match="at most 100"):
        client.explain(unlabeled(mails))
    assert engine.wait_until_learned(timeout=30)
    assert client.model()["rows"] == before + 100
    listed = client.tasks(sort="rows")
    assert listed["total"] >= 6
    assert listed["tasks"][0]["rows"] >= listed["tasks"][1]["rows"]
    assert [one["task"] for one in client.tasks(text="U3")["tasks"]] == ["u3"]
    assert client.task("u2")["rows"] > 0
    assert_same(client.export(tmp_path / "copy.shoal"), engine.export())
    assert client.forget("u5").position > 0
    with pytest.raises(ServiceError, match="u5") as raised:
        client.forget("u5")
    assert raised.value.status == 404


def test_streams(engine: Engine, url: str) -> None:
    mails = records(5_000, seed=31, late_columns=False)
    lines = b"".join(json.dumps(mail).encode() + b"\n" for mail in mails)
    headers = {"authorization": f"Bearer {TOKENS[WRITE]}", "content-type": NDJSON, "idempotency-key": "stream"}
    before = engine.describe()["logged"]
    receipts = [
        json.loads(line) for line in httpx.post(f"{url}/v1/learn", content=lines, headers=headers).text.splitlines()
    ]
    assert sum(one["rows"] for one in receipts) == 5_000
    again = [
        json.loads(line) for line in httpx.post(f"{url}/v1/learn", content=lines, headers=headers).text.splitlines()
    ]
    assert [one["position"] for one in again] == [one["position"] for one in receipts]
    assert engine.describe()["logged"] == before + len(receipts)
    headers.pop("idempotency-key")
    damaged = lines + b'{"user": "u1", "size": "huge", "spam": "no"}\n'
    *_, last = httpx.post(f"{url}/v1/learn", content=damaged, headers=headers).text.splitlines()
    assert json.loads(last)["problem"]["errors"][0]["column"] == "size"
    answers = httpx.post(f"{url}/v1/predict", content=lines[:100_000].rpartition(b"\n")[0], headers=headers).text
    assert json.loads(answers.splitlines()[0])["predicted"] in ("yes", "no")
    arrow = {"accept": ARROW, "content-type": "application/json", "authorization": headers["authorization"]}
    answer = httpx.post(f"{url}/v1/predict", json=unlabeled(mails[:3]), headers=arrow)
    assert pl.read_ipc_stream(io.BytesIO(answer.content)).height == 3


def test_alerts_and_dashboard_name_what_there_is(client: Client, engine: Engine) -> None:
    client.learn(records(200, seed=33))
    assert engine.wait_until_learned(timeout=30)
    said = client._http.get("/metrics").text
    for file in ("alerts.yaml", "grafana.json"):
        found = set(re.findall(r"shoal_\w+", (DEPLOY / file).read_text()))
        assert len(found) > 8
        missing = {name for name in found if f"\n{name}" not in said}
        assert missing <= {"shoal_error_of_week_before"}  # of the second week on
    counted = set(re.findall(r"^# TYPE shoal_(\w+)_total counter$", said, re.M))
    assert {"rows_learned", "rows_judged", "labels_accepted", "labels_late", "requests"} <= counted
    ours = {"classes": None, "dtype": "float32", "effort": "auto", "interactions": "auto", "relation": "learned"}
    assert client.model()["parameters"] == {**ours, "memory": 8}  # as JSON, not as Python writes them


def test_every_route_needs_its_scope(url: str) -> None:
    for method, pattern, needed, *_ in ROUTES:
        path = pattern.format(name="app.js", task="nobody")
        if path == "/v1/events":
            continue  # has no end
        for given in (OPEN, READ, WRITE, ADMIN):
            headers = {"authorization": f"Bearer {TOKENS[given]}"} if given else {}
            status = httpx.request(method, url + path, headers=headers).status_code
            assert (status in (401, 403)) == (given < needed), (method, path, given, status)
            assert status != 500
    assert httpx.get(f"{url}/v1/model", headers={"authorization": f"Basic {TOKENS[ADMIN]}"}).status_code == 401
    assert httpx.get(f"{url}/nowhere", headers={"authorization": f"Bearer {TOKENS[READ]}"}).status_code == 404
    assert scope_of("PUT", "/v1/learn") == READ
    assert httpx.head(f"{url}/health").headers["content-length"] == str(len(httpx.get(f"{url}/health").content))
    assert "access-control-allow-origin" not in httpx.get(f"{url}/health", headers={"origin": "http://x.org"}).headers


def test_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text('{"read": ["0123456789abcdef"]}')
    tokens = read_tokens(path, {"SHOAL_TOKEN_ADMIN": "fedcba9876543210"})
    assert allowed(tokens, b"Bearer 0123456789abcdef") == READ
    assert allowed(tokens, b"bearer fedcba9876543210") == ADMIN
    assert allowed(tokens, b"Bearer 0123456789abcde") == OPEN
    assert allowed([], b"") == ADMIN
    for wrong in ('{"read": "secret"}', '["secret"]', '{"root": []}', "{"):
        path.write_text(wrong)
        with pytest.raises(ValueError, match=r"tokens"):
            read_tokens(path, {})
    with pytest.raises(ValueError, match="16 characters"):
        read_tokens(None, {"SHOAL_TOKEN_READ": "short"})


def malformed(chance: random.Random) -> tuple[str, bytes]:
    """A content type and a body that cannot be learned."""
    good = json.dumps(records(3, seed=32)).encode()
    buffer = io.BytesIO()
    rows(records(3, seed=32)).frame.write_ipc_stream(buffer)
    arrow = buffer.getvalue()
    kind = chance.choice(["application/json", NDJSON, ARROW])
    body = chance.choice(
        [
            chance.randbytes(chance.randrange(300)), good[: chance.randrange(len(good))], arrow[: chance.randrange(99)],
            b'{"user": ' + b"[" * 5_000, b'{"user":"u1","size":1e999,"spam":"no"}', b'{"user":"\xff\xfe","spam":"no"}',
            b'[{"user":"u1","size":{"a":1},"spam":"no"}]', b"[1, 2]", b"null", b"", b"{}", b"[]", b'{"spam":"perhaps"}',
            b'{"user":"u1","spam":"perhaps"}', b'{"user":"u1","size":"1e400","spam":"no"}', b'{"user":"","spam":"no"}',
        ]
    )  # fmt: skip
    return kind, body


def at_rest(engine: Engine) -> Mapping[str, Any]:
    """What it says once it has learned what earlier tests sent."""
    while (found := engine.describe())["learned"] < found["logged"]:
        time.sleep(0.01)
    return found


def test_nothing_malformed_changes_or_stops_anything(engine: Engine, url: str) -> None:
    chance = random.Random(0)
    before = at_rest(engine)
    headers = {"authorization": f"Bearer {TOKENS[WRITE]}"}
    with httpx.Client(base_url=url, headers=headers) as http:
        for _ in range(N_MALFORMED):
            kind, body = malformed(chance)
            path = chance.choice(["/v1/learn", "/v1/learn", "/v1/labels"])
            answer = http.post(path, content=body, headers={"content-type": kind})
            streamed = kind == NDJSON and path == "/v1/learn"
            problem = json.loads(answer.text.splitlines()[-1])["problem"] if streamed else answer.json()
            assert 400 <= problem["status"] < 500, (path, kind, body, problem)
            assert streamed or answer.headers["content-type"] == "application/problem+json"
        assert http.post("/v1/learn", content=b"x", headers={"content-type": "text/csv"}).status_code == 415
        many = [{"user": "u1", "size": i, "spam": "no"} for i in range(3_000)]
        assert http.post("/v1/learn", json=many).status_code == 413
        assert http.post("/v1/predict", json={f"c{i}": 1 for i in range(60)}).status_code == 413
        assert (
            http.post("/v1/predict", content=b" " * 400_000, headers={"content-type": "application/json"}).status_code
            == 413
        )
    assert engine.describe() == before


def test_rows_that_have_each_other_columns_take_no_more_memory_than_others(engine: Engine, url: str) -> None:
    """A megabyte of them would be a table of ten thousand million cells."""
    before = at_rest(engine)
    lines = b"".join(b'{"c%d":1}\n' % i for i in range(60_000))
    headers = {"authorization": f"Bearer {TOKENS[WRITE]}", "content-type": NDJSON}
    last = json.loads(httpx.post(f"{url}/v1/learn", content=lines, headers=headers, timeout=60).text.splitlines()[-1])
    assert "60,000 columns" in last["problem"]["detail"]
    many = [{f"c{i}": 1} for i in range(6_000)]
    answer = httpx.post(f"{url}/v1/predict", json=many, headers={"authorization": headers["authorization"]})
    assert answer.status_code == 422
    assert "6,000 rows of 6,000 columns are too many" in answer.json()["detail"]
    assert engine.describe() == before


def test_slow_and_cut_connections_stop_nothing(engine: Engine, url: str) -> None:
    before = at_rest(engine)
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"POST /v1/learn HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS[WRITE]}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    ).encode()
    with ExitStack() as closed_at_the_end:

        def connect() -> socket.socket:
            return closed_at_the_end.enter_context(socket.create_connection((host, int(port)), timeout=60))

        slow = [connect() for _ in range(N_SLOW)]
        for i, one in enumerate(slow):
            one.sendall(head[: 40 + 3 * i] if i % 2 else head + b"[{")
            if i % 3 == 0:
                one.close()
        row, token = unlabeled(records(1))[0], {"authorization": f"Bearer {TOKENS[READ]}"}
        assert httpx.post(f"{url}/v1/predict", json=row, headers=token, timeout=60).status_code == 200
        assert _until_closed(_dripping(connect(), head)) == (408, "10,000 bytes a second")
        assert _until_closed(slow[2]) == (408, "no byte came")
    assert engine.describe() == before


def _dripping(connection: socket.socket, head: bytes) -> socket.socket:
    """A byte every 50 ms, so that it is never silent for long, until there is an answer or an end."""
    connection.sendall(head)
    with suppress(ConnectionError):
        while not select.select([connection], [], [], 0.05)[0]:
            connection.sendall(b" ")
    return connection


def _until_closed(connection: socket.socket) -> tuple[int, str]:
    """Status and reason of the answer, behind which the server closes the connection."""
    answer = b""
    with suppress(ConnectionResetError):  # it came while a byte was on its way
        while more := connection.recv(2_000):
            answer += more
    reason = re.search(rb"10,000 bytes a second|no byte came", answer)
    assert reason, answer
    return int(answer.split()[1]), reason[0].decode()


def test_answers_wait_for_a_server_that_comes_back(engine: Engine) -> None:
    mail = records(1, seed=33)
    with served(engine, []) as first:
        port = int(first.rpartition(":")[2])
        with Client(first) as client:
            client.learn(mail)
    found: list[Any] = []

    def ask() -> None:
        with Client(first) as client:
            found.append(client.learn(mail, key="again"))

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.3)
    with served(engine, [], port=port):
        asking.join(20)
    assert [one.repeated for one in found] == [False]
