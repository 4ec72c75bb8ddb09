"""The rules of the house that no other tool checks: `make lint` runs them.

A rule yields problems; a problem is a place and a sentence. `EXEMPTIONS` names the places that may break a rule, each
with its reason; a line that is not needed is a problem, too.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from api_reference import PAGE, reference

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
MAX_LINES = 800
MAX_MODULES = 20  # of a folder
MAX_FUNCTION = 80  # lines, without the docstring
MAX_ARGUMENTS = 9
MAX_PARAMETERS = 8  # of a constructor
EVERY_ALGORITHM_HAS = {"Settings", "State"}
INTERNALS = ("llvmlite", "numba.core", "numba.cpython", "numba.extending", "numba.np", "numba.typed")
TUPLE_METHODS = {"_asdict", "_fields", "_make", "_replace"}  # public, in spite of their names

# A pattern, and what is to be said.
WORDS = {
    "lear" + "nt": "learned",
    "room" + "ier": "with_capacity",
    "awa" + "ken": "apply_pending",
    "way_" + "back": "rollback",
    "good_" + "until": "what is validated in blocks",
}
EXEMPTIONS = {
    # batch, online
    "src/shoal/batch/sparse_mtl/learner.py: _SparseMTL": "the paper's own knobs",
    "src/shoal/batch/sparse_mtl/coefficients.py: one importer": "the paper's Algorithm 1, beside Algorithm 2",
    "src/shoal/online/local_global_gaussian/covariance.py: one importer": "what a row does to a Gaussian",
    "src/shoal/online/local_global_gaussian/feature_maps.py: one importer": "kernels as features, apart from Gaussians",
    "src/shoal/online/second_order_perceptron/primal.py: one importer": "one of two forms, beside dual.py",
    "src/shoal/online/hedged_sharing/explaining.py: one importer": "an idea of its own: shares of a mixture",
    # engine
    "src/shoal/engine/: internals": "how numba compiles, operations that it does not offer, a type of its own",
    "src/shoal/papers/vw.py: one importer": "its results are cached under the version of this file alone",
    # files
    "src/shoal/files/tables/: one importer": "a format of files each",
    # report
    "src/shoal/report/: one importer": "a picture of the report each",
    # options of public functions
    "src/shoal/evaluation/progressive.py: progressive_validate: parameters": "keyword options with defaults",
    "src/shoal/evaluation/tuning.py: search: parameters": "keyword options with defaults",
    "src/shoal/files/tables/transformer.py: TableEncoder": "keyword options with defaults, those of the program",
    "src/shoal/tabular/estimators.py: Tabular": "keyword options with defaults, those of the program",
    "src/shoal/theory/romco.py: romco_regret_bound: parameters": "the learner's hyper-parameters and the stream",
    "src/shoal/theory/schatten.py: schatten_loss_bound: parameters": "the learner's hyper-parameters and the stream",
    # benchmarks
    "benchmarks/guard: internals": "counts instructions on a processor that it fixes for LLVM",
    "src/shoal/serve/log_writer.py: one importer": "one thread of the engine; in its file they would have 820 lines",
    "src/shoal/serve/http/middleware.py: one importer": "a file of small layers, which the application puts together",
}
MAX_EXEMPTIONS = 20
MAX_SQUEEZED = 40


class Problem(NamedTuple):
    """What is wrong where."""

    place: str  # what an exemption names
    line: int
    sentence: str

    @property
    def names(self) -> set[str]:
        """What an exemption may say: the place, or for all files of a folder "folder/: what"."""
        path, _, what = self.place.partition(": ")
        return {self.place, f"{path.rpartition('/')[0]}/: {what}"}

    def __str__(self) -> str:
        return f"{self.place.partition(':')[0]}:{self.line}: {self.sentence}"


def files(*folders: str) -> list[Path]:
    """The Python files of these folders of the project."""
    return sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*.py*") if path.suffix in (".py", ".pyi")
    )


@cache
def parsed(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def short(path: Path) -> str:
    """The path within the project."""
    return path.relative_to(ROOT).as_posix()


def long_files() -> Iterator[Problem]:
    """A file is one idea, whole. One of over 800 lines is likely to hold two."""
    for path in files("src", "tests", "benchmarks", "tools", "examples"):
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        if n_lines > MAX_LINES:
            yield Problem(short(path), n_lines, f"{n_lines} lines, at most {MAX_LINES} are allowed")


def squeezed() -> Iterator[Problem]:
    """Few places are not as the formatter writes them: what needs squeezing needs another shape."""
    n = sum(path.read_text(encoding="utf-8").count("# fmt: skip") for path in files("src"))
    if n > MAX_SQUEEZED:
        yield Problem("src", 1, f"{n} lines say fmt: skip, at most {MAX_SQUEEZED} may")


def torn_off() -> Iterator[Problem]:
    """What one file alone uses stands in that file: no module has its only importer in its own folder."""
    importers = _importers()
    for name, path in _modules().items():
        if path.name != "__init__.py" and len(importers[name]) == 1:
            (importer,) = importers[name]
            if importer.parent == path.parent and importer.stem != "__init__":
                sentence = f"only {importer.name} imports it: move it there"
                yield Problem(f"{short(path)}: one importer", 1, sentence)


def _modules() -> dict[str, Path]:
    """The modules of the library by their dotted names."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files("src")
        if path.suffix == ".py"
    }


