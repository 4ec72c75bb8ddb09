"""Every place in the code that docs/choices.md links to exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "choices.md"


def names(path: Path) -> set[str]:
    """What a file defines at its top."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_every_choice_is_there_and_links_to_code_that_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"^\*\*(\d+)\.", text, re.M)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 28
    links = re.findall(r"\[`(\w+)`\]\(([^)]+)\)", text)
    assert len(links) == text.count("](../src/") > 28
    missing = [f"{name} in {link}" for name, link in links if name not in names(PAGE.parent / link)]
    assert not missing
