"""Kalman filters on the scaled row, one for all tasks and one for each, while few features have been seen.

With v = P x, p the expert's own forecast and h = max(p (1 - p), 1e-3), or 1 for real targets,

    w <- w + v e / (1 + h x'v),   P <- P - h v v' / (1 + h x'v),   P_jj <- P_jj + a x_j^2,   P = 10 I at the start

(Kalman 1960). A weight drifts in the rows that use it, so that nothing is forgotten of a feature that does not come.
They learn from their own forecasts alone, so they need no other expert. Matrices are made as features and tasks come,
within the memory that they may take.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.online.common.logistic import sigmoid, slope

SIDES = (16, 32, 48, 64, 96, 128, 192, 256)  # of the matrices, as features come
FEW_FULL, MOST_FULL = 31, SIDES[-1] - 1  # features, without and with interactions; and the constant
PRIOR = 10.0
FLOOR = 1e-3  # of the curvature
PLACES, SLOTS = 0, 1  # positions in `counters`


class Full(NamedTuple):
    """Matrices P with the weights w as their last row; the constant has the first column."""

    place: Annotated[IntArray, FEATURE]  # the feature's column, or 0
    slot: Annotated[IntArray, TASK]  # 1 + the task's matrix in `own`, or 0
    pooled: Annotated[FloatArray, ROW, ROW]  # (side + 1, side)
    own: Annotated[FloatArray, ROW, ROW, ROW]  # (matrices, side + 1, side)
    counters: IntArray  # (2,) columns in use, matrices in use


class FullRow(NamedTuple):
    """Scratch."""

    x: FloatArray  # values of the entries that have a column
    place: IntArray  # their columns
    v: FloatArray  # (256,) P x, in the type of the matrices
    factors: FloatArray  # (256,) that rows are multiplied by, in the same


@kernel(entry="too")
def matrix_bytes(side: int, itemsize: int) -> int:
    """Of one matrix with its weights."""
    return side * (side + 1) * itemsize


@kernel(alone=False)
def full_row(n: int, x: FloatArray, feature: IntArray, full: Full, out: FullRow) -> None:
    """Columns of the row's entries, the constant first; a feature without one has value 0."""
    out.x[0], out.place[0] = x[0], 0
    for i in range(1, n):
        at = full.place[feature[i] - 1]
        out.place[i], out.x[i] = at, x[i] if at > 0 else 0.0


@kernel(alone=False)
def give_places(n: int, x: FloatArray, feature: IntArray, full: Full, out: FullRow) -> None:
    """Columns for features that have none."""
    for i in range(1, n):
        if out.place[i] == 0:
            full.place[feature[i] - 1] = out.place[i] = full.counters[PLACES]
            full.counters[PLACES] += 1
        out.x[i] = x[i]


@kernel(alone=False)
def full_margin(n: int, row: FullRow, matrix: NDArray[np.float64]) -> float:
    """<w, x>."""
    w, total = matrix[matrix.shape[1]], 0.0
    for i in range(n):
        total += row.x[i] * w[np.uint64(row.place[i])]
    return total


@kernel(alone=False)
def gain(m: float, y: float, h: float, tau: float, regression: bool) -> tuple[float, float, float]:
    """e / (1 + c tau), the curvature c, and 1 / (1 + c tau), of a row that counts h times, tau = x'P x."""
    p = 0.0 if regression else sigmoid(m)
    curvature = h * (1.0 if regression else max(p * (1.0 - p), FLOOR))
    scale = 1.0 / (1.0 + curvature * tau)
    pull = slope(m, p, y, tau, False, h, regression)
    if h == 1.0:
        pull = (y - (m if regression else p)) * scale
    return pull, curvature, scale


@kernel(inline=False, alone=False)
def kalman_step(
    n: int, row: FullRow, m: float, y: float, h: float, drift: float, used: int, regression: bool,
    matrix: NDArray[np.float64],
) -> None:  # fmt: skip
    """Learn a row that counts h times from its margin m; y is 0 or 1, or real."""
    side = matrix.shape[1]
    width, v, factors = turns_of(used), row.v, row.factors
    for i in range(n, turns_of(n)):
        row.x[i], row.place[i] = 0.0, 0
    for i in range(turns_of(n)):
        factors[i] = row.x[i]
    _products(turns_of(n), width, row.place, factors, matrix, v)
    tau = 0.0
    for i in range(n):
        tau += row.x[i] * v[np.uint64(row.place[i])]
    tau = max(tau, 0.0)
    pull, curvature, scale = gain(m, y, h, tau, regression)
    w = matrix[side]
    for c in range(width):
        w[c] += pull * v[c]
        factors[c] = -curvature * scale * v[c]
    _rank_one(width, factors, v, matrix)
    for i in range(n):
        at = np.uint64(row.place[i])
        matrix[at, at] += drift * (row.x[i] * row.x[i])


@kernel(alone=False)
def turns_of(n: int) -> int:
    """Rounded up to the rows that the loops below take at once, and whole SIMD vectors."""
    return (n + 7) // 8 * 8


@kernel(disjoint=True, alone=False)
def _products(
    n: int, width: int, place: IntArray, x: NDArray[np.float64], matrix: NDArray[np.float64], v: NDArray[np.float64]
) -> None:
    """v <- sum_i x_i P_i, four rows at once."""
    for c in range(width):
        v[c] = 0.0
    for i in range(0, n, 4):
        a, b = matrix[np.uint64(place[i])], matrix[np.uint64(place[i + 1])]
        c, d = matrix[np.uint64(place[i + 2])], matrix[np.uint64(place[i + 3])]
        for j in range(width):
            v[j] += (x[i] * a[j] + x[i + 1] * b[j]) + (x[i + 2] * c[j] + x[i + 3] * d[j])


