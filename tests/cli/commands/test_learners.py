"""`shoal learners`, `datasets`, `inspect`, `--version`, and how values are read."""

from __future__ import annotations

import math
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Program

from shoal import MultitaskPerceptron
from shoal.cli.commands.compile import kinds_with_kernels, stream_of
from shoal.cli.commands.learners import batch_kinds, learner_kinds, make_learner, parse_value, table_kinds


def test_all_public_learners_are_listed_with_their_defaults(shoal: Program) -> None:
    code, out, _ = shoal("learners")
    assert code == 0
    sections = [section.splitlines() for section in out.split("\n\n")]
    headings = ["Online", "Batch (in Python only)", "For tables, around a learner (in Python only)"]
    assert [section[0] for section in sections[:-1]] == headings
    for (_, *lines), kinds in zip(sections, (learner_kinds(), batch_kinds(), table_kinds()), strict=False):
        assert [line.split()[0] for line in lines if line[2] != " "] == list(kinds)
    assert list(table_kinds()) == ["TabularClassifier", "TabularRegressor", "TaskColumn"]
    assert "relation='pairwise'" in out
    assert "estimator, task='task'" in out


@pytest.mark.parametrize("name", [*learner_kinds(), *batch_kinds()])
def test_every_learner_has_bibtex(shoal: Program, name: str) -> None:
    code, out, _ = shoal("cite", name)
    assert code == 0
    assert out.count("\n@") >= 1
    assert out.count("{") == out.count("}")


def test_every_paper_can_be_found(shoal: Program) -> None:
    for name in (*learner_kinds(), *batch_kinds()):
        for paper in shoal("cite", name)[1].split("\n\n")[1:]:
            assert re.search(r"^  (doi|eprint|isbn|url) = \{\S+\},$", paper, re.M), paper


def test_the_entry_of_the_library_is_that_of_the_citation_file(shoal: Program) -> None:
    """Finding 38: no date, and no BibTeX."""
    code, out, _ = shoal("cite")
    file = (Path(__file__).parents[3] / "CITATION.cff").read_text(encoding="utf-8")
    assert code == 0
    for ours, theirs in (("version", "version"), ("date", "date-released"), ("license", "license")):
        [value] = re.findall(rf"^{theirs}: (.+)$", file, re.M)
        assert f"  {ours} = {{{value}}}" in out
    assert f"version = {{{metadata.version('shoal')}}}" in out
    assert shoal("cite", "OSMTLL")[0] == 2


# What brings a table to any learner has no paper; TaskLevelsRegressor has no parameters.
ABSENT = {
    **{name: {"References\n"} for name in ("TabularClassifier", "TabularRegressor", "TaskColumn")},
    "TaskLevelsRegressor": {"Parameters\n"},
}


@pytest.mark.parametrize("name", [*learner_kinds(), *batch_kinds(), *table_kinds()])
def test_a_learner_is_explained_by_its_name(shoal: Program, name: str) -> None:
    code, out, _ = shoal("learners", name)
    assert code == 0
    assert out.startswith(f"{name}(")
    for section in {"Parameters\n", "References\n", "Examples\n"} - ABSENT.get(name, set()):
        assert section in out


def test_data_sets_are_listed(shoal: Program) -> None:
    code, out, _ = shoal("datasets")
    assert code == 0
    assert "dataset:flights" in out


def test_inspect_says_what_a_model_has_learned(shoal: Program, tmp_path: Path) -> None:
    learner = MultitaskPerceptron(relation=2.0)
    learner.fit(np.eye(4), ["no", "yes", "no", "yes"], ["a", "a", "b", "c"])
    learner.save(tmp_path / "m.shoal")
    code, out, _ = shoal("inspect", tmp_path / "m.shoal")
    assert code == 0
    assert "MultitaskPerceptron(relation=2.0" in out or "relation=2.0" in out
    assert "3: a, b, c" in out
    assert "'no' (-1), 'yes' (+1)" in out
    assert f"{learner.n_updates_}" in out


def test_version(shoal: Program) -> None:
    code, out, _ = shoal("--version")
    assert code == 0
    assert out.startswith("shoal ")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("0.5", 0.5), ("true", True), ("None", None), ("logistic", "logistic"), ("inf", math.inf)],
)
def test_values_of_settings(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_a_graph_can_be_set() -> None:
    learner = make_learner("MultitaskPerceptron", ['relation=[["a", "b"], ["b", "c"]]'])
    assert learner.fit(np.eye(2), [-1, 1], ["a", "c"]).tasks_ == ["a", "b", "c"]


def test_what_is_compiled_is_made_without_arguments_and_takes_a_stream(shoal: Program) -> None:
    """All at once, of which a run takes minutes; what has no kernel of its own is refused."""
    kinds = kinds_with_kernels()
    assert {"Conformal", "HedgedSharing", "SparseMTL"} < {kind.__name__ for kind in kinds}
    for kind in kinds:
        X, y, task = stream_of(kind())
        assert len(X) == len(y) == len(task)
    for name in ("TaskColumn", "Periodic"):
        code, _, err = shoal("compile", name)
        assert (code, f"{name} has nothing of its own to compile" in err) == (2, True)
