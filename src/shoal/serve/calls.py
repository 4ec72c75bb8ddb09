"""Calls of a service as values: what is asked, how the answer is read, and when to ask again. The clients add I/O.

What is learned carries an idempotency key, so that asking again after a failure is safe.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import polars as pl

from shoal.serve.contract import Answer, LabelReceipt, Receipt, Worth
from shoal.serve.http.shapes import Model, Task, Tasks

T = TypeVar("T")
Table = pl.DataFrame | Sequence[Mapping[str, Any]] | Mapping[str, Any]
ARROW, JSON = "application/vnd.apache.arrow.stream", "application/json"
AGAIN = (408, 429, 500, 502, 503, 504)  # statuses after which the same request may succeed
FINAL = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)  # the request itself is wrong
FIRST_WAIT = 0.1  # seconds; doubled for each further attempt


class ServiceError(RuntimeError):
    """What the service answered instead: `status`, and `problem` as RFC 9457 has it."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail', problem.get('title', 'no detail'))}")
        self.status, self.problem = status, problem


class Call(NamedTuple, Generic[T]):
    """One request, and what its answer says."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    query: Mapping[str, str | int] = {}

    def request(self) -> dict[str, Any]:
        """As httpx takes it."""
        headers, query = dict(self.headers), dict(self.query)
        return {
            "method": self.method, "url": self.path, "headers": headers, "content": self.body, "params": query or None
        }  # fmt: skip


class Attempts:
    """How often and when one call is asked again.

    Parameters
    ----------
    retries : int
        After the first attempt.
    """

    def __init__(self, retries: int) -> None:
        self._left, self._wait = retries, FIRST_WAIT

    def wait_after(self, found: httpx.Response | httpx.TransportError) -> float:
        """Seconds until the next attempt. Raises what was found if there is none."""
        if isinstance(found, httpx.Response):
            error: Exception = _error(found)
            again, wait = found.status_code in AGAIN, _said(found, self._wait)
        else:
            error, again, wait = found, not isinstance(found, FINAL), self._wait
        if self._left == 0 or not again:
            raise error
        self._left, self._wait = self._left - 1, 2.0 * self._wait
        return wait


def headers_of(token: str | None) -> dict[str, str]:
    """Of every request."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


# ---- the calls -----------------------------------------------------------------------------------------------


def predict(rows: Table) -> Call[list[Answer]]:
    """What the model says of rows."""
    return _post("/v1/predict", *_body(rows), lambda answer: [Answer(**one) for one in _listed(answer)])


def learn(rows: Table, key: str | None) -> Call[Receipt]:
    """Learn labeled rows."""
    return _post("/v1/learn", *_body(rows), _receipt, key or uuid.uuid4().hex)


def label(labels: Mapping[str, Any] | Iterable[tuple[str, Any]], key: str | None) -> Call[LabelReceipt]:
    """The labels of predictions, by their ids."""
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    body = msgspec.json.encode([{"id": name, "label": label} for name, label in pairs])
    return _post("/v1/labels", body, JSON, lambda answer: LabelReceipt(**answer.json()), key or uuid.uuid4().hex)


def query(rows: Table) -> Call[list[Worth]]:
    """Which labels are worth asking for?"""
    return _post("/v1/query", *_body(rows), lambda answer: [Worth(**one) for one in _listed(answer)])


def model() -> Call[Model]:
    """The model in plain values."""
    return Call("GET", "/v1/model", httpx.Response.json)


def tasks(sort: str, text: str, page: int) -> Call[Tasks]:
    """A page of tasks."""
    return Call("GET", "/v1/tasks", httpx.Response.json, query={"sort": sort, "q": text, "page": page})


def task(task: str) -> Call[Task]:
    """One task."""
    return Call("GET", _path(task), httpx.Response.json)


def forget(task: str) -> Call[Receipt]:
    """Forget a task."""
    return Call("DELETE", _path(task), _receipt)


def export() -> Call[None]:
    """The model file, which the client writes while it comes."""
    return Call("GET", "/v1/export", lambda _: None)


@contextmanager
def written_aside(path: Path) -> Iterator[IO[bytes]]:
    """A file that has its name when it is whole."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# ---- inside --------------------------------------------------------------------------------------------------


def _post(path: str, body: bytes, kind: str, read: Callable[[httpx.Response], T], key: str | None = None) -> Call[T]:
    keys = {} if key is None else {"idempotency-key": key}
    return Call("POST", path, read, {"content-type": kind, "accept": JSON, **keys}, body)


def _body(rows: Table) -> tuple[bytes, str]:
    """Rows as bytes, and their media type: tables as Arrow, dicts as JSON."""
    if isinstance(rows, pl.DataFrame):
        buffer = io.BytesIO()
        rows.write_ipc_stream(buffer, compression="uncompressed")
        return buffer.getvalue(), ARROW
    return msgspec.json.encode(rows), JSON


def _listed(answer: httpx.Response) -> list[dict[str, Any]]:
    found = answer.json()
    return [found] if isinstance(found, dict) else found


def _receipt(answer: httpx.Response) -> Receipt:
    return Receipt(**answer.json())


def _path(task: str) -> str:
    """Dots, too: between two slashes, one or two of them would lead elsewhere."""
    return f"/v1/tasks/{quote(task, safe='').replace('.', '%2E')}"


def _said(answer: httpx.Response, otherwise: float) -> float:
    """How long the service says to wait."""
    try:
        return max(float(answer.headers["retry-after"]), 0.0)
    except (KeyError, ValueError):  # it does not, or it names a date
        return otherwise


def _error(answer: httpx.Response) -> ServiceError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    return ServiceError(answer.status_code, problem if isinstance(problem, dict) else {})
