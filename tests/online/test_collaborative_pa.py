"""COML against its twin, as the minimiser that it claims to be, and its special cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.streams import Stream, assert_close, core_of, draw, own_parameters
from tests.twins import collaborative as twin

from shoal import CollaborativePA, PassiveAggressive
from shoal.online.collaborative.lazy_pull import MOST

OPTIONS: list[dict[str, Any]] = [
    {"variant": "collaborative"},
    {"variant": "collaborative", "passive": True},
    {"variant": "mix"},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))


def compare(learner: CollaborativePA, stream: Stream, X: object) -> None:
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W, g, updates = twin.learn_pa(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner)
    )
    assert_close(decisions, expected)
    assert_close(learner.coef_, W)
    assert_close(learner.coef_shared_, g)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


def go_on_as_if_after_many(learner: Any, stream: Stream) -> None:
    """Learn the stream; on the way, pulls and those that features have had are counted from a larger number on."""
    learner.partial_fit(stream.sparse[:300], stream.y[:300], stream.task[:300])
    already = MOST - 500
    core_of(learner).state.pulls[...] += already
    core_of(learner).state.applied[...] += already
    learner.partial_fit(stream.sparse[300:], stream.y[300:], stream.task[300:])
    assert (core_of(learner).state.pulls < already).all()  # so the whole model was settled


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@each_option
def test_equals_twin(options: dict[str, Any], alpha: float, protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.3 if sparse else 1.0)  # has empty rows
    compare(CollaborativePA(pull=alpha, C=0.4, **options), stream, stream.sparse if sparse else stream.X)


@given(
    seed=st.integers(0, 10**6), alpha=st.floats(0, 1), C=st.floats(0.01, 5), options=st.sampled_from(OPTIONS),
    protocol=st.sampled_from(["one", "some", "all", "growing"]), density=st.sampled_from([0.2, 1.0]),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, alpha: float, C: float, options: dict[str, Any], protocol: str, density: float
) -> None:
    stream = draw(seed, K=4, n_rows=60, protocol=protocol, density=density)
    learner = CollaborativePA(pull=alpha, C=C, **options)
    _, W, g, _ = twin.learn_pa(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    learner.partial_fit(stream.sparse, stream.y, stream.task, rounds=stream.rounds)
    assert_close(learner.coef_, W)
    assert_close(learner.coef_shared_, g)


@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.0])
def test_features_that_are_rarely_seen_owe_many_pulls(alpha: float) -> None:
    """More pulls of a task than a feature may owe (`_pull.MOST`), most of them on features its rows do not have."""
    stream = draw(2, n_rows=3000, K=2, d=40, density=0.05, protocol="one")
    learner = CollaborativePA(pull=alpha)
    _, W, g, _ = twin.learn_pa(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    go_on_as_if_after_many(learner, stream)
    assert_close(learner.coef_, W)
    assert_close(learner.coef_shared_, g)


def test_dense_and_sparse_chunks_may_alternate() -> None:
    stream = draw(3, n_rows=400, protocol="one", density=0.4)
    mixed, dense = CollaborativePA(pull=0.3), CollaborativePA(pull=0.3)
    dense.partial_fit(stream.X, stream.y, stream.task)
    for i, rows in enumerate(np.array_split(np.arange(len(stream.y)), 9)):
        X = stream.sparse[rows] if i % 2 else stream.X[rows]
        mixed.partial_fit(X, stream.y[rows], stream.task[rows])
    assert_close(mixed.coef_, dense.coef_)


def test_pulls_are_owed_under_the_alpha_of_their_time() -> None:
    stream = draw(4, n_rows=200, protocol="one", density=0.3)
    sparse, dense = CollaborativePA(pull=0.3), CollaborativePA(pull=0.3)
    for changes in ({"pull": 0.8}, {"variant": "mix"}, {"variant": "collaborative", "pull": 0.1}):
        sparse.partial_fit(stream.sparse, stream.y, stream.task)
        dense.partial_fit(stream.X, stream.y, stream.task)
        assert core_of(sparse).state.pulls.any() != (sparse.variant == "mix")
        for learner in (sparse, dense):
            learner.set_params(**changes)
        assert_close(sparse.coef_, dense.coef_)


@given(seed=st.integers(0, 10**6), alpha=st.floats(0, 1), C=st.floats(0.05, 5))
def test_a_step_minimises_the_objective(seed: int, alpha: float, C: float) -> None:
    """(1-alpha)/2 |u - u_k|^2 + alpha/2 |u - g|^2 + C hinge, with the hinge as a slack variable."""
    stream = draw(seed, n_rows=20, K=2, d=3, protocol="one")
    learner = CollaborativePA(pull=alpha, C=C).fit(stream.X[:-1], stream.y[:-1], stream.task[:-1])
    x, y, k = stream.X[-1], stream.y[-1], learner.tasks_.index(stream.task[-1])
    before = learner.coef_[k]
    learner.partial_fit(stream.X[-1:], stream.y[-1:], stream.task[-1:])
    after, g = learner.coef_[k], learner.coef_shared_

    def objective(z: np.ndarray) -> float:
        u, slack = z[:3], z[3]
        return float((1 - alpha) / 2 * np.sum((u - before) ** 2) + alpha / 2 * np.sum((u - g) ** 2) + C * slack)

    best = minimize(
        objective, np.append(before, 10.0), method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
        bounds=[(None, None)] * 3 + [(0, None)],
        constraints={"type": "ineq", "fun": lambda z: y * (z[:3] @ x) - 1 + z[3]},
    )  # fmt: skip
    ours = objective(np.append(after, max(0.0, 1 - y * (after @ x))))
    assert ours <= best.fun + 1e-6 * max(1.0, abs(best.fun))
    np.testing.assert_allclose(after, best.x[:3], atol=2e-3)


def test_alpha_zero_is_passive_aggressive_per_task() -> None:
    stream = draw(5, density=0.5)
    for X in (stream.X, stream.sparse):
        expected = PassiveAggressive(C=0.3).fit(X, stream.y, stream.task, rounds=stream.rounds).coef_
        for options in OPTIONS:
            learner = CollaborativePA(pull=0.0, C=0.3, **options)
            assert_close(learner.fit(X, stream.y, stream.task, rounds=stream.rounds).coef_, expected)


def test_the_global_model_is_the_pooled_one() -> None:
    stream = draw(6)
    learner = CollaborativePA().fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    pooled = learner.baselines()["pooled"].fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_array_equal(learner.coef_shared_, pooled.coef_[0])
    mix = CollaborativePA(variant="mix", pull=1.0).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_array_equal(mix.coef_, pooled.coef_)


def test_without_loss_only_the_passive_stay() -> None:
    x, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), [1, 1, 1]
    task = ["a", "b", "a"]  # b moves g on feature 1; a's second row has no loss
    stays = CollaborativePA(passive=True).fit(x, y, task)
    np.testing.assert_array_equal(stays.coef_[0], [1.0, 0.0])
    np.testing.assert_array_equal(CollaborativePA().fit(x, y, task).coef_[0], [1.0, 0.5])
    assert stays.n_updates_ == CollaborativePA().fit(x, y, task).n_updates_ == 2


@given(seed=st.integers(0, 10**6), options=st.sampled_from(OPTIONS))
def test_flipping_all_labels_flips_all_weights(seed: int, options: dict[str, Any]) -> None:
    stream = draw(seed, n_rows=60)
    learner = CollaborativePA(**options)
    weights = learner.fit(stream.sparse, stream.y, stream.task).coef_
    np.testing.assert_array_equal(learner.fit(stream.sparse, -stream.y, stream.task).coef_, -weights)


@pytest.mark.parametrize("variant", ["collaborative", "mix"])
def test_unseen_tasks_are_answered_by_the_global_model(variant: str) -> None:
    stream = draw(7)
    learner = CollaborativePA(pull=0.3, variant=variant).fit(stream.X, stream.y, stream.task)
    answers = learner.decision_function(stream.X, np.full(len(stream.y), "nobody"))
    assert_close(answers, (0.3 if variant == "mix" else 1.0) * stream.X @ learner.coef_shared_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "values", [[0.0], [1.0], [1e150, -1e150], [1e-150, 1e150, 1.0, 0.0]], ids=["zero", "constant", "huge", "mixed"]
)
@pytest.mark.parametrize("K", [1, 500])
def test_hard_numbers_stay_finite(values: list[float], K: int, sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.choice(values, (1200, 3)), rng.integers(K, size=1200)
    for y in (np.ones(1200), rng.choice([-1.0, 1.0], 1200)):
        learner = CollaborativePA()
        decisions = learner.test_then_train(sp.csr_matrix(X) if sparse else X, y, task)
        assert np.isfinite(decisions).all()
        assert np.isfinite(learner.coef_).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pull": -0.1}, "pull must be a number in"), ({"pull": 1.1}, "pull must be a number in"),
        ({"pull": float("nan")}, "pull must be a number in"),
        ({"C": 0.0}, "C must be"), ({"C": float("nan")}, "C must be"),
        ({"variant": "blend"}, "variant must be"), ({"variant": "mix", "passive": True}, "never pulls"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CollaborativePA(**options).partial_fit([[1.0]], [1])
