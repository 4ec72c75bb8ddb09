"""A table with everything a table can hold, and how to read a stream whole."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix, vstack

from shoal.files import FileStream


class Whole:
    """All chunks of a stream as one."""

    def __init__(self, stream: FileStream) -> None:
        chunks = list(stream)
        for chunk in chunks:
            X = chunk.X
            assert isinstance(X, csr_matrix)
            assert (X.data.dtype, X.indices.dtype, X.indptr.dtype) == (np.float64, np.int32, np.int32)
            fresh = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
            assert fresh.has_canonical_format
            assert X.shape[0] == len(chunk.y)
            assert np.isfinite(X.data).all()
        width = len(stream.feature_names)
        self.stream = stream
        self.sizes = [len(chunk.y) for chunk in chunks]
        wide = [csr_matrix((c.X.data, c.X.indices, c.X.indptr), shape=(c.X.shape[0], width)) for c in chunks]
        self.X = vstack(wide, format="csr")
        self.y = np.concatenate([chunk.y for chunk in chunks])
        self.task: Any = None if chunks[0].task is None else np.concatenate([chunk.task for chunk in chunks])

    def column(self, name: str) -> np.ndarray:
        """The dense column of one feature."""
        return np.asarray(self.X[:, self.stream.feature_names.index(name)].toarray().ravel())

    def same(self, other: Whole) -> None:
        """Assert that both are equal bit for bit."""
        assert self.stream.feature_names == other.stream.feature_names
        for mine, theirs in [
            (self.X.data, other.X.data),
            (self.X.indices, other.X.indices),
            (self.X.indptr, other.X.indptr),
            (self.y, other.y),
            (self.task, other.task),
        ]:
            np.testing.assert_array_equal(mine, theirs)


@pytest.fixture
def whole() -> type[Whole]:
    return Whole


@pytest.fixture
def table() -> pl.DataFrame:
    """3,000 rows: numbers, a constant, text, booleans, dates, a late column, missing values everywhere."""
    rng = np.random.default_rng(5)
    n = 3_000
    start = datetime.datetime(2013, 1, 1)

    def holes(values: Any, share: float) -> list[Any]:
        return [None if hole else value for value, hole in zip(values, rng.random(n) < share, strict=True)]

    return pl.DataFrame(
        {
            "delay": holes((rng.normal(100, 7, n)).tolist(), 0.1),
            "late": rng.integers(0, 2, n).tolist(),
            "seats": holes(rng.integers(50, 400, n).tolist(), 0.02),
            "same": [0.1] * n,
            "carrier": holes([f"{'été,' if i % 9 == 0 else ''}C{i}" for i in rng.integers(0, 40, n)], 0.05),
            "night": holes((rng.random(n) < 0.3).tolist(), 0.01),
            "when": holes([start + datetime.timedelta(minutes=int(m)) for m in rng.integers(0, 500_000, n)], 0.03),
            "day": [datetime.date(2013, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 365, n)],
            "never": pl.Series([None] * n, dtype=pl.Float64),
            "afterwards": [None] * 2_000 + rng.normal(size=n - 2_000).tolist(),
            "dest": [f"T{i}" for i in rng.integers(0, 9, n)],
        }
    )
