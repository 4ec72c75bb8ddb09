"""Features of one column: numbered as they appear, hashed beyond a limit, and put together to CSR."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.ops import jit

LIMIT = 1_000
BUCKETS = 1_024
State = dict[str, Any]  # what JSON can hold


class Slots:
    """Names of features, and where each stands in X."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.index = np.full(len(names), -1, np.int32)  # column of X, -1 until the feature appears

    def appearing(self, local: NDArray[np.int32]) -> list[tuple[int, int]]:
        """(slot, first row) of the features that have no column of X yet."""
        rows = np.flatnonzero((local >= 0) & (self.index[local] < 0)) if (self.index < 0).any() else local[:0]
        slots, first = np.unique(local[rows], return_index=True)
        return list(zip(slots.tolist(), np.asarray(rows)[first].tolist(), strict=True))

    def to_dict(self) -> State:
        return {"names": list(self.names), "index": self.index.tolist()}

    def restore(self, state: State) -> None:
        self.names = list(state["names"])
        self.index = np.array(state["index"], np.int32)


class Part(NamedTuple):
    """What one column gives each row: at most one feature."""

    slots: Slots
    local: NDArray[np.int32]  # (n,) which of the slots, -1 for none
    values: NDArray[np.float64] | None  # (n,), None for all ones


class Categories(Slots):
    """The distinct values of a text, each a feature up to a limit; new values beyond it are hashed.

    Parameters
    ----------
    name : str
        Features are called `name=value` and, if hashed, `name#bucket`.
    missing : str or None
        The feature for a missing value; None: it has none.
    """

    def __init__(self, name: str, missing: str | None, limit: int, buckets: int) -> None:
        super().__init__([missing] if missing else [])
        self.name = name
        self.limit, self.buckets = limit, buckets
        self._missing = 0 if missing else -1
        self._values: dict[str, int] = {}  # value: slot
        self._hashed: dict[int, int] = {}  # bucket: slot
        self._known = pl.Enum([])

    def encode(self, texts: pl.Series) -> NDArray[np.int32]:
        """(n,) slots of the values."""
        codes = texts.cast(self._known, strict=False).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
        slot_of_code = np.array([*self._values.values(), self._missing], np.int32)
        local: NDArray[np.int32] = slot_of_code[codes]
        unknown = np.flatnonzero((codes < 0) & texts.is_not_null().to_numpy())
        if len(unknown):
            texts = texts.gather(unknown)
            distinct = texts.unique(maintain_order=True)
            slots = np.array([self._slot(value) for value in distinct.to_list()], np.int32)
            local[unknown] = slots[texts.cast(pl.Enum(distinct)).to_physical().to_numpy()]
            self._grow()
        return local

    def note(self) -> str:
        """What became of the values, for people."""
        if self._hashed:
            return f"{self.limit} values one-hot, the further ones hashed into {self.buckets} features"
        return f"{len(self._values)} values one-hot"

    def to_dict(self) -> State:
        hashed = {str(bucket): slot for bucket, slot in self._hashed.items()}
        return {**super().to_dict(), "values": dict(self._values), "hashed": hashed}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._values = dict(state["values"])
        self._hashed = {int(bucket): slot for bucket, slot in state["hashed"].items()}
        self._known = pl.Enum(list(self._values))

    def _slot(self, value: str) -> int:
        """The slot of a value that has none of its own yet."""
        if len(self._values) < self.limit:
            self.names.append(f"{self.name}={value}")
            self._values[value] = len(self.names) - 1
            return self._values[value]
        bucket = zlib.crc32(value.encode()) % self.buckets  # the same in every process and version
        if bucket not in self._hashed:
            self.names.append(f"{self.name}#{bucket}")
            self._hashed[bucket] = len(self.names) - 1
        return self._hashed[bucket]

    def _grow(self) -> None:
        """Make room for the slots that were added."""
        more = len(self.names) - len(self.index)
        self.index = np.append(self.index, np.full(more, -1, np.int32))
        if len(self._values) > len(self._known.categories):
            self._known = pl.Enum(list(self._values))


@jit
def fill_rows(
    columns: NDArray[np.int32],
    values: NDArray[np.float64],
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: NDArray[np.float64],
) -> None:
    """Rows from (parts, n) columns and values: the constant feature 0, then sorted by column, no zeros."""
    end = 0
    for row in range(columns.shape[1]):
        first = end
        indices[end] = 0
        data[end] = 1.0
        end += 1
        for part in range(columns.shape[0]):
            column, value = columns[part, row], values[part, row]
            if column < 0 or value == 0.0:
                continue
            p = end
            while p > first and indices[p - 1] > column:  # insertion: a row is short and nearly sorted
                indices[p] = indices[p - 1]
                data[p] = data[p - 1]
                p -= 1
            indices[p] = column
            data[p] = value
            end += 1
        indptr[row + 1] = end


def assemble(parts: list[Part], n_rows: int, width: int) -> csr_matrix:
    """(n_rows, width) CSR matrix of the parts and the constant feature, in canonical form."""
    columns = np.full((len(parts), n_rows), -1, np.int32)
    values = np.ones((len(parts), n_rows))
    for i, part in enumerate(parts):
        columns[i] = np.append(part.slots.index, np.int32(-1))[part.local]
        if part.values is not None:
            values[i] = part.values
    room = n_rows * (len(parts) + 1)
    indptr, indices, data = np.zeros(n_rows + 1, np.int32), np.empty(room, np.int32), np.empty(room)
    fill_rows(columns, values, indptr, indices, data)
    end = indptr[-1]
    matrix = csr_matrix((data[:end].copy(), indices[:end].copy(), indptr), shape=(n_rows, width))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
