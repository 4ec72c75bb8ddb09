"""`assemble`: the cells and bags of words of a chunk become a CSR matrix; features get columns of X as they appear.

A part is a column of the table, or the weekday, month or hour of a date. It has slots, one per feature; a cell is the
slot and the value of one part in one row.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.engine.compile import kernel
from shoal.files.saved_state import State, check_state
from shoal.files.tables.words import Bags

FEW = 24  # up to this number of features, insertion sort is faster than radix sort
LOGS = np.array([math.log1p(count) for count in range(256)])
Csr = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]  # indptr, indices, data
T = TypeVar("T")


def shallow(one: T) -> T:
    """`copy.copy` of a plain object, six times as fast."""
    found = object.__new__(type(one))
    found.__dict__.update(one.__dict__)
    return found


class Slots:
    """The features of one part: their names and their columns of X."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.index = np.full(len(names), -1, np.int32)  # column of X, -1 until the feature appears

    def frozen(self) -> Self:
        """A copy with the index of now, because learning replaces the index; new names appear in the copy, too."""
        return shallow(self)

    def to_dict(self) -> State:
        """The whole state, for JSON."""
        return {"names": list(self.names), "index": self.index.tolist()}

    def restore(self, state: State) -> None:
        """Restore a saved state."""
        self.names = list(state["names"])
        self.index = np.array(state["index"], np.int32)
        right = all(isinstance(name, str) for name in self.names) and self.index.shape == (len(self.names),)
        check_state(right, "names of features")


class TextSlots:
    """The hashed words of the columns of text: their columns of X and, if they are kept, their names.

    Attributes
    ----------
    names : list of str
        The columns of text.
    index : (columns, 2**bits) int32
        Column of X, -1 until the feature appears.
    words : list of dict, or None
        The names of the buckets of each column, if they are kept.
    """

    def __init__(self, bits: int, *, keep_names: bool = False) -> None:
        self.bits = bits
        self.words: list[dict[int, str]] | None = [] if keep_names else None
        self.names: list[str] = []
        self.index = np.zeros((0, 1 << bits), np.int32)

    def frozen(self) -> TextSlots:
        """A copy with the columns of now; its index still changes, but only to new columns of X."""
        found = shallow(self)
        found.names, found.words = list(self.names), None
        return found

    def add(self, name: str) -> None:
        """Add a column of text."""
        self.names.append(name)
        self.index = np.concatenate([self.index, np.full((1, 1 << self.bits), -1, np.int32)])
        if self.words is not None:
            self.words.append({})

    def keep_first(self, n: int) -> None:
        """Drop the columns after the first n; none of their words may have a column of X."""
        del self.names[n:]
        self.index = self.index[:n]
        if self.words is not None:
            del self.words[n:]

    def name_of(self, slot: int) -> str:
        """The name of a feature: `column=word`, or `column#bucket` if words are not kept."""
        column, bucket = slot >> self.bits, slot & ((1 << self.bits) - 1)
        word = None if self.words is None else self.words[column].get(bucket)
        return f"{self.names[column]}#{bucket}" if word is None else f"{self.names[column]}={word}"

    def to_dict(self) -> State:
        """The names of the columns, the buckets that have columns of X, and these, for JSON."""
        found = [np.flatnonzero(index >= 0) for index in self.index]
        columns = [index[buckets].tolist() for index, buckets in zip(self.index, found, strict=True)]
        state: State = {
            "names": list(self.names),
            "buckets": [buckets.tolist() for buckets in found],
            "columns": columns,
        }
        if self.words is not None:
            named = zip(self.words, state["buckets"], strict=True)
            state["words"] = [[words.get(bucket) for bucket in buckets] for words, buckets in named]
        return state

    def restore(self, state: State) -> None:
        """Restore a saved state."""
        check_state(len(state["names"]) == len(state["buckets"]) == len(state["columns"]), "hashed words")
        for name, buckets, columns in zip(state["names"], state["buckets"], state["columns"], strict=True):
            self.add(name)
            check_state(len(buckets) == len(columns) and min(buckets, default=0) >= 0, "hashed words")
            self.index[-1, np.array(buckets, np.int64)] = np.array(columns, np.int32)
        if self.words is not None:
            check_state(len(state["words"]) == len(self.names), "words")
            for kept, buckets, words in zip(self.words, state["buckets"], state["words"], strict=True):
                check_state(all(word is None or isinstance(word, str) for word in words), "words")
                kept.update((b, word) for b, word in zip(buckets, words, strict=True) if word is not None)


