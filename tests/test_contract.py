"""The contract of all learners, as named cases: every learner of `cases.LEARNERS` x every promise."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.cases import (
    CLASSIFIERS,
    EDGES,
    FEWER_EXAMPLES,
    LEARNERS,
    OPEN,
    K,
    as_dict,
    learned,
    saved,
    stream_for,
    taught,
    value_one,
    values,
    weights,
)
from tests.exclusions import each_of
from tests.streams import assert_close

import shoal
from shoal import Learner

each_learner = each_of(LEARNERS)
each_open_learner = each_of(OPEN)


def test_every_public_learner_is_in_the_table() -> None:
    public = {getattr(shoal, name) for name in shoal.__all__}
    learners = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, Learner)}
    learners -= {Learner, shoal.Periodic}  # Periodic has a batch learner's tests
    assert learners == {type(make()) for make in LEARNERS.values()}


# ---- order is sacred, chunks are not -------------------------------------------------------------------------


@each_learner
@FEWER_EXAMPLES
@given(data=st.data(), protocol=st.sampled_from(["one", "some", "all", "growing"]))
def test_chunking_changes_nothing(name: str, data: Any, protocol: str) -> None:
    stream = stream_for(name, protocol=protocol, n_rows=40, density=data.draw(st.sampled_from([0.5, 1.0])))
    X = stream.sparse if data.draw(st.booleans()) else stream.X
    starts = [int(rows[0]) for rows in stream.rows_of_rounds[1:]]
    cuts = sorted(data.draw(st.sets(st.sampled_from(starts))))
    pieces = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(stream.y)], strict=True)]
    whole, chunked, tested = (LEARNERS[name]() for _ in range(3))
    whole.partial_fit(X, stream.y, stream.task, rounds=stream.rounds)
    whole_decisions = LEARNERS[name]().test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    decisions = []
    for piece in pieces:
        chunk = X[piece], stream.y[piece], stream.task[piece]
        chunked.partial_fit(*chunk, rounds=stream.rounds[piece])
        decisions.append(tested.test_then_train(*chunk, rounds=stream.rounds[piece]))
    assert saved(chunked) == saved(whole) == saved(tested)
    np.testing.assert_array_equal(np.concatenate(decisions), whole_decisions)


@each_learner
def test_rounds_none_is_the_protocol_of_the_paper(name: str) -> None:
    for protocol in ("one", "all"):
        stream = stream_for(name, protocol=protocol)
        one_by_one = np.arange(len(stream.y))
        explicit = stream.rounds
        learner = LEARNERS[name]()
        if learner.simultaneous:  # maximal runs of rows in which no task repeats
            seen: set[int] = set()
            explicit = np.zeros(len(stream.y), int)
            for row, task in enumerate(stream.task.tolist()):
                explicit[row] = explicit[row - 1] + (task in seen) if row else 0
                seen = {task} if task in seen else seen | {task}
        else:
            explicit = one_by_one
        by_default = learner.partial_fit(stream.X, stream.y, stream.task)
        by_hand = LEARNERS[name]().partial_fit(stream.X, stream.y, stream.task, rounds=explicit)
        assert saved(by_default) == saved(by_hand)


@each_learner
def test_sparse_is_dense(name: str) -> None:
    stream = stream_for(name, density=0.4)
    dense, sparse = LEARNERS[name](), LEARNERS[name]()
    given_dense = dense.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    given_sparse = sparse.test_then_train(stream.sparse, stream.y, stream.task, rounds=stream.rounds)
    assert_close(given_sparse, given_dense)
    assert_close(weights(sparse), weights(dense))
    assert_close(values(sparse, stream.X, stream.task), values(dense, stream.sparse, stream.task))


@each_learner
def test_decisions_are_given_before_learning(name: str) -> None:
    """Tasks are declared, so that a round's new tasks do not change K between the two."""
    stream = stream_for(name)
    learner = LEARNERS[name]().add_tasks(range(K))
    decisions = (
        LEARNERS[name]().add_tasks(range(K)).test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    )
    for number, rows in enumerate(stream.rows_of_rounds):
        chunk = stream.X[rows], stream.y[rows], stream.task[rows]
        if number:
            expected = values(learner, chunk[0], chunk[2])
            np.testing.assert_allclose(decisions[rows], expected, rtol=1e-12, atol=1e-12 * np.abs(decisions).max())
        learner.partial_fit(*chunk, rounds=stream.rounds[rows])


