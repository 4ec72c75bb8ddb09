"""Making a state larger takes long: who holds a lock for learning lets readers go on with the old one meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_of_thread = threading.local()


@contextmanager
def stepping_aside(aside: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """In the body, this thread makes larger states inside of `aside()`, and takes them outside of it.

    The rows before some row have been learned then, and none of those after it. Who holds several states, of which
    some have learned a row and others have not, takes `nullcontext` for its body.
    """
    before = _aside()
    _of_thread.aside = aside
    try:
        yield
    finally:
        _of_thread.aside = before


def aside() -> AbstractContextManager[None]:
    """What this thread does while a larger state is made."""
    return _aside()()


def _aside() -> Callable[[], AbstractContextManager[None]]:
    found: Callable[[], AbstractContextManager[None]] = getattr(_of_thread, "aside", nullcontext)
    return found
