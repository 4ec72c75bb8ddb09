"""The multitask Perceptron and regressor against their twin, and the special cases of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import Stream, assert_close, draw, drawn_weights
from tests.twins import multitask_perceptron as twin

from shoal import MultitaskPerceptron, MultitaskRegressor, PassiveAggressive, load, relations
from shoal.engine.losses import CLASSIFICATION, REGRESSION

K = 5
EDGES = [(0, 1, 1.0), (1, 2, 0.5), (0, 3, 2.0), (3, 4, 1.0)]
_root = np.random.default_rng(0).normal(size=(K, K))
MATRIX = _root @ _root.T + np.eye(K)

CONSTANT = {
    "independent": ("independent", twin.inverse_of(twin.constant(0.0))),
    "pairwise": ("pairwise", twin.inverse_of(twin.pairwise)),
    "b=0.7": (0.7, twin.inverse_of(twin.constant(0.7))),
    "b=16": (relations.constant(16), twin.inverse_of(twin.constant(16.0))),
    "pooled": ("pooled", twin.pooled),
}


def adjacency() -> np.ndarray:
    W = np.zeros((K, K))
    for i, j, weight in EDGES:
        W[i, j] = W[j, i] = weight
    return W


def networkx_graph() -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(K))
    graph.add_weighted_edges_from(EDGES)
    return graph


GRAPHS = {
    "edge list": EDGES,
    "graph()": relations.graph(EDGES),
    "networkx": networkx_graph(),
    "adjacency": adjacency(),
    "sparse adjacency": sp.csr_matrix(adjacency()),
}
GIVEN = {name: (graph, twin.inverse_of(twin.laplacian(EDGES))) for name, graph in GRAPHS.items()} | {
    "A": (MATRIX, lambda K: np.linalg.inv(MATRIX)),
    "matrix(A)": (relations.matrix(MATRIX), lambda K: np.linalg.inv(MATRIX)),
    "rates(B)": (relations.rates(MATRIX), lambda K: MATRIX),
}
ALL = CONSTANT | GIVEN


def compare(
    learner: Any, stream: Stream, B: Callable[[int], np.ndarray], *, sparse: bool = False, n_declared: int = 0,
    weight: Any = None,
) -> None:  # fmt: skip
    X, rounds = stream.sparse if sparse else stream.X, stream.rounds
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=rounds, sample_weight=weight)
    expected, W, updates = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, B=B, loss=learner.loss, eta=learner.eta,
        sqrt_step=learner.step == "sqrt", epsilon=getattr(learner, "epsilon", 0.0),
        quantile=getattr(learner, "quantile", 0.5), n_declared=n_declared, weight=weight,
    )  # fmt: skip
    assert learner.tasks_ == list(range(len(updates)))
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("relation", CONSTANT)
def test_equals_twin_on_every_protocol(relation: str, protocol: str, sparse: bool) -> None:
    value, B = CONSTANT[relation]
    stream = draw(1, K=K, protocol=protocol, density=0.5 if sparse else 1.0)
    compare(MultitaskPerceptron(relation=value), stream, B, sparse=sparse)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("relation", GIVEN)
def test_equals_twin_for_given_relations(relation: str, sparse: bool) -> None:
    value, B = GIVEN[relation]
    stream = draw(2, K=K, protocol="some", density=0.5 if sparse else 1.0)
    compare(MultitaskPerceptron(relation=value), stream, B, sparse=sparse, n_declared=K)


@pytest.mark.parametrize("step", ["constant", "sqrt"])
@pytest.mark.parametrize("relation", ["independent", "pairwise", "b=16", "pooled", "edge list", "rates(B)"])
@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_equals_twin_for_every_loss(loss: str, relation: str, step: str) -> None:
    value, B = ALL[relation]
    stream = draw(3, K=K, n_rows=100, protocol="some")
    learner = MultitaskPerceptron(relation=value, loss=loss, eta=0.3, step=step)
    compare(learner, stream, B, n_declared=K if relation in GIVEN else 0)


def for_loss(loss: str, stream: Stream) -> Stream:
    """Counts, or positive targets, where the loss wants them."""
    if loss not in ("poisson", "gamma"):
        return stream
    mean = np.exp(0.5 * stream.y)
    return stream._replace(y=np.floor(2 * mean) if loss == "poisson" else mean)


@pytest.mark.parametrize("step", ["constant", "sqrt"])
@pytest.mark.parametrize("relation", ["independent", "pairwise", "b=16", "pooled", "edge list", "rates(B)"])
@pytest.mark.parametrize("loss", REGRESSION)
def test_regressor_equals_twin(loss: str, relation: str, step: str) -> None:
    value, B = ALL[relation]
    stream = for_loss(loss, draw(4, K=K, n_rows=100, protocol="some", regression=True))
    learner = MultitaskRegressor(relation=value, loss=loss, eta=0.05, step=step, quantile=0.8)
    compare(learner, stream, B, n_declared=K if relation in GIVEN else 0)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("relation", ["independent", "pairwise", "pooled", "edge list"])
@pytest.mark.parametrize("loss", [*CLASSIFICATION, *REGRESSION])
def test_weights_equal_twin(loss: str, relation: str, sparse: bool) -> None:
    value, B = ALL[relation]
    kind = MultitaskRegressor if loss in REGRESSION else MultitaskPerceptron
    stream = draw(5, K=K, n_rows=150, protocol="some", density=0.5 if sparse else 1.0, regression=loss in REGRESSION)
    stream = for_loss(loss, stream)
    weight = drawn_weights(len(stream.y))
    weight[np.unique(stream.task, return_index=True)[1]] = 0.5  # no task begins without weight: the twin has them all
    learner = kind(relation=value, loss=loss, eta=0.05, step="sqrt")
    compare(learner, stream, B, sparse=sparse, n_declared=K if relation in GIVEN else 0, weight=weight)


@pytest.mark.parametrize("loss", ["perceptron", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_large_graphs_by_sparse_factors(seed: int, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above DENSE_LIMIT the inverse is never formed; its columns come from the factors of A."""
    rng = np.random.default_rng(seed)
    n = 30
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.1]
    edges = [(i, j, float(rng.uniform(0.5, 2.0))) for i, j in pairs]
    monkeypatch.setattr(relations, "DENSE_LIMIT", 2)
    graph = relations.graph(edges, tasks=range(n))
    assert graph.factors(unit_own_rate=False).dense.size == 0
    stream = draw(seed, K=n, n_rows=200, protocol="one")
    order: list[Any] = list(dict.fromkeys(graph.tasks))
    B = np.linalg.inv(twin.laplacian(edges)(n))
    stream = stream._replace(task=np.array(order)[stream.task])
    learner = MultitaskPerceptron(relation=graph, loss=loss)
    decisions = learner.test_then_train(stream.X, stream.y, stream.task)
    assert learner.tasks_ == order
    by_column = np.argsort(order)[stream.task]
    rates = B[np.ix_(order, order)]
    expected, W, _ = twin.learn(
        stream.X, stream.y, by_column, [np.array([r]) for r in range(len(stream.y))], B=lambda K: rates, loss=loss,
        eta=1.0, sqrt_step=False, epsilon=0.0, n_declared=n,
    )  # fmt: skip
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)


