"""The 2p-norm matrix Perceptron against its twin; its dual form; Remark 12."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from tests.streams import assert_close, core_of, draw
from tests.twins import schatten_perceptron as twin

from shoal import KernelPerceptron, MultitaskPerceptron, SchattenPerceptron, SharedLoss
from shoal.online.schatten_perceptron import SCALE

ORDERS = [1, 2, 3.0, 4, 7, "auto", 1.5, 2.5]
LOSSES = [None, "l1", "l2", "linf"]


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("shared_loss", LOSSES)
@pytest.mark.parametrize("p", ORDERS)
def test_equals_twin(p: float | str, shared_loss: str | None, protocol: str, sparse: bool) -> None:
    fractional = p in (1.5, 2.5)  # eigenvalues make tiny numbers of zeros, whose signs are mistakes or not
    stream = draw(1, protocol=protocol, density=0.5 if sparse and not (fractional and shared_loss is None) else 1.0)
    learner = SchattenPerceptron(p=p, shared_loss=shared_loss, C=0.3)
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    options: dict[str, Any] = {"p": p, "shared_loss": shared_loss, "C": 0.3}
    expected, W, updates = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **options)
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("p", [1, 3, 1.5])
@pytest.mark.parametrize("options", [{"shared_loss": "rmax", "r": 2}, {"shared_loss": 1.2}, {"shared_loss": 5}])
def test_remark_12_takes_any_norm(options: dict[str, Any], p: float) -> None:
    for protocol in ("some", "growing"):
        stream = draw(3, protocol=protocol)
        learner = SchattenPerceptron(p=p, C=0.3, **options)
        decisions = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
        expected, W, updates = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, p=p, C=0.3, **options)
        assert_close(decisions, expected)
        assert_close(learner.coef_, W.T)
        np.testing.assert_array_equal(learner.task_updates_, updates)


@pytest.mark.parametrize("K", [1, 2, 16, 17, 40])
def test_equals_twin_for_any_number_of_tasks(K: int) -> None:
    """Below, at and above the blocks that tasks are padded to; more tasks than features."""
    for p, protocol in ((2, "some"), ("auto", "growing"), (5, "one")):
        stream = draw(2, K=K, n_rows=400, protocol=protocol)
        learner = SchattenPerceptron(p=p).add_tasks(range(K + 2))
        learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
        _, W, _ = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, p=p, n_declared=K + 2)
        assert_close(learner.coef_, W.T)


@given(seed=st.integers(0, 10**6), p=st.integers(1, 12), sizes=st.lists(st.integers(-8, 8), min_size=1, max_size=4))
def test_rows_of_different_sizes(seed: int, p: int, sizes: list[int]) -> None:
    """The power is kept by small steps and multiplied anew where the trace jumps; it never drifts from G^(p-1)."""
    stream = draw(seed, n_rows=60, protocol="some")
    X = stream.X * 10.0 ** np.resize(sizes, len(stream.y))[:, None]
    learner = SchattenPerceptron(p=p).fit(X, stream.y, stream.task, rounds=stream.rounds)
    gram, K = core_of(learner).state.gram, len(learner.tasks_)
    V = core_of(learner).state.weights[: X.shape[1], :K]
    G = V.T @ V
    assert_close(gram.form[SCALE] * gram.products[:K, :K], G)
    assert_close(gram.power[:K, :K], np.linalg.matrix_power(gram.products[:K, :K], p - 1))


@given(
    seed=st.integers(0, 10**6), protocol=st.sampled_from(["one", "some", "all", "growing"]),
    sparse=st.booleans(), scale=st.sampled_from([1e-150, 1.0, 1e150]),
)  # fmt: skip
def test_p_1_is_independent_perceptrons(seed: int, protocol: str, sparse: bool, scale: float) -> None:
    """Exactly: the same weights, bit for bit."""
    stream = draw(seed, protocol=protocol, density=0.5 if sparse else 1.0, scale=scale)
    X = stream.sparse if sparse else stream.X
    learner, alone = SchattenPerceptron(p=1), MultitaskPerceptron(relation="independent")
    f = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(f, alone.test_then_train(X, stream.y, stream.task, rounds=stream.rounds))
    np.testing.assert_array_equal(learner.coef_, alone.coef_)
    np.testing.assert_array_equal(learner.task_updates_, alone.task_updates_)
    np.testing.assert_array_equal(learner.relation_, np.eye(5))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf", "rmax", 3.0])
def test_p_1_with_a_shared_loss_is_that_of_dekel(norm: str | float) -> None:
    stream = draw(4, protocol="all")
    learner = SchattenPerceptron(p=1, shared_loss=norm, C=0.4, r=3)
    dekel = SharedLoss(norm=norm, C=0.4, r=3).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_, dekel.coef_)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("protocol", ["one", "some", "all"])
@pytest.mark.parametrize(
    ("kernel", "function"),
    [("rbf", lambda A, B: rbf_kernel(A, B, gamma=0.3)), (linear_kernel, linear_kernel), (laplacian_kernel,) * 2],
    ids=["rbf", "function", "laplacian"],
)
def test_dual_form_equals_its_twin(kernel: Any, function: Any, protocol: str, p: int) -> None:
    """Section 6.2.1, with the library's kernel and with functions."""
    stream = draw(5, K=4, n_rows=60, protocol=protocol)
    learner = SchattenPerceptron(p=p, kernel=kernel, gamma=0.3).add_tasks(range(4))
    decisions = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    expected = twin.kernel_decisions(stream.X, stream.y, stream.task, stream.rows_of_rounds, kernel=function, p=p)
    assert_close(decisions, expected)
    mistaken = np.flatnonzero((expected >= 0) != (stream.y > 0))
    np.testing.assert_array_equal(np.sort(learner.support_), mistaken)
    assert not hasattr(learner, "coef_")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("shared_loss", [None, "l2"])
