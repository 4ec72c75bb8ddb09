"""Single rows gathered into chunks; dict rows become sparse rows whose columns appear as their names do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.engine.rounds import Chunk

ROWS_A_CHUNK = 1_000


class Row(NamedTuple):
    """One example of a stream of single examples."""

    x: Any  # dict of named features, or 1-d array
    y: Any
    task: Any

    @property
    def shape(self) -> tuple[Any, bool]:
        """Rows of equal shape can stand in one chunk."""
        return (None if isinstance(self.x, Mapping) else len(self.x), self.task is None)


def as_chunks(stream: Any, names: dict[str, int]) -> Iterator[Chunk]:
    """The stream's chunks; single rows `(x, y, task)`, x a dict or 1-d array, are gathered into chunks.

    Parameters
    ----------
    stream : iterable, or a data set with a `stream` method
    names : dict
        Gets the column of each feature name of dict rows.

    Raises
    ------
    ValueError
        If an item is neither a chunk nor a row.
    """
    rows: list[Row] = []
    for item in stream.stream() if hasattr(stream, "stream") else stream:
        row = None if isinstance(item, Chunk) else _as_row(item)
        if rows and (row is None or len(rows) == ROWS_A_CHUNK or row.shape != rows[0].shape):
            yield _gathered(rows, names)
            rows = []
        if row is None:
            yield Chunk(*item)
        else:
            rows.append(row)
    if rows:
        yield _gathered(rows, names)


def _as_row(item: Any) -> Row | None:
    """The item as a row, None if it is a chunk."""
    if not isinstance(item, tuple) or not 2 <= len(item) <= 4:
        kind = type(item).__name__
        raise ValueError(f"a stream holds chunks (X, y, task) or rows (x, y, task), got an item of type {kind}")
    x, y, task = item[0], item[1], item[2] if len(item) > 2 else None
    task = task.item() if isinstance(task, np.generic) else task  # ids as `tolist` gives those of arrays
    if isinstance(x, Mapping):
        return Row(x, y, task)
    x = np.asarray(x) if isinstance(x, list | tuple) else x
    return Row(x, y, task) if getattr(x, "ndim", 2) == 1 else None


def _gathered(rows: Sequence[Row], names: dict[str, int]) -> Chunk:
    X: Any = [row.x for row in rows]
    X = _sparse(X, names) if isinstance(X[0], Mapping) else np.stack(X)
    task = None if rows[0].task is None else np.fromiter((row.task for row in rows), object, len(rows))
    return Chunk(X, np.asarray([row.y for row in rows]), task)


def _sparse(rows: Sequence[Mapping[str, float]], names: dict[str, int]) -> Any:
    """Dicts as a CSR matrix; unseen names get the next columns."""
    indices = [names.setdefault(name, len(names)) for x in rows for name in x]
    values = np.array([value for x in rows for value in x.values()], np.float64)
    indptr = np.cumsum([0, *map(len, rows)])
    X = sp.csr_matrix((values, np.array(indices, np.int32), indptr), shape=(len(rows), len(names)))
    X.sort_indices()
    return X
