"""Clients of a service, with and without `await`. What they ask is in `calls`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import httpx

from shoal.serve import calls
from shoal.serve.calls import Attempts, Call, Table
from shoal.serve.contract import Answer, LabelReceipt, Receipt, Worth
from shoal.serve.http.shapes import Model, Task, Tasks

T = TypeVar("T")


class Client:
    """A service, from Python.

    Parameters
    ----------
    url : str
        Such as "http://127.0.0.1:8000".
    token : str, optional
    retries : int
        How often a request is repeated that failed for the moment, after 0.1, 0.2, 0.4 ... seconds or as the service
        says.
    timeout : float
        Seconds.

    Notes
    -----
    Every method raises `ServiceError` for what the service refuses, and `httpx.TransportError` if it cannot be reached.
    """

    def __init__(self, url: str, token: str | None = None, *, retries: int = 5, timeout: float = 60.0) -> None:
        self._http = httpx.Client(base_url=url, headers=calls.headers_of(token), timeout=timeout)
        self._retries = retries

    def predict(self, rows: Table) -> list[Answer]:
        """What the model says of rows."""
        return self._do(calls.predict(rows))

    def predict_one(self, row: Mapping[str, Any]) -> Answer:
        """The same of one row."""
        return self.predict(row)[0]

    def learn(self, rows: Table, key: str | None = None) -> Receipt:
        """Learn labeled rows; when this returns they are safe, and in the model soon after."""
        return self._do(calls.learn(rows, key))

    def label(self, labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None = None) -> LabelReceipt:
        """The labels of predictions, by their ids."""
        return self._do(calls.label(labels, key))

    def query(self, rows: Table) -> list[Worth]:
        """Which labels are worth asking for?"""
        return self._do(calls.query(rows))

    def model(self) -> Model:
        """The model in plain values."""
        return self._do(calls.model())

    def tasks(self, sort: str = "rows", text: str = "", page: int = 1) -> Tasks:
        """A page of tasks: by "rows", "error", "newest" or "name"; those that contain the text."""
        return self._do(calls.tasks(sort, text, page))

    def task(self, task: str) -> Task:
        """One task."""
        return self._do(calls.task(task))

    def forget(self, task: str) -> Receipt:
        """Forget a task; an error of status 404 after a lost connection may mean that it is done."""
        return self._do(calls.forget(task))

    def export(self, path: str | Path) -> Path:
        """Write the model file of now."""
        with calls.written_aside(Path(path)) as file:
            self._do(calls.export(), partial(self._download, file))
        return Path(path)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _do(self, call: Call[T], send: Callable[[Call[Any]], httpx.Response] | None = None) -> T:
        attempts = Attempts(self._retries)
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

    def _download(self, file: IO[bytes], call: Call[Any]) -> httpx.Response:
        """The body goes to the file; a further attempt writes it anew."""
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
        How often a request is repeated that failed for the moment, after 0.1, 0.2, 0.4 ... seconds or as the service
        says.
    timeout : float
        Seconds.
    """

    def __init__(self, url: str, token: str | None = None, *, retries: int = 5, timeout: float = 60.0) -> None:
        self._http = httpx.AsyncClient(base_url=url, headers=calls.headers_of(token), timeout=timeout)
        self._retries = retries

    async def predict(self, rows: Table) -> list[Answer]:
        """What the model says of rows."""
        return await self._do(calls.predict(rows))

    async def predict_one(self, row: Mapping[str, Any]) -> Answer:
        """The same of one row."""
        return (await self.predict(row))[0]

    async def learn(self, rows: Table, key: str | None = None) -> Receipt:
        """Learn labeled rows; when this returns they are safe, and in the model soon after."""
        return await self._do(calls.learn(rows, key))

    async def label(
        self, labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None = None
    ) -> LabelReceipt:
        """The labels of predictions, by their ids."""
        return await self._do(calls.label(labels, key))

    async def query(self, rows: Table) -> list[Worth]:
        """Which labels are worth asking for?"""
        return await self._do(calls.query(rows))

    async def model(self) -> Model:
        """The model in plain values."""
        return await self._do(calls.model())

    async def tasks(self, sort: str = "rows", text: str = "", page: int = 1) -> Tasks:
        """A page of tasks: by "rows", "error", "newest" or "name"; those that contain the text."""
        return await self._do(calls.tasks(sort, text, page))

    async def task(self, task: str) -> Task:
        """One task."""
        return await self._do(calls.task(task))

    async def forget(self, task: str) -> Receipt:
        """Forget a task; an error of status 404 after a lost connection may mean that it is done."""
        return await self._do(calls.forget(task))

    async def export(self, path: str | Path) -> Path:
        """Write the model file of now."""
        with calls.written_aside(Path(path)) as file:
            await self._do(calls.export(), partial(self._download, file))
        return Path(path)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _do(self, call: Call[T], send: Callable[[Call[Any]], Awaitable[httpx.Response]] | None = None) -> T:
        attempts = Attempts(self._retries)
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

    async def _download(self, file: IO[bytes], call: Call[Any]) -> httpx.Response:
        """The body goes to the file; a further attempt writes it anew."""
        file.seek(0)
        file.truncate()
        async with self._http.stream(**call.request()) as answer:
            if not answer.is_success:
                await answer.aread()
                return answer
            async for block in answer.aiter_bytes():
                await asyncio.to_thread(file.write, block)
        return answer
