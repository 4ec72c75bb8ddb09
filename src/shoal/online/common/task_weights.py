"""Functions of all algorithms whose state has a field `own` of `TaskWeights`."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from shoal.engine.rounds import Rounds
from shoal.engine.task_weights import weights
from shoal.model.algorithm import Algorithm, S, Setup, Size, State
from shoal.model.parameters import Params
from shoal.model.state import copy_block, trimmed_array


def every_row(params: Params) -> bool:
    """Most rows are learned from, not only mistakes."""
    return False


def packed_kind(kind: Any, part: str, packed: Any) -> Any:
    """The kind of named tuple in which one part of a state is packed."""
    return _packed_kind(kind, part, packed)


@cache
def _packed_kind(kind: Any, part: str, packed: Any) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    fields = [(name, packed if name == part else hints[name]) for name in kind._fields]
    return NamedTuple("Packed", fields)


def others(state: State) -> dict[str, Any]:
    """The arrays that are not tasks' own weights, by name."""
    return {name: array for name, array in state._asdict().items() if name != "own"}


def with_task_weights(algorithm: Algorithm[S], mistake_driven: Callable[[Params], bool] = every_row) -> Algorithm[S]:
    """The algorithm, whose tasks' own weights are dense rows or tables as it pays."""
    allocate: Callable[[Setup, Size], State] = algorithm.allocate

    def own_features(setup: Setup, size: Size) -> int:
        """No features if tasks are pooled."""
        own = allocate(setup, Size(1, 1)).own
        return size.features * int(own.dense.shape[1] > 0 or weights.is_wide(own))

    def limit(setup: Setup) -> int:
        return weights.dense_limit(mistake_driven(setup.params))

    def leave(setup: Setup, state: State, k: int) -> None:
        weights.remove(state.own, k)

    def grow(setup: Setup, state: State, size: Size) -> State:
        own = weights.grow(state.own, size.tasks, own_features(setup, size), limit(setup))
        larger = allocate(setup, size)
        for name, array in others(state).items():
            copy_block(array, getattr(larger, name))
        return larger._replace(own=own)

    def extend(setup: Setup, state: State, size: Size, rounds: Rounds) -> State:
        return state._replace(own=weights.extend(state.own, *size))

    def pack(setup: Setup, state: State, size: Size) -> Any:
        smaller = allocate(setup, size)
        own = weights.pack(state.own, size.tasks, own_features(setup, size), limit(setup))
        kept = {name: trimmed_array(array, getattr(smaller, name)) for name, array in others(state).items()}
        return packed_kind(type(state), "own", weights.PackedWeights)(**kept, own=own)

    def blank(setup: Setup, size: Size) -> Any:
        empty = allocate(setup, size)
        own = weights.blank(size.tasks, own_features(setup, size), empty.own.dense.dtype)
        return packed_kind(type(empty), "own", weights.PackedWeights)(**{**empty._asdict(), "own": own})

    def check(setup: Setup, packed: Any, size: Size) -> None:
        weights.check(packed.own, size.tasks, own_features(setup, size))

    def unpack(setup: Setup, packed: Any, size: Size) -> State:
        own = weights.unpack(packed.own, size.tasks)
        return type(allocate(setup, Size(1, 1)))(**{**packed._asdict(), "own": own})

    return algorithm._replace(
        tasks=algorithm.tasks._replace(leave=leave),
        storage=algorithm.storage._replace(
            grow=grow, extend=extend, pack=pack, blank=blank, check=check, unpack=unpack
        ),
    )
