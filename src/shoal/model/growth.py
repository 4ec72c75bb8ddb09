"""Lets the holder of a lock for learning release it while arrays are copied into larger ones."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

_aside: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar("aside", default=nullcontext)


@contextmanager
def stepping_aside(aside: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """In the body, this thread makes larger states, or one without a task, inside of `aside()`, and takes it outside.

    The rows before some row are learned then, and none of those after it. A holder of several states, of which some
    have learned a row and others have not, passes `nullcontext`.
    """
    token = _aside.set(aside)
    try:
        yield
    finally:
        _aside.reset(token)


def aside() -> AbstractContextManager[None]:
    """The context in which this thread makes a larger state."""
    return _aside.get()()
