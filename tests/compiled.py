"""Compiled functions that have no wrapper for Python, made callable."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher


def from_python(function: Any) -> Callable[..., Any]:
    """The function with a wrapper."""

    @numba.njit
    def entry(*arguments: Any) -> Any:
        return function(*arguments)

    called: Callable[..., Any] = entry
    return called


def called_without_wrapper(module: Any) -> set[str]:
    """Compiled functions without a wrapper that plain functions of the module call: that would end the process."""
    return {
        f"{module.__name__}.{function.__qualname__} calls {name}"
        for function in _plain_functions(module)
        for code in _codes(function.__code__)
        for name in code.co_names
        for found in _meant(name, code, function.__globals__)
        if isinstance(found, Dispatcher) and found.targetoptions.get("no_cpython_wrapper")
    }


def _plain_functions(module: Any) -> Iterator[types.FunctionType]:
    for found in vars(module).values():
        if getattr(found, "__module__", None) != module.__name__:
            continue
        members = vars(found).values() if isinstance(found, type) else [found]
        for member in members:
            inner = next((getattr(member, a) for a in ("fget", "__func__", "func") if hasattr(member, a)), member)
            inner = getattr(getattr(inner, "hypothesis", None), "inner_test", inner)
            if callable(inner) and not isinstance(inner, Dispatcher):
                inner = inspect.unwrap(inner)
            if isinstance(inner, types.FunctionType):
                yield inner


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _meant(name: str, code: types.CodeType, scope: dict[str, Any]) -> Iterator[Any]:
    """What the name may stand for: something global, or an attribute of a module of ours."""
    if name in scope:
        yield scope[name]
        return
    for other in code.co_names:
        if isinstance(module := scope.get(other), types.ModuleType) and module.__name__.startswith("shoal"):
            yield getattr(module, name, None)
