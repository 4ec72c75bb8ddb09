"""Rows in: from what users hold (arrays, sparse matrices, data frames, dicts) to the arrays that kernels take."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FLOAT64, FloatArray, IndexArray, IntArray, for_kernels
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, NO_WEIGHT, Rounds
from shoal.model.validation import LARGEST, first_malformed, first_out_of_range, is_canonical

LARGE = 2**15  # numbers; smaller tables are validated at once


class Table(NamedTuple):
    """Rows, dense (`width` > 0) or CSR."""

    n_rows: int
    n_features: int
    width: int
    indptr: IntArray
    indices: IndexArray
    values: FloatArray
    names: list[str] | None = None  # column names of a data frame
    validated: bool = False  # in range and canonical?

    def rounds(self, task: IntArray, y: FloatArray, starts: IntArray, weight: FloatArray = NO_WEIGHT) -> Rounds:
        """The rows with their tasks, targets and weights."""
        return Rounds(self.width, self.indptr, self.indices, self.values, task, y, starts, weight)

    def with_rows_of(self, other: Rounds) -> Rounds:
        """The rows with the tasks, targets and weights of others."""
        return self.rounds(other.task, other.y, other.starts, other.weight)


MISSING = "shoal.TabularClassifier and TabularRegressor take it as a missing value"


def _refuse_out_of_range(
    values: FloatArray,
    p: int,
    row_of: Callable[[int], int],
    column_of: Callable[[int], int],
    names: Sequence[str] | None = None,
) -> None:
    if p < 0:
        return
    column = column_of(p)
    where = f"row {row_of(p)}, " + (f"feature {column}" if names is None else f"column {names[column]!r}")
    if np.isfinite(values[p]):
        raise ValueError(f"{where}: found {values[p]:.3g}; expected numbers of at most {LARGEST:g} in size")
    if np.isnan(values[p]):
        raise ValueError(f"{where}: found NaN; expected finite numbers only (impute or drop the row; {MISSING})")
    raise ValueError(f"{where}: found infinity; expected finite numbers only")


def validated(table: Table) -> Table:
    """The table if its rows are in range; a sparse one with sorted columns, each once.

    Raises
    ------
    ValueError
        If a number is NaN or infinite, or a column or offset out of range; the row is named.
    """
    if table.validated:
        return table
    if table.width:
        d, p = table.width, first_out_of_range(table.values)
        _refuse_out_of_range(table.values, p, lambda p: p // d, lambda p: p % d, table.names)
        return Table(*table[:-1], True)  # _replace takes three times as long
    indptr, indices, values = table.indptr, table.indices, table.values
    if len(values) != len(indices) or not is_canonical(indptr, indices, table.n_features):
        row = first_malformed(indptr, indices, table.n_features)
        if row >= 0 or len(values) != len(indices) or indptr[0] != 0:
            raise ValueError(
                f"row {max(row, 0)}: the sparse matrix is malformed (a column or row offset is out of range)"
            )
        indptr, indices, values = _without_duplicates(table)
    _refuse_out_of_range(
        values, first_out_of_range(values), lambda p: int(np.searchsorted(indptr, p, "right")) - 1, lambda p: indices[p]
    )
    return table._replace(indptr=indptr, indices=indices, values=values, validated=True)


def _without_duplicates(table: Table) -> tuple[IntArray, IndexArray, FloatArray]:
    """Columns sorted, values of equal ones added: norms and updates count on one entry a column."""
    import scipy.sparse as sp

    shape = (table.n_rows, table.n_features)
    X = sp.csr_matrix((table.values.copy(), table.indices.copy(), table.indptr.copy()), shape=shape)
    X.sum_duplicates()
    return _csr_arrays(X)


def _dense(X: NDArray[np.float64], names: list[str] | None = None) -> Table:
    n, d = X.shape
    return Table(n, d, d, NO_INDPTR, NO_INDICES, X.reshape(-1), names)


def _sparse(X: Any) -> Table:
    import scipy.sparse as sp

    if getattr(X, "format", None) != "csr":
        X = sp.csr_matrix(X)
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X holds {X.dtype} values; expected real numbers")
    if X.ndim != 2 or 0 in X.shape:
        n, d = X.shape if X.ndim == 2 else (1, 0)
        raise ValueError(
            f"Found array with {n} sample(s) and {d} feature(s) (shape={X.shape}); at least 1 of each is required."
        )
    (n, d), (indptr, indices, values) = X.shape, _csr_arrays(X)
    return Table(n, d, 0, indptr, indices, values)


def _csr_arrays(X: Any) -> tuple[IntArray, IndexArray, FloatArray]:
    indices, values = np.require(X.indices, np.int32, ["C", "W"]), for_kernels(X.data)
    return X.indptr.astype(np.int64), indices, values


def _frame(X: Any) -> tuple[Any, list[str] | None] | None:
    """A data frame's values and (if all are text) column names; None if X is not a data frame."""
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("X is a lazy frame; collect it first: X.collect()")
    if not isinstance(frame, nw.DataFrame):
        return None
    for name, dtype in frame.schema.items():
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            raise ValueError(
                f"column {name!r} holds text; expected numbers (shoal.TabularClassifier and TabularRegressor read it, "
                "shoal.files.TableEncoder encodes it)"
            )
        if dtype.is_temporal():
            raise ValueError(f"column {name!r} holds {dtype}; expected numbers (say in which unit)")
    names = list(frame.columns)
    return frame.to_numpy(), names if all(isinstance(name, str) for name in names) else None


def read_table(X: Any, estimator: Any = None) -> Table:
    """The rows of `X`, validated unless they are many.

    Parameters
    ----------
    X : (n, d) NumPy array, SciPy sparse matrix, data frame (pandas, polars, Arrow) or nested sequence

    Raises
    ------
    ValueError
        If `X` is not two-dimensional, is empty, or holds text, dates, complex numbers or masked cells; or, where it
        is validated at once, NaN or infinity (row named).
    """
    table = _laid_out(X, estimator)
    return validated(table) if len(table.values) < LARGE else table


def _laid_out(X: Any, estimator: Any) -> Table:
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype == FLOAT64 and X.size and X.flags.carray:
        return _dense(X)
    if hasattr(X, "tocsr"):
        return _sparse(X)
    from sklearn.utils.validation import check_array

    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        row, column = (int(where[0]) for where in np.nonzero(np.ma.getmaskarray(X)))
        raise ValueError(f"row {row}, feature {column}: the cell is masked; expected numbers (X.filled(0.0) fills it)")
    framed = _frame(X)
    values, names = (X, None) if framed is None else framed
    if getattr(values, "dtype", None) is not None and values.dtype.kind in "mM":
        raise ValueError(f"X holds {values.dtype} values; expected numbers (say in which unit)")
    try:
        values = check_array(
            values, dtype=np.float64, order="C", ensure_all_finite=False, estimator=estimator, input_name="X"
        )
    except OverflowError:
        raise ValueError(f"X holds a number that is too large; expected at most {LARGEST:g} in size") from None
    return _dense(for_kernels(values), names)


def refuse_not_numbers(x: Mapping[Any, float], row: int) -> None:
    """Raise unless every value of a dict row is a finite number."""
    for name, value in x.items():
        try:
            usable = abs(float(value)) <= LARGEST
        except (TypeError, ValueError, OverflowError):
            usable = False
        if not usable:
            hint = f" ({MISSING})" if value is None or value != value else ""
            raise ValueError(f"row {row}, feature {name!r}: expected a finite number, got {value!r}{hint}")
