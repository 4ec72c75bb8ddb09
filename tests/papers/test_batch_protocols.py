"""The measures of batch learners, each against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from shoal import IndependentTasks, PooledTasks, RegMTL, RegMTLRegressor, SparseMTL, SparseMTLRegressor
from shoal.datasets import Dataset, make_conjoint, make_related_tasks
from shoal.papers.batch_protocols import by_size, explained, simulated, three_quarters
from shoal.papers.protocols import held_out

LABELS = make_related_tasks(n_tasks=4, n_features=6, n_rows=400, seed=2)
_rng = np.random.default_rng(0)
_task = np.repeat(["c", "a", "b"], [41, 80, 22])
SCORES = Dataset(
    "scores", _rng.normal(size=(143, 3)), _rng.normal(size=143) + 5.0 * (_task == "a") + 100.0, _task, ("x", "y", "z"),
    "Levels differ by task.", "regression",
)  # fmt: skip
PEOPLE: dict[str, Any] = {"similarity": "high", "n_tasks": 5, "n_questions": 6}


class Level(BaseEstimator):  # type: ignore[misc]
    """Answers the mean of a task's training targets."""

    def fit(self, X: Any, y: Any, task: Any) -> Level:
        self.means_ = {k: y[task == k].mean() for k in np.unique(task)}
        return self

    def predict(self, X: Any, task: Any) -> Any:
        return np.array([self.means_[k] for k in task])


def test_three_quarters_of_every_task_are_learned() -> None:
    learn = three_quarters(_task, 0)
    assert [int(learn[_task == k].sum()) for k in "abc"] == [60, 16, 30]
    np.testing.assert_array_equal(learn, three_quarters(_task, 0))
    assert (learn != three_quarters(_task, 1)).any()


def test_explained_variance_is_r2_over_the_test_rows_of_all_tasks() -> None:
    learn = three_quarters(_task, 3)
    fitted = PooledTasks(estimator=Ridge()).fit(SCORES.X[learn], SCORES.y[learn], _task[learn])
    expected = r2_score(SCORES.y[~learn], fitted.predict(SCORES.X[~learn], _task[~learn]))
    found = explained(SCORES, PooledTasks(estimator=Ridge()), 3)
    assert found["explained"] == pytest.approx(expected, abs=1e-12)
    assert "vectors" not in found


def test_levels_of_tasks_explain_nothing_within_tasks() -> None:
    found = explained(SCORES, Level(), 0)
    assert found["within"] == pytest.approx(0.0, abs=1e-12)
    assert found["explained"] > 0.5


@pytest.mark.parametrize("learner", [IndependentTasks(estimator=Ridge()), RegMTLRegressor(loss="squared", mu=0.1)])
def test_a_shift_of_all_targets_changes_nothing(learner: Any) -> None:
    shifted = Dataset("", SCORES.X, SCORES.y - 77.0, SCORES.task, SCORES.feature_names, "", "regression")
    assert explained(shifted, learner, 0) == pytest.approx(explained(SCORES, learner, 0), abs=1e-9)


def test_vectors_are_what_a_prediction_takes() -> None:
    sizes: dict[str, Any] = {"n_common": 5, "n_task": 3, "tol": 0.0, "random_state": 0}
    assert explained(SCORES, SparseMTLRegressor(**sizes), 0).items() >= {
        "vectors": 8.0, "common": 5, "own": 3.0, "kept": 5 + 3 * 3,
    }.items()  # fmt: skip
    assert explained(SCORES, SparseMTLRegressor(sharing="common", **sizes), 0)["vectors"] == 5
    found = explained(SCORES, RegMTLRegressor(loss="squared"), 0)
    assert found["vectors"] == found["kept"] == three_quarters(_task, 0).sum()


def test_every_run_is_a_simulation_of_its_own() -> None:
    train, test = make_conjoint("high", n_tasks=5, n_questions=6, seed=7)
    expected = 1 - RegMTL().fit(train.X, train.y, train.task).score(test.X, test.y, test.task)
    one, other = (simulated(train, RegMTL(), seed, **PEOPLE) for seed in (7, 8))
    assert one["error"] == pytest.approx(expected, abs=1e-12)
    both = simulated(train, RegMTL(), 7, **PEOPLE, repeats=2)
    assert both["error"] == pytest.approx((one["error"] + other["error"]) / 2)
    assert both["vectors"] == (one["vectors"] + other["vectors"]) / 2
    found = simulated(train, SparseMTL(n_common=2, n_task=4, tol=0.0, random_state=0), 7, **PEOPLE)
    assert (found["common"], found["own"], found["vectors"]) == (2, 4, 6)


def test_a_curve_holds_the_auc_of_each_size() -> None:
    found = by_size(LABELS, IndependentTasks(), 1, sizes=(10, 40))
    expected = [held_out(LABELS, IndependentTasks(), 1, train=n)["auc"] for n in (10, 40)]
    assert found == {"curve": expected, "auc": np.mean(expected), "auc_20": expected[0], "auc_last": expected[1]}
