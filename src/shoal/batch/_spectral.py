"""Penalties on a weight matrix, by their proximal operators.

Each maps Z and s to W = argmin s penalty(W) + ½||W - Z||², and returns W and penalty(W).
"""

from __future__ import annotations

import numpy as np

from shoal.engine.arrays import FloatArray


def _svd(Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    U, values, V = np.linalg.svd(Z, full_matrices=False)
    return U, values, V


def nuclear(Z: FloatArray, s: float, strength: float) -> tuple[FloatArray, float]:
    """strength ||W||_*: singular values v become [v - s strength]_+."""
    U, values, V = _svd(Z)
    kept = np.maximum(0.0, values - s * strength)
    return (U * kept) @ V, strength * float(kept.sum())


def squared_nuclear(Z: FloatArray, s: float, strength: float) -> tuple[FloatArray, float]:
    """strength ||W||_*²: singular values v become [v - t c]_+ with t = 2 s strength and c = ||W||_*.

    c = (v_1 + ... + v_r)/(1 + r t) for the largest r with v_r > t c_r.
    """
    U, values, V = _svd(Z)
    t = 2.0 * s * strength
    sums = np.cumsum(values) / (1.0 + t * np.arange(1, len(values) + 1))
    alive = np.flatnonzero(values > t * sums)
    kept = np.maximum(0.0, values - t * sums[alive[-1]]) if len(alive) else np.zeros(len(values))
    return (U * kept) @ V, strength * float(kept.sum()) ** 2


def group_lasso(Z: FloatArray, s: float, strength: float) -> tuple[FloatArray, float]:
    """strength sum_j ||W[:, j]||: the weights that all tasks give to a feature shrink together, or vanish."""
    lengths = np.linalg.norm(Z, axis=0)
    kept = np.maximum(0.0, lengths - s * strength)
    return Z * (kept / np.where(lengths > 0.0, lengths, 1.0)), strength * float(kept.sum())
