"""The Gram matrix G = V^T V of tasks' weights and its power G^(p-1), kept up to date without V.

A step v_k <- v_k + c x changes G by e_k u^T + u e_k^T with u = c V^T x + (c^2/2) ||x||^2 e_k, and hence, m = p - 1,

    G'^m - G^m = sum_{i < m}  (G'^i e_k) (G^(m-1-i) u)^T + (G'^i u) (G^(m-1-i) e_k)^T,

which takes O(K^2 p) instead of the O(K^3) of a product. The power is multiplied anew after K steps, or when the trace
has moved far or the power shrunk, so that rounding does not add up. What is kept is G / scale, scale a power of two
near the trace: the gradient tr(G^p)^(1/p-1) V G^(p-1) does not depend on it, and powers neither over- nor underflow.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel

P: Final = 0  # positions in `form`
SCALE: Final = 1
FACTOR: Final = 2
STEPS: Final = 3
PEAK: Final = 4
DRIFT: Final = 4.0  # how far the trace may be from the scale
SHRUNK: Final = 1e-3  # beside its peak, of which the last digits remain in a power that steps have made
ROUNDING: Final = 1.0 + 1e-9  # v = x makes |<v, x>| = ||v|| ||x||, but for the last digits


class Gram(NamedTuple):
    """What the tasks' weights are to each other."""

    products: Annotated[FloatArray, TASK, TASK]  # G/scale
    power: Annotated[FloatArray, TASK, TASK]  # (G/scale)^(p-1)
    form: FloatArray  # (5,) p, scale, factor tr((G/scale)^p)^(1/p-1), and of the power: steps since fresh, its peak


def empty(n_tasks: int) -> Gram:
    """That of V = 0."""
    return Gram(np.zeros((n_tasks, n_tasks)), np.zeros((n_tasks, n_tasks)), np.array([0.0, 1.0, 0.0, 0.0, 0.0]))


@kernel
def trace(gram: Gram, K: int) -> float:
    """tr G / scale."""
    total = 0.0
    for k in range(K):
        total += gram.products[k, k]
    return total


@kernel
def height(gram: Gram, K: int) -> float:
    """The largest entry of the power, which is semidefinite: one on the diagonal."""
    largest = 0.0
    for k in range(K):
        largest = max(largest, gram.power[k, k])
    return largest


@kernel
def apply(gram: Gram, K: int, v: FloatArray, out: FloatArray) -> None:
    """out <- (G/scale) v."""
    for j in range(K):
        total = 0.0
        for k in range(K):
            total += gram.products[j, k] * v[k]
        out[j] = total


@kernel
def multiply(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """out <- A B; in one order of sums on every machine, which a BLAS does not promise."""
    n = len(out)
    for i in range(n):
        for k in range(n):
            out[i, k] = 0.0
        for j in range(n):
            for k in range(n):
                out[i, k] += A[i, j] * B[j, k]


@kernel(entry=True, allocates=True, inline=False)
def refresh(gram: Gram, K: int, p: float) -> None:
    """(G/scale)^(p-1) anew: by products for whole p, by eigenvalues else.

    Of the tasks that have learned only: v_k = 0 makes w_k = 0, not a rounding error whose sign would predict.
    """
    gram.form[P], gram.form[STEPS] = p, 0.0
    learned = np.array([k for k in range(K) if gram.products[k, k] > 0.0], np.int64)  # the others' products are zeros
    n = len(learned)
    G, power, scratch = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n))
    for a in range(n):
        power[a, a] = 1.0  # G^0
        for b in range(n):
            G[a, b] = gram.products[learned[a], learned[b]]
    if n > 0 and p != math.floor(p):
        fractional_power(G, p - 1.0, power)
    else:
        for _ in range(int(p) - 1):
            multiply(power, G, scratch)
            power, scratch = scratch, power
    for j in range(K):
        for k in range(K):
            gram.power[j, k] = 1.0 if p == 1.0 and j == k else 0.0
    for a in range(n):
        for b in range(n):
            gram.power[learned[a], learned[b]] = power[a, b]
    gram.form[PEAK] = height(gram, K)
    update_factor(gram, K)


@kernel(allocates=True, inline=False)
def fractional_power(G: FloatArray, exponent: float, out: FloatArray) -> None:
    """out <- G^exponent of a semidefinite G."""
    K = len(G)
    values, vectors = np.linalg.eigh(G)
    for j in range(K):
        for k in range(K):
            out[j, k] = 0.0
            for i in range(K):
                out[j, k] += vectors[j, i] * max(0.0, values[i]) ** exponent * vectors[k, i]