@kernel(disjoint=True, alone=False)
def _rank_one(width: int, factors: NDArray[np.float64], v: NDArray[np.float64], matrix: NDArray[np.float64]) -> None:
    """P <- P + factors v'."""
    for r in range(width):
        row, factor = matrix[r], factors[r]
        for j in range(width):
            row[j] += factor * v[j]


def new_matrices(side: int, n: int, dtype: Any) -> NDArray[Any]:
    """(n, side + 1, side) new matrices with their weights."""
    found = aligned_zeros((n, side + 1, side), dtype)
    found[:, np.arange(side), np.arange(side)] = PRIOR
    return found


def new_full(n_tasks: int, n_features: int, dtype: Any) -> Full:
    """Nothing learned."""
    ints = np.zeros(n_features, np.int64), np.zeros(n_tasks, np.int64)
    side = SIDES[0]
    return Full(*ints, new_matrices(side, 1, dtype)[0], new_matrices(side, 0, dtype), np.array([1, 0]))


def extended(full: Full, rounds: Rounds, memory: float, most_features: int) -> Full:
    """Room for the next round's new features and tasks; if not all fit then, the youngest tasks lose theirs.

    The same arrays if there is room.
    """
    (used, n_matrices), old = full.counters.tolist(), full.pooled.shape[1]
    need = min(used + most_new(full, rounds), most_features + 1)
    side = next(side for side in SIDES if side >= max(need, old))
    most = int(memory // matrix_bytes(side, full.pooled.itemsize))
    first, last = int(rounds.starts[0]), int(rounds.starts[1])
    wanted = min(n_matrices + int((full.slot[rounds.task[first:last]] == 0).sum()), most)
    if side == old and wanted <= len(full.own):
        return full
    n_kept = min(n_matrices, most)
    room = len(full.own) if wanted <= len(full.own) else max(2 * len(full.own), wanted)
    own = _larger(full.own[:n_kept], side, min(room, most))
    found = full._replace(pooled=_larger(full.pooled[None], side, 1)[0], own=own)
    found.slot[found.slot > n_kept] = 0
    found.counters[SLOTS] = n_kept
    return found


def most_new(full: Full, rounds: Rounds) -> int:
    """New features that the next round can bring, counted as often as they come."""
    first, last = int(rounds.starts[0]), int(rounds.starts[1])
    if rounds.width > 0:
        nonzero = rounds.values.reshape(-1, rounds.width)[first:last] != 0.0
        return int((nonzero & (full.place[: rounds.width] == 0)).sum())
    columns = rounds.indices[rounds.indptr[first] : rounds.indptr[last]]
    return int((full.place[columns] == 0).sum())


def _larger(matrices: NDArray[Any], side: int, n: int) -> NDArray[Any]:
    """`n` matrices of this side; the first of them hold those learned so far."""
    old = matrices.shape[2]
    if side == old and n == len(matrices):
        return matrices
    found = new_matrices(side, n, matrices.dtype)
    found[: len(matrices), :old, :old] = matrices[:, :old]
    found[: len(matrices), side, :old] = matrices[:, old]
    return found


def forget(full: Full, k: int) -> None:
    """The task's matrix goes, the last one takes its place."""
    at, last = int(full.slot[k]) - 1, int(full.counters[SLOTS]) - 1
    if at < 0:
        return
    full.own[at] = full.own[last]
    full.slot[full.slot == last + 1] = at + 1
    full.slot[k] = 0
    full.own[last] = new_matrices(full.own.shape[2], 1, full.own.dtype)[0]
    full.counters[SLOTS] = last


def emptied(full: Full) -> Full:
    """Columns of features alone, where more have come than matrices have room for."""
    n_tasks, dtype, columns = len(full.slot), full.pooled.dtype, int(full.counters[PLACES])
    return new_full(n_tasks, 0, dtype)._replace(place=full.place, counters=np.array([columns, 0]))


def pack(full: Full) -> Full:
    """The arrays, cut to the part in use."""
    if full.counters[PLACES] > SIDES[-1]:
        full, rows = emptied(full), np.array([0, SIDES[0]])
        return full._replace(pooled=full.pooled[rows, :1], own=full.own[:, rows, :1])
    n, side = int(full.counters[SLOTS]), int(full.counters[PLACES])
    rows = np.append(np.arange(side), full.pooled.shape[1])
    return full._replace(pooled=full.pooled[rows, :side], own=full.own[:n, rows, :side])


def check(packed: Full) -> None:
    """Raise ValueError unless places and sizes are in range."""
    (used, n), side = packed.counters.tolist(), packed.pooled.shape[-1]
    if used < 1 or packed.pooled.shape != (side + 1, side) or side != (used if used <= SIDES[-1] else 1):
        raise ValueError("its matrix is of another size than it says")
    if packed.own.shape != (n, side + 1, side):
        raise ValueError("its matrices of tasks are not as many as it says")
    places = packed.place[packed.place > 0]
    if (packed.place < 0).any() or (places >= used).any() or len(np.unique(places)) != len(places):
        raise ValueError("places of features in its matrix are out of range")
    slots = packed.slot[packed.slot > 0]
    if (packed.slot < 0).any() or (slots > n).any() or len(np.unique(slots)) != len(slots):
        raise ValueError("places of tasks' matrices are out of range")


def unpack(packed: Full) -> Full:
    """The inverse of `pack`."""
    side = next(side for side in SIDES if side >= packed.pooled.shape[1])
    n = len(packed.own)
    return packed._replace(pooled=_larger(packed.pooled[None], side, 1)[0], own=_larger(packed.own, side, n))
