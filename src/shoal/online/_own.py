"""The weights a task holds for itself: a dense row each, or a table of pairs where there are too many to be dense.

Dense rows are faster; tables hold what has occurred, so 100,000 users times 10^7 hashed features fit. The sums run
in the same order, so which of the two it is changes no bit of a model of sparse rows.

A learner that errs rarely leaves most weights at zero; those of many tasks fill no cache, but a bit a weight does,
which says where to look at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.learner import Learner
from shoal.ops import add, dot, leaf, leaf_in_order
from shoal.pairs import (
    FIRST_ROOM,
    Pairs,
    add_pair,
    compact,
    find_or_zero,
    has_room,
    make_room,
    new_pairs,
    roomier,
    size_for,
    task_records,
    without_task,
)
from shoal.rounds import FloatArray, IntArray, Rounds

DENSE_MOST = 2**28  # weights; 2 GiB, of which only pages that are written count


class Own(NamedTuple):
    """One of the two is empty."""

    dense: FloatArray  # (tasks, features), or no columns
    pairs: Pairs  # one number each, or no slots
    touched: NDArray[np.uint64]  # (tasks, 1 + words) bit j of words 1, 2, ...: dense[k, j] may differ from 0. If word 0
    # is not 0, or there are no words, all may.


def new_own(n_tasks: int, n_features: int, *, room: int = 0, bits: bool = False) -> Own:
    """Zero weights: dense, with `bits` of those touched if wanted, or with `room` in pairs."""
    n = 0 if room else n_features
    return Own(
        np.zeros((n_tasks, n)), new_pairs(1, n_tasks, room),
        np.zeros((n_tasks, 2 + n // 64 if bits and n > 0 else 0), np.uint64),
    )  # fmt: skip


@leaf
def is_wide(own: Own) -> bool:
    """Are they in pairs?"""
    return len(own.pairs.keys) > 0


@leaf
def fits(rounds: Rounds, first: int, last: int, own: Own) -> bool:
    """Can the rows of a round be learnt without more room?"""
    return not is_wide(own) or has_room(rounds, first, last, own.pairs)


@leaf
def has_bits(task: int, own: Own) -> bool:
    """Is it known which of the task's weights were touched?"""
    return bool(own.touched.shape[1] > 0 and own.touched[task, 0] == 0)


@leaf
def touch(rounds: Rounds, row: int, task: int, own: Own) -> None:
    """Set the bits of a row."""
    if own.touched.shape[1] == 0 or own.touched[task, 0] != 0:
        return
    bits = own.touched[task]
    if rounds.width > 0:
        bits[0] = 1
        return
    for p in range(rounds.indptr[row], rounds.indptr[row + 1]):
        j = np.uint32(rounds.indices[p])
        bits[1 + (j >> np.uint32(6))] |= np.uint64(1) << np.uint64(j & np.uint32(63))


@leaf
def touch_all(task: int, own: Own) -> None:
    """Give up the task's bits: where every row is learnt from, they would be set before long."""
    if own.touched.shape[1] > 0:
        own.touched[task, 0] = 1


@leaf_in_order
def dot_two_touched(rounds: Rounds, row: int, task: int, own: Own, w: FloatArray) -> tuple[float, float]:
    """<v_task, x> and <w, x>; of v only what was touched is fetched. The others read v[0]: a branch costs more."""
    first, second = 0.0, 0.0
    v, bits = own.dense[task], own.touched[task]
    for p in range(rounds.indptr[row], rounds.indptr[row + 1]):
        j, x = np.uint32(rounds.indices[p]), rounds.values[p]
        bit = (bits[np.uint32(1) + (j >> np.uint32(6))] >> np.uint64(j & np.uint32(63))) & np.uint64(1)
        fetched = v[np.uint32(bit) * j]
        first += x * (fetched if bit != 0 else 0.0)
        second += x * w[j]
    return first, second


@leaf_in_order
def _dot_pairs(rounds: Rounds, row: int, task: int, pairs: Pairs) -> float:
    total = 0.0
    if rounds.width > 0:
        for j in range(rounds.width):
            total += rounds.values[row * rounds.width + j] * pairs.records[find_or_zero(pairs, task, j), 0]
    else:
        for p in range(rounds.indptr[row], rounds.indptr[row + 1]):
            total += rounds.values[p] * pairs.records[find_or_zero(pairs, task, rounds.indices[p]), 0]
    return total


