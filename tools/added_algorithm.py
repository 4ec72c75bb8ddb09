"""The steps of docs/add-an-algorithm.md, done as the page says them, in a copy of the library.

Its commands run as they stand there, its lines go where it says. `make` might install the copy, so that what it would
run is run; not the checks of types and of the rules of the house, which take longer than everything else. `make docs`
does this and prints on the page what the commands said. By hand:

    python tools/added_algorithm.py
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/add-an-algorithm.md"
# What nobody has in a fresh clone.
MADE = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "coming-from", "do", "learn", "reference")
OF_MAKE = {
    "make api": [".venv/bin/python tools/api_reference.py"],
    "make lint": [".venv/bin/ruff check .", ".venv/bin/ruff format --check .", ".venv/bin/lint-imports"],
}


class StepError(Exception):
    """A step of the page that fails, with what it printed."""


def steps(text: str) -> str:
    """The steps of the page that a build can do: the last is about what may come later."""
    return text[: text.index("\n6. ")]


def files(text: str) -> list[str]:
    """The commands of the first step."""
    return re.findall(r"^ *((?:cp|cat) .+)$", steps(text), re.M)


def lines(text: str) -> list[tuple[str, str, str]]:
    """The lines of the third step: file, what they stand in ("" for the imports), line."""
    [block] = re.findall(r"^3\. .*?^ *```\n(.*?)^ *```$", steps(text), re.S | re.M)
    found, file = [], ""
    for row in block.splitlines():
        named, _, said = row.strip().rpartition("  ")  # a row without a file continues that above
        file = named.strip() or file
        place, colon, line = said.removeprefix("in ").partition(": ")
        found.append((file, place, line) if colon and said.startswith("in ") else (file, "", said))
    return found


def commands(text: str) -> list[str]:
    """The commands in the sentences of the steps, in their order."""
    found = re.findall(r"`((?:\.venv/bin/|make )[^`]+)`", steps(text))
    return [command for one in found for command in (OF_MAKE[one] if one.startswith("make ") else [one])]


def with_line(source: str, place: str, line: str) -> str:
    """The source with a line as the last in the brackets of a place, or as the last import of a module."""
    if place:
        found = re.search(rf"^{re.escape(place)}\b[^\n]*[\[{{(]\n.*?(?=^[\])}}])", source, re.S | re.M)
        line = f"    {line}"
    else:
        found = re.search(r"\A.*^from \.[^\n]*\n", source, re.S | re.M)
    if found is None:
        raise StepError(f"no place for {line.strip()!r}: {place or 'from . import'}")
    return f"{source[: found.end()]}{line}\n{source[found.end() :]}"


def add(tree: Path) -> list[tuple[str, str]]:
    """Do the steps in a tree, a copy of the library.

    Returns
    -------
    list of (command, the last line that it printed)

    Raises
    ------
    StepError
        If one fails; what follows is not done.
    """
    text = (tree / PAGE).read_text(encoding="utf-8")
    for command in files(text):
        _run(command, tree)
    for file, place, line in lines(text):
        path = tree / file
        path.write_text(with_line(path.read_text(encoding="utf-8"), place, line), encoding="utf-8")
    return [(command, _run(command, tree)) for command in commands(text)]


def add_to_a_copy() -> list[tuple[str, str]]:
    """As `add`, in a folder that is removed; its environment is that of this process."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "shoal"
        shutil.copytree(ROOT, tree, ignore=MADE)
        (tree / ".venv").symlink_to(sys.prefix)
        return add(tree)


def _run(command: str, tree: Path) -> str:
    """The last line that a command prints."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}  # before the library that is installed
    done = subprocess.run(command, shell=True, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StepError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2].strip()


if __name__ == "__main__":
    for command, said in add_to_a_copy():
        print(f"$ {command}\n{said}")
