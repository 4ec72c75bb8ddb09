"""Clients of a service, with and without `await`.

A `Call` is a request as a value: its bytes, and how its answer is read. `Attempts` says when it is sent again.
`Client` and `AsyncClient` add the I/O. Rows to learn carry an idempotency key, so that sending again is safe.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import numpy as np
import polars as pl

from shoal.files.tables.frames import as_table
from shoal.serve.contract import Answer, LabelReceipt, Receipt, Worth
from shoal.serve.http import arrow
from shoal.serve.http.openapi import Explanation, Model, Task, Tasks
from shoal.serve.http.request_bodies import JSON
from shoal.whole_file import whole_file

T = TypeVar("T")
Table = Sequence[Mapping[str, Any]] | Mapping[str, Any] | Any  # or a data frame of any library
AGAIN = (408, 429, 500, 502, 503, 504)  # statuses after which the same request may succeed
FINAL = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)  # the request itself is wrong
BLOCK = 1 << 20  # bytes of a file that are sent at once
FIRST_WAIT = 0.1  # seconds; doubled for each further attempt


class ServiceError(RuntimeError):
    """The service refused a request: `status`, and `problem` as RFC 9457 has it."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail', problem.get('title', 'no detail'))}")
        self.status, self.problem = status, problem


class Client:
    """A service, from Python.

    Parameters
    ----------
    url : str
        Such as "http://127.0.0.1:8000".
    token : str, optional
    retries : int
        How often a request that failed for the moment is repeated: after 0.1, 0.2, 0.4 ... seconds, or when the service
        says.
    timeout : float
        Seconds.

    Notes
    -----
    Every method raises `ServiceError` if the service refuses the request, and `httpx.TransportError` if it cannot be
    reached.
    """

    def __init__(self, url: str, token: str | None = None, *, retries: int = 5, timeout: float = 60.0) -> None:
        self._http = httpx.Client(base_url=url, headers=_headers(token), timeout=timeout)
        self._retries = retries

    def predict(self, rows: Table) -> list[Answer]:
        """Predict rows."""
        return self._do(_predict(rows))

    def predict_one(self, row: Mapping[str, Any]) -> Answer:
        """Predict one row."""
        return self.predict(row)[0]

    def learn(self, rows: Table, key: str | None = None) -> Receipt:
        """Learn labeled rows; when this returns they are safe, and in the model soon after."""
        return self._do(_learn(rows, key))

    def label(self, labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None = None) -> LabelReceipt:
        """The labels of predictions, by their ids."""
        return self._do(_label(labels, key))

    def query(self, rows: Table) -> list[Worth]:
        """Which labels are worth asking for?"""
        return self._do(_query(rows))

    def explain(self, rows: Table) -> list[Explanation]:
        """Why is the forecast of each row what it is? `text` says it in at most ten lines."""
        return self._do(_explain(rows))

    def model(self) -> Model:
        """The model in plain values."""
        return self._do(_model())

    def tasks(self, sort: str = "rows", text: str = "", page: int = 1) -> Tasks:
        """A page of tasks: by "rows", "error", "loss", "auc", "newest" or "name"; those that contain the text."""
        return self._do(_tasks(sort, text, page))

    def task(self, task: str) -> Task:
        """One task."""
        return self._do(_task(task))

    def forget(self, task: str) -> Receipt:
        """Forget a task; an error of status 404 after a lost connection may mean that it is done."""
        return self._do(_forget(task))

    def export(self, path: str | Path) -> Path:
        """Write the model file of now."""
        with whole_file(path) as part, part.open("wb") as file:
            self._do(_export(), partial(self._download, file))
        return Path(path)

    def swap(self, path: str | Path, *, shadow: bool = False) -> Receipt:
        """Put the model of a file in place, or with `shadow` beside it as a candidate; done when it answers, or learns.

        This, `promote` and `rollback` are sent once: after a lost connection, `model` says what became of it.
        """
        return self._do(_swap(shadow=shadow), partial(self._upload, Path(path)))

    def promote(self) -> Receipt:
        """Put the candidate in place."""
        return self._do(_changed("promote"))

    def rollback(self) -> Receipt:
        """Return to the model that was replaced last, as it was then."""
        return self._do(_changed("rollback"))

    def drop_shadow(self) -> Receipt:
        """End the candidate."""
        return self._do(_changed("shadow", "DELETE"))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _do(self, call: Call[T], send: Callable[[Call[Any]], httpx.Response] | None = None) -> T:
        attempts = Attempts(0 if call.once else self._retries)
        while True:
            found: httpx.Response | httpx.TransportError
            try:
                found = (send or self._send)(call)
                if found.is_success:
                    return call.read(found)
            except httpx.TransportError as error:
                found = error
            time.sleep(attempts.wait_after(found))

    def _send(self, call: Call[Any]) -> httpx.Response:
        return self._http.request(**call.request())

    def _upload(self, path: Path, call: Call[Any]) -> httpx.Response:
        """Send the file as the body; a large model is read for a while."""
        with path.open("rb") as file:
            content = iter(partial(file.read, BLOCK), b"")
            return self._http.request(**{**call.request(), "content": content, "timeout": None})

    def _download(self, file: IO[bytes], call: Call[Any]) -> httpx.Response:
        """Write the body to the file; a further attempt begins it anew."""
        file.seek(0)
        file.truncate()
        with self._http.stream(**call.request()) as answer:
            if not answer.is_success:
                answer.read()
                return answer
            for block in answer.iter_bytes():
                file.write(block)
        return answer


