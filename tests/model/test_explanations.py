"""Contributions and similar tasks where they can be worked out by hand or read from the documented weights."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.cases import stream_for, taught
from tests.streams import core_of, draw

from shoal import (
    MTFL,
    SMTL,
    CollaborativePA,
    HedgedSharing,
    HedgedSharingRegressor,
    IndependentTasks,
    LocalGlobalGaussian,
    MultiClass,
    MultitaskPerceptron,
    PassiveAggressive,
    Periodic,
)
from shoal.model.explanations import Contribution, Explanation, strongest, table, with_rest
from shoal.online.hedged_sharing.experts import OF_TASK


def sides(found: Any) -> Any:
    """feature -> (shared, own)"""
    return {one.feature: (one.shared, one.own) for one in found.contributions}


# ---- contributions -----------------------------------------------------------------------------------------


def test_shared_and_own_parts_of_a_perceptron_by_hand() -> None:
    """b = K = 2: a mistake of a task moves all weights by x/(1 + b) · b/K = x/3, and its own by x/3 more."""
    learner = MultitaskPerceptron(relation="pairwise").add_tasks(["ann", "bob"])
    learner.learn_one({"sale": 2.0, "hi": 1.0}, 0, "ann")  # a margin of 0 predicts the larger label: a mistake
    found = learner.explain_one({"sale": 3.0, "hi": 1.0}, "ann")
    assert sides(found) == {"sale": pytest.approx((-2.0, -2.0)), "hi": pytest.approx((-1 / 3, -1 / 3))}
    assert [one.feature for one in found.contributions] == ["sale", "hi"]
    assert found.contributions[0].value == 3.0
    assert found.decision == pytest.approx(-14 / 3)
    other = learner.explain_one({"sale": 3.0}, "bob")
    assert sides(other) == {"sale": (pytest.approx(-2.0), 0.0)}


@pytest.mark.parametrize("name", ["CollaborativePA", "CollaborativeCW", "LocalGlobalGaussian"])
def test_the_shared_part_is_coef_shared(name: str) -> None:
    stream, learner = stream_for(name), taught(name)
    x, task = stream.X[5], stream.task[5].item()
    found = sides(learner.explain_one(x, task))
    k = learner.tasks_.index(task)
    shared = np.array([found[j][0] for j in range(len(x))])
    whole = np.array([sum(found[j]) for j in range(len(x))])
    np.testing.assert_allclose(shared, learner.coef_shared_ * x, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(whole, learner.coef_[k] * x, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["ROMCO", "ROMCO-low-rank", "ROMCO-logdet-sqrt"])
def test_the_parts_of_romco_are_its_two_matrices(name: str) -> None:
    stream, learner = stream_for(name), taught(name)
    for x, task in zip(stream.X[:5], stream.task[:5].tolist(), strict=True):
        found = sides(learner.explain_one(x, task))
        k = learner.tasks_.index(task)
        expected = np.stack([learner.coef_low_rank_[k] * x, learner.coef_task_[k] * x], axis=1)
        np.testing.assert_allclose([found[j] for j in range(len(x))], expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("expert", HedgedSharing().linear_experts_)
def test_hedged_sharing_with_all_weight_on_one_expert_is_that_expert(expert: Any) -> None:
    stream, learner = stream_for("HedgedSharing"), taught("HedgedSharing")
    task = stream.task[0].item()
    k, state = learner.tasks_.index(task), core_of(learner).state
    state.stacks[:] = 0.0
    state.stacks[0, OF_TASK] = 1.0  # the task's Bayes mixture answers
    state.trusts[:] = 1.0, 0.0, 0.0
    state.task_weights[k] = np.array(learner.experts_) == expert
    state.task_rows[k] = 2**40  # no longer young
    state.surprises[:] = 1e12, 0.0  # no label is doubted
    x = stream.X[0]
    found = learner.explain_one(x, task)
    weights = learner.experts_coef(task)[learner.linear_experts_.index(expert)]
    by_feature = {one.feature: one.total for one in found.contributions if one.total}
    intercept = by_feature.pop("(intercept)")
    assert intercept == pytest.approx(0.3 * weights[0], rel=1e-6)
    ratios = np.array([by_feature[j] for j in range(len(x))]) / (weights[1:] * x)
    assert np.ptp(ratios) < 1e-6 * ratios.mean()  # the row is scaled as a whole: its features have one scale
    assert found.decision == pytest.approx(learner.decision_one(x, task), rel=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 400])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_hedged_sharing_adds_up_when_it_is_young_sure_and_on_any_scale(n_rows: Any, scale: Any) -> None:
    rng = np.random.default_rng(0)
    X, task = scale * rng.normal(size=(n_rows, 4)) * [1.0, 10.0, 0.1, 1.0], rng.integers(3, size=n_rows)
    y = np.where(X[:, 0] > 0, 1, -1)
    for learner in (HedgedSharing(), HedgedSharingRegressor()):
        learner.partial_fit(X, y if isinstance(learner, HedgedSharing) else 100.0 + 50.0 * y, task)
        answer = learner.decision_one if isinstance(learner, HedgedSharing) else learner.predict_one
        for x in (X[0], 50.0 * X[0], np.zeros(4), np.array([0.0, 0.0, scale, 0.0])):
            for one in (task[0], "nobody"):
                found = learner.explain_one(x, one)
                total = sum(part.total for part in found.contributions)
                assert total == pytest.approx(answer(x, one), rel=1e-9, abs=1e-9)


def test_each_class_of_several_has_its_own_explanation() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(300, 4)), rng.integers(3, size=300)
    y = np.array(["ash", "elm", "fir"])[X[:, :3].argmax(axis=1)]
    learner = MultiClass(PassiveAggressive()).fit(X, y, task)
    margins = dict(zip(learner.classes_.tolist(), learner.decision_one(X[0], task[0]), strict=True))
    for label, margin in margins.items():
        found = learner.explain_one(X[0], task[0], label=label)
        assert found.label == label
        assert found.decision == pytest.approx(margin)
    assert learner.explain_one(X[0], task[0]).label == learner.predict_one(X[0], task[0])
    with pytest.raises(ValueError, match="no decision for the label 'oak'; expected one of"):
        learner.explain_one(X[0], task[0], label="oak")


def test_a_batch_learner_in_between_trainings_is_explained_by_its_weights() -> None:
    stream = stream_for("OSMTL")
    learner = Periodic(MTFL(), every=20).partial_fit(stream.X, stream.y, stream.task)
    found = learner.explain_one(stream.X[0], stream.task[0])
    assert found.decision == pytest.approx(learner.decision_one(stream.X[0], stream.task[0]))
    assert len(learner.similar_tasks(0)) == 4
    untrained = Periodic(SMTL(), every=10_000).partial_fit(stream.X, stream.y, stream.task)
    assert untrained.explain_one(stream.X[0], stream.task[0]).decision == 0.0
    trees = pytest.importorskip("sklearn.tree")
    opaque = Periodic(IndependentTasks(estimator=trees.DecisionTreeClassifier()), every=20)
    opaque.partial_fit(stream.X, stream.y, stream.task)
    with pytest.raises(ValueError, match="no weights here"):
        opaque.explain_one(stream.X[0], stream.task[0])


def test_mapped_features_have_no_contributions_of_columns() -> None:
    stream = stream_for("LocalGlobalGaussian")
    learner = LocalGlobalGaussian(features="rff", random_state=0).fit(stream.X, stream.y, stream.task)
    with pytest.raises(ValueError, match="mapped features"):
        learner.explain_one(stream.X[0], stream.task[0])


# ---- similar tasks -----------------------------------------------------------------------------------------


def test_similar_tasks_by_cosine() -> None:
    learner = PassiveAggressive().fit(np.array([[1, 0], [1, 1], [-1, 0], [0, 2]]), [1, 1, 1, 1], list("abcd"))
    found = learner.similar_tasks("a")
    assert [one.task for one in found] == ["b", "d", "c"]
    assert [one.similarity for one in found] == pytest.approx([0.5**0.5, 0.0, -1.0])
    assert learner.similar_tasks("a", n=1) == found[:1]


def test_the_cosine_is_of_what_tasks_have_of_their_own() -> None:
    stream, learner = stream_for("CollaborativePA"), CollaborativePA()
    learner.partial_fit(stream.X, stream.y, stream.task)
    own = learner.coef_ - learner.coef_shared_
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    for task, similarity in learner.similar_tasks(learner.tasks_[0]):
        assert similarity == pytest.approx(own[0] @ own[learner.tasks_.index(task)])


def test_a_learned_relation_is_used() -> None:
    for name in ("OSMTL", "OSMTL-threshold"):
        learner = taught(name)
        expected = learner.attention_[0]
        assert dict(learner.similar_tasks(learner.tasks_[0])) == pytest.approx(
            {task: expected[k] for k, task in enumerate(learner.tasks_) if k > 0}
        )
    for name in ("OMTRL", "SchattenPerceptron"):
        learner = taught(name)
        R = np.asarray(learner.relation_)
        R = R / np.sqrt(np.outer(np.diagonal(R), np.diagonal(R)))
        assert dict(learner.similar_tasks(learner.tasks_[0])) == pytest.approx(
            {task: R[0, k] for k, task in enumerate(learner.tasks_) if k > 0}
        )


def test_a_task_that_has_learned_nothing_of_its_own_is_like_no_other() -> None:
    learner = PassiveAggressive().fit(np.eye(3)[:2], [1, 1], ["a", "b"]).add_tasks(["new"])
    assert [task for task, _ in learner.similar_tasks("a")] == ["b"]
    assert learner.similar_tasks("new") == []


def test_a_million_features_and_many_tasks_take_little_memory() -> None:
    n_tasks, d, n_rows = 5_000, 1_000_000, 6_000
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(
        (np.ones(10 * n_rows), rng.integers(d, size=10 * n_rows), np.arange(0, 10 * n_rows + 1, 10)), shape=(n_rows, d)
    )
    X.sum_duplicates()
    task = np.concatenate([np.arange(n_tasks), rng.integers(n_tasks, size=n_rows - n_tasks)])
    for learner in (HedgedSharing(), MultitaskPerceptron()):
        learner.partial_fit(X, np.where(rng.random(n_rows) < 0.5, 1, -1), task)
        learner.explain_one(np.zeros(d), 7)  # compiled
        start = time.perf_counter()
        tracemalloc.start()
        learner.similar_tasks(7)
        x = dict.fromkeys(range(3), 1.0)
        row = np.zeros(d)
        row[list(x)] = 1.0
        assert len(learner.explain_one(row, 7).contributions) <= 7
        assert tracemalloc.get_traced_memory()[1] < 200e6  # dense weights of all tasks: 40 GB
        tracemalloc.stop()
        assert time.perf_counter() - start < 60


# ---- what a model goes by, and tables ----------------------------------------------------------------------


def test_the_strongest_weights_count_the_spread_of_their_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)) * [1.0, 1.0, 0.001]
    learner = HedgedSharing().fit(X, np.where(X[:, 1] > 0, 1, -1), rng.integers(2, size=2000))
    found = strongest(core_of(learner), 0, 3, lambda j: f"x{j}", 2)
    assert found[0].feature == "x1"
    assert len(found) == 2
    assert found[0].value == pytest.approx(1.0, rel=0.1)  # the root mean square of the feature
    plain = PassiveAggressive().fit(np.array([[1.0, 0.0, 3.0]]), [1], ["a"])
    assert [one.feature for one in strongest(core_of(plain), 0, 3, lambda j: j, 9)] == [2, 0]


def test_tables_keep_their_columns() -> None:
    found = [Contribution("a" * 60, -1.23456789e-200, 1e300, -1e300), Contribution(3, 1.0, 0.5, 0.25)]
    lines = table(found, 0.75)
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("a" * 37 + "... ")
    assert lines[2].split() == ["column", "3", "1", "0.5", "0.25", "0.75"]
    assert lines[-1].split() == ["decision", "0.75"]
    assert str(Explanation(0.75, None, found)) == "\n".join(lines)
    many = str(Explanation(40.0, None, [Contribution(f"x{k}", 1.0, 0.5, 0.5) for k in range(40)])).splitlines()
    assert [line.split()[0] for line in many] == ["value", *(f"x{k}" for k in range(10)), "(30", "decision"]
    assert many[-2].split()[-3:] == ["15", "15", "30"]


# ---- at the limits of what is held at once --------------------------------------------------------------------


@pytest.mark.parametrize("most", [6, 7, 8])
@pytest.mark.parametrize("numbers", [1, 3, 7, 8, 1_000])
def test_tasks_are_compared_on_the_features_that_weigh_most(
    most: int, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seven, in blocks of any size: the cosine of own weights."""
    stream = draw(3, n_rows=200, K=4, d=7)
    learner = PassiveAggressive().fit(stream.X, stream.y, stream.task)
    monkeypatch.setattr("shoal.model.explanations.MOST_FEATURES", most)
    monkeypatch.setattr("shoal.model.explanations.MOST_NUMBERS", numbers)
    W = learner.coef_
    few = np.argsort(-np.abs(W[0]), kind="stable")[:most]
    cosines = W[:, few] @ W[0, few] / np.linalg.norm(W[:, few], axis=1) / np.linalg.norm(W[0, few])
    found = learner.similar_tasks(0, n=10)
    assert [one.task for one in found] == [k for k in np.argsort(-cosines).tolist() if k != 0]
    np.testing.assert_allclose([one.similarity for one in found], np.sort(cosines[1:])[::-1], rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_rest_is_one_line_if_it_is_more_than_one(n: int) -> None:
    found = [Contribution(str(k), 1.0, float(k), 0.5) for k in range(n)]
    lines = with_rest(found, 2)
    assert lines == found if n < 4 else lines[:2] == found[:2]
    if n >= 4:
        assert len(lines) == 3
        assert (lines[2].feature, lines[2].shared) == (f"({n - 2} others)", sum(range(2, n)))
        assert lines[2].own == 0.5 * (n - 2)


@pytest.mark.parametrize("letters", [39, 40, 41, 60])
def test_names_of_more_than_forty_letters_are_cut(letters: int) -> None:
    line = table([Contribution("x" * letters, 1.0, 2.0, 0.0)])[1]
    assert line.split()[0] == ("x" * letters if letters <= 40 else "x" * 37 + "...")
    assert len(line) == min(letters, 40) + 4 * 12


@pytest.mark.parametrize(("n_tasks", "n_compared"), [(40, 40), (41, 40), (200, 40)])
def test_of_many_tasks_a_sample_is_compared(n_tasks: int, n_compared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same one each time, with the right similarity of each."""
    monkeypatch.setattr("shoal.model.explanations.MOST_TASKS", 40)
    X = np.random.default_rng(1).normal(size=(n_tasks, 3))
    learner = PassiveAggressive().fit(X, np.ones(n_tasks), [f"t{k}" for k in range(n_tasks)])
    W = learner.coef_ / np.linalg.norm(learner.coef_, axis=1, keepdims=True)
    found = learner.similar_tasks("t7", n=n_tasks)
    assert n_compared - 1 <= len(found) <= n_compared
    assert len({one.task for one in found} - {"t7"}) == len(found)
    for task, similarity in found:
        assert similarity == pytest.approx(W[7] @ W[int(task[1:])])
    assert learner.similar_tasks("t7", n=n_tasks) == found
    assert [one.task for one in learner.similar_tasks("t8", n=n_tasks)] != [one.task for one in found]
