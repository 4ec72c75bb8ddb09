"""OMTRL against its twin in every divergence, its steps as the minimisers that they claim to be, and its overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.cases import saved
from tests.streams import Stream, assert_close, core_of, draw, own_parameters
from tests.twins import omtrl as twin

from shoal import OMTRL, MultitaskPerceptron

DIVERGENCES = ["logdet", "von-neumann", "covariance", "batch"]
each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES)


def compare(learner: OMTRL, stream: Stream, *, sparse: bool = False, n_declared: int = 0) -> None:
    if n_declared:
        learner.add_tasks(range(n_declared))
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W, B, updates = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, n_declared=n_declared, **own_parameters(learner)
    )
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)
    assert_close(learner.relation_, B)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("warmup", [0, 40])
@each_divergence
def test_equals_twin(divergence: str, warmup: int, protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.3 if sparse else 1.0)  # has empty rows
    eta = 1e-4 if divergence == "von-neumann" else 1e-2
    compare(OMTRL(divergence=divergence, eta_A=eta, warmup=warmup), stream, sparse=sparse)


@pytest.mark.parametrize("protocol", ["one", "growing"])
@each_divergence
def test_literal_rule_equals_twin(divergence: str, protocol: str) -> None:
    stream = draw(2, protocol=protocol, n_rows=60 if divergence != "covariance" else 32)  # which overflows soon
    compare(OMTRL(divergence=divergence, eta_A=1e-6, warmup=20, normalize=None), stream)


@pytest.mark.parametrize("K", [1, 2, 16, 17])
@each_divergence
def test_equals_twin_for_any_number_of_tasks(divergence: str, K: int) -> None:
    """Tasks are padded to blocks; more are declared than seen."""
    options: dict[str, Any] = {"divergence": divergence, "eta_A": 1e-4, "warmup": 30}
    compare(OMTRL(**options), draw(3, K=K, d=40, n_rows=300))
    compare(OMTRL(**options), draw(4, K=K, d=40, protocol="growing"), n_declared=K + 3)


@given(
    seed=st.integers(0, 10**6), eta=st.floats(1e-6, 1.0), warmup=st.integers(0, 60),
    divergence=st.sampled_from(["logdet", "covariance"]), protocol=st.sampled_from(["one", "some", "growing"]),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, eta: float, warmup: int, divergence: str, protocol: str
) -> None:
    stream = draw(seed, K=4, n_rows=60, protocol=protocol)
    learner = OMTRL(divergence=divergence, eta_A=eta, warmup=warmup)
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    _, W, B, _ = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    assert_close(learner.coef_, W.T)
    assert_close(learner.relation_, B)


# ---- each step is the minimiser of its objective -------------------------------------------------------------


def one_step(divergence: str, eta: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """B before, B after, and G, of the first literal step after 30 rounds of independent Perceptrons."""
    stream = draw(seed, K=3, d=4, protocol="one")
    learner = OMTRL(divergence=divergence, eta_A=eta, warmup=30, normalize=None).add_tasks(range(3))
    learner.partial_fit(stream.X[:30], stream.y[:30], stream.task[:30])
    before, counted = learner.relation_, learner.n_updates_
    for x, y, task in zip(stream.X[30:], stream.y[30:], stream.task[30:], strict=True):
        learner.learn_one(x, y, task)
        if learner.n_updates_ > counted:
            break
    return before, learner.relation_, learner.coef_ @ learner.coef_.T


def no_better(objective: Callable[[np.ndarray], float], ours: np.ndarray) -> None:
    """No positive definite M M' that BFGS finds from several starts has a lower objective."""
    K, rng = len(ours), np.random.default_rng(0)
    value = objective(ours)
    starts = [np.linalg.cholesky(ours), *(np.eye(K) + 0.3 * rng.normal(size=(K, K)) for _ in range(3))]
    for start in starts:
        best = minimize(lambda m: objective(m.reshape(K, K) @ m.reshape(K, K).T), start.ravel(), method="BFGS")
        assert value <= best.fun + 1e-8 * max(1.0, abs(best.fun))
    assert min(abs(best.fun - value), 1.0) < 1e-5  # and BFGS does come there


