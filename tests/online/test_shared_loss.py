"""SharedLoss against its twin in every norm and rule; the steps against their definitions and a convex solver."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.cases import FEWER_EXAMPLES
from tests.compiled import from_python
from tests.streams import assert_close, draw, own_parameters
from tests.twins import shared_loss as twin

from shoal import MultitaskPerceptron, PassiveAggressive, SharedLoss
from shoal.online.common import shared_loss_steps
from shoal.online.common.shared_loss_steps import finite_steps, norm_code, shared_loss

implicit_steps = from_python(shared_loss_steps.implicit_steps)
NORMS: list[tuple[str | float, int]] = [
    ("l1", 1), ("l2", 1), ("linf", 1), ("rmax", 1), ("rmax", 2), ("rmax", 3), ("rmax", 9), (1.5, 1), (3.0, 1),
]  # fmt: skip
OTHERS: list[tuple[str | float, int]] = [(1.001, 1), (7.5, 1), (1e300, 1)]  # without a twin: by what defines the steps
RULES = ["finite", "implicit", "capped"]
each_norm = pytest.mark.parametrize(("norm", "r"), NORMS)
each_of_more = pytest.mark.parametrize(("norm", "r"), NORMS + OTHERS)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("rule", RULES)
@each_norm
def test_equals_twin(norm: str | float, r: int, rule: str, protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.7 if sparse else 1.0)
    keep = stream.X.any(axis=1)
    stream = type(stream)(*(array[keep] for array in stream))
    learner = SharedLoss(norm=norm, r=r, rule=rule, C=0.3)
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W, updates = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    assert_close(decisions, expected)
    assert_close(learner.coef_, W)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@given(
    seed=st.integers(0, 10**6), norm=st.sampled_from(NORMS), rule=st.sampled_from(RULES),
    C=st.floats(1e-3, 1e3), scale=st.sampled_from([1e-3, 1.0, 1e3]),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, norm: tuple[str | float, int], rule: str, C: float, scale: float
) -> None:
    stream = draw(seed, n_rows=40, protocol="some", scale=scale)
    learner = SharedLoss(norm=norm[0], r=norm[1], rule=rule, C=C)
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    _, W, _ = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    assert_close(learner.coef_, W)


def losses_and_norms(seed: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    losses = np.maximum(0.0, rng.normal(0.5, 1.0, K)) * 10.0 ** rng.integers(-2, 3)
    return losses, rng.exponential(1.0, K) + 0.01


@each_of_more
@given(seed=st.integers(0, 10**6), K=st.integers(1, 8), C=st.floats(0.01, 10))
def test_finite_steps_reach_the_norm(norm: str | float, r: int, seed: int, K: int, C: float) -> None:
    """Hölder with equality: tau.l = C ||l||, and tau is in the ball."""
    losses, _ = losses_and_norms(seed, K)
    tau = np.empty(K)
    finite_steps(losses, norm_code(norm, r), C, tau)
    np.testing.assert_allclose(tau @ losses, C * twin.norm_of(losses, norm, r), rtol=1e-12)
    np.testing.assert_allclose(shared_loss(losses, norm_code(norm, r)), twin.norm_of(losses, norm, r), rtol=1e-12)
    assert (tau >= 0).all()
    assert twin.dual_norm(tau, norm, r) <= C * (1 + 1e-12)


@each_of_more
@given(seed=st.integers(0, 10**6), K=st.integers(1, 6), C=st.floats(0.01, 10))
def test_implicit_steps_are_optimal(norm: str | float, r: int, seed: int, K: int, C: float) -> None:
    """No step in the ball makes more of sum tau l - tau² n / 2; first-order check in every extreme direction."""
    losses, norms = losses_and_norms(seed, K)
    tau = np.empty(K)
    implicit_steps(losses, norms, norm_code(norm, r), C, tau)
    assert (tau >= 0).all()
    assert twin.dual_norm(tau, norm, r) <= C * (1 + 1e-12)
    best = np.empty(K)  # concave: optimal if no point of the ball lies uphill, and a norm tells the highest one
    finite_steps(np.maximum(0.0, losses - tau * norms), norm_code(norm, r), C, best)
    gain = (best - tau) @ (losses - tau * norms)
    assert gain <= 1e-9 * C * losses.max(initial=1.0)


@each_of_more
def test_implicit_steps_minimise_the_papers_objective(norm: str | float, r: int) -> None:
    """½||W - W_t||² + C ||l(W)|| by a solver that knows nothing of duality."""
    rng = np.random.default_rng(3)
    K, d, C = 3, 2, 0.4
    X, y, W = rng.normal(size=(K, d)), np.array([1.0, -1.0, 1.0]), 0.3 * rng.normal(size=(K, d))

    def objective(V: np.ndarray) -> float:
        V = V.reshape(K, d)
        losses = np.maximum(0.0, 1 - y * np.einsum("ij,ij->i", V, X))
        return 0.5 * np.sum((V - W) ** 2) + C * twin.norm_of(losses, norm, r)

    losses, norms, tau = np.maximum(0.0, 1 - y * np.einsum("ij,ij->i", W, X)), (X**2).sum(axis=1), np.empty(K)
    implicit_steps(losses, norms, norm_code(norm, r), C, tau)
    ours = objective(W + (tau * y)[:, None] * X)
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20000, "maxfev": 20000, "adaptive": True}
    starts = [W, W + (tau * y)[:, None] * X + 0.01 * rng.normal(size=(K, d))]
    solver = min(minimize(objective, start.ravel(), method="Nelder-Mead", options=options).fun for start in starts)
    assert ours <= solver + 1e-12
    assert ours < objective(W)


def test_implicit_l1_is_passive_aggressive_on_each_task() -> None:
    stream = draw(2, protocol="some")
    ours = SharedLoss(norm="l1", rule="implicit", C=0.7).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    theirs = PassiveAggressive(C=0.7).fit(stream.X, stream.y, stream.task)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    np.testing.assert_array_equal(ours.task_updates_, theirs.task_updates_)


@pytest.mark.parametrize("rule", RULES)
@each_of_more
def test_one_row_a_round_is_one_task_alone(norm: str | float, r: int, rule: str) -> None:
    """Nothing to weigh up: the finite rule is the hinge Perceptron with step C, the others PA-I."""
    stream = draw(3, protocol="one")
    learner = SharedLoss(norm=norm, r=r, rule=rule, C=0.2)
    baseline = learner.baselines()["independent"]
    assert isinstance(baseline, MultitaskPerceptron if rule == "finite" else PassiveAggressive)
    learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(learner.coef_, baseline.fit(stream.X, stream.y, stream.task).coef_)


def test_rmax_and_lp_end_in_l1_and_linf() -> None:
    stream = draw(4, protocol="all")
    for rule, (norm, p, r) in product(RULES, [("linf", math.inf, 1), ("l1", 1, 5), ("l2", 2, None)]):
        one, *others = (
            SharedLoss(rule=rule, C=0.4, **which).fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_
            for which in ({"norm": norm}, {"norm": p}, {"norm": "rmax", "r": r} if r else {"norm": norm})
        )
        for other in others:
            np.testing.assert_array_equal(one, other)
        if norm != "linf":  # near them, too; close to inf equal losses share the step that linf gives to the first
            near = SharedLoss(rule=rule, C=0.4, norm=p + 1e-9)
            assert_close(near.fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_, one, 1e-6)


@given(seed=st.integers(0, 10**6), norm=st.sampled_from(NORMS), rule=st.sampled_from(RULES))
def test_flipping_all_labels_flips_all_weights(seed: int, norm: tuple[str | float, int], rule: str) -> None:
    stream = draw(seed, n_rows=60)
    learner = SharedLoss(norm=norm[0], r=norm[1], rule=rule)
    weights = learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_
    flipped = learner.fit(stream.X, -stream.y, stream.task, rounds=stream.rounds).coef_
    np.testing.assert_array_equal(flipped, -weights)


@pytest.mark.parametrize("rule", RULES)
@each_of_more
@FEWER_EXAMPLES
@given(data=st.data())
def test_any_finite_rows_keep_the_model_finite(norm: str | float, r: int, rule: str, data: st.DataObject) -> None:
    """Sizes from 1e-150 to 1e150 in one round, zero rows, ties; steps stay in the ball."""
    K, d = 4, 3
    sizes = st.sampled_from([0.0, 1e-150, 1e-9, 1.0, 1e9, 1e150, -1e150])
    X = np.array(data.draw(st.lists(sizes, min_size=3 * K * d, max_size=3 * K * d))).reshape(3 * K, d)
    y = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=3 * K, max_size=3 * K)))
    learner = SharedLoss(norm=norm, r=r, rule=rule, C=2.0)
    decisions = learner.test_then_train(X, y, np.tile(np.arange(K), 3))
    assert np.isfinite(decisions).all()
    assert np.isfinite(learner.coef_).all()
    first = np.abs(SharedLoss(norm=norm, r=r, rule=rule, C=2.0).fit(X[:K], y[:K], range(K)).coef_)
    assert (first <= 2.0 * np.abs(X[:K]) * (1 + 1e-12)).all()


def test_500_tasks_and_equal_labels() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(1500, 4)), np.tile(np.arange(500), 3)
    for rule, (norm, r) in product(RULES, [*NORMS, ("rmax", 100)]):
        learner = SharedLoss(norm=norm, r=r, rule=rule).fit(X, np.ones(1500), task)
        _, W, _ = twin.learn(X, np.ones(1500), task, np.split(np.arange(1500), 3), **own_parameters(learner))
        assert_close(learner.coef_, W)


def test_unseen_and_absent_tasks() -> None:
    stream = draw(5, protocol="all")
    learner = SharedLoss().fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_array_equal(learner.decision_function(stream.X, np.full(len(stream.y), "nobody")), 0.0)
    before = learner.coef_
    learner.learn_round({k: (stream.X[k], -stream.y[k]) for k in learner.tasks_[:3]})
    assert (learner.coef_[:3] != before[:3]).any()
    np.testing.assert_array_equal(learner.coef_[3:], before[3:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "l3"}, "norm must be one of"), ({"norm": 0.5}, "or a number p >= 1, got 0.5"),
        ({"norm": np.nan}, "norm must be"), ({"norm": True}, "norm must be"), ({"norm": None}, "norm must be"),
        ({"rule": "slow"}, "rule must be one of"),
        ({"C": 0.0}, "C must be a finite number > 0"), ({"C": np.inf}, "C must be a finite number > 0"),
        ({"r": 0}, "r must be a whole number >= 1"), ({"r": 1.5}, "r must be a whole number >= 1"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SharedLoss(**options).partial_fit([[1.0]], [1])
