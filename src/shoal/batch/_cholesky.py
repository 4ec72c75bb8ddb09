"""A Cholesky factor that follows its matrix: one more row and column, or plus or minus a rank-one matrix (O(N²) each).

P = RᵀR with R upper triangular, in the leading `size` rows and columns of a larger array. Rows of R are contiguous, and
all loops run along them.
"""

from __future__ import annotations

import math

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel

JITTER = 1e-10  # relative addition to the diagonal: columns of a kernel matrix are nearly dependent


@kernel
def solve_transposed(R: FloatArray, size: int, p: FloatArray) -> None:
    """p <- R⁻ᵀ p."""
    for k in range(size):
        p[k] /= R[k, k]
        w = p[k]
        for i in range(k + 1, size):
            p[i] -= w * R[k, i]


@kernel
def solve_upper(R: FloatArray, size: int, p: FloatArray) -> None:
    """p <- R⁻¹ p."""
    for k in range(size - 1, -1, -1):
        total = 0.0
        for i in range(k + 1, size):
            total += R[k, i] * p[i]
        p[k] = (p[k] - total) / R[k, k]


@kernel
def append(R: FloatArray, size: int, p: FloatArray) -> None:
    """The factor of [[P, p], [pᵀ, p_size]] from that of P; p is overwritten: w = R⁻ᵀ p, last pivot √(p_size - w·w)."""
    solve_transposed(R, size, p)
    pivot = p[size] * (1.0 + JITTER)
    least = p[size] * JITTER
    for k in range(size):
        R[k, size] = p[k]
        R[size, k] = 0.0
        pivot -= p[k] * p[k]
    R[size, size] = math.sqrt(max(pivot, least))


@kernel
def rank_one(R: FloatArray, size: int, w: FloatArray, sign: float) -> bool:
    """The factor of P + sign w wᵀ from that of P; w is overwritten. False, and R is spoilt, if P loses its rank."""
    for k in range(size):
        square = R[k, k] * R[k, k]
        left = square + sign * w[k] * w[k]
        if left <= JITTER * JITTER * square:
            return False
        r = math.sqrt(left)
        c, s = r / R[k, k], w[k] / R[k, k]
        R[k, k] = r
        for i in range(k + 1, size):
            R[k, i] = (R[k, i] + sign * s * w[i]) / c
            w[i] = c * w[i] - s * R[k, i]
    return True
