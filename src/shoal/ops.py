"""Jitted row operations that every learner shares; each serves dense and sparse rows.

The branch on `rounds.width` is the same for all rows of a table, so it costs nothing and dense rows never pay
for an index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shoal.rounds import Rounds

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile with the project's options: cached on disk, no GIL, sums reordered for SIMD, IEEE NaN and inf kept."""
    options = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "nsz", "contract"}}
    return cast(F, numba.njit(**options)(function))


@jit
def dot(rounds: Rounds, row: int, w: NDArray[np.float64]) -> float:
    """<w, x>."""
    total = 0.0
    if rounds.width > 0:
        first = row * rounds.width
        for j in range(rounds.width):
            total += rounds.values[first + j] * w[j]
    else:
        for p in range(rounds.indptr[row], rounds.indptr[row + 1]):
            total += rounds.values[p] * w[rounds.indices[p]]
    return total


@jit
def add(rounds: Rounds, row: int, scale: float, w: NDArray[np.float64]) -> None:
    """w <- w + scale x."""
    if rounds.width > 0:
        first = row * rounds.width
        for j in range(rounds.width):
            w[j] += scale * rounds.values[first + j]
    else:
        for p in range(rounds.indptr[row], rounds.indptr[row + 1]):
            w[rounds.indices[p]] += scale * rounds.values[p]


@jit
def squared_norm(rounds: Rounds, row: int) -> float:
    """||x||^2."""
    if rounds.width > 0:
        first, last = row * rounds.width, (row + 1) * rounds.width
    else:
        first, last = rounds.indptr[row], rounds.indptr[row + 1]
    total = 0.0
    for p in range(first, last):
        total += rounds.values[p] * rounds.values[p]
    return total