class AsyncClient:
    """A service, from Python with asyncio: the methods of `Client`, each to be awaited.

    Parameters
    ----------
    url : str
        Such as "http://127.0.0.1:8000".
    token : str, optional
    retries : int
        How often a request that failed for the moment is repeated: after 0.1, 0.2, 0.4 ... seconds, or when the service
        says.
    timeout : float
        Seconds.
    """

    def __init__(self, url: str, token: str | None = None, *, retries: int = 5, timeout: float = 60.0) -> None:
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token), timeout=timeout)
        self._retries = retries

    async def predict(self, rows: Table) -> list[Answer]:
        """Predict rows."""
        return await self._do(_predict(rows))

    async def predict_one(self, row: Mapping[str, Any]) -> Answer:
        """Predict one row."""
        return (await self.predict(row))[0]

    async def learn(self, rows: Table, key: str | None = None) -> Receipt:
        """Learn labeled rows; when this returns they are safe, and in the model soon after."""
        return await self._do(_learn(rows, key))

    async def label(
        self, labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None = None
    ) -> LabelReceipt:
        """The labels of predictions, by their ids."""
        return await self._do(_label(labels, key))

    async def query(self, rows: Table) -> list[Worth]:
        """Which labels are worth asking for?"""
        return await self._do(_query(rows))

    async def explain(self, rows: Table) -> list[Explanation]:
        """Why is the forecast of each row what it is? `text` says it in at most ten lines."""
        return await self._do(_explain(rows))

    async def model(self) -> Model:
        """The model in plain values."""
        return await self._do(_model())

    async def tasks(self, sort: str = "rows", text: str = "", page: int = 1) -> Tasks:
        """A page of tasks: by "rows", "error", "loss", "auc", "newest" or "name"; those that contain the text."""
        return await self._do(_tasks(sort, text, page))

    async def task(self, task: str) -> Task:
        """One task."""
        return await self._do(_task(task))

    async def forget(self, task: str) -> Receipt:
        """Forget a task; an error of status 404 after a lost connection may mean that it is done."""
        return await self._do(_forget(task))

    async def export(self, path: str | Path) -> Path:
        """Write the model file of now."""
        with whole_file(path) as part, part.open("wb") as file:
            await self._do(_export(), partial(self._download, file))
        return Path(path)

    async def swap(self, path: str | Path, *, shadow: bool = False) -> Receipt:
        """Put the model of a file in place, or with `shadow` beside it as a candidate; done when it answers, or learns.

        This, `promote` and `rollback` are sent once: after a lost connection, `model` says what became of it.
        """
        return await self._do(_swap(shadow=shadow), partial(self._upload, Path(path)))

    async def promote(self) -> Receipt:
        """Put the candidate in place."""
        return await self._do(_changed("promote"))

    async def rollback(self) -> Receipt:
        """Return to the model that was replaced last, as it was then."""
        return await self._do(_changed("rollback"))

    async def drop_shadow(self) -> Receipt:
        """End the candidate."""
        return await self._do(_changed("shadow", "DELETE"))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _do(self, call: Call[T], send: Callable[[Call[Any]], Awaitable[httpx.Response]] | None = None) -> T:
        attempts = Attempts(0 if call.once else self._retries)
        while True:
            found: httpx.Response | httpx.TransportError
            try:
                found = await (send or self._send)(call)
                if found.is_success:
                    return call.read(found)
            except httpx.TransportError as error:
                found = error
            await asyncio.sleep(attempts.wait_after(found))

    async def _send(self, call: Call[Any]) -> httpx.Response:
        return await self._http.request(**call.request())

    async def _upload(self, path: Path, call: Call[Any]) -> httpx.Response:
        """Send the file as the body; a large model is read for a while."""

        async def content() -> AsyncIterator[bytes]:
            while block := await asyncio.to_thread(file.read, BLOCK):
                yield block

        with path.open("rb") as file:
            return await self._http.request(**{**call.request(), "content": content(), "timeout": None})

    async def _download(self, file: IO[bytes], call: Call[Any]) -> httpx.Response:
        """Write the body to the file; a further attempt begins it anew."""
        file.seek(0)
        file.truncate()
        async with self._http.stream(**call.request()) as answer:
            if not answer.is_success:
                await answer.aread()
                return answer
            async for block in answer.aiter_bytes():
                await asyncio.to_thread(file.write, block)
        return answer


