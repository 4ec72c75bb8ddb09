"""The pages for maintainers say what is true: what they name is there, what they quote was printed, errors are told."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal import HedgedSharing

ROOT = Path(__file__).parents[1]
PAGES = ["docs/architecture.md", "docs/glossary.md", "docs/add-an-algorithm.md", "CONTRIBUTING.md"]
DECISIONS = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("*.md") if path.stem != "index")
NEVER_MET = {  # by a user: exception -> who catches it
    "HttpProblem": "the routes make an answer of it",
    "Moved": "a backup begins again",
    "OutOfStep": "a cluster restores the shard",
    "Unread": "the reader of frames takes the row",
}
ROOM_READMES = ["engine", "online/hedged_sharing", "files/sparse_text", "serve"]
OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(src|tests|docs|tools|benchmarks|examples)/[\w./-]*|[\w-]+\.(py|pyi|md|toml|txt)")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def named(page: str) -> list[str]:
    """What stands in backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text_of(page), flags=re.S))


def found(dotted: str) -> Any:
    """The object of a name below `shoal`. Raises AttributeError or ImportError if there is none."""
    parts = dotted.removeprefix("shoal.").split(".")
    thing, path = importlib.import_module("shoal"), "shoal"
    for part in parts:
        path = f"{path}.{part}"
        try:
            thing = importlib.import_module(path)
        except ModuleNotFoundError:
            thing = getattr(thing, part)
    return thing


@cache
def defined_tests() -> set[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("test_*.py"))
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def missing_of(names: list[str]) -> list[str]:
    """Those that name a file, a test or an object that is not there; other words name nothing."""
    missing = []
    for name in names:
        if FILE.fullmatch(name):
            if not (ROOT / name).exists():
                missing.append(name)
        elif name.startswith("test_") and name.isidentifier() and name != "test_then_train":
            if name not in defined_tests():
                missing.append(name)
        elif OBJECT.fullmatch(name):
            try:
                found(name)
            except (AttributeError, ImportError):
                missing.append(name)
    return missing


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_exists(page: str) -> None:
    names = named(page)
    assert missing_of(names) == []
    assert len(names) > 20


def test_a_name_that_is_gone_is_noticed() -> None:
    gone = ["model.core.Core.gone", "gone.Core", "test_gone", "tests/gone.py", "gone.toml"]
    there = ["model.core.Core", "test_a_name_that_is_gone_is_noticed", "tests/cases.py", "pyproject.toml", "any words"]
    assert missing_of(there + gone) == gone


def test_the_picture_shows_the_layers_of_imports() -> None:
    settings = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in settings if contract["type"] == "layers"]
    picture = text_of("docs/architecture.md").split("```")[1]
    assert [line.split("│")[1].strip() for line in picture.strip("\n").splitlines()] == layers


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(page))
    assert [link for link in links if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()] == []


def test_every_word_of_the_glossary_is_one_entry() -> None:
    words = re.findall(r"^- \*\*(.+?)\*\*: \S", text_of("docs/glossary.md"), re.M)
    assert len(words) == len(set(words)) == text_of("docs/glossary.md").count("\n- ") > 30


@pytest.mark.parametrize("room", ROOM_READMES)
def test_a_room_with_a_hard_idea_has_a_readme(room: str) -> None:
    text = text_of(f"src/shoal/{room}/README.md")
    files = re.findall(r"`([\w./-]+\.(?:py|md))`", text)
    bases = (ROOT, ROOT / "src" / "shoal" / room)
    assert [file for file in files if not any((base / file).exists() for base in bases)] == []
    assert len(text.split()) < 250


def test_every_word_in_the_name_of_an_expert_is_explained() -> None:
    """In reports, `--tasks-out` and `expert_weights` stands nothing else."""
    page = text_of("docs/hedged-sharing.md")
    words = {word for name in HedgedSharing().experts_ for word in re.split(r"-(?!log)", name)}
    assert {word for word in words if not re.search(rf"`{word}`|^\| {word}\b|, {word}\b", page, re.M)} == set()


@pytest.mark.parametrize("page", DECISIONS)
def test_what_a_decision_quotes_was_printed(page: str) -> None:
    """Lines of its boxes stand on the page that has the whole output of the command."""
    sources = {line.strip() for path in (ROOT / "docs").glob("*.md") for line in path.read_text("utf-8").splitlines()}
    text = text_of(f"docs/decisions/{page}.md")
    quoted = [line.strip() for block in re.findall(r"```text\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert [line for line in quoted if line not in sources] == []
    assert "**The question.**" in text
    assert "**What would change our mind.**" in text
    assert page in text_of("docs/decisions/index.md").split()


def test_every_measurement_says_at_which_commit_it_ran() -> None:
    """The build of the site adds how old that is."""
    text = text_of("docs/benchmarks.md")
    blocks = re.findall(r"^```\n([^`]*?)^```\n\n(.*)$", text, re.M)
    commands = [(code, after) for code, after in blocks if re.match(r"(\w+=\S+ )*(python |make bench)", code)]
    assert len(commands) > 15
    assert [code for code, after in commands if not re.match(r"Printed at [0-9a-f]{7,}\.$", after)] == []


def test_learners_in_the_picture_that_helps_to_choose_are_public() -> None:
    words = set(re.findall(r"\b[A-Z]\w*[A-Z]\w*\b", re.sub(r"<.*?>", " ", text_of("docs/choose.svg"))))
    assert {"HedgedSharing", "MultitaskPerceptron"} <= words <= set(shoal.__all__)


def exceptions_of_shoal() -> set[str]:
    """The names of all classes of exceptions that a user may meet."""
    classes = [
        (node.name, {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases})
        for path in (ROOT / "src" / "shoal").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    known = {
        name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
    }
    found: set[str] = set()
    while new := {name for name, bases in classes if bases & (known | found)} - found:
        found |= new
    return {name for name in found if not name.startswith("_")}


def test_every_exception_is_on_the_page_of_errors() -> None:
    there = exceptions_of_shoal()
    assert {"Refused", "InDoubt", "BadRow", "ServiceError"} <= there
    told = set(re.findall(r"^\| `(\w+)`", text_of("docs/errors.md"), re.M))
    assert there - told - {*NEVER_MET} == set()
    assert {*NEVER_MET} <= there - told
    assert {name for name in told if not hasattr(builtins, name)} <= there