@pytest.mark.parametrize("seed", range(3))
def test_logdet_step_minimises(seed: int) -> None:
    eta = 0.02
    B_old, B, G = one_step("logdet", eta, seed)

    def objective(A: np.ndarray) -> float:  # D_LogDet(A || A_old) + eta tr(W A W')
        return float(np.trace(A @ B_old) - np.linalg.slogdet(A @ B_old)[1] - len(A) + eta * np.trace(A @ G))

    no_better(objective, np.linalg.inv(B))


@pytest.mark.parametrize("seed", range(3))
def test_von_neumann_step_minimises(seed: int) -> None:
    eta = 0.02
    B_old, B, G = one_step("von-neumann", eta, seed)
    A_old = np.linalg.inv(B_old)
    log_A_old = twin.apply(np.log, A_old)

    def objective(A: np.ndarray) -> float:  # D_vN(A || A_old) + eta tr(W A W')
        log_A = twin.apply(lambda values: np.log(np.maximum(values, 1e-300)), A)
        return float(np.trace(A @ (log_A - log_A_old) - A + A_old) + eta * np.trace(A @ G))

    no_better(objective, np.linalg.inv(B))


@pytest.mark.parametrize("seed", range(3))
def test_batch_relation_minimises(seed: int) -> None:
    _, B, G = one_step("batch", 1.0, seed)
    assert_close(np.trace(B), 1.0)
    no_better(lambda M: np.trace(np.linalg.solve(M / np.trace(M), G)) / np.trace(G), B)  # tr(W B^-1 W'), tr B = 1


# ---- invariants ----------------------------------------------------------------------------------------------


@each_divergence
def test_warmup_is_independent_learning(divergence: str) -> None:
    stream = draw(5, protocol="some")
    n_rounds = int(stream.rounds[-1]) + 1
    learner = OMTRL(divergence=divergence, warmup=n_rounds)
    learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    independent = learner.baselines()["independent"].fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(learner.coef_, independent.coef_)
    np.testing.assert_array_equal(learner.relation_, np.eye(5))
    literal = OMTRL(divergence=divergence, warmup=n_rounds, normalize=None)
    literal.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_array_equal(literal.relation_, 5 * np.eye(5))  # A = I/K
    assert_close(literal.coef_, 5 * independent.coef_)


@given(seed=st.integers(0, 10**6), divergence=st.sampled_from(DIVERGENCES), eta=st.floats(1e-6, 10))
def test_relation_stays_positive_with_trace_K(seed: int, divergence: str, eta: float) -> None:
    stream = draw(seed, K=6, d=3, protocol="growing")  # more tasks than features: G is singular
    learner = OMTRL(divergence=divergence, eta_A=eta)
    for rows in np.array_split(np.arange(len(stream.y)), 5):
        learner.partial_fit(stream.X[rows], stream.y[rows], stream.task[rows])
        B = learner.relation_
        np.testing.assert_array_equal(B, B.T)
        assert np.linalg.eigvalsh(B).min() > -1e-12
        assert (B.diagonal() >= 0).all()
        assert_close(core_of(learner).state.gram[: len(B), : len(B)], learner.coef_ @ learner.coef_.T)
    assert len(B) == 6


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_long_streams_keep_gram_and_relation(divergence: str) -> None:
    """1e5 rounds: the same 5,000 rows, which no weights fit, twenty times."""
    stream = draw(6, n_rows=5_000, K=4, d=5, protocol="one")
    learner = OMTRL(divergence=divergence)
    for _ in range(20):
        learner.partial_fit(stream.X, stream.y, stream.task)
    assert_close(core_of(learner).state.gram[:4, :4], learner.coef_ @ learner.coef_.T)
    assert_close(np.trace(learner.relation_), 4.0)
    assert np.linalg.eigvalsh(learner.relation_).min() > -1e-12
    assert learner.n_updates_ > 1000


