"""Kernel functions k(x, z): by name for compiled loops, or any function of two 2-d arrays.

A function cannot be called from compiled code: its values for the rows at hand are computed before, and the loops
look them up. Nothing else tells the two kinds apart.
"""

import math
import threading
from typing import Any, Final, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, for_kernels
from shoal.engine.compile import kernel

LINEAR: Final = 0
RBF: Final = 1
FUNCTION: Final = 2
NO_VALUES = np.zeros((0, 0))
NO_SLOTS = np.zeros(0, np.int64)
_thread = threading.local()


class KernelFunction(NamedTuple):
    """A kernel function as compiled loops take it, with a call's kernel values for functions of users."""

    kind: int
    gamma: float
    scratch: FloatArray  # (>= features,) zeros, where a sparse row is laid out
    values: FloatArray  # (stored + rows, rows) a function's values, or (0, 0)
    slots: IntArray  # (>= stored,) the line of `values` that belongs to each stored row, or (0,)


def resolve(kernel: Any, gamma: float) -> KernelFunction:
    """Read `kernel=` and `gamma=`.

    Parameters
    ----------
    kernel : "linear", "rbf" or a function
        <x, z>; exp(-gamma ||x - z||^2); or of two arrays (n, d) and (m, d) the (n, m) values, such as
        `sklearn.metrics.pairwise.laplacian_kernel`.

    Raises
    ------
    ValueError
        If the kernel has another name, or gamma is not a finite number > 0.
    """
    if not (isinstance(kernel, str) and kernel in ("linear", "rbf")) and not callable(kernel):
        raise ValueError(f"kernel must be 'linear', 'rbf' or a function of two 2-d arrays, got {kernel!r}")
    if not (gamma > 0 and math.isfinite(gamma)):
        raise ValueError(f"gamma must be a finite number > 0, got {gamma}")
    kind = FUNCTION if callable(kernel) else LINEAR if kernel == "linear" else RBF
    return KernelFunction(kind, float(gamma), zeros(0), NO_VALUES, NO_SLOTS)


def evaluate(function: Any, X: FloatArray, Z: FloatArray) -> FloatArray:
    """function(X, Z), checked.

    Raises
    ------
    ValueError
        If it is not a finite (len(X), len(Z)) matrix.
    """
    values = np.asarray(function(X, Z), np.float64)
    if values.shape != (len(X), len(Z)) or not np.isfinite(values).all():
        raise ValueError(
            f"the kernel function must return finite numbers of shape {(len(X), len(Z))} for arrays of "
            f"{len(X)} and {len(Z)} rows, got shape {values.shape}"
        )
    return for_kernels(values)


def matrix(kernel: Any, gamma: float, X: Any, Z: Any) -> FloatArray:
    """(n, m) k(x, z) for the rows of two matrices, dense or sparse; a function is called with dense ones."""
    from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

    if callable(kernel):
        return evaluate(kernel, *(A.toarray() if hasattr(A, "toarray") else A for A in (X, Z)))
    if kernel == "linear":
        return np.asarray(linear_kernel(X, Z))
    with np.errstate(over="ignore"):  # exp(-infinity) is 0
        return np.asarray(rbf_kernel(X, Z, gamma=gamma))


def zeros(n: int) -> FloatArray:
    """At least n zeros that the caller leaves as zeros: one array a thread, so that no row costs O(d)."""
    have: FloatArray = getattr(_thread, "zeros", np.zeros(0))
    if len(have) < max(n, 1):
        have = _thread.zeros = np.zeros(max(n, 2 * len(have), 64))
    return have


@kernel
def of_product(kernel: KernelFunction, product: float, norm_x: float, norm_z: float) -> float:
    """k(x, z) from <x, z>, ||x||^2 and ||z||^2."""
    if kernel.kind == LINEAR:
        return product
    return math.exp(-kernel.gamma * max(0.0, norm_x + norm_z - 2.0 * product))
