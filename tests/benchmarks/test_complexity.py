"""The cost curves: every online learner has a case, and what is said of a curve is right."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.complexity import curves
from benchmarks.complexity.cases import ALL_TASKS, CASES, FLAT, RELATION, Case, Size, audit
from benchmarks.complexity.curves import AXES, Curve, Measured, allocate, curve, state_bytes, stream
from benchmarks.complexity.picture import figure

import shoal
from shoal.cli.commands.learners import learner_kinds
from shoal.model.state import leaves


def test_every_public_online_learner_has_a_case_or_a_reason() -> None:
    assert audit(set(learner_kinds())) == []
    [said] = audit({*learner_kinds(), "New"})
    assert said.startswith("New is neither measured nor excluded with a reason: add it to CASES")
    assert audit(set(learner_kinds()) - {"OSMTL"}) == ["OSMTL is no public online learner"]


@pytest.mark.parametrize("size", [Size(1, 3, 100), Size(30, 10, 1_000), Size(100, 7, 100)])
def test_rows_have_distinct_columns_and_tasks_come_in_turn(size: Size) -> None:
    X, task = stream(50, size)
    assert X.shape == (50, size.features)
    assert all(len(set(row.indices)) == size.nnz for row in X)
    assert X.has_sorted_indices
    np.testing.assert_array_equal(task, np.arange(50) % size.tasks)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("axis", AXES)
def test_an_exponent_is_found_behind_the_fixed_cost_of_a_row(axis: str, power: float) -> None:
    sizes = [*AXES[axis]]
    found = Curve(axis, sizes, [3e-7 + 3e-9 * n**power for n in sizes]).exponent()
    assert found == pytest.approx(power, abs=0.3 if axis == "nnz" else 0.02)


def test_a_cache_left_behind_is_no_growth_and_late_growth_is() -> None:
    sizes = [*AXES["tasks"]]
    assert Curve("tasks", sizes, [1.0 if n < 10_000 else 3.0 for n in sizes]).exponent() == pytest.approx(0.0)
    assert Curve("tasks", sizes, [1.0 + n / 10_000 for n in sizes]).exponent() > curves.TOLERANCE
    assert math.isnan(Curve("tasks", [10], [1.0], "memory").exponent())


def test_only_a_cost_above_the_documented_one_is_told() -> None:
    linear = Curve("tasks", [10, 100, 1_000], [1.0, 10.0, 100.0])
    assert Measured(1.0, {"tasks": linear}, 1.0).above(FLAT)
    assert not Measured(1.0, {"tasks": linear}, 1.0).above(ALL_TASKS)
    assert not Measured(1.0, {"tasks": linear}, 1.0).above(RELATION)
    assert Measured(1.0, {"tasks": linear}, 1.5).above(RELATION)


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_of_a_state_are_foreseen(name: str) -> None:
    case, size = CASES[name], Size(1, 200, 300)
    copies = 1 if case.n_labels == 2 else case.n_labels + 1
    bytes_kept = copies * sum(array.nbytes for array in leaves(allocate(case, size.tasks, size.features)))
    assert state_bytes(case, size) == pytest.approx(bytes_kept, rel=0.5)  # some are padded to powers of two


def test_a_curve_ends_where_its_limits_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "AXES", {"tasks": (3, 6, 12), "features": (30, 300, 3_000)})
    monkeypatch.setattr(curves, "ROWS", 24)
    monkeypatch.setattr(curves, "cost", lambda case, size, n_rows, n_passes: 1e-6)
    case = Case(shoal.PassiveAggressive, FLAT, base=Size(3, 3, 30))
    assert curve(case, "tasks", 1e-6) == Curve("tasks", [3, 6, 12], [1e-6] * 3)
    monkeypatch.setattr(curves, "BYTES", 1e4)
    assert curve(case, "features", 1e-6).ended_by == "memory"
    monkeypatch.setattr(curves, "SECONDS", 1e-6)
    assert curve(case, "tasks", 1e-6) == Curve("tasks", [], [], "time")


def test_the_picture_shows_every_learner(tmp_path: Path) -> None:
    some = {name: CASES[name] for name in ("PassiveAggressive", "OSMTL", "LocalGlobalGaussian")}
    found = {name: Measured(1e-6, {axis: _rising(axis) for axis in AXES}, 1.0) for name in some}
    path = tmp_path / "curves.svg"
    figure(found).save(path)
    drawn = path.read_text(encoding="utf-8")
    assert all(name in drawn for name in some)


def _rising(axis: str) -> Curve:
    return Curve(axis, [*AXES[axis]], [1e-6 * n for n in AXES[axis]])
