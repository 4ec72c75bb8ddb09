"""The README's Python prints what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_ten_lines_print_what_stands_below_them(capsys: pytest.CaptureFixture[str]) -> None:
    [(code, output)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == output
