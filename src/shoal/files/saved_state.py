"""The saved state of a stream, and one error for all that can be wrong with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

State = dict[str, Any]  # of JSON values


@contextmanager
def reading_state() -> Iterator[None]:
    """Turn all errors that a damaged or foreign state leads to into one ValueError."""
    try:
        yield
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError) as error:
        raise ValueError(
            f"the saved state of the file's columns is damaged ({type(error).__name__}: {error})"
        ) from None


def check_state(right: bool, what: str) -> None:
    """Raise ValueError if a saved state is not right."""
    if not right:
        raise ValueError(f"the saved state of the file's columns is damaged: {what}")
