"""The clients against a server that fails first: whatever happens to a request, its rows are learned once."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from tests.serve.material import assert_same, records, write_model
from tests.serve.test_http import served

from shoal.serve import client as client_module
from shoal.serve.client import AsyncClient, Client, ServiceError
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http import arrow

BUSY, AWAY, CUT, WRONG = "busy", "away", "cut", "wrong"
STATUSES = {BUSY: 429, AWAY: 503, WRONG: 404}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("client")
    with Engine(write_model(folder), folder / "engine", EngineSettings(shadows=False)) as found:
        yield found


@contextmanager
def failing(url: str, failures: list[str]) -> Iterator[str]:
    """A server in front of the service: it fails as it is told, then it does what is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            how = failures.pop(0) if failures else None
            if how in STATUSES:
                self.send_response(STATUSES[how])
                if how == BUSY:
                    self.send_header("retry-after", "0")
                self.send_header("content-length", "0")
                self.end_headers()
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            answer = httpx.post(url + self.path, content=body, headers=headers)
            self.close_connection = True
            if how == CUT:
                return  # what was asked is done, and the answer is lost
            self.send_response(answer.status_code)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def use(url: str, do: Callable[[Client], Any], **options: Any) -> Any:
    with Client(url, **options) as client:
        return do(client)


def use_async(url: str, do: Callable[[AsyncClient], Awaitable[Any]], **options: Any) -> Any:
    async def used() -> Any:
        async with AsyncClient(url, **options) as client:
            return await do(client)

    return asyncio.run(used())


@pytest.mark.parametrize("used", [use, use_async])
def test_a_request_that_fails_first_is_learned_once(engine: Engine, used: Callable[..., Any]) -> None:
    before = engine.describe()["logged"]
    mails = records(3, seed=70)
    failures = [BUSY, AWAY, CUT, CUT]
    with served(engine, []) as url, failing(url, failures) as front:
        receipt = used(front, lambda client: client.learn(mails))
        assert (receipt.rows, receipt.repeated, failures) == (3, True, [])
        assert engine.describe()["logged"] == before + 1
        answer = used(url, lambda client: client.predict_one(mails[0]))
        failures[:] = [CUT, BUSY]
        labels = used(front, lambda client: client.label({answer.id: "no"}))
        assert (labels.accepted, labels.double, labels.repeated) == (1, [], True)
        assert engine.describe()["logged"] == before + 2


@pytest.mark.parametrize("used", [use, use_async])
def test_what_does_not_help_is_not_repeated(engine: Engine, used: Callable[..., Any]) -> None:
    failures = [WRONG, AWAY, AWAY, AWAY, CUT]
    with served(engine, []) as url, failing(url, failures) as front:
        for status in (404, 503):
            with pytest.raises(ServiceError) as raised:
                used(front, lambda client: client.query(records(1)), retries=2)
            assert raised.value.status == status
        assert failures == [CUT]
        with pytest.raises(httpx.RemoteProtocolError):
            used(front, lambda client: client.query(records(1)), retries=0)
    with pytest.raises(httpx.UnsupportedProtocol):
        used("ftp://127.0.0.1", lambda client: client.model(), retries=10**9)


def test_a_day_of_an_async_client(engine: Engine, tmp_path: Path) -> None:
    mails = records(60, seed=71)

    async def day(client: AsyncClient) -> None:
        many = await asyncio.gather(*(client.predict([mail]) for mail in mails[:20]))
        ids = [str(answers[0].id) for answers in many]
        assert (await client.label(dict.fromkeys(ids, "no"))).accepted == 20
        assert (await client.learn(mails[20:])).rows == 40
        assert len(await client.query(mails[:5])) == 5
        assert await asyncio.to_thread(engine.wait_until_learned, timeout=60)
        assert (await client.model())["learned"] == engine.describe()["logged"]
        assert (await client.tasks(sort="rows"))["tasks"][0]["rows"] > 0
        assert_same(await client.export(tmp_path / "copy.shoal"), engine.export())
        assert [path.name for path in tmp_path.iterdir()] == ["copy.shoal"]

    with served(engine, []) as url:
        use_async(url, day)


@pytest.mark.parametrize("task", ["a/b", "/", "//a//", ".", "..", "a?b#c", "50%2F", "ü"])
def test_a_task_may_have_any_name(engine: Engine, task: str) -> None:
    row = {**records(1, seed=72)[0], "user": task}
    with served(engine, []) as url, Client(url) as client:
        assert engine.wait_until_learned(client.learn(row).position, timeout=60)
        assert client.task(task)["task"] == task
        client.forget(task)
        with pytest.raises(ServiceError, match="no task"):
            client.task(task)


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, Any]:
        found = {name: one for name, one in vars(kind).items() if not name.startswith("_")}
        return {name: inspect.signature(one) for name, one in found.items()}

    assert methods(Client) == methods(AsyncClient)
    assert inspect.signature(Client) == inspect.signature(AsyncClient)


def test_rows_may_be_frames_of_any_library_and_hold_numbers_of_numpy(engine: Engine) -> None:
    frame = pl.DataFrame(records(3, late_columns=False)).drop("spam")
    forms = [frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), frame.to_dicts()]
    numpy_rows = [{name: np.float64(v) if isinstance(v, float) else v for name, v in row.items()} for row in forms[-1]]
    with served(engine, []) as url, Client(url) as client:
        found = [client.predict(rows) for rows in (*forms, numpy_rows)]
    expected = [(answer.predicted, answer.probability) for answer in found[0]]
    assert all([(answer.predicted, answer.probability) for answer in other] == expected for other in found)
    body, kind = client_module._body(np.array([[1.0, 2.0], [3.0, 4.0]]))  # named as a model of arrays names its columns
    assert arrow.read(body, 0).to_dict(as_series=False) == {"0": [1.0, 3.0], "1": [2.0, 4.0]}
    assert kind == arrow.ARROW
    assert client_module._label([("a", np.int64(1))], None).body == b'[{"id":"a","label":1}]'
    with pytest.raises(NotImplementedError, match="complex is no value of a row"):
        Client("http://127.0.0.1:1").predict([{"a": 1j}])
