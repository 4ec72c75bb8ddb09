"""Rows of tables of any kind, cut, joined and made as wide as a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from shoal.model.slicing import as_wide, joined, len_of, rows_of, widened

ROWS = np.arange(6.0).reshape(3, 2)
NAMED = {"a": [0.0, 2.0, 4.0], "b": [1.0, 3.0, 5.0]}
KINDS = [np.asarray, sp.csr_matrix, sp.coo_matrix, lambda _: pd.DataFrame(NAMED), lambda _: pl.DataFrame(NAMED)]


def dense(X: Any) -> Any:
    return np.asarray(X.toarray() if sp.issparse(X) else X).tolist()


@pytest.mark.parametrize("kind", [*KINDS, lambda _: pa.table(NAMED)])
def test_rows_are_cut(kind: Any) -> None:
    X = kind(ROWS)
    assert len_of(X) == 3
    assert rows_of(X, 0, 3) is X
    for first, last in ((1, 3), (0, 2), (1, 1)):
        assert dense(rows_of(X, first, last)) == ROWS[first:last].tolist()
    assert rows_of(None, 0, 2) is None
    assert rows_of(["x", "y", "z"], 1, 2) == ["y"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_joined(kind: Any) -> None:
    X = kind(ROWS)
    assert joined(None, X) is X
    assert dense(joined(rows_of(X, 0, 1), rows_of(X, 1, 3))) == ROWS.tolist()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_columns_that_came_later_are_zero_in_earlier_rows(kind: Any) -> None:
    X, wide = kind(ROWS), np.ones((1, 4))
    assert dense(joined(X, kind(wide))) == [[0, 1, 0, 0], [2, 3, 0, 0], [4, 5, 0, 0], [1, 1, 1, 1]]
    assert dense(widened(X, 3)) == [[0, 1, 0], [2, 3, 0], [4, 5, 0]]
    assert dense(X) == ROWS.tolist()  # a copy is widened
    assert widened(X, 2) is X
    assert widened(X, 1) is X


def test_rows_are_as_wide_as_a_model() -> None:
    X = sp.csr_matrix(ROWS)
    assert dense(as_wide(X, 1)) == [[0], [2], [4]]
    assert dense(as_wide(X, 2)) == ROWS.tolist()
    assert dense(as_wide(X, 5)) == [[0, 1, 0, 0, 0], [2, 3, 0, 0, 0], [4, 5, 0, 0, 0]]
