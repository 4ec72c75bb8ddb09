"""The rows that a kernel learner keeps, in order of arrival, and their kernels with the rows at hand.

Dense rows are stored dense, sparse rows sparse; a row to compare is laid out once, so that a kernel costs one pass
over the stored row. The oldest row leaves by moving the others up, which costs no more than comparing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.engine import kernels
from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import call, kernel
from shoal.engine.kernels import FUNCTION, Kernel, of_product
from shoal.engine.rounds import Rounds
from shoal.engine.rows import squared_norm
from shoal.online._rates import UNSEEN, Related

STORED, ROWS = 0, 1  # positions in a support's extent
PIECE = 64  # rows that are given room at once, if not more rows are stored already


class Support(NamedTuple):
    """Stored rows."""

    values: FloatArray  # features of all rows one after the other
    indices: IndexArray  # their columns, of sparse rows only
    value_starts: IntArray  # (rows + 1,)
    index_starts: IntArray  # (rows + 1,)
    norms: FloatArray  # (rows,) ||x||^2
    task: IntArray  # (rows,) column of the row's task, below -1 if it was forgotten
    y: FloatArray  # (rows,)
    position: IntArray  # (rows,) place in the stream
    extent: IntArray  # (2,) rows stored, rows learnt


class Room(NamedTuple):
    """How much a support can hold."""

    rows: int = 0
    values: int = 0
    indices: int = 0


def empty(room: Room) -> Support:
    """A support without rows."""
    return Support(
        np.zeros(room.values), np.zeros(room.indices, np.int32), np.zeros(room.rows + 1, np.int64),
        np.zeros(room.rows + 1, np.int64), np.zeros(room.rows), np.zeros(room.rows, np.int64), np.zeros(room.rows),
        np.zeros(room.rows, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


@kernel
def _dot_dense(stored: FloatArray, x: FloatArray) -> float:
    total = 0.0
    for j in range(len(stored)):
        total += stored[j] * x[j]
    return total


@kernel(sums="in order")
def _dot_sparse(stored: FloatArray, indices: IndexArray, x: FloatArray) -> float:
    total = 0.0
    for p in range(len(stored)):
        total += stored[p] * x[np.uint32(indices[p])]
    return total


@kernel
def _product(support: Support, s: int, x: FloatArray) -> float:
    """<x_s, x> with x laid out."""
    stored = support.values[support.value_starts[s] : support.value_starts[s + 1]]
    indices = support.indices[support.index_starts[s] : support.index_starts[s + 1]]
    return _dot_sparse(stored, indices, x) if len(indices) > 0 else _dot_dense(stored, x)


@kernel(inline=False)
def compare(rounds: Rounds, row: int, kernel: Kernel, support: Support, out: FloatArray) -> float:
    """out[s] <- out[s] k(x_s, x), where out[s] (a rate) is not 0; k(x, x) is returned."""
    n = support.extent[STORED]
    if kernel.kind == FUNCTION:
        for s in range(n):
            out[s] *= kernel.values[kernel.slots[s], row]
        return float(kernel.values[_slot(rounds, row, kernel), row])
    norm = squared_norm(rounds, row)
    if rounds.width > 0:
        first, last = 0, 0
        x = rounds.values[row * rounds.width : (row + 1) * rounds.width]
    else:
        first, last = rounds.indptr[row], rounds.indptr[row + 1]
        x = kernel.scratch
        for p in range(first, last):
            x[np.uint32(rounds.indices[p])] = rounds.values[p]
    for s in range(n):
        if out[s] != 0.0:
            out[s] *= of_product(kernel, _product(support, s, x), support.norms[s], norm)
    for p in range(first, last):
        x[np.uint32(rounds.indices[p])] = 0.0
    return of_product(kernel, norm, norm, norm)


@kernel
def _slot(rounds: Rounds, row: int, kernel: Kernel) -> int:
    """A function's values come for the stored rows first, then for those at hand."""
    return len(kernel.values) - len(rounds.task) + row


@kernel(sums="in order")
def _zero_without_sign(value: float) -> float:
    """-0 as 0, so that equal rows are equal models."""
    return value + 0.0


@kernel(inline=False)
def append(rounds: Rounds, row: int, kernel: Kernel, support: Support) -> None:
    """Store a row; there is room."""
    n = support.extent[STORED]
    dense = rounds.width > 0
    first = row * rounds.width if dense else rounds.indptr[row]
    size = rounds.width if dense else rounds.indptr[row + 1] - first
    value, index = support.value_starts[n], support.index_starts[n]
    for p in range(size):
        support.values[value + p] = _zero_without_sign(rounds.values[first + p])
        if not dense:
            support.indices[index + p] = rounds.indices[first + p]
    support.value_starts[n + 1] = value + size
    support.index_starts[n + 1] = index + (0 if dense else size)
    support.norms[n] = squared_norm(rounds, row)
    support.task[n], support.y[n], support.position[n] = rounds.task[row], rounds.y[row], support.extent[ROWS]
    support.extent[STORED] = n + 1
    if kernel.kind == FUNCTION:
        kernel.slots[n] = _slot(rounds, row, kernel)


