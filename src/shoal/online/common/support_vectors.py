"""The rows that a kernel learner keeps, in order of arrival, and their kernels with the rows at hand.

Dense rows are stored dense, sparse rows sparse; a row to compare is laid out once, so that a kernel costs one pass
over the stored row. The oldest row leaves by moving the others up, which costs no more than comparing them.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.engine import kernel_functions
from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import ROW
from shoal.engine.compile import kernel
from shoal.engine.kernel_functions import FUNCTION, KernelFunction, of_product
from shoal.engine.rounds import Rounds, cut
from shoal.engine.rows import FEATURES, product, row_bounds, squared_norm
from shoal.learner import Learner
from shoal.model.algorithm import Piece, Setup, Size, State
from shoal.model.parameters import Params
from shoal.model.state import copy_block, leaves, trimmed, trimmed_array
from shoal.online.common.relation_rates import UNSEEN, Rates

STORED, ROWS = 0, 1  # positions in a support's extent
PIECE = 64  # rows for which there is capacity at once, if not more rows are stored already


class Support(NamedTuple):
    """Stored rows."""

    values: Annotated[FloatArray, ROW]  # features of all rows one after the other
    indices: Annotated[IndexArray, ROW]  # their columns, of sparse rows only
    value_starts: Annotated[IntArray, ROW]  # (rows + 1,)
    index_starts: Annotated[IntArray, ROW]  # (rows + 1,)
    norms: Annotated[FloatArray, ROW]  # (rows,) ||x||^2
    task: Annotated[IntArray, ROW]  # (rows,) the row's task, below -1 if it was forgotten
    y: Annotated[FloatArray, ROW]  # (rows,)
    position: Annotated[IntArray, ROW]  # (rows,) place in the stream
    extent: IntArray  # (2,) rows stored, rows learned


class Capacity(NamedTuple):
    """How much a support can hold."""

    rows: int = 0
    values: int = 0
    indices: int = 0


NOTHING = Capacity()


def empty(capacity: Capacity = NOTHING) -> Support:
    """A support without rows."""
    rows = capacity.rows
    return Support(
        values=np.zeros(capacity.values),
        indices=np.zeros(capacity.indices, np.int32),
        value_starts=np.zeros(rows + 1, np.int64),
        index_starts=np.zeros(rows + 1, np.int64),
        norms=np.zeros(rows),
        task=np.zeros(rows, np.int64),
        y=np.zeros(rows),
        position=np.zeros(rows, np.int64),
        extent=np.zeros(2, np.int64),
    )


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
    return _dot_sparse(stored, indices, x) if len(indices) > 0 else product(stored, x)


@kernel(inline=False)
def compare(rounds: Rounds, row: int, kernel: KernelFunction, support: Support, out: FloatArray) -> float:
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
def _slot(rounds: Rounds, row: int, kernel: KernelFunction) -> int:
    """A function's values come for the stored rows first, then for those at hand."""
    return len(kernel.values) - len(rounds.task) + row


@kernel(sums="in order")
def _zero_without_sign(value: float) -> float:
    """-0 as 0, so that equal rows are equal models."""
    return value + 0.0


@kernel(inline=False)
def append(rounds: Rounds, row: int, kernel: KernelFunction, support: Support) -> None:
    """Store a row; there is capacity."""
    n = support.extent[STORED]
    dense = rounds.width > 0
    first, last = row_bounds(rounds, row)
    size = last - first
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


@kernel(entry="too", inline=False)
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
def drop_oldest(kernel: KernelFunction, support: Support) -> None:
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
def gram(kernel: KernelFunction, support: Support, out: FloatArray) -> None:
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


# ---- rounds in pieces --------------------------------------------------------------------------------------


