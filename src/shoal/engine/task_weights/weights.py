"""The weights a task holds for itself: a dense row each, or a hash table where few of many ever differ from zero.

Dense rows are faster while caches hold them, or once a percent of the weights is in use; tables hold what has
occurred, so 100,000 users times 10^7 hashed features fit, and no memory is fetched for what has not. The sums run in
the same order, so which of the two it is changes no bit of a model of sparse rows.

The door of this folder: `allocate`, `grow`, `extend`, `remove`, `pack` and `unpack` for algorithms in Python;
`has_capacity`, `task_dot`, `task_dot_and`, `task_add` for their kernels.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import LINE, FloatArray, IndexArray, IntArray
from shoal.engine.axes import ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import prefetch, set_number
from shoal.engine.rounds import Rounds
from shoal.engine.rows import add, dot, dot_two, row_bounds
from shoal.engine.task_weights import hash_table
from shoal.engine.task_weights.lookahead import Lookahead, Row, add_pairs, dot_pairs, look_ahead, missing_pairs
from shoal.engine.task_weights.pairs import check_pairs, sorted_pairs

DENSE_MOST = 2**28  # weights; 2 GiB
DENSE_FIRST = 2**24  # weights that are dense from the start even if few rows are learned from: caches hold most reads
CACHED = 2**24  # bytes of dense weights: up to here caches hold most of what rows need, and to fetch it takes longer
MOST_FIRST_CAPACITY = 2**20  # groups of the first arena, which take no memory before they are used
FILLED = 128  # pairs of which at least one occurs: then dense rows are faster, because rows find most of their pairs


class TaskWeights(NamedTuple):
    """One of the two is empty."""

    dense: Annotated[FloatArray, TASK, ROW]  # (tasks, features), or no columns
    tables: hash_table.Tables  # of numbers, or no groups


class PackedWeights(NamedTuple):
    """The saved form: dense rows, or the pairs of each task in the order of their features."""

    dense: Annotated[FloatArray, TASK, ROW]
    starts: Annotated[IntArray, ROW]  # (tasks + 1,) where the pairs of each task begin; or empty
    features: Annotated[IndexArray, ROW]  # (pairs,)
    numbers: Annotated[FloatArray, ROW]  # (pairs,)


def _dense(n_tasks: int, n_features: int, dtype: Any) -> TaskWeights:
    return TaskWeights(np.zeros((n_tasks, n_features), dtype), hash_table.new_tables(n_tasks, 0, hash_table.NUMBERS))


def _wide(n_tasks: int, capacity: int, dtype: Any) -> TaskWeights:
    return TaskWeights(np.zeros((n_tasks, 0), dtype), hash_table.new_tables(n_tasks, capacity, hash_table.NUMBERS))


def dense_limit(mistake_driven: bool) -> int:
    """How many weights are dense from the start: fewer for learners that learn only from mistakes."""
    return DENSE_FIRST if mistake_driven else DENSE_MOST


def allocate(n_tasks: int, n_features: int, dtype: Any, most_dense: int) -> TaskWeights:
    """Zero weights; in tables if there are more than `most_dense`."""
    wanted = n_tasks * n_features
    if wanted <= most_dense:
        return _dense(n_tasks, n_features, dtype)
    capacity = min(max(2 * wanted // (FILLED * hash_table.NUMBERS), hash_table.FIRST_CAPACITY), MOST_FIRST_CAPACITY)
    return _wide(n_tasks, capacity, dtype)


def grow(own: TaskWeights, n_tasks: int, n_features: int, most_dense: int) -> TaskWeights:
    """The same weights for more tasks and features."""
    if not is_wide(own) and len(own.dense) == 0:  # only rows without weight so far, and no task
        return allocate(n_tasks, n_features, own.dense.dtype, most_dense)
    wanted = n_tasks * n_features
    if not is_wide(own) and wanted > most_dense and _tables_pay(own.dense, wanted):
        own = _as_tables(own)
    if is_wide(own):
        tables = hash_table.for_tasks(own.tables, n_tasks)
        n = len(own.tables.start)
        for old, new in (
            (own.tables.start, tables.start),
            (own.tables.size, tables.size),
            (own.tables.filled, tables.filled),
        ):
            new[:n] = old
        return TaskWeights(np.zeros((n_tasks, 0), own.dense.dtype), tables)
    larger = _dense(n_tasks, n_features, own.dense.dtype)
    larger.dense[: len(own.dense), : own.dense.shape[1]] = own.dense
    return larger


def extend(own: TaskWeights, n_tasks: int, n_features: int) -> TaskWeights:
    """The same weights with capacity for more pairs; dense if tables no longer pay."""
    if n_tasks * n_features <= min(DENSE_MOST, FILLED * int(own.tables.filled.sum())):
        return _as_dense(own, n_features)
    return own._replace(tables=hash_table.with_capacity(own.tables))


def remove(own: TaskWeights, k: int) -> None:
    """Empty the table of a task, if it has one."""
    if is_wide(own):
        hash_table.without_task(own.tables, k)


def pack(own: TaskWeights, n_tasks: int, n_features: int, most_dense: int) -> PackedWeights:
    """The weights of this many tasks and features, the same whatever capacity there was."""
    none = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0)
    if not is_wide(own):
        return PackedWeights(np.ascontiguousarray(own.dense[:n_tasks, :n_features]), *none)
    if n_tasks * n_features <= most_dense:  # spare capacity alone made it outgrow dense rows
        dense = _as_dense(own, n_features).dense
        return PackedWeights(np.ascontiguousarray(dense[:n_tasks]), *none)
    pairs = [sorted_pairs(own.tables, task) for task in range(n_tasks)]
    starts = np.cumsum([0, *(len(features) for features, _ in pairs)])
    features, numbers = (np.concatenate([np.zeros(0), *parts]) for parts in zip(*pairs, strict=True))
    return PackedWeights(np.zeros((n_tasks, 0), own.dense.dtype), starts, features.astype(np.int32), numbers)


def blank(n_tasks: int, n_features: int, dtype: Any) -> PackedWeights:
    """An empty `pack`."""
    dense = np.zeros((n_tasks, 0 if n_tasks * n_features > DENSE_MOST else n_features), dtype)
    return PackedWeights(dense, np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))


def check(packed: PackedWeights, n_tasks: int, n_features: int) -> None:
    """Raise ValueError unless these are weights of this many tasks and features."""
    if packed.dense.shape == (n_tasks, n_features):
        if len(packed.starts) or len(packed.features) or len(packed.numbers):
            raise ValueError("weights of tasks are both dense and in pairs")
    elif packed.dense.shape != (n_tasks, 0):
        raise ValueError(f"weights of tasks have shape {packed.dense.shape}, expected {(n_tasks, n_features)}")
    else:
        check_pairs(packed.starts, packed.features, len(packed.numbers), n_tasks, n_features)


def unpack(packed: PackedWeights, n_tasks: int) -> TaskWeights:
    """The weights that `pack` gave."""
    if len(packed.starts) == 0:
        return TaskWeights(packed.dense, hash_table.new_tables(n_tasks, 0, hash_table.NUMBERS))
    capacity = sum(int(hash_table.size_for(int(n), hash_table.NUMBERS)) for n in np.diff(packed.starts) if n > 0)
    own = _wide(n_tasks, max(capacity, hash_table.FIRST_CAPACITY), packed.dense.dtype)
    _put_pairs(packed.starts, packed.features, packed.numbers, own.tables)
    own.tables.waiting[:] = 0
    return own


@kernel(entry=True)
def _put_pairs(starts: IntArray, features: IndexArray, numbers: FloatArray, tables: hash_table.Tables) -> None:
    for task in range(len(starts) - 1):
        first, last = starts[task], starts[task + 1]
        if first < last:
            hash_table.make_capacity(tables, task, last - first)
        for p in range(first, last):
            tables.waiting[hash_table.FEATURE, 0] = features[p]
            hash_table.put_all(tables, task, 1)
            set_number(tables.words, hash_table.number_at(tables.waiting[hash_table.SLOT, 0]), numbers[p])


@kernel(entry="too")
def is_wide(own: TaskWeights) -> bool:
    """Are they in tables?"""
    return len(own.tables.taken) > 0


@kernel
def has_capacity(rounds: Rounds, first: int, last: int, own: TaskWeights) -> bool:
    """Can the rows of a round be learned without more capacity?"""
    return not is_wide(own) or hash_table.has_capacity(rounds, first, last, own.tables)


@kernel
def _row(rounds: Rounds, row: int) -> Row:
    first, last = row_bounds(rounds, row)
    return Row(rounds.width > 0, rounds.indices[first:last], rounds.values[first:last])


@kernel
def _prefetch_hints(rounds: Rounds, row: int, own: TaskWeights) -> None:
    """Prefetch the hints of a row, if there is such a row."""
    if row < len(rounds.task) and rounds.task[row] >= 0:
        first, last = row_bounds(rounds, row)
        if hash_table.HINTS * own.tables.size[rounds.task[row]] <= LINE * (last - first):  # else it needs few of them
            hash_table.fetch_hints(own.tables, rounds.task[row])


@kernel
def _prepare(rounds: Rounds, row: int, own: TaskWeights, ahead: Lookahead) -> None:
    """Look up the weights of a row and prefetch the hints of the row after it, if there are such rows."""
    if row < len(rounds.task) and rounds.task[row] >= 0:
        look_ahead(_row(rounds, row), row, rounds.task[row], own.tables, ahead)
    _prefetch_hints(rounds, row + 1, own)


@kernel
def _prefetch_dense(rounds: Rounds, row: int, own: TaskWeights) -> None:
    """Prefetch the dense weights of a sparse row, if there is such a row and caches do not hold all of them."""
    if own.dense.nbytes > CACHED and row < len(rounds.task) and rounds.task[row] >= 0:
        first, last = row_bounds(rounds, row)
        w = own.dense[rounds.task[row]]
        for column in rounds.indices[first:last]:
            prefetch(w, np.uint64(np.uint32(column)))


@kernel
def task_dot(rounds: Rounds, row: int, task: int, own: TaskWeights, ahead: Lookahead) -> float:
    """<v_task, x>."""
    if not is_wide(own):
        if rounds.width == 0:
            _prefetch_dense(rounds, row + 1, own)
        return dot(rounds, row, own.dense[task])
    _prepare(rounds, row + 1, own, ahead)
    if own.tables.size[task] == 0:
        return 0.0
    return dot_pairs(_row(rounds, row), row, task, own.tables, ahead)


@kernel
def task_dot_and(
    rounds: Rounds, row: int, task: int, own: TaskWeights, ahead: Lookahead, w: FloatArray
) -> tuple[float, float]:
    """<v_task, x> and <w, x>."""
    if rounds.width == 0 and not is_wide(own):
        _prefetch_dense(rounds, row + 1, own)
        return dot_two(rounds, row, own.dense[task], w)
    return task_dot(rounds, row, task, own, ahead), dot(rounds, row, w)


@kernel
def task_add(rounds: Rounds, row: int, scale: float, task: int, own: TaskWeights) -> None:
    """v_task <- v_task + scale x."""
    if not is_wide(own):
        add(rounds, row, scale, own.dense[task])
        return
    x = _row(rounds, row)
    if hash_table.too_full(own.tables.filled[task] + len(x.x), own.tables.size[task], hash_table.NUMBERS):
        hash_table.make_capacity(own.tables, task, missing_pairs(x, task, own.tables))
    add_pairs(x, scale, task, own.tables, own.dense[0])


def as_matrix(own: TaskWeights, n_tasks: int, n_features: int) -> FloatArray:
    """(n_tasks, n_features) as a dense array."""
    if not is_wide(own):
        return own.dense[:n_tasks, :n_features].astype(np.float64)
    matrix = np.zeros((n_tasks, n_features))
    for task, row in enumerate(matrix):
        columns, numbers = hash_table.of_task(own.tables, task)
        row[columns] = numbers
    return matrix


def _as_dense(own: TaskWeights, n_features: int) -> TaskWeights:
    dense = _dense(len(own.tables.start), n_features, own.dense.dtype)
    for task, row in enumerate(dense.dense):
        columns, numbers = hash_table.of_task(own.tables, task)
        row[columns] = numbers
    return dense


def _tables_pay(dense: FloatArray, wanted: int) -> bool:
    """Are tables better than dense rows of several tasks that have to grow to this many weights?"""
    if len(dense) < 2 or dense.size == 0:
        return False
    return bool(wanted > DENSE_MOST or FILLED * np.count_nonzero(dense) < wanted)


@kernel(entry=True)
def _fill(dense: FloatArray, counts: IntArray, tables: hash_table.Tables) -> None:
    for task in range(len(dense)):
        hash_table.make_capacity(tables, task, counts[task])
        for j in range(dense.shape[1]):
            if dense[task, j] != 0.0:
                tables.waiting[hash_table.FEATURE, 0] = j
                hash_table.put_all(tables, task, 1)
                set_number(
                    tables.words, hash_table.number_at(tables.waiting[hash_table.SLOT, 0]), float(dense[task, j])
                )


def _as_tables(own: TaskWeights) -> TaskWeights:
    counts = np.count_nonzero(own.dense, axis=1)
    capacity = sum(int(hash_table.size_for(int(n), hash_table.NUMBERS)) for n in counts)
    wide = _wide(len(counts), max(hash_table.FIRST_CAPACITY, capacity), own.dense.dtype)
    _fill(own.dense, counts, wide.tables)
    return wide
