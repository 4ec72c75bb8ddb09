"""Compile loops whose arithmetic must be that of the source, to the last bit."""

from __future__ import annotations

from typing import Any, cast

import numba

from shoal.ops import F


def jit_exact(function: F) -> F:
    """Compile without reordering sums, which `shoal.ops.jit` allows: results may not depend on the compiler's mood."""
    return _compile(function)


def leaf_exact(function: F) -> F:
    """`jit_exact`, inlined, for short functions that allocate nothing: they count no references to their arrays."""
    return _compile(function, forceinline=True, _nrt=False)


def leaf_exact_apart(function: F) -> F:
    """`leaf_exact` that is called, not inlined: for long functions, whose copies would take long to compile."""
    return _compile(function, _nrt=False)


def _compile(function: F, **options: Any) -> F:
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
