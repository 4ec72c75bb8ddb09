"""What is asked of the writer of the log, each with the future that its answer goes to."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from shoal.serve.contract import Answer, Followed, LabelReceipt, Messages, Receipt, Rows
from shoal.serve.joining import Joined
from shoal.serve.log import Waiting


@dataclass
class Learn:
    """Rows that have their labels."""

    rows: Rows
    body: bytes
    key: str | None
    future: Future[Receipt] = field(default_factory=Future)

    @property
    def n_rows(self) -> int:
        return self.rows.frame.height

    @property
    def digest(self) -> bytes:
        return digest(self.body)


@dataclass
class Label:
    """Labels of rows that were predicted: (id of the prediction, label) each."""

    labels: Sequence[tuple[str, Any]]
    key: str | None
    future: Future[LabelReceipt] = field(default_factory=Future)

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def digest(self) -> bytes:
        return digest(repr(list(self.labels)).encode())


@dataclass
class Wait:
    """Predictions whose rows wait for their labels. The answers are given when they are in the log."""

    waiting: list[Waiting]
    answers: Any
    future: Future[Any] = field(default_factory=Future)
    n_rows = 0


@dataclass
class Forget:
    """Forget a task; `edited` takes it out of rows that wait."""

    task: str
    edited: Callable[[bytes], bytes | None]
    future: Future[Receipt] = field(default_factory=Future)
    n_rows = 1


@dataclass
class Follow:
    """Messages of a topic; `joined` is what they came to."""

    messages: Messages
    future: Future[Followed] = field(default_factory=Future)
    joined: Joined | None = None

    @property
    def n_rows(self) -> int:
        return len(self.messages.labeled) + len(self.messages.labels)


@dataclass
class Chore:
    """Something else that writes to the log, such as dropping old records."""

    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    n_rows = 0


Command = Learn | Label | Wait | Forget | Follow | Chore


def digest(body: bytes) -> bytes:
    """What tells one request's content from another's."""
    return hashlib.blake2b(body, digest_size=16).digest()


# ---- ids of predictions: a time in milliseconds, chance, and the row ----------------------------------------


_random = random.Random()  # begun by the system's; an id is no secret, tokens are


def new_request() -> str:
    """The id of a prediction request; later ones are greater."""
    return f"{int(time.time() * 1000):012x}{_random.getrandbits(40):010x}"


def id_of(request: str, row: int) -> str:
    """The id of one of its rows."""
    return f"{request}-{row}"


def parse_id(text: str) -> tuple[str, int] | None:
    """Request and row of an id; None if it is none."""
    request, mark, row = text.rpartition("-")
    if len(request) != 22 or not mark or not row.isdecimal() or len(row) > 9:
        return None
    try:
        int(request, 16)
    except ValueError:
        return None
    return request, int(row)


def time_of(request: str) -> float:
    """When a prediction was asked for."""
    return int(request[:12], 16) / 1000


def first_request(moment: float) -> str:
    """The least id of requests from a time on."""
    return f"{max(int(moment * 1000), 0):012x}" + "0" * 10


def with_ids(answers: Sequence[Answer], request: str) -> list[Answer]:
    """Answers with the ids of their rows."""
    return [answer._replace(id=id_of(request, row)) for row, answer in enumerate(answers)]
