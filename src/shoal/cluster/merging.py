"""How copies of what all tasks share become one again: `Algorithm.exchange`, entry by entry.

Each copy learned the rows of its own tasks since all were equal to a `base`. An entry that one copy moved is that
copy's, to the bit. One that several moved is

    mean over those copies            of weights
    base + sum of (copy - base)       of counts and sums over rows

and one that nobody moved stays. Sums are float64, taken in the order of the copies, so equal copies merge to equal bits
wherever and whenever they were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.model.algorithm import Exchange, Setup, State
from shoal.model.state import named_leaves

Shared = dict[str, NDArray[Any]]  # the arrays that are exchanged, by name


def shared_part(exchange: Exchange, state: State) -> Shared:
    """Copies of the arrays of a state that are exchanged."""
    leaves = named_leaves(state)
    return {name: leaves[name].copy() for name in (*exchange.mean, *exchange.sum)}


def take_shared(exchange: Exchange, setup: Setup, state: State, shared: Shared) -> None:
    """Put merged arrays in place of a state's own."""
    if exchange.settle is not None:
        exchange.settle(setup, state)
    leaves = named_leaves(state)
    for name, array in shared.items():
        leaves[name][...] = array
    if exchange.recount is not None:
        exchange.recount(setup, state)


def merged(exchange: Exchange, base: Shared, copies: Sequence[Shared]) -> Shared:
    """The copies as one.

    Raises
    ------
    ValueError
        If their arrays differ in shape: they know different features.
    """
    found: Shared = {}
    for name, start in base.items():
        arrays = [copy[name] for copy in copies]
        if any(array.shape != start.shape for array in arrays):
            raise ValueError(f"copies of {name} have shapes {[array.shape for array in arrays]}")
        found[name] = _summed(start, arrays) if name in exchange.sum else _averaged(start, arrays)
        columns = list(dict(exchange.sums_within).get(name, ()))
        if columns:
            found[name][..., columns] = _summed(start[..., columns], [array[..., columns] for array in arrays])
    return found


def _averaged(base: NDArray[Any], copies: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Of each entry the mean over the copies that moved it."""
    total, movers = np.zeros(base.shape), np.zeros(base.shape, np.int32)
    for copy in copies:
        moved = copy != base
        np.add(total, copy, out=total, where=moved)
        movers += moved
    np.divide(total, movers, out=total, where=movers > 1)  # once is the copy's own number
    found: NDArray[Any] = np.where(movers > 0, total, base).astype(base.dtype)
    return found


def _summed(base: NDArray[Any], copies: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Of each entry what it was, and what each copy added."""
    exact = np.int64 if base.dtype.kind == "i" else np.float64
    total, movers, only = np.zeros(base.shape, exact), np.zeros(base.shape, np.int32), base.copy()
    for copy in copies:
        moved = copy != base
        total += np.subtract(copy, base, dtype=exact)
        np.copyto(only, copy, where=moved)
        movers += moved
    found: NDArray[Any] = np.where(movers > 1, base + total, only).astype(base.dtype)
    return found
