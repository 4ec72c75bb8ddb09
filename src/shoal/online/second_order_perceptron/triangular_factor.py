"""A growing triangular factor: U upper with U^T U = M, and right-hand sides w = U^-T b kept beside it.

Rows of U are contiguous, and every operation runs along them. Rotations never subtract squares, so M stays
positive definite however long the stream is.
"""

import math

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rows import product


@kernel(inline=False)
def solve_transposed(U: FloatArray, first: int, n: int, limit: float, b: FloatArray) -> None:
    """b <- U^-T b, where b is zero before `first`; no number beyond +-`limit`, whatever rounding made of U."""
    for k in range(first, n):
        b[k] = min(max(b[k] / U[k, k], -limit), limit)
        scale, row, rest = b[k], U[k, k + 1 : n], b[k + 1 : n]
        for j in range(len(row)):
            rest[j] -= scale * row[j]


@kernel(inline=False)
def solve(U: FloatArray, n: int, w: FloatArray, limit: float, out: FloatArray) -> None:
    """out <- U^-1 w; no number beyond +-`limit`, whatever rounding made of U."""
    for k in range(n - 1, -1, -1):
        value = (w[k] - product(U[k, k + 1 : n], out[k + 1 : n])) / U[k, k]
        out[k] = min(max(value, -limit), limit)


@kernel
def squared_length(v: FloatArray, first: int, n: int) -> float:
    """||v[first:n]||^2."""
    return product(v[first:n], v[first:n])


@kernel(inline=False)
def rotate_in(U: FloatArray, w: FloatArray, first: int, n: int, row: FloatArray, value: float) -> None:
    """U^T U <- U^T U + row^T row and U^T w <- U^T w + row^T value, by Givens rotations.

    `row` is zero before `first` and is used up.
    """
    for k in range(first, n):
        if row[k] == 0.0:
            continue
        length = math.hypot(U[k, k], row[k])
        c, s = U[k, k] / length, row[k] / length
        old, new = U[k, k:n], row[k:n]
        for j in range(len(old)):
            u, v = old[j], new[j]
            old[j] = c * u + s * v
            new[j] = c * v - s * u
        z = w[k]
        w[k] = c * z + s * value
        value = c * value - s * z


@kernel(inline=False)
def remove_first(U: FloatArray, w: FloatArray, n: int, row: FloatArray) -> None:
    """Leave the first row and column out of M, and the first entry out of b; `row` is scratch for n numbers.

    The rest of M is U_22^T U_22 + u_12^T u_12: the first row is rotated into those below.
    """
    for k in range(n):
        row[k] = U[0, k]
    rotate_in(U[1:, 1:], w[1:], 0, n - 1, row[1:], w[0])
    for k in range(1, n):
        w[k - 1] = w[k]
        old, new = U[k, k:n], U[k - 1, k - 1 : n - 1]
        for j in range(len(old)):
            new[j] = old[j]
