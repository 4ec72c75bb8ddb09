"""Compile loops whose arithmetic must be that of the source, to the last bit."""

from __future__ import annotations

from typing import Any, cast

import numba

from shoal.ops import INNER, F


def jit_exact(function: F) -> F:
    """Compile without reordering sums, which `shoal.ops.jit` allows: results may not depend on the compiler's mood."""
    return _compile(function)


def leaf_exact(function: F) -> F:
    """`jit_exact`, inlined, for short functions that allocate nothing: they count no references to their arrays.

    Only compiled code may call them: they have no wrapper for Python, which would take time to compile.
    """
    return _compile(function, forceinline=True, _nrt=False, **INNER)


def leaf_exact_pasted(function: F) -> F:
    """`leaf_exact` whose source is put into its only caller: a long function is then compiled once and not twice."""
    return _compile(function, inline="always", _nrt=False, **INNER)


def leaf_exact_apart(function: F) -> F:
    """`leaf_exact` that is called, not inlined: for long functions, whose copies would take long to compile."""
    return _compile(function, _nrt=False, **INNER)


def leaf_exact_entry(function: F) -> F:
    """`leaf_exact_apart` that Python calls too."""
    return _compile(function, _nrt=False)


def _compile(function: F, **options: Any) -> F:
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
