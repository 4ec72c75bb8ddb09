"""Kalman filters on wide dense rows, such as embeddings, whose matrix P is diagonal plus rank: O(d m) a row.

The filters of `full_matrix`, one for all tasks and one for each, go on so where more features have come than full
matrices have room for, and nearly every entry of a row is there. P is kept as

    P = diag(D) - B'B,    D = 10, no rows in B at the start

in which a row x that counts h times is one row more of B, and drift stays on the diagonal: both are exact.

    v = D x - B'(B x),   w <- w + v e / (1 + c x'v),   B <- [B; v sqrt(c / (1 + c x'v))],   D <- D + a x^2

with the error e and the curvature c = h max(p (1 - p), 1e-3), or h for real targets. Before row 2 m + 1 of B, P is
written as a precision. In the coordinates of D^(-1/2) B, whose right singular vectors are q_i and squared singular
values g_i,

    P^-1 = D^(-1/2) (I + sum_i g_i / (1 - g_i) q_i q_i') D^(-1/2)

The m directions of largest gain g / (1 - g) stay. Of the others the precision keeps the diagonal, so that it is always
exact there, and P stays positive definite. P is that of the full filter up to row 2 m, and as long as directions that
go have no gain: where rows span m dimensions at most and nothing drifts.

Precisions that are diagonal plus rank m, and the diagonal that is kept: Chang, Durán-Martín, Shestopaloff, Jones,
Murphy, Low-rank extended Kalman filtering for online learning of neural networks from streaming data, CoLLAs 2023.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import LATER, ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.rows import whole_turns
from shoal.online.common.jacobi import diagonalise
from shoal.online.kalman_filters.full_matrix import PRIOR, gain

RANK = 8  # m
MOST_WIDE = 4096  # features
WAIT = 10  # rows that tell whether a stream is dense
LEAST_DENSITY = 0.9
WEIGHTS, VARIANCES, FIRST = range(3)  # rows of a filter: w, D, and from there those of B
ORTHOGONAL = 1e-12  # cosine of directions of B
LEAST_LEFT = (1e-12, 1e-6)  # of 1 - g, in float64 and float32, which holds no less


class LowRank(NamedTuple):
    """The filters; columns of features are those of `full_matrix.Full`."""

    slot: Annotated[IntArray, TASK, LATER]  # 1 + the task's filter in `own`, or 0
    pooled: Annotated[FloatArray, ROW, ROW, LATER]  # (2 + 2 m, side)
    own: Annotated[FloatArray, ROW, ROW, ROW, LATER]  # (filters, 2 + 2 m, side)
    used: Annotated[IntArray, ROW, LATER]  # (1 + filters,) rows of B in use: of `pooled`, then of `own`
    counters: Annotated[IntArray, LATER]  # (1,) filters in use


class FilterWork(NamedTuple):
    """Of one row, and of a fold; in the type of the filters but for small matrices."""

    x: NDArray[Any]  # (side,) the row by columns
    v: NDArray[Any]  # (side,)
    inverse: NDArray[Any]  # (side,) 1/D
    factors: NDArray[Any]  # (2 m,)
    turned: NDArray[Any]  # (2 m, side)
    gram: FloatArray  # (2 m, 2 m)
    turn: FloatArray  # (2 m, 2 m)
    left: FloatArray  # (2 m,) 1 - g
    order: IntArray  # (2 m,) the largest gain first


@kernel(entry="too")
def is_dense(columns: int, entries: int, rows: int) -> bool:
    """Whether nine tenths of the entries of these rows are there; `columns` without the constant's."""
    return entries >= LEAST_DENSITY * columns * rows


@kernel(entry="too")
def filter_bytes(side: int, itemsize: int) -> int:
    """Of one filter."""
    return (FIRST + 2 * RANK) * side * itemsize


@kernel(alone=False)
def dense_row(n: int, x: FloatArray, feature: IntArray, place: IntArray, width: int, out: NDArray[Any]) -> None:
    """The row by columns, the constant first; a feature without one is left out."""
    for j in range(width):
        out[j] = 0.0
    out[0] = x[0]
    for i in range(1, n):
        at = place[feature[i] - 1]
        if at > 0:
            out[at] = x[i]