@pytest.mark.parametrize("relation", ["independent", "pairwise", "b=0.7", "pooled", "rates(B)"])
def test_equals_kernel_perceptron(relation: str) -> None:
    """Eq. 3: primal and kernel form are one algorithm."""
    value, B = ALL[relation]
    stream = draw(5, K=K, protocol="one")
    learner = MultitaskPerceptron(relation=value).add_tasks(range(K))
    decisions = learner.test_then_train(stream.X, stream.y, stream.task)
    assert_close(decisions, twin.kernel_decisions(stream.X, stream.y, stream.task, B=B(K)))


def decisions_of(relation: Any, stream: Stream, **options: Any) -> np.ndarray:
    learner = MultitaskPerceptron(relation=relation, **options).add_tasks(range(K))
    return learner.test_then_train(stream.X, stream.y, stream.task)


CLIQUE = [(i, j) for i in range(K) for j in range(i)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, "independent"), (0.0, np.eye(K)), (float(K), "pairwise"),
        ("pairwise", relations.graph(CLIQUE, tasks=range(K))),
        ("pairwise", (K + 1) * np.eye(K) - 1.0), (float("inf"), "pooled"), (1e14, "pooled"),
        (0.0, relations.graph([], tasks=range(K))),
    ],
)  # fmt: skip
def test_relations_that_are_the_same(one: Any, other: Any) -> None:
    stream = draw(6, K=K, protocol="one")
    assert_close(decisions_of(one, stream), decisions_of(other, stream))


