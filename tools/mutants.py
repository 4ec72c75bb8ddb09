"""Plant faults in a file, one at a time, and say which of them no test notices. No part of `make test`.

    make mutants FILE=src/shoal/serve/limits.py
    make mutants FILE="src/shoal/papers/ranks.py src/shoal/papers/fairness.py" TESTS=tests/papers SAMPLE=50
    make mutants FILE=src/shoal FILES=3 SAMPLE=5    # five faults in each of three files of each room

The tests of a file are its examples, those with its name (`tests/serve/test_limits*.py`) and those that import it, or
else those of the modules that import it; TESTS says which others. Faults: comparisons, signs, operators, and for or,
numbers off by one, arguments swapped, abs dropped, min for max, locks not taken, guards never or always taken, calls
and updates left out. Nothing is written to the disk: each fault runs in a fork of this process, into which the changed
source is imported. A process that a test starts anew (`python -m shoal`) imports the file as it is.

What may survive, and no test is to be written for: faults that cost time or memory alone (how many rows a call has);
defaults, grids and looks (the padding of a picture, `frozen=True` of a record), which are choices; guards of what only
rounding brings about, or of what another guard refuses before; names that need only differ (the keys of a stream's
pieces); ends of threads that end by themselves (`BackgroundIterator`, after an error).

A file of kernels runs as plain Python, for compiling takes seconds a fault, and numba's cache would not see the change.

Why no other tool: mutmut 3 calls every changed function through a function of `*args`, which no kernel can call and
which numba cannot compile. cosmic-ray writes into the tree and starts a process a fault, and of its 340 faults in
`papers/ranks.py` most (`<<` for `|`, in annotations too) fail when they are imported, while locks, arguments and left
out calls, which our tests did not notice, are not among them.
"""

import argparse
import ast
import gc
import importlib
import os
import random
import re
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import plain_kernels

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
TIMES, SECONDS = 4, 10  # a fault may take so many times as long as no fault, and so many seconds more
COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"), ast.Eq: ("!=",),
    ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//", ast.Pow: "*",
    ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|", ast.LShift: ">>", ast.RShift: "<<",
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
ANY_ORDER = {"min", "max", "minimum", "maximum", "isinstance"}  # of their arguments
DROPPED = {"abs", "sorted", "reversed", "round", "clip"}  # f(x, ...) becomes x
NEEDED = (
    "pytest", "_hypothesis_pytestplugin", "xdist.plugin", "hypothesis.strategies", "schemathesis", "requests", "httpx",
    "typer.testing", "numba", "scipy.stats", "sklearn.base", "sqlalchemy", "polars",
)  # fmt: skip
IMPORTED_BEFORE = "ignore::pytest.PytestAssertRewriteWarning"
NO_LOCK = '__import__("contextlib").nullcontext()'


