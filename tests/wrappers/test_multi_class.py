"""MultiClass against one learner a class trained by hand; classes that come late; answers and verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.multiclass import OneVsRestClassifier
from tests.cases import LEARNERS, learned, saved
from tests.streams import Stream, assert_close, draw

import shoal
from shoal import (
    OSMTL,
    KernelPerceptron,
    LabelQuery,
    Learner,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    PassiveAggressive,
)

NAMES = np.array(["ash", "elm", "fir", "oak"])
OTHERS = ("Conformal", "Guarded", "Hierarchy", "LabelQuery", "MultiClass", "OutsideForecast")  # wrappers
WITHIN = [name for name in LEARNERS if "Regressor" not in name and not name.startswith(OTHERS)]


def several(seed: int, n_classes: int = 4, **options: Any) -> tuple[Stream, np.ndarray]:
    """A stream, and labels 0, 1, ... by the largest of some noisy scores."""
    stream = draw(seed, **options)
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(stream.X.shape[1], n_classes))
    return stream, (stream.X @ W + 0.3 * rng.normal(size=(len(stream.y), n_classes))).argmax(axis=1)


def by_hand(kind: type[Learner], stream: Stream, y: np.ndarray) -> tuple[np.ndarray, dict[int, Learner]]:
    learners = {c: kind() for c in np.unique(y).tolist()}
    margins = [
        learner.test_then_train(
            stream.X, np.where(y == c, 1.0, -1.0), stream.task, rounds=stream.rounds, classes=[-1, 1]
        )
        for c, learner in learners.items()
    ]
    return np.stack(margins, axis=1), learners


@given(seed=st.integers(0, 10**6), n_classes=st.integers(3, 6), protocol=st.sampled_from(["one", "some", "growing"]))
@pytest.mark.parametrize("kind", [PassiveAggressive, MultitaskPerceptron, OSMTL])
def test_equals_a_learner_a_class(kind: type[Learner], seed: int, n_classes: int, protocol: str) -> None:
    """Classes come when they come; each is as if it had been there from the first row."""
    stream, y = several(seed, n_classes, n_rows=80, protocol=protocol)
    if len(np.unique(y)) < 3:
        return
    learner = MultiClass(kind())
    margins = learner.test_then_train(stream.X, y, stream.task, rounds=stream.rounds)
    expected, learners = by_hand(kind, stream, y)
    np.testing.assert_array_equal(margins, expected)
    assert learner.classes_.tolist() == list(learners)
    for c, one in learners.items():
        assert learned(learner.estimators_[c]) == learned(one)
    f = np.stack([one.decision_function(stream.X, stream.task) for one in learners.values()], axis=1)
    np.testing.assert_array_equal(learner.decision_function(stream.X, stream.task), f)
    np.testing.assert_array_equal(learner.predict(stream.X, stream.task), np.array(list(learners))[f.argmax(axis=1)])
    assert learner.n_updates_ == sum(one.n_updates_ for one in learners.values())


@pytest.mark.parametrize("name", WITHIN)
def test_around_any_classifier_new_classes_in_mid_stream(name: str) -> None:
    """Chunks with 2, 3 and 4 classes; then it learns on from disk. Equal to one chunk with all classes declared."""
    stream, y = several(1, protocol="one", n_rows=90)
    y[:30] %= 2
    y[30:60] %= 3
    assert set(y.tolist()) == {0, 1, 2, 3}
    late, early = (MultiClass(LEARNERS[name]()) for _ in range(2))
    shapes = []
    for chunk in (slice(0, 30), slice(30, 60), slice(60, 90)):
        given = late.test_then_train(stream.X[chunk], NAMES[y[chunk]], stream.task[chunk], rounds=np.arange(90)[chunk])
        shapes.append(given.shape)
    assert shapes == [(30,), (30, 3), (30, 4)]
    early.partial_fit(stream.X, NAMES[y], stream.task, rounds=np.arange(90), classes=NAMES)
    assert late.classes_.tolist() == early.classes_.tolist() == NAMES.tolist()
    relative = 1e-9 if "Schatten" in name or "SecondOrder" in name else 1e-12
    given, expected = (model.decision_function(stream.X, stream.task) for model in (late, early))
    assert_close(given, expected, relative)
    assert late.score(stream.X, NAMES[y], stream.task) > 0.3
    assert np.isfinite(late.decision_function(stream.X, np.full(90, "nobody"))).all()


def test_every_way_to_the_same_model(tmp_path: Path) -> None:
    """Whole, in chunks, one by one, by rounds, declared or not, saved on the way: bit for bit the same."""
    stream, y = several(2, n_rows=120, protocol="growing")
    labels = NAMES[y]
    whole = MultiClass(OSMTL()).partial_fit(stream.X, labels, stream.task, rounds=stream.rounds)
    chunked, by_round, declared, loaded = (MultiClass(OSMTL()) for _ in range(4))
    declared.partial_fit(stream.X, labels, stream.task, rounds=stream.rounds, classes=NAMES)
    for rows in stream.rows_of_rounds:
        chunk = stream.X[rows], labels[rows], stream.task[rows]
        chunked.partial_fit(*chunk, rounds=stream.rounds[rows])
        loaded.partial_fit(*chunk, rounds=stream.rounds[rows])
        loaded.save(tmp_path / "model")
        loaded = shoal.load(tmp_path / "model")
        by_round.learn_round({k.item(): (x, label) for x, label, k in zip(*chunk, strict=True)})
    assert saved(whole) == saved(chunked) == saved(by_round) == saved(declared) == saved(loaded)
    one, many = MultiClass(PassiveAggressive()), MultiClass(PassiveAggressive())
    for x, label, k in zip(stream.X, labels.tolist(), stream.task.tolist(), strict=True):
        one.learn_one(x, label, k)
    assert saved(one) == saved(many.partial_fit(stream.X, labels, stream.task))
    for x, k in zip(stream.X[:20], stream.task[:20].tolist(), strict=True):
        np.testing.assert_array_equal(one.decision_one(x, k), many.decision_function(x[None], [k])[0])
        assert one.predict_one(x, k) == many.predict(x[None], [k])[0]
        assert type(one.predict_one(x, k)) is str
    row = stream.rows_of_rounds[-1]
    answers = one.predict_round({k.item(): x for x, k in zip(stream.X[row], stream.task[row], strict=True)})
    assert list(answers.values()) == many.predict(stream.X[row], stream.task[row]).tolist()


def test_two_classes_are_the_learner_itself() -> None:
    stream = draw(3)
    plain, several = OSMTL(), MultiClass(OSMTL())
    decisions = [
        model.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds) for model in (plain, several)
    ]
    np.testing.assert_array_equal(decisions[0], decisions[1])
    np.testing.assert_array_equal(several.predict(stream.X, stream.task), plain.predict(stream.X, stream.task))
    assert several.n_updates_ == plain.n_updates_
    assert several.decision_one(stream.X[0], 0) == plain.decision_one(stream.X[0], 0)


def test_one_class_so_far() -> None:
    learner = MultiClass(PassiveAggressive())
    learner.learn_one([1.0], "elm", 0)
    assert learner.classes_.tolist() == ["elm"]
    assert learner.predict_one([-1.0], 0) == "elm"
    assert learner.decision_function([[1.0]], [0]).shape == (1,)
    learner.learn_one([-1.0], "ash", 0)
    assert (learner.predict_one([-1.0], 0), learner.predict_one([1.0], 0)) == ("ash", "elm")
    number = MultiClass(PassiveAggressive()).partial_fit([[1.0]], [1])
    assert number.classes_.tolist() == [-1, 1]  # a guess
    assert number.partial_fit([[1.0]], [2]).classes_.tolist() == [1, 2]


def test_agrees_with_scikit_learns_one_versus_rest() -> None:
    """Without tasks and with all classes in the first call it can serve; see the module for the rest."""
    stream, y = several(4, n_rows=300)
    theirs = OneVsRestClassifier(PassiveAggressive()).fit(stream.X, y)
    ours = MultiClass(PassiveAggressive()).fit(stream.X, y)
    np.testing.assert_array_equal(ours.decision_function(stream.X), theirs.decision_function(stream.X))
    np.testing.assert_array_equal(ours.predict(stream.X), theirs.predict(stream.X))
    assert ours.score(stream.X, y) > 0.5


def test_sharing_pays_for_several_classes_too() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(2000, 8)), rng.integers(40, size=2000)
    W = rng.normal(size=(8, 4)) + 0.3 * rng.normal(size=(40, 8, 4))
    y = np.einsum("nd,ndc->nc", X, W[task]).argmax(axis=1)
    errors = {}
    for name, learner in MultiClass(MultitaskPerceptron()).baselines().items() | {
        ("shared", MultiClass(MultitaskPerceptron()))
    }:
        errors[name] = (learner.test_then_train(X, y, task).argmax(axis=1) != y).mean()
    assert errors["shared"] < errors["independent"] - 0.05


def test_hyper_parameters_may_change_on_the_way() -> None:
    stream, y = several(5)
    learner = MultiClass(MultitaskPerceptron(relation=np.eye(5) * 2.0, loss="hinge")).fit(stream.X, y, stream.task)
    coef = learner.estimators_[2].coef_
    learner.set_params(estimator__eta=1e-9).partial_fit(stream.X, y, stream.task)
    assert 0 < np.abs(learner.estimators_[2].coef_ - coef).max() < 1e-6
    before = saved(learner)
    learner.set_params(estimator__eta=-1.0)
    for act in (lambda: learner.learn_one(stream.X[0], 1, 0), lambda: learner.predict(stream.X, stream.task)):
        with pytest.raises(ValueError, match="eta must be"):
            act()
    assert saved(learner.set_params(estimator__eta=1e-9)) == before
    with pytest.raises(ValueError, match="can only change before fit"):
        learner.set_params(estimator=OSMTL()).partial_fit(stream.X, y, stream.task)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2.5, 1, 0, 2], r"Unknown label type: continuous. Row 2"),
        (["a", "b", "c", "a", "b", "c"], "expected all labels to be numbers, or all text"),
        ([0, 1, None, 1, 0, 2], "row 2: the label is None"),
        ([0, 1, np.nan, 1, 0, 2], "row 2: the label is NaN"),
        ([0, 1, 2], "y must hold one value per row"),
    ],
)
def test_bad_labels_leave_the_model_as_it_was(y: list[Any], message: str) -> None:
    stream, good = several(6)
    learner = MultiClass(PassiveAggressive()).fit(stream.X, good, stream.task)
    before = saved(learner)
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(stream.X[:6], y, stream.task[:6])
    with pytest.raises(ValueError, match="found NaN"):
        learner.learn_one(stream.X[0] * np.nan, 77, "new")
    assert saved(learner) == before
    assert 77 not in learner.classes_


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (MultitaskRegressor(), "needs a classifier of two labels"), (MultiClass(), "needs a classifier of two labels"),
        (LabelQuery(), "all classes learn"), (PassiveAggressive(C=-1.0), "C must be"),
    ],
)  # fmt: skip
def test_learners_that_do_not_fit(learner: Learner, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiClass(learner).partial_fit([[1.0]], [1])


def test_late_classes_of_kernels_know_the_past() -> None:
    """A class that comes in row 200 starts from all rows before as its negatives."""
    stream, y = several(7, n_rows=200)
    learner = MultiClass(KernelPerceptron(gamma=0.1)).fit(stream.X, y, stream.task)
    learner.learn_one(stream.X[0] + 100.0, 9, 0)
    assert learner.predict_one(stream.X[0] + 100.0, 0) == 9
    assert (learner.predict(stream.X, stream.task) != 9).mean() > 0.95
