"""The version of code: a hash of a module's source and of every module of the package that it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

PACKAGE = "shoal"


def version_of(modules: Iterable[str]) -> str:
    """A hash that changes when the source of one of the modules, or of what it needs, changes.

    Examples
    --------
    >>> version_of(["shoal.losses"]) == version_of(["shoal.losses"])
    True
    >>> version_of(["shoal.losses"]) == version_of(["shoal.online.osmtl"])
    False
    """
    return _version(frozenset(modules))


@cache
def _version(modules: frozenset[str]) -> str:
    needed = sorted(set().union(*(closure(module) for module in modules)))
    content = "".join(f"{module}\n{_source(module)}" for module in needed)
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def closure(module: str) -> frozenset[str]:
    """The module and all modules of the package that it needs, directly or not."""
    known, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in known:
            known.add(name)
            waiting.extend(_imports(name))
    return frozenset(known)


@cache
def _imports(module: str) -> tuple[str, ...]:
    return tuple(_imported(module))


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # the parent is a module: the name is a function or class in it
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


@cache
def _source(module: str) -> str:
    """With what a package loads lazily, which is written in the stub beside it."""
    path = _file(module)
    assert path is not None
    stub = path.with_suffix(".pyi")
    return path.read_text(encoding="utf-8") + (stub.read_text(encoding="utf-8") if stub.is_file() else "")


def _imported(module: str) -> Iterator[str]:
    path = _file(module)
    assert path is not None
    if module == PACKAGE:  # its stub names everything; who needs a part of it says which
        return
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            named = [f"{base}.{alias.name}" for alias in node.names]  # a module of a package needs none of the others
            names = [name if _is_ours(name) else base for name in named]
        else:
            continue
        yield from filter(_is_ours, names)


def _is_ours(name: str) -> bool:
    return f"{name}.".startswith(f"{PACKAGE}.") and _file(name) is not None
