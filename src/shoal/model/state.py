"""States: named tuples of arrays, whose fields say which of their axes count tasks, features or stored rows.

    class State(NamedTuple):
        weights: Annotated[FloatArray, TASK, FEATURE]
        updates: Annotated[IntArray, TASK]

A state may hold other named tuples of arrays. An array without a mark is shared by all tasks.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import aligned_zeros
from shoal.engine.axes import INFINITE, LATER, ROW, TASK, Axis

BLOCK = 2**21  # bytes: a huge page


class Leaf(NamedTuple):
    """One array of a kind of state."""

    name: str  # "weights", "own.dense"
    axes: tuple[Axis, ...]  # the mark of each axis, as far as it has one
    may_be_infinite: bool
    may_be_absent: bool  # in a file


def leaves(state: Any) -> list[NDArray[Any]]:
    """The arrays of a state in order."""
    return [leaf for part in state for leaf in (leaves(part) if isinstance(part, tuple) else [part])]


def described(kind: Any) -> tuple[Leaf, ...]:
    """The arrays that states of this kind of named tuple have, in the order of `leaves`."""
    return _described(kind, "")


@cache
def _described(kind: Any, prefix: str) -> tuple[Leaf, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found: list[Leaf] = []
    for name in kind._fields:
        hint = hints[name]
        if isinstance(hint, type) and hasattr(hint, "_fields"):
            found += _described(hint, f"{prefix}{name}.")
            continue
        marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        axes = tuple(mark for mark in marks if mark not in (INFINITE, LATER))
        found.append(Leaf(prefix + name, axes, INFINITE in marks, LATER in marks))
    return tuple(found)


def named_leaves(state: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a state by name."""
    return {leaf.name: array for leaf, array in zip(described(type(state)), leaves(state), strict=True)}


def rebuilt(state: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    """A state of the same kind from its arrays in order."""
    return type(state)(*(rebuilt(part, arrays) if isinstance(part, tuple) else next(arrays) for part in state))


def mapped(function: Callable[..., NDArray[Any]], *states: Any) -> Any:
    """function(leaf, array, ...) for the arrays of states of one kind."""
    kind = described(type(states[0]))
    arrays = zip(kind, *map(leaves, states), strict=True)
    return rebuilt(states[0], iter([function(*each) for each in arrays]))


def copied(state: Any) -> Any:
    """A deep copy. Spare capacity, which was never written, takes no memory in it either."""
    return rebuilt(state, iter([_copied_array(array) for array in leaves(state)]))


def _copied_array(array: NDArray[Any]) -> NDArray[Any]:
    if array.nbytes < 2 * BLOCK or not array.flags.c_contiguous:
        return array.copy(order="K")
    copy = aligned_zeros(array.shape, array.dtype)
    old, new = array.reshape(-1), copy.reshape(-1)
    step = BLOCK // array.itemsize
    for first in range(0, len(old), step):
        block = old[first : first + step]
        if block.view(np.uint8).any():  # of its bits: -0.0 is no zero here
            new[first : first + step] = block
    return copy


def copy_block(array: NDArray[Any], larger: NDArray[Any]) -> None:
    """Make an array the leading block of a larger one."""
    larger[tuple(slice(n) for n in array.shape)] = array


def trimmed_array(array: NDArray[Any], smaller: NDArray[Any]) -> NDArray[Any]:
    """A copy of the leading block that has the shape of `smaller`."""
    return np.array(array[tuple(slice(n) for n in smaller.shape)], order="C")


def in_capacity(state: Any, larger: Any) -> Any:
    """A state of the capacity of `larger`, with what is known as the leading block of each array; stored rows stay."""

    def fill(leaf: Leaf, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        if ROW in leaf.axes:
            return old
        copy_block(old, new)
        return new

    return mapped(fill, state, larger)


def trimmed(state: Any, smaller: Any) -> Any:
    """The leading block of each array that has the shape of the array in `smaller`; stored rows stay."""
    return mapped(lambda leaf, old, new: old.copy() if ROW in leaf.axes else trimmed_array(old, new), state, smaller)


def without_task(state: Any, k: int, empty: Any) -> Any:
    """`state` without task k, whose place at the end is that of `empty`, a new state of the same capacity."""

    def remove(leaf: Leaf, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        kept = old
        for axis, counted in enumerate(leaf.axes):
            if counted is TASK and old.shape[axis] > k:
                kept = np.delete(kept, k, axis)
        if kept is old:
            return old
        target = new if new.shape == old.shape else np.zeros_like(old)
        copy_block(kept, target)
        return target

    return mapped(remove, state, empty)


def nbytes(state: Any) -> int:
    """Memory of all arrays."""
    return sum(array.nbytes for array in leaves(state))
