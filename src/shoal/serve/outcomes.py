"""How a command ends: who asked is told, unless they no longer wait."""

from __future__ import annotations

import logging
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from shoal.serve.commands import Chore, Command, Label, Learn
from shoal.serve.contract import Conflict, LabelReceipt, Receipt
from shoal.serve.log import Used

logger = logging.getLogger("shoal")


def now(found: Any) -> Future[Any]:
    """What is there already."""
    future: Future[Any] = Future()
    future.set_result(found)
    return future


def done(command: Command, answer: Any) -> None:
    """Answer."""
    with suppress(InvalidStateError):  # who asked does not wait any more
        command.future.set_result(answer)


def fail(command: Command, error: BaseException) -> None:
    """Say what is wrong instead."""
    with suppress(InvalidStateError):
        command.future.set_exception(error)


def repeat(command: Learn | Label, used: Used) -> None:
    """The answer of the first time."""
    if used.digest != command.digest:
        fail(command, Conflict(f"the idempotency key {command.key!r} came with other rows before"))
    elif isinstance(command, Learn):
        done(command, Receipt(*used.answer)._replace(repeated=True))
    else:
        done(command, LabelReceipt(*used.answer)._replace(repeated=True))


def run(chore: Chore) -> None:
    """Do it now; what goes wrong is tried again another time."""
    try:
        done(chore, chore.work())
    except Exception as error:
        logger.warning("the log could not be tidied up; it will be tried again: %s", error)
        fail(chore, error)