@kernel(entry=True, inline=False)
def keep(support: Support, slots: IntArray, first: int, unwanted: int) -> None:
    """Keep the rows from `first` on whose task is not `unwanted`, in order."""
    n, kept, value, index = support.extent[STORED], 0, 0, 0
    for s in range(first, n):
        if support.task[s] == unwanted:
            continue
        v, i = support.value_starts[s], support.index_starts[s]
        n_values, n_indices = support.value_starts[s + 1] - v, support.index_starts[s + 1] - i
        for p in range(n_values):
            support.values[value + p] = support.values[v + p]
        for p in range(n_indices):
            support.indices[index + p] = support.indices[i + p]
        value, index = value + n_values, index + n_indices
        support.norms[kept], support.task[kept] = support.norms[s], support.task[s]
        support.y[kept], support.position[kept] = support.y[s], support.position[s]
        if len(slots) > 0:
            slots[kept] = slots[s]
        kept += 1
        support.value_starts[kept], support.index_starts[kept] = value, index
    support.extent[STORED] = kept


NO_TASK = np.iinfo(np.int64).min


@kernel
def drop_oldest(kernel: Kernel, support: Support) -> None:
    """Forget the row that was stored first."""
    keep(support, kernel.slots, 1, NO_TASK)


@kernel(entry=True)
def lay_out(support: Support, out: FloatArray) -> None:
    """out[s] <- x_s."""
    for s in range(len(out)):
        value, index = support.value_starts[s], support.index_starts[s]
        dense = support.index_starts[s + 1] == index
        for p in range(support.value_starts[s + 1] - value):
            out[s, p if dense else np.uint32(support.indices[index + p])] = support.values[value + p]


@kernel(entry=True)
def gram(kernel: Kernel, support: Support, out: FloatArray) -> None:
    """out[s, r] <- k(x_s, x_r) for r <= s."""
    x = kernel.scratch
    for s in range(len(out)):
        value, index = support.value_starts[s], support.index_starts[s]
        size = support.value_starts[s + 1] - value
        dense = support.index_starts[s + 1] == index
        for p in range(size):
            x[p if dense else np.uint32(support.indices[index + p])] = support.values[value + p]
        for r in range(s + 1):
            product = support.norms[s] if r == s else _product(support, r, x)
            out[s, r] = of_product(kernel, product, support.norms[r], support.norms[s])
        for p in range(size):
            x[p if dense else np.uint32(support.indices[index + p])] = 0.0


