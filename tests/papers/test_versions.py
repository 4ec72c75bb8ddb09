"""Which code a result depends on."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from shoal.papers.cache import versions
from shoal.papers.cache.versions import closure, version_of, version_of_function
from shoal.papers.learners import Spec, build, is_there, modules


def test_a_learner_depends_on_what_it_imports_and_not_on_other_learners() -> None:
    needed = closure("shoal.online.osmtl")
    assert {
        "shoal.online.osmtl",
        "shoal.learner",
        "shoal.engine.rows",
        "shoal.model.persistence",
        "shoal.engine.rounds",
    } <= needed
    assert not {name for name in needed if "romco" in name or "cli" in name or "papers" in name}


def test_lazily_loaded_packages_count_with_all_they_hold() -> None:
    assert "shoal.datasets.landmine" in closure("shoal.papers.data_sets")
    assert "shoal.evaluation.metrics.auc" in closure("shoal.evaluation")


def test_versions_differ_by_module() -> None:
    assert version_of(["shoal.online.osmtl"]) != version_of(["shoal.online.romco"])
    assert version_of(["shoal.engine.rows", "shoal.online.osmtl"]) == version_of(["shoal.online.osmtl"])


MODULE = """
from shoal.papers import pictures
from shoal.engine.losses import CLASSIFICATION

SCALE = 2.0
PUBLISHED = {"a": 1.0}

def measure(x):
    return helper(x)

def helper(x):
    return SCALE * x  # twice

def draw(x):
    return pictures.curves
"""


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (("PUBLISHED = {", "PUBLISHED = {'b': 2.0, "), False),
        (("pictures.curves", "pictures.beside"), False),
        (("# twice", "# two times"), False),
        (('{"a": 1.0}', '{x: 1.0 for x in "a"}'), False),  # its x is not the module's
        (("SCALE = 2.0", "SCALE = 3.0"), True),
        (("SCALE * x", "SCALE + x"), True),
        (("return helper(x)", "return helper(x), CLASSIFICATION"), True),
    ],
)
def test_of_a_functions_module_only_what_it_names_counts(
    change: tuple[str, str], counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        _version(MODULE, tmp_path / "one", monkeypatch),
        _version(MODULE.replace(*change), tmp_path / "two", monkeypatch),
    ]
    assert (found[0] != found[1]) == counts


def _version(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder.mkdir()
    path = folder / "made_up.py"
    path.write_text(source)
    spec: Any = importlib.util.spec_from_file_location("made_up", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _file = versions._file
    monkeypatch.setattr(versions, "_file", lambda name: path if name == "made_up" else _file(name))
    for remembered in (versions._source, versions._definitions, versions._version_of_function):
        remembered.cache_clear()
    version = version_of_function(module.measure)
    monkeypatch.undo()
    return version


def test_learners_in_learners() -> None:
    spec = Spec("LabelQuery", {"estimator": Spec("PassiveAggressive", {"C": 0.5}), "rule": "fixed", "budget": 0.3})
    learner = build(spec, seed=7)
    assert learner.random_state == 7
    assert learner.estimator.C == 0.5
    assert spec.to_json() == [
        "LabelQuery",
        {"estimator": ["PassiveAggressive", {"C": 0.5}], "rule": "fixed", "budget": 0.3},
    ]
    assert modules(spec) == {"shoal.wrappers.label_query", "shoal.online.passive_aggressive"}
    assert is_there("OSMTL")
    assert not is_there("NoSuchLearner")
    assert not is_there("Periodic NoSuchLearner")
