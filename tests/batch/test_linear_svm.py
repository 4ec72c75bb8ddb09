"""The weighted linear support vector machine against its twin and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from sklearn.exceptions import ConvergenceWarning
from tests.streams import assert_close, draw
from tests.twins import batch as twin

from shoal.batch import linear_svm
from shoal.batch.linear_svm import mean_hinge_by_task, weighted_hinge


def objective(X: np.ndarray, y: np.ndarray, c: np.ndarray, mu: float, w: np.ndarray) -> float:
    return 0.5 * mu * float(w @ w) + float(c @ np.maximum(0, 1 - y * (X @ w)))


def residual(X: np.ndarray, y: np.ndarray, c: np.ndarray, mu: float, w: np.ndarray) -> float:
    """How far 0 is from the subdifferential: mu w = sum a_i y_i x_i with a_i = c_i inside the margin, 0 outside."""
    margin = y * (X @ w)
    at = np.abs(margin - 1) < 1e-4
    rest = mu * w - (c * y * (margin < 1) * ~at) @ X
    if at.any():
        rest = lsq_linear((y[at, None] * X[at]).T, rest, bounds=(0, c[at])).fun
    return float(np.linalg.norm(rest)) / float(mu * np.linalg.norm(w) + np.linalg.norm(c @ np.abs(X)))


@pytest.mark.parametrize("mu", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_twin(seed: int, mu: float) -> None:
    rows = draw(seed, n_rows=40)
    c = np.random.default_rng(seed).random(len(rows.y)) / len(rows.y)
    w = weighted_hinge(rows.X, rows.y, c, mu).w
    expected = twin.weighted_svm(rows.X, rows.y, c, mu)
    assert_close(w, expected, 1e-3)
    assert objective(rows.X, rows.y, c, mu, w) <= objective(rows.X, rows.y, c, mu, expected) * (1 + 1e-6)


@given(seed=st.integers(0, 10**6), mu=st.sampled_from([1.0, 0.1, 1e-2, 1e-3]), sparse=st.booleans())
def test_first_order_conditions(seed: int, mu: float, sparse: bool) -> None:
    rows = draw(seed, n_rows=30, density=0.7)
    c = np.random.default_rng(seed).random(len(rows.y)) / len(rows.y)
    w = weighted_hinge(rows.sparse if sparse else rows.X, rows.y, c, mu).w
    assert residual(rows.X, rows.y, c, mu, w) < 1e-4


@given(seed=st.integers(0, 10**6), size=st.floats(1e-3, 10.0))
def test_no_perturbation_is_better(seed: int, size: float) -> None:
    rows, rng = draw(3, n_rows=60), np.random.default_rng(seed)
    c = np.full(len(rows.y), 1 / len(rows.y))
    w = weighted_hinge(rows.X, rows.y, c, 1e-2).w
    other = w + size * rng.normal(size=len(w))
    best = objective(rows.X, rows.y, c, 1e-2, w)
    assert objective(rows.X, rows.y, c, 1e-2, other) >= best * (1 - 1e-6)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem counts as large: liblinear solves it."""
    monkeypatch.setattr(linear_svm, "SMALL", 0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("d", [3, 7, 100])
def test_both_solvers_agree(d: int, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = draw(0, n_rows=60, d=d)
    X, c = rows.sparse if sparse else rows.X, np.random.default_rng(0).random(len(rows.y)) / len(rows.y)
    w = weighted_hinge(X, rows.y, c, 0.1).w
    monkeypatch.setattr(linear_svm, "SMALL", 0)
    by_liblinear = weighted_hinge(X, rows.y, c, 0.1).w
    assert (by_liblinear != w).any()
    assert_close(by_liblinear, w, 1e-3)


def stalling() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Features around 100 and random labels."""
    rng = np.random.default_rng(0)
    return 100 + rng.normal(size=(100, 2)), rng.choice([-1.0, 1.0], 100), np.full(100, 0.01), 1e-3


def test_where_coordinate_descent_stalls_the_interior_point_method_does_not() -> None:
    X, y, c, mu = stalling()
    w, n_iter, _ = weighted_hinge(X, y, c, mu)
    assert n_iter < 40
    assert residual(X, y, c, mu, w) < 1e-4
    (stalled, _, _), converged = linear_svm._by_liblinear(X, y, c, mu)
    assert not converged
    assert objective(X, y, c, mu, w) < objective(X, y, c, mu, stalled)


@pytest.mark.usefixtures("large")
def test_a_solver_that_does_not_get_there_says_so() -> None:
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        weighted_hinge(*stalling())


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 40), d=st.integers(1, 60), scale=st.floats(-3, 1),
    log_mu=st.floats(-6, 3), smallest=st.sampled_from([0.0, -12.0]), degenerate=st.booleans(),
)  # fmt: skip
def test_the_duality_gap_closes_on_any_rows(
    seed: int, n: int, d: int, scale: float, log_mu: float, smallest: float, degenerate: bool
) -> None:
    """Repeated, whole-numbered and zero rows, any scale and weights: what makes solvers stall.

    Rows of 1e3 that repeat, with a small mu, leave gaps that count as not converged: there `weighted_hinge` warns.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10**scale
    if degenerate:
        X = np.round(X[rng.integers(n, size=n)] + 100 * rng.normal())
    Z = rng.choice([-1.0, 1.0], n)[:, None] * X
    c = 10 ** rng.uniform(smallest, 0, size=n)
    assert linear_svm.interior_point(Z, c, 10**log_mu, 1e-9, 100).gap < 1e-4


@pytest.mark.parametrize("sparse", [False, True])
def test_one_label_one_row_and_rows_without_weight(sparse: bool) -> None:
    rows = draw(0, n_rows=20)
    X = rows.sparse if sparse else rows.X
    c = np.full(len(rows.y), 0.05)
    ones = np.ones(len(rows.y))
    assert residual(rows.X, ones, c, 0.1, weighted_hinge(X, ones, c, 0.1).w) < 1e-4
    assert_close(weighted_hinge(X, -ones, c, 0.1).w, -weighted_hinge(X, ones, c, 0.1).w, 1e-4)
    x = rows.X[0]  # one row: w = a y x / mu with a = min(c, mu / ||x||²)
    for mu in (0.01, 10.0):
        expected = -min(c[0], mu / (x @ x)) * x / mu
        assert_close(weighted_hinge(X[:1], -ones[:1], c[:1], mu).w, expected, 1e-6)
    without = np.where(np.arange(len(c)) < 10, 0.0, c)
    expected = weighted_hinge(X[10:], rows.y[10:], c[10:], 0.1).w
    np.testing.assert_array_equal(weighted_hinge(X, rows.y, without, 0.1).w, expected)


def test_mean_hinge_by_task() -> None:
    rows, W = draw(1, n_rows=50), np.random.default_rng(1).normal(size=(3, 7))
    found = mean_hinge_by_task(rows.y[:, None] * (rows.X @ W.T), rows.task, 5)
    own = [rows.task == k for k in range(5)]
    assert_close(found, [[twin.mean_hinge(rows.X[i], rows.y[i], w) for w in W] for i in own])


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("sparse", [False, True])
def test_one_label_by_liblinear(sparse: bool) -> None:
    rows = draw(0, n_rows=20)
    X, c, ones = rows.sparse if sparse else rows.X, np.full(len(rows.y), 0.05), np.ones(len(rows.y))
    assert residual(rows.X, ones, c, 1.0, weighted_hinge(X, ones, c, 1.0).w) < 1e-4
