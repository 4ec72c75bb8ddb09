"""Lazy rows: transforms of a whole matrix from the right, applied to a row when an example touches it.

An update multiplies the whole common matrix U (features x tasks) from the right by a small matrix M, and column k of
the personal matrix V by a number. Doing so costs O(d); here a row waits until an example touches it.

- Rows of the present *epoch* are kept as z with u = z A, A the product of the M of the epoch. Adding a e_k^T to such a
  row is z += a A^-1[k], so A must stay well conditioned: an M that truncates the rank, or an A^-1 that has grown,
  closes the epoch, and A starts anew at I.
- Closed epochs lie in blocks whose sizes are the binary digits of their number, and each knows the product of all
  transforms from it to the end of its block. So a row that waited through n epochs takes at most log2(n)
  products of a vector and a matrix, and closing an epoch costs O(K^3 log n).
- After max(2, touched rows / 4K) updates all pending transforms are applied and no epoch is left to remember. That
  keeps the products smaller than the weights, costs O(K^3) an update on average, and stops rounding errors from adding
  up.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LANES, FloatArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS, copy_to

COMMON, PERSONAL = 0, 1  # positions in the weights' second axis
EPOCHS, UPDATES, TOUCHED = 0, 1, 2  # positions in the tally
UNTOUCHED = -1  # the stamp of a row that is still zero
LARGEST_INVERSE = 1e3  # rounding errors of U are at most about this many times those of an eager update
SMALLEST_SCALE = 1e-60


class Rows(NamedTuple):
    """Rows of U and V side by side. K below is the number of tasks that exist, `side_of(K)` is what loops run over."""

    weights: Annotated[FloatArray, FEATURE, OTHER, TASK]  # (features, 2, side of all tasks)
    stamps: Annotated[NDArray[np.int32], FEATURE]  # the epoch in which the row was written
    transform: Annotated[FloatArray, TASK, TASK]  # A
    inverse: Annotated[FloatArray, TASK, TASK]  # A^-1
    scales: Annotated[FloatArray, TASK]  # of V's columns in the present epoch
    products: FloatArray  # side x side numbers a closed epoch: of A, from it to the end of its block
    fades: FloatArray  # side numbers a closed epoch: of the scales, likewise
    tally: IntArray  # (3,) closed epochs, updates since the last flush, rows touched so far


def allocate(n_tasks: int, n_features: int) -> Rows:
    """Rows that are all zero."""
    side, n_epochs = side_of(n_tasks), updates_until_flush(n_features, n_tasks) - 1
    return Rows(
        np.zeros((n_features, 2, side)), np.full(n_features, UNTOUCHED, np.int32), np.eye(n_tasks), np.eye(n_tasks),
        np.ones(n_tasks), np.zeros(n_epochs * side * side), np.zeros(n_epochs * side), np.zeros(3, np.int64),
    )  # fmt: skip


def check(rows: Rows) -> None:
    """Raise ValueError unless stamps and epochs are in range."""
    n, most = int(rows.tally[EPOCHS]), len(rows.fades) // max(rows.weights.shape[2], 1)
    if not (0 <= n <= most and (rows.tally >= 0).all() and rows.tally[TOUCHED] <= len(rows.stamps)):
        raise ValueError("its epochs are out of range")
    if len(rows.stamps) and not (rows.stamps.min() >= UNTOUCHED and rows.stamps.max() <= n):
        raise ValueError("the epochs of its rows are out of range")


@kernel(entry=True)
def side_of(K: int) -> int:
    """Tasks padded to whole turns of SIMD loops; doubled when it grows, as products are laid out by it."""
    side = LANES
    while side < K:
        side *= 2
    return side


@kernel(entry=True)
def updates_until_flush(n_touched: int, K: int) -> int:
    """How many updates rows may sleep."""
    return max(2, n_touched // (4 * side_of(K)))


@kernel(sums="in order")
def carry(rows: Rows, z: FloatArray, v: FloatArray, stamp: int, K: int, spare: FloatArray) -> None:
    """Bring a row of U and V from the epoch of its stamp to the beginning of the present one."""
    side, n = side_of(K), rows.tally[EPOCHS]
    spare = spare[:side]
    while stamp < n:
        for k in range(len(spare)):
            spare[k] = 0.0
        for i in range(side):
            if z[i] == 0.0:
                continue
            line = rows.products[(stamp * side + i) * side :]  # sliced, so that no index can be negative: SIMD
            for k in range(len(spare)):
                spare[k] += z[i] * line[k]
        fade = rows.fades[stamp * side :]
        for k in range(len(spare)):
            z[k] = spare[k]
            v[k] *= fade[k]
        size = 1
        while 2 * size <= stamp ^ n:  # the highest digit in which they differ is the size of stamp's block
            size *= 2
        stamp = (stamp // size + 1) * size


@kernel
def apply_pending(rows: Rows, j: int, K: int, spare: FloatArray) -> None:
    """Apply what is pending on row j: it belongs to the present epoch then."""
    if rows.stamps[j] == UNTOUCHED:
        rows.tally[TOUCHED] += 1
    else:
        carry(rows, rows.weights[j, COMMON], rows.weights[j, PERSONAL], rows.stamps[j], K, spare)
    rows.stamps[j] = rows.tally[EPOCHS]


@kernel
def feature(table: Rounds, p: int, row: int) -> int:
    """The column of the p-th value of the table, which lies in this row."""
    return p - row * table.width if table.width > 0 else int(np.uint32(table.indices[p]))


@kernel
def extent(table: Rounds, row: int) -> tuple[int, int]:
    """Positions of the row's first value and after its last."""
    if table.width > 0:
        return row * table.width, (row + 1) * table.width
    return table.indptr[row], table.indptr[row + 1]


