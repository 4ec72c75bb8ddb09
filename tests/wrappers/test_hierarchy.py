"""Tasks within groups: answered as the twin answers them, and a new task as its group is."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tests.cases import saved
from tests.twins.hierarchy import Hierarchy as Twin

import shoal
from shoal import (
    OSMTL,
    Conformal,
    Guarded,
    HedgedSharing,
    Hierarchy,
    LabelQuery,
    Learner,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    OutsideForecast,
    SharedLoss,
)
from shoal.model.groups import Groups, group_of

COUNTRIES = ["Chile", "France", "Ghana", "Italy"]
PERCEPTRON = MultitaskPerceptron(relation="independent", loss="logistic", eta=0.1)


def stream(n: int, n_shops: int = 40, seed: int = 0) -> tuple[Any, Any, list[Any], Any]:
    """Features, labels, (country, shop), rows' weights of their country: countries are unlike, their shops alike."""
    rng = np.random.default_rng(seed)
    X, shop, of_country = rng.normal(size=(n, 4)), rng.integers(n_shops, size=n), 2.0 * rng.normal(size=(4, 4))
    f = np.einsum("nd,nd->n", X, of_country[shop % 4])
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-f)), 1, -1)
    return X, y, [(COUNTRIES[k % 4], f"shop {k}") for k in shop.tolist()], of_country


@pytest.mark.parametrize("regression", [False, True])
def test_answers_are_those_of_the_twin(regression: bool) -> None:
    X, y, task, _ = stream(300)
    inner: Learner = MultitaskRegressor(eta=0.05) if regression else PERCEPTRON
    if regression:
        y = 5.0 + 2.0 * X[:, 0] * np.array([len(country) for country, _ in task])
    twin = Twin(clone(inner), clone(inner), regression=regression)
    learner, expected = Hierarchy(inner), []
    found = learner.test_then_train(X, y, task)
    for x, target, k in zip(X, y.tolist(), task, strict=True):
        expected.append(twin.answer(x, k))
        twin.learn(x, target, k)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(learner.weights_, [twin.mixture.own[k] for k in learner.tasks_], rtol=1e-9)
    assert sorted(learner.groups_) == COUNTRIES
    value = learner.predict_one if regression else learner.decision_one
    for new in ("France", "shop of no row"), ("Peru", "shop 1"):
        assert value(X[0], new) == pytest.approx(twin.answer(X[0], new), rel=1e-10)
    assert learner.group_estimator_.tasks_ == learner.groups_


def test_a_new_shop_begins_with_its_country() -> None:
    X, y, task, of_country = stream(3000)
    learners: list[Any] = [HedgedSharing(), Hierarchy(HedgedSharing())]
    losses = []
    rng = np.random.default_rng(1)
    new, g = rng.normal(size=(400, 4)), rng.integers(4, size=400)
    ids = [(COUNTRIES[k], "new") for k in g.tolist()]
    chance = 1 / (1 + np.exp(-np.einsum("nd,nd->n", new, of_country[g])))
    for learner in learners:
        p = learner.fit(X, y, task).predict_proba(new, ids)[:, 1]
        losses.append(-(chance * np.log(p) + (1 - chance) * np.log(1 - p)).mean())
    assert losses[1] < losses[0] - 0.2
    learner = learners[1]
    as_text = np.array([",".join(parts) for parts in ids])
    text = Hierarchy(HedgedSharing()).fit(X, y, [",".join(parts) for parts in task])
    np.testing.assert_array_equal(text.decision_function(new, as_text), learner.decision_function(new, ids))
    one = [learner.decision_one(x, k) for x, k in zip(new[:5], ids, strict=False)]
    np.testing.assert_allclose(one, learner.decision_function(new[:5], ids[:5]), rtol=1e-12)
    found = learner.explain_one(new[0], ids[0])
    assert found.decision == pytest.approx(one[0])
    assert all(part.own == 0.0 for part in found.contributions)
    assert any(part.own != 0.0 for part in learner.explain_one(new[0], task[0]).contributions)


@pytest.mark.parametrize(
    "inner", [PERCEPTRON, OSMTL(), SharedLoss(rule="implicit")], ids=lambda one: type(one).__name__
)
def test_rows_of_a_group_in_one_round_are_answered_before_any_is_learned(inner: Learner) -> None:
    X, y, task, _ = stream(400)
    learner, other = (Hierarchy(inner).partial_fit(X[:300], y[:300], task[:300]) for _ in range(2))
    rows = [300 + i for i, k in enumerate(task[300:]) if k not in task[300 : 300 + i]]
    assert len({task[i][0] for i in rows}) < len(rows)
    expected = learner.decision_function(X[rows], [task[i] for i in rows])
    one_round = np.zeros(len(rows), np.int64)
    found = other.test_then_train(X[rows], y[rows], [task[i] for i in rows], rounds=one_round)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    learner.learn_round({task[i]: (X[i], y[i]) for i in rows})
    assert saved(learner) == saved(other)
    assert learner.group_estimator_.n_updates_ > 0


