"""What a page has Python and the program do, done: its Python prints what stands below it."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHON = "```python\n"


def pages_with_python() -> set[Path]:
    """README and all pages that show Python."""
    pages = [*ROOT.glob("*.md")]
    for folder in ("benchmarks", "deploy", "docs", "examples", "src"):
        pages += (ROOT / folder).rglob("*.md")
    return {page for page in pages if PYTHON in page.read_text(encoding="utf-8")}


def commands_of(page: Path) -> list[list[str]]:
    """What the first block of a page has the program do; a service would not end."""
    found = re.search(r"^```\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
    assert found
    lines = [line for line in found[1].splitlines() if re.match("shoal (?!serve)", line)]
    assert lines
    return [shlex.split(line, comments=True)[1:] for line in lines]


def assert_its_python_prints_what_stands_below_it(page: Path, instead: dict[str, str] | None = None) -> None:
    """Run the blocks of a page one after the other; `instead` has what the test puts in place of an address."""
    text = page.read_text(encoding="utf-8")
    pairs = list(re.finditer(rf"{PYTHON}((?:(?!```).)*?)```\n\n```\n(.*?)```", text, re.S))
    assert pairs
    assert len(pairs) == text.count(PYTHON), "a block has no output below it, so that nothing would run it"
    names: dict[str, Any] = {}
    for pair in pairs:
        code = "\n" * text.count("\n", 0, pair.start(1)) + pair[1]  # errors name the line of the page
        for address, other in (instead or {}).items():
            code = code.replace(address, other)
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, str(page), "exec"), names)
        assert printed.getvalue() == pair[2], f"{page.name} prints\n{printed.getvalue()}"
