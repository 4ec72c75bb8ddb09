"""Jacobi's one-sided rotations: the singular vectors of a small matrix, to all digits of the short ones."""

import math

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel


@kernel(inline=False)
def square(z: FloatArray) -> float:
    """||z||^2."""
    total = 0.0
    for j in range(len(z)):
        total += z[j] * z[j]
    return total


@kernel(inline=False)
def inner_product(u: FloatArray, v: FloatArray) -> float:
    """<u, v>."""
    total = 0.0
    for j in range(len(u)):
        total += u[j] * v[j]
    return total


@kernel(inline=False)
def diagonalise(inner: FloatArray, turn: FloatArray, cosine_left: float) -> None:
    """Rotate the rows of `inner` until their cosines are that small; `turn` gets the rotation.

    Jacobi's one-sided method finds short rows beside long ones to all their digits (Demmel, Veselić 1992).
    """
    m = len(inner)
    for i in range(m):
        for j in range(m):
            turn[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):
        still = True
        for i in range(m):
            for j in range(i):
                a, b, g = square(inner[i]), square(inner[j]), inner_product(inner[i], inner[j])
                if abs(g) <= cosine_left * math.sqrt(a) * math.sqrt(b):
                    continue
                still = False
                half = (b - a) / (2.0 * g)
                tangent = (1.0 if half >= 0.0 else -1.0) / (abs(half) + math.sqrt(1.0 + half * half))
                cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                rotate(inner[i], inner[j], cosine, cosine * tangent)
                rotate(turn[i], turn[j], cosine, cosine * tangent)
        if still:
            break


@kernel(inline=False)
def rotate(u: FloatArray, v: FloatArray, cosine: float, sine: float) -> None:
    """(u, v) <- (cosine u - sine v, sine u + cosine v)."""
    for j in range(len(u)):
        u[j], v[j] = cosine * u[j] - sine * v[j], sine * u[j] + cosine * v[j]
