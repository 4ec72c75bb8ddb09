"""The version of code: a hash of the source of a module, or of one function, and of all of the package it needs."""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

PACKAGE = "shoal"


def version_of(modules: Iterable[str]) -> str:
    """A hash that changes when the source of one of the modules, or of what it needs, changes.

    Examples
    --------
    >>> version_of(["shoal.engine.losses"]) == version_of(["shoal.engine.losses"])
    True
    >>> version_of(["shoal.engine.losses"]) == version_of(["shoal.online.osmtl"])
    False
    """
    return _version(frozenset(modules))


@cache
def _version(modules: frozenset[str]) -> str:
    needed = sorted(set().union(*(closure(module) for module in modules)))
    content = "".join(f"{module}\n{_source(module)}" for module in needed)
    return hashlib.sha256(content.encode()).hexdigest()


def version_of_function(function: Callable[..., Any]) -> str:
    """A hash of the function, of the parts of its module that it names, and of the modules that these need.

    Comments and all else in its module (published numbers, pictures, other protocols) do not count.

    Examples
    --------
    >>> from shoal.papers import protocols
    >>> version_of_function(protocols.split) == version_of_function(protocols.answered)
    False
    """
    return _version_of_function(function.__module__, function.__qualname__)


@cache
def _version_of_function(module: str, name: str) -> str:
    defined = _definitions(module)
    own: dict[str, ast.stmt] = {}
    needed: set[str] = set()
    waiting = [name]
    while waiting:
        known = waiting.pop()
        node = defined.get(known)
        if node is None or known in own:
            continue
        own[known] = node
        needed.update(_imported(module, node))
        waiting.extend(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
    content = "".join(f"{known}\n{ast.unparse(own[known])}\n" for known in sorted(own))
    return hashlib.sha256((content + version_of(needed)).encode()).hexdigest()


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """The statements at a module's top level by the names that they bind."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(_source(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0]: _only(node, alias) for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            # Of the targets only: the loop variables of a comprehension are not the module's.
            found |= {part.id: node for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def _only(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    """The import of that one name."""
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)


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
    if module == PACKAGE:  # its stub names everything; modules import the parts they need by name
        return ()
    return tuple(_imported(module, ast.parse(_source(module))))


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


def _imported(module: str, code: ast.AST) -> Iterator[str]:
    """Our modules that this piece of the module imports."""
    path = _file(module)
    assert path is not None
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            named = [f"{base}.{alias.name}" for alias in node.names]  # a module of a package needs none of the others
            names = [name if _is_of_shoal(name) else base for name in named]
        else:
            continue
        yield from filter(_is_of_shoal, names)


def _is_of_shoal(name: str) -> bool:
    return f"{name}.".startswith(f"{PACKAGE}.") and _file(name) is not None
