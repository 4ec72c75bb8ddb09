"""Each rule of the house finds what breaks it, in a project of a few files."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
EIGHT = ", ".join(f"p{i}" for i in range(8))


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, looking at an empty project."""
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("house_rules_under_test", TOOLS / "house_rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "SOURCE", tmp_path / "src")
    for room in ("engine", "online"):
        (tmp_path / "src" / "shoal" / room).mkdir(parents=True)
    (tmp_path / "src" / "shoal" / "engine" / "rows.py").write_text(
        "class Row: ...\nclass State: ...\ndef _cut(row):\n    return row\n"
    )
    return module


@pytest.mark.parametrize(
    ("rule", "path", "text", "sentence"),
    [
        ("long_files", "tests/test_a.py", "x = 1\n" * 801, "tests/test_a.py:801: 801 lines, at most 800 are allowed"),
        ("torn_off", "src/shoal/engine/a.py", "def f():\n    from shoal.engine import rows\n",
         "src/shoal/engine/rows.py:1: only a.py imports it: move it there"),
        ("torn_off", "src/shoal/engine/a.py", "if TYPE_CHECKING:\n    from .rows import cut\n",
         "src/shoal/engine/rows.py:1: only a.py imports it: move it there"),
        ("underscored_modules", "src/shoal/engine/_a.py", "",
         "src/shoal/engine/_a.py:1: the name of a module begins with an underscore"),
        ("large_functions", "src/shoal/a.py", 'class A:\n    def f():\n        """F."""\n' + "        x = 1\n" * 80,
         "src/shoal/a.py:2: f has 81 lines, at most 80 are allowed"),
        ("large_functions", "src/shoal/a.py", f"def f(a, {EIGHT}, *, b): ...\n",
         "src/shoal/a.py:1: f has 10 parameters, at most 9 are allowed"),
        ("namesakes", "src/shoal/engine/z.py", "class Row: ...\n",
         "src/shoal/engine/z.py:1: Row is a class of rows.py too"),
        ("wide_constructors", "src/shoal/a.py", f"class A:\n    def __init__(self, *, {EIGHT}, p8): ...\n",
         "src/shoal/a.py:1: A has 9 parameters, at most 8 are allowed"),
        ("wide_constructors", "src/shoal/a.py",
         "@from_keywords\nclass A:\n" + "".join(f"    p{i}: int = 1\n" for i in range(9)),
         "src/shoal/a.py:2: A has 9 parameters, at most 8 are allowed"),
        ("private_imports", "src/shoal/online/a.py", "from shoal.engine.rows import _cut\n",
         "src/shoal/online/a.py:1: imports shoal.engine.rows._cut, which is private to another folder"),
        ("private_attributes", "src/shoal/online/a.py", "def f(rows): return rows._cut(1)\n",
         "src/shoal/online/a.py:1: uses rows._cut, which is private to another folder"),
        ("private_overrides", "src/shoal/a.py",
         "class A:\n    def _f(self): ...\nclass B(A): ...\nclass C(B):\n    def _f(self): ...\n",
         "src/shoal/a.py:4: C overrides _f of A, which is private"),
        ("words", "tests/test_a.py", "# what was lear" + "nt\n", "tests/test_a.py:1: lear" + "nt: say learned"),
        ("internals", "src/shoal/engine/a.py", "from numba.core import event\n",
         "src/shoal/engine/a.py:1: imports numba.core.event: internals of numba and LLVM belong into engine/"),
        ("exclusions", "tests/test_contract_a.py", "def test_a(name):\n    assert 'rbf' in name\n",
         "tests/test_contract_a.py:2: 'rbf' in name: leave learners out in tests/exclusions.py only"),
        ("exclusions", "tests/exclusions.py", "EXCLUSIONS = {'test_b': {'OSMTL': ''}}\n",
         "tests/exclusions.py:1: there is no generic test test_b"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_found(
    rules: ModuleType, tmp_path: Path, rule: str, path: str, text: str, sentence: str
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert sentence in [str(problem) for problem in getattr(rules, rule)()]


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (
            "private_overrides",
            "src/shoal/a.py",
            "class A:\n    def f(self): ...\n    def __init__(self): ...\nclass B(A):\n    def f(self): ...\n"
            "    def _g(self): ...\n    def __init__(self): ...\n",
        ),
        ("long_files", "tests/test_a.py", "x = 1\n" * 800),
        ("torn_off", "src/shoal/online/a.py", "from shoal.engine.rows import cut\n"),  # another folder's
        ("torn_off", "src/shoal/engine/__init__.pyi", "from .rows import cut\n"),
        ("underscored_modules", "src/shoal/engine/__init__.py", ""),
        ("large_functions", "src/shoal/a.py", 'def f():\n    """F.\n    """\n' + "    x = 1\n" * 79),
        ("large_functions", "src/shoal/a.py", f"class A:\n    def f(self, a, {EIGHT}): ...\n"),
        ("namesakes", "src/shoal/online/z.py", "class Row: ...\n"),
        ("namesakes", "src/shoal/engine/z.py", "class State: ...\n"),
        ("wide_constructors", "src/shoal/a.py", f"class A:\n    def __init__(self, *, {EIGHT}): ...\n"),
        ("wide_constructors", "src/shoal/a.py", "@dataclass\nclass A:\n" + "    p: int\n" * 9),
        ("private_imports", "src/shoal/engine/a.py", "from shoal.engine.rows import _cut\n"),
        (
            "private_attributes",
            "src/shoal/online/a.py",
            "def f(self, t): return self._cut(t._asdict(), t.__len__)\n",
        ),
        ("internals", "src/shoal/engine/a.py", "import numba\nfrom numba import njit\n"),
    ],
)
def test_what_keeps_a_rule_is_not(rules: ModuleType, tmp_path: Path, rule: str, path: str, text: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    assert list(getattr(rules, rule)()) == []


def test_a_folder_has_at_most_20_modules(rules: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "src" / "shoal" / "online"
    for name in ("__init__", *"abcdefghijklmnopqrst"):
        (folder / f"{name}.py").write_text("")
    assert list(rules.large_folders()) == []
    (folder / "u.py").write_text("")
    assert [str(problem) for problem in rules.large_folders()] == [
        "src/shoal/online:1: 21 modules, at most 20 are allowed"
    ]


def test_a_folder_says_in_which_order_to_read_it(rules: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "src" / "shoal" / "online"
    for name in "ab":
        (folder / f"{name}.py").write_text("")
    (folder / "__init__.py").write_text("")
    assert [str(problem) for problem in rules.unguided_folders()] == [
        "src/shoal/online/__init__.py:1: say in which order to read the modules of this folder"
    ]
    rules.parsed.cache_clear()
    (folder / "__init__.py").write_text('"""Algorithms. Read `a` first."""')
    assert list(rules.unguided_folders()) == []


def test_what_two_files_import_is_no_torn_page(rules: ModuleType, tmp_path: Path) -> None:
    for path in ("engine/a.py", "online/a.py"):
        (tmp_path / "src" / "shoal" / path).write_text("from shoal.engine.rows import cut\n")
    assert list(rules.torn_off()) == []


def test_an_exemption_that_is_not_needed_is_a_problem(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = "src/shoal/a.py: one importer"
    monkeypatch.setattr(rules, "RULES", ())
    monkeypatch.setattr(rules, "EXEMPTIONS", {place: "a reason"})
    with pytest.raises(SystemExit, match="True"):
        rules.main()
    assert f"{place!r} is not needed: delete its line" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["src/shoal/report/a.py: one importer", "src/shoal/report/: one importer"])
def test_an_exemption_excuses_a_file_or_a_folder(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    torn = rules.Problem("src/shoal/report/a.py: one importer", 1, "only b.py imports it")
    wide = rules.Problem("src/shoal/report/a.py: f: parameters", 1, "f has 10")
    monkeypatch.setattr(rules, "RULES", (lambda: iter([torn, wide]),))
    monkeypatch.setattr(rules, "EXEMPTIONS", {place: "a reason"})
    with pytest.raises(SystemExit, match="True"):
        rules.main()
    assert capsys.readouterr().out.splitlines() == [str(wide), "house rules: 1 problems"]