@kernel(alone=False)
def low_rank_margin(width: int, x: NDArray[Any], low: NDArray[Any]) -> float:
    """<w, x>, added up in the type of the filter."""
    w, total = low[WEIGHTS], low.dtype.type(0.0)
    for j in range(width):
        total += x[j] * w[j]
    return float(total)


@kernel(inline=False, alone=False)
def low_rank_step(
    width: int, m: float, y: float, h: float, drift: float, regression: bool, low: NDArray[Any], used: IntArray,
    work: FilterWork,
) -> None:  # fmt: skip
    """Learn the row in `work`, which counts h times, from its margin m; y is 0 or 1, or real. `used`: (1,)."""
    if used[0] == len(low) - FIRST:
        used[0] = fold(width, low, work)
    x, v, at = work.x, work.v, FIRST + used[0]
    tau = max(_product(width, used[0], low, x, work.factors, v), 0.0)
    pull, curvature, scale = gain(m, y, h, tau, regression)
    _add(width, pull, v, low[WEIGHTS])
    _add(width, math.sqrt(curvature * scale), v, low[at])  # zeros so far
    _add_squares(width, drift, x, low[VARIANCES])
    used[0] += 1


@kernel(disjoint=True, alone=False)
def _product(
    width: int, n: int, low: NDArray[Any], x: NDArray[Any], factors: NDArray[Any], v: NDArray[Any]
) -> float:  # fmt: skip
    """v <- P x, four of the n rows of B at once, behind which are zeros; returns x'v."""
    variances, total = low[VARIANCES], 0.0
    for j in range(width):
        v[j] = variances[j] * x[j]
    for i in range(FIRST, FIRST + n, 4):
        a, b, c, d = low[i], low[i + 1], low[i + 2], low[i + 3]
        _four_products(width, x, a, b, c, d, factors)
        for j in range(width):
            v[j] -= (factors[0] * a[j] + factors[1] * b[j]) + (factors[2] * c[j] + factors[3] * d[j])
    for j in range(width):
        total += x[j] * v[j]
    return total


@kernel(disjoint=True, alone=False)
def _four_products(
    width: int, x: NDArray[Any], a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], d: NDArray[Any], out: NDArray[Any]
) -> None:
    """<a, x>, <b, x>, <c, x>, <d, x>, added up in the type of the arrays."""
    zero = x.dtype.type(0.0)
    of_a, of_b, of_c, of_d = zero, zero, zero, zero
    for j in range(width):
        of_a += a[j] * x[j]
        of_b += b[j] * x[j]
        of_c += c[j] * x[j]
        of_d += d[j] * x[j]
    out[0], out[1], out[2], out[3] = of_a, of_b, of_c, of_d


@kernel(disjoint=True, alone=False)
def _add(width: int, factor: float, v: NDArray[Any], out: NDArray[Any]) -> None:
    """out <- out + factor v."""
    f = out.dtype.type(factor)
    for j in range(width):
        out[j] += f * v[j]


@kernel(disjoint=True, alone=False)
def _add_squares(width: int, factor: float, x: NDArray[Any], out: NDArray[Any]) -> None:
    """out <- out + factor x^2."""
    f = out.dtype.type(factor)
    for j in range(width):
        out[j] += f * (x[j] * x[j])


# ---- when B is full ----------------------------------------------------------------------------------------


@kernel(inline=False, alone=False)
def fold(width: int, low: NDArray[Any], work: FilterWork) -> int:
    """Keep m of the 2 m directions, and of the others the diagonal of the precision; return m."""
    rows, variances, turned, left, inverse = low[FIRST:], low[VARIANCES], work.turned, work.left, work.inverse
    n, least = len(rows), LEAST_LEFT[0] if low.itemsize == 8 else LEAST_LEFT[1]
    kept, factors = n // 2, work.factors
    for j in range(width):
        inverse[j] = 1.0 / variances[j]
    _gram(width, n, rows, work)
    diagonalise(work.gram, work.turn, ORTHOGONAL)
    for i in range(n):
        for a in range(n):
            factors[a] = work.turn[i, a]
        _combined(width, n, factors, rows, turned[i])
        left[i] = max(1.0 - _square(width, turned[i], inverse), least)
    for i in range(n):
        rank = 0
        for a in range(n):
            rank += int(left[a] < left[i] or (left[a] == left[i] and a < i))
        work.order[rank] = i
    _keep_diagonal(width, kept, low, work)
    for a in range(kept):
        _next_row(width, a, rows, work)
    for a in range(kept, n):
        for j in range(width):
            rows[a, j] = 0.0
    return kept