class Mutant(NamedTuple):
    """A fault: a place of the source, in bytes, and what is put there instead."""

    start: int
    end: int
    new: str

    def planted(self, source: bytes) -> bytes:
        """The source with it."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def shown(self, source: bytes) -> str:
        """Its line, the lines as they are, and as they become."""
        first, last = source.rfind(b"\n", 0, self.start) + 1, source.find(b"\n", self.end)
        old, new = source[first:last], source[first : self.start] + self.new.encode() + source[self.end : last]
        texts = (" ".join(text.decode().split()) for text in (old, new))
        return f"{source.count(bytes([10]), 0, self.start) + 1}: {'  ->  '.join(texts)}"


# ---- which faults there are ------------------------------------------------------------------------------------


class Planter(ast.NodeVisitor):
    """Finds the faults of a source; annotations and documentation have none."""

    def __init__(self, source: bytes) -> None:
        self.mutants: list[Mutant] = []
        self._source = source
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self.visit(ast.parse(source))

    def _place(self, node: Any) -> tuple[int, int]:
        begin, end = self._starts[node.lineno - 1], self._starts[node.end_lineno - 1]
        return begin + node.col_offset, end + node.end_col_offset

    def _text(self, node: Any) -> str:
        begin, end = self._place(node)
        return self._source[begin:end].decode()

    def _plant(self, node: Any, *instead: str) -> None:
        self.mutants += [Mutant(*self._place(node), new) for new in instead]

    def _plant_operator(self, left: ast.expr, right: ast.expr, new: str) -> None:
        """Between two operands; the brackets and line breaks that stand there stay."""
        begin, end = self._place(left)[1], self._place(right)[0]
        between = self._source[begin:end].decode()
        closing, opening = between.rfind(")") + 1, len(between.rstrip("("))
        middle = between[closing:opening]
        blank = "\n" if "\n" in middle else " "
        self.mutants.append(Mutant(begin, end, f"{between[:closing]} {new}{blank}{between[opening:]}"))

    def visit_Compare(self, node: ast.Compare) -> None:
        for operator, (left, right) in zip(node.ops, pairwise([node.left, *node.comparators]), strict=True):
            for new in COMPARISONS[type(operator)]:
                self._plant_operator(left, right, new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in OPERATORS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self._plant_operator(node.left, node.right, OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._plant(node, "pass")
        if type(node.op) in OPERATORS:
            value = self._text(node.value)
            self._plant(node, f"{self._text(node.target)} {OPERATORS[type(node.op)]}= {value}")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = " or " if isinstance(node.op, ast.And) else " and "
        self._plant(node, "(" + other.join(f"({self._text(value)})" for value in node.values) + ")")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._plant(node, f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._plant(node, str(not node.value))
        elif isinstance(node.value, int):
            self._plant(node, str(node.value + 1))
        elif isinstance(node.value, float):
            self._plant(node, repr(2 * node.value if node.value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [one for one in node.args if not isinstance(one, ast.Starred)]
        if len(arguments) == len(node.args) and name not in ANY_ORDER:
            self._swap(arguments)
        self._swap([keyword.value for keyword in node.keywords if keyword.arg])
        if name in CALLS and isinstance(node.func, ast.Name | ast.Attribute):
            self._plant(node.func, self._text(node.func)[: -len(name)] + CALLS[name])
        if name in DROPPED and arguments:
            self._plant(node, f"({self._text(arguments[0])})")
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of `zip`: it finds faults, and is none
            self.visit(node.value)

    def _swap(self, values: list[ast.expr]) -> None:
        """Each with the next."""
        for one, other in pairwise(values):
            if self._text(one) != self._text(other):
                (begin, a), (b, end) = self._place(one), self._place(other)
                new = f"{self._text(other)}{self._source[a:b].decode()}{self._text(one)}"
                self.mutants.append(Mutant(begin, end, new))

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            # Locks stand there by name; what is called makes something that the block needs.
            if item.optional_vars is None and isinstance(item.context_expr, ast.Name | ast.Attribute):
                self._plant(item.context_expr, NO_LOCK)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return  # no program runs it
        self._plant(node.test, "False", "True")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._plant(node, f"({self._text(node.body)})", f"({self._text(node.orelse)})")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._plant(node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._plant(node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._plant(node, "continue")

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.targets[0], ast.Attribute | ast.Subscript) and not isinstance(node.value, ast.Constant):
            self._plant(node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Its sentence is no fault; whether it is raised is the guard's."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Nor is text."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function


def mutants_of(source: bytes) -> list[Mutant]:
    """All faults, in the order of lines; those that are no Python are left out."""
    found = sorted(set(Planter(source).mutants))
    return [one for one in found if _is_python(one.planted(source))]


def _is_python(source: bytes) -> bool:
    try:
        compile(source, "", "exec")
    except SyntaxError:
        return False
    return True


# ---- which tests ------------------------------------------------------------------------------------------------


def module_of(path: Path) -> str:
    """`shoal.serve.limits` of src/shoal/serve/limits.py."""
    parts = path.resolve().relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tests_of(path: Path) -> list[Path]:
    """Test files with the name of a file, the quickest to fail, then those that import it.

    Where there are none, those of the modules of its room that import it, and at last all of its room.
    """
    return _tests_of(path, set())


def _tests_of(path: Path, seen: set[Path]) -> list[Path]:
    seen.add(path)
    module = module_of(path)
    name, imports = module.rpartition(".")[2].strip("_"), _imports_of(module)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    rooms = [ROOT / "tests" / Path(*module.split(".")[1:n]) for n in range(1, module.count(".") + 1)]
    named = [one for one in files if one.parent in rooms and f"{one.stem}_".startswith(f"test_{name}_")]
    found = [*named, *(one for one in files if one not in named and imports.search(one.read_text("utf-8")))]
    if not found:
        for one in sorted((SOURCE / "shoal" / room_of(path)).rglob("*.py")):
            if one not in seen and imports.search(one.read_text("utf-8")):
                found += [test for test in _tests_of(one, seen) if test not in found]
    return found or sorted((ROOT / "tests" / room_of(path)).rglob("test_*.py"))


def _imports_of(module: str) -> re.Pattern[str]:
    room, _, name = module.rpartition(".")
    names = rf"(?:.*|\([^)]*)\b{name}\b"
    return re.compile(rf"(from|import) {re.escape(module)}\b|from {re.escape(room)} import {names}")


def room_of(path: Path) -> str:
    """`serve` of src/shoal/serve/http/door.py, and nothing for what stands beside the rooms."""
    return path.relative_to(SOURCE).parts[1] if len(path.relative_to(SOURCE).parts) > 2 else ""


def drawn_files(given: list[Path], n: int | None, seed: int) -> list[Path]:
    """The files, and those of the folders; `n` of each room if it is said."""
    rooms: dict[str, list[Path]] = {}
    files = [one for path in given for one in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    for file in dict.fromkeys(files):
        rooms.setdefault(room_of(file), []).append(file)
    drawn = random.Random(seed)
    return [
        one
        for found in rooms.values()
        for one in (found if n is None else sorted(drawn.sample(found, min(n, len(found)))))
    ]


# ---- one fault in a process of its own -----------------------------------------------------------------------------


class Changed(MetaPathFinder, Loader):
    """Imports one module from another source. As a plugin of pytest it stands before pytest's own imports.

    Those read the file itself if it is among the tests, as one with examples is.
    """

    def __init__(self, module: str, path: Path, source: bytes) -> None:
        self._module, self._path, self._source = module, path, source

    def pytest_load_initial_conftests(self) -> None:
        """Before anything of ours is imported."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Ours."""
        if name != self._module:
            return None
        folder = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return spec_from_file_location(name, self._path, loader=self, submodule_search_locations=folder)

    def exec_module(self, module: ModuleType) -> None:
        """Run the other source."""
        exec(compile(self._source, str(self._path), "exec"), module.__dict__)


