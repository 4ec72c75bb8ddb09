"""The covariance S of a Gaussian over weights, kept as a factor F with S = F Fᵀ, and what a row does to it.

A row x with precision 1/lambda turns S into (S⁻¹ + x xᵀ/lambda)⁻¹. Taken literally, Sherman-Morrison subtracts, and
on rows of very different size rounding leaves an S with negative variances. Potter's form of the same update

    F <- F - beta (F f) fᵀ,    f = Fᵀ x,    beta = 1/(a + sqrt(lambda a)),    a = lambda + fᵀ f

cannot: S is positive semi-definite whatever F is. A diagonal S is the factor's one row; its update
1/s_j <- 1/s_j + x_j²/lambda is the diagonal Gaussian that minimises the same divergence. Between the two are precisions
that are diagonal plus rank m, see `_low_rank`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import dot_all, squared_norm
from shoal.online._low_rank import low_rank_condition, low_rank_covariance, low_rank_product, low_rank_variance

LARGEST: Final = 1e150  # of a mean's entries: products with rows of that size are still finite


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
    # Untouched pages: what exceeds memory fails at once.
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
def _dot(u: FloatArray, v: FloatArray) -> float:
    total = 0.0
    for j in range(len(u)):
        total += u[j] * v[j]
    return total


@kernel
def _shrunk(v: float, lam: float) -> float:
    """lambda v/(lambda + v): the variance v along a row after that row."""
    return v * (lam / (lam + v))


@kernel
def _row_span(rounds: Rounds, row: int) -> tuple[int, int]:
    """First entry of a row in `values`, and how many there are."""
    if rounds.width > 0:
        return row * rounds.width, rounds.width
    return rounds.indptr[row], rounds.indptr[row + 1] - rounds.indptr[row]


@kernel
def variance(rounds: Rounds, row: int, S: Covariance, lam: float, form: int, post: bool, f: FloatArray) -> float:
    """xᵀ S x, or what it will be once S has taken in the row (`post`). `f` is work space."""
    factor = S.factor
    if form > 0:
        v = low_rank_variance(rounds, row, factor, S.inner, S.used[0], f)
        return _shrunk(v, lam) if post else v
    if form == FULL:
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


@kernel
def prior_variance(rounds: Rounds, row: int, lam: float, form: int, post: bool) -> float:
    """The `variance` of a row where S = I."""
    if form != DIAGONAL:
        v = squared_norm(rounds, row)
        return _shrunk(v, lam) if post else v
    start, n = _row_span(rounds, row)
    total = 0.0
    for p in range(start, start + n):
        v = rounds.values[p] ** 2
        total += _shrunk(v, lam) if post else v
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
    v = _dot(f, f)
    if v > 0.0:
        beta = 1.0 / (lam + v + math.sqrt(lam) * math.sqrt(lam + v))
        for i in range(len(factor)):
            scale = beta * _dot(factor[i], f)
            if scale != 0.0:  # features that never met those of the row
                for j in range(len(f)):
                    factor[i, j] -= scale * f[j]
    return _shrunk(v, lam)


@kernel(sums="in order")
def _condition_diagonal(rounds: Rounds, row: int, deviation: FloatArray, lam: float) -> float:
    start, n = _row_span(rounds, row)
    total = 0.0
    for p in range(start, start + n):
        j = p - start if rounds.width > 0 else rounds.indices[p]
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
            mean[i] = _bounded(mean[i] + scale * _dot(factor[i], f))
        return
    start, n = _row_span(rounds, row)
    for p in range(start, start + n):
        j = p - start if rounds.width > 0 else rounds.indices[p]
        mean[j] = _bounded(mean[j] + scale * (factor[0, j] * (factor[0, j] * rounds.values[p])))


@kernel
def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)