def _importers() -> dict[str, set[Path]]:
    """The files that import each module, in functions and for type checkers too."""
    found: dict[str, set[Path]] = {name: set() for name in _modules()}
    for path in files("src"):
        for node in ast.walk(parsed(path)):
            for name in _imported(node, path):
                module = name if name in found else name.rpartition(".")[0]
                if module in found:
                    found[module].add(path)
    return found


def large_folders() -> Iterator[Problem]:
    """A folder has at most 20 modules."""
    folders = [path.parent for path in files("src") if path.suffix == ".py" and not path.stem.startswith("__")]
    for folder in sorted(set(folders)):
        n = folders.count(folder)
        if n > MAX_MODULES:
            yield Problem(f"{short(folder)}: modules", 1, f"{n} modules, at most {MAX_MODULES} are allowed")


def unguided_folders() -> Iterator[Problem]:
    """A folder of several modules says in its docstring in which order to read them."""
    for path in files("src"):
        if path.name == "__init__.py" and path.parent != SOURCE / "shoal" and len(list(path.parent.glob("*.py"))) > 2:
            docstring = ast.get_docstring(parsed(path)) or ""
            if not re.search(r"\bread\b|reading order|begin with", docstring, re.IGNORECASE):
                yield Problem(f"{short(path)}: order", 1, "say in which order to read the modules of this folder")


def underscored_modules() -> Iterator[Problem]:
    """No module name begins with an underscore: folders say who uses a file."""
    for path in files("src"):
        if path.name.startswith("_") and path.stem not in ("__init__", "__main__"):
            yield Problem(f"{short(path)}: underscore", 1, "the name of a module begins with an underscore")


def large_functions() -> Iterator[Problem]:
    """A function has at most 80 lines, without its docstring, and 9 parameters, without `self`."""
    for path in files("src"):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            docstring = _n_lines(node.body[0]) if body is not node.body else 0
            n_lines = _n_lines(node) - docstring
            if n_lines > MAX_FUNCTION:
                sentence = f"{node.name} has {n_lines} lines, at most {MAX_FUNCTION} are allowed"
                yield Problem(f"{short(path)}: {node.name}: lines", node.lineno, sentence)
            arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            n = sum(argument.arg not in ("self", "cls") for argument in arguments)
            if n > MAX_ARGUMENTS and node.name != "__init__":
                sentence = f"{node.name} has {n} parameters, at most {MAX_ARGUMENTS} are allowed"
                yield Problem(f"{short(path)}: {node.name}: parameters", node.lineno, sentence)