@kernel
def update_factor(gram: Gram, K: int) -> None:
    """The factor tr(G^p)^(1/p-1) of grad (1/2)||V||_{S_2p}^2 = tr(G^p)^(1/p-1) V G^(p-1), for G/scale.

    tr(G^p) >= K (tr G / K)^p and tr(G^p)^(1-1/p) >= |G^(p-1)[j, k]| for any semidefinite G, so what rounding makes of
    it must not be less.
    """
    total, size, p, largest = 0.0, trace(gram, K), gram.form[P], 0.0
    for j in range(K):
        for k in range(K):
            total += gram.power[j, k] * gram.products[j, k]
            largest = max(largest, abs(gram.power[j, k]))
    total = max(total, K * (max(size, 0.0) / K) ** p)
    factor = total ** (1.0 / p - 1.0) if size > 0.0 else 0.0
    gram.form[FACTOR] = 1.0 if p == 1.0 else min(factor, 1.0 / largest) if largest > 0.0 else factor


@kernel
def rescale(gram: Gram, K: int, size: float) -> None:
    """Another scale, the power of two at or below the size."""
    shift = math.frexp(gram.form[SCALE])[1] - math.frexp(size)[1]
    for j in range(K):
        for k in range(K):
            gram.products[j, k] = math.ldexp(gram.products[j, k], shift)
    gram.form[SCALE] = math.ldexp(0.5, math.frexp(size)[1])
    gram.form[STEPS] = K  # the power is multiplied anew when the round is done


@kernel
def bound(gram: Gram, K: int, norm: float, z: FloatArray) -> None:
    """|z_j| <= ||v_j|| ||x||: what G lost of v_j beside far larger rows must not come back through V^T x alone."""
    for j in range(K):
        largest = ROUNDING * math.sqrt(gram.products[j, j]) * math.sqrt(gram.form[SCALE]) * math.sqrt(norm)
        z[j] = min(max(z[j], -largest), largest)


@kernel(allocates=True, inline=False)
def step(gram: Gram, K: int, k: int, c: float, z: FloatArray, norm: float) -> None:
    """After v_k <- v_k + c x, with z = V^T x before and norm = ||x||^2; a round of steps ends with `finish`."""
    form, G, p = gram.form, gram.products, gram.form[P]
    bound(gram, K, norm, z)
    largest = 2.0 * (trace(gram, K) * form[SCALE] + c * c * norm)  # ||V + M||^2 <= 2 ||V||^2 + 2 ||M||^2
    if largest > 0.0 and not form[SCALE] / DRIFT <= largest <= form[SCALE] * DRIFT:
        rescale(gram, K, largest)
    if p != math.floor(p):
        form[STEPS] = K
    half = 0.5 * c * c * norm / form[SCALE]
    m = int(p) - 1 if form[STEPS] < K else 0
    e, u = np.zeros((m + 1, K)), np.zeros((m + 1, K))  # line i: (G/scale)^i e_k and (G/scale)^i u
    if m > 0:
        e[0, k], u[0, k] = 1.0, half
        for j in range(K):
            u[0, j] += c * z[j] / form[SCALE]
    for i in range(m - 1):
        apply(gram, K, e[i], e[i + 1])
        apply(gram, K, u[i], u[i + 1])
    for j in range(K):
        G[k, j] += c * z[j] / form[SCALE]
        G[j, k] += c * z[j] / form[SCALE]
    G[k, k] += 2.0 * half
    if G[k, k] <= 0.0:  # what is left of v_k is below the rounding of what was taken away
        for j in range(K):
            G[j, k] = G[k, j] = 0.0
        form[STEPS] = K
    elif m > 0:
        form[STEPS] += 1.0
        grow_power(gram, K, e, u, np.zeros((4, K)))


@kernel
def grow_power(gram: Gram, K: int, e: FloatArray, u: FloatArray, scratch: FloatArray) -> None:
    """power += sum_{i < m} (G'^i e_k) (G^(m-1-i) u)^T + (G'^i u) (G^(m-1-i) e_k)^T; G' is there, G in the lines."""
    m = len(e) - 1
    for j in range(K):
        scratch[0, j], scratch[1, j] = e[0, j], u[0, j]
    for i in range(m):
        now, then = 2 * (i % 2), 2 * ((i + 1) % 2)
        new_e, new_u, old_e, old_u = scratch[now], scratch[now + 1], e[m - 1 - i], u[m - 1 - i]
        for a in range(K):
            for b in range(K):
                gram.power[a, b] += new_e[a] * old_u[b] + new_u[a] * old_e[b]
        apply(gram, K, new_e, scratch[then])
        apply(gram, K, new_u, scratch[then + 1])
    gram.form[PEAK] = max(gram.form[PEAK], height(gram, K))


@kernel
def finish(gram: Gram, K: int) -> None:
    """Bring scale, power and factor up to date after the steps of a round."""
    size = trace(gram, K)
    if 0.0 < size < 1.0 / DRIFT:
        rescale(gram, K, size * gram.form[SCALE])
    stale = gram.form[STEPS] >= K or height(gram, K) < SHRUNK * gram.form[PEAK]
    if gram.form[P] > 1.0 and stale:
        refresh(gram, K, gram.form[P])
    else:
        update_factor(gram, K)
