"""Which faults are planted, and which tests are run for them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))  # as for a script of that folder
spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")
assert spec is not None
assert spec.loader is not None
mutants: Any = importlib.util.module_from_spec(spec)
sys.modules["mutants"] = mutants
spec.loader.exec_module(mutants)
SOURCE = b'''
if TYPE_CHECKING:
    import d
def f(a: int | None, b=2) -> int:
    """Adds up: a < b."""
    with a.lock:
        total += a.n
    if not a or (b <
                 -3.0):
        return abs(g(a, b))
    for i in range(len(a) - 1):
        zip(a, b, strict=True)
    raise ValueError("1 + 1")
'''


def planted(source: bytes) -> list[str]:
    return [one.planted(source).decode() for one in mutants.mutants_of(source)]


def test_faults() -> None:
    lines = SOURCE.decode().splitlines()
    changed = [{line.strip() for line in text.splitlines() if line not in lines} for text in planted(SOURCE)]
    found = {line for some in changed for line in some}
    assert {
        "def f(a: int | None, b=3) -> int:", "total -= a.n", "pass", "return abs(g(b, a))", "return (g(a, b))",
        'with __import__("contextlib").nullcontext():', "if False:", "if True:", "if (a) or (b <", "if not a or (b <=",
        "-6.0):", "(3.0)):", "for i in range(len(a) + 1):", "for i in range(len(a) - 2):", "zip(b, a, strict=True)",
    } <= found  # fmt: skip
    said = "\n".join(planted(SOURCE))
    assert "int & None" not in said
    assert "strict=False" not in said
    assert "1 - 1" not in said
    [first, *_] = mutants.mutants_of(SOURCE)
    assert first.shown(SOURCE) == "4: def f(a: int | None, b=2) -> int:  ->  def f(a: int | None, b=3) -> int:"


def test_every_fault_is_python_and_another_source() -> None:
    for name in ("papers/ranks.py", "evaluation/metrics/auc.py", "serve/limits.py"):
        source = (ROOT / "src" / "shoal" / name).read_bytes()
        found = planted(source)
        assert len(set(found)) == len(found) > 20
        assert source.decode() not in found


def test_the_tests_of_a_file() -> None:
    names = [path.name for path in mutants.tests_of(ROOT / "src" / "shoal" / "papers" / "ranks.py")]
    assert names[0] == "test_ranks.py"  # the others import it
    assert "test_framework.py" in names
    [first, *_] = mutants.tests_of(ROOT / "src" / "shoal" / "files" / "ids.py")
    assert first == ROOT / "tests" / "files" / "test_ids.py"  # and not that of the service's
    assert mutants.module_of(ROOT / "src" / "shoal" / "serve" / "__init__.py") == "shoal.serve"


def test_a_file_without_tests_of_its_own_takes_those_of_its_importers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "src/shoal/room/inner.py": "", "src/shoal/room/outer.py": "from shoal.room import (\n    inner,\n)",
        "src/shoal/room/alone.py": "", "tests/room/test_outer.py": "", "tests/room/test_other.py": "",
        "tests/test_far.py": "from shoal.room.outer import f",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "SOURCE", tmp_path / "src")
    room = tmp_path / "src/shoal/room"
    found = {
        name: [test.name for test in mutants.tests_of(room / f"{name}.py")] for name in ("inner", "outer", "alone")
    }
    assert found["inner"] == found["outer"] == ["test_outer.py", "test_far.py"]
    assert found["alone"] == ["test_other.py", "test_outer.py"]  # the whole room
    assert mutants.drawn_files([room, room / "alone.py"], None, 0) == sorted(room.glob("*.py"))
    assert len(mutants.drawn_files([tmp_path / "src/shoal"], 2, 0)) == 2
    assert mutants.room_of(room / "alone.py") == "room"


WITHOUT = "-p no:schemathesis -p no:faker -p no:hypothesispytest"  # to load them takes longer than the rest
RUN_WITH_A_FAULT = """
import mutants, pathlib
path = pathlib.Path("{path}").resolve()
mutants.SOURCE = path.parents[1]
raise SystemExit(mutants._run(path, path.read_bytes().replace(b"return 1", b"return {found}"), [str(path)]))
"""


@pytest.mark.parametrize("found", [1, 2])
@pytest.mark.parametrize("path", ["one/two.py", "one/__init__.py"])
def test_examples_of_a_file_run_with_its_fault(found: int, path: str, tmp_path: Path) -> None:
    """pytest imports a file whose examples it runs by a way of its own; a package holds its modules."""
    (tmp_path / "one").mkdir()
    for name in ("__init__.py", "three.py"):
        (tmp_path / "one" / name).touch()
    text = 'import one.three\n\ndef f():\n    """\n    >>> f()\n    1\n    """\n    return 1\n'
    (tmp_path / path).write_text(text)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = --doctest-modules --import-mode=importlib {WITHOUT}\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT / 'tools'}"}
    command = [sys.executable, "-c", RUN_WITH_A_FAULT.format(found=found, path=path)]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ("1 passed" if found == 1 else "1 failed") in run.stdout, run.stderr


def test_the_table_by_room() -> None:
    assert mutants.table({"engine": [8, 2], "serve": [2, 0]}).splitlines() == [
        "room         planted noticed survived",
        "engine             8       6        2  25.0%",
        "serve              2       2        0   0.0%",
        "all               10       8        2  20.0%",
    ]