@each_learner
def test_values_are_products_with_coef(name: str) -> None:
    stream = stream_for(name)
    learner = taught(name)
    if hasattr(learner, "coef_"):
        W = learner.coef_[np.array([learner.tasks_.index(k) for k in stream.task])]
        assert_close(values(learner, stream.X, stream.task), np.einsum("ij,ij->i", W, stream.X))
    if name in CLASSIFIERS:
        positive = values(learner, stream.X, stream.task) >= 0
        np.testing.assert_array_equal(learner.predict(stream.X, stream.task), learner.classes_[positive.astype(int)])
        right = (learner.predict(stream.X, stream.task) == stream.y).mean()
        assert learner.score(stream.X, stream.y, stream.task) == right
    assert learner.score(stream.X, stream.y, stream.task) > 0.0


# ---- one example, one round ----------------------------------------------------------------------------------


@each_learner
@pytest.mark.parametrize("form", ["array", "dict"])
def test_learn_one_is_partial_fit(name: str, form: str) -> None:
    stream = stream_for(name, density=0.5, protocol="growing")
    one, many = LEARNERS[name](), LEARNERS[name]()
    X = stream.X if form == "array" else stream.sparse
    if form == "dict":
        one.add_features(f"f{j}" for j in range(stream.X.shape[1]))
    for row, (x, y, task) in enumerate(zip(stream.X, stream.y.tolist(), stream.task.tolist(), strict=True)):
        x_given = x.copy() if form == "array" else as_dict(x)
        one.learn_one(x_given, y, task)
        many.partial_fit(X[row : row + 1], [y], [task])
        assert value_one(one, x_given, task) == values(many, X[row : row + 1], [task])[0]
        if name in CLASSIFIERS:
            assert one.predict_one(x_given, task) == many.predict(X[row : row + 1], [task])[0]
    assert learned(one) == learned(many)
    assert one.n_updates_ == many.n_updates_ > 0


@each_learner
@pytest.mark.parametrize("form", ["array", "dict"])
def test_learn_round_is_partial_fit(name: str, form: str) -> None:
    stream = stream_for(name, density=0.5, protocol="growing")
    by_round = LEARNERS[name]()
    many = LEARNERS[name]().partial_fit(
        stream.X if form == "array" else stream.sparse, stream.y, stream.task, rounds=stream.rounds
    )
    if form == "dict":
        by_round.add_features(f"f{j}" for j in range(stream.X.shape[1]))
    shape = (lambda x: x) if form == "array" else as_dict
    for rows in stream.rows_of_rounds:
        tasks = stream.task[rows].tolist()
        by_round.learn_round({k: (shape(stream.X[r]), stream.y[r]) for k, r in zip(tasks, rows, strict=True)})
    assert learned(by_round) == learned(many)
    answers = by_round.predict_round({k: shape(stream.X[r]) for k, r in zip(tasks, rows, strict=True)})
    assert list(answers) == tasks
    np.testing.assert_array_equal(list(answers.values()), many.predict(
        (stream.X if form == "array" else stream.sparse)[rows], tasks
    ))  # fmt: skip


