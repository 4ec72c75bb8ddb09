"""What users hold as columns of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from shoal.model.features import Features
from shoal.model.table import Table, read_table
from shoal.model.validation import LARGEST, first_out_of_range, is_canonical


def as_dense(table: Table) -> np.ndarray:
    if table.width:
        return table.values.reshape(table.n_rows, table.width)
    return np.asarray(
        sp.csr_matrix((table.values, table.indices, table.indptr), (table.n_rows, table.n_features)).toarray()
    )


@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), d=st.integers(1, 8), density=st.floats(0, 1))
def test_any_sparse_matrix_becomes_canonical(seed: int, n: int, d: int, density: float) -> None:
    """Unsorted, with duplicates and explicit zeros, with empty rows at either end; the caller's is left alone."""
    rng = np.random.default_rng(seed)
    nnz = int(n * d * density)
    rows, columns = rng.integers(n, size=nnz), rng.integers(d, size=nnz)
    order = np.argsort(rows, kind="stable")
    data = np.round(rng.normal(size=nnz), 1)
    indptr = np.searchsorted(rows[order], np.arange(n + 1))
    X = sp.csr_matrix((data, columns[order], indptr), shape=(n, d))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    table = read_table(X)
    np.testing.assert_allclose(as_dense(table), X.toarray(), atol=1e-12)
    assert is_canonical(table.indptr, table.indices, d)
    for row in range(n):
        columns_of_row = table.indices[table.indptr[row] : table.indptr[row + 1]]
        assert (np.diff(columns_of_row) > 0).all()
    for was, now in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [([0, 2, 4], [1, 0, 0, 1]), ([0, 2, 4], [0, 0, 0, 1]), ([0, 1, 2], [0, 3]), ([0, 1, 2], [-1, 0]),
     ([0, 2, 1], [0, 1])],
)  # fmt: skip
def test_what_is_not_canonical(indptr: list[int], indices: list[int]) -> None:
    assert not is_canonical(np.array(indptr), np.array(indices, np.int32), 3)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20))
def test_first_out_of_range(values: list[float]) -> None:
    array = np.array(values)
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST))
    assert first_out_of_range(array) == (bad[0] if len(bad) else -1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames(frame: Callable[[Any], Any]) -> None:
    table = read_table(frame({"a": [1, 2], "b": [0.5, -1.0], "c": [True, False]}))
    np.testing.assert_array_equal(as_dense(table), [[1, 0.5, 1], [2, -1, 0]])
    assert table.names == ["a", "b", "c"]
    with pytest.raises(ValueError, match="column 'b' holds text; expected numbers"):
        read_table(frame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    with pytest.raises(ValueError, match=r"row 1, column 'a': found NaN; .*shoal.TabularClassifier"):
        read_table(frame({"a": [1.0, float("nan")]}))


def test_columns_with_numbers_for_names_have_no_names() -> None:
    assert read_table(pd.DataFrame([[1.0, 2.0]])).names is None


def test_columns_of_other_names_are_refused() -> None:
    columns = Features().admit(read_table(pd.DataFrame({"a": [1.0], "b": [2.0]})), "model")
    with pytest.raises(ValueError, match="feature names should match"):
        columns.admit(read_table(pd.DataFrame({"b": [1.0], "a": [2.0]})), "model")


def test_dicts_grow_the_columns_and_keep_their_order() -> None:
    table, columns = Features().stack([{"a": 1.0, "b": 2}, {}, {"c": np.float32(3), "a": True}])
    np.testing.assert_array_equal(as_dense(table), [[1, 2, 0], [0, 0, 0], [1, 0, 3]])
    assert columns.names == {"a": 0, "b": 1, "c": 2}
    later, columns_then = columns.stack([{"d": 1.0}])
    assert (columns.count, columns_then.count) == (3, 4)  # the old ones are as they were
    np.testing.assert_array_equal(as_dense(later), [[0, 0, 0, 1]])
    unknown = columns.row({"z": 9.0, "b": 5.0})
    assert (unknown.indices.tolist(), unknown.values.tolist()) == ([1], [5.0])


@given(rows=st.lists(st.lists(st.sampled_from("abcdef?"), unique=True), min_size=1, max_size=8))
def test_places_of_a_row_do_not_depend_on_the_rows_before(rows: list[list[str]]) -> None:
    names = {name: j for j, name in enumerate("fedcba")}
    columns = Features(6, names, is_open=True)
    for row in rows:
        x = dict.fromkeys(row, 1.0)
        if "?" in row:
            with pytest.raises(KeyError):
                columns.columns_of(x)
            continue
        indptr, indices = columns.columns_of(x)
        assert indptr.tolist() == [0, len(row)]
        assert indices.tolist() == [names[name] for name in row]
        assert indices.dtype == np.int32


def test_examples_of_a_round_are_all_dicts_or_all_arrays_of_one_length() -> None:
    fresh, by_number, by_name = Features(), Features(2), Features(2, {"a": 0, "b": 1})
    for columns in (fresh, by_number):
        table, after = columns.stack([[1.0, 2.0], (3, 4)])
        np.testing.assert_array_equal(as_dense(table), [[1, 2], [3, 4]])
        assert (after.count, after.names) == (2, None)
    assert by_name.stack([{"b": 1.0}])[1] is by_name
    np.testing.assert_array_equal(as_dense(by_name.stack([{"b": 1.0}, {"a": 2.0}])[0]), [[0, 1], [2, 0]])
    for columns, rows, message in (
        (by_number, [{"a": 1.0}], "learned from arrays without column names"),
        (by_name, [{"a": 1.0}, {"c": 1.0}], "feature 'c' is not a column"),
        (fresh, [{"a": 1.0}, [1.0]], "all dicts or all arrays"),
        (fresh, [[1.0], {"a": 1.0}], "all dicts or all arrays"),
        (fresh, [{"a": 1.0}, {"b": "x"}], "row 1"),
        (fresh, [[1.0], [1.0, 2.0]], "differ in length"),
        (fresh, [[1.0], [[1.0]]], "a dict or a 1-d array, got 2 dimensions"),
        (fresh, [1.0], "a dict or a 1-d array, got 0 dimensions"),
        (by_number, [[1.0]], "X has 1 features, but this model is expecting 2"),
    ):
        with pytest.raises(ValueError, match=message):
            columns.stack(rows)


def test_a_lazy_frame_has_to_be_collected() -> None:
    with pytest.raises(ValueError, match="collect it first"):
        read_table(pl.LazyFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="column 'a' holds"):
        read_table(pl.DataFrame({"a": [1]}).with_columns(pl.col("a").cast(pl.Date)))