@kernel
def apply_pending_in_row(rows: Rows, table: Rounds, row: int, K: int, spare: FloatArray) -> None:
    """Apply what is pending on all features of an example."""
    first, last = extent(table, row)
    for p in range(first, last):
        j = feature(table, p, row)
        if rows.stamps[j] != rows.tally[EPOCHS]:
            apply_pending(rows, j, K, spare)


@kernel(sums="in order")
def project(rows: Rows, table: Rounds, row: int, k: int, K: int, z: FloatArray) -> float:
    """z <- Z^T x, and <v_k, x>, over rows that are awake."""
    first, last = extent(table, row)
    side, own = side_of(K), 0.0
    for i in range(side):
        z[i] = 0.0
    for p in range(first, last):
        weights, x = rows.weights[feature(table, p, row)], table.values[p]
        for i in range(side):
            z[i] += x * weights[COMMON, i]
        own += x * weights[PERSONAL, k]
    return float(own * rows.scales[k])


@kernel(sums="in order")
def project_asleep(
    rows: Rows, table: Rounds, row: int, k: int, K: int, z: FloatArray, copy: FloatArray, spare: FloatArray
) -> float:
    """`project` that leaves rows pending: to predict, which change nothing. k = -1 has no v."""
    first, last = extent(table, row)
    side, own = side_of(K), 0.0
    for i in range(side):
        z[i] = 0.0
    for p in range(first, last):
        j, x = feature(table, p, row), table.values[p]
        weights = rows.weights[j]
        if 0 <= rows.stamps[j] < rows.tally[EPOCHS]:
            for i in range(side):
                copy[COMMON, i], copy[PERSONAL, i] = weights[COMMON, i], weights[PERSONAL, i]
            carry(rows, copy[COMMON], copy[PERSONAL], rows.stamps[j], K, spare)
            weights = copy
        for i in range(side):
            z[i] += x * weights[COMMON, i]
        if k >= 0:
            own += x * weights[PERSONAL, k]
    return own * rows.scales[k] if k >= 0 else 0.0


@kernel(sums="in order")
def through(rows: Rows, z: FloatArray, k: int, K: int) -> float:
    """(z A)_k: <u_k, x> from z = Z^T x."""
    total = 0.0
    for i in range(K):
        total += z[i] * rows.transform[i, k]
    return total