def test_independent_tasks_learn_as_if_alone() -> None:
    stream = draw(7, K=K, protocol="one")
    together = decisions_of("independent", stream)
    for k in range(K):
        own = stream.task == k
        alone = MultitaskPerceptron(relation="independent").test_then_train(stream.X[own], stream.y[own])
        np.testing.assert_array_equal(together[own], alone)


@given(seed=st.integers(0, 10**6), eta=st.floats(1e-3, 1e3))
def test_eta_scales_the_perceptron_and_changes_no_prediction(seed: int, eta: float) -> None:
    stream = draw(seed, K=K, n_rows=60)
    assert_close(decisions_of("pairwise", stream, eta=eta), eta * decisions_of("pairwise", stream))


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(sorted(CLASSIFICATION)), relation=st.sampled_from(sorted(ALL)))
def test_flipping_all_labels_flips_all_weights(seed: int, loss: str, relation: str) -> None:
    """Spec section 8.4; the first row of each model has margin 0, where only smooth triggers are symmetric."""
    stream = draw(seed, K=K, n_rows=60, protocol="one")
    value = ALL[relation][0]
    learners = [MultitaskPerceptron(relation=value, loss=loss).add_tasks(range(K)) for _ in range(2)]
    if loss == "perceptron":  # it reads 0 as +1: start from weights w and -w instead of 0
        x = np.tile(np.random.default_rng(seed + 1).normal(size=stream.X.shape[1]), (K, 1))
        for learner, y in zip(learners, (1, -1), strict=True):
            learner.set_params(loss="hinge").partial_fit(x, np.full(K, y), range(K)).set_params(loss=loss)
    plus, minus = (
        learner.test_then_train(stream.X, sign * stream.y, stream.task)
        for learner, sign in zip(learners, (1, -1), strict=True)
    )
    assert np.abs(plus).max() > 0
    assert_close(minus, -plus)


def test_gradient_steps_have_size_eta_on_the_own_example() -> None:
    """B / max_i B_ii: the own task moves by eta l' x, whatever K and b are."""
    x = np.array([[3.0, -1.0]])
    for relation in ("pairwise", 4.0, "independent", "pooled", MATRIX / 7):
        learner = MultitaskPerceptron(relation=relation, loss="hinge", eta=0.25).add_tasks(range(K))
        learner.partial_fit(x, [1], [0])
        own = learner.relation_[0, 0] / learner.relation_.diagonal().max()
        np.testing.assert_allclose(learner.coef_[0], 0.25 * own * x[0], rtol=1e-13)


def test_unseen_tasks_are_answered_from_what_is_shared() -> None:
    stream = draw(8, K=K, protocol="one")
    for relation in ("pairwise", "independent", "pooled", 2.0):
        learner = MultitaskPerceptron(relation=relation).fit(stream.X, stream.y, stream.task)
        unseen = learner.decision_function(stream.X, np.full(len(stream.y), "nobody"))
        # What a new task would start with, if K stayed as it is: the part of the weights that is no task's own.
        a = {"pairwise": 1 / (K + 1), "independent": 1.0, "pooled": 0.0, 2.0: 1 / 3}[relation]
        total = learner.coef_.sum(axis=0)  # (a + (1 - a)) s = s
        assert_close(unseen, (1 - a) / K * stream.X @ total)
    graph = MultitaskPerceptron(relation=EDGES).fit(stream.X, stream.y, stream.task)
    unseen = graph.decision_function(stream.X, np.full(len(stream.y), "nobody"))
    assert_close(unseen, stream.X @ graph.coef_.mean(axis=0))


def test_tasks_of_a_graph_are_those_it_names() -> None:
    learner = MultitaskPerceptron(relation=[("a", "b"), ("b", "c")])
    learner.partial_fit([[1.0], [2.0]], [-1, 1], ["c", "a"])
    assert learner.tasks_ == ["a", "b", "c"]
    with pytest.raises(ValueError, match="task 'd' is not one of the tasks that the relation names"):
        learner.partial_fit([[1.0]], [1], ["d"])
    with pytest.raises(ValueError, match="none can be forgotten"):
        learner.forget_task("a")