@pytest.mark.parametrize("p", ["auto", 2.5])
def test_primal_equals_dual(p: float | str, shared_loss: str | None, sparse: bool) -> None:
    stream = draw(6, protocol="growing", density=0.5 if sparse else 1.0)
    X = stream.sparse if sparse else stream.X
    primal, dual = (SchattenPerceptron(p=p, shared_loss=shared_loss, kernel=k) for k in ("linear", linear_kernel))
    one = primal.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(dual.test_then_train(X, stream.y, stream.task, rounds=stream.rounds), one)
    assert_close(dual.relation_, primal.relation_)
    dual.forget_task(1)
    primal.forget_task(1)
    tasks = np.array([0, 2, 3, 4])[np.arange(len(stream.y)) % 4]
    assert_close(dual.decision_function(X, tasks), primal.decision_function(X, tasks))


def test_p_1_with_a_kernel_is_independent_kernel_perceptrons() -> None:
    stream = draw(7, protocol="some")
    learner = SchattenPerceptron(p=1, kernel="rbf", gamma=0.5)
    alone = KernelPerceptron(relation="independent", kernel="rbf", gamma=0.5)
    decisions = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(alone.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds), decisions)
    assert learner.n_updates_ == alone.n_updates_


def test_auto_follows_tasks_and_features() -> None:
    learner = SchattenPerceptron().fit(np.eye(2), [1, -1])
    assert learner.p_ == 1
    learner.add_tasks(range(7))
    assert learner.p_ == 1  # two features
    learner.add_features(100 - learner.n_features_in_).partial_fit(np.ones((1, 100)), [1], [0])
    assert learner.p_ == 3  # ceil(ln 8)
    assert SchattenPerceptron(kernel="rbf").fit(np.eye(8), [1, -1] * 4, range(8)).p_ == 3


