"""Tables of (task, feature) pairs against a dict; of numbers, and of places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal.engine import intrinsics
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights import hash_table as tables
from shoal.engine.task_weights.hash_table import (
    FEATURE,
    FREE,
    NUMBERS,
    PLACES,
    SLOT,
    for_tasks,
    new_tables,
    of_task,
    with_capacity,
)

has_capacity, make_capacity, put_all, find, hint, number_at, place_at = map(
    from_python,
    (
        tables.has_capacity,
        tables.make_capacity,
        tables.put_all,
        tables.find,
        tables.hint,
        tables.number_at,
        tables.place_at,
    ),
)
number_in, set_number = from_python(intrinsics.number_in), from_python(intrinsics.set_number)
FEATURES = st.one_of(st.integers(0, 40), st.integers(0, 50).map(lambda j: 8 * j), st.integers(0, 2**31 - 2))
STEPS = st.lists(st.tuples(st.integers(0, 3), st.sets(FEATURES, min_size=1, max_size=30)), max_size=25)
KINDS = st.sampled_from([NUMBERS, PLACES])


def row_of(task: int, features: Sequence[int] | np.ndarray) -> Rounds:
    n = len(features)
    indices = np.array(features, np.int32)
    return Rounds(0, np.array([0, n]), indices, np.ones(n), np.array([task]), np.ones(1), np.array([0, 1]))


def slot_of(arena: Any, task: int, feature: int) -> Any:
    return find(arena, np.uint64(arena.start[task]), np.uint64(arena.size[task]), np.uint32(feature))


def held(arena: Any, task: int, feature: int) -> Any:
    """What the pair's slot holds; 0 if the pair does not occur."""
    if arena.size[task] == 0:
        return 0
    slot = slot_of(arena, task, feature)
    if tables.slots_of(arena) == PLACES:
        return int(arena.words[place_at(slot)])
    return number_in(arena.words, number_at(slot))


def hold(arena: Any, slot: int, value: float) -> None:
    if tables.slots_of(arena) == PLACES:
        arena.words[place_at(slot)] = value
    else:
        set_number(arena.words, number_at(slot), float(value))


def put(arena: Any, task: int, features: list[int], value: float) -> Any:
    """As a learner does: ask for room, let the table grow, put what is new; the rest is there."""
    while not has_capacity(row_of(task, features), 0, 1, arena):
        arena = with_capacity(arena)
    make_capacity(arena, task, len(features))
    for j in features:
        if arena.words[slot_of(arena, task, j)] == FREE:
            arena.waiting[FEATURE, 0] = j
            put_all(arena, task, 1)
            assert arena.waiting[SLOT, 0] == slot_of(arena, task, j)
        hold(arena, slot_of(arena, task, j), value)
    return arena


def assert_holds(arena: Any, known: Mapping[tuple[int, int], float]) -> None:
    for (task, feature), value in known.items():
        assert held(arena, task, feature) == value
        if len(arena.hints) > 0:
            assert hint(arena, np.uint64(arena.start[task]), np.uint64(arena.size[task]), np.uint32(feature))
    for task in range(len(arena.start)):
        mine = {feature: value for (k, feature), value in known.items() if k == task}
        assert dict(zip(*map(np.ndarray.tolist, of_task(arena, task)), strict=True)) == mine
        assert arena.filled[task] == len(mine)
    assert (4 * arena.filled <= 3 * tables.slots_of(arena) * arena.size).all()


@given(STEPS, KINDS)
def test_they_hold_what_was_put_in(steps: list[tuple[int, set[int]]], kind: int) -> None:
    arena = new_tables(4, tables.FIRST_CAPACITY, kind)
    known: dict[tuple[int, int], float] = {}
    for value, (task, features) in enumerate(steps, 1):
        arena = put(arena, task, sorted(features), value)
        known |= {(task, feature): value for feature in features}
    assert_holds(arena, known)
    tables.without_task(arena, 1)
    assert_holds(with_capacity(arena), {pair: value for pair, value in known.items() if pair[0] != 1})


@given(st.sets(FEATURES, min_size=1, max_size=30), KINDS)
def test_a_pair_that_does_not_occur_holds_zero(features: set[int], kind: int) -> None:
    arena = put(new_tables(2, tables.FIRST_CAPACITY, kind), 0, sorted(features), 3)
    for j in range(60):
        assert held(arena, 0, j) == (3 if j in features else 0)
        assert held(arena, 1, j) == 0


def test_other_tasks_share_the_arena() -> None:
    arena = put(new_tables(1, 64, NUMBERS), 0, [5], 3.0)
    more = for_tasks(arena, 3)
    assert more.words is arena.words
    assert len(more.start) == 3


@pytest.mark.parametrize("kind", [NUMBERS, PLACES])
def test_the_arena_stays_in_proportion(kind: int) -> None:
    """Tables that move take the pieces that others have left; small ones grow fourfold, large ones twofold."""
    arena = new_tables(50, tables.FIRST_CAPACITY, kind)
    for features in range(0, 1000, 10):
        for task in range(50):
            arena = put(arena, task, list(range(features, features + 10)), 1)
    assert arena.filled.sum() == 50_000
    assert kind * arena.size.sum() <= 5.4 * 50_000
    assert arena.used[0] <= 1.5 * arena.size.sum()
    assert len(arena.taken) < 8 * arena.used[0]
    sizes = set()
    for first in range(0, 60_000, 100):
        arena = put(arena, 0, list(range(first, first + 100)), 1)
        sizes.add(int(arena.size[0]))
    assert all(2 * size in sizes for size in sizes if tables.SMALL <= size < max(sizes))


def test_an_arena_has_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CAPACITY", 64)
    arena = with_capacity(put(new_tables(2, 16, NUMBERS), 0, [5], 3.0))
    assert len(arena.taken) == 64
    with pytest.raises(OverflowError, match="all 320 slots"):
        with_capacity(arena)
    assert_holds(arena, {(0, 5): 3.0})
