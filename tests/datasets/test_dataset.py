"""The object that all loaders return: its layouts, its stream, its orders."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_matrix

from shoal.datasets import Dataset


def make(task: Any, X: Any = None, kind: Any = "regression") -> Dataset:
    """Rows whose target is their number."""
    n = len(task)
    X = np.arange(2.0 * n).reshape(n, 2) if X is None else X
    y: np.ndarray = np.arange(n) if kind == "regression" else np.where(np.arange(n) % 2, 1, -1)
    return Dataset("toy", X, y, task, ("a", "b"), "A toy.", kind)


def rows_of(data: Dataset) -> list[int]:
    return list(data.y.astype(int).tolist())


def test_dense_features_are_contiguous_float64() -> None:
    data = make([1, 2, 3], X=np.asfortranarray(np.arange(6).reshape(3, 2)))
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, [[0, 1], [2, 3], [4, 5]])


def test_sparse_features_are_sorted_csr_and_the_callers_matrix_is_left_alone() -> None:
    given = csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 2, 2, 3])), shape=(3, 2))
    data = make([1, 2, 3], X=given)
    assert isinstance(data.X, csr_matrix)
    assert data.X.indices.dtype == np.int32
    assert data.X.indices.tolist() == [0, 1, 1]
    assert given.indices.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(data.X.toarray(), [[2, 1], [0, 0], [0, 4]])


def test_other_sparse_formats_and_long_indices_are_converted() -> None:
    rows, columns = np.array([0, 0, 2], np.int64), np.array([1, 1, 0], np.int64)
    data = make([1, 2, 3], X=coo_array((np.array([1, 2, 3]), (rows, columns)), shape=(3, 2)))
    assert isinstance(data.X, csr_matrix)
    assert (data.X.dtype, data.X.indices.dtype) == (np.float64, np.int32)
    np.testing.assert_array_equal(data.X.toarray(), [[0, 3], [0, 0], [3, 0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [1.0, -1.0]}, r"y must hold one entry per row: expected \(3,\), got \(2,\)"),
        ({"task": [1]}, "task must hold one entry per row"),
        ({"feature_names": ["a"]}, "expected 2 feature names"),
        ({"kind": "ranking"}, "kind must be 'binary' or 'regression', got 'ranking'"),
        ({"y": [1.0, 0.0, 1.0]}, "binary labels must be -1 or \\+1"),
        ({"X": np.zeros(3)}, "X must have two dimensions"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, Any], message: str) -> None:
    fields = dataclasses.asdict(make([1, 2, 3], kind="binary")) | change
    with pytest.raises(ValueError, match=message):
        Dataset(**fields)


def test_size_and_repr() -> None:
    data = make(["x", "y", "x"])
    assert len(data) == 3
    assert data.n_tasks == 2
    assert repr(data) == "Dataset('toy', 3 rows, 2 tasks, 2 features, regression)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("sparse", [False, True])
def test_stream_is_the_rows_in_order(sparse: bool) -> None:
    data = make([1, 2, 1, 2, 3], X=csr_matrix(np.eye(5, 2)) if sparse else None)
    chunks = list(data.stream(chunk_rows=2))
    assert [len(chunk.y) for chunk in chunks] == [2, 2, 1]
    assert all(chunk.rounds is None for chunk in chunks)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), data.y)
    np.testing.assert_array_equal(np.concatenate([chunk.task for chunk in chunks]), data.task)
    pieces = [chunk.X.toarray() if sparse else chunk.X for chunk in chunks]
    np.testing.assert_array_equal(np.vstack(pieces), data.X.toarray() if sparse else data.X)


@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 4, 5, 100])
def test_stream_never_cuts_a_round(chunk_rows: int) -> None:
    given = [7, 7, 7, 1, 2, 2, 7]
    chunks = list(make(list("abcaaba")).stream(chunk_rows, rounds=given))
    assert np.concatenate([chunk.y for chunk in chunks]).tolist() == list(range(7))
    starts = np.cumsum([0] + [len(chunk.y) for chunk in chunks])
    assert set(starts) <= {0, 3, 4, 6, 7}
    assert all(len(chunk.y) <= max(chunk_rows, 3) for chunk in chunks)
    rounds = np.concatenate([chunk.rounds for chunk in chunks])
    np.testing.assert_array_equal(np.diff(rounds) != 0, np.diff(given) != 0)


def test_simultaneous_rounds_end_where_a_task_repeats() -> None:
    (chunk,) = make(list("abcabba")).stream(rounds="simultaneous")
    assert chunk.rounds.tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_bad_stream_arguments_are_refused_at_once() -> None:
    data = make(list("aab"))
    with pytest.raises(ValueError, match="chunk_rows must be at least 1, got 0"):
        data.stream(chunk_rows=0)
    with pytest.raises(ValueError, match="rounds must be None, 'simultaneous' or integers, got 'all'"):
        data.stream(rounds="all")
    with pytest.raises(ValueError, match="row 1: its task already has a row"):
        data.stream(rounds=[0, 0, 1])


def test_subset_keeps_the_order_given() -> None:
    data = make(list("abc"))
    part = data.subset([2, 0])
    assert rows_of(part) == [2, 0]
    assert part.task.tolist() == ["c", "a"]
    np.testing.assert_array_equal(part.X, [[4, 5], [0, 1]])
    assert rows_of(data.subset(np.array([True, False, True]))) == [0, 2]
    assert rows_of(data.subset(slice(1, None))) == [1, 2]
    assert (part.name, part.kind, part.feature_names) == (data.name, data.kind, data.feature_names)


def test_shuffled_keeps_rows_together_and_obeys_its_seed() -> None:
    data = make(list("ab") * 50)
    mixed = data.shuffled(3)
    assert rows_of(mixed) != rows_of(data)
    assert sorted(rows_of(mixed)) == rows_of(data)
    rows = mixed.y.astype(int)
    np.testing.assert_array_equal(mixed.X, data.X[rows])
    np.testing.assert_array_equal(mixed.task, data.task[rows])
    assert rows_of(data.shuffled(3)) == rows_of(mixed)
    assert rows_of(data.shuffled(4)) != rows_of(mixed)


def test_interleaved_gives_each_round_the_next_row_of_each_task() -> None:
    data = make(list("bbbaac")).interleaved()
    assert data.task.tolist() == list("bacbab")
    assert rows_of(data) == [0, 3, 5, 1, 4, 2]
    (chunk,) = data.stream(rounds="simultaneous")
    assert chunk.rounds.tolist() == [0, 0, 0, 1, 1, 2]


def test_interleaved_with_a_seed_shuffles_within_tasks_only() -> None:
    task = np.repeat([3, 1, 2], [40, 20, 30])
    data = make(task)
    mixed = data.interleaved(seed=0)
    np.testing.assert_array_equal(mixed.task, data.interleaved().task)
    np.testing.assert_array_equal(task[mixed.y.astype(int)], mixed.task)
    assert sorted(rows_of(mixed)) == rows_of(data)
    assert rows_of(mixed) != rows_of(data.interleaved())
    assert rows_of(mixed) == rows_of(data.interleaved(seed=0))
    assert rows_of(mixed) != rows_of(data.interleaved(seed=1))