class Cells(NamedTuple):
    """The features of each row by part: at most one each."""

    local: NDArray[np.int32]  # (n, parts) the slot within the part, -1 for none
    values: NDArray[np.float64]  # (n, parts)

    def of(self, first: int, last: int) -> Cells:
        """The cells of the parts first to last."""
        return Cells(self.local[:, first:last], self.values[:, first:last])


class Places(NamedTuple):
    """The columns of X of all slots, while rows are assembled."""

    starts: NDArray[np.int64]  # (parts + 1,) the slots of part p are those from starts[p] on
    columns: NDArray[np.int32]  # column of X of each slot, -1 for none yet
    text_columns: NDArray[np.int32]  # (texts, buckets) the same for hashed words
    order: NDArray[np.int64]  # parts, and text t as -1 - t, in which new features of one row get columns
    learns: bool  # whether new features get columns; otherwise they are left out


class Scratch(NamedTuple):
    """Memory of `fill_rows`, allocated by NumPy, because allocations in compiled code take long to compile."""

    words: NDArray[np.int32]  # (most words of a row,) columns of the words of a row
    other: NDArray[np.int32]  # as many, for sorting
    counts: NDArray[np.int64]  # (257,) for sorting
    appeared: NDArray[np.int64]  # (most,) slots of the features that appeared, slot s of the texts as -1 - s


@kernel(inline=False, sums="exact", alone=False)
def _sort(keys: NDArray[np.int32], other: NDArray[np.int32], n: int, largest: int, counts: NDArray[np.int64]) -> None:
    """Sort the first n keys, which are not negative: insertion for few, else a radix sort."""
    if n <= FEW:
        for i in range(1, n):
            key, j = keys[i], i
            while j > 0 and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
        return
    shift = 0
    while largest >> shift > 0:
        for digit in range(257):
            counts[digit] = 0
        for i in range(n):
            counts[((keys[i] >> shift) & 255) + 1] += 1
        for digit in range(256):
            counts[digit + 1] += counts[digit]
        for i in range(n):
            digit = (keys[i] >> shift) & 255
            other[counts[digit]] = keys[i]
            counts[digit] += 1
        for i in range(n):
            keys[i] = other[i]
        shift += 8


@kernel(inline=False, sums="exact", alone=False)
def _merge_words(
    words: NDArray[np.int32], n: int, first: int, end: int, indices: NDArray[np.int32], data: NDArray[np.float64]
) -> int:
    """Merge the sorted words, as log(1 + count), into the sorted features first to end; the new end."""
    distinct = 0
    for i in range(n):
        distinct += i == 0 or words[i] != words[i - 1]
    at, left, i = end + distinct - 1, end - 1, n - 1
    while i >= 0:
        column, count = words[i], 1
        while i > 0 and words[i - 1] == column:
            i -= 1
            count += 1
        i -= 1
        while left >= first and indices[left] > column:
            indices[at], data[at] = indices[left], data[left]
            at -= 1
            left -= 1
        indices[at] = column
        data[at] = LOGS[count] if count < len(LOGS) else math.log1p(count)
        at -= 1
    return end + distinct


