"""The weights a task holds for itself: a dense row each, or a table of pairs where few of many ever differ from zero.

Dense rows are faster while caches hold them, or once a per cent of the weights is in use; tables hold what has
occurred, so 100,000 users times 10^7 hashed features fit, and no memory is fetched for what has not. The sums run in
the same order, so which of the two it is changes no bit of a model of sparse rows.

A learner that errs rarely leaves most weights at zero; those of many tasks fill no cache, but a bit a weight does,
which says where to look at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LINE, FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import set_number
from shoal.engine.rounds import Rounds
from shoal.engine.rows import SUMS, add, dot, dot_two, row_bounds
from shoal.engine.task_weights.hash_table import (
    FEATURE,
    FIRST_ROOM,
    HINTS,
    NUMBERS,
    SLOT,
    Tables,
    compact,
    fetch_hints,
    for_tasks,
    has_room,
    make_room,
    new_tables,
    number_at,
    of_task,
    put_all,
    roomier,
    size_for,
    too_full,
    without_task,
)
from shoal.engine.task_weights.lookahead import Ahead, Row, add_pairs, dot_pairs, look_ahead, missing_pairs
from shoal.learner import Learner

DENSE_MOST = 2**28  # weights; 2 GiB
DENSE_FIRST = 2**24  # weights that are dense from the start even if few rows are learnt from: caches hold what is read
MOST_FIRST_ROOM = 2**20  # groups of the first arena, which take no memory before they are used
FILLED = 128  # of so many pairs one occurs: from there on dense rows are faster, because rows find most of their pairs


class Own(NamedTuple):
    """One of the two is empty."""

    dense: FloatArray  # (tasks, features), or no columns
    tables: Tables  # of numbers, or no groups
    touched: NDArray[np.uint64]  # (tasks, 1 + words) bit j of words 1, 2, ...: dense[k, j] may differ from 0. If word 0
    # is not 0, or there are no words, all may.


def new_own(n_tasks: int, n_features: int, dtype: Any, *, room: int = 0, bits: bool = False) -> Own:
    """Zero weights: dense, with `bits` of those touched if wanted, or with `room` in pairs."""
    n = 0 if room else n_features
    return Own(
        np.zeros((n_tasks, n), dtype), new_tables(n_tasks, room, NUMBERS),
        np.zeros((n_tasks, 2 + n // 64 if bits and n > 0 else 0), np.uint64),
    )  # fmt: skip


@kernel(entry=True)
def is_wide(own: Own) -> bool:
    """Are they in pairs?"""
    return len(own.tables.taken) > 0


@kernel
def fits(rounds: Rounds, first: int, last: int, own: Own) -> bool:
    """Can the rows of a round be learnt without more room?"""
    return not is_wide(own) or has_room(rounds, first, last, own.tables)


@kernel
def has_bits(task: int, own: Own) -> bool:
    """Is it known which of the task's weights were touched?"""
    return bool(own.touched.shape[1] > 0 and own.touched[task, 0] == 0)


@kernel
def touch(rounds: Rounds, row: int, task: int, own: Own) -> None:
    """Set the bits of a row."""
    if own.touched.shape[1] == 0 or own.touched[task, 0] != 0:
        return
    bits = own.touched[task]
    if rounds.width > 0:
        bits[0] = 1
        return
    columns = rounds.indices[rounds.indptr[row] : rounds.indptr[row + 1]]
    for i in range(len(columns)):
        j = np.uint32(columns[i])
        bits[1 + (j >> np.uint32(6))] |= np.uint64(1) << np.uint64(j & np.uint32(63))


@kernel
def touch_all(task: int, own: Own) -> None:
    """Give up the task's bits: where every row is learnt from, they would be set before long."""
    if own.touched.shape[1] > 0:
        own.touched[task, 0] = 1


@kernel
def _fetched(v: FloatArray, bits: NDArray[np.uint64], j: np.uint32) -> float:
    """v[j] if it was touched. Else v[0] is read: a branch costs more."""
    bit = (bits[np.uint32(1) + (j >> np.uint32(6))] >> np.uint64(j & np.uint32(63))) & np.uint64(1)
    fetched = v[np.uint32(bit) * j]
    return float(fetched) if bit != 0 else 0.0