@each_divergence
def test_a_task_that_the_relation_has_shut_out_begins_with_its_first_mistake(divergence: str) -> None:
    """Task 1 is right (0 predicts +1) while task 0 errs 3,000 times: B[1, 1] underflows, or is 0 with "batch"."""
    rng = np.random.default_rng(0)
    X, y = 100 * rng.normal(size=(6000, 3)), rng.choice([-1.0, 1.0], 6000)
    learner = OMTRL(divergence=divergence, eta_A=1.0).add_tasks([0, 1]).partial_fit(X, y, np.zeros(6000))
    assert (learner.coef_[1] == 0).all()
    learner.learn_one(np.ones(3), -1.0, 1)
    assert learner.decision_one(np.ones(3), 1) < 0


@given(seed=st.integers(0, 10**6), divergence=st.sampled_from(DIVERGENCES))
def test_related_tasks_are_found(seed: int, divergence: str) -> None:
    """Tasks 0 and 1 are one task, task 2 its opposite."""
    rng = np.random.default_rng(seed)
    w, X = rng.normal(size=6), rng.normal(size=(600, 6))
    task = np.tile([0, 1, 2], 200)
    y = np.where(X @ w >= 0, 1.0, -1.0) * np.where(task == 2, -1, 1)
    B = OMTRL(divergence=divergence, eta_A=1e-4, warmup=200).fit(X, y, task).relation_
    assert B[0, 1] > 0 > B[0, 2]
    assert B[1, 2] < 0


def test_zero_rows_teach_nothing() -> None:
    stream = draw(7, protocol="one")
    learner = OMTRL().fit(stream.X, stream.y, stream.task)
    before, relation = learner.n_updates_, learner.relation_
    learner.partial_fit(np.zeros((5, 7)), -np.ones(5), np.arange(5))
    assert learner.n_updates_ == before
    np.testing.assert_array_equal(learner.relation_, relation)


def test_unseen_tasks_are_answered_by_the_mean() -> None:
    stream = draw(8)
    learner = OMTRL().fit(stream.X, stream.y, stream.task)
    answers = learner.decision_function(stream.X, np.full(len(stream.y), "nobody"))
    assert_close(answers, stream.X @ learner.coef_.mean(axis=0))


# ---- the literal rule overflows ------------------------------------------------------------------------------

BURSTS = [("logdet", 1.0), ("logdet", 1e-2), ("von-neumann", 1e-2), ("covariance", 1.0)]
each_burst = pytest.mark.parametrize(("divergence", "eta"), BURSTS)


@each_burst
def test_literal_rule_stops_when_it_overflows(divergence: str, eta: float) -> None:
    """Spec 6.6: within a hundred updates or so; the normalised rule survives the same stream."""
    stream = draw(9, K=6, n_rows=1500, protocol="one")
    learner = OMTRL(divergence=divergence, eta_A=eta, normalize=None)
    with pytest.raises(ValueError, match="left the range of doubles at update") as error:
        learner.fit(stream.X, stream.y, stream.task)
    assert int(str(error.value).split("at update ")[1].split(",")[0]) < 300
    assert not hasattr(learner, "coef_")
    learner.set_params(normalize="trace").fit(stream.X, stream.y, stream.task)
    assert np.isfinite(learner.coef_).all()


def until_it_overflows(learner: OMTRL, stream: Stream) -> bytes:
    """The model before the example that made it overflow."""
    for x, y, k in zip(stream.X[25:], stream.y[25:], stream.task[25:].tolist(), strict=True):
        before = saved(learner)
        try:
            learner.learn_one(x, y, k)
        except ValueError as error:
            assert "left the range" in str(error)  # noqa: PT017 (which example it is, is not known)
            return before
    raise AssertionError("no overflow")


