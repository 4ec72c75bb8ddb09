"""MTFL: optimality conditions, the alternation reaches the same objective, l21 selects features."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.batch.test_proximal_gradient import LOSSES
from tests.batch.test_trace_norm import rows_for, smooth
from tests.streams import Stream, assert_close, draw

from shoal import MTFL

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_gamma = pytest.mark.parametrize("gamma", [0.01, 0.3, 3.0])


@cache
def fitted(loss: str, gamma: float, **options: Any) -> tuple[MTFL, Stream]:
    rows = rows_for(loss)
    options = {"tol": 1e-13, "max_iter": 20_000, **options}
    return MTFL(gamma=gamma, loss=loss, **options).fit(rows.X, rows.y, rows.task), rows


@each_loss
@each_gamma
def test_first_order_conditions(loss: str, gamma: float) -> None:
    """0 is in G + 2 gamma ||W||_* ∂||W||_*."""
    learner, rows = fitted(loss, gamma)
    value, G = smooth(rows, loss, learner.coef_, np.ones(5))
    norm = np.linalg.norm(learner.coef_, "nuc")
    assert np.linalg.norm(G, 2) <= 2 * gamma * norm * (1 + 1e-4)
    assert (G * learner.coef_).sum() == pytest.approx(-2 * gamma * norm**2, rel=1e-4)
    assert learner.objective_[-1] == pytest.approx(value + gamma * norm**2, rel=1e-12)


@each_loss
@each_gamma
def test_first_order_conditions_of_l21(loss: str, gamma: float) -> None:
    learner, rows = fitted(loss, gamma, penalty="l21")
    value, G = smooth(rows, loss, learner.coef_, np.ones(5))
    lengths = np.linalg.norm(learner.coef_, axis=0)
    assert (np.linalg.norm(G, axis=0) <= gamma * (1 + 1e-4)).all()
    used = lengths > 0
    assert_close(G[:, used], -gamma * learner.coef_[:, used] / lengths[used], 1e-4)
    assert learner.objective_[-1] == pytest.approx(value + gamma * lengths.sum(), rel=1e-12)


@pytest.mark.parametrize("penalty", ["squared-nuclear", "l21"])
@given(seed=st.integers(0, 10**6), size=st.floats(1e-5, 1.0))
def test_no_perturbation_is_better(penalty: str, seed: int, size: float) -> None:
    learner, rows = fitted("logistic", 0.3, penalty=penalty)
    rng = np.random.default_rng(seed)
    U, s, V = np.linalg.svd(learner.coef_, full_matrices=False)
    within = (U * (s * (1 + size * rng.normal(size=len(s))))) @ V
    for W in (learner.coef_ + size * rng.normal(size=(5, 7)), within, learner.coef_ * (1 + size * rng.normal(size=7))):
        length = np.linalg.norm(W, "nuc") ** 2 if penalty == "squared-nuclear" else np.linalg.norm(W, axis=0).sum()
        assert smooth(rows, "logistic", W, np.ones(5))[0] + 0.3 * length >= learner.objective_[-1] * (1 - 1e-10)


@each_loss
@pytest.mark.parametrize("gamma", [0.03, 1.0])
def test_the_alternation_reaches_the_same_objective(loss: str, gamma: float) -> None:
    fista, _ = fitted(loss, gamma)
    alternating, _ = fitted(loss, gamma, solver="alternating", tol=1e-7, max_iter=300)
    best = fista.objective_[-1]
    assert best * (1 - 1e-10) <= alternating.objective_[-1] <= best * (1 + 1e-3)
    assert_close(alternating.coef_, fista.coef_, 0.05)


def test_one_task_is_ridge_regression() -> None:
    """With K = 1 the squared trace norm is ||w||²."""
    rows = draw(0, regression=True)
    learner = MTFL(gamma=0.7, loss="squared", tol=1e-14).fit(rows.X, rows.y)
    expected = np.linalg.solve(rows.X.T @ rows.X + 1.4 * np.eye(7), rows.X.T @ rows.y)
    assert_close(learner.coef_[0], expected, 1e-6)


def test_common_directions_are_found() -> None:
    """Weights of 20 tasks in a plane: MTFL's are of low rank and nearer to the truth than without sharing."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 15)), np.arange(400) % 20
    truth = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 15))
    y = np.einsum("ij,ij->i", X, truth[task]) + rng.normal(size=400)
    learner = MTFL(gamma=0.05, loss="squared", tol=1e-10).fit(X, y, task)
    alone = np.array([
        np.linalg.solve(X[task == k].T @ X[task == k] + np.eye(15), X[task == k].T @ y[task == k]) for k in range(20)
    ])  # fmt: skip
    assert np.linalg.norm(learner.coef_ - truth) < 0.7 * np.linalg.norm(alone - truth)
    assert learner.rank_ < 15


def test_l21_selects_the_features_that_matter() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 10)), np.arange(400) % 10
    truth = rng.normal(size=(10, 10)) * (np.arange(10) < 3)
    y = np.einsum("ij,ij->i", X, truth[task]) + 0.5 * rng.normal(size=400)
    learner = MTFL(gamma=20.0, penalty="l21", loss="squared").fit(X, y, task)
    np.testing.assert_array_equal(np.abs(learner.coef_).max(axis=0) > 0, np.arange(10) < 3)


def test_a_solver_that_does_not_fit_the_penalty_is_refused() -> None:
    rows = draw(0)
    with pytest.raises(ValueError, match="solver='alternating' is for penalty='squared-nuclear'"):
        MTFL(penalty="l21", solver="alternating").fit(rows.X, rows.y, rows.task)
