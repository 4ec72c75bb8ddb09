"""Clients of a service. What is learned carries an idempotency key, so that asking again after a failure is safe."""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec
import polars as pl

from shoal.serve.contract import Answer, LabelReceipt, Receipt, Worth

ARROW, JSON = "application/vnd.apache.arrow.stream", "application/json"
AGAIN = (408, 429, 500, 502, 503, 504)  # statuses after which the same request may succeed
Table = pl.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]


class ServiceError(RuntimeError):
    """What the service answered instead: `status`, and `problem` as RFC 9457 has it."""

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
        How often a request is repeated that failed for the moment, after 0.1, 0.2, 0.4 ... seconds or as the service
        says.
    timeout : float
        Seconds.

    Notes
    -----
    Every method raises `ServiceError` for what the service refuses, and `httpx.TransportError` if it cannot be reached.
    """

    def __init__(self, url: str, token: str | None = None, *, retries: int = 5, timeout: float = 60.0) -> None:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        self._retries = retries

    def predict(self, rows: Table) -> list[Answer]:
        """What the model says of rows."""
        return [Answer(**one) for one in _rows(self._post("/v1/predict", *_body(rows)))]

    def predict_one(self, row: Mapping[str, Any]) -> Answer:
        """The same of one row."""
        return self.predict(row)[0]

    def learn(self, rows: Table, key: str | None = None) -> Receipt:
        """Learn labeled rows; when this returns they are safe, and in the model soon after."""
        return Receipt(**self._post("/v1/learn", *_body(rows), key=key or uuid.uuid4().hex))

    def label(self, labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None = None) -> LabelReceipt:
        """The labels of predictions, by their ids."""
        pairs = labels.items() if isinstance(labels, Mapping) else labels
        body = msgspec.json.encode([{"id": name, "label": label} for name, label in pairs])
        return LabelReceipt(**self._post("/v1/labels", body, JSON, key=key or uuid.uuid4().hex))

    def query(self, rows: Table) -> list[Worth]:
        """Which labels are worth asking for?"""
        return [Worth(**one) for one in _rows(self._post("/v1/query", *_body(rows)))]

    def model(self) -> dict[str, Any]:
        """The model in plain values."""
        return dict(self._ask("GET", "/v1/model").json())

    def tasks(self, sort: str = "rows", text: str = "", page: int = 1) -> dict[str, Any]:
        """A page of tasks: by "rows", "error", "newest" or "name"; those that contain the text."""
        return dict(self._ask("GET", "/v1/tasks", params={"sort": sort, "q": text, "page": page}).json())

    def task(self, task: str) -> dict[str, Any]:
        """One task."""
        return dict(self._ask("GET", f"/v1/tasks/{_quoted(task)}").json())

    def forget(self, task: str) -> Receipt:
        """Forget a task."""
        return Receipt(**self._ask("DELETE", f"/v1/tasks/{_quoted(task)}").json())

    def export(self, path: str | Path) -> Path:
        """Write the model file of now."""
        target = Path(path)
        with self._http.stream("GET", "/v1/export") as answer:
            if answer.status_code != 200:
                answer.read()
                raise _error(answer)
            with target.open("wb") as file:
                for block in answer.iter_bytes():
                    file.write(block)
        return target

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _post(self, path: str, body: bytes, kind: str, key: str | None = None) -> Any:
        headers = {"content-type": kind, "accept": JSON}
        if key is not None:
            headers["idempotency-key"] = key
        return self._ask("POST", path, content=body, headers=headers).json()

    def _ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        for attempt in range(self._retries + 1):
            wait = 0.1 * 2**attempt
            try:
                answer = self._http.request(method, path, **request)
            except httpx.TransportError:
                if attempt == self._retries:
                    raise
            else:
                if answer.status_code < 400:
                    return answer
                if answer.status_code not in AGAIN or attempt == self._retries:
                    raise _error(answer)
                wait = float(answer.headers.get("retry-after", wait))
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def _body(rows: Table) -> tuple[bytes, str]:
    """Rows as bytes, and their media type: tables as Arrow, dicts as JSON."""
    if isinstance(rows, pl.DataFrame):
        buffer = io.BytesIO()
        rows.write_ipc_stream(buffer)
        return buffer.getvalue(), ARROW
    return msgspec.json.encode(rows), JSON


def _rows(answer: Any) -> list[dict[str, Any]]:
    return [answer] if isinstance(answer, dict) else answer


def _quoted(task: str) -> str:
    return quote(task, safe="")


def _error(answer: httpx.Response) -> ServiceError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    return ServiceError(answer.status_code, problem if isinstance(problem, dict) else {})