@given(seed=st.integers(0, 10**6), p=st.sampled_from([1, 2, 5, 1.5]), norm=st.sampled_from(["l1", "l2", "linf"]))
def test_flipping_all_labels_flips_all_weights(seed: int, p: float, norm: str) -> None:
    stream = draw(seed, n_rows=60)
    learner = SchattenPerceptron(p=p, shared_loss=norm)
    weights = learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_
    np.testing.assert_array_equal(learner.fit(stream.X, -stream.y, stream.task, rounds=stream.rounds).coef_, -weights)


@pytest.mark.parametrize("shared_loss", LOSSES)
@given(data=st.data(), n_tasks=st.sampled_from([1, 4]), kernel=st.sampled_from(["linear", "rbf", linear_kernel]))
def test_any_finite_rows_keep_the_model_finite(
    shared_loss: str | None, data: st.DataObject, n_tasks: int, kernel: Any
) -> None:
    sizes = st.sampled_from([0.0, 1e-150, 1e-9, 1.0, -1e9, 1e150, -1e150])
    rows = st.lists(st.lists(sizes, min_size=3, max_size=3), min_size=1, max_size=12)
    X = np.resize(data.draw(rows), (12, 3))  # one row: all are equal
    y = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=12, max_size=12)))
    p: Any = data.draw(st.sampled_from(["auto", 1, 2, 3, 64, 1.5, 40.5]))
    task = np.arange(12) % n_tasks
    learner = SchattenPerceptron(p=p, shared_loss=shared_loss, kernel=kernel)
    decisions = learner.test_then_train(X, y, task)
    assert np.isfinite(decisions).all()
    assert np.isfinite(learner.decision_function(X, task)).all()
    assert np.isfinite(learner.relation_).all()
    assert kernel != "linear" or np.isfinite(learner.coef_).all()


@pytest.mark.parametrize("p", [1, 2, 3, 2.5, 64])
def test_what_rounding_leaves_of_a_task_stays_finite(p: float | str) -> None:
    """1e9 beside 1e150 that comes and goes: G has lost it, and the next product with it is negative."""
    X = np.resize([[0, 1e-150, 0], [0, -1e9, 0], [1e150, 0, 0], [-1e150, 0, 0]], (40, 3))
    learner = SchattenPerceptron(p=p)
    assert np.isfinite(learner.test_then_train(X, np.full(40, -1), classes=[-1, 1])).all()
    assert np.isfinite(learner.coef_).all()


def test_a_small_row_after_a_large_sum_is_gone() -> None:
    """v = -3 is left of 1e9, and G = 0: the small row alone must not set the scale of <v, x>."""
    X = np.resize([[1e-150], [1.0], [-1e9]], (12, 1))
    learner = SchattenPerceptron(p=64, shared_loss="l1")
    assert np.isfinite(learner.test_then_train(X, [-1] * 8 + [1] + [-1] * 3, np.zeros(12))).all()


def test_a_power_that_shrinks_is_multiplied_anew() -> None:
    """||v||^2 falls by half and ||v||^126 by 19 orders: more than the digits that it had."""
    X = np.zeros((12, 2))
    X[3], X[5:7, 1], X[7, 1], X[11] = 1.2, 1e-159, 1.2, 1.2
    y = np.where(np.isin(np.arange(12), [4, 7]), 1, -1)
    learner = SchattenPerceptron(p=64)
    decisions = learner.test_then_train(X, y, np.arange(12) % 4)
    expected, W, _ = twin.learn(X, y, np.arange(12) % 4, np.split(np.arange(12), 3), p=64)
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)


def test_500_tasks_and_equal_labels() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(1500, 6)), np.tile(np.arange(500), 3)
    for y in (-np.ones(1500), np.sign(X[:, 0])):
        learner = SchattenPerceptron(p=3).fit(X, y, task)
        _, W, _ = twin.learn(X, y, task, np.split(np.arange(1500), 3), p=3)
        assert_close(learner.coef_, W.T)