def pieces(
    setup: Setup,
    state: State,
    rounds: Rounds,
    learns: bool,
    *,
    ends: Callable[[State, Rounds], IntArray] | None = None,
    prepare: Callable[[Setup, State, Rounds], State] | None = None,
) -> Iterator[Piece]:
    """Calls for which there is capacity and whose kernels are evaluated.

    `ends` gives rows, where rounds begin, before which a call has to end, the last the number of rows. `prepare` gets
    each piece that is to be learned, and the state with capacity for it.
    """
    for first, last in _spans(setup, state, rounds, learns, ends):
        piece = cut(rounds, first, last)
        if learns:
            state = state._replace(support=extended(state.support, piece, most(setup.params)))
            if prepare is not None:
                state = prepare(setup, state, piece)
        yield Piece(
            first, last, piece, setup.settings._replace(kernel=_evaluated(setup, state, piece)), state._asdict()
        )


def _spans(
    setup: Setup, state: State, rounds: Rounds, learns: bool, ends: Callable[[State, Rounds], IntArray] | None
) -> Iterator[tuple[int, int]]:
    """First and last row of each call; rounds stay whole.

    A function is called for a single round, so that its values do not depend on the size of chunks.
    """
    n, by_function, extent = len(rounds.task), callable(setup.params.kernel), state.support.extent
    if (learns and len(rounds.starts) == 2) or (not learns and not by_function):
        yield 0, n
        return
    starts = rounds.starts if learns else np.arange(n + 1)
    stops = ends(state, rounds) if learns and ends is not None else np.array([n])
    first = at = 0
    while first < n:
        most_rows = max(PIECE, int(extent[STORED]))
        most_rows = 1 if by_function and learns else PIECE if by_function else most_rows
        last = min(first + most_rows, int(stops[np.searchsorted(stops, first, "right")]))
        at = max(int(np.searchsorted(starts, last, "right")) - 1, at + 1)
        yield first, int(starts[at])
        first = int(starts[at])


def most(params: Params) -> int:
    """The number of rows that may be stored."""
    budget = getattr(params, "budget", None)
    return int(np.iinfo(np.int64).max) if budget is None else int(budget)


def extended(support: Support, rounds: Rounds, most: int) -> Support:
    """Capacity for all rows to be stored: at least doubled when it grows, so that growth is amortized."""
    stored, n = int(support.extent[STORED]), len(rounds.task)
    n_values = n * rounds.width if rounds.width else int(rounds.indptr[-1] - rounds.indptr[0])
    have = Capacity(len(support.y), len(support.values), len(support.indices))
    need = Capacity(
        min(stored + n, max(stored, most)),
        int(support.value_starts[stored]) + n_values,
        int(support.index_starts[stored]) + (0 if rounds.width else n_values),
    )
    if all(new <= old for new, old in zip(need, have, strict=True)):
        return support
    larger = empty(Capacity(*(old if new <= old else max(new, 2 * old) for new, old in zip(need, have, strict=True))))
    for old, new in zip(leaves(support), leaves(larger), strict=True):
        copy_block(old, new)
    # The kernels hold on to the counts of the state that they were given.
    return larger._replace(extent=support.extent)


def _evaluated(setup: Setup, state: State, rounds: Rounds) -> KernelFunction:
    """The kernel with what the loops need for these rows."""
    kernel: KernelFunction = setup.settings.kernel
    d = int(state.counters[FEATURES])
    if kernel.kind != FUNCTION:
        return kernel if rounds.width else kernel._replace(scratch=kernel_functions.zeros(d))
    X = dense_rows(rounds, d)
    stored = stored_rows(state)
    values = kernel_functions.evaluate(setup.params.kernel, np.vstack([stored, X]), X)
    slots = np.zeros(max(len(state.support.y), len(values)), np.int64)
    slots[: len(values)] = np.arange(len(values))
    return kernel._replace(values=values, slots=slots)


