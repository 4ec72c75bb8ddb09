"""Array types, and arrays laid out for caches and SIMD loops."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int32]
T = TypeVar("T", bound=np.generic)

LINE = 64  # bytes of a cache line
HUGE_PAGE = 2**21  # bytes; NumPy asks Linux for such pages where an array has twice as many bytes
LANES = 16  # tasks are padded to what one turn of the compiler's AVX loop takes, so that none is left over
FLOAT64 = np.dtype(np.float64)  # a comparison with np.float64 would make a dtype of it each time


def for_kernels(numbers: NDArray[Any]) -> FloatArray:
    """The array itself if it is contiguous, writable float64, as kernels take it; else a copy that is."""
    if numbers.dtype == FLOAT64 and numbers.flags.carray:
        return numbers
    return np.require(numbers, np.float64, ["C", "W"])  # which takes half a microsecond to find that out


def lengthened(array: NDArray[T], size: int) -> NDArray[T]:
    """A copy with zeros behind it."""
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


def aligned_zeros(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Zeros aligned to a cache line, so that no 64-byte record straddles two: np.zeros may begin anywhere.

    Large arrays begin at a huge page: up to its first boundary, memory comes in pages of 4 KiB, each when it is first
    written, which is up to 500 times a microsecond or more.
    """
    return _aligned(np.zeros, shape, np.dtype(dtype))


def aligned_empty(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """The same of any numbers."""
    return _aligned(np.empty, shape, np.dtype(dtype))


def _aligned(make: Callable[..., NDArray[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    n = math.prod(shape)
    edge = LINE if n * dtype.itemsize < 2 * HUGE_PAGE else HUGE_PAGE
    numbers = make(n + edge // dtype.itemsize, dtype)
    first = -numbers.ctypes.data % edge // dtype.itemsize
    return numbers[first : first + n].reshape(shape)