def passes(path: Path, source: bytes, tests: list[str], seconds: float) -> bool | None:
    """Do the tests pass with this source? None if they were not done in time."""
    child = os.fork()
    if child == 0:
        os.setsid()
        code = 1
        try:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            code = _run(path, source, tests)
        finally:
            os._exit(code)
    ends = time.monotonic() + seconds
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < ends:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # it, or what it started
    if done == (0, 0):
        os.waitpid(child, 0)
        return None
    return os.waitstatus_to_exitcode(done[1]) == 0


def failing(path: Path, source: bytes, tests: list[str]) -> list[str]:
    """The ids of the tests that fail without a fault. What pytest says is shown."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            failures = Failures()
            code = _run(path, source, tests, "--maxfail=1000", plugins=[failures])
            os.write(writes, "\n".join(failures.ids).encode())
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads) as file:
        ids = file.read().split("\n")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [] if code == 0 else ids


class Failures:
    """A plugin of pytest that keeps the ids of tests that fail."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Of the setup, the test or the teardown."""
        if report.failed:
            self.ids.append(report.nodeid)


def _run(path: Path, source: bytes, tests: list[str], *more: str, plugins: Sequence[Any] = ()) -> int:
    import pytest

    options = ["-x", "-n", "0", "-p", "no:cacheprovider", "--no-header", "-W", IMPORTED_BEFORE, *more]
    if is_compiled(source):
        plain_kernels.enable()
        options += ["-W", "ignore::RuntimeWarning"]  # what overflows in compiled code does so without notice
    return int(pytest.main([*options, *tests], plugins=[Changed(module_of(path), path, source), *plugins]))


