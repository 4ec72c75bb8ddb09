"""Files, lines and the way of a row, in a library of three files."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "reading_list.py"
FILES = {
    "engine/rows.py": """
def dot(rounds):
    return open_round(rounds)


def open_round(rounds):
    return rounds
""",
    "online/steps.py": """
from shoal.engine import rows


def step(y, state):
    return rows.dot(y)
""",
    "online/toy.py": '''"""A learner."""

from shoal.engine.rows import dot, open_round
from shoal.online.steps import step


class Toy:
    """Two lines of code with the one below."""


def learn(rounds, state):
    y = rounds.y[0]
    unknown(dot(rounds), step(1.0, state))  # neither a function of the library, nor given a part of the rounds
    step(y, state)
    step(y, state)
''',
}


def test_a_row_climbs_when_it_comes_back_from_another_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        path = tmp_path / "src" / "shoal" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("reading_list", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, tool)
    spec.loader.exec_module(tool)
    library = tool.Library(tmp_path)

    assert library.own("Toy") == {"shoal.online.toy", "shoal.online.steps"}
    toy, steps, rows = "shoal.online.toy", "shoal.online.steps", "shoal.engine.rows"
    assert library.stays(toy, "learn") == [toy, rows, steps, rows, steps]
    numbers = [int(n) for n in tool.row(library, "Toy").split()[1:]]
    #                   files, lines, code; all: files, lines, code; stays, files, climbs
    assert numbers == [2, 6 + 15, 3 + 8, 3, 6 + 15 + 7, 3 + 8 + 4, 5, 3, 2]