class SupportLearner(Related):
    """A learner that keeps rows: makes room before the loops run, and evaluates kernels that are functions."""

    kernel: Any
    gamma: float
    budget: int | None
    _room = Room()

    def _kernel(self) -> Kernel:
        return kernels.resolve(self.kernel, self.gamma)

    def _most(self) -> int:
        """The number of rows that may be stored."""
        if self.budget is None:
            return int(np.iinfo(np.int64).max)
        if isinstance(self.budget, bool) or not (self.budget >= 1 and int(self.budget) == self.budget):
            raise ValueError(f"budget must be None or a whole number >= 1, got {self.budget!r}")
        return int(self.budget)

    # ---- rounds in pieces --------------------------------------------------------------------------------

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> Any:
        settings = self._current()
        for first, last in self._pieces(loop, rounds):
            piece = cut(rounds, first, last)
            if loop == 0:
                self._prepare(piece)
            kernel = self._evaluated(settings.kernel, piece)
            call(
                self._code[loop],
                piece,
                settings._replace(kernel=kernel),
                self._state,
                decisions[first:last],
                self.dtype,
            )

    def _pieces(self, loop: int, rounds: Rounds) -> Iterator[tuple[int, int]]:
        """First and last row of each call; rounds stay whole.

        A function is called for a single round, so that its values do not depend on the size of chunks.
        """
        n, by_function = len(rounds.task), callable(self.kernel)
        if (loop == 0 and len(rounds.starts) == 2) or (loop == 1 and not by_function):
            yield 0, n
            return
        starts, ends = (rounds.starts, self._ends(rounds)) if loop == 0 else (np.arange(n + 1), np.array([n]))
        first = at = 0
        while first < n:
            most = max(PIECE, int(self._state.support.extent[STORED]))
            most = 1 if by_function and loop == 0 else PIECE if by_function else most
            last = min(first + most, int(ends[np.searchsorted(ends, first, "right")]))
            at = max(int(np.searchsorted(starts, last, "right")) - 1, at + 1)
            yield first, int(starts[at])
            first = int(starts[at])

    def _ends(self, rounds: Rounds) -> IntArray:
        """Rows, where rounds begin, before which a call has to end; the last is the number of rows."""
        return np.array([len(rounds.task)])

    def _prepare(self, rounds: Rounds) -> None:
        """Room for all rows to become supports: at least doubled when it grows, so that growth is amortised."""
        support, n = self._state.support, len(rounds.task)
        stored = int(support.extent[STORED])
        n_values = n * rounds.width if rounds.width else int(rounds.indptr[-1] - rounds.indptr[0])
        needed = Room(
            min(stored + n, max(stored, self._most())),
            int(support.value_starts[stored]) + n_values,
            int(support.index_starts[stored]) + (0 if rounds.width else n_values),
        )
        if any(need > have for need, have in zip(needed, self._room, strict=True)):
            pairs = zip(needed, self._room, strict=True)
            self._room = Room(*(have if need <= have else max(need, 2 * have) for need, have in pairs))
            self._enlarge(*self._capacity)

    def _evaluated(self, kernel: Kernel, rounds: Rounds) -> Kernel:
        """The kernel with what the loops need for these rows."""
        if kernel.kind != FUNCTION:
            return kernel if rounds.width else kernel._replace(scratch=kernels.zeros(self._columns.count))
        X = self._rows(rounds)
        stored = self.support_vectors_
        values = kernels.evaluate(self.kernel, np.vstack([stored, X]), X)
        slots = np.zeros(max(self._room.rows, len(values)), np.int64)
        slots[: len(values)] = np.arange(len(values))
        return kernel._replace(values=values, slots=slots)

    def _rows(self, rounds: Rounds) -> FloatArray:
        d = self._columns.count
        if rounds.width:
            return rounds.values.reshape(-1, d)
        used = slice(rounds.indptr[0], rounds.indptr[-1])
        arrays = (rounds.values[used], rounds.indices[used], rounds.indptr - rounds.indptr[0])
        return np.asarray(sp.csr_matrix(arrays, shape=(len(rounds.task), d)).toarray())

    def _gram(self) -> FloatArray:
        """(stored, stored) kernels between the stored rows, lower half."""
        kernel, n = self._kernel(), int(self._state.support.extent[STORED])
        if kernel.kind == FUNCTION:
            X = self.support_vectors_
            return kernels.evaluate(self.kernel, X, X) if n else np.zeros((0, 0))
        values = np.zeros((n, n))
        gram(kernel._replace(scratch=kernels.zeros(self._columns.count)), self._state.support, values)
        return values

    # ---- forgetting, saving ------------------------------------------------------------------------------

    def _leave(self, state: Any, k: int, n_tasks: int) -> None:
        """What the others learnt from task k stays: its rows get a number of their own, below all others.

        If tasks are independent, its rows hold nothing for the others and go.
        """
        rates = self._rates()
        if rates.b == 0.0 and not rates.b_is_n_tasks:
            keep(state.support, kernels.NO_SLOTS, 0, k)
        task = state.support.task[: state.support.extent[STORED]]
        task[task == k] = min(UNSEEN, int(task.min(initial=0))) - 1
        task[task > k] -= 1

    def _trimmed(self) -> Any:
        room, support = self._room, self._state.support
        n = int(support.extent[STORED])
        self._room = Room(n, int(support.value_starts[n]), int(support.index_starts[n]))
        try:
            return super()._trimmed()
        finally:
            self._room = room

    def _restore(self, header: dict[str, Any], arrays: Any) -> None:
        names = ("y", "values", "indices")
        self._room = Room(*(len(arrays[f"state.support.{name}"]) for name in names))
        super()._restore(header, arrays)

    # ---- what can be seen --------------------------------------------------------------------------------

    def _stored(self, name: str) -> Support:
        support: Support = self._fitted(name).support
        return support

    @property
    def support_(self) -> IntArray:
        """(n_support,) places in the stream, from 0, of the rows that the model keeps."""
        support = self._stored("support_")
        return support.position[: support.extent[STORED]].copy()

    @property
    def support_vectors_(self) -> FloatArray:
        """(n_support, n_features) the rows that the model keeps."""
        support = self._stored("support_vectors_")
        rows = np.zeros((int(support.extent[STORED]), self._columns.count))
        lay_out(support, rows)
        return rows


def cut(rounds: Rounds, first: int, last: int) -> Rounds:
    """The rows from first to last."""
    if (first, last) == (0, len(rounds.task)):
        return rounds
    width = rounds.width
    starts = rounds.starts[np.searchsorted(rounds.starts, first) :]
    return rounds._replace(
        indptr=rounds.indptr if width else rounds.indptr[first : last + 1],
        values=rounds.values[first * width : last * width] if width else rounds.values,
        task=rounds.task[first:last],
        y=rounds.y[first:last],
        starts=starts[: np.searchsorted(starts, last, "right")] - first,
    )
