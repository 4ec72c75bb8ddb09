"""The pieces of the proximal learners: penalties, smooth losses, acceleration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit
from tests.batch.cases import BATCH
from tests.streams import assert_close, draw

from shoal.batch.base import Rows
from shoal.batch.proximal_gradient import Risk, group_lasso, minimise, nuclear, squared_nuclear

PENALTIES: dict[Any, Callable[[np.ndarray], Any]] = {
    nuclear: lambda W: np.linalg.norm(W, "nuc"),
    squared_nuclear: lambda W: np.linalg.norm(W, "nuc") ** 2,
    group_lasso: lambda W: np.linalg.norm(W, axis=0).sum(),
}

each_penalty = pytest.mark.parametrize("penalty", PENALTIES)


@each_penalty
@given(
    seed=st.integers(0, 10**6), shape=st.tuples(st.integers(1, 6), st.integers(1, 6)), s=st.floats(1e-3, 10),
    strength=st.floats(1e-3, 10), size=st.floats(1e-6, 3.0),
)  # fmt: skip
def test_prox_is_the_minimiser(penalty: Any, seed: int, shape: Any, s: float, strength: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=shape) * (rng.random(shape[1]) < 0.8)
    W, value = penalty(Z, s, strength)
    assert value == pytest.approx(strength * PENALTIES[penalty](W), rel=1e-9, abs=1e-12)

    def objective(W: np.ndarray) -> float:
        return float(s * strength * PENALTIES[penalty](W) + 0.5 * ((W - Z) ** 2).sum())

    for other in (W + size * rng.normal(size=shape), W * (1 - size / 3), W + size * (Z - W) / 3, Z, 0 * Z):
        assert objective(other) >= objective(W) - 1e-9


@each_penalty
def test_prox_of_nothing_is_nothing_and_strong_penalties_leave_zeros(penalty: Any) -> None:
    zero = np.zeros((3, 4))
    np.testing.assert_array_equal(penalty(zero, 1.0, 1.0)[0], zero)
    Z = np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 1e-3, 1.0]) + np.diag([0.01, 0.0, 0.0, 0.0])[:3]
    W, _ = penalty(Z, 1.0, 0.1)
    if penalty is group_lasso:
        np.testing.assert_array_equal(np.abs(W).max(axis=0) > 0, [True, False, False, True])
    else:
        assert np.linalg.matrix_rank(Z) == 2
        assert np.linalg.matrix_rank(W) == 1


LOSSES = {
    "logistic": (lambda f, y: np.log1p(np.exp(-y * f)), lambda f, y: -y * expit(-y * f)),
    "squared_hinge": (lambda f, y: np.maximum(0, 1 - y * f) ** 2, lambda f, y: -2 * y * np.maximum(0, 1 - y * f)),
    "squared": (lambda f, y: 0.5 * (f - y) ** 2, lambda f, y: f - y),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_risk_and_its_gradient(loss: str, sparse: bool) -> None:
    rows, rng = draw(0, n_rows=50, density=0.6), np.random.default_rng(0)
    W, weight = rng.normal(size=(5, 7)), rng.random(5)
    risk = Risk(Rows(rows.sparse if sparse else rows.X, rows.y, rows.task, 5), loss, weight)
    value, gradient = risk(W)
    f = np.einsum("ij,ij->i", rows.X, W[rows.task])
    assert value == pytest.approx(weight[rows.task] @ LOSSES[loss][0](f, rows.y), rel=1e-12)
    slope = weight[rows.task] * LOSSES[loss][1](f, rows.y)
    expected = np.array([slope[rows.task == k] @ rows.X[rows.task == k] for k in range(5)])
    assert_close(gradient, expected)
    numeric = approx_fprime(W.ravel(), lambda w: risk(w.reshape(5, 7))[0], 1e-7)
    assert_close(gradient.ravel(), numeric, 1e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_extreme_margins_stay_finite(loss: str) -> None:
    rows = Rows(np.array([[1.0], [1.0]]), np.array([1.0, -1.0]), np.zeros(2, np.int64), 1)
    value, gradient = Risk(rows, loss, np.ones(1))(np.array([[5000.0]]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    if loss == "logistic":
        assert value == 5000.0
        assert gradient[0, 0] == 1.0


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-6, 1.0, 1e6]), condition=st.sampled_from([1.0, 1e3]))
def test_a_quadratic_is_minimised_at_any_scale(seed: int, scale: float, condition: float) -> None:
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    A = scale * (Q * np.geomspace(1, 1 / condition, 6)) @ Q.T
    target = rng.normal(size=(1, 6))

    def smooth(W: np.ndarray) -> tuple[float, np.ndarray]:
        D = W - target
        return float(0.5 * (D @ A * D).sum()) + scale, D @ A

    path = minimise(smooth, lambda Z, s: (Z, 0.0), np.zeros((1, 6)), 1e-13, 5000)
    assert path.objective[-1] - scale < 1e-8 * scale
    assert (np.diff(path.objective) <= 1e-14 * scale).all()


def test_acceleration_is_worth_it() -> None:
    """Ill-conditioned least squares: far fewer iterations than plain proximal gradient needs at any step."""
    a = np.geomspace(1, 1e-4, 20)[None]

    def smooth(W: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * (a * (W - 1) ** 2).sum()), a * (W - 1)

    path = minimise(smooth, lambda Z, s: (Z, 0.0), np.zeros((1, 20)), 1e-12, 10_000)
    plain = np.zeros((1, 20))
    for _ in range(len(path.objective)):
        plain = plain - smooth(plain)[1]  # 1/L = 1
    assert smooth(path.W)[0] < 1e-3 * smooth(plain)[0]


@pytest.mark.filterwarnings("ignore:.* did not converge")  # ill-scaled rows take more than 1000 iterations
@pytest.mark.parametrize("name", ["TraceNorm", "TraceNorm-squared", "MTFL", "MTFL-squared", "MTFL-l21"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_objectives_never_rise(name: str, scale: float) -> None:
    rows = draw(0, n_rows=80, regression="squared" in name.split("-"))
    learner = BATCH[name]().set_params(tol=1e-10).fit(rows.X * scale, rows.y, rows.task)
    assert (np.diff(learner.objective_) <= 1e-14 * learner.objective_[0]).all()
