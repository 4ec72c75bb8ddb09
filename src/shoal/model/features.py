"""Features in: from what users hold (arrays, sparse matrices, data frames, dicts) to the columns of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.rounds import NO_INDICES, NO_INDPTR
from shoal.model.validation import both_checks, first_malformed, first_not_finite

LARGE = 2**15  # numbers; with fewer, checks take no time


class Table(NamedTuple):
    """Rows, dense (`width` > 0) or CSR; once they are checked, finite and canonical."""

    n_rows: int
    n_features: int
    width: int
    indptr: IntArray
    indices: IndexArray
    values: FloatArray
    names: list[str] | None  # column names of a data frame


def _refuse_not_finite(values: FloatArray, p: int, row_of: Any, column_of: Any) -> None:
    if p >= 0:
        found = "NaN" if np.isnan(values[p]) else "infinity"
        raise ValueError(
            f"row {row_of(p)}, feature {column_of(p)}: found {found}; expected finite numbers only "
            "(impute or drop the row)"
        )


def _dense(X: NDArray[np.float64], names: list[str] | None = None) -> Table:
    n, d = X.shape
    values = X.reshape(-1)
    _refuse_not_finite(values, first_not_finite(values), lambda p: p // d, lambda p: p % d)
    return Table(n, d, d, NO_INDPTR, NO_INDICES, values, names)


def _sparse(X: Any) -> Table:
    import scipy.sparse as sp

    X = sp.csr_matrix(X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X holds {X.dtype} values; expected real numbers")
    n, d = X.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"Found array with {n} sample(s) and {d} feature(s) (shape={X.shape}); at least 1 of each is required."
        )
    indptr, indices, values = _csr_arrays(X)
    canonical, p = both_checks(indptr, indices, values, d)
    if not canonical:
        row = first_malformed(indptr, indices, d)
        if row >= 0 or len(values) != len(indices):
            raise ValueError(
                f"row {max(row, 0)}: the sparse matrix is malformed (a column or row offset is out of range)"
            )
        X = X.copy()
        X.sum_duplicates()  # norms and updates count on one entry a column
        indptr, indices, values = _csr_arrays(X)
        p = first_not_finite(values)
    _refuse_not_finite(values, p, lambda p: int(np.searchsorted(indptr, p, "right")) - 1, lambda p: indices[p])
    return Table(n, d, 0, indptr, indices, values, None)


def unchecked(X: Any) -> Table | None:
    """A large array or CSR matrix as a table whose rows are still to be checked; None if `read_table` is the way."""
    if type(X) is np.ndarray:
        if X.ndim != 2 or X.dtype != np.float64 or X.size < LARGE or not X.flags.carray:
            return None
        n, d = X.shape
        return Table(n, d, d, NO_INDPTR, NO_INDICES, X.reshape(-1), None)
    if getattr(X, "format", None) != "csr" or X.ndim != 2 or X.dtype.kind not in "fiub" or X.nnz < LARGE:
        return None
    (n, d), (indptr, indices, values) = X.shape, _csr_arrays(X)
    if len(indptr) != n + 1 or indptr[0] != 0 or not indptr[-1] == len(indices) == len(values):
        return None
    return Table(n, d, 0, indptr, indices, values, None)


def _csr_arrays(X: Any) -> tuple[IntArray, IndexArray, FloatArray]:
    indices, values = np.require(X.indices, np.int32, ["C", "W"]), np.require(X.data, np.float64, ["C", "W"])
    return X.indptr.astype(np.int64), indices, values


def _frame(X: Any) -> tuple[Any, list[str] | None] | None:
    """A data frame's values and (if all are text) column names; None if X is not a data frame."""
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    for name, dtype in frame.schema.items():
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            raise ValueError(
                f"column {name!r} holds text; expected numbers (encode it, or use `shoal run`, which does)"
            )
    names = list(frame.columns)
    return frame.to_numpy(), names if all(isinstance(name, str) for name in names) else None


def read_table(X: Any, estimator: Any = None) -> Table:
    """Check and convert the rows of `X`.

    Parameters
    ----------
    X : (n, d) NumPy array, SciPy sparse matrix, data frame (pandas, polars, Arrow) or nested sequence

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty, holds text, complex numbers, NaN or infinity (row named).
    """
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype == np.float64 and X.size and X.flags.carray:
        return _dense(X)
    if hasattr(X, "tocsr"):
        return _sparse(X)
    from sklearn.utils.validation import check_array

    framed = _frame(X)
    values, names = (X, None) if framed is None else framed
    values = check_array(
        values, dtype=np.float64, order="C", ensure_all_finite=False, estimator=estimator, input_name="X"
    )
    return _dense(np.require(values, np.float64, ["C", "W"]), names)


