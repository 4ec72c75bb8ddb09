"""Records of (task, feature) pairs against a dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python
from tests.engine.test_hash_table import STEPS, held, row_of

from shoal.engine.task_weights import hash_table as tables
from shoal.engine.task_weights import record_table as records
from shoal.engine.task_weights.hash_table import of_task
from shoal.engine.task_weights.record_table import (
    NOWHERE,
    Records,
    for_tasks,
    new_records,
    remove,
    with_capacity,
)

has_capacity, find_all, add_all = map(from_python, (tables.has_capacity, records.find_all, records.add_all))


def task_records(pairs: Records, task: int, n_features: int) -> np.ndarray:
    """(n_features, numbers) of a task as a dense array."""
    dense = np.zeros((n_features, pairs.records.shape[1]))
    features, places = of_task(pairs.tables, task)
    dense[features] = pairs.records[places]
    return dense


def found_for(features: Sequence[int] | np.ndarray) -> records.Found:
    return records.Found(*np.full((2, len(features)), -1))


def add(pairs: Any, task: int, features: np.ndarray) -> tuple[Any, np.ndarray]:
    """As a learner does; the pairs and where their records are."""
    while not has_capacity(row_of(task, features), 0, 1, pairs.tables):
        pairs = with_capacity(pairs)
    found = found_for(features)
    before = [held(pairs.tables, task, j) for j in features.tolist()]
    missing = find_all(pairs, task, features, found)
    np.testing.assert_array_equal(found.place, before)
    np.testing.assert_array_equal(found.entry[:missing], np.flatnonzero(found.place == NOWHERE))
    if missing > 0:
        add_all(pairs, task, features, missing, found)
    np.testing.assert_array_equal(found.place, [held(pairs.tables, task, j) for j in features])
    return pairs, found.place


def assert_holds(pairs: Any, known: Mapping[tuple[int, int], float]) -> None:
    for (task, feature), value in known.items():
        assert (pairs.records[held(pairs.tables, task, feature)] == value).all()
    assert pairs.tables.filled.sum() == len(known) == pairs.used[0] - 1
    assert not pairs.records[NOWHERE].any()
    assert not pairs.records[pairs.used[0] :].any()


@given(STEPS, st.sampled_from([False, False, False, True]))  # many take half a second
def test_whole_rows_are_found_and_added(steps: list[tuple[int, set[int]]], many: bool) -> None:
    pairs: Any = new_records(2, 4)
    known: dict[tuple[int, int], float] = {}
    if many:
        for task in range(2):
            features = np.arange(0, 24_000, 3)
            pairs, places = add(pairs, task, features)
            pairs.records[places] = 7.0
            known |= {(task, j): 7.0 for j in features.tolist()}
        assert pairs.tables.used[0] >= records.CACHED
    for value, (task, row) in enumerate(steps):
        features = np.array(sorted(row))
        missing = sum((task, j) not in known for j in features.tolist())
        before = int(pairs.used[0])
        pairs, places = add(pairs, task, features)
        assert pairs.used[0] == before + missing
        pairs.records[places] = value
        known |= {(task, j): value for j in features.tolist()}
    assert_holds(pairs, known)
    packed = records.pack(pairs, 4)
    records.check(packed, 2, 4, 2**31 - 1)
    assert_holds(records.unpack(packed, 2, 4), known)
    assert find_all(pairs, -1, np.arange(5), found_for(range(5))) == 5
    remove(pairs, 1)
    left = {pair: value for pair, value in known.items() if pair[0] != 1}
    room = len(pairs.tables.taken)
    for n_more, expected in ((0, 4 * room), (9, 4 * room), (16 * room, (int(pairs.used[0]) + 16 * room) // 2)):
        roomy = with_capacity(pairs, n_more)
        assert len(roomy.tables.taken) == expected
        assert_holds(roomy, left)


def test_a_pair_that_does_not_occur_has_zeros() -> None:
    pairs, places = add(new_records(1, 2), 0, np.array([5]))
    pairs.records[places] = 3.0
    np.testing.assert_array_equal(task_records(pairs, 0, 8)[:, 0], [0, 0, 0, 0, 0, 3, 0, 0])
    assert not task_records(pairs, 1, 8).any()
    assert len(for_tasks(pairs, 9).tables.start) == 9
