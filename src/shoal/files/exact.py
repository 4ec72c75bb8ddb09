"""Compile loops whose arithmetic must be that of the source, to the last bit."""

from __future__ import annotations

from typing import cast

import numba

from shoal.ops import F


def jit_exact(function: F) -> F:
    """Compile without reordering sums, which `shoal.ops.jit` allows: results may not depend on the compiler's mood."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def leaf_exact(function: F) -> F:
    """`jit_exact`, inlined, for functions that allocate nothing: they count no references to their arrays."""
    options = {"cache": True, "nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": False}
    return cast(F, numba.njit(**options)(function))