def test_a_group_stays_as_long_as_it_has_a_task(tmp_path: Path) -> None:
    X, y, task, _ = stream(400, n_shops=8)
    learner: Any = Hierarchy(HedgedSharing()).partial_fit(X[:300], y[:300], task[:300])
    of_group = learner.group_estimator_.decision_function(X, [country for country, _ in task])
    first = learner.tasks_[0]
    learner.forget_task(first)
    assert first[0] in learner.groups_
    np.testing.assert_array_equal(
        learner.group_estimator_.decision_function(X, [country for country, _ in task]), of_group
    )
    learner.save(tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    assert again.groups_ == learner.groups_
    gone, kept = learner.groups_[1], [learner.groups_[0], *learner.groups_[2:]]
    for one in (learner, again, pickle.loads(pickle.dumps(learner))):
        for shop in [shop for shop in one.tasks_ if shop[0] == gone]:
            one.forget_task(shop)
        assert one.groups_ == kept
        one.partial_fit(X[300:], y[300:], task[300:])
        one.add_tasks([("Peru", "Lima"), ("Peru", "Cusco")])
        assert one.groups_ == [*kept, gone, "Peru"]
        assert saved(one) == saved(learner)


def test_a_bad_chunk_brings_no_group() -> None:
    X, y, task, _ = stream(60)
    learner = Hierarchy(Guarded(HedgedSharing())).partial_fit(X[:40], y[:40], task[:40])
    before = saved(learner)
    bad, new = X[40:].copy(), [("Peru", k) for _, k in task[40:]]
    bad[-1, 0] = np.nan
    for rows, ids in (bad, new), (X[40:], [*new[:-1], ("Peru", [])]), (X[40:], [*new[:-1], None]):
        with pytest.raises(ValueError, match="row 19"):
            learner.partial_fit(rows, y[40:], ids)
        assert saved(learner) == before
        assert learner.groups_ == [*dict.fromkeys(country for country, _ in task[:40])]
    zeros = np.zeros(20)
    unseen = learner.decision_function(X[40:], new)
    np.testing.assert_allclose(learner.test_then_train(X[40:], y[40:], new, sample_weight=zeros), unseen, rtol=1e-12)
    assert saved(learner) == before


def test_a_row_that_counts_nothing_is_answered_as_its_group_is_by_then() -> None:
    X, y, task, _ = stream(200, seed=3)
    weight = np.random.default_rng(0).integers(0, 2, size=200).astype(float)
    whole, cut = Hierarchy(PERCEPTRON), Hierarchy(PERCEPTRON)
    expected = whole.test_then_train(X, y, task, sample_weight=weight)
    found = [
        cut.test_then_train(X[i : i + 1], y[i : i + 1], [task[i]], classes=[-1, 1], sample_weight=weight[i : i + 1])
        for i in range(200)
    ]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert saved(whole) == saved(cut)


def test_within_intervals_and_beside_forecasts(tmp_path: Path) -> None:
    X, _, task, _ = stream(300)
    y = X[:, 0] + np.array([len(country) for country, _ in task])
    learner: Any = Conformal(OutsideForecast(Hierarchy(Guarded(MultitaskRegressor(eta=0.05))), columns=[2]))
    learner.partial_fit(X[:200], y[:200], task[:200]).save(tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    new = [*task[:150], *[("France", "new"), ("Peru", "new")] * 75]
    for one in (learner, again):
        one.partial_fit(X[200:], y[200:], task[200:])
    np.testing.assert_array_equal(again.predict_interval(X, new), learner.predict_interval(X, new))
    assert np.isfinite(learner.predict_interval(X, new)).all()


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        (Hierarchy(MultiClass()), "goes around the learner itself, got a MultiClass"),
        (Hierarchy(Hierarchy()), "goes around the learner itself, got a Hierarchy"),
        (Hierarchy(LabelQuery()), "goes around the learner itself, got a LabelQuery"),
        (Hierarchy("words"), "needs a learner of this library, got str"),
        (Hierarchy(MultitaskPerceptron(relation=[(0, 1)])), "the relation of this one names them"),
    ],
)
def test_what_it_cannot_go_around_is_refused(learner: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        learner.fit(np.ones((2, 2)), [0, 1])


def test_ids_name_their_groups() -> None:
    ids = ["a,b,c", '"a,b",c', '"a,b"', 'a,"b,""c"', ",x", ("a",), (), ("a", "b", "c"), None, 3]
    assert list(map(group_of, ids)) == ["a,b", '"a,b"', None, "a", "", None, None, ("a", "b"), None, None]
    groups = Groups()
    groups.name(0, ["a,1", "b,1", "a,2"])
    assert groups.unseen(["b,9", "c,1", "d,1"], ["c,2"]).tolist() == [-3, -4, -1]
    groups.name(2, ["c,1", "c,2"])
    assert groups.of.tolist() == [0, 1, 2, 2]
    assert groups.of_rows(np.array([3, -1, -2, 1])).tolist() == [2, -1, 0, 1]
    with pytest.raises(ValueError, match="not those of its tasks"):
        groups.reorder(np.array([0, 1, 1, 2]))
