"""The measures against the library's own evaluation, and against what the papers say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score, roc_auc_score

from shoal import OSMTL, PassiveAggressive
from shoal.datasets import make_related_tasks
from shoal.datasets.dataset import Dataset
from shoal.evaluation import progressive_validate
from shoal.papers.by_paper import yang_li
from shoal.papers.protocols import cross_validated, held_out, progressive, split

DATA = make_related_tasks(n_tasks=4, n_features=6, n_rows=400, seed=2)


def test_a_split_is_even_stratified_and_in_rounds() -> None:
    first, rest = split(DATA, 3, 30)
    assert len(set(first) | set(rest)) == len(first) + len(rest) == 400
    tasks = DATA.task[first]
    assert len(first) == 120
    assert (tasks.reshape(30, 4) == [0, 1, 2, 3]).all()
    for k in range(4):
        share = (DATA.y[DATA.task == k] > 0).mean()
        assert abs((DATA.y[first][tasks == k] > 0).mean() - share) <= 0.5 / 30
    assert not np.array_equal(first, split(DATA, 4, 30)[0])
    np.testing.assert_array_equal(first, split(DATA, 3, 30)[0])


def test_held_out_is_the_auc_of_the_final_model() -> None:
    found = held_out(DATA, OSMTL(), 0, train=50)
    first, rest = split(DATA, 0, 50)
    learner = OSMTL().fit(DATA.X[first], DATA.y[first], DATA.task[first])
    scores = learner.decision_function(DATA.X[rest], DATA.task[rest])
    expected = [roc_auc_score(DATA.y[rest][m], scores[m]) for m in (DATA.task[rest] == k for k in range(4))]
    assert found["auc"] == pytest.approx(np.mean(expected), abs=1e-12)
    assert found["nsv"] == learner.n_updates_


def test_cross_validation_stays_within_the_training_rows() -> None:
    """Rows that are not drawn may be anything."""
    _, rest = split(DATA, 0, 50)
    spoilt = DATA.subset(slice(None))
    spoilt.X[rest] = 1e6
    assert cross_validated(DATA, OSMTL(), 0, train=50) == cross_validated(spoilt, OSMTL(), 0, train=50)


def test_progressive_is_progressive_validation() -> None:
    found = progressive(DATA, PassiveAggressive(), 1)
    rows = DATA.interleaved(1)
    expected = progressive_validate(PassiveAggressive(), rows.stream(), classes=[-1.0, 1.0])
    for name in ("error", "f1_positive", "f1_negative"):
        assert found[name] == pytest.approx(expected.macro[name], abs=1e-12)
    of_tasks = [task["auc"] for task in expected.per_task.values()]  # the papers average over small tasks, too
    assert found["auc"] == pytest.approx(np.nanmean(of_tasks), abs=1e-12)
    assert found["all_error"] == pytest.approx(expected.overall["error"])
    assert found["nsv"] == expected.n_updates
    assert found["curve"][-1] == pytest.approx(found["error"])
    assert len(found["curve"]) == 40


def test_progressive_by_task_is_progressive() -> None:
    """Each task's own numbers, whose means are the numbers; the curves end at them."""
    few = DATA.subset(np.delete(np.arange(400), np.flatnonzero(DATA.task == 2)[7:]))  # a task of seven rows
    plain, found = progressive(few, PassiveAggressive(), 1), progressive(few, PassiveAggressive(), 1, by_task=True)
    rows = few.interleaved(1)
    said = PassiveAggressive().test_then_train(rows.X, rows.y, rows.task, classes=[-1.0, 1.0]) >= 0
    mine = [rows.task == k for k in range(4)]
    for name, label in (("f1_positive", True), ("f1_negative", False)):
        expected = [f1_score(rows.y[m] > 0, said[m], pos_label=label) for m in mine]
        assert found[f"{name} of tasks"] == pytest.approx(expected)
        assert found[f"{name} curve"][-1] == pytest.approx(plain[name])
        half = [f1_score((rows.y[m] > 0)[: m.sum() // 2], said[m][: m.sum() // 2], pos_label=label) for m in mine]
        assert found[f"{name} curve"][19] == pytest.approx(np.mean(half))
    assert [curve[-1] for curve in found["curves"]] == pytest.approx(found["errors"])
    assert np.mean(found["curves"], axis=0) == pytest.approx(plain["curve"])
    assert found["tasks"] == ["0", "1", "2", "3"]


class FirstColumn(BaseEstimator):  # type: ignore[misc]
    """Decides by a row's first feature, and says that it asked for three labels."""

    n_queries_ = 3

    def fit(self, X: np.ndarray, y: np.ndarray, task: np.ndarray) -> FirstColumn:
        return self

    def test_then_train(self, X: np.ndarray, y: np.ndarray, task: np.ndarray, classes: list[float]) -> np.ndarray:
        return X[:, 0]


def test_the_error_against_labels_asked_for_is_a_mean_over_tasks() -> None:
    """Of the first task all four rows are right, of the second one is, and a negative row stands above a positive."""
    X = np.array([[0.9], [-0.1], [0.8], [-0.3], [0.3], [0.2]])
    y, task = np.array([1.0, -1.0, 1.0, -1.0, -1.0, 1.0]), np.array(["a", "a", "a", "a", "b", "b"])
    found = yang_li.asked(Dataset("made", X, y, task, ("x",), "Made by hand.", "binary"), FirstColumn(), 0)
    assert [found["error"], found["asked"], found["auc"]] == [25.0, 50.0, 0.5]
