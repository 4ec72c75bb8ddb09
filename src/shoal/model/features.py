"""The features of a model: their number and, where rows come with names, which name is which column."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from shoal.engine.arrays import IndexArray, IntArray
from shoal.model.table import Table, read_table, refuse_not_numbers, validated


class Features:
    """How many features there are, and their names if they have any.

    A model whose first rows were dicts is *open*: unseen names get new columns. One that began with arrays or
    data frames keeps its width, unless `added` says otherwise.
    """

    def __init__(self, count: int = 0, names: dict[Any, int] | None = None, *, is_open: bool = False) -> None:
        self.count = count
        self.names = names
        self.is_open = is_open
        self._latest: tuple[list[Any], IntArray, IndexArray] = ([], np.array([0, 0]), np.zeros(0, np.int32))

    def columns_of(self, x: Mapping[Any, float]) -> tuple[IntArray, IndexArray]:
        """indptr and columns of a dict row whose names all have columns, else KeyError.

        Rows mostly have the names of the row before, and to compare them is faster than to look them up. Several
        threads may do so at once: they share one tuple, which is replaced as a whole.
        """
        names, latest = [*x], self._latest
        if names != latest[0]:
            known = self.names or {}
            columns = np.fromiter([known[name] for name in names], np.int32, len(names))
            latest = self._latest = names, np.array([0, len(names)]), columns
        return latest[1], latest[2]

    def admit(self, table: Table, estimator: str) -> Features:
        """The features after `table`; raises if the table does not fit."""
        if self.count == 0:
            names = None if table.names is None else {name: j for j, name in enumerate(table.names)}
            return Features(table.n_features, names)
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

    def admit_dict(self, x: Mapping[Any, float]) -> Features:
        """The features after a dict row; raises if a name is unknown and the model is closed."""
        self.refuse_dicts()
        names = self.names or {}
        new = [name for name in x if name not in names]
        if not new and self.names is not None:
            return self
        if self.count and not self.is_open:
            raise ValueError(f"feature {new[0]!r} is not a column of the data frame this model began with")
        return self._named([*names, *new])

    def refuse_dicts(self) -> None:
        """Raise if no column has a name."""
        if self.count and self.names is None:
            raise ValueError("this model learned from arrays without column names; expected an array, got a dict")

    def added(self, more: Iterable[Hashable] | int) -> Features:
        """With more columns: new names, or their number for a model whose columns have none."""
        if isinstance(more, int | np.integer) and not isinstance(more, bool):
            if self.names is not None and more > 0:
                raise ValueError("the model's columns have names; use add_features(names)")
            if more < 0:
                raise ValueError(f"the number of features to add must be >= 0, got {more}")
            return Features(self.count + int(more), self.names, is_open=self.is_open)
        if isinstance(more, str) or not isinstance(more, Iterable):
            raise ValueError(f"expected names of features or their number, got {more!r}")
        if self.count and self.names is None:
            raise ValueError("this model learned from arrays without column names; use add_features(number)")
        return self._named([*(self.names or {}), *more])

    @staticmethod
    def _named(names: Iterable[Any]) -> Features:
        index = {name: j for j, name in enumerate(dict.fromkeys(names))}
        return Features(len(index), index, is_open=True)

    def row(self, x: Mapping[Any, float]) -> Table:
        """A dict as a one-row table; names without a column are left out (their weight is zero)."""
        names = self.names or {}
        known = [(names[name], value) for name, value in x.items() if name in names]
        indices = np.array([column for column, _ in known], np.int32)
        values = np.array([value for _, value in known], np.float64)
        return Table(1, self.count, 0, np.array([0, len(known)]), indices, values)

    def stack(self, rows: list[Any]) -> tuple[Table, Features]:
        """Single examples, all dicts or all 1-d arrays, as a table; and the features after them."""
        if all(isinstance(x, Mapping) for x in rows):
            after = self
            for row, x in enumerate(rows):
                refuse_not_numbers(x, row)
                after = after.admit_dict(x)
            tables = [after.row(x) for x in rows]
            indptr = np.cumsum([0, *(len(t.indices) for t in tables)])
            indices = np.concatenate([t.indices for t in tables])
            values = np.concatenate([t.values for t in tables])
            return validated(Table(len(rows), after.count, 0, indptr, indices, values)), after
        if any(isinstance(x, Mapping) for x in rows):
            raise ValueError("the examples of a round must be all dicts or all arrays")
        for x in rows:
            if np.ndim(x) != 1:
                raise ValueError(f"an example must be a dict or a 1-d array, got {np.ndim(x)} dimensions")
        if len({len(x) for x in rows}) > 1:
            raise ValueError("the examples of a round differ in length")
        table = validated(read_table(np.stack([np.asarray(x) for x in rows])))
        return table, self.admit(table, "this model")