# ---- requests as values --------------------------------------------------------------------------------------


class Call(NamedTuple, Generic[T]):
    """One request, with the function that reads its answer."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    query: Mapping[str, str | int] = {}
    once: bool = False  # whether it is sent once only, as the second time would do more

    def request(self) -> dict[str, Any]:
        """The arguments of `httpx.Client.request`."""
        return {
            "method": self.method,
            "url": self.path,
            "headers": dict(self.headers),
            "content": self.body,
            "params": dict(self.query) or None,
        }


class Attempts:
    """The attempts of one call.

    Parameters
    ----------
    retries : int
        After the first attempt.
    """

    def __init__(self, retries: int) -> None:
        self._left, self._wait = retries, FIRST_WAIT

    def wait_after(self, found: httpx.Response | httpx.TransportError) -> float:
        """Seconds until the next attempt. Raises the failure if there is none."""
        if isinstance(found, httpx.Response):
            error: Exception = _error(found)
            again, wait = found.status_code in AGAIN, _retry_after(found, self._wait)
        else:
            error, again, wait = found, not isinstance(found, FINAL), self._wait
        if self._left == 0 or not again:
            raise error
        self._left, self._wait = self._left - 1, 2.0 * self._wait
        return wait


def _predict(rows: Table) -> Call[list[Answer]]:
    """Predict rows."""
    return _post("/v1/predict", *_body(rows), lambda answer: [_answer(one) for one in _listed(answer)])


def _answer(found: dict[str, Any]) -> Answer:
    """An answer as the service made it: JSON has null for ends that are infinite."""
    if "low" in found and found["low"] is None:
        found = {**found, "low": -math.inf, "high": math.inf}
    return Answer(**found)


def _learn(rows: Table, key: str | None) -> Call[Receipt]:
    """Learn labeled rows."""
    return _post("/v1/learn", *_body(rows), _receipt, key or uuid.uuid4().hex)


def _label(labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None) -> Call[LabelReceipt]:
    """The labels of predictions, by their ids."""
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    body = msgspec.json.encode([{"id": name, "label": label} for name, label in pairs], enc_hook=_plain)
    return _post("/v1/labels", body, JSON, lambda answer: LabelReceipt(**answer.json()), key or uuid.uuid4().hex)


def _query(rows: Table) -> Call[list[Worth]]:
    """Which labels are worth asking for?"""
    return _post("/v1/query", *_body(rows), lambda answer: [Worth(**one) for one in _listed(answer)])


def _explain(rows: Table) -> Call[list[Explanation]]:
    """Why are forecasts what they are?"""
    return _post("/v1/explain", *_body(rows), _listed)


def _model() -> Call[Model]:
    """The model in plain values."""
    return Call("GET", "/v1/model", httpx.Response.json)


def _tasks(sort: str, text: str, page: int) -> Call[Tasks]:
    """A page of tasks."""
    return Call("GET", "/v1/tasks", httpx.Response.json, query={"sort": sort, "q": text, "page": page})


def _task(task: str) -> Call[Task]:
    """One task."""
    return Call("GET", _path(task), httpx.Response.json)


def _forget(task: str) -> Call[Receipt]:
    """Forget a task."""
    return Call("DELETE", _path(task), _receipt)


def _swap(*, shadow: bool) -> Call[Receipt]:
    """The model file that the client sends."""
    kind = {"content-type": "application/octet-stream"}
    return Call("PUT", f"/v1/model{'/shadow' if shadow else ''}", _receipt, kind, once=True)


def _changed(what: str, method: str = "POST") -> Call[Receipt]:
    """A change of the model."""
    return Call(method, f"/v1/model/{what}", _receipt, once=True)


def _export() -> Call[None]:
    """The model file; the client writes it to the disk while it comes."""
    return Call("GET", "/v1/export", lambda _: None)


def _post(path: str, body: bytes, kind: str, read: Callable[[httpx.Response], T], key: str | None = None) -> Call[T]:
    keys = {} if key is None else {"idempotency-key": key}
    return Call("POST", path, read, {"content-type": kind, "accept": JSON, **keys}, body)


def _body(rows: Table) -> tuple[bytes, str]:
    """Rows as bytes, and their media type: tables as Arrow, dicts as JSON."""
    if not isinstance(rows, pl.DataFrame | Mapping | Sequence):
        rows = as_table(rows.collect() if isinstance(rows, pl.LazyFrame) else rows)
    if isinstance(rows, pl.DataFrame):
        return arrow.write(rows), arrow.ARROW
    return msgspec.json.encode(rows, enc_hook=_plain), JSON


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(
        f"{type(value).__name__} is no value of a row, expected a number, text, truth value or None"
    )


def _listed(answer: httpx.Response) -> list[Any]:
    found = answer.json()
    return [found] if isinstance(found, dict) else found


def _receipt(answer: httpx.Response) -> Receipt:
    return Receipt(**answer.json())


def _path(task: str) -> str:
    """The path of a task. Dots are quoted too, as `.` and `..` between slashes would lead elsewhere."""
    return f"/v1/tasks/{quote(task, safe='').replace('.', '%2E')}"


def _retry_after(answer: httpx.Response, otherwise: float) -> float:
    """The seconds of Retry-After, or else those given."""
    try:
        return max(float(answer.headers["retry-after"]), 0.0)
    except (KeyError, ValueError):  # it is missing, or a date
        return otherwise


def _error(answer: httpx.Response) -> ServiceError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    return ServiceError(answer.status_code, problem if isinstance(problem, dict) else {})


def _headers(token: str | None) -> dict[str, str]:
    """The headers of every request."""
    return {} if token is None else {"authorization": f"Bearer {token}"}
