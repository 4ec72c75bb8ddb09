"""The Python of README, start and threads pages prints what they say; the page on scikit-learn runs as a whole."""

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
        README.parent / "docs" / "own-learner.md",
    ],
    ids=lambda page: page.stem,
)
def test_its_python_prints_what_stands_below_it(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    pairs = re.findall(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert pairs
    for code, output in pairs:
        exec(compile(code, str(page), "exec"), names)
        assert capsys.readouterr().out == output


def test_the_page_on_scikit_learn_runs() -> None:
    page = README.parent / "docs" / "scikit-learn.md"
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(page), "exec"), names)
    assert names["found"]["test_roc_auc"].mean() > 0.9
    assert names["chances"].shape == (600, 2)
    assert names["search"].best_score_ > 0.9
    assert names["by_column"]["price"] > names["by_column"]["rain"]
    assert names["calibrated"].score(names["sales"], names["sold_out"]) > 0.8
    assert names["stacked"].score(names["sales"], names["sold_out"]) > 0.8
    assert names["scores"]["test_score"].mean() > 0.7
