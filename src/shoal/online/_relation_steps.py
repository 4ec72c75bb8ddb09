"""Steps of a relation B = A^-1 towards the Gram matrix G = W'W of the tasks' weights (Saha et al., AISTATS 2011).

    logdet       B <- B + eta G              minimises D_LogDet(A || A_old) + eta tr(W A W')
    von Neumann  B <- exp(log B + eta G)     minimises D_vonNeumann(A || A_old) + eta tr(W A W')
    covariance   B <- cov of the columns of W + 1e-6 I
    batch        B <- G^(1/2) / tr G^(1/2)   minimises tr(W B^-1 W') over tr B = 1 (Zhang, Yeung)

Tasks without weights are related to none, in all four. Eigenvectors are taken of the others' part only: rounding
would else relate them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel

LOGDET: Final = 0
VON_NEUMANN: Final = 1
COVARIANCE: Final = 2
BATCH: Final = 3
DIVERGENCES: Final = {"logdet": LOGDET, "von-neumann": VON_NEUMANN, "covariance": COVARIANCE, "batch": BATCH}
RIDGE: Final = 1e-6


@kernel(allocates=True, inline=False)
def _fill(values: FloatArray, vectors: FloatArray, tasks: IntArray, B: FloatArray) -> None:
    """B[tasks, tasks] <- V diag(values) V', exactly symmetric."""
    scaled = np.empty_like(vectors)
    for a in range(len(tasks)):
        for b in range(len(tasks)):
            scaled[a, b] = vectors[a, b] * values[b]
    part = np.dot(scaled, vectors.T)
    for a in range(len(tasks)):
        for b in range(a + 1):
            B[tasks[a], tasks[b]] = part[a, b]
            B[tasks[b], tasks[a]] = part[a, b]


@kernel(allocates=True, inline=False)
def _eigen(matrix: FloatArray, tasks: IntArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of matrix[tasks, tasks]."""
    part = np.empty((len(tasks), len(tasks)))
    for a in range(len(tasks)):
        for b in range(len(tasks)):
            part[a, b] = matrix[tasks[a], tasks[b]]
    return np.linalg.eigh(part)


@kernel(allocates=True, inline=False)
def _exponential(L: FloatArray, tasks: IntArray, normalize: bool, B: FloatArray) -> None:
    """B <- exp(L); normalized, with 1 as its largest eigenvalue, and L as the logarithm of that."""
    values, vectors = _eigen(L, tasks)
    shift = 0.0
    if normalize:
        idle = np.ones(len(L), np.bool_)
        idle[tasks] = False
        shift = values[-1]
        for k in range(len(L)):
            if idle[k]:
                shift = max(shift, L[k, k])
    for k in range(len(L)):
        L[k, k] -= shift
        B[k, k] = math.exp(L[k, k])
    for a in range(len(values)):
        values[a] = math.exp(values[a] - shift)
    _fill(values, vectors, tasks, B)


@kernel(allocates=True, inline=False)
def _root(G: FloatArray, tasks: IntArray, B: FloatArray) -> None:
    """B <- G^(1/2) / tr G^(1/2)."""
    values, vectors = _eigen(G, tasks)
    total = 0.0
    for a in range(len(values)):
        values[a] = math.sqrt(max(values[a], 0.0))  # rounding makes zeros slightly negative
        total += values[a]
    for a in range(len(values)):
        values[a] /= total
    _fill(values, vectors, tasks, B)


@kernel(allocates=True, inline=False)
def _is_finite(matrix: FloatArray) -> bool:
    finite = True
    for j in range(len(matrix)):
        for k in range(len(matrix)):
            finite &= math.isfinite(matrix[j, k])
    return finite


@kernel(allocates=True, inline=False)
def _step(
    divergence: int, eta: float, normalize: bool, G: FloatArray, sums: FloatArray, n_features: int, tasks: IntArray,
    B: FloatArray, L: FloatArray,
) -> bool:  # fmt: skip
    """B and log B, copies of the old ones, to the new ones; False if the decomposition would meet infinity."""
    K = len(G)
    for j in range(K):
        for k in range(K):
            if divergence == LOGDET:
                B[j, k] += eta * G[j, k]
            elif divergence == VON_NEUMANN:
                L[j, k] += eta * G[j, k]
                B[j, k] = 0.0
            elif divergence == COVARIANCE:
                B[j, k] = (G[j, k] - sums[j] * sums[k] / n_features) / max(n_features - 1, 1)
                B[j, k] += RIDGE if j == k else 0.0
            else:
                B[j, k] = 0.0
    if divergence == VON_NEUMANN:
        if not _is_finite(L):
            return False
        _exponential(L, tasks, normalize, B)
    elif divergence == BATCH:
        _root(G, tasks, B)
    return True


@kernel(allocates=True, inline=False)
def next_relation(
    divergence: int, eta: float, normalize: bool, gram: FloatArray, sums: FloatArray, n_features: int,
    relation: FloatArray, log_relation: FloatArray,
) -> bool:  # fmt: skip
    """One step of B, and of log B for von Neumann; or none, and False, if it would leave the range of doubles.

    `gram` is exactly symmetric. `sums` of the columns of W and `n_features`, its rows, are for the covariance.
    """
    K = len(gram)
    tasks = np.array([k for k in range(K) if gram[k, k] > 0.0], np.int64)
    if not _is_finite(gram):
        return False
    if len(tasks) == 0:
        return True
    B, L = relation.copy(), log_relation.copy()
    if not _step(divergence, eta, normalize, gram, sums, n_features, tasks, B, L):
        return False
    trace = 0.0
    for k in range(K):
        trace += B[k, k]
    if not (0.0 < trace < np.inf and _is_finite(B)):
        return False
    scale = K / trace if normalize else 1.0
    for j in range(K):
        for k in range(K):
            relation[j, k] = scale * B[j, k]
    for j in range(len(L)):
        for k in range(len(L)):
            log_relation[j, k] = L[j, k] + (math.log(scale) if j == k else 0.0)
    return True