def is_compiled(source: bytes) -> bool:
    """Has it kernels?"""
    return b"@kernel" in source


def import_what_tests_need() -> None:
    """Once, for all forks; most of a short test's time is spent on it."""
    for name in NEEDED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # or the collector of each fork would write to all of it, and so copy it


def survivors(path: Path, tests: list[str], sample: int | None, seed: int) -> tuple[int, int]:
    """How many faults were planted, and how many no test noticed: their lines are printed."""
    source = path.read_bytes()
    found = mutants_of(source)
    if sample is not None and sample < len(found):
        found = sorted(random.Random(seed).sample(found, sample))
    if not found:
        return 0, 0
    if not tests:
        sys.exit(f"{path}: no test has its name or imports it; say TESTS=")
    begun = time.monotonic()
    if failed := failing(path, source, tests):
        if failed == [""] or not is_compiled(source):
            sys.exit(f"{path}: its tests fail without a fault")
        print(f"left out, for they need compiled code: {' '.join(failed)}", flush=True)
        tests = [*tests, *(f"--deselect={one}" for one in failed)]
    seconds = TIMES * (time.monotonic() - begun) + SECONDS
    left = 0
    for mutant in found:
        if passes(path, mutant.planted(source), tests, seconds):
            left += 1
            print(f"{path.relative_to(ROOT)}:{mutant.shown(source)}", flush=True)
    return len(found), left


def main() -> None:
    """Plant faults in files and print those that survive."""
    parser = argparse.ArgumentParser(description="Which faults would no test notice?")
    parser.add_argument("files", nargs="+", type=Path, help="or folders")
    parser.add_argument("--tests", nargs="+", default=[], help="files or folders, beside those found")
    parser.add_argument("--only", action="store_true", help="the tests that are given, and no others")
    parser.add_argument("--sample", type=int, help="plant so many faults a file; all by default")
    parser.add_argument("--files-of-a-room", type=int, metavar="N", help="draw so many files of each room")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ["CI"] = "1"  # Hypothesis draws the same examples each time
    sys.path[:0] = [str(ROOT), str(SOURCE)]
    from benchmarks.guard.processor import compile_for_haswell

    compile_for_haswell()
    import_what_tests_need()
    rooms: dict[str, list[int]] = {}
    for path in drawn_files([path.resolve() for path in given.files], given.files_of_a_room, given.seed):
        own = [] if given.only else [str(test.relative_to(ROOT)) for test in tests_of(path)]
        if ">>>" in path.read_text("utf-8"):
            own.append(str(path.relative_to(ROOT)))  # its examples
        tests = [*dict.fromkeys([*own, *given.tests])]
        print(f"{path.relative_to(ROOT)}: {' '.join(tests)}", flush=True)
        planted, left = survivors(path, tests, given.sample, given.seed)
        print(f"{path.relative_to(ROOT)}: {planted} faults, {left} survived", flush=True)
        numbers = rooms.setdefault(room_of(path), [0, 0])
        numbers[:] = numbers[0] + planted, numbers[1] + left
    print(table(rooms))


def table(rooms: dict[str, list[int]]) -> str:
    """Faults planted, noticed and survived, by room."""
    rooms = rooms | {"all": [sum(column) for column in zip(*rooms.values(), strict=True)]}
    lines = [f"{name:12}{n:8}{n - left:8}{left:9}{left / max(n, 1):7.1%}" for name, (n, left) in rooms.items()]
    return "\n".join([f"{'room':12} planted noticed survived", *lines])


if __name__ == "__main__":
    main()
