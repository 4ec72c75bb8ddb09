"""How the project compiles its loops: one decorator, and calls without numba's type dispatch."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, Literal, TypeVar, cast, overload

import numba

from shoal.engine.intrinsics import Compiled, CompiledOnly, pipeline_of

F = TypeVar("F", bound=Callable[..., Any])

SUMS: dict[str, set[str]] = {
    "any order": {"reassoc", "nsz", "contract"},  # vectorised; NaN and inf keep their meaning
    "in order": {"contract"},  # not vectorised: for loops that SIMD gathers would make 2 to 3 times slower
    "exact": set(),  # products are rounded before they are added: the same bits however it is compiled
}


@overload
def kernel(function: F, /) -> F: ...


@overload
def kernel(
    *,
    entry: bool = False,
    allocates: bool = False,
    inline: bool = True,
    sums: Literal["any order", "in order", "exact"] = "any order",
    disjoint: bool = False,
    alone: bool = True,
) -> Callable[[F], F]: ...


def kernel(
    function: Any = None,
    /,
    *,
    entry: bool = False,
    allocates: bool = False,
    inline: bool = True,
    sums: Literal["any order", "in order", "exact"] = "any order",
    disjoint: bool = False,
    alone: bool = True,
) -> Any:
    """Compile a function: cached on disk, without the GIL, division by zero as in NumPy.

    Parameters
    ----------
    entry : bool
        Python calls it too. Otherwise only compiled code may, and a call from Python raises TypeError: the wrapper
        for Python would take a third of the time to compile.
    allocates : bool
        It makes arrays. Otherwise it counts no references, which would cost 6 ns for each array and call.
    inline : bool
        True: LLVM inlines it. False: it is called, for rare or long work, whose copies in all callers take minutes
        to compile.
    sums : {"any order", "in order", "exact"}
        What the compiler may do to sums of floats; see `SUMS`.
    disjoint : bool
        None of its arrays overlap. Without that promise, loops over more than three are not vectorised.
    alone : bool
        False: unless Python calls it, it is optimised, and becomes machine code, only within its callers. What calls
        many such functions compiles in two thirds of the time; a loop over all tasks may be 20 % slower there.
    """

    def compiled(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": allocates}
        options["fastmath"] = SUMS[sums]  # even if empty: numba would inherit the caller's
        options |= {"forceinline": True} if inline else {}
        pipeline = pipeline_of(disjoint, alone=alone or entry)
        if entry:
            return cast(F, Compiled.of(function, pipeline, **options))
        return cast(F, CompiledOnly.of(function, pipeline, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options))

    return compiled if function is None else compiled(function)


@cache
def _entry_points(function: Any, settings: Hashable, state: Hashable, dtype: Hashable) -> dict[str, Any]:
    return {}


def call(function: Any, rounds: Any, settings: Any, state: Any, out: Any, dtype: Hashable, *more: Any) -> Any:
    """function(rounds, settings, state, out, *more) without numba's type dispatch: 1 us a call instead of 5.

    The kinds of named tuple, and what the weights are stored in, fix the types of all that they hold, so the compiled
    code is found by them alone.
    """
    kinds: tuple[Any, Any] = (type(settings), type(state))
    found = _entry_points(function, *kinds, dtype)
    if not found:
        types = tuple(map(numba.typeof, (rounds, settings, state, out, *more)))
        found["entry"] = function.compile(types)
    return found["entry"](rounds, settings, state, out, *more)
