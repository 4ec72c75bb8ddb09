"""The covariance S of a Gaussian over weights, kept as a factor F with S = F Fᵀ, and what a row does to it.

A row x with precision 1/lambda turns S into (S⁻¹ + x xᵀ/lambda)⁻¹. Taken literally, Sherman-Morrison subtracts, and
on rows of very different size rounding leaves an S with negative variances. Potter's form of the same update

    F <- F - beta (F f) fᵀ,    f = Fᵀ x,    beta = 1/(a + sqrt(lambda a)),    a = lambda + fᵀ f

cannot: S is positive semi-definite whatever F is. A diagonal S is the factor's one row; its update
1/s_j <- 1/s_j + x_j²/lambda is the diagonal Gaussian that minimises the same divergence.

Between the two, for many features, are precisions that are diagonal plus rank m at most, kept as those of the Kalman
filters of Chang, Durán-Martín, Shestopaloff, Jones, Murphy (2023):

    S⁻¹ = diag(s)⁻¹ (I + Qᵀ A Q) diag(s)⁻¹,   so that   S = diag(s) (I - QᵀQ + Qᵀ Phi Phiᵀ Q) diag(s)

with k <= m orthonormal rows Q (k, D), the directions of rows seen, and Phi Phiᵀ = (I + A)⁻¹. A row x is z = diag(s) x
in these coordinates. The part of z outside of Q becomes the next direction, and Phi (k, k) takes the row in like the
factor of a full covariance. So nothing is lost until a row needs direction m + 1. Then A is made diagonal, the m/2
directions of the largest entries stay, and of each other one, a q qᵀ, the precision keeps the diagonal: s_j grows to
s_j/sqrt(1 + sum a q_j²). The diagonal of the precision is always exact, as with m = 0, the diagonal Gaussian; where
rows span m dimensions at most, S is exact. A fold costs O(D m²), once in m/2 rows, and a row O(D m).
"""

import math
from typing import Final, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import dot_all, feature_at, product, row_bounds, squared_norm
from shoal.online.common.jacobi import diagonalise, inner_product, square

LARGEST: Final = 1e150  # of a mean's entries: products with rows of that size are still finite
NOISE: Final = 1e-12  # share of a row's length outside of Q that may be rounding
ORTHOGONAL: Final = 1e-15  # cosine of directions
NOTHING: Final = 1e-280  # squared length of rows that no precision notices, and whose direction has few digits
LARGEST_GAIN: Final = 1e300  # of an entry of A: finite

FULL: Final = 0  # any number above is a rank
DIAGONAL: Final = -1


class Covariance(NamedTuple):
    """S of one Gaussian, or of one a task with an axis before these."""

    factor: FloatArray  # (D, D) F; diagonal (1, D); rank m (1 + m, D) s and Q
    inner: FloatArray  # (m, m) Phi
    used: IntArray  # (1,) directions in Q


def prior(n_tasks: int | None, n_features: int, form: int) -> Covariance:
    """S = I, of each task or (None) once."""
    rank, tasks = max(form, 0), () if n_tasks is None else (n_tasks,)
    # Untouched pages: too large an array fails at once.
    factor = np.zeros((*tasks, n_features if form == FULL else 1 + rank, n_features))
    j = np.arange(n_features)
    factor[..., j if form == FULL else 0, j] = 1.0
    return Covariance(factor, np.zeros((*tasks, rank, rank)), np.zeros(tasks or 1, np.int64))


def covariance(S: Covariance, n_features: int, form: int) -> FloatArray:
    """S over the first features, or its diagonal."""
    factor = S.factor[..., :n_features]
    if form == DIAGONAL:
        return np.asarray(factor[..., 0, :] ** 2)
    if form == FULL:
        factor = factor[..., :n_features, :]
        return np.asarray(factor @ np.swapaxes(factor, -1, -2))
    if factor.ndim == 2:
        return low_rank_covariance(factor, S.inner, int(S.used[0]))
    each = zip(factor, S.inner, S.used.tolist(), strict=True)
    return np.array([low_rank_covariance(*one) for one in each]).reshape(len(factor), n_features, n_features)


@kernel
def _shrunk(v: float, lam: float) -> float:
    """lambda v/(lambda + v): the variance v along a row after that row."""
    return v * (lam / (lam + v))


@kernel
def variance(rounds: Rounds, row: int, S: Covariance, lam: float, form: int, f: FloatArray) -> float:
    """xᵀ S x as it will be once S has taken in the row. `f` is work space."""
    factor = S.factor
    if form > 0:
        return _shrunk(low_rank_variance(rounds, row, factor, S.inner, S.used[0], f), lam)
    if form == FULL:
        dot_all(rounds, row, factor, f)
        return _shrunk(product(f, f), lam)
    first, last = row_bounds(rounds, row)
    total = 0.0
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        total += _shrunk((factor[0, j] * rounds.values[p]) ** 2, lam)
    return total


