"""Products of dense rows and square matrices, for filters with few columns. Loops run over whole turns of SIMD."""

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel

TURN = 8  # columns


def whole_turns(d: int) -> int:
    """Columns rounded up to whole turns of SIMD loops: the least side of matrices for d columns."""
    return (d + TURN - 1) // TURN * TURN


turns = kernel(alone=False)(whole_turns)  # for compiled code


@kernel(disjoint=True, inline=False, alone=False)
def product(n: int, x: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """out <- x'M over the first n columns, whole turns; four rows at once."""
    for j in range(n):
        out[j] = 0.0
    for i in range(0, n, 4):
        a, b, c, d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(n):
            out[j] += (x[i] * a[j] + x[i + 1] * b[j]) + (x[i + 2] * c[j] + x[i + 3] * d[j])


@kernel(disjoint=True, inline=False, alone=False)
def add_outer(n: int, factor: float, v: FloatArray, matrix: FloatArray) -> None:
    """M <- M + factor v v'."""
    for i in range(n):
        row, f = matrix[i], factor * v[i]
        for j in range(n):
            row[j] += f * v[j]


@kernel(alone=False)
def inner(n: int, a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for j in range(n):
        total += a[j] * b[j]
    return total


@kernel(disjoint=True, alone=False)
def add_to(n: int, factor: float, v: FloatArray, w: FloatArray) -> None:
    """w <- w + factor v."""
    for j in range(n):
        w[j] += factor * v[j]