@each_burst
@pytest.mark.parametrize("how", ["chunk", "sparse chunk", "new tasks", "fit", "one"])
def test_overflow_leaves_the_model_as_it_was(divergence: str, eta: float, how: str) -> None:
    stream = draw(10, K=6, n_rows=1500, protocol="one")
    learner = OMTRL(divergence=divergence, eta_A=eta, normalize=None, warmup=25)
    learner.fit(stream.X[:25], stream.y[:25], stream.task[:25])
    task = stream.task.astype(object)
    if how == "new tasks":
        task[100:] += 100
    if how == "one":
        with pytest.raises(ValueError, match="left the range"):  # noqa: PT012 (the row that overflows is not known)
            for x, y, k in zip(stream.X[25:], stream.y[25:], stream.task[25:].tolist(), strict=True):
                before = saved(learner)
                learner.learn_one(x, y, k)
    else:
        before = saved(learner)
        learn = learner.fit if how == "fit" else learner.partial_fit
        with pytest.raises(ValueError, match="left the range"):
            learn(stream.sparse[25:] if how == "sparse chunk" else stream.X[25:], stream.y[25:], task[25:])
    assert saved(learner) == before
    assert np.isfinite(learner.decision_function(stream.X, stream.task)).all()
    learner.set_params(normalize="trace").partial_fit(stream.X[25:], stream.y[25:], task[25:])
    assert np.isfinite(learner.coef_).all()


def test_overflow_takes_back_new_features_of_dicts() -> None:
    learner = OMTRL(eta_A=1e300, normalize=None)
    learner.learn_one({"a": 1.0}, -1, 0)
    before = saved(learner)
    with pytest.raises(ValueError, match="left the range"):
        learner.learn_one({"a": 1.0, "b": 1e9}, -1, "new")
    assert saved(learner) == before
    assert list(learner.feature_names_in_) == ["a"]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "values", [[0.0], [1.0], [1e150, -1e150], [1e-150, 1e150, 1.0, 0.0]], ids=["zero", "constant", "huge", "mixed"]
)
@pytest.mark.parametrize(("K", "n_rows"), [(1, 600), (5, 600), (500, 60)])
@each_divergence
def test_hard_numbers_stay_finite(divergence: str, K: int, n_rows: int, values: list[float], sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.choice(values, (n_rows, 3)), rng.integers(K, size=n_rows)
    for y in (np.ones(n_rows), rng.choice([-1.0, 1.0], n_rows)):
        learner = OMTRL(divergence=divergence).add_tasks(range(K))
        decisions = learner.test_then_train(sp.csr_matrix(X) if sparse else X, y, task)
        assert np.isfinite(decisions).all()
        assert np.isfinite(learner.coef_).all()
        assert np.isfinite(learner.relation_).all()


def test_forgetting_keeps_the_others_relation() -> None:
    stream = draw(11)
    learner = OMTRL(divergence="von-neumann").fit(stream.X, stream.y, stream.task)
    B = learner.relation_
    learner.forget_task(learner.tasks_[1])
    np.testing.assert_array_equal(learner.relation_, np.delete(np.delete(B, 1, 0), 1, 1))


def test_baselines_are_perceptrons() -> None:
    assert [type(learner) for learner in OMTRL().baselines().values()] == [MultitaskPerceptron, MultitaskPerceptron]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"divergence": "euclidean"}, "divergence must be one of"), ({"eta_A": 0.0}, "eta_A must be"),
        ({"eta_A": float("inf")}, "eta_A must be"), ({"eta_A": float("nan")}, "eta_A must be"),
        ({"warmup": -1}, "warmup must be"), ({"warmup": 0.5}, "warmup must be"),
        ({"normalize": "norm"}, "normalize must be"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OMTRL(**options).partial_fit([[1.0]], [1])
