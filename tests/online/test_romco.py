"""ROMCO against its eager twin, which has an SVD of the whole U in every round; and what the two parts mean."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.compiled import from_python
from tests.streams import Stream, assert_close, core_of, draw, own_parameters
from tests.twins import romco as twin

from shoal import ROMCO, MultitaskPerceptron
from shoal.engine.arrays import FloatArray
from shoal.online import romco
from shoal.online.romco import EPOCHS, TOUCHED, UPDATES

logdet_factor = from_python(romco.logdet_factor)
OPTIONS = [
    {"penalty": penalty, "trigger": trigger, "step": step}
    for penalty, trigger, step in product(["nuclear", "logdet"], ["margin", "mistake"], ["constant", "sqrt"])
]
PROTOCOLS = ["one", "some", "all", "growing"]


def wide(seed: int, **options: Any) -> Stream:
    """Sparse rows of many features: they sleep long. The constant one lets all rows meet, so that no margin is 0 but
    for rounding, where a mistake would be a matter of luck."""
    stream = draw(seed, **{"d": 400, "density": 0.02, **options})
    stream.X[:, 0] = 1.0
    return stream


def compare(learner: ROMCO, stream: Stream, *, sparse: bool = False, n_declared: int = 0) -> None:
    if n_declared:
        learner.add_tasks(range(n_declared))
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, U, V, updates = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, n_declared=n_declared, **own_parameters(learner)
    )
    assert_close(decisions, expected)
    assert_close(learner.coef_low_rank_, U.T)
    assert_close(learner.coef_task_, V.T)
    assert_close(learner.coef_, learner.coef_low_rank_ + learner.coef_task_)
    assert learner.rank_ == np.linalg.matrix_rank(U)
    assert learner.outlier_tasks_ == [learner.tasks_[k] for k in np.flatnonzero(V.any(axis=0))]
    np.testing.assert_array_equal(learner.task_updates_[: len(updates)], updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_equals_twin_in_every_option(options: dict[str, Any], protocol: str, sparse: bool) -> None:
    stream = wide(1, protocol=protocol, n_rows=200) if sparse else draw(1, protocol=protocol, n_rows=200)
    compare(ROMCO(lambda1=0.5, lambda2=0.5, **options), stream, sparse=sparse)


@pytest.mark.parametrize("K", [1, 2, 15, 16, 17, 35])
def test_equals_twin_for_any_number_of_tasks(K: int) -> None:
    """Tasks are padded to 16, 32, ...: what rows remember is laid out anew when that grows; more declared than seen."""
    compare(ROMCO(lambda1=0.3), draw(2, K=K, n_rows=200, d=40, protocol="some"))
    compare(ROMCO(lambda1=0.8), wide(3, K=K, n_rows=200, protocol="growing"), sparse=True)
    compare(ROMCO(penalty="logdet"), draw(4, K=K, n_rows=200, d=40, protocol="growing"), n_declared=K + 3)


def long_stream() -> Stream:
    """2,000 rounds of some of 5 tasks; features are as frequent as words, most of them rare."""
    stream, rng = draw(5, K=5, n_rows=6100, d=3000, protocol="some"), np.random.default_rng(0)
    frequency = np.minimum(1.0, 8.0 / (1 + np.arange(3000)))
    X = stream.X * (rng.random(stream.X.shape) < frequency)
    w = frequency * (rng.normal(size=3000) + 0.5 * rng.normal(size=(5, 3000)))
    y = np.where(np.einsum("ij,ij->i", X, w[stream.task]) >= 0, 1.0, -1.0)
    return stream._replace(X=X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9), y=y)


@pytest.mark.parametrize(
    ("options", "rank"),
    [
        ({"eta": 1.0, "rho": 0.5, "lambda1": 0.6, "lambda2": 0.3}, range(1, 5)),  # truncated in nearly every round
        ({"eta": 0.3, "lambda1": 0.05, "lambda2": 0.1}, range(1, 6)),  # now and then
        ({"eta": 1.0, "penalty": "logdet", "lambda1": 0.5, "lambda2": 0.1}, range(5, 6)),
    ],
    ids=["truncated", "full", "logdet"],
)
def test_lazy_is_eager_over_2000_rounds(options: dict[str, Any], rank: range) -> None:
    stream = long_stream()
    assert stream.rounds[-1] >= 2000
    learner = ROMCO(**options)
    compare(learner, stream, sparse=True)
    assert learner.rank_ in rank


def test_rows_do_sleep() -> None:
    """The test above is worth something: rows sleep through many epochs, and then some more updates."""
    stream = long_stream()
    X = stream.sparse
    learner = ROMCO(eta=1.0, lambda1=0.6)
    most = 0
    for first in range(0, 1500, 15):
        chunk = slice(first, first + 15)
        learner.partial_fit(X[chunk], stream.y[chunk], stream.task[chunk], rounds=stream.rounds[chunk])
        tally = core_of(learner).state.rows.tally
        most = max(most, int(tally[EPOCHS]))
        assert tally[EPOCHS] <= tally[UPDATES] < max(2, tally[TOUCHED] // 64)
    assert most >= 8
    stamps = core_of(learner).state.rows.stamps
    assert len(np.unique(stamps)) > 2


@given(
    seed=st.integers(0, 10**6), eta=st.floats(0.01, 2), rho=st.floats(0.01, 2), lambda1=st.floats(0, 3),
    lambda2=st.floats(0, 3), C=st.floats(0.1, 3), options=st.sampled_from(OPTIONS), protocol=st.sampled_from(PROTOCOLS),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, eta: float, rho: float, lambda1: float, lambda2: float, C: float, options: dict[str, Any], protocol: str
) -> None:
    stream = wide(seed, K=4, n_rows=40, d=150, density=0.1, protocol=protocol)
    learner = ROMCO(eta=eta, rho=rho, lambda1=lambda1, lambda2=lambda2, C=C, **options)
    mine = learner.test_then_train(stream.sparse, stream.y, stream.task, rounds=stream.rounds)
    theirs, U, V, _ = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    assume(not any(is_unsure(f, stream.y) for f in (mine, theirs)))  # else rounding decides what is an update
    assert_close(learner.coef_low_rank_, U.T)
    assert_close(learner.coef_task_, V.T)


def is_unsure(f: FloatArray, y: FloatArray) -> bool:
    """Are decisions where an update begins, by trigger at 0 or at margin 1? Exact zeros are the same in both."""
    return bool(np.any(((np.abs(f) < 1e-9) & (f != 0.0)) | (np.abs(1.0 - y * f) < 1e-9)))


# ---- spec section 8 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_penalties_it_is_subgradient_descent(protocol: str) -> None:
    """With step eta + rho, as independent tasks make it."""
    stream = draw(6, protocol=protocol)
    learner = ROMCO(eta=0.2, rho=0.05, lambda1=0.0, lambda2=0.0).partial_fit(
        stream.X, stream.y, stream.task, rounds=stream.rounds
    )
    own = MultitaskPerceptron(relation="independent", loss="hinge", eta=0.25)
    own.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(learner.coef_, own.coef_)
    assert_close(learner.coef_low_rank_ * 0.25, learner.coef_task_)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_large_strengths_leave_exact_zeros(sparse: bool) -> None:
    stream = draw(7, d=200, density=0.1 if sparse else 1.0)
    X = stream.sparse if sparse else stream.X
    low = ROMCO(lambda1=100.0).fit(X, stream.y, stream.task, rounds=stream.rounds)
    assert not low.coef_low_rank_.any()
    assert low.rank_ == 0
    assert low.outlier_tasks_ == low.tasks_
    alike = ROMCO(lambda2=100.0).fit(X, stream.y, stream.task, rounds=stream.rounds)
    assert not alike.coef_task_.any()
    assert alike.outlier_tasks_ == []
    assert alike.rank_ > 0


def test_personal_columns_come_and_go() -> None:
    """A personal part is given up exactly, and what comes later starts from nothing."""
    learner = ROMCO(rho=1.0, lambda2=0.3, lambda1=100.0)
    learner.learn_round({"a": ([1.0, 0.0], 1), "b": ([0.0, 1.0], -1)})
    np.testing.assert_allclose(learner.coef_task_, [[0.7, 0.0], [0.0, -0.7]], rtol=1e-14)
    for left in (0.4, 0.1, 0.0):  # task c makes the rounds; task a has no loss and shrinks
        learner.learn_round({"a": ([1e3, 0.0], 1), "c": ([0.0, 0.0], 1)})
        np.testing.assert_allclose(learner.coef_task_[0], [left, 0.0], atol=1e-15)
    assert learner.outlier_tasks_ == ["b"]
    np.testing.assert_allclose(learner.coef_task_[1], [0.0, -0.7], rtol=1e-14)  # absent: keeps v_b
    learner.learn_round({"a": ([0.0, 2.0], 1)})
    np.testing.assert_allclose(learner.coef_task_[0], [0.0, 1.7], rtol=1e-14)


@given(seed=st.integers(0, 10**6), options=st.sampled_from([o for o in OPTIONS if o["trigger"] == "margin"]))
def test_flipping_all_labels_flips_all_weights(seed: int, options: dict[str, Any]) -> None:
    stream = draw(seed, n_rows=60)
    learner = ROMCO(lambda1=0.5, **options)
    weights = learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_
    flipped = learner.fit(stream.X, -stream.y, stream.task, rounds=stream.rounds).coef_
    assert_close(flipped, -weights)


def test_rounds_without_trigger_change_nothing() -> None:
    stream = draw(8)
    learner = ROMCO().fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    before, updates = learner.coef_, learner.n_updates_
    k = learner.tasks_[0]
    learner.learn_round({k: (1e6 * before[0], 1)})
    np.testing.assert_array_equal(learner.coef_, before)
    assert learner.n_updates_ == updates


def test_unseen_tasks_get_the_mean_of_what_is_common() -> None:
    stream = draw(9)
    learner = ROMCO().fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    expected = stream.X @ learner.coef_low_rank_.mean(axis=0)
    assert_close(learner.decision_function(stream.X, np.full(len(stream.y), "nobody")), expected)


# ---- the prox of the log-determinant -------------------------------------------------------------------------


@given(s=st.floats(1e-6, 1e6), tau=st.floats(1e-3, 50))
def test_logdet_prox_is_the_minimum(s: float, tau: float) -> None:
    """Below every point of a grid and every root that NumPy finds, tau > 4 included, where there may be three."""

    def height(z: Any) -> Any:
        return 0.5 * (z - s) ** 2 + tau * np.log1p(z * z)

    z = logdet_factor(s, tau) * s
    assert 0 < z < s
    others = np.append(np.linspace(0, s, 1001), twin.logdet_prox(s, tau))
    assert height(z) <= height(others).min() + 1e-12 * max(height(0.0), tau)
    assert abs(z**3 - s * z**2 + (1 + 2 * tau) * z - s) <= 1e-12 * (s**3 + (1 + 2 * tau) * s)


@pytest.mark.parametrize("s", [7.75, 8.0, 8.3, 8.5, 9.05])
def test_logdet_prox_with_three_roots(s: float) -> None:
    """Spec 3.3: at tau = 8 there are three for s in 7.73 to 9.07."""
    roots = np.roots([1.0, -s, 17.0, -s])
    assert (np.abs(roots.imag) < 1e-9).all()
    assert logdet_factor(s, 8.0) * s == pytest.approx(twin.logdet_prox(s, 8.0), rel=1e-10)


# ---- numerics ------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6), exponents=st.lists(st.integers(-150, 150), min_size=1, max_size=4),
    options=st.sampled_from(OPTIONS), all_equal=st.booleans(), strength=st.sampled_from([0.0, 0.01, 10.0]),
)  # fmt: skip
def test_all_finite_input_gives_finite_weights(
    seed: int, exponents: list[int], options: dict[str, Any], all_equal: bool, strength: float
) -> None:
    stream = draw(seed, n_rows=40)
    size = 10.0 ** np.random.default_rng(seed).choice([*exponents, -np.inf], len(stream.y))
    X, y = np.sign(stream.X) * size[:, None], np.ones_like(stream.y) if all_equal else stream.y
    learner = ROMCO(lambda1=strength, lambda2=strength, **options)
    decisions = learner.test_then_train(X, y, stream.task, rounds=stream.rounds, classes=[-1, 1])
    assert np.isfinite(decisions).all()
    assert np.isfinite(learner.coef_).all()
    assert np.isfinite(learner.decision_function(X, stream.task)).all()


def test_500_tasks() -> None:
    stream = draw(10, K=500, n_rows=1000, protocol="all")
    learner = ROMCO().partial_fit(stream.X, stream.y, stream.task)
    assert np.isfinite(learner.coef_).all()
    assert learner.coef_.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "rank"}, "penalty must be one of"), ({"trigger": "often"}, "trigger must be one of"),
        ({"step": "wide"}, "step must be one of"), ({"eta": 0.0}, "eta must be"), ({"rho": np.inf}, "rho must be"),
        ({"C": float("nan")}, "C must be"), ({"lambda1": -1.0}, "lambda1 must be"),
        ({"lambda2": np.inf}, "lambda2 must be"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ROMCO(**options).partial_fit([[1.0]], [1])
