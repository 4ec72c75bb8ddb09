"""Operations on one row that the algorithms share; each serves dense and sparse rows.

The branch on `rounds.width` is the same for all rows of a table, so it costs nothing and dense rows never pay
for an index.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LANES, IndexArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds


@kernel
def row_bounds(rounds: Rounds, row: int) -> tuple[int, int]:
    """Where the row's values lie. Loops run over slices: positions in them cannot wrap around, which saves a test."""
    if rounds.width > 0:
        return row * rounds.width, (row + 1) * rounds.width
    return rounds.indptr[row], rounds.indptr[row + 1]


@kernel
def feature_at(rounds: Rounds, row: int, p: int) -> int:
    """The column of the row's value at position p."""
    return p - row * rounds.width if rounds.width > 0 else int(np.uint32(rounds.indices[p]))


@kernel
def product(u: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    """<u, v>."""
    total = 0.0
    for j in range(len(u)):
        total += u[j] * v[j]
    return total


SUMS = 4  # side by side, for one addition would wait for the one before


@kernel(sums="exact")
def _dot_sparse(columns: IndexArray, x: NDArray[np.float64], w: NDArray[np.float64]) -> float:
    """Product i goes to sum `accumulator_of(i, n)`, so that dense and hashed weights give the same bits."""
    a, b, c, d, n = 0.0, 0.0, 0.0, 0.0, len(x)
    for turn in range(n // SUMS):
        i = SUMS * turn
        a += x[i] * w[np.uint32(columns[i])]  # unsigned: no wrap-around to test for
        b += x[i + 1] * w[np.uint32(columns[i + 1])]
        c += x[i + 2] * w[np.uint32(columns[i + 2])]
        d += x[i + 3] * w[np.uint32(columns[i + 3])]
    for i in range(n - n % SUMS, n):
        a += x[i] * w[np.uint32(columns[i])]
    return (a + b) + (c + d)


@kernel
def accumulator_of(i: np.uint64, n: int) -> np.uint64:
    """Which of the four sums; the products after the last whole turn go to the first."""
    return i % np.uint64(SUMS) if i < np.uint64(n - n % SUMS) else np.uint64(0)


@kernel
def dot(rounds: Rounds, row: int, w: NDArray[np.float64]) -> float:
    """<w, x>."""
    if rounds.width > 0:
        return product(rounds.values[row * rounds.width : (row + 1) * rounds.width], w)
    first, last = rounds.indptr[row], rounds.indptr[row + 1]
    return _dot_sparse(rounds.indices[first:last], rounds.values[first:last], w)


@kernel(sums="exact")
def dot_two(rounds: Rounds, row: int, u: NDArray[np.float64], w: NDArray[np.float64]) -> tuple[float, float]:
    """<u, x> and <w, x> in one pass over a sparse row."""
    start, end = rounds.indptr[row], rounds.indptr[row + 1]
    columns, x, n = rounds.indices[start:end], rounds.values[start:end], end - start
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    for turn in range(n // SUMS):
        i = SUMS * turn
        j, k = np.uint32(columns[i]), np.uint32(columns[i + 1])
        p, q = np.uint32(columns[i + 2]), np.uint32(columns[i + 3])
        a, b, c, d = a + x[i] * u[j], b + x[i + 1] * u[k], c + x[i + 2] * u[p], d + x[i + 3] * u[q]
        e, f, g, h = e + x[i] * w[j], f + x[i + 1] * w[k], g + x[i + 2] * w[p], h + x[i + 3] * w[q]
    for i in range(n - n % SUMS, n):
        j = np.uint32(columns[i])
        a, e = a + x[i] * u[j], e + x[i] * w[j]
    return (a + b) + (c + d), (e + f) + (g + h)


@kernel
def add(rounds: Rounds, row: int, scale: float, w: NDArray[np.float64]) -> None:
    """w <- w + scale x."""
    first, last = row_bounds(rounds, row)
    x = rounds.values[first:last]
    if rounds.width > 0:
        for j in range(len(x)):
            w[j] += scale * x[j]
    else:
        columns = rounds.indices[first:last]
        for i in range(len(x)):
            w[np.uint32(columns[i])] += scale * x[i]


@kernel
def largest(x: NDArray[np.float64]) -> float:
    """max_j |x_j|."""
    most = 0.0
    for i in range(len(x)):
        most = max(most, abs(x[i]))
    return most


@kernel
def squared_norm(rounds: Rounds, row: int) -> float:
    """||x||^2."""
    first, last = row_bounds(rounds, row)
    x, total = rounds.values[first:last], 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


@kernel
def copy_to(target: NDArray[np.float64], source: NDArray[np.float64]) -> None:
    """target <- source, of one length. Numba compiles `target[:] = source` for seconds: its error has text to make."""
    for i in range(len(target)):
        target[i] = source[i]


@kernel
def weight_of(rounds: Rounds, row: int) -> float:
    """How often the row counts."""
    return rounds.weight[row] if len(rounds.weight) > 0 else 1.0


TASKS, ROUNDS, FEATURES = 0, 1, 2  # positions in a state's counters: tasks that exist, rounds learned, features


@kernel
def open_round(rounds: Rounds, r: int, counters: NDArray[np.int64]) -> tuple[int, int]:
    """Count the round, let its new tasks in, and return its first row and the row after its last."""
    first, last = rounds.starts[r], rounds.starts[r + 1]
    counters[ROUNDS] += 1
    for row in range(first, last):
        counters[TASKS] = max(counters[TASKS], rounds.task[row] + 1)
    return first, last


@kernel
def open_weighted(rounds: Rounds, r: int, counters: NDArray[np.int64]) -> tuple[int, int]:
    """`open_round` for kernels that know weights: a round none of whose rows counts is none."""
    first, last = open_round(rounds, r, counters)
    if len(rounds.weight) > 0:
        counters[ROUNDS] -= _is_weightless(rounds.weight[first:last])
    return first, last


@kernel(inline=False)
def _is_weightless(weight: NDArray[np.float64]) -> int:
    most = 0.0
    for h in weight:
        most = max(most, h)
    return int(most == 0.0)


def whole_turns(n: int) -> int:
    """A number, as of tasks, rounded up to whole turns of SIMD loops."""
    return (n + LANES - 1) // LANES * LANES


padded = kernel(alone=False)(whole_turns)  # for compiled code


@kernel(sums="in order")
def dot_all(rounds: Rounds, row: int, weights: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """out[k] <- <w_k, x> for all tasks k, the columns of `weights` (features, padded tasks)."""
    first, last = row_bounds(rounds, row)
    x, dense = rounds.values[first:last], rounds.width > 0
    columns = rounds.indices if dense else rounds.indices[first:last]
    out[:] = 0.0
    for i in range(len(x)):
        w, v = weights[np.uint32(i if dense else columns[i])], x[i]
        for k in range(len(w)):
            out[k] += v * w[k]


@kernel(sums="in order")
def add_to_all(rounds: Rounds, row: int, scales: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
    """w_k <- w_k + scales[k] x for all tasks k."""
    first, last = row_bounds(rounds, row)
    x, dense = rounds.values[first:last], rounds.width > 0
    columns = rounds.indices if dense else rounds.indices[first:last]
    for i in range(len(x)):
        w, v = weights[np.uint32(i if dense else columns[i])], x[i]
        for k in range(len(w)):
            w[k] += scales[k] * v
