"""Commands to the writer of the log, each with the future of its answer; and the ways in which a command ends."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.serve.contract import Answer, Conflict, Followed, LabelReceipt, Messages, Receipt, Rows, Unavailable
from shoal.serve.log import Used, Waiting
from shoal.serve.model_changes import Change
from shoal.serve.served_model import ServedModel
from shoal.serve.topic_join import Joined

logger = logging.getLogger("shoal")


@dataclass
class Learn:
    """Learn labeled rows."""

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
    """Learn predicted rows: (id of the prediction, label) each."""

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
    """Store predicted rows until their labels come. The answers are sent after the commit."""

    waiting: list[Waiting]
    answers: Any
    future: Future[Any] = field(default_factory=Future)
    n_rows = 0


@dataclass
class Forget:
    """Forget a task; done when its rows among those that wait for labels are blanked, too."""

    task: str
    replaced: bool = False  # whether a replaced model knows it
    future: Future[Receipt] = field(default_factory=Future)
    n_rows = 1


@dataclass
class Follow:
    """Store and learn messages of a topic; `joined` are the rows that they complete."""

    messages: Messages
    future: Future[Followed] = field(default_factory=Future)
    joined: Joined | None = None

    @property
    def n_rows(self) -> int:
        return len(self.messages.labeled) + len(self.messages.labels)


@dataclass
class Alter:
    """Change the model: `loaded` is that of the file `part`, which came for the change."""

    change: Change
    loaded: ServedModel | None
    part: Path | None
    future: Future[Receipt] = field(default_factory=Future)
    n_rows = 0


@dataclass
class Chore:
    """Other work on the log, such as dropping old records."""

    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    n_rows = 0


Command = Learn | Label | Wait | Forget | Follow | Alter | Chore


def digest(body: bytes) -> bytes:
    """A hash of a request's content."""
    return hashlib.blake2b(body, digest_size=16).digest()


# ---- how a command ends --------------------------------------------------------------------------------------


def now(found: Any) -> Future[Any]:
    """A completed future."""
    future: Future[Any] = Future()
    future.set_result(found)
    return future


def done(command: Command, answer: Any) -> None:
    """Complete a command's future, unless it is canceled."""
    with suppress(InvalidStateError):
        command.future.set_result(answer)


def without_ids(answers: Sequence[Any], reason: str) -> list[Any]:
    """Answers whose rows do not wait for labels; each says why. Errors among them stay."""

    def without(answer: Answer) -> Answer:
        note = f"no id, as no label can come: {reason}"
        return answer._replace(id=None, note=note if answer.note is None else f"{answer.note}; {note}")

    return [without(one) if isinstance(one, Answer) else one for one in answers]


def fail(command: Command, error: BaseException) -> None:
    """Complete a command's future with an error, unless it is canceled. Predictions need no log to be answered."""
    if isinstance(command, Wait) and isinstance(error, Unavailable):
        done(command, without_ids(command.answers, str(error)))
        return
    with suppress(InvalidStateError):
        command.future.set_exception(error)


def repeat(command: Learn | Label, used: Used) -> None:
    """Answer a command whose key was used before as it was answered then."""
    if used.digest != command.digest:
        fail(command, Conflict(f"the idempotency key {command.key!r} came with other rows before"))
    elif isinstance(command, Learn):
        done(command, Receipt(*used.answer)._replace(repeated=True))
    else:
        done(command, LabelReceipt(*used.answer)._replace(repeated=True))


def run(chore: Chore) -> None:
    """Do a chore; a failure is logged, as the next chore does the same work."""
    try:
        done(chore, chore.work())
    except Exception as error:
        logger.warning("the log could not be tidied up; it will be tried again: %s", error)
        fail(chore, error)
