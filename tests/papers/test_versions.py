"""Which code a result depends on."""

from __future__ import annotations

from shoal.papers.learners import Spec, build, is_there, modules
from shoal.papers.versions import closure, version_of


def test_a_learner_depends_on_what_it_imports_and_not_on_other_learners() -> None:
    needed = closure("shoal.online.osmtl")
    assert {"shoal.online.osmtl", "shoal.learner", "shoal.ops", "shoal.storage", "shoal.rounds"} <= needed
    assert not {name for name in needed if "romco" in name or "cli" in name or "papers" in name}


def test_lazily_loaded_packages_count_with_all_they_hold() -> None:
    assert "shoal.datasets.landmine" in closure("shoal.papers.material")
    assert "shoal.evaluation.ranking" in closure("shoal.evaluation")


def test_versions_differ_by_module() -> None:
    assert version_of(["shoal.online.osmtl"]) != version_of(["shoal.online.romco"])
    assert version_of(["shoal.ops", "shoal.online.osmtl"]) == version_of(["shoal.online.osmtl"])


def test_learners_in_learners() -> None:
    spec = Spec("LabelQuery", {"learner": Spec("PassiveAggressive", {"C": 0.5}), "rule": "fixed", "budget": 0.3})
    learner = build(spec, seed=7)
    assert learner.random_state == 7
    assert learner.learner.C == 0.5
    assert spec.to_json() == [
        "LabelQuery",
        {"learner": ["PassiveAggressive", {"C": 0.5}], "rule": "fixed", "budget": 0.3},
    ]
    assert modules(spec) == {"shoal.online.label_query", "shoal.online.passive_aggressive"}
    assert is_there("OSMTL")
    assert not is_there("NoSuchLearner")
    assert not is_there("Periodic NoSuchLearner")