@each_learner
def test_features_of_dicts_appear_over_time(name: str) -> None:
    stream = stream_for(name, density=0.2, d=60)
    learner, wide = LEARNERS[name](), LEARNERS[name]()
    for row, (x, y, task) in enumerate(zip(stream.X, stream.y.tolist(), stream.task.tolist(), strict=True)):
        learner.learn_one(as_dict(x), y, task)
        wide.partial_fit(stream.sparse[row], [y], [task])
    names = list(learner.feature_names_in_)
    assert names == list(dict.fromkeys(name for x in stream.X for name in as_dict(x)))
    assert_close(weights(learner), weights(wide)[:, [int(name[1:]) for name in names]], 1e-11)
    task = stream.task[-1].item()
    unknown = {**as_dict(stream.X[-1]), "never seen": 3.0}
    assert value_one(learner, unknown, task) == value_one(learner, as_dict(stream.X[-1]), task)
    assert list(learner.feature_names_in_) == names  # predicting creates no feature


@each_learner
def test_models_widen(name: str) -> None:
    stream = stream_for(name, d=9)
    X = stream.X * np.where(np.arange(len(stream.y))[:, None] < 30, np.arange(9) < 4, 1.0)  # late columns come late
    first, rest = slice(0, 30), slice(30, None)
    rounds = np.arange(len(stream.y))
    learner = LEARNERS[name]().partial_fit(X[first, :4], stream.y[first], stream.task[first], rounds=rounds[first])
    learner.add_features(5).partial_fit(X[rest], stream.y[rest], stream.task[rest], rounds=rounds[rest])
    whole = LEARNERS[name]().partial_fit(X, stream.y, stream.task, rounds=rounds)
    assert_close(weights(learner), weights(whole), 1e-11)
    with pytest.raises(ValueError, match="must be >= 0"):
        learner.add_features(-3)
    with pytest.raises(ValueError, match="use add_features"):
        learner.add_features(["a"])


# ---- names and order mean nothing ----------------------------------------------------------------------------


@each_learner
@FEWER_EXAMPLES
@given(order=st.permutations(range(7)))
def test_feature_order_changes_nothing(name: str, order: list[int]) -> None:
    stream = stream_for(name)
    stream = stream._replace(X=np.round(4 * stream.X))  # whole numbers
    plain = LEARNERS[name]().fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    other = LEARNERS[name]().fit(stream.X[:, order], stream.y, stream.task, rounds=stream.rounds)
    assert_close(weights(other), weights(plain)[:, order], 1e-10)


@each_open_learner
def test_names_of_tasks_change_nothing(name: str) -> None:
    stream = stream_for(name, protocol="growing")
    named = np.array(["ann", "bob", "cy", "di", "ed"])[stream.task]
    pairs = [("task", int(k)) for k in stream.task]
    models = [
        LEARNERS[name]().partial_fit(stream.X, stream.y, ids, rounds=stream.rounds)
        for ids in (stream.task, named, pairs, stream.task.astype(float), (-stream.task * 10**12))
    ]
    assert len({tuple(learned(model).items()) for model in models}) == 1
    assert models[1].tasks_ == ["ann", "bob", "cy", "di", "ed"]
    assert models[2].tasks_ == [("task", k) for k in range(K)]


@each_open_learner
@FEWER_EXAMPLES
@given(order=st.permutations(range(K)))
def test_order_of_tasks_changes_nothing(name: str, order: list[int]) -> None:
    stream = stream_for(name)
    plain = LEARNERS[name]().add_tasks(range(K)).partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    other = LEARNERS[name]().add_tasks(order).partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert other.tasks_ == list(order)
    assert_close(weights(other), weights(plain)[order], 1e-10)
    if plain.relation_ is not None:
        assert_close(other.relation_, plain.relation_[np.ix_(order, order)], 1e-10)


# ---- scikit-learn's and Python's verbs -----------------------------------------------------------------------


@each_learner
def test_clone_and_parameters(name: str) -> None:
    learner = taught(name)
    twin = clone(learner)
    assert not hasattr(twin, "n_features_in_")
    assert twin.get_params().keys() == learner.get_params().keys()
    stream = stream_for(name)
    assert saved(twin.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)) == saved(taught(name))
    fresh = type(learner)().set_params(**learner.get_params())
    assert saved(fresh.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)) == saved(taught(name))