@pytest.mark.parametrize("p", [3, 8])
def test_the_gram_matrix_stays_true_and_definite_over_1e5_rounds(p: int) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(100_000, 12)), rng.integers(10, size=100_000)
    y = rng.choice([-1, 1], size=100_000)  # noise: half of all rows are mistakes
    learner = SchattenPerceptron(p=p).fit(X, y, task, rounds=np.arange(100_000))
    V, gram = core_of(learner).state.weights[:12, :10], core_of(learner).state.gram
    assert learner.n_updates_ > 40_000
    G = gram.form[SCALE] * gram.products[:10, :10]
    assert_close(G, V.T @ V)
    assert_close(np.linalg.eigvalsh(G), np.linalg.eigvalsh(V.T @ V))
    assert np.linalg.eigvalsh(G).min() > 0.0
    assert_close(learner.coef_, twin.gradient(V, p).T)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_row_learned_and_unlearned_leaves_nothing(sparse: bool) -> None:
    """Not a rounding error of the Gram matrix, which would outweigh all rows 1e-8 times as long."""
    rng = np.random.default_rng(0)
    for d in (1, 5, 23, 200):
        X = np.repeat(rng.normal(size=(7, d)), 2, axis=0)
        y, task = np.tile([-1, 1], 7), np.repeat(np.arange(7), 2)
        learner = SchattenPerceptron(p=3)
        learner.fit(sp.csr_matrix(X) if sparse else X, y, task, rounds=np.arange(14))
        assert learner.n_updates_ == 14
        assert not core_of(learner).state.gram.products.any()
        x, z = 1e-9 * rng.normal(size=(2, d))
        learner.partial_fit([x, z], [-1, -1], [0, 1], rounds=[0, 0])
        expected = twin.gradient(-np.column_stack([x, z, np.zeros((d, 5))]), 3)
        assert_close(learner.coef_, expected.T)


def test_forgetting_is_never_having_had_the_sum() -> None:
    stream = draw(8, protocol="all")
    for p in (1, 2, 3, 1.5):
        learner = SchattenPerceptron(p=p).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
        V = core_of(learner).state.weights[:7, :5].copy()
        learner.forget_task(2)
        assert learner.tasks_ == [0, 1, 3, 4]
        assert_close(learner.coef_, twin.gradient(V[:, [0, 1, 3, 4]], p).T)


def test_kernel_models_copy_and_learn_on() -> None:
    stream, more = draw(9), draw(10)
    learner = SchattenPerceptron(kernel="rbf").fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    learner.forget_task(1)
    other = pickle.loads(pickle.dumps(learner))
    for model in (learner, other):
        model.partial_fit(more.X, more.y, more.task, rounds=more.rounds)
    np.testing.assert_array_equal(
        learner.decision_function(more.X, more.task), other.decision_function(more.X, more.task)
    )
    assert set(learner.baselines()) == {"independent", "pooled"}


def test_tasks_in_a_common_subspace_help_each_other() -> None:
    """Opposite weights in one direction: averaging is useless, a common subspace is all."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(6000, 20)), np.tile(np.arange(30), 200)
    y = np.sign(X @ rng.normal(size=20)) * np.where(task % 2, 1, -1)
    own, low_rank = (SchattenPerceptron(p=p).fit(X, y, task).n_updates_ for p in (1, "auto"))
    assert low_rank < 0.75 * own


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 0.5}, r"p must be a number in \[1, 64\] or 'auto'"), ({"p": np.nan}, "p must be a number"),
        ({"p": "big"}, "p must be a number"), ({"p": 100}, "p must be a number"),
        ({"shared_loss": "max"}, "shared_loss must be one of"), ({"shared_loss": 0.5}, "or a number p >= 1, got 0.5"),
        ({"shared_loss": "rmax", "r": 0}, "r must be a whole number >= 1"),
        ({"C": 0.0}, "C must be a finite number > 0"),
        ({"kernel": "cubic"}, "kernel must be"), ({"gamma": -1.0}, "gamma must be"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SchattenPerceptron(**options).partial_fit([[1.0]], [1])