def dense_rows(rounds: Rounds, d: int) -> FloatArray:
    if rounds.width:
        return rounds.values.reshape(-1, d)
    used = slice(rounds.indptr[0], rounds.indptr[-1])
    arrays = (rounds.values[used], rounds.indices[used], rounds.indptr - rounds.indptr[0])
    return np.asarray(sp.csr_matrix(arrays, shape=(len(rounds.task), d)).toarray())


def stored_rows(state: State) -> FloatArray:
    """(stored, features) the rows."""
    rows = np.zeros((int(state.support.extent[STORED]), int(state.counters[FEATURES])))
    lay_out(state.support, rows)
    return rows


def gram_of(setup: Setup, state: State) -> FloatArray:
    """(stored, stored) kernels between the stored rows, lower half."""
    kernel, n = setup.settings.kernel, int(state.support.extent[STORED])
    if kernel.kind == FUNCTION:
        X = stored_rows(state)
        return kernel_functions.evaluate(setup.params.kernel, X, X) if n else np.zeros((0, 0))
    values = np.zeros((n, n))
    gram(kernel._replace(scratch=kernel_functions.zeros(int(state.counters[FEATURES]))), state.support, values)
    return values


# ---- forgetting, saving ------------------------------------------------------------------------------------


def leave(setup: Setup, state: State, k: int) -> None:
    """Rows of task k stay, as others learned from them; they get a number of their own, below all others.

    If tasks are independent, its rows hold nothing for the others and go.
    """
    rates: Rates = setup.settings.rates
    if rates.b == 0.0 and not rates.b_is_n_tasks and len(rates.mean) == 0:
        keep(state.support, kernel_functions.NO_SLOTS, 0, k)
    task = state.support.task[: state.support.extent[STORED]]
    task[task == k] = min(UNSEEN, int(task.min(initial=0))) - 1
    task[task > k] -= 1


def compacted(support: Support) -> Support:
    """Without spare capacity."""
    n = int(support.extent[STORED])
    smaller = empty(Capacity(n, int(support.value_starts[n]), int(support.index_starts[n])))
    return Support(*(trimmed_array(old, new) for old, new in zip(leaves(support), leaves(smaller), strict=True)))


def pack(allocate: Callable[[Setup, Size], State]) -> Callable[[Setup, State, Size], State]:
    """`Algorithm.pack` of a state with a support."""

    def packed(setup: Setup, state: State, size: Size) -> State:
        return trimmed(state._replace(support=compacted(state.support)), allocate(setup, size))

    return packed


def check(setup: Setup, state: State, size: Size) -> None:
    """Raise ValueError unless the stored rows are rows of such a model."""
    s: Support = state.support
    n = int(s.extent[STORED])
    if len(s.y) != n or any(len(array) != n for array in (s.norms, s.task, s.position)) or s.extent[ROWS] < 0:
        raise ValueError(f"it says that it holds {n} rows, but it holds {len(s.y)}")
    for starts, held in ((s.value_starts, s.values), (s.index_starts, s.indices)):
        if len(starts) != n + 1 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(held):
            raise ValueError("the offsets of its stored rows are not in order")
    lengths, indexed = np.diff(s.value_starts), np.diff(s.index_starts)
    if not ((indexed == lengths) | (indexed == 0)).all() or (lengths[indexed == 0] > size.features).any():
        raise ValueError("its stored rows have other lengths than their columns")
    if len(s.indices) and (s.indices.min() < 0 or s.indices.max() >= size.features):
        raise ValueError("the columns of its stored rows are out of range")
    if n and s.task.max() >= size.tasks:
        raise ValueError("the tasks of its stored rows are out of range")


class Supported(Learner):
    """The learned attributes of learners that keep rows."""

    @property
    def support_(self) -> IntArray:
        """(n_support,) places in the stream, from 0, of the rows that the model keeps."""
        support: Support = self._state("support_").support
        return support.position[: support.extent[STORED]].copy()

    @property
    def support_vectors_(self) -> FloatArray:
        """(n_support, n_features) the rows that the model keeps."""
        return stored_rows(self._state("support_vectors_"))