@kernel(sums="exact")
def dot_two_touched(rounds: Rounds, row: int, task: int, own: Own, w: FloatArray) -> tuple[float, float]:
    """<v_task, x> and <w, x>; of v only what was touched is fetched. The sums are those of `ops.dot_two`."""
    start, end = rounds.indptr[row], rounds.indptr[row + 1]
    columns, x, n = rounds.indices[start:end], rounds.values[start:end], end - start
    v, bits = own.dense[task], own.touched[task]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    for turn in range(n // SUMS):
        i = SUMS * turn
        j, k = np.uint32(columns[i]), np.uint32(columns[i + 1])
        p, q = np.uint32(columns[i + 2]), np.uint32(columns[i + 3])
        a, b = a + x[i] * _fetched(v, bits, j), b + x[i + 1] * _fetched(v, bits, k)
        c, d = c + x[i + 2] * _fetched(v, bits, p), d + x[i + 3] * _fetched(v, bits, q)
        e, f, g, h = e + x[i] * w[j], f + x[i + 1] * w[k], g + x[i + 2] * w[p], h + x[i + 3] * w[q]
    for i in range(n - n % SUMS, n):
        j = np.uint32(columns[i])
        a, e = a + x[i] * _fetched(v, bits, j), e + x[i] * w[j]
    return (a + b) + (c + d), (e + f) + (g + h)


@kernel
def _row(rounds: Rounds, row: int) -> Row:
    first, last = row_bounds(rounds, row)
    return Row(rounds.width > 0, rounds.indices[first:last], rounds.values[first:last])


@kernel
def fetch_own(rounds: Rounds, row: int, own: Own) -> None:
    """Have the hints of a row brought from memory, if there is such a row and its weights are in a table."""
    if is_wide(own) and row < len(rounds.task) and rounds.task[row] >= 0:
        first, last = row_bounds(rounds, row)
        if HINTS * own.tables.size[rounds.task[row]] <= LINE * (last - first):  # else it needs few of them
            fetch_hints(own.tables, rounds.task[row])


@kernel
def _prepare(rounds: Rounds, row: int, own: Own, ahead: Ahead) -> None:
    """Look where the weights of a row are, and have the hints of the row after it fetched; if there are such rows."""
    if row < len(rounds.task) and rounds.task[row] >= 0:
        look_ahead(_row(rounds, row), row, rounds.task[row], own.tables, ahead)
    fetch_own(rounds, row + 1, own)


@kernel
def own_dot(rounds: Rounds, row: int, task: int, own: Own, ahead: Ahead) -> float:
    """<v_task, x>."""
    if not is_wide(own):
        return dot(rounds, row, own.dense[task])
    _prepare(rounds, row + 1, own, ahead)
    if own.tables.size[task] == 0:
        return 0.0
    return dot_pairs(_row(rounds, row), row, task, own.tables, ahead)


@kernel
def own_dot_and(rounds: Rounds, row: int, task: int, own: Own, ahead: Ahead, w: FloatArray) -> tuple[float, float]:
    """<v_task, x> and <w, x>."""
    if rounds.width == 0 and not is_wide(own):
        if has_bits(task, own):
            return dot_two_touched(rounds, row, task, own, w)
        return dot_two(rounds, row, own.dense[task], w)
    return own_dot(rounds, row, task, own, ahead), dot(rounds, row, w)


@kernel
def own_add(rounds: Rounds, row: int, scale: float, task: int, own: Own) -> None:
    """v_task <- v_task + scale x."""
    if not is_wide(own):
        add(rounds, row, scale, own.dense[task])
        return
    x = _row(rounds, row)
    if too_full(own.tables.filled[task] + len(x.x), own.tables.size[task], NUMBERS):
        make_room(own.tables, task, missing_pairs(x, task, own.tables))
    add_pairs(x, scale, task, own.tables, own.dense[0])


def as_matrix(own: Own, n_tasks: int, n_features: int) -> FloatArray:
    """(n_tasks, n_features) as a dense array."""
    if not is_wide(own):
        return own.dense[:n_tasks, :n_features].astype(np.float64)
    matrix = np.zeros((n_tasks, n_features))
    for task, row in enumerate(matrix):
        columns, numbers = of_task(own.tables, task)
        row[columns] = numbers
    return matrix


def as_dense(own: Own, n_features: int, *, bits: bool) -> Own:
    """Pairs as dense rows."""
    dense = new_own(len(own.tables.start), n_features, own.dense.dtype, bits=bits)
    for task, (row, touched) in enumerate(zip(dense.dense, dense.touched, strict=True)):
        columns, numbers = of_task(own.tables, task)
        row[columns] = numbers
        if bits:
            np.bitwise_or.at(touched, 1 + columns // 64, np.uint64(1) << (columns % 64).astype(np.uint64))
    return dense


def pairs_pay(dense: FloatArray, wanted: int) -> bool:
    """Shall dense rows of several tasks that have to grow to so many weights rather become pairs?"""
    if len(dense) < 2 or dense.size == 0:
        return False
    return bool(wanted > DENSE_MOST or FILLED * np.count_nonzero(dense) < wanted)


@kernel(entry=True)
def _fill(dense: FloatArray, counts: IntArray, tables: Tables) -> None:
    for task in range(len(dense)):
        make_room(tables, task, counts[task])
        for j in range(dense.shape[1]):
            if dense[task, j] != 0.0:
                tables.waiting[FEATURE, 0] = j
                put_all(tables, task, 1)
                set_number(tables.words, number_at(tables.waiting[SLOT, 0]), float(dense[task, j]))


def as_pairs(own: Own) -> Own:
    """Dense rows as pairs."""
    counts = np.count_nonzero(own.dense, axis=1)
    room = sum(int(size_for(int(n), NUMBERS)) for n in counts)
    wide = new_own(len(counts), 0, own.dense.dtype, room=max(FIRST_ROOM, room))
    _fill(own.dense, counts, wide.tables)
    return wide


class OwnWeights(Learner):
    """What learners whose state has a field `own` share."""

    _with_bits = False  # of the weights touched

    def _most_dense(self) -> int:
        """So many weights are dense from the start; fewer where few rows are learnt from."""
        return DENSE_MOST

    def _new_own(self, n_tasks: int, n_features: int) -> Own:
        """As the present ones are; at first by their number."""
        own, wanted, dtype = getattr(self._state, "own", None), n_tasks * n_features, self._weights_type()
        if own is None or dtype != own.dense.dtype:
            room = min(max(2 * wanted // (FILLED * NUMBERS), FIRST_ROOM), MOST_FIRST_ROOM)
            room = room if wanted > self._most_dense() else 0
            return new_own(n_tasks, n_features, dtype, room=room, bits=self._with_bits)
        if is_wide(own):
            return Own(np.zeros((n_tasks, 0), dtype), for_tasks(own.tables, n_tasks), np.zeros((n_tasks, 0), np.uint64))
        return new_own(n_tasks, n_features, dtype, bits=self._with_bits)

    def _in_pairs(self) -> bool:
        own = getattr(self._state, "own", None)
        return own is not None and bool(is_wide(own))

    def _enlarge(self, n_tasks: int, n_features: int) -> None:
        own, wanted = getattr(self._state, "own", None), n_tasks * n_features
        if own is not None and wanted > self._most_dense() and pairs_pay(own.dense, wanted):
            self._state = self._state._replace(own=as_pairs(own))
        super()._enlarge(n_tasks, n_features)

    def _more_room(self, rounds: Rounds) -> None:
        own, (n_tasks, n_features) = self._state.own, self._capacity
        if n_tasks * n_features <= min(DENSE_MOST, FILLED * int(own.tables.filled.sum())):
            own = as_dense(own, n_features, bits=self._with_bits)
        else:
            own = own._replace(tables=roomier(own.tables))
        self._state = self._state._replace(own=own)

    def _trimmed(self) -> Any:
        trimmed, n_tasks, n_features = super()._trimmed(), len(self.tasks_), self.n_features_in_
        if not self._in_pairs():
            return trimmed
        own = self._state.own._replace(tables=compact(self._state.own.tables, n_tasks))
        if n_tasks * n_features <= self._most_dense():  # spare room alone made it outgrow dense rows
            own = as_dense(own, n_features, bits=self._with_bits)
        return trimmed._replace(own=own)

    def _leave(self, state: Any, k: int, n_tasks: int) -> None:
        if self._in_pairs():
            without_task(state.own.tables, k)
