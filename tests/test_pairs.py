"""The table of (task, feature) pairs against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal import pairs as tables
from shoal.pairs import (
    compact,
    new_pairs,
    roomier,
    task_records,
    without_task,
)
from shoal.rounds import Rounds

has_room, make_room, add_pair, place_of, find_all, add_all = map(
    from_python,
    (tables.has_room, tables.make_room, tables.add_pair, tables.place_of, tables.find_all, tables.add_all),
)
FEATURES = st.one_of(st.integers(0, 40), st.integers(0, 50).map(lambda j: 8 * j), st.integers(0, 2**31 - 2))


def row_of(task, features):
    n = len(features)
    indices = np.array(features, np.int32)
    return Rounds(0, np.array([0, n]), indices, np.ones(n), np.array([task]), np.ones(1), np.array([0, 1]))


def put(pairs, task, features, value):
    """As a learner does: ask for room, let the table grow, add."""
    while not has_room(row_of(task, features), 0, 1, pairs):
        pairs = roomier(pairs)
    make_room(pairs, task, sum(place_of(pairs, task, j) == tables.NOWHERE for j in features))
    for j in features:
        pairs.records[add_pair(pairs, task, j)] = value
    return pairs


def assert_holds(pairs, known):
    for (task, feature), value in known.items():
        assert pairs.records[place_of(pairs, task, feature), 0] == value
    assert pairs.filled.sum() == len(known)
    assert (4 * pairs.filled <= 3 * pairs.size).all()
    assert not pairs.records[tables.NOWHERE].any()


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(FEATURES, min_size=1, max_size=30)), max_size=25))
def test_it_holds_what_was_put_in(steps):
    pairs, known = new_pairs(2, 4), {}
    for value, (task, features) in enumerate(steps):
        pairs = put(pairs, task, sorted(features), value)
        known |= {(task, feature): value for feature in features}
    assert_holds(pairs, known)
    assert_holds(compact(pairs, 4), known)
    assert not compact(pairs, 4).waiting.any()
    without_task(pairs, 1)
    assert place_of(pairs, 1, 0) == tables.NOWHERE
    assert_holds(roomier(pairs), {pair: value for pair, value in known.items() if pair[0] != 1})


def test_a_pair_that_is_not_there_has_zeros():
    pairs = put(new_pairs(1, 2), 0, [5], 3.0)
    assert pairs.records[place_of(pairs, 0, 6), 0] == 0.0
    assert pairs.records[place_of(pairs, 1, 5), 0] == 0.0
    assert pairs.records[place_of(pairs, -1, 5), 0] == 0.0
    np.testing.assert_array_equal(task_records(pairs, 0, 8)[:, 0], [0, 0, 0, 0, 0, 3, 0, 0])


def test_the_arena_stays_in_proportion():
    """Tables that move take the pieces that others have left."""
    pairs = new_pairs(1, 50)
    for features in range(0, 1000, 10):
        for task in range(50):
            pairs = put(pairs, task, list(range(features, features + 10)), 1.0)
    assert pairs.filled.sum() == 50_000
    assert pairs.used[tables.SLOTS] <= 2 * pairs.size.sum()
    assert pairs.used[tables.RECORDS] == 1 + 50_000
    assert len(pairs.slots) < 8 * pairs.used[tables.SLOTS]


def test_an_arena_has_its_limit(monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROOM", 512)
    pairs = roomier(put(new_pairs(1, 2), 0, [5], 3.0))
    assert len(pairs.slots) == 1024
    with pytest.raises(OverflowError, match="all 512 slots"):
        roomier(pairs)
    assert_holds(pairs, {(0, 5): 3.0})


def found_for(features):
    return tables.Found(*np.full((2, len(features)), -1))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sets(FEATURES, min_size=1, max_size=30)), max_size=25),
    st.booleans(),
    st.booleans(),
)
def test_whole_rows_are_found_and_added(steps, hints, many):
    pairs, known = new_pairs(2, 4, hints=hints), {}
    if many:
        for task in range(2):
            pairs = put(pairs, task, range(0, 24_000, 3), 7.0)
            known |= {(task, j): 7.0 for j in range(0, 24_000, 3)}
        assert pairs.used[tables.SLOTS] >= tables.CACHED
    for value, (task, row) in enumerate(steps):
        features = np.array(sorted(row))
        while not has_room(row_of(task, features), 0, 1, pairs):
            pairs = roomier(pairs)
        found, new = found_for(features), [(task, j) not in known for j in features.tolist()]
        missing = find_all(pairs, task, features, found)
        assert missing == sum(new)
        np.testing.assert_array_equal(found.place == tables.NOWHERE, new)
        np.testing.assert_array_equal(found.entry[:missing], np.flatnonzero(new))
        if missing > 0:
            add_all(pairs, task, features, missing, found)
        np.testing.assert_array_equal(found.place, [place_of(pairs, task, j) for j in features])
        pairs.records[found.place] = value
        known |= {(task, j): value for j in features.tolist()}
    assert_holds(pairs, known)
    assert_holds(compact(pairs, 4), known)
    assert len(compact(pairs, 4).hints) == (len(compact(pairs, 4).slots) // 2 if hints else 0)
    assert find_all(pairs, -1, np.arange(5), found_for(range(5))) == 5