def _n_lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def namesakes() -> Iterator[Problem]:
    """One public name means one class in a folder. Every algorithm has its own `Settings` and `State`."""
    first: dict[tuple[Path, str], Path] = {}
    for path in files("src"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and path.suffix == ".py":
                other = first.setdefault((path.parent, node.name), path)
                if other != path and node.name not in EVERY_ALGORITHM_HAS:
                    sentence = f"{node.name} is a class of {other.name} too"
                    yield Problem(f"{short(path)}: {node.name}: namesake", node.lineno, sentence)


def wide_constructors() -> Iterator[Problem]:
    """A constructor has at most 8 parameters, without `classes`, which every classifier has.

    Records (dataclasses, named tuples) have no constructor of their own; learners `from_keywords` do.
    """
    for path in files("src", "benchmarks"):
        for kind in ast.walk(parsed(path)):
            if not isinstance(kind, ast.ClassDef):
                continue
            names = set()
            for part in kind.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    names |= {argument.arg for argument in part.args.args + part.args.kwonlyargs}
                elif isinstance(part, ast.AnnAssign) and "from_keywords" in map(ast.unparse, kind.decorator_list):
                    names |= {ast.unparse(part.target)} - {f"{ast.unparse(part.target).rstrip('_')}_"}
            n = len(names - {"self", "classes"})
            if n > MAX_PARAMETERS:
                sentence = f"{kind.name} has {n} parameters, at most {MAX_PARAMETERS} are allowed"
                yield Problem(f"{short(path)}: {kind.name}", kind.lineno, sentence)


def private_imports() -> Iterator[Problem]:
    """What begins with an underscore is used in its own folder only."""
    for path in files("src", "benchmarks", "tools"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    found = f"{node.module}.{alias.name}"
                    if _is_private_elsewhere(found, path):
                        yield Problem(short(path), node.lineno, f"imports {found}, which is private to another folder")


def _is_private_elsewhere(name: str, path: Path) -> bool:
    parts = name.split(".")
    first = next((i for i, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None)
    if parts[0] != "shoal" or first is None:
        return False
    owner = SOURCE.joinpath(*parts[:first])
    folder = owner if owner.is_dir() else owner.parent
    return not path.is_relative_to(folder)


def private_attributes() -> Iterator[Problem]:
    """The same for attributes: `other._x` stands only in the folder that defines `_x`."""
    for path in files("src"):
        foreign = _private_names() - _defined_in(path.parent) - TUPLE_METHODS
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.endswith("__"):
                continue
            owner = node.value
            is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            is_super = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
            if not is_own and not is_super and node.attr in foreign:
                sentence = f"uses {ast.unparse(node)}, which is private to another folder"
                yield Problem(short(path), node.lineno, sentence)


@cache
def _private_names() -> frozenset[str]:
    """All that are ours: those of other libraries are their matter."""
    names = frozenset[str]().union(*(_defined_in(folder) for folder in {path.parent for path in files("src")}))
    return frozenset(name for name in names if name.startswith("_"))


@cache
def _defined_in(folder: Path) -> frozenset[str]:
    """Private names that the files of a folder define: functions, classes, variables, attributes of self."""
    names: set[str] = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return frozenset(names)


def private_overrides() -> Iterator[Problem]:
    """A class that replaces a private method of another class: what is meant to be replaced has a public name."""
    methods: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    places: dict[str, tuple[Path, int]] = {}
    for path in files("src"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name] = path, node.lineno
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                defined = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
                methods[node.name] = {name for name in defined if name.startswith("_") and not name.endswith("__")}

    def ancestors(name: str) -> Iterator[str]:
        for base in bases.get(name, []):
            yield base
            yield from ancestors(base)

    for name, (path, line) in places.items():
        for ancestor in ancestors(name):
            for method in sorted(methods[name] & methods.get(ancestor, set())):
                yield Problem(short(path), line, f"{name} overrides {method} of {ancestor}, which is private")


def words() -> Iterator[Problem]:
    """The words of the glossary, where this project once had its own."""
    folders = [path for folder in ("src", "tests", "benchmarks", "examples") for path in files(folder)]
    for path in [*folders, *ROOT.glob("*.md"), *ROOT.glob("pyproject.toml"), *(ROOT / "docs").glob("*.md")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for word, better in WORDS.items():
                if re.search(word, line, re.IGNORECASE):
                    yield Problem(short(path), number, f"{word}: say {better}")


def internals() -> Iterator[Problem]:
    """Numba's and llvmlite's internals change with each version: one file knows them."""
    for path in files("src", "tests", "benchmarks", "tools", "examples"):
        place = "benchmarks/guard" if short(path).startswith("benchmarks/guard/") else short(path)
        for node in ast.walk(parsed(path)):
            for name in _imported(node, path):
                if any(name == internal or name.startswith(f"{internal}.") for internal in INTERNALS):
                    sentence = f"imports {name}: internals of numba and LLVM belong into engine/"
                    yield Problem(f"{place}: internals", getattr(node, "lineno", 1), sentence)


def _imported(node: ast.AST, path: Path) -> list[str]:
    """The full names that a statement of this file imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        folder = path.parents[node.level - 1].relative_to(ROOT).parts if node.level else ()
        names = [".".join(filter(None, (*folder, node.module, alias.name))) for alias in node.names]
        return [name.removeprefix("src.") for name in names]
    return []


GENERIC = ("test_contract", "test_estimator_checks")  # files whose tests run on every learner
TABLE = "tests/exclusions.py"
SKIPS = {"skip", "skipif", "xfail", "importorskip"}
NAME_TESTS = {"startswith", "endswith", "removeprefix", "partition"}


def exclusions() -> Iterator[Problem]:
    """A learner is left out of a generic test in one table, `EXCLUSIONS` of tests/exclusions.py, with a reason."""
    suites = [path for path in files("tests") if path.name.startswith(GENERIC)]
    for path in suites:
        for node in ast.walk(parsed(path)):
            skips = isinstance(node, ast.Attribute) and node.attr in SKIPS | NAME_TESTS
            if skips or (isinstance(node, ast.Compare) and _looks_into_name(node)):
                place = getattr(node, "lineno", 1)
                yield Problem(short(path), place, f"{ast.unparse(node)}: leave learners out in {TABLE} only")
    yield from _audit(suites)


def _looks_into_name(node: ast.Compare) -> bool:
    """`"text" in name`"""
    on = node.comparators[0]
    if not isinstance(node.ops[0], ast.In | ast.NotIn) or not isinstance(on, ast.Name):
        return False
    is_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return is_text and on.id in ("name", "learner", "kind")


def _audit(suites: list[Path]) -> Iterator[Problem]:
    """Each line of the table names a test that exists, and has a reason."""
    path = ROOT / TABLE
    if not path.exists():
        yield Problem(TABLE, 1, "is missing: EXCLUSIONS = {test: {learner: reason}}")
        return
    tests = {node.name for suite in suites for node in ast.walk(parsed(suite)) if isinstance(node, ast.FunctionDef)}
    scope: dict[str, object] = {}
    exec(compile(parsed(path), str(path), "exec"), scope)
    table = scope.get("EXCLUSIONS")
    if not isinstance(table, dict):
        yield Problem(TABLE, 1, "has no EXCLUSIONS = {test: {learner: reason}}")
        return
    for test, learners in table.items():
        if test not in tests:
            yield Problem(TABLE, 1, f"there is no generic test {test}")
        for learner, reason in learners.items():
            if not isinstance(reason, str) or len(reason.split()) < 3:
                yield Problem(TABLE, 1, f"{test}, {learner}: a reason is a sentence, got {reason!r}")


def api() -> Iterator[Problem]:
    """Every public name is in the reference, as its docstring says it today."""
    page = ROOT / PAGE
    have = page.read_text(encoding="utf-8") if page.exists() else ""
    for number, line in enumerate(reference().splitlines(), 1):
        if line not in have.splitlines():
            yield Problem(PAGE, number, f"is not what the docstrings say, run `make api`: {line[:60]}")


RULES: tuple[Callable[[], Iterator[Problem]], ...] = (
    long_files,
    squeezed,
    torn_off,
    large_folders,
    unguided_folders,
    underscored_modules,
    large_functions,
    namesakes,
    wide_constructors,
    private_imports,
    private_attributes,
    private_overrides,
    words,
    internals,
    exclusions,
    api,
)


def main() -> None:
    """Print the problems; the exit code says whether there are any."""
    found = [problem for rule in RULES for problem in rule()]
    problems = [problem for problem in found if not problem.names & EXEMPTIONS.keys()]
    unused = sorted(EXEMPTIONS.keys() - set().union(*(problem.names for problem in found)))
    problems += [Problem("tools/house_rules.py", 1, f"{place!r} is not needed: delete its line") for place in unused]
    if len(EXEMPTIONS) > MAX_EXEMPTIONS:
        problems.append(Problem("tools/house_rules.py", 1, f"more than {MAX_EXEMPTIONS} lasting exemptions"))
    for problem in problems:
        print(problem)
    print(f"house rules: {len(problems)} problems" if problems else "house rules: kept")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