def test_hyper_parameters_may_change_on_the_way_unless_they_shape_the_state() -> None:
    stream = stream_for("MultitaskPerceptron")
    learner = shoal.MultitaskPerceptron(relation=EDGES, loss="hinge").fit(stream.X, stream.y, stream.task)
    before = saved(learner)
    reordered = [(b, a) for a, b in EDGES]
    for relation in ("pairwise", [("a", "b")], [(k, k + 1) for k in range(1, 5)], reordered):
        learner.set_params(relation=relation)
        with pytest.raises(ValueError, match="it can only change before fit"):
            learner.partial_fit(stream.X, stream.y, stream.task)
    assert saved(learner.set_params(relation=EDGES)) == before
    coef = weights(learner)
    learner.set_params(eta=1e-6).partial_fit(stream.X, stream.y, stream.task)
    assert 0 < np.abs(weights(learner) - coef).max() < 1e-3
    learner.set_params(eta=-1.0)
    learned_before = learned(learner)
    with pytest.raises(ValueError, match="eta must be"):
        learner.learn_one(stream.X[0], 1, 0)
    assert learned(learner) == learned_before


@each_learner
@pytest.mark.parametrize("how", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
def test_copies_learn_on_by_themselves(name: str, how: Any) -> None:
    learner = taught(name)
    before = saved(learner)
    other = how(learner)
    assert saved(other) == before
    stream = stream_for(name, seed=1)
    other.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    other.learn_one(stream.X[0], float(stream.y[0]), 0)
    assert saved(learner) == before
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    learner.learn_one(stream.X[0], float(stream.y[0]), 0)
    assert saved(other) == saved(learner)


@each_learner
def test_what_is_not_learned_yet(name: str) -> None:
    learner = LEARNERS[name]()
    for attribute in ("coef_", "n_updates_", "n_features_in_", "task_updates_", "feature_names_in_"):
        assert not hasattr(learner, attribute), attribute
    with pytest.raises(ValueError, match="not fitted"):
        learner.predict([[1.0]])
    with pytest.raises(ValueError, match="not fitted"):
        learner.predict_one([1.0])


# A task's model is also pulled (or mixed) by the global one or its group's, which its count of own steps leaves out.
MOVES_WITHOUT_LOSS = [
    "CollaborativeCW",
    "CollaborativeCW-hard",
    "CollaborativePA",
    "CollaborativePA-mix",
    "Guarded",
    "Hierarchy-rounds",
]


@each_learner
def test_updates_are_counted(name: str) -> None:
    stream = stream_for(name)
    learner = LEARNERS[name]()
    moved_uncounted = False
    for rows in stream.rows_of_rounds:
        before = weights(learner) if hasattr(learner, "n_features_in_") else 0.0
        counted = learner.n_updates_ if hasattr(learner, "n_features_in_") else 0
        tasks = len(learner.tasks_) if hasattr(learner, "n_features_in_") else 0
        learner.partial_fit(stream.X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
        new = learner.n_updates_ - counted
        assert 0 <= new <= len(rows)
        if len(learner.tasks_) == tasks:  # else K changed, and with it b/K
            moved = bool((weights(learner) != before).any())
            assert moved or new == 0
            moved_uncounted |= moved and new == 0
    assert moved_uncounted == (name in MOVES_WITHOUT_LOSS)
    assert learner.n_updates_ == learner.task_updates_.sum() > 0


@each_learner
def test_baselines_are_learners_of_the_same_kind_of_target(name: str) -> None:
    stream = stream_for(name)
    baselines = LEARNERS[name]().baselines()
    assert list(baselines) == ["independent", "pooled"]
    for baseline in baselines.values():
        decisions = baseline.test_then_train(stream.X, stream.y, stream.task)
        assert np.isfinite(decisions).all()
        assert hasattr(baseline, "decision_function") == (name in CLASSIFIERS)
    rows = weights(baselines["pooled"])
    assert_close(rows, np.broadcast_to(rows[0], rows.shape))
