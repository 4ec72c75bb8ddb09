"""SHAMO: a fixed point of its two steps, planted groups found, clusters never empty."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.streams import Stream, assert_close, draw
from tests.twins import batch as twin

from shoal import SHAMO, IndependentTasks, PooledTasks
from shoal.batch.linear_svm import weighted_hinge
from shoal.batch.shamo import _fill_empty


def two_groups(seed: int, n_rows: int = 300, K: int = 10) -> Stream:
    """Tasks below K/2 learn a rule, the others its opposite."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n_rows, 5)), np.arange(n_rows) % K
    f = X @ rng.normal(size=5) + 0.3 * rng.normal(size=n_rows)
    return Stream(X, np.where(f * np.where(task < K // 2, 1, -1) > 0, 1.0, -1.0), task, np.arange(n_rows))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("M", [2, 3, 5])
def test_both_steps_have_nothing_left_to_do(M: int, seed: int) -> None:
    rows = draw(seed, n_rows=150, K=8)
    learner = SHAMO(n_hypotheses=M, random_state=seed).fit(rows.X, rows.y, rows.task)
    own = [rows.task == k for k in range(8)]
    L = np.array([[twin.mean_hinge(rows.X[i], rows.y[i], h) for h in learner.hypotheses_] for i in own])
    chosen = L[np.arange(8), learner.assignment_]
    assert (chosen <= L.min(axis=1) + 1e-12).all()
    assert learner.objective_[-1] == pytest.approx(chosen.sum())
    for c in range(M):
        members = np.flatnonzero(learner.assignment_[rows.task] == c)
        assert len(members)
        uniform = np.full(len(members), 1 / len(members))
        np.testing.assert_array_equal(
            learner.hypotheses_[c], weighted_hinge(rows.X[members], rows.y[members], uniform, 1e-3).w
        )
    np.testing.assert_array_equal(learner.coef_, learner.hypotheses_[learner.assignment_])


@pytest.mark.parametrize("seed", range(5))
def test_planted_groups_are_found(seed: int) -> None:
    rows = two_groups(seed)
    groups = SHAMO(random_state=seed).fit(rows.X, rows.y, rows.task).assignment_
    assert len(set(groups[:5])) == len(set(groups[5:])) == 1
    with pytest.warns(ConvergenceWarning):  # each task has taken its better hypothesis: the other would cost it more
        first = SHAMO(n_init=1, max_iter=1, random_state=seed).fit(rows.X, rows.y, rows.task).objective_
    assert len(first) == 1
    assert first[0] < 10  # the loss of answers of 0
    assert groups[0] != groups[9]


def test_one_hypothesis_is_pooled_and_one_a_task_fits_at_least_as_well_as_fewer() -> None:
    rows = two_groups(0)
    learner = SHAMO(n_hypotheses=1, random_state=0).fit(rows.X, rows.y, rows.task)
    np.testing.assert_array_equal(learner.coef_, PooledTasks().fit(rows.X, rows.y, rows.task).coef_)
    assert learner.n_iter_ == 1
    many = SHAMO(n_hypotheses=50, n_init=1, random_state=0).fit(rows.X, rows.y, rows.task)
    assert len(many.hypotheses_) == 10  # as many as there are tasks
    assert many.objective_[-1] < learner.objective_[-1]


def test_starts_differ_and_the_best_is_kept() -> None:
    rows = draw(2, n_rows=120, K=12)
    single = [
        SHAMO(n_hypotheses=4, n_init=1, random_state=seed).fit(rows.X, rows.y, rows.task).objective_[-1]
        for seed in range(6)
    ]
    assert len(set(single)) > 1
    state = np.random.RandomState(0)
    several = [
        SHAMO(n_hypotheses=4, n_init=1, random_state=state).fit(rows.X, rows.y, rows.task).objective_[-1]
        for _ in range(6)
    ]
    best = SHAMO(n_hypotheses=4, n_init=6, random_state=0).fit(rows.X, rows.y, rows.task).objective_[-1]
    assert best == min(several)


def test_empty_clusters_get_a_task_of_a_cluster_with_several() -> None:
    for seed in range(20):
        assignment = np.array([1, 1, 1, 3, 1])
        _fill_empty(assignment, 5, np.random.RandomState(seed))
        assert sorted(assignment) == [0, 1, 2, 3, 4]


def test_separate_hypotheses_are_independent_learning() -> None:
    """As many hypotheses as tasks, none shared: each is the task's own model."""
    rows = two_groups(1, n_rows=60, K=2)
    learner = SHAMO(n_hypotheses=2, random_state=0).fit(rows.X, rows.y, rows.task)
    assert_close(learner.coef_, IndependentTasks().fit(rows.X, rows.y, rows.task).coef_)


def test_stopping_early_leaves_models_of_the_clusters() -> None:
    rows = two_groups(0)
    with pytest.warns(ConvergenceWarning, match="tasks still moved after 1 iterations"):
        learner = SHAMO(n_init=1, max_iter=1, random_state=1).fit(rows.X, rows.y, rows.task)
    for c in set(learner.assignment_):
        members = np.flatnonzero(learner.assignment_[rows.task] == c)
        uniform = np.full(len(members), 1 / len(members))
        w = weighted_hinge(rows.X[members], rows.y[members], uniform, 1e-3).w
        np.testing.assert_array_equal(learner.hypotheses_[c], w)