def test_baselines_do_not_share_and_share_all() -> None:
    learner = MultitaskPerceptron(relation=3.0, loss="hinge", eta=0.5)
    baselines = learner.baselines()
    assert {name: b.get_params() for name, b in baselines.items()} == {
        name: {**learner.get_params(), "relation": name} for name in ("independent", "pooled")
    }
    assert {name: b.get_params()["relation"] for name, b in PassiveAggressive().baselines().items()} == {
        "independent": "independent", "pooled": "pooled",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "squared"}, "loss must be one of"),
        ({"eta": 0.0}, "eta must be a finite number > 0"),
        ({"eta": float("inf")}, "eta must be a finite number > 0"),
        ({"step": "slow"}, "step must be"),
        ({"relation": -1.0}, "b must be a number >= 0"),
        ({"relation": "close"}, "relation must be"),
        ({"relation": None}, "relation must be"),
    ],
)
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultitaskPerceptron(**options).partial_fit([[1.0]], [1])


@pytest.mark.parametrize("loss", ["huber", "absolute", "quantile", "poisson", "gamma"])
def test_implicit_steps_stand_rows_of_any_size(loss: str) -> None:
    """No step goes beyond its row's target: the answer after it lies between the answer before it and the target."""
    rng, y = np.random.default_rng(0), 3.0
    for size in (1e-200, 1e-8, 1.0, 1e3, 1e8, 1e150):
        for eta in (1e-6, 1.0, 1e6):
            learner = MultitaskRegressor(relation="independent", loss=loss, eta=eta, epsilon=1.0)
            x = [[size, 0.0], [-size, 0.0], [0.0, 0.0]]
            learner.partial_fit(x, [y, y, y])
            before = learner.predict(x)
            learner.partial_fit(x[:1], [y])
            after = learner.predict(x)
            assert np.isfinite(after).all()
            assert min(before[0], y) - 1e-6 <= after[0] <= max(before[0], y) + 1e-6
            assert np.isfinite(learner.test_then_train(rng.normal(size=(20, 2)), np.full(20, y))).all()


def test_targets_that_a_loss_does_not_take() -> None:
    for loss, bad, allowed in (("poisson", -1.0, ">= 0"), ("gamma", 0.0, "> 0")):
        learner = MultitaskRegressor(loss=loss).partial_fit([[1.0]], [2.0], ["a"])
        before = learner.coef_
        with pytest.raises(ValueError, match=f"row 1: the target is {bad:g}; expected a number {allowed}"):
            learner.partial_fit([[1.0], [1.0]], [2.0, bad], ["a", "a"])
        with pytest.raises(ValueError, match=f"row 0: the target is {bad:g}; expected a number {allowed}"):
            learner.learn_one([1.0], bad, "a")
        np.testing.assert_array_equal(learner.coef_, before)
        learner.set_params(loss="huber").partial_fit([[1.0]], [bad], ["a"])
        with pytest.raises(ValueError, match="expected a number"):
            learner.set_params(loss=loss).partial_fit([[1.0]], [bad], ["a"])


@pytest.mark.parametrize("relation", ["pairwise", "edge list"])
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_means_are_explained_by_their_logarithm_and_saved(loss: str, relation: str, tmp_path: Path) -> None:
    stream = for_loss(loss, draw(4, K=K, n_rows=100, protocol="one", regression=True))
    learner = MultitaskRegressor(relation=ALL[relation][0], loss=loss).fit(stream.X, stream.y, stream.task)
    answers = learner.predict(stream.X, stream.task)
    assert (answers > 0).all()
    explanation = learner.explain_one(stream.X[0], stream.task[0])
    assert math.fsum(one.total for one in explanation.contributions) == pytest.approx(math.log(answers[0]))
    learner.save(tmp_path / "m.shoal")
    np.testing.assert_array_equal(load(tmp_path / "m.shoal").predict(stream.X, stream.task), answers)


def test_pairwise_over_rounds_is_foml() -> None:
    """Spec 6.5, second reading: fixed weights R = (I + 11^T)/(K+1); a mistake of k moves all tasks."""
    stream = draw(8, K=K, protocol="all")
    learner = MultitaskPerceptron(relation="pairwise").add_tasks(range(K))
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    W, R = np.zeros((K, stream.X.shape[1])), (np.eye(K) + 1) / (K + 1)
    for rows in stream.rows_of_rounds:
        for i in rows:
            k = stream.task[i]
            if (W[k] @ stream.X[i] >= 0) != (stream.y[i] > 0):
                W += np.outer(R[:, k], stream.y[i] * stream.X[i])
    assert_close(learner.coef_, W)
    assert_close(learner.relation_, R)
