"""RegMTL against the primal problem, against libsvm without its bias another way, and its two extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC, LinearSVR
from tests.streams import Stream, assert_close, draw

from shoal import RegMTL, RegMTLRegressor
from shoal.batch.linear_svm import weighted_hinge
from shoal.batch.reg_mtl import _exact_step

ROWS = draw(0, n_rows=80)
REAL = draw(0, n_rows=80, regression=True)
TIGHT = 1e-9


def multitask_kernel(k: np.ndarray, task: np.ndarray, mu: float) -> np.ndarray:
    return np.asarray((1 / mu + (task[:, None] == task)) * k)


def stacked(rows: Stream, mu: float) -> np.ndarray:
    """[x/√mu; 0..x..0], whose inner products are the multi-task kernel."""
    own = (rows.task[:, None] == np.arange(5))[:, :, None] * rows.X[:, None, :]
    return np.hstack([rows.X / np.sqrt(mu), own.reshape(len(rows.y), -1)])


def parts(w: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """w_0 and v_t from a weight vector of stacked features."""
    return w[:7] / np.sqrt(mu), w[7:].reshape(5, 7)


@pytest.mark.parametrize("mu", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equals_libsvm_on_mirrored_rows(kernel: str, C: float, mu: float) -> None:
    """(phi, y) and (-phi, -y) are one example to a machine without bias; with both there, the best bias is 0."""
    learner = RegMTL(mu=mu, C=C, kernel=kernel, gamma=0.2, tol=TIGHT).fit(ROWS.X, ROWS.y, ROWS.task)
    k = ROWS.X @ ROWS.X.T if kernel == "linear" else rbf_kernel(ROWS.X, gamma=0.2)
    K = multitask_kernel(k, ROWS.task, mu)
    mirrored = SVC(kernel="precomputed", C=C / 2, tol=TIGHT)
    mirrored.fit(np.block([[K, -K], [-K, K]]), np.concatenate([ROWS.y, -ROWS.y]))
    assert abs(mirrored.intercept_[0]) < 1e-6
    expected = mirrored.decision_function(np.block([K, -K]))
    assert_close(learner.decision_function(ROWS.X, ROWS.task), expected, 1e-6)


@pytest.mark.parametrize("mu", [0.1, 10.0])
def test_equals_the_primal_problem_by_liblinear(mu: float) -> None:
    learner = RegMTL(mu=mu, C=0.3, tol=TIGHT).fit(ROWS.X, ROWS.y, ROWS.task)
    primal = LinearSVC(loss="hinge", C=0.3, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
    shared, own = parts(primal.fit(stacked(ROWS, mu), ROWS.y).coef_[0], mu)
    assert_close(learner.coef_shared_, shared, 1e-4)
    assert_close(learner.coef_task_, own, 1e-4)
    assert_close(learner.coef_, shared + own, 1e-4)
    regressor = RegMTLRegressor(mu=mu, C=0.3, epsilon=0.2, tol=TIGHT).fit(REAL.X, REAL.y, REAL.task)
    primal = LinearSVR(
        loss="epsilon_insensitive", C=0.3, epsilon=0.2, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0
    )
    shared, own = parts(primal.fit(stacked(REAL, mu), REAL.y).coef_, mu)
    assert_close(regressor.coef_, shared + own, 1e-4)


@pytest.mark.parametrize("mu", [0.1, 10.0])
def test_ridge_is_its_closed_form(mu: float) -> None:
    learner = RegMTLRegressor(mu=mu, C=0.7, loss="squared").fit(REAL.X, REAL.y, REAL.task)
    Z = stacked(REAL, mu)
    shared, own = parts(np.linalg.solve(Z.T @ Z + np.eye(42) / 0.7, Z.T @ REAL.y), mu)
    assert_close(learner.coef_, shared + own, 1e-10)
    assert_close(learner.coef_shared_, shared, 1e-10)


def gap(learner: Any, rows: Stream, k: np.ndarray, epsilon: float) -> float:
    """(primal - dual)/primal from the dual coefficients; 0 only at the optimum."""
    b = np.zeros(len(rows.y))
    b[learner.support_] = learner.dual_coef_
    f = multitask_kernel(k, rows.task, learner.mu) @ b
    y = rows.y
    loss = np.maximum(0, 1 - y * f) if epsilon < 0 else np.maximum(0, np.abs(y - f) - epsilon)
    primal = 0.5 * b @ f + learner.C * loss.sum()
    assert learner.objective_[0] == pytest.approx(primal, rel=1e-9)
    assert_close(f, (learner.decision_function if epsilon < 0 else learner.predict)(rows.X, rows.task), 1e-9)
    return float((primal - (y @ b - max(epsilon, 0) * np.abs(b).sum() - 0.5 * b @ f)) / primal)


@given(
    seed=st.integers(0, 10**6), mu=st.sampled_from([0.03, 0.3, 10.0]), C=st.sampled_from([1e-2, 1.0, 10.0]),
    sparse=st.booleans(),
)  # fmt: skip
def test_the_duality_gap_closes(seed: int, mu: float, C: float, sparse: bool) -> None:
    rows = draw(seed, n_rows=40, density=0.7)
    X = rows.sparse if sparse else rows.X
    learner = RegMTL(mu=mu, C=C, kernel="rbf", gamma=0.1, tol=1e-6).fit(X, rows.y, rows.task)
    assert gap(learner, rows, rbf_kernel(rows.X, gamma=0.1), -1.0) < 3e-4  # libsvm keeps K in single precision
    signed = learner.dual_coef_ * rows.y[learner.support_]
    assert (signed > 0).all()
    assert (signed <= C * (1 + 1e-12)).all()


@given(
    seed=st.integers(0, 10**6), mu=st.sampled_from([0.03, 0.3, 10.0]), C=st.sampled_from([1e-3, 1.0, 1e3]),
    sparse=st.booleans(),
)  # fmt: skip
def test_the_squared_hinge_meets_its_condition(seed: int, mu: float, C: float, sparse: bool) -> None:
    """At the minimum b_i = 2 C y_i [1 - y_i f_i]_+: where the gradient of the loss balances that of the norm."""
    rows = draw(seed, n_rows=40, density=0.7)
    learner = RegMTL(mu=mu, C=C, kernel="rbf", gamma=0.1, loss="squared_hinge")
    learner.fit(rows.sparse if sparse else rows.X, rows.y, rows.task)
    b = np.zeros(len(rows.y))
    b[learner.support_] = learner.dual_coef_
    f = multitask_kernel(rbf_kernel(rows.X, gamma=0.1), rows.task, mu) @ b
    loss = np.maximum(0, 1 - rows.y * f)
    np.testing.assert_allclose(b, 2 * C * rows.y * loss, rtol=0, atol=1e-7 * max(1.0, np.abs(b).max()))
    assert learner.objective_[-1] == pytest.approx(0.5 * b @ f + C * (loss**2).sum(), rel=1e-9)
    assert (np.diff(learner.objective_) <= 1e-12 * learner.objective_[:-1]).all()
    assert len(learner.objective_) == learner.n_iter_ < 30


def test_the_squared_hinge_by_liblinear() -> None:
    learner = RegMTL(mu=0.3, C=0.3, loss="squared_hinge").fit(ROWS.X, ROWS.y, ROWS.task)
    primal = LinearSVC(loss="squared_hinge", C=0.3, fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0)
    shared, own = parts(primal.fit(stacked(ROWS, 0.3), ROWS.y).coef_[0], 0.3)
    assert_close(learner.coef_, shared + own, 1e-6)


def test_newton_stopped_early_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="the solver made 1 steps"):
        learner = RegMTL(loss="squared_hinge", max_iter=1).fit(ROWS.X, ROWS.y, ROWS.task)
    assert learner.n_iter_ == len(learner.objective_) == 1


@given(seed=st.integers(0, 10**6), mu=st.sampled_from([0.1, 10.0]), C=st.sampled_from([1e-2, 1.0]))
def test_the_duality_gap_of_regression_closes(seed: int, mu: float, C: float) -> None:
    rows = draw(seed, n_rows=40, regression=True)
    for epsilon in (0.0, 0.3):
        learner = RegMTLRegressor(mu=mu, C=C, epsilon=epsilon, tol=1e-6).fit(rows.X, rows.y, rows.task)
        assert gap(learner, rows, rows.X @ rows.X.T, epsilon) < 1e-4
        assert (np.abs(learner.dual_coef_) <= C * (1 + 1e-12)).all()


@pytest.fixture(scope="module")
def fitted() -> tuple[RegMTL, RegMTLRegressor]:
    return (
        RegMTL(mu=0.5, C=0.2, tol=TIGHT).fit(ROWS.X, ROWS.y, ROWS.task),
        RegMTLRegressor(mu=0.5, C=0.2, tol=TIGHT).fit(REAL.X, REAL.y, REAL.task),
    )


@given(seed=st.integers(0, 10**6), size=st.floats(1e-4, 3.0))
def test_no_perturbation_of_the_weights_is_better(fitted: Any, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    for learner, rows in zip(fitted, (ROWS, REAL), strict=True):

        def objective(shared: np.ndarray, own: np.ndarray, rows: Stream = rows) -> float:
            f = np.einsum("ij,ij->i", rows.X, (shared + own)[rows.task])
            loss = np.maximum(0, 1 - rows.y * f) if rows is ROWS else np.maximum(0, np.abs(rows.y - f) - 0.1)
            return float(0.5 * (0.5 * shared @ shared + (own * own).sum()) + 0.2 * loss.sum())

        shared, own = learner.coef_shared_, learner.coef_task_
        best = objective(shared, own)
        assert learner.objective_[0] == pytest.approx(best, rel=1e-9)
        moved = objective(shared + size * rng.normal(size=7), own + size * rng.normal(size=(5, 7)))
        assert moved >= best * (1 - 1e-9)


def test_a_dear_common_part_leaves_independent_tasks() -> None:
    learner = RegMTL(mu=1e9, C=0.3, tol=TIGHT).fit(ROWS.X, ROWS.y, ROWS.task)
    for k in range(5):
        own = ROWS.task == k
        alone = weighted_hinge(ROWS.X[own], ROWS.y[own], np.full(own.sum(), 0.3), 1.0).w
        assert_close(learner.coef_[k], alone, 1e-4)
    assert np.abs(learner.coef_shared_).max() < 1e-6


def test_a_cheap_common_part_is_one_model_for_all() -> None:
    mu = 1e-7
    learner = RegMTL(mu=mu, C=0.3 * mu, tol=TIGHT).fit(ROWS.X, ROWS.y, ROWS.task)
    pooled = weighted_hinge(ROWS.X, ROWS.y, np.full(len(ROWS.y), 0.3), 1.0).w
    assert_close(learner.coef_, np.tile(pooled, (5, 1)), 1e-4)


def test_a_function_as_kernel_and_what_comes_with_it() -> None:
    def rbf(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.asarray(rbf_kernel(X, Z, gamma=0.2))

    by_name = RegMTL(kernel="rbf", gamma=0.2).fit(ROWS.X, ROWS.y, ROWS.task)
    by_function = RegMTL(kernel=rbf).fit(ROWS.sparse, ROWS.y, ROWS.task)
    assert_close(
        by_function.decision_function(ROWS.sparse, ROWS.task), by_name.decision_function(ROWS.X, ROWS.task), 1e-9
    )
    assert not hasattr(by_name, "coef_")
    with pytest.raises(ValueError, match=r"cannot save parameter\.kernel"):
        by_function.save("nowhere")
    with pytest.raises(ValueError, match="kernel must be 'linear', 'rbf' or a function"):
        RegMTL(kernel="poly").fit(ROWS.X, ROWS.y, ROWS.task)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_unseen_task_is_answered_by_the_common_part(kernel: str) -> None:
    learner = RegMTL(kernel=kernel, mu=0.5, gamma=0.2).fit(ROWS.X, ROWS.y, ROWS.task)
    found = learner.decision_function(ROWS.X, ["new"] * len(ROWS.y))
    k = ROWS.X @ learner.support_vectors_.T if kernel == "linear" else rbf_kernel(ROWS.X, learner.support_vectors_, 0.2)
    assert_close(found, k @ learner.dual_coef_ / 0.5, 1e-9)
    np.testing.assert_array_equal(learner.relation_, np.eye(5) + 2.0)
    np.testing.assert_array_equal(learner.support_vectors_, ROWS.X[learner.support_])
    np.testing.assert_array_equal(learner.support_task_, ROWS.task[learner.support_])


def test_many_rows_are_compared_block_by_block() -> None:
    rows = draw(0, n_rows=700)
    learner = RegMTL(kernel="rbf", C=0.1).fit(rows.X, rows.y, rows.task)
    together = learner.decision_function(rows.X, rows.task)
    apart = np.concatenate([learner.decision_function(rows.X[i : i + 100], rows.task[i : i + 100])
                            for i in range(0, len(rows.y), 100)])  # fmt: skip
    assert_close(together, apart)


@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 1.0, 100.0]))
def test_a_newton_step_goes_to_the_minimum_on_its_way(seed: int, C: float) -> None:
    """The slope of F(b + t d) is 0 there: less before, more behind."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 6))
    K, y, b = A @ A.T, np.where(rng.random(12) < 0.5, 1.0, -1.0), rng.normal(size=12)
    f = K @ b
    slopes = b @ K - 2 * C * (np.maximum(0, 1 - y * f) * y) @ K  # in d
    d = -slopes * rng.uniform(0.1, 1.0, 12)
    t = _exact_step(f, d, K @ d, y, C)

    def slope(t: float) -> float:
        g = f + t * (K @ d)
        return float(d @ K @ (b + t * d) - 2 * C * (np.maximum(0, 1 - y * g) * y) @ (K @ d))

    size = abs(slope(0.0))
    assert slope(0.0) < 0 < t
    assert slope(0.999 * t) < 0 < slope(1.001 * t)
    assert abs(slope(t)) < 1e-8 * size


def test_newton_ends_with_its_last_step() -> None:
    """No step is added that moves nothing."""
    rows = draw(0, n_rows=60)
    learner = RegMTL(loss="squared_hinge", kernel="rbf", gamma=0.1).fit(rows.X, rows.y, rows.task)
    assert learner.n_iter_ > 1
    assert (np.diff(learner.objective_) < 0).all()
