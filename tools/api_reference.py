"""Write docs/api.md: a line for every public name, with the first sentence of its docstring."""

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

PAGE = "docs/api.md"
MODULES = ("shoal", "shoal.relations", "shoal.evaluation", "shoal.files", "shoal.datasets", "shoal.report",
           "shoal.papers", "shoal.theory", "shoal.river", "shoal.serve")  # fmt: skip
HEADER = """\
# API reference

One line for every public name, from its docstring; `help(shoal.OSMTL)` in Python and `shoal learners OSMTL` in a shell
say the rest. `make api` writes this page, and `make lint` fails while it is not what the docstrings say.
"""


def reference() -> str:
    """The page."""
    return HEADER + "".join(f"\n## `{name}`\n\n{_lines(importlib.import_module(name))}" for name in MODULES)


def _lines(module: Any) -> str:
    lines = [_line(name, getattr(module, name)) for name in sorted(public_names(module), key=str.lower)]
    return f"{_sentence(module)}\n\n" + "\n".join(lines) + "\n"


def public_names(module: Any) -> list[str]:
    """The names of `__all__`; without one, those that the module itself defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _line(name: str, value: Any) -> str:
    sentence = _sentence(value) if callable(value) or inspect.ismodule(value) else "A constant."
    return f"- `{name}`: {sentence}"


def _sentence(value: Any) -> str:
    """The first sentence of the docstring."""
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    if not text:
        raise ValueError(f"{value!r} is public and has no docstring")
    return re.split(r"(?<=[.?])\s(?=[A-Z`])", text)[0]


if __name__ == "__main__":
    page = Path(__file__).resolve().parents[1] / PAGE
    page.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
