"""The README's Python prints what the README says; the page on scikit-learn runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_ten_lines_print_what_stands_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    [(code, output)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    exec(compile(code, str(README), "exec"), {})
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
