"""Kernels that only compiled code can call, for tests that call them from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def from_python(function: Any) -> Callable[..., Any]:
    """The function with a wrapper."""

    @numba.njit
    def entry(*arguments: Any) -> Any:
        return function(*arguments)

    called: Callable[..., Any] = entry
    return called
