"""CW-COL against its twin, as the minimiser that it claims to be, and its special cases."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.online.test_collaborative_pa import go_on_as_if_after_many
from tests.streams import Stream, assert_close, draw, own_parameters
from tests.twins import collaborative as twin

from shoal import CollaborativeCW


def compare(learner: CollaborativeCW, stream: Stream, X: object) -> None:
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W, V, g, updates = twin.learn_cw(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner)
    )
    assert_close(decisions, expected)
    assert_close(learner.coef_, W)
    assert_close(learner.covariance_, V)
    assert_close(learner.coef_shared_, g)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_equals_twin(alpha: float, protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.3 if sparse else 1.0)  # has empty rows
    compare(CollaborativeCW(pull=alpha), stream, stream.sparse if sparse else stream.X)


@pytest.mark.parametrize("C", [0.02, 1.0, np.inf])
@pytest.mark.parametrize("confidence", [0.55, 0.9, 0.99])
def test_equals_twin_in_every_option(C: float, confidence: float) -> None:
    compare(CollaborativeCW(C=C, confidence=confidence), draw(2), draw(2).X)


def test_features_that_are_rarely_seen_owe_many_pulls() -> None:
    stream = draw(3, n_rows=3000, K=2, d=40, density=0.05, protocol="one")
    learner = CollaborativeCW(pull=0.3)
    _, W, V, g, _ = twin.learn_cw(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    go_on_as_if_after_many(learner, stream)
    assert_close(learner.coef_, W)
    assert_close(learner.covariance_, V)
    assert_close(learner.coef_shared_, g)


@given(
    seed=st.integers(0, 10**6), alpha=st.floats(0, 1), C=st.floats(0.05, 100), confidence=st.floats(0.52, 0.98),
    labels=st.lists(st.sampled_from([-1.0, 1.0]), min_size=6, max_size=6),
)  # fmt: skip
def test_a_step_minimises_the_objective(
    seed: int, alpha: float, C: float, confidence: float, labels: list[float]
) -> None:
    """(1-alpha) KL(q || task) + alpha KL(q || global) + C [phi sqrt(x S x) - y u x]_+ in one dimension, where a
    diagonal covariance is a full one."""
    rng = np.random.default_rng(seed)
    x, task = rng.normal(size=(6, 1)), [0, 1, 0, 1, 1, 0]
    learner = CollaborativeCW(pull=alpha, C=C, confidence=confidence)
    learner.fit(x[:-1], labels[:-1], task[:-1], rounds=range(5))
    mean_k, S_k = learner.coef_[0, 0], learner.covariance_[0, 0]
    learner.partial_fit(x[-1:], labels[-1:], task[-1:])
    pooled = learner.baselines()["pooled"].fit(x, labels, task)
    mean_g, S_g = pooled.coef_[0, 0], pooled.covariance_[0, 0]
    phi, y, v = NormalDist().inv_cdf(confidence), labels[-1], x[-1, 0]

    def KL(u: float, S: float, mean: float, variance: float) -> float:
        return float(0.5 * (np.log(variance / S) + S / variance + (u - mean) ** 2 / variance - 1))

    def objective(z: np.ndarray) -> float:
        u, S = z[0], np.exp(z[1])
        loss = max(0.0, phi * np.sqrt(v * v * S) - y * u * v)
        return float((1 - alpha) * KL(u, S, mean_k, S_k) + alpha * KL(u, S, mean_g, S_g) + C * loss)

    ours = np.array([learner.coef_[0, 0], np.log(learner.covariance_[0, 0])])
    for start in (ours, np.array([mean_k, np.log(S_k)]), np.array([mean_g, np.log(S_g)])):
        best = minimize(objective, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14})
        assert objective(ours) <= best.fun + 1e-9 * max(1.0, abs(best.fun))


def test_a_hard_step_meets_its_confidence_exactly() -> None:
    """With C = inf the row is on its right side with probability `confidence`; in one dimension nothing is dropped."""
    learner = CollaborativeCW(pull=0.4, C=np.inf, confidence=0.8)
    learner.fit([[2.0], [1.0]], [1, -1], ["a", "b"])
    for x, y, k in ((3.0, -1, 0), (0.2, 1, 1), (-1.0, 1, 0)):
        before = learner.n_updates_
        learner.learn_one(np.array([x]), y, learner.tasks_[k])
        u, S = learner.coef_[k, 0], learner.covariance_[k, 0]
        if learner.n_updates_ > before:
            assert_close(NormalDist().cdf(y * u * x / np.sqrt(x * S * x)), 0.8)
    assert learner.n_updates_ > 2


@pytest.mark.parametrize("sparse", [False, True])
def test_precisions_only_grow_and_stay_between_global_and_own(sparse: bool) -> None:
    stream = draw(4, n_rows=400, protocol="one", density=0.5)
    X = stream.sparse if sparse else stream.X
    learner, last = CollaborativeCW(pull=0.0).add_tasks(range(5)), np.ones((5, 7))
    for row in range(0, len(stream.y), 20):
        rows = slice(row, row + 20)
        learner.partial_fit(X[rows], stream.y[rows], stream.task[rows])
        assert (learner.covariance_ > 0).all()
        assert (learner.covariance_ <= last).all()
        last = learner.covariance_


def test_alpha_zero_is_one_gaussian_a_task() -> None:
    stream = draw(5, protocol="one")
    learner = CollaborativeCW(pull=0.0).fit(stream.X, stream.y, stream.task)
    for i, k in enumerate(learner.tasks_):
        own = stream.task == k
        alone = CollaborativeCW(pull=0.7).fit(stream.X[own], stream.y[own])
        assert_close(learner.coef_[i], alone.coef_shared_)


def test_the_pooled_baseline_is_the_global_model() -> None:
    stream = draw(6, density=0.6)
    learner = CollaborativeCW().fit(stream.sparse, stream.y, stream.task)
    pooled = learner.baselines()["pooled"].fit(stream.sparse, stream.y, stream.task)
    np.testing.assert_array_equal(pooled.coef_, np.tile(learner.coef_shared_, (5, 1)))
    assert_close(pooled.decision_function(stream.X, stream.task), stream.X @ learner.coef_shared_)
    nobody = np.full(len(stream.y), "nobody")
    assert_close(learner.decision_function(stream.X, nobody), stream.X @ learner.coef_shared_)


@given(seed=st.integers(0, 10**6))
def test_flipping_all_labels_flips_all_weights(seed: int) -> None:
    stream = draw(seed, n_rows=60)
    learner = CollaborativeCW()
    weights = learner.fit(stream.sparse, stream.y, stream.task).coef_
    np.testing.assert_array_equal(learner.fit(stream.sparse, -stream.y, stream.task).coef_, -weights)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "values", [[0.0], [1.0], [1e150, -1e150], [1e-150, 1e150, 1.0, 0.0]], ids=["zero", "constant", "huge", "mixed"]
)
@pytest.mark.parametrize(("K", "C"), [(1, 1.0), (500, 1.0), (3, np.inf)])
def test_hard_numbers_stay_finite(values: list[float], K: int, C: float, sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.choice(values, (1200, 3)), rng.integers(K, size=1200)
    for y in (np.ones(1200), rng.choice([-1.0, 1.0], 1200)):
        learner = CollaborativeCW(C=C)
        decisions = learner.test_then_train(sp.csr_matrix(X) if sparse else X, y, task)
        assert np.isfinite(decisions).all()
        assert np.isfinite(learner.coef_).all()
        assert (learner.covariance_ > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pull": -0.1}, "pull must be a number in"), ({"pull": float("nan")}, "pull must be a number in"),
        ({"C": 0.0}, "C must be"), ({"C": float("nan")}, "C must be"),
        ({"confidence": 0.5}, "confidence must be"), ({"confidence": 1.0}, "confidence must be"),
        ({"confidence": float("nan")}, "confidence must be"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CollaborativeCW(**options).partial_fit([[1.0]], [1])
