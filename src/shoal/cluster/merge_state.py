"""Merging of the state that all tasks share: one state out of the copies of several shards, entry by entry.

All copies were equal to a `base`; then each learned the rows of its own tasks. `Algorithm.exchange` says which arrays
are shared and how each merges. An entry that no copy changed keeps its value. An entry that one copy changed takes that
copy's value, bit for bit. An entry that several copies changed becomes

    mean over those copies            for weights
    base + sum of (copy - base)       for counts and sums over rows

Sums are float64 and in the order of the copies, so equal copies merge to equal bits on every machine.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.model.algorithm import Exchange, Setup, State
from shoal.model.state import named_leaves

Shared = dict[str, NDArray[Any]]  # the shared arrays by name


def shared_part(exchange: Exchange, state: State) -> Shared:
    """Copies of a state's shared arrays."""
    leaves = named_leaves(state)
    return {name: leaves[name].copy() for name in (*exchange.mean, *exchange.sum)}


def take_shared(exchange: Exchange, setup: Setup, state: State, shared: Shared) -> None:
    """Overwrite a state's shared arrays by merged ones."""
    if exchange.settle is not None:
        exchange.settle(setup, state)
    leaves = named_leaves(state)
    for name, array in shared.items():
        leaves[name][...] = array
    if exchange.recount is not None:
        exchange.recount(setup, state)


def merged(exchange: Exchange, base: Shared, copies: Sequence[Shared]) -> Shared:
    """Merge copies.

    Raises
    ------
    ValueError
        If their arrays differ in shape, because they know different features.
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
    """The mean of each entry over the copies that changed it."""
    total, changes = np.zeros(base.shape), np.zeros(base.shape, np.int32)
    for copy in copies:
        changed = copy != base
        np.add(total, copy, out=total, where=changed)
        changes += changed
    np.divide(total, changes, out=total, where=changes > 1)  # one change is the copy's own number
    found: NDArray[Any] = np.where(changes > 0, total, base).astype(base.dtype)
    return found


def _summed(base: NDArray[Any], copies: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Each entry of the base plus the changes of all copies."""
    exact = np.int64 if base.dtype.kind == "i" else np.float64
    total, changes, only = np.zeros(base.shape, exact), np.zeros(base.shape, np.int32), base.copy()
    for copy in copies:
        changed = copy != base
        total += np.subtract(copy, base, dtype=exact)
        np.copyto(only, copy, where=changed)
        changes += changed
    found: NDArray[Any] = np.where(changes > 1, base + total, only).astype(base.dtype)
    return found
