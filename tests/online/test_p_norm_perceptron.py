"""The p-norm Perceptron against its twin, and what it is in special cases."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.streams import Stream, assert_close, core_of, draw
from tests.twins import multitask_perceptron as interactions
from tests.twins import p_norm_perceptron as twin

from shoal import MultitaskPerceptron, PNormPerceptron, relations
from shoal.online.p_norm_perceptron import rebuild

K = 5
EDGES = [(0, 1, 1.0), (1, 2, 0.5), (0, 3, 2.0), (3, 4, 1.0)]
MATRIX = 2.0 * np.eye(K) - 0.2

CONSTANT = {
    "independent": ("independent", interactions.inverse_of(interactions.constant(0.0))),
    "pairwise": ("pairwise", interactions.inverse_of(interactions.pairwise)),
    "b=3": (3.0, interactions.inverse_of(interactions.constant(3.0))),
    "pooled": ("pooled", interactions.pooled),
}
GIVEN = {
    "graph": (EDGES, interactions.inverse_of(interactions.laplacian(EDGES))),
    "matrix": (relations.matrix(MATRIX), lambda K: np.linalg.inv(MATRIX)),
    "rates": (relations.rates(MATRIX), lambda K: MATRIX),
}
ALL = CONSTANT | GIVEN
ORDERS: list[float | str] = ["auto", 2, 3.0, 7.5]
VARIANTS = ["printed", "sqrt"]


def compare(
    learner: Any,
    stream: Stream,
    B: Callable[[int], np.ndarray],
    *,
    sparse: bool = False,
    n_declared: int = 0,
) -> None:
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W, updates = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, B=B, p=learner.p, variant=learner.variant,
        n_declared=n_declared,
    )  # fmt: skip
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("relation", CONSTANT)
def test_equals_twin_on_every_protocol(relation: str, variant: str, protocol: str, sparse: bool) -> None:
    value, B = CONSTANT[relation]
    for p in ORDERS:
        stream = draw(1, K=K, protocol=protocol, density=0.5 if sparse else 1.0)
        compare(PNormPerceptron(relation=value, p=p, variant=variant), stream, B, sparse=sparse)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("relation", GIVEN)
def test_equals_twin_for_given_relations(relation: str, variant: str, sparse: bool) -> None:
    value, B = GIVEN[relation]
    for p in ORDERS:
        stream = draw(2, K=K, protocol="some", density=0.5 if sparse else 1.0)
        compare(PNormPerceptron(relation=value, p=p, variant=variant), stream, B, sparse=sparse, n_declared=K)


@pytest.mark.parametrize("relation", ["pairwise", "independent", "pooled", "graph"])
@pytest.mark.parametrize("p", ["auto", 40.0, 1000.0])
def test_many_features_and_large_p(p: float | str, relation: str) -> None:
    """Blocks of blocks of features; powers that would underflow without a scale."""
    stream = draw(3, K=K, d=9000, n_rows=40, protocol="one", density=0.002)
    value, B = ALL[relation]
    learner = PNormPerceptron(relation=value, p=p)
    compare(learner, stream, B, sparse=True, n_declared=K if relation in GIVEN else 0)
    state = core_of(learner).state
    assert state.superblocks.shape == (3,)
    np.testing.assert_allclose(state.superblocks.sum(), state.sums.sum(), rtol=1e-13)


@given(
    seed=st.integers(0, 10**6), relation=st.sampled_from(sorted(ALL)), variant=st.sampled_from(VARIANTS),
    p=st.floats(2, 60), sizes=st.lists(st.integers(-30, 30), min_size=1, max_size=4),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, relation: str, variant: str, p: float, sizes: list[int]
) -> None:
    """Rows of very different sizes: the scale has to follow."""
    stream = draw(seed, K=K, n_rows=40, protocol="some")
    stream = stream._replace(X=stream.X * 10.0 ** np.resize(sizes, len(stream.y))[:, None])
    value, B = ALL[relation]
    learner = PNormPerceptron(relation=value, p=p, variant=variant).add_tasks(range(K))
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    certainty: list[float] = [1.0]
    _, W, _ = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, B=B, p=p, variant=variant, n_declared=K,
        certainty=certainty,
    )  # fmt: skip
    assume(min(certainty) > 1e-9)  # else rounding decides what is a mistake, and either way is right
    assert_close(learner.coef_, W.T)


@pytest.mark.parametrize("relation", ALL)
def test_sqrt_with_p_2_is_the_multitask_perceptron(relation: str) -> None:
    """Remark 7, and that the printed variant is not."""
    value, _ = ALL[relation]
    for protocol in ("one", "growing"):
        stream = draw(4, K=K, protocol=protocol)
        plain = MultitaskPerceptron(relation=value).partial_fit(stream.X, stream.y, stream.task)
        root = PNormPerceptron(relation=value, p=2, variant="sqrt").partial_fit(stream.X, stream.y, stream.task)
        assert_close(root.coef_, plain.coef_)
        printed = PNormPerceptron(relation=value, p=2).partial_fit(stream.X, stream.y, stream.task)
        idempotent = relation in ("independent", "pooled")  # B² = B
        assert np.allclose(printed.coef_, plain.coef_) == idempotent


def test_auto_follows_tasks_and_features() -> None:
    learner = PNormPerceptron().add_tasks(range(3))
    learner.partial_fit(np.ones((1, 4)), [-1], [0])
    assert learner.p_ == 2 * np.log(4)
    learner.add_tasks(range(9))
    assert learner.p_ == 2 * np.log(9)
    learner.add_features(50 - learner.n_features_in_).partial_fit(np.ones((1, 50)), [1], [0])
    assert learner.p_ == 2 * np.log(50)
    assert PNormPerceptron().partial_fit([[1.0]], [-1]).p_ == 2.0


def test_hyper_parameters_may_change_on_the_way() -> None:
    """All powers are taken anew: the model is what it had been with the new p from the same sums."""
    stream = draw(5, K=K, protocol="one")
    first, rest = slice(0, 60), slice(60, None)
    learner = PNormPerceptron(p=3).add_tasks(range(K)).partial_fit(stream.X[first], stream.y[first], stream.task[first])
    learner.set_params(p=5).partial_fit(stream.X[rest], stream.y[rest], stream.task[rest])
    by_hand = PNormPerceptron(p=5).add_tasks(range(K)).partial_fit(stream.X[:1] * 0, stream.y[:1], stream.task[:1])
    donor = PNormPerceptron(p=3).add_tasks(range(K)).partial_fit(stream.X[first], stream.y[first], stream.task[first])
    core_of(by_hand).state.own[...], core_of(by_hand).state.shared[...] = (
        core_of(donor).state.own,
        core_of(donor).state.shared,
    )
    rebuild(core_of(by_hand).state, *core_of(by_hand).state.link[:3])
    by_hand.partial_fit(stream.X[rest], stream.y[rest], stream.task[rest])
    assert_close(learner.coef_, by_hand.coef_)


def test_forgetting_leaves_a_consistent_model() -> None:
    for relation, variant in product(["pairwise", "independent", 2.0], VARIANTS):
        stream = draw(6, K=K, protocol="one")
        learner = PNormPerceptron(relation=relation, variant=variant).fit(stream.X, stream.y, stream.task)
        learner.forget_task(2)
        kept = [k for k in learner.tasks_ if k != 2]
        tasks = np.array(kept)[np.arange(len(stream.y)) % len(kept)]
        rows = learner.coef_[[learner.tasks_.index(k) for k in tasks]]
        assert_close(learner.decision_function(stream.X, tasks), np.einsum("ij,ij->i", rows, stream.X))


def test_unseen_tasks_are_answered_like_new_ones() -> None:
    stream = draw(7, K=K, protocol="one")
    for relation in ("pairwise", "independent", "pooled", 2.0):
        learner = PNormPerceptron(relation=relation, p=3).fit(stream.X, stream.y, stream.task)
        state = core_of(learner).state
        p, own, shared, _, _ = state.link
        silent = shared * state.shared if shared > 0 else np.zeros(stream.X.shape[1])
        V = np.tile(silent[:, None], K) + (own * state.own if own > 0 else 0.0)
        norm = np.sum(np.abs(V) ** p) ** ((p - 2) / p)
        w = own * np.sign(silent) * silent**2 + shared * (np.sign(V) * V**2).sum(axis=1)
        assert_close(learner.decision_function(stream.X, np.full(len(stream.y), "nobody")), stream.X @ w / norm)
    graph = PNormPerceptron(relation=EDGES).fit(stream.X, stream.y, stream.task)
    unseen = graph.decision_function(stream.X, np.full(len(stream.y), "nobody"))
    assert_close(unseen, stream.X @ graph.coef_.mean(axis=0))


@pytest.mark.parametrize("relation", ["pairwise", "independent", "pooled", "graph"])
@given(data=st.data())
def test_any_finite_rows_keep_the_model_finite(relation: str, data: st.DataObject) -> None:
    sizes = st.sampled_from([0.0, 1e-150, 1e-9, 1.0, -1e9, 1e150, -1e150])
    X = np.array(data.draw(st.lists(sizes, min_size=36, max_size=36))).reshape(12, 3)
    y = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=12, max_size=12)))
    p: Any = data.draw(st.sampled_from(["auto", 2, 30.0, 1e5]))
    learner = PNormPerceptron(relation=ALL[relation][0], p=p)
    decisions = learner.test_then_train(X, y, np.resize(np.arange(K), 12))
    assert np.isfinite(decisions).all()
    assert np.isfinite(learner.coef_).all()


def test_500_tasks() -> None:
    stream = draw(8, K=500, d=3, n_rows=1500, protocol="growing")
    learner = PNormPerceptron().partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    n_tasks = len(learner.tasks_)
    assert n_tasks > 450
    assert learner.coef_.shape == (n_tasks, 3)
    assert np.isfinite(learner.coef_).all()
    assert learner.p_ == 2 * np.log(n_tasks)


def test_a_large_p_finds_the_few_features_that_matter() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.choice([-1.0, 1.0], size=(3000, 300)), rng.integers(6, size=3000)
    y = np.sign(X[:, :3].sum(axis=1))
    mistakes = {p: PNormPerceptron(p=p).fit(X, y, task).n_updates_ for p in (2, "auto")}
    assert mistakes["auto"] < 0.6 * mistakes[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 1.5}, "p must be a finite number >= 2 or 'auto'"), ({"p": np.inf}, "p must be a finite"),
        ({"p": np.nan}, "p must be a finite"), ({"p": "many"}, "p must be a finite"),
        ({"variant": "new"}, "variant must be one of"), ({"relation": -1.0}, "b must be a number >= 0"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PNormPerceptron(**options).partial_fit([[1.0]], [1])
