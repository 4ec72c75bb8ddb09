"""What is counted of rows, against plain loops."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.serve.material import write_model

from shoal.serve.contract import UnknownTask
from shoal.serve.served import Learned, Served
from shoal.serve.statistics import MOST_POINTS, Statistics


def slices(seed: int, n: int) -> list[Learned]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        size = int(rng.integers(1, 60))
        tasks = [f"t{k}" for k in rng.integers(0, 30, size)]
        truth = np.where(rng.random(size) < 0.4, "yes", "no")
        decisions, one, other = rng.normal(size=(3, size)) * 3
        found.append(Learned(tasks, truth, decisions, {"independent": one, "pooled": other}))
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(write_model(tmp_path_factory.mktemp("model")))


def test_all_numbers_are_those_of_plain_loops(served: Served) -> None:
    found = Statistics(served)
    errors, losses = [0.0] * 3, [0.0] * 3
    by_task: dict[str, list[float]] = {}
    bins = [[0.0, 0.0, 0.0] for _ in range(10)]
    rows = 0
    for part in slices(0, 600):
        found.learned(part)
        said = [part.decisions, part.shadows["independent"], part.shadows["pooled"]]
        for i, (task, truth) in enumerate(zip(part.tasks, part.truth.tolist(), strict=True)):
            sign = 1.0 if truth == "yes" else -1.0
            for who, decisions in enumerate(said):
                f = float(decisions[i])
                errors[who] += (f >= 0) != (sign > 0)
                losses[who] += math.log1p(math.exp(-abs(f))) + max(-sign * f, 0.0)
            f = float(said[0][i])
            one = by_task.setdefault(str(task), [0.0, 0.0])
            one[0] += 1
            one[1] += (f >= 0) != (sign > 0)
            p = 1 / (1 + math.exp(-f))
            place = bins[min(int(p * 10), 9)]
            place[0], place[1], place[2] = place[0] + 1, place[1] + p, place[2] + (sign > 0)
            rows += 1
    state = found.state()
    assert state["rows"] == rows
    np.testing.assert_allclose(state["errors"], np.array(errors) / rows)
    np.testing.assert_allclose(state["losses"], np.array(losses) / rows)
    np.testing.assert_allclose(np.array(state["calibration"]).T, bins)
    points = np.array(state["points"])
    assert 2 < len(points) <= MOST_POINTS + 1
    np.testing.assert_allclose(points[:, 0].sum(), rows)  # no row is lost where neighbors become one
    np.testing.assert_allclose(points[:, 2::2].sum(axis=0), errors)
    listed, total = found.list_tasks("rows", "T1", 0, 100)
    assert total == sum("t1" in task for task in by_task)
    for one_task in listed:
        count, wrong = by_task[str(one_task["task"])]
        assert (one_task["rows"], one_task["error"]) == (count, pytest.approx(wrong / count))
    worst = max(by_task, key=lambda task: by_task[task][1] / by_task[task][0])
    assert found.list_tasks("error", "", 0, 1)[0][0]["task"] == worst
    gauges = found.gauges()
    assert gauges["error_of_worst_task"] == pytest.approx(by_task[worst][1] / by_task[worst][0])
    assert gauges["error_of_last_hour"] == pytest.approx(errors[0] / rows)
    assert gauges["calibration_error"] == pytest.approx(sum(abs(p - y) for _, p, y in bins) / rows)


def test_saved_and_forgotten(served: Served, tmp_path: Path) -> None:
    parts = slices(1, 40)
    found = Statistics(served)
    for part in parts[:20]:
        found.learned(part)
    again = Statistics(served, found.to_dict())
    for part in parts[20:]:
        found.learned(part)
        again.learned(part)
    assert again.list_tasks("name", "", 0, 100) == found.list_tasks("name", "", 0, 100)
    assert again.state()["errors"] == found.state()["errors"]
    before = {str(one["task"]): one for one in found.list_tasks("name", "", 0, 100)[0]}
    found.forget("t3")
    with pytest.raises(UnknownTask):
        found.task("t3")
    new = Learned(
        ["t99"], np.array(["yes"]), np.array([-1.0]), {name: np.ones(1) for name in ("independent", "pooled")}
    )
    found.learned(new)
    after = {str(one["task"]): one for one in found.list_tasks("name", "", 0, 100)[0]}
    assert after.pop("t99") == {"task": "t99", "rows": 1, "error": 1.0, "loss": pytest.approx(math.log1p(math.e))}
    before.pop("t3")
    assert after == before
