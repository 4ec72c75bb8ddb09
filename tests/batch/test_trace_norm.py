"""TraceNorm: optimality conditions, a slow twin, rank."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.batch.test_proximal_gradient import LOSSES
from tests.streams import Stream, assert_close, draw
from tests.twins import batch as twin

from shoal import TraceNorm

each_loss = pytest.mark.parametrize("loss", LOSSES)


def rows_for(loss: str, seed: int = 0) -> Stream:
    return draw(seed, n_rows=80, regression=loss == "squared")


def smooth(rows: Stream, loss: str, W: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
    """Losses weighted by task, and their gradient in W (tasks, d)."""
    f, c = np.einsum("ij,ij->i", rows.X, W[rows.task]), weight[rows.task]
    slope = c * LOSSES[loss][1](f, rows.y)
    G = np.array([slope[rows.task == k] @ rows.X[rows.task == k] for k in range(len(W))])
    return float(c @ LOSSES[loss][0](f, rows.y)), G


@cache
def fitted(loss: str, rho: float, seed: int = 0) -> tuple[TraceNorm, Stream, np.ndarray]:
    rows = rows_for(loss, seed)
    learner = TraceNorm(rho=rho, loss=loss, tol=1e-13, max_iter=20_000).fit(rows.X, rows.y, rows.task)
    return learner, rows, 1 / np.bincount(rows.task)


@each_loss
@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5])
def test_first_order_conditions(loss: str, rho: float) -> None:
    """0 is in G + rho ∂||W||_*: ||G||_2 <= rho and <G, W> = -rho ||W||_*."""
    learner, rows, weight = fitted(loss, rho)
    value, G = smooth(rows, loss, learner.coef_, weight)
    norm = np.linalg.norm(learner.coef_, "nuc")
    assert np.linalg.norm(G, 2) <= rho * (1 + 1e-4)
    assert (G * learner.coef_).sum() == pytest.approx(-rho * norm, rel=1e-4)
    assert learner.objective_[-1] == pytest.approx(value + rho * norm, rel=1e-12)


@each_loss
@given(seed=st.integers(0, 10**6), size=st.floats(1e-5, 1.0))
def test_no_perturbation_is_better(loss: str, seed: int, size: float) -> None:
    learner, rows, weight = fitted(loss, 0.1)
    rng = np.random.default_rng(seed)
    U, s, V = np.linalg.svd(learner.coef_, full_matrices=False)
    within = (U * (s * (1 + size * rng.normal(size=len(s))))) @ V  # of no higher rank
    for W in (learner.coef_ + size * rng.normal(size=(5, 7)), within):
        moved = smooth(rows, loss, W, weight)[0] + 0.1 * np.linalg.norm(W, "nuc")
        assert moved >= learner.objective_[-1] * (1 - 1e-10)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_equals_plain_proximal_gradient(loss: str) -> None:
    learner, rows, _ = fitted(loss, 0.1)
    W = twin.trace_norm(rows.X, rows.y, rows.task, 0.1, LOSSES[loss][1], step=0.2, n_steps=5000)
    assert_close(learner.coef_, W, 1e-5)


def test_the_default_tolerance_is_near() -> None:
    rows = rows_for("logistic")
    rough = TraceNorm(rho=0.1).fit(rows.X, rows.y, rows.task).objective_[-1]
    assert rough <= fitted("logistic", 0.1)[0].objective_[-1] * 1.01


@each_loss
def test_rank_falls_with_rho_to_nothing(loss: str) -> None:
    rows = rows_for(loss)
    G = smooth(rows, loss, np.zeros((5, 7)), 1 / np.bincount(rows.task))[1]
    top = float(np.linalg.norm(G, 2))  # from here on W = 0 is optimal
    ranks = [
        TraceNorm(rho=rho, loss=loss, tol=1e-10).fit(rows.X, rows.y, rows.task).rank_
        for rho in (0.001 * top, 0.3 * top, 0.9 * top, 1.001 * top)
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] >= 4
    assert ranks[2:] == [1, 0]
