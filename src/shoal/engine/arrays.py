"""Array types, and arrays laid out for caches and SIMD loops."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int32]

LINE = 64  # bytes of a cache line
LANES = 16  # tasks are padded to what one turn of the compiler's AVX loop takes, so that none is left over


def aligned_zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros aligned to a cache line, so that no 64-byte record straddles two: np.zeros may begin anywhere."""
    dtype = np.dtype(dtype)
    n, spare = math.prod(shape), LINE // dtype.itemsize
    numbers = np.zeros(n + spare, dtype)
    first = -numbers.ctypes.data % LINE // dtype.itemsize
    return numbers[first : first + n].reshape(shape)
