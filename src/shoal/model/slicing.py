"""Rows of tables of any kind: NumPy, SciPy, pandas, polars and Arrow cut and joined alike."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix


def rows_of(X: Any, first: int, last: int) -> Any:
    """Rows `first` to `last` of a column or table of any kind."""
    if X is None or (first == 0 and last == len_of(X)):
        return X
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[first:last]
    if hasattr(X, "slice"):  # polars, Arrow
        return X.slice(first, last - first)
    return (X.tocsr() if hasattr(X, "tocsr") else X)[first:last]


def len_of(X: Any) -> int:
    """Number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def as_wide(X: Any, n_features: int) -> Any:
    """Rows with as many features as a model has: drop columns that it does not have, add its newer ones as zeros."""
    if X.shape[1] >= n_features:
        return X[:, :n_features]
    return csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], n_features))


def widened(X: Any, n_features: int) -> Any:
    """The rows with columns of zeros added up to `n_features`."""
    missing = n_features - X.shape[1]
    if missing <= 0:
        return X
    if hasattr(X, "tocsr"):
        X = X.tocsr(copy=True)
        X.resize(X.shape[0], n_features)
        return X
    return np.pad(np.asarray(X), ((0, 0), (0, missing)))


def joined(head: Any, tail: Any) -> Any:
    """The rows of `head`, then those of `tail`, which may have more columns."""
    if head is None:
        return tail
    if hasattr(head, "tocsr"):
        import scipy.sparse as sp

        return sp.vstack([widened(head, tail.shape[1]), tail], format="csr")
    if hasattr(head, "columns"):
        import narwhals.stable.v1 as nw

        return nw.to_native(nw.concat([nw.from_native(head), nw.from_native(tail)]))
    if head.ndim == 2:
        head = widened(head, tail.shape[1])
    return np.concatenate([head, tail])
