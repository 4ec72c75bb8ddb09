"""Memory for the frames of Python functions that call each other deeply, as a compiler's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SLOTS = 2**14  # of the frame below, eight bytes each


def with_room(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result, the frames of what it calls in one piece of memory.

    CPython keeps frames in chunks of 16 KiB: a loop at the end of one has the system make and free a chunk in each of
    its calls. This function says that its own frame takes 128 KiB, so that it begins a chunk of 256 KiB.
    """
    return function(*arguments)


with_room.__code__ = with_room.__code__.replace(co_stacksize=SLOTS)