class Columns:
    """The columns of a model: their number and, where rows come with names, which name is which column.

    A model whose first rows were dicts is *open*: unseen names get new columns. One that began with arrays or
    data frames keeps its width.
    """

    def __init__(self, count: int = 0, names: dict[str, int] | None = None, *, is_open: bool = False) -> None:
        self.count = count
        self.names = names
        self.is_open = is_open
        self._latest: tuple[list[str], IntArray, IndexArray] = ([], np.array([0, 0]), np.zeros(0, np.int32))

    def places(self, x: Mapping[str, float]) -> tuple[IntArray, IndexArray]:
        """indptr and columns of a dict row whose names all have columns, else KeyError.

        Rows mostly have the names of the row before, and to compare them is faster than to look them up.
        """
        names = [*x]
        if names != self._latest[0]:
            known = self.names or {}
            columns = np.fromiter([known[name] for name in names], np.int32, len(names))
            self._latest = names, np.array([0, len(names)]), columns
        return self._latest[1], self._latest[2]

    def admit(self, table: Table, estimator: str) -> Columns:
        """The columns after `table`; raises if the table does not fit."""
        if self.count == 0:
            names = None if table.names is None else {name: j for j, name in enumerate(table.names)}
            return Columns(table.n_features, names)
        if table.n_features != self.count:
            raise ValueError(
                f"X has {table.n_features} features, but {estimator} is expecting {self.count} features as input"
            )
        if table.names is not None and self.names is not None and table.names != list(self.names):
            raise ValueError(
                "The feature names should match those that were passed during fit: "
                f"expected {list(self.names)[:5]}..., got {table.names[:5]}..."
            )
        return self

    def admit_dict(self, x: Mapping[str, float]) -> Columns:
        """The columns after a dict row; raises if a name is unknown and the model is closed."""
        self.refuse_dicts()
        names = self.names or {}
        fresh = [name for name in x if name not in names]
        if not fresh and self.names is not None:
            return self
        if self.count and not self.is_open:
            raise ValueError(f"feature {fresh[0]!r} is not a column of the data frame this model began with")
        return Columns(
            len(names) + len(fresh),
            names | {name: len(names) + i for i, name in enumerate(fresh)},
            is_open=True,
        )

    def refuse_dicts(self) -> None:
        """Raise if no column has a name."""
        if self.count and self.names is None:
            raise ValueError("this model learnt from arrays without column names; expected an array, got a dict")

    def row(self, x: Mapping[str, float]) -> Table:
        """A dict as a one-row table; names without a column are left out (their weight is zero)."""
        names = self.names or {}
        known = [(names[name], value) for name, value in x.items() if name in names]
        indices = np.array([column for column, _ in known], np.int32)
        values = np.array([value for _, value in known], np.float64)
        return Table(1, self.count, 0, np.array([0, len(known)]), indices, values, None)


def stack_rows(rows: list[Any], columns: Columns) -> tuple[Table, Columns]:
    """Single examples, all dicts or all 1-d arrays, as a table; and the columns after them."""
    if all(isinstance(x, Mapping) for x in rows):
        for row, x in enumerate(rows):
            refuse_not_numbers(x, row)
            columns = columns.admit_dict(x)
        tables = [columns.row(x) for x in rows]
        indptr = np.cumsum([0, *(len(t.indices) for t in tables)])
        indices, values = (
            np.concatenate([t.indices for t in tables]),
            np.concatenate([t.values for t in tables]),
        )
        return Table(len(rows), columns.count, 0, indptr, indices, values, None), columns
    if any(isinstance(x, Mapping) for x in rows):
        raise ValueError("the examples of a round must be all dicts or all arrays")
    for x in rows:
        if np.ndim(x) != 1:
            raise ValueError(f"an example must be a dict or a 1-d array, got {np.ndim(x)} dimensions")
    if len({len(x) for x in rows}) > 1:
        raise ValueError("the examples of a round differ in length")
    table = read_table(np.array(rows, dtype=np.float64))
    return table, columns.admit(table, "this model")


def refuse_not_numbers(x: Mapping[str, float], row: int) -> None:
    """Raise unless every value of a dict row is a finite number."""
    for name, value in x.items():
        try:
            finite = np.isfinite(float(value))
        except (TypeError, ValueError):
            finite = False
        if not finite:
            raise ValueError(f"row {row}, feature {name!r}: expected a finite number, got {value!r}")
