"""Features of one column: numbered as they appear, hashed beyond a limit, and put together to CSR."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.engine.compile import kernel

LIMIT = 1_000
BUCKETS = 1_024
State = dict[str, Any]  # what JSON can hold


class Slots:
    """Names of features, and where each stands in X."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.index = np.full(len(names), -1, np.int32)  # column of X, -1 until the feature appears

    def to_dict(self) -> State:
        return {"names": list(self.names), "index": self.index.tolist()}

    def restore(self, state: State) -> None:
        self.names = list(state["names"])
        self.index = np.array(state["index"], np.int32)


class Cells(NamedTuple):
    """What the parts (a column, or one of a date's) give each row: at most one feature each."""

    local: NDArray[np.int32]  # (n, parts) which of the part's slots, -1 for none
    values: NDArray[np.float64]  # (n, parts)

    def of(self, first: int, last: int) -> Cells:
        """Those of some parts."""
        return Cells(self.local[:, first:last], self.values[:, first:last])


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


@kernel(entry=True, allocates=True, inline=False, sums="exact")
def fill_rows(
    cells: Cells, order: NDArray[np.int64], starts: NDArray[np.int64], index: NDArray[np.int32], width: int,
    matrix: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]],
) -> NDArray[np.int64]:  # fmt: skip
    """Rows of a CSR matrix: the constant feature 0, then sorted by column, no zeros.

    The slots of part p are those from starts[p] on. One that appears for the first time gets the next column, `width`
    at first, in the order of the rows and then of `order`; those are returned.
    """
    indptr, indices, data = matrix
    appeared = np.empty(np.count_nonzero(index < 0), np.int64)
    n_appeared, end, one = 0, np.uint64(0), np.uint64(1)  # unsigned positions cannot wrap around: no test for it
    for row in range(len(cells.local)):
        first, last = end, np.int32(0)
        indices[end], data[end] = 0, 1.0
        end += one
        local, values = cells.local[row], cells.values[row]
        for i in range(len(order)):
            part = np.uint64(order[i])
            if local[part] < 0:
                continue
            slot, value = np.uint64(starts[part] + local[part]), values[part]
            if index[slot] < 0:
                index[slot] = width + n_appeared
                appeared[n_appeared] = slot
                n_appeared += 1
            if value == 0.0:
                continue
            column, p = index[slot], end
            if column < last:
                while p > first and indices[p - one] > column:  # insertion: a row is short and nearly sorted
                    indices[p], data[p] = indices[p - one], data[p - one]
                    p -= one
            indices[p], data[p] = column, value
            last = max(last, column)
            end += one
        indptr[row + 1] = end
    return appeared[:n_appeared]


def assemble(parts: list[Slots], cells: Cells, order: list[int], names: list[str]) -> csr_matrix:
    """(n, features) CSR matrix of the cells and the constant feature, in canonical form.

    Parameters
    ----------
    order : permutation of the parts
        In which features get their columns if they first appear in the same row.
    names : list of str
        Of the columns so far; grows by those of the features that appear.
    """
    n_rows = len(cells.local)
    starts = np.cumsum([0, *(len(part.index) for part in parts)])
    index = np.concatenate([np.zeros(0, np.int32), *(part.index for part in parts)])
    room = n_rows * (len(parts) + 1)
    indptr, indices, data = np.zeros(n_rows + 1, np.int32), np.empty(room, np.int32), np.empty(room)
    appeared = fill_rows(cells, np.array(order, np.int64), starts, index, len(names), (indptr, indices, data))
    for slot in appeared.tolist():
        at = int(np.searchsorted(starts, slot, "right")) - 1
        names.append(parts[at].names[slot - starts[at]])
    for part, first in zip(parts, starts[:-1].tolist(), strict=True):
        part.index = index[first : first + len(part.index)]
    end = indptr[-1]
    matrix = csr_matrix((data[:end], indices[:end], indptr), shape=(n_rows, len(names)))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
