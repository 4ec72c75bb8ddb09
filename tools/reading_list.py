"""What must a stranger read to understand a learner? Files and lines, and the way of one learned row through them.

    python tools/reading_list.py                         # four learners of this tree
    python tools/reading_list.py --tree ../old OSMTL     # another checkout of the library, such as a git worktree

*Own* are the files of the algorithm: its module or its folder, and modules beside it that nobody else imports. *All*
are those that its imports reach, directly or not, in `online`, `engine`, `parallel` and `relations`. Code lines have
no blanks, comments and docstrings.

The row: from the kernel `learn` on, calls are followed that pass `rounds` or a part of it, such as `rounds.task[row]`,
in the order in which the code is written, each function once. A *stay* begins when such a call enters another file
than the call before it. It is a *climb* if it leads from another room, such as `engine`, back up to `online`: the
reader has been below and comes back for the next step.
"""

import argparse
import ast
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ["MultitaskPerceptron", "OSMTL", "ROMCO", "HedgedSharing"]
ROOMS = ("shoal.online.", "shoal.engine.", "shoal.parallel.", "shoal.relations")
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """One file: its functions, and what its names stand for elsewhere."""

    path: Path
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    names: dict[str, tuple[str, str]] = field(default_factory=dict)  # to a module and a name in it, "" for the module

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def n_lines(self) -> int:
        return len(self.path.read_text(encoding="utf-8").splitlines())

    @cached_property
    def n_code(self) -> int:
        """Lines without blanks, comments and docstrings."""
        with tokenize.open(self.path) as text:
            tokens = [token for token in tokenize.generate_tokens(text.readline) if token.type not in NO_CODE]
        code = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
        for node in ast.walk(self.tree):
            if isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
                code -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        return len(code)


class Library:
    """The modules of a checkout."""

    def __init__(self, tree: Path) -> None:
        source = tree / "src"
        self.modules = {
            ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): Module(path)
            for path in sorted((source / "shoal").rglob("*.py"))
        }
        self.stubs = [path.read_text(encoding="utf-8") for path in (source / "shoal").glob("__init__.py*")]
        for module in self.modules.values():
            self._read(module)

    def _read(self, module: Module) -> None:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found = (whole, "") if whole in self.modules else (node.module, alias.name)
                    if found[0] in self.modules:
                        module.names[alias.asname or alias.name] = found
            elif isinstance(node, ast.ClassDef):
                module.classes.add(node.name)
        module.functions = {node.name: node for node in module.tree.body if isinstance(node, ast.FunctionDef)}

    def imports(self, name: str) -> set[str]:
        """The modules that it imports."""
        return {target for target, _ in self.modules[name].names.values()}

    def reached(self, name: str, *, within: tuple[str, ...] = ("shoal",)) -> set[str]:
        """The module, and those that its imports reach."""
        found, left = {name}, [name]
        while left:
            new = {other for other in self.imports(left.pop()) if other.startswith(within)} - found
            found |= new
            left += new
        return found

    def own(self, learner: str) -> set[str]:
        """The files of its algorithm."""
        home = next(name for name, each in self.modules.items() if ".online." in name and learner in each.classes)
        folder = home.rpartition(".")[0]
        own = {home} if folder == "shoal.online" else {name for name in self.modules if name.startswith(f"{folder}.")}
        importers = {name: {by for by in self.modules if name in self.imports(by)} for name in self.reached(home)}
        beside = [name for name in importers if name.rpartition(".")[0] == "shoal.online" and not self._is_public(name)]
        while new := {name for name in beside if importers[name] and importers[name] <= own} - own:
            own |= new
        return {name for name in own if self.modules[name].path.name != "__init__.py"}

    def _is_public(self, name: str) -> bool:
        """Has it a learner that users import from `shoal`?"""
        return any(f"{name.removeprefix('shoal')} import" in stub for stub in self.stubs)

    def called(self, module: str, function: str, rounds: set[str]) -> Iterator[tuple[str, str, set[str]]]:
        """The functions that are given one of these names or a part of one, in order; and their names for it."""
        names, own = self.modules[module].names, self.modules[module].functions
        parts = _with_parts(own[function], rounds)
        calls = [node for node in ast.walk(own[function]) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: (node.end_lineno, node.end_col_offset)):
            target, name = module, getattr(call.func, "id", "")
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                target, name = names.get(call.func.value.id, (module, ""))[0], call.func.attr
            elif name in names:
                target, name = names[name]
            if name in self.modules[target].functions:
                parameters = self.modules[target].functions[name].args.args
                given = {p.arg for p, each in zip(parameters, call.args, strict=False) if _part(each) in parts}
                if given:
                    yield target, name, given

    def stays(self, module: str, function: str, rounds: str = "rounds") -> list[str]:
        """The files in which one is, one after the other, from a function on."""
        stays, passed = [module], set()

        def follow(module: str, function: str, rounds: set[str]) -> None:
            for target, name, given in self.called(module, function, rounds):
                if target != stays[-1]:
                    stays.append(target)
                if (target, name) not in passed:
                    passed.add((target, name))
                    follow(target, name, given)

        follow(module, function, {rounds})
        return stays


def _part(node: ast.expr) -> str:
    """The name of which it is a part: of `rounds.task[row]` it is `rounds`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _with_parts(function: ast.FunctionDef, rounds: set[str]) -> set[str]:
    """These names, and those that parts of them are given."""
    found = set(rounds)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                found |= {each.id for each, value in pairs if isinstance(each, ast.Name) and _part(value) in found}
    return found


def row(library: Library, learner: str) -> str:
    """A line of the table."""
    own = library.own(learner)
    reached = {name for start in own for name in library.reached(start, within=ROOMS)}
    reached = {name for name in reached if library.modules[name].path.name != "__init__.py"}
    start = next(name for name in sorted(own) if "learn" in library.modules[name].functions)
    stays = library.stays(start, "learn")
    rooms = [stay.split(".")[1] for stay in stays]
    climbs = sum(before != room and room == "online" for before, room in pairwise(rooms))
    counts = [len(own), *_lines(library, own), len(reached), *_lines(library, reached)]
    return f"{learner:20}" + "".join(f"{n:8,}" for n in [*counts, len(stays), len(set(stays)), climbs])


def _lines(library: Library, names: set[str]) -> tuple[int, int]:
    files = [library.modules[name] for name in names]
    return sum(file.n_lines for file in files), sum(file.n_code for file in files)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("learners", nargs="*", default=NAMES)
    parser.add_argument("--tree", type=Path, default=ROOT)
    asked = parser.parse_args()
    library = Library(asked.tree)
    print(f"{'':20}{'own files, lines, code':>24}{'all files, lines, code':>24}{'row: stays, files, climbs':>27}")
    for learner in asked.learners:
        print(row(library, learner))


if __name__ == "__main__":
    main()
