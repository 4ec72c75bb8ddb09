"""The weighted linear support vector machine against its twin and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from sklearn.exceptions import ConvergenceWarning
from tests.streams import assert_close, draw
from tests.twins import batch as twin

from shoal.batch import _hinge
from shoal.batch._hinge import mean_hinge_by_task, weighted_hinge


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
    w, _ = weighted_hinge(rows.X, rows.y, c, mu)
    expected = twin.weighted_svm(rows.X, rows.y, c, mu)
    assert_close(w, expected, 1e-3)
    assert objective(rows.X, rows.y, c, mu, w) <= objective(rows.X, rows.y, c, mu, expected) * (1 + 1e-6)


@given(seed=st.integers(0, 10**6), mu=st.sampled_from([1.0, 0.1, 1e-2, 1e-3]), sparse=st.booleans())
def test_first_order_conditions(seed: int, mu: float, sparse: bool) -> None:
    rows = draw(seed, n_rows=30, density=0.7)
    c = np.random.default_rng(seed).random(len(rows.y)) / len(rows.y)
    w, _ = weighted_hinge(rows.sparse if sparse else rows.X, rows.y, c, mu)
    assert residual(rows.X, rows.y, c, mu, w) < 1e-4


@given(seed=st.integers(0, 10**6), size=st.floats(1e-3, 10.0))
def test_no_perturbation_is_better(seed: int, size: float) -> None:
    rows, rng = draw(3, n_rows=60), np.random.default_rng(seed)
    c = np.full(len(rows.y), 1 / len(rows.y))
    w, _ = weighted_hinge(rows.X, rows.y, c, 1e-2)
    other = w + size * rng.normal(size=len(w))
    best = objective(rows.X, rows.y, c, 1e-2, w)
    assert objective(rows.X, rows.y, c, 1e-2, other) >= best * (1 - 1e-6)


def test_where_coordinate_descent_stalls() -> None:
    """Features around 100 and random labels: liblinear stops unfinished, libsvm goes on from the kernel matrix."""
    rng = np.random.default_rng(0)
    X, y, c, mu = 100 + rng.normal(size=(100, 2)), rng.choice([-1.0, 1.0], 100), np.full(100, 0.01), 1e-3
    assert not _hinge._by_liblinear(X, y, c / mu)[2]
    w, _ = weighted_hinge(X, y, c, mu)
    assert objective(X, y, c, mu, w) < objective(X, y, c, mu, _hinge._by_liblinear(X, y, c / mu)[0])
    sparse, _ = weighted_hinge(sp.csr_matrix(X), y, c, mu)
    assert_close(sparse, w, 1e-3)


def test_neither_solver_getting_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y, c, mu = 100 + rng.normal(size=(100, 2)), rng.choice([-1.0, 1.0], 100), np.full(100, 0.01), 1e-3
    monkeypatch.setattr(_hinge, "LARGEST", 50)
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        weighted_hinge(X, y, c, mu)


@pytest.mark.parametrize("sparse", [False, True])
def test_one_label_one_row_and_rows_without_weight(sparse: bool) -> None:
    rows = draw(0, n_rows=20)
    X = rows.sparse if sparse else rows.X
    c = np.full(len(rows.y), 0.05)
    ones = np.ones(len(rows.y))
    assert residual(rows.X, ones, c, 0.1, weighted_hinge(X, ones, c, 0.1)[0]) < 1e-4
    assert_close(weighted_hinge(X, -ones, c, 0.1)[0], -weighted_hinge(X, ones, c, 0.1)[0], 1e-4)
    x = rows.X[0]  # one row: w = a y x / mu with a = min(c, mu / ||x||²)
    for mu in (0.01, 10.0):
        expected = -min(c[0], mu / (x @ x)) * x / mu
        assert_close(weighted_hinge(X[:1], -ones[:1], c[:1], mu)[0], expected, 1e-6)
    without = np.where(np.arange(len(c)) < 10, 0.0, c)
    expected = weighted_hinge(X[10:], rows.y[10:], c[10:], 0.1)[0]
    np.testing.assert_array_equal(weighted_hinge(X, rows.y, without, 0.1)[0], expected)


def test_mean_hinge_by_task() -> None:
    rows, W = draw(1, n_rows=50), np.random.default_rng(1).normal(size=(3, 7))
    found = mean_hinge_by_task(rows.y[:, None] * (rows.X @ W.T), rows.task, 5)
    own = [rows.task == k for k in range(5)]
    assert_close(found, [[twin.mean_hinge(rows.X[i], rows.y[i], w) for w in W] for i in own])