@kernel(entry=True, allocates=True)
def decide_common(rounds: Rounds, settings: Any, state: Any, decisions: FloatArray) -> None:
    """The common part <u_k, x> of each row's decision, of a state that has `rows`."""
    K, n_room = state.counters[TASKS], state.rows.weights.shape[2]
    z, copy, spare = np.empty(n_room), np.empty((2, n_room)), np.empty(n_room)
    for row in range(len(decisions)):
        k, f = rounds.task[row], 0.0
        project_asleep(state.rows, rounds, row, -1, K, z, copy, spare)
        for i in range(K):
            f += through(state.rows, z, i, K) / K if k < 0 else 0.0
        decisions[row] = through(state.rows, z, k, K) if k >= 0 else f


@kernel(sums="in order")
def add(rows: Rows, table: Rounds, row: int, k: int, K: int, common: float, personal: float, spare: FloatArray) -> None:
    """u_k += common x and v_k += personal x."""
    first, last = extent(table, row)
    own = personal / rows.scales[k] if personal != 0.0 else 0.0
    side = side_of(K)
    for i in range(side):
        spare[i] = common * rows.inverse[k, i] if i < K else 0.0
    for p in range(first, last):
        weights, x = rows.weights[feature(table, p, row)], table.values[p]
        for i in range(side):
            weights[COMMON, i] += x * spare[i]
        weights[PERSONAL, k] += own * x


@kernel(entry=True, allocates=True, inline=False)
def write_out(rows: Rows, weights: FloatArray, K: int) -> None:
    """Turn all rows of `weights`, these or a copy, into what they stand for: u = z A, and v times its scales."""
    spare = np.empty(weights.shape[2])
    for j in range(len(weights)):
        if rows.stamps[j] == UNTOUCHED:
            continue
        z, v = weights[j, COMMON], weights[j, PERSONAL]
        carry(rows, z, v, rows.stamps[j], K, spare)
        for k in range(K):
            spare[k] = through(rows, z, k, K)
            v[k] *= rows.scales[k]
        for k in range(K):
            z[k] = spare[k]


@kernel
def open_epoch(rows: Rows, K: int) -> None:
    """A = I."""
    for i in range(K):
        rows.scales[i] = 1.0
        for k in range(K):
            rows.transform[i, k] = rows.inverse[i, k] = 1.0 if i == k else 0.0


@kernel(allocates=True, inline=False)
def flush(rows: Rows, K: int) -> None:
    """Write out every row; no epoch is left to remember."""
    write_out(rows, rows.weights, K)
    for j in range(len(rows.stamps)):
        rows.stamps[j] = min(rows.stamps[j], 0)
    rows.tally[EPOCHS] = rows.tally[UPDATES] = 0
    open_epoch(rows, K)


@kernel(allocates=True, inline=False)
def close_epoch(rows: Rows, K: int) -> None:
    """Remember the epoch's transform as a block of its own, and join blocks as digits carry."""
    side, n = side_of(K), rows.tally[EPOCHS]
    area = side * side
    rows.products[n * area : (n + 1) * area] = 0.0
    rows.fades[n * side : (n + 1) * side] = 0.0
    for i in range(K):
        for k in range(K):
            rows.products[n * area + i * side + k] = rows.transform[i, k]
        rows.fades[n * side + i] = rows.scales[i]
    n += 1
    size = 1
    while n % (2 * size) == 0:
        left, right = n - 2 * size, n - size
        before = rows.products[left * area : right * area].reshape((size * side, side))
        whole_right = rows.products[right * area : (right + 1) * area].reshape((side, side))
        copy_to(before.reshape(-1), np.dot(before, whole_right).reshape(-1))
        for i in range(left * side, right * side):
            rows.fades[i] *= rows.fades[right * side + i % side]
        size *= 2
    rows.tally[EPOCHS] = n
    open_epoch(rows, K)


@kernel(allocates=True, inline=False)
def end_update(rows: Rows, truncated: bool, K: int) -> bool:
    """Count an update; flush or close the epoch where it is time. True if no row has pending transforms."""
    rows.tally[UPDATES] += 1
    if rows.tally[UPDATES] >= updates_until_flush(rows.tally[TOUCHED], K):
        flush(rows, K)
        return True
    spent = truncated
    for i in range(K):
        spent |= rows.scales[i] < SMALLEST_SCALE
        for k in range(K):
            spent |= abs(rows.inverse[i, k]) > LARGEST_INVERSE
    if spent:
        close_epoch(rows, K)
    return False