@kernel(entry=True, inline=False, sums="exact")
def fill_rows(cells: Cells, bags: Bags, places: Places, width: int, scratch: Scratch, matrix: Csr) -> int:
    """Fill the rows of a CSR matrix, and return how many features appeared.

    A row begins with the constant feature 0 and is sorted by column, without zeros. A feature that appears gets the
    next column, beginning with `width`, in the order of the rows and then of `order`.
    """
    indptr, indices, data = matrix
    starts, index, text_index, learns = places.starts, places.columns, places.text_columns, places.learns
    words, appeared = scratch.words, scratch.appeared
    n_appeared, end, one = 0, np.uint64(0), np.uint64(1)  # unsigned positions need no test for wrap-around
    for row in range(len(cells.local)):
        first, last = end, np.int32(0)
        indices[end], data[end] = 0, 1.0
        end += one
        local, values = cells.local[row], cells.values[row]
        n_words, largest = 0, np.int32(0)
        for i in range(len(places.order)):
            if places.order[i] < 0:
                text = -1 - places.order[i]
                for k in range(bags.ends[text, row], bags.ends[text, row + 1]):
                    bucket = bags.buckets[k]
                    column = text_index[text, bucket]
                    if not learns and not 0 <= column < width:
                        continue  # at width or beyond: another thread has learned it since `frozen`
                    if column < 0:
                        column = np.int32(width + n_appeared)
                        text_index[text, bucket] = column
                        appeared[n_appeared] = -1 - (text * text_index.shape[1] + np.int64(bucket))
                        n_appeared += 1
                    words[n_words] = column
                    largest = max(largest, column)
                    n_words += 1
                continue
            part = np.uint64(places.order[i])
            if local[part] < 0:
                continue
            slot, value = np.uint64(starts[part] + local[part]), values[part]
            if index[slot] < 0:
                if not learns:
                    continue
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
        if n_words > 0:
            _sort(words, scratch.other, n_words, int(largest), scratch.counts)
            end = np.uint64(_merge_words(words, n_words, int(np.int64(first)), int(np.int64(end)), indices, data))
        indptr[row + 1] = end
    return n_appeared


def assemble(
    parts: list[Slots], cells: Cells, texts: TextSlots, bags: Bags, order: list[int], width: int, *, learns: bool
) -> tuple[csr_matrix, list[str]]:
    """The (n, features) CSR matrix of constant feature, cells and words in canonical form, and the names of features
    that appeared.

    Parameters
    ----------
    order : list of int
        Parts, and text t as -1 - t: the order of features that appear in the same row.
    width : int
        Columns so far.
    learns : bool
        Whether features may appear; otherwise unknown ones are left out.
    """
    n_rows = len(cells.local)
    starts = np.cumsum([0, *(len(part.index) for part in parts)])
    index = np.concatenate([np.zeros(0, np.int32), *(part.index for part in parts)])
    capacity = n_rows * (len(parts) + 1) + len(bags.buckets)
    indptr, indices, data = np.zeros(n_rows + 1, np.int32), np.empty(capacity, np.int32), np.empty(capacity)
    places = Places(starts, index, texts.index, np.array(order, np.int64), learns)
    longest = int(np.diff(bags.ends, axis=1).sum(axis=0).max(initial=0))
    appeared = np.empty(np.count_nonzero(index < 0) + min(len(bags.buckets), texts.index.size), np.int64)
    words, other = np.empty((2, longest), np.int32)
    scratch = Scratch(words, other, np.empty(257, np.int64), appeared)
    n_appeared = fill_rows(cells, bags, places, width, scratch, (indptr, indices, data))
    names: list[str] = []
    for slot in appeared[:n_appeared].tolist():
        if slot < 0:
            names.append(texts.name_of(-1 - slot))
        else:
            at = int(np.searchsorted(starts, slot, "right")) - 1
            names.append(parts[at].names[slot - starts[at]])
    for part, first in zip(parts, starts[:-1].tolist(), strict=True):
        part.index = index[first : first + len(part.index)]
    end = indptr[-1]
    matrix = csr_matrix((data[:end], indices[:end], indptr), shape=(n_rows, width + len(names)))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix, names
