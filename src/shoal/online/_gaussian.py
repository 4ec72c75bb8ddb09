"""The covariance S of a Gaussian over weights, kept as a factor F with S = F Fᵀ, and what a row does to it.

A row x with precision 1/lambda turns S into (S⁻¹ + x xᵀ/lambda)⁻¹. Taken literally, Sherman-Morrison subtracts, and
on rows of very different size rounding leaves an S with negative variances. Potter's form of the same update

    F <- F - beta (F f) fᵀ,    f = Fᵀ x,    beta = 1/(a + sqrt(lambda a)),    a = lambda + fᵀ f

cannot: S is positive semi-definite whatever F is. A diagonal S is the factor's one row; its update
1/s_j <- 1/s_j + x_j²/lambda is the diagonal Gaussian that minimises the same divergence.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import dot_all, squared_norm

LARGEST: Final = 1e150  # of a mean's entries: products with rows of that size are still finite


def prior(n: int | None, n_features: int, *, diagonal: bool) -> FloatArray:
    """Factors of S = I: (n, features, features), or (n, 1, features) if diagonal; without the n axis if None."""
    shape = (1 if diagonal else n_features, n_features)
    factor = np.zeros(shape if n is None else (n, *shape))  # untouched pages: what exceeds memory fails at once
    j = np.arange(n_features)
    factor[..., 0 if diagonal else j, j] = 1.0
    return factor


def covariance(factor: FloatArray, *, diagonal: bool) -> FloatArray:
    """S, or its diagonal."""
    return np.asarray(factor[..., 0, :] ** 2 if diagonal else factor @ np.swapaxes(factor, -1, -2))


@kernel(entry=True, allocates=True)
def _dot(u: FloatArray, v: FloatArray) -> float:
    total = 0.0
    for j in range(len(u)):
        total += u[j] * v[j]
    return total


@kernel(entry=True, allocates=True)
def _shrunk(v: float, lam: float) -> float:
    """lambda v/(lambda + v): the variance v along a row after that row."""
    return v * (lam / (lam + v))


@kernel(entry=True, allocates=True)
def _row_span(rounds: Rounds, row: int) -> tuple[int, int]:
    """First entry of a row in `values`, and how many there are."""
    if rounds.width > 0:
        return row * rounds.width, rounds.width
    return rounds.indptr[row], rounds.indptr[row + 1] - rounds.indptr[row]


@kernel(entry=True, allocates=True)
def variance(
    rounds: Rounds, row: int, factor: FloatArray, lam: float, diagonal: bool, post: bool, f: FloatArray
) -> float:
    """xᵀ S x, or what it will be once S has taken in the row (`post`). `f` is work space."""
    if not diagonal:
        dot_all(rounds, row, factor, f)
        v = _dot(f, f)
        return _shrunk(v, lam) if post else v
    start, n = _row_span(rounds, row)
    total = 0.0
    for p in range(start, start + n):
        j = p - start if rounds.width > 0 else rounds.indices[p]
        v = (factor[0, j] * rounds.values[p]) ** 2
        total += _shrunk(v, lam) if post else v
    return total


@kernel(entry=True, allocates=True)
def prior_variance(rounds: Rounds, row: int, lam: float, diagonal: bool, post: bool) -> float:
    """The `variance` of a row where S = I."""
    if not diagonal:
        v = squared_norm(rounds, row)
        return _shrunk(v, lam) if post else v
    start, n = _row_span(rounds, row)
    total = 0.0
    for p in range(start, start + n):
        v = rounds.values[p] ** 2
        total += _shrunk(v, lam) if post else v
    return total


@kernel(entry=True, allocates=True)
def condition(rounds: Rounds, row: int, factor: FloatArray, lam: float, diagonal: bool, f: FloatArray) -> float:
    """S <- (S⁻¹ + x xᵀ/lambda)⁻¹ (eqs. 2 and 4); returns xᵀ S x with the new S. `f` is work space."""
    if diagonal:
        return _condition_diagonal(rounds, row, factor[0], lam)
    dot_all(rounds, row, factor, f)
    v = _dot(f, f)
    if v > 0.0:
        beta = 1.0 / (lam + v + math.sqrt(lam) * math.sqrt(lam + v))
        for i in range(len(factor)):
            scale = beta * _dot(factor[i], f)
            if scale != 0.0:  # features that never met those of the row
                for j in range(len(f)):
                    factor[i, j] -= scale * f[j]
    return _shrunk(v, lam)


@kernel(entry=True, allocates=True, sums="in order")
def _condition_diagonal(rounds: Rounds, row: int, deviation: FloatArray, lam: float) -> float:
    start, n = _row_span(rounds, row)
    total = 0.0
    for p in range(start, start + n):
        j = p - start if rounds.width > 0 else rounds.indices[p]
        v = (deviation[j] * rounds.values[p]) ** 2
        deviation[j] *= math.sqrt(lam / (lam + v))
        total += _shrunk(v, lam)
    return total


@kernel(entry=True, allocates=True)
def pull(
    rounds: Rounds, row: int, factor: FloatArray, scale: float, diagonal: bool, f: FloatArray, mean: FloatArray
) -> None:
    """mean <- mean + scale S x, held below `LARGEST`. `f` is work space."""
    if not diagonal:
        dot_all(rounds, row, factor, f)
        for i in range(len(mean)):
            mean[i] = _bounded(mean[i] + scale * _dot(factor[i], f))
        return
    start, n = _row_span(rounds, row)
    for p in range(start, start + n):
        j = p - start if rounds.width > 0 else rounds.indices[p]
        mean[j] = _bounded(mean[j] + scale * (factor[0, j] * (factor[0, j] * rounds.values[p])))


@kernel(entry=True, allocates=True)
def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