@kernel
def prior_variance(rounds: Rounds, row: int, lam: float, form: int) -> float:
    """The `variance` of a row where S = I."""
    if form != DIAGONAL:
        return _shrunk(squared_norm(rounds, row), lam)
    first, last = row_bounds(rounds, row)
    total = 0.0
    for p in range(first, last):
        total += _shrunk(rounds.values[p] ** 2, lam)
    return total


@kernel
def condition(rounds: Rounds, row: int, S: Covariance, lam: float, form: int, f: FloatArray) -> float:
    """S <- (S⁻¹ + x xᵀ/lambda)⁻¹ (eqs. 2 and 4); returns xᵀ S x with the new S. `f` is work space."""
    factor = S.factor
    if form == DIAGONAL:
        return _condition_diagonal(rounds, row, factor[0], lam)
    if form > 0:
        return _shrunk(low_rank_condition(rounds, row, factor, S.inner, S.used, lam, f), lam)
    dot_all(rounds, row, factor, f)
    v = product(f, f)
    if v > 0.0:
        beta = 1.0 / (lam + v + math.sqrt(lam) * math.sqrt(lam + v))
        for i in range(len(factor)):
            scale = beta * product(factor[i], f)
            if scale != 0.0:  # features that never met those of the row
                for j in range(len(f)):
                    factor[i, j] -= scale * f[j]
    return _shrunk(v, lam)


@kernel(sums="in order")
def _condition_diagonal(rounds: Rounds, row: int, deviation: FloatArray, lam: float) -> float:
    first, last = row_bounds(rounds, row)
    total = 0.0
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        v = (deviation[j] * rounds.values[p]) ** 2
        deviation[j] *= math.sqrt(lam / (lam + v))
        total += _shrunk(v, lam)
    return total


@kernel
def pull(rounds: Rounds, row: int, S: Covariance, scale: float, form: int, f: FloatArray, mean: FloatArray) -> None:
    """mean <- mean + scale S x, held below `LARGEST`. `f` is work space."""
    factor = S.factor
    if form > 0:
        low_rank_product(rounds, row, factor, S.inner, S.used[0], f)
        for i in range(len(mean)):
            mean[i] = _bounded(mean[i] + scale * f[i])
        return
    if form == FULL:
        dot_all(rounds, row, factor, f)
        for i in range(len(mean)):
            mean[i] = _bounded(mean[i] + scale * product(factor[i], f))
        return
    first, last = row_bounds(rounds, row)
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        mean[j] = _bounded(mean[j] + scale * (factor[0, j] * (factor[0, j] * rounds.values[p])))


@kernel
def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)


# ---- diagonal plus rank m ------------------------------------------------------------------------------------


@kernel(inline=False)
def add_to(z: FloatArray, scale: float, q: FloatArray) -> None:
    """z <- z + scale q."""
    for j in range(len(z)):
        z[j] += scale * q[j]


@kernel(inline=False)
def scaled(rounds: Rounds, row: int, s: FloatArray, z: FloatArray) -> None:
    """z <- diag(s) x."""
    first, last = row_bounds(rounds, row)
    if rounds.width > 0:
        for j in range(len(z)):
            z[j] = s[j] * rounds.values[first + j]
        return
    for j in range(len(z)):
        z[j] = 0.0
    for p in range(first, last):
        z[rounds.indices[p]] = s[rounds.indices[p]] * rounds.values[p]


@kernel(inline=False)
def split(factor: FloatArray, k: int, z: FloatArray, t: FloatArray) -> None:
    """t <- Q z, and z <- z - Qᵀ t, what lies outside of Q."""
    for i in range(k):
        t[i] = inner_product(factor[1 + i], z)
        add_to(z, -t[i], factor[1 + i])


@kernel(inline=False)
def along(inner: FloatArray, k: int, t: FloatArray, f: FloatArray) -> float:
    """f <- Phiᵀ t; returns ||f||^2, the variance of what lies within Q."""
    for j in range(k):
        f[j] = 0.0
    for i in range(k):
        add_to(f[:k], t[i], inner[i, :k])
    return square(f[:k])


@kernel(allocates=True, inline=False)
def low_rank_variance(rounds: Rounds, row: int, factor: FloatArray, inner: FloatArray, k: int, z: FloatArray) -> float:
    """xᵀ S x: a sum of squares, so never negative. `z` is work space."""
    t, f = np.empty(len(inner)), np.empty(len(inner))
    scaled(rounds, row, factor[0], z)
    split(factor, k, z, t)
    return square(z) + along(inner, k, t, f)


