"""Task ids of every hashable kind as columns."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.model.tasks import TaskIndex

ids = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", ""]), st.tuples(st.integers(0, 1), st.booleans()))


@given(known=st.lists(ids, unique=True), rows=st.lists(ids, min_size=1, max_size=80))
def test_columns_are_in_order_of_appearance(known: list[Any], rows: list[Any]) -> None:
    index = TaskIndex(known)
    array = np.empty(len(rows), object)
    array[:] = rows
    columns, fresh = index.encode(array, len(rows))
    order = list(dict.fromkeys([*known, *rows]))
    assert [order[column] for column in columns] == rows
    assert fresh == order[len(known) :]
    assert index.ids == known  # nothing is added before all input is known to be good
    seen = index.look_up(rows, len(rows))
    assert [column >= 0 for column in seen] == [row in known for row in rows]
    index.add(fresh)
    assert index.ids == order
    np.testing.assert_array_equal(index.look_up(rows, len(rows)), columns)


@given(
    rows=st.lists(st.integers(-50, 50), min_size=33, max_size=120), offset=st.sampled_from([0, 10**6, -(2**62), 2**61]),
    wide=st.sampled_from([1, 10**9]),
)  # fmt: skip
def test_the_fast_way_for_integers_is_the_slow_way(rows: list[int], offset: int, wide: int) -> None:
    array = np.array([row * wide + offset for row in rows])
    none: list[int] = []
    for known in (none, array[:5].tolist()):
        fast, slow = TaskIndex(known).encode(array, len(rows)), TaskIndex(known).encode(array.tolist(), len(rows))
        np.testing.assert_array_equal(fast[0], slow[0])
        assert fast[1] == slow[1]
        assert all(type(task) is int for task in fast[1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, np.int64])
def test_integer_types(dtype: type) -> None:
    array: np.ndarray = np.tile(np.array([3, 100, 0, 3], dtype), 20)
    columns, fresh = TaskIndex().encode(array, 80)
    assert fresh == [3, 100, 0]
    assert columns[:4].tolist() == [0, 1, 2, 0]


def test_numbers_beyond_int64() -> None:
    array = np.full(40, 2**64 - 1, np.uint64)
    columns, fresh = TaskIndex().encode(array, 40)
    assert fresh == [2**64 - 1]
    assert not columns.any()


def test_no_ids_are_one_task() -> None:
    columns, fresh = TaskIndex().encode(None, 3)
    assert (columns.tolist(), fresh) == ([0, 0, 0], [None])


@pytest.mark.parametrize("rows", [[1, None], ["a", float("nan")], np.array([1.0, np.nan])])
def test_missing_ids(rows: Any) -> None:
    with pytest.raises(ValueError, match="row 1: its task id is missing"):
        TaskIndex().encode(rows, 2)


@given(
    rows=st.lists(ids, min_size=33, max_size=80), known=st.lists(ids, unique=True),
    copies=st.lists(st.booleans(), min_size=80, max_size=80),
)  # fmt: skip
def test_the_fast_way_for_objects_is_the_slow_way(rows: list[Any], known: list[Any], copies: list[bool]) -> None:
    """Equal ids are one task, be they one object or many."""
    array = np.empty(len(rows), object)
    for row, (task, copied) in enumerate(zip(rows, copies, strict=False)):
        array[row] = pickle.loads(pickle.dumps(task)) if copied else task
    for part in (array, array[::-1], array[::2]):
        fast, slow = TaskIndex(known).encode(part, len(part)), TaskIndex(known).encode(list(part), len(part))
        np.testing.assert_array_equal(fast[0], slow[0])
        assert fast[1] == slow[1]


@pytest.mark.parametrize(
    ("bad", "said"), [(None, "its task id is missing"), (float("nan"), "its task id is missing"), ([1], "hashable")]
)
def test_a_bad_object_is_named_by_its_row(bad: object, said: str) -> None:
    array = np.empty(60, object)
    array[:] = ["a", "b"] * 30
    array[41], array[50] = bad, bad
    with pytest.raises(ValueError, match=f"row 41: .*{said}"):
        TaskIndex(["a"]).encode(array, 60)