@leaf
def own_dot(rounds: Rounds, row: int, task: int, own: Own) -> float:
    """<v_task, x>."""
    return _dot_pairs(rounds, row, task, own.pairs) if is_wide(own) else dot(rounds, row, own.dense[task])


@leaf
def _add_pairs(rounds: Rounds, row: int, scale: float, task: int, pairs: Pairs) -> None:
    dense = rounds.width > 0
    start = row * rounds.width if dense else rounds.indptr[row]
    n = rounds.width if dense else rounds.indptr[row + 1] - start
    missing = 0
    for p in range(n):
        missing += int(find_or_zero(pairs, task, p if dense else rounds.indices[start + p]) == len(pairs.keys))
    if missing > 0:
        make_room(pairs, task, missing)
    for p in range(n):
        slot = add_pair(pairs, task, p if dense else rounds.indices[start + p])
        pairs.records[slot, 0] += scale * rounds.values[start + p]


@leaf
def own_add(rounds: Rounds, row: int, scale: float, task: int, own: Own) -> None:
    """v_task <- v_task + scale x."""
    if is_wide(own):
        _add_pairs(rounds, row, scale, task, own.pairs)
    else:
        add(rounds, row, scale, own.dense[task])


def as_matrix(own: Own, n_tasks: int, n_features: int) -> FloatArray:
    """(n_tasks, n_features) as a dense array."""
    if not is_wide(own):
        return own.dense[:n_tasks, :n_features].copy()
    return np.array([task_records(own.pairs, k, n_features)[:, 0] for k in range(n_tasks)]).reshape(n_tasks, n_features)


@leaf
def _fill(dense: FloatArray, counts: IntArray, pairs: Pairs) -> None:
    for task in range(len(dense)):
        make_room(pairs, task, counts[task])
        for j in range(dense.shape[1]):
            if dense[task, j] != 0.0:
                pairs.records[add_pair(pairs, task, j), 0] = dense[task, j]


def as_pairs(own: Own) -> Own:
    """Dense rows as pairs."""
    counts = np.count_nonzero(own.dense, axis=1)
    wide = new_own(len(counts), 0, room=max(FIRST_ROOM, sum(int(size_for(int(n))) for n in counts)))
    _fill(own.dense, counts, wide.pairs)
    return wide


class OwnWeights(Learner):
    """What learners whose state has a field `own` share."""

    _with_bits = False  # of the weights touched

    def _new_own(self, n_tasks: int, n_features: int) -> Own:
        """As the present ones are; at first by their number."""
        own = getattr(self._state, "own", None)  # given relations have none
        if own is not None:
            return new_own(n_tasks, n_features, room=len(own.pairs.keys), bits=self._with_bits)
        room = FIRST_ROOM if n_tasks * n_features > DENSE_MOST else 0
        return new_own(n_tasks, n_features, room=room, bits=self._with_bits)

    def _in_pairs(self) -> bool:
        own = getattr(self._state, "own", None)
        return own is not None and bool(is_wide(own))

    def _enlarge(self, n_tasks: int, n_features: int) -> None:
        own = getattr(self._state, "own", None)
        if own is not None and len(own.dense) > 1 and own.dense.size > 0 and n_tasks * n_features > DENSE_MOST:
            self._state = self._state._replace(own=as_pairs(own))
        super()._enlarge(n_tasks, n_features)

    def _more_room(self) -> None:
        own = self._state.own
        self._state = self._state._replace(own=own._replace(pairs=roomier(own.pairs)))

    def _trimmed(self) -> Any:
        trimmed, n_tasks, n_features = super()._trimmed(), len(self.tasks_), self.n_features_in_
        if not self._in_pairs():
            return trimmed
        if n_tasks * n_features <= DENSE_MOST:  # spare room alone made it outgrow dense rows
            dense = new_own(n_tasks, n_features, bits=self._with_bits)
            dense.dense[...] = as_matrix(self._state.own, n_tasks, n_features)
            dense.touched[:, :1] = 1
            return trimmed._replace(own=dense)
        return trimmed._replace(own=trimmed.own._replace(pairs=compact(self._state.own.pairs, n_tasks)))

    def _leave(self, state: Any, k: int, n_tasks: int) -> None:
        if self._in_pairs():
            without_task(state.own.pairs, k)
