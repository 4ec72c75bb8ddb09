"""The Python of README and of pages prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize(
    "page",
    [
        README,
        README.parent / "docs" / "start.md",
        README.parent / "docs" / "threads.md",
        README.parent / "docs" / "compatibility.md",
        README.parent / "docs" / "own-learner.md",
        README.parent / "docs" / "scikit-learn.md",
    ],
    ids=lambda page: page.stem,
)
def test_its_python_prints_what_stands_below_it(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(README.parent / "examples" / "new_algorithm")  # of which a page says: download it
    names: dict[str, Any] = {}
    pairs = re.findall(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert pairs
    for code, output in pairs:
        exec(compile(code, str(page), "exec"), names)
        assert capsys.readouterr().out == output