@kernel(alone=False)
def _gram(width: int, n: int, rows: NDArray[Any], work: FilterWork) -> None:
    """B D^-1 B'."""
    scaled, four = work.v, work.factors
    for i in range(n):
        _times(width, work.inverse, rows[i], scaled)
        for a in range(0, n, 4):
            _four_products(width, scaled, rows[a], rows[a + 1], rows[a + 2], rows[a + 3], four)
            for k in range(4):
                work.gram[i, a + k] = four[k]


@kernel(disjoint=True, alone=False)
def _times(width: int, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
    """out <- a b, entry by entry."""
    for j in range(width):
        out[j] = a[j] * b[j]


@kernel(disjoint=True, alone=False)
def _square(width: int, q: NDArray[Any], inverse: NDArray[Any]) -> float:
    """q' D^-1 q."""
    total = q.dtype.type(0.0)
    for j in range(width):
        total += q[j] * q[j] * inverse[j]
    return float(total)


@kernel(disjoint=True, alone=False)
def _combined(width: int, n: int, factors: NDArray[Any], rows: NDArray[Any], out: NDArray[Any]) -> None:
    """out <- sum_a factors_a rows_a, four rows at once."""
    for j in range(width):
        out[j] = 0.0
    for i in range(0, n, 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        for j in range(width):
            out[j] += (factors[i] * a[j] + factors[i + 1] * b[j]) + (factors[i + 2] * c[j] + factors[i + 3] * d[j])


@kernel(alone=False)
def _keep_diagonal(width: int, kept: int, low: NDArray[Any], work: FilterWork) -> None:
    """1/D grows by the diagonals of the directions that go; those that stay become R, their precision times D."""
    variances, inverse, growth, n = low[VARIANCES], work.inverse, work.v, len(low) - FIRST
    for j in range(width):
        growth[j] = 1.0
    for rank in range(kept, n):
        i = work.order[rank]
        _grow(width, 1.0 / work.left[i], work.turned[i], inverse, growth)
    for j in range(width):
        inverse[j] *= growth[j]
        growth[j] = 1.0 / growth[j]
        variances[j] *= growth[j]
    for rank in range(kept):
        i = work.order[rank]
        _scale(width, 1.0 / math.sqrt(work.left[i]), growth, work.turned[i])


@kernel(disjoint=True, alone=False)
def _grow(width: int, factor: float, q: NDArray[Any], inverse: NDArray[Any], growth: NDArray[Any]) -> None:
    """growth <- growth + factor q^2 / D."""
    f = growth.dtype.type(factor)
    for j in range(width):
        growth[j] += f * q[j] * q[j] * inverse[j]


@kernel(disjoint=True, alone=False)
def _scale(width: int, factor: float, v: NDArray[Any], q: NDArray[Any]) -> None:
    """q <- factor v q."""
    f = q.dtype.type(factor)
    for j in range(width):
        q[j] *= f * v[j]


@kernel(alone=False)
def _next_row(width: int, a: int, rows: NDArray[Any], work: FilterWork) -> None:
    """Row a of B = L^-1 R, where LL' = I + R D^-1 R': so P^-1 = D^-1 + D^-1 R'R D^-1."""
    row, r, scaled, four, rest = rows[a], work.turned[work.order[a]], work.v, work.factors, 1.0
    _times(width, work.inverse, r, scaled)
    rest += _square(width, r, work.inverse)
    for j in range(width):
        row[j] = r[j]
    for b in range(0, a, 4):
        _four_products(width, scaled, rows[b], rows[b + 1], rows[b + 2], rows[b + 3], four)
        for k in range(min(4, a - b)):  # of L
            rest -= four[k] * four[k]
            _add(width, -four[k], rows[b + k], row)
    factor = row.dtype.type(1.0 / math.sqrt(max(rest, 1.0)))
    for j in range(width):
        row[j] *= factor


# ---- arrays --------------------------------------------------------------------------------------------------


def new_filters(side: int, n: int, dtype: Any) -> NDArray[Any]:
    """(n, 2 + 2 m, side) new filters."""
    found = aligned_zeros((n, FIRST + 2 * RANK, side), dtype)
    found[:, VARIANCES] = PRIOR
    return found


def new_low_rank(n_tasks: int, side: int, dtype: Any) -> LowRank:
    """Nothing learned; of no columns while others serve."""
    ints = np.zeros(n_tasks, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    return LowRank(ints[0], new_filters(side, 1, dtype)[0], new_filters(side, 0, dtype), *ints[1:])


def new_filter_work(side: int, rows: int, dtype: Any) -> FilterWork:
    """For filters of at most so many columns, with this number of rows in B."""
    x, v, inverse = np.zeros((3, side), dtype)
    gram, turn = np.zeros((2, rows, rows))
    turned = np.zeros((rows, side), dtype)
    return FilterWork(
        x, v, inverse, np.zeros(rows, dtype), turned, gram, turn, np.zeros(rows), np.zeros(rows, np.int64)
    )


def most_filters(memory: float, side: int, itemsize: int) -> int:
    """Tasks whose filters have room in memory."""
    return int(memory // filter_bytes(side, itemsize))


def extended(low: LowRank, columns: int, new_tasks: int, memory: float) -> LowRank:
    """Room for so many columns and new tasks; if not all fit then, the youngest tasks lose theirs."""
    side, n = low.pooled.shape[1], int(low.counters[0])
    if columns > side:
        side = whole_turns(columns if side == 0 else max(columns, side + side // 8))
    most = most_filters(memory, side, low.pooled.itemsize)
    wanted, n_kept = min(n + new_tasks, most), min(n, most)
    room = len(low.own) if wanted <= len(low.own) else max(2 * len(low.own), wanted)
    room = min(room, most)
    used = np.zeros(1 + room, np.int64)
    used[: 1 + n_kept] = low.used[: 1 + n_kept]
    found = low._replace(
        pooled=_larger(low.pooled[None], side, 1)[0], own=_larger(low.own[:n_kept], side, room), used=used
    )
    found.slot[found.slot > n_kept] = 0
    found.counters[0] = n_kept
    return found


def _larger(filters: NDArray[Any], side: int, n: int) -> NDArray[Any]:
    """`n` filters of this side; the first of them hold those learned so far."""
    found = new_filters(side, n, filters.dtype)
    found[: len(filters), :, : filters.shape[2]] = filters
    return found


def forget(low: LowRank, k: int) -> None:
    """The task's filter goes, the last one takes its place."""
    at, last = int(low.slot[k]) - 1, int(low.counters[0]) - 1
    if at < 0:
        return
    low.own[at], low.used[1 + at] = low.own[last], low.used[1 + last]
    low.slot[low.slot == last + 1] = at + 1
    low.slot[k] = 0
    low.own[last], low.used[1 + last] = new_filters(low.own.shape[2], 1, low.own.dtype)[0], 0
    low.counters[0] = last


def pack(low: LowRank, columns: int) -> LowRank:
    """The arrays, cut to the part in use."""
    n, side = int(low.counters[0]), min(columns, low.pooled.shape[1])
    return low._replace(pooled=low.pooled[:, :side], own=low.own[:n, :, :side], used=low.used[: 1 + n])


def check(packed: LowRank, columns: int) -> None:
    """Raise ValueError unless places and sizes are in range."""
    n, side = int(packed.counters[0]), packed.pooled.shape[-1]
    if packed.pooled.shape != (FIRST + 2 * RANK, side) or side not in (0, columns) or columns > MOST_WIDE + 2:
        raise ValueError("its filter is of another size than it says")
    if packed.own.shape != (n, FIRST + 2 * RANK, side) or packed.used.shape != (1 + n,):
        raise ValueError("its filters of tasks are not as many as it says")
    if not ((packed.pooled[VARIANCES] > 0).all() and (packed.own[:, VARIANCES] > 0).all()):
        raise ValueError("its filters have variances that are not positive")
    if (packed.used < 0).any() or (packed.used > 2 * RANK).any():
        raise ValueError("the rows in use of its filters are out of range")
    slots = packed.slot[packed.slot > 0]
    if (packed.slot < 0).any() or (slots > n).any() or len(np.unique(slots)) != len(slots):
        raise ValueError("places of tasks' filters are out of range")


def unpack(packed: LowRank) -> LowRank:
    """The inverse of `pack`."""
    side = whole_turns(packed.pooled.shape[1])
    return packed._replace(
        pooled=_larger(packed.pooled[None], side, 1)[0], own=_larger(packed.own, side, len(packed.own))
    )