@kernel(allocates=True, inline=False)
def low_rank_condition(
    rounds: Rounds, row: int, factor: FloatArray, inner: FloatArray, used: IntArray, lam: float, z: FloatArray
) -> float:
    """S <- (S⁻¹ + x xᵀ/lambda)⁻¹, folded before where there is no room; returns xᵀ S x with that S, before the row."""
    m = len(inner)
    t = np.empty(m)
    scaled(rounds, row, factor[0], z)
    whole = square(z)
    split(factor, used[0], z, t)
    if used[0] == m and square(z) > whole * NOISE * NOISE and whole > NOTHING:
        fold(factor, inner, used, z)
        scaled(rounds, row, factor[0], z)
        whole = square(z)
        split(factor, used[0], z, t)
    return take_in(factor, inner, used, z, t, whole, lam)


@kernel(allocates=True, inline=False)
def take_in(
    factor: FloatArray, inner: FloatArray, used: IntArray, z: FloatArray, t: FloatArray, whole: float, lam: float
) -> float:
    """Take in a row of squared length `whole`, t within Q and z outside; returns its variance before."""
    k, m = used[0], len(inner)
    f = np.empty(m)
    if whole <= NOTHING:
        return 0.0
    if square(z) > whole * NOISE * NOISE and k < m:
        split(factor, k, z, f)  # once more: rounding left a part within Q
        length = math.sqrt(square(z))
        for j in range(len(z)):
            factor[1 + k, j] = z[j] / length
        for i in range(k):
            t[i] += f[i]
            inner[i, k], inner[k, i] = 0.0, 0.0
        t[k], inner[k, k] = length, 1.0
        k = used[0] = k + 1
    v = along(inner, k, t, f)
    beta = 1.0 / (lam + v + math.sqrt(lam) * math.sqrt(lam + v))  # Potter's form, as of full covariances
    for i in range(k):
        add_to(inner[i, :k], -beta * inner_product(inner[i, :k], f[:k]), f[:k])
    return v


@kernel(allocates=True, inline=False)
def fold(factor: FloatArray, inner: FloatArray, used: IntArray, z: FloatArray) -> None:
    """Keep the m/2 directions that the precision has gained most in, and the diagonal of the others."""
    m, D = len(inner), len(z)
    turned, turn, gain, t = np.empty((m, D)), np.empty((m, m)), np.empty(m), np.empty(m)
    diagonalise(inner, turn, ORTHOGONAL)
    for i in range(m):
        gain[i] = min(LARGEST_GAIN, max(0.0, 1.0 / square(inner[i]) - 1.0))  # the entries of A
        for j in range(D):
            turned[i, j] = 0.0
        for j in range(m):
            add_to(turned[i], turn[i, j], factor[1 + j])
    kept, lengths, growth = np.empty(m // 2, np.int64), np.empty(m // 2), np.empty(D)
    for j in range(D):
        growth[j] = 1.0
    for place in range(m):  # by size; a sort takes seconds to compile
        largest = 0
        for i in range(m):
            if gain[i] > gain[largest]:
                largest = i
        if place < len(kept):
            kept[place] = largest
            lengths[place] = math.sqrt(gain[largest])
        else:
            for j in range(D):
                growth[j] += gain[largest] * turned[largest, j] * turned[largest, j]
        gain[largest] = -1.0
    for j in range(D):
        growth[j] = 1.0 / math.sqrt(growth[j])
        factor[0, j] *= growth[j]
    used[0] = 0
    for place in range(len(kept)):  # each is a row of weight 1 in the new coordinates
        for j in range(D):
            z[j] = lengths[place] * turned[kept[place], j] * growth[j]
        whole = square(z)
        split(factor, used[0], z, t)
        take_in(factor, inner, used, z, t, whole, 1.0)


@kernel(allocates=True, inline=False)
def low_rank_product(rounds: Rounds, row: int, factor: FloatArray, inner: FloatArray, k: int, z: FloatArray) -> None:
    """z <- S x."""
    t, f = np.empty(len(inner)), np.empty(len(inner))
    scaled(rounds, row, factor[0], z)
    split(factor, k, z, t)
    along(inner, k, t, f)
    for i in range(k):
        add_to(z, inner_product(inner[i, :k], f[:k]), factor[1 + i])
    for j in range(len(z)):
        z[j] *= factor[0, j]


def low_rank_covariance(factor: FloatArray, inner: FloatArray, k: int) -> FloatArray:
    """(D, D) S."""
    s, Q = factor[0], factor[1 : 1 + k]
    within = inner[:k, :k] @ inner[:k, :k].T - np.eye(k)
    return np.asarray(s[:, None] * (np.eye(len(s)) + Q.T @ within @ Q) * s)
