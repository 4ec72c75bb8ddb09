"""The Python of README and of pages prints what stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Program
from tests.pages import ROOT, assert_its_python_prints_what_stands_below_it, commands_of, pages_with_python
from tests.serve.test_http import served

from shoal.datasets.samples import write_samples
from shoal.serve.engine import Engine, EngineSettings

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "start.md",
    DOCS / "threads.md",
    DOCS / "compatibility.md",
    DOCS / "own-learner.md",
    DOCS / "scikit-learn.md",
    DOCS / "tables.md",
]
OF_A_SERVICE = DOCS / "service.md"
OF_RAY = DOCS / "cluster.md"  # tests/cluster/test_page.py


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where a reader is, who has downloaded the learner of the page on own learners."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples" / "new_algorithm")
    return tmp_path


def test_all_pages_with_python_are_run() -> None:
    assert pages_with_python() == {*PAGES, OF_A_SERVICE, OF_RAY}


@pytest.mark.filterwarnings("ignore:The set_.* function will be deprecated:PendingDeprecationWarning")  # SHAP's colours
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_python_prints_what_stands_below_it(page: Path, folder: Path) -> None:
    write_samples(folder)
    assert_its_python_prints_what_stands_below_it(page)


def test_the_page_on_the_service_prints_what_it_says(shoal: Program, folder: Path) -> None:
    for command in commands_of(OF_A_SERVICE):
        assert shoal(*command)[0] == 0
    settings = EngineSettings(shadows=False)
    with Engine(folder / "model.shoal", folder / "engine", settings) as engine, served(engine, []) as url:
        assert_its_python_prints_what_stands_below_it(OF_A_SERVICE, instead={"http://127.0.0.1:8000": url})
