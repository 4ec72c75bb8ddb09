"""The contract of `sample_weight`: what it means where it is taken, and a sentence where it is not."""

from __future__ import annotations

from copy import deepcopy
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter
from tests.batch.cases import BATCH
from tests.cases import CLASSIFIERS, LEARNERS, refuses_weights, saved, stream_for, taught, values, weights
from tests.exclusions import each_of
from tests.streams import assert_close, draw, drawn_weights

from shoal import IndependentTasks, Learner, MultiClass, MultitaskPerceptron, PooledTasks, RegMTL
from shoal.evaluation import Periodic
from shoal.learner import weights_for

TAKING = [name for name in LEARNERS if not refuses_weights(LEARNERS[name]())]
REFUSING = [name for name in LEARNERS if name not in TAKING]
BATCH_TAKING = [name for name in BATCH if not refuses_weights(BATCH[name]())]
BAD = {
    "negative": ([1.0, -0.5, 1.0], "row 1: sample_weight is -0.5"),
    "NaN": ([1.0, 1.0, np.nan], "row 2: sample_weight is nan"),
    "infinite": ([np.inf, 1.0, 1.0], "row 0: sample_weight is inf"),
    "large": ([1.0, 1e7, 1.0], "row 1: sample_weight is 1e\\+07; expected a number from 0 to 1e\\+06"),
    "short": ([1.0, 2.0], "one number per row: expected shape \\(3,\\), got \\(2,\\)"),
    "a number": (2.0, "one number per row"),
    "a table": (np.ones((3, 1)), "one number per row"),
    "ragged": ([[1.0], [1.0, 2.0], [1.0]], "one number per row"),
    "complex": ([1j, 1.0, 1.0], "real numbers, got complex"),
    "text": (["1", "1", "1"], "real numbers"),
    "text in objects": (np.array(["1", 1, 1], object), "real numbers"),
    "objects": (np.array([{}, 1, 1], object), "real numbers"),
}


def made(name: str) -> Any:
    """A learner of either table, whether it takes weights or not."""
    return {**LEARNERS, **BATCH}[name]()


def learn(name: str, weight: Any, *, sparse: bool = False, learner: Any = None, **options: Any) -> Any:
    """The learner after a stream, and what it answered on the way."""
    stream, learner = stream_for(name, **options), made(name) if learner is None else learner
    X = stream.sparse if sparse else stream.X
    more = weights_for(learner, weight)
    answers = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds, **more)
    return learner, answers


@each_of(TAKING)
def test_an_example_of_a_round_may_bring_its_weight(name: str) -> None:
    """`{task: (x, y, weight)}` is the round with `sample_weight`; where none is said it is 1."""
    stream = stream_for(name, 1)
    by_array: Any = taught(name)
    rows = [int(np.flatnonzero(stream.task == k)[0]) for k in np.unique(stream.task)[:3]]
    by_round, given = deepcopy(by_array), [0.5, 1.0, 2.0]
    examples: dict[Any, Any] = {}
    for r, w in zip(rows, given, strict=True):
        examples[stream.task[r].item()] = (stream.X[r], stream.y[r], w)[: 2 if w == 1.0 else 3]
    by_round.learn_round(examples)
    X, y, task = stream.X[rows], stream.y[rows], stream.task[rows]
    by_array.partial_fit(X, y, task, rounds=np.zeros(3, int), sample_weight=given)
    assert_close(values(by_round, stream.X, stream.task), values(by_array, stream.X, stream.task))


@each_of(REFUSING)
def test_others_have_no_such_argument(name: str) -> None:
    """A wrapper has it for whatever it holds, and says so where that has none."""
    stream = stream_for(name, 1)
    learner: Any = taught(name)
    before, ones = saved(learner), np.ones(len(stream.y))
    says = pytest.raises(ValueError, match=r"takes no sample_weight: .*; give rows several times, or use \w+")
    verbs = (learner.partial_fit, learner.test_then_train, made(name).fit)
    if hasattr(learner, "estimator"):
        for verb in verbs:
            with says:
                verb(stream.X, stream.y, stream.task, rounds=stream.rounds, sample_weight=ones)
        with says:
            learner.learn_one(stream.X[0], stream.y[0], int(stream.task[0]), sample_weight=2.0)
    else:
        for verb in (*verbs, learner.learn_one):
            assert "sample_weight" not in signature(verb).parameters
        assert not has_fit_parameter(learner, "sample_weight")
        with says:
            weights_for(learner, ones)
    with says:
        learner.learn_round({int(stream.task[0]): (stream.X[0], stream.y[0], 2.0)})
    assert saved(learner) == before


@each_of(name for name in BATCH if name not in BATCH_TAKING)
def test_other_batch_learners_have_no_such_argument(name: str) -> None:
    learner = made(name)
    assert not has_fit_parameter(learner, "sample_weight")
    with pytest.raises(ValueError, match="takes no sample_weight: the paper's objective counts every row"):
        weights_for(learner, np.ones(3))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@each_of(TAKING)
def test_a_weight_of_one_is_none(name: str, sparse: bool) -> None:
    plain, expected = learn(name, None, sparse=sparse)
    ones = np.ones(len(expected))
    weighted, answers = learn(name, ones, sparse=sparse)
    np.testing.assert_array_equal(answers, expected)
    assert saved(weighted) == saved(plain)
    ones[-1] = 0.5  # now the weights are not left out
    first, second = slice(None, -1), slice(-1, None)
    stream, halves = stream_for(name), []
    for weight in (None, ones[first]):
        learner = made(name).partial_fit(
            stream.X[first], stream.y[first], stream.task[first], rounds=stream.rounds[first], sample_weight=weight
        )
        rest = stream.X[second], stream.y[second], stream.task[second]
        halves.append(learner.partial_fit(*rest, rounds=stream.rounds[second], sample_weight=ones[second]))
    whole, _ = learn(name, ones)
    assert saved(halves[0]) == saved(halves[1])
    if stream.rounds[-2] != stream.rounds[-1]:
        assert saved(whole) == saved(halves[0])


@pytest.mark.parametrize("protocol", ["one", "growing"])
@each_of(TAKING)
def test_weights_change_what_is_learned_and_chunks_do_not(name: str, protocol: str) -> None:
    stream = stream_for(name, 2, protocol=protocol)
    weight = drawn_weights(len(stream.y))
    whole, cut = made(name), made(name)
    many = isinstance(whole, MultiClass)  # the columns of its answers grow with the classes
    classes = [-1.0, 1.0] if hasattr(whole, "decision_function") and not many else None
    expected = whole.test_then_train(stream.X, stream.y, stream.task, classes=classes, sample_weight=weight)
    answers = []
    for part in np.split(np.arange(len(weight)), [1, 2, 9, 30]):
        X, y, task = stream.X[part], stream.y[part], stream.task[part]
        answers.append(cut.test_then_train(X, y, task, classes=classes, sample_weight=weight[part]))
    if not many:
        np.testing.assert_array_equal(np.concatenate(answers), expected)
    assert saved(cut) == saved(whole)
    one = made(name)
    for x, y, task, h in zip(stream.X, stream.y.tolist(), stream.task.tolist(), weight.tolist(), strict=True):
        one.learn_one(x, y, task, sample_weight=h)
    assert_close(weights(one), weights(whole))
    assert not np.allclose(weights(whole), weights(made(name).partial_fit(*stream[:3])))


@each_of(TAKING)
def test_whole_weights_are_repeated_rows(name: str) -> None:
    stream = stream_for(name, 3, protocol="one")
    repeats = np.random.default_rng(0).integers(4, size=len(stream.y))
    rows = np.repeat(np.arange(len(repeats)), repeats)
    weighted = made(name).partial_fit(*stream[:3], sample_weight=repeats)
    repeated = made(name).partial_fit(stream.X[rows], stream.y[rows], stream.task[rows])
    assert weighted.tasks_ == repeated.tasks_
    assert_close(weights(weighted), weights(repeated), 1e-11)


@each_of(TAKING)
def test_rows_of_weight_zero_change_nothing(name: str) -> None:
    stream = stream_for(name, 1)
    learner: Any = taught(name)
    before = saved(learner)
    task = stream.task + (0 if refuses_new_tasks(learner) else 3)  # of them some are new
    expected = values(learner, stream.X, task)
    answers = learner.test_then_train(stream.X, stream.y, task, sample_weight=np.zeros(len(task)))
    np.testing.assert_allclose(answers, expected, rtol=1e-12)
    learner.learn_one(stream.X[0], stream.y[0], int(task[0]), sample_weight=0)
    assert saved(learner) == before


def refuses_new_tasks(learner: Learner) -> bool:
    return bool(learner.new_core().named_tasks)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@each_of(TAKING)
def test_a_stream_without_its_rows_of_weight_zero(name: str, sparse: bool) -> None:
    """Tasks enter with the first row that counts, whatever came before."""
    stream = stream_for(name, 4, protocol="growing", n_rows=120)
    X, weight = stream.sparse if sparse else stream.X, drawn_weights(len(stream.y))
    there = weight > 0
    task = np.array([f"task {k}" for k in stream.task]) if not refuses_new_tasks(made(name)) else stream.task
    plain, weighted = made(name), made(name)
    weighted.partial_fit(X, stream.y, task, sample_weight=weight)
    plain.partial_fit(X[there], stream.y[there], task[there], sample_weight=weight[there])
    assert weighted.tasks_ == plain.tasks_
    assert saved(weighted) == saved(plain)


@pytest.mark.parametrize("wrong", BAD)
@each_of(TAKING)
def test_bad_weights_are_refused(name: str, wrong: str) -> None:
    stream = stream_for(name, 1)
    learner: Any = taught(name)
    before, (weight, sentence) = saved(learner), BAD[wrong]
    for verb in (learner.partial_fit, learner.test_then_train, made(name).fit):
        with pytest.raises(ValueError, match=sentence):
            verb(stream.X[:3], stream.y[:3], stream.task[:3], sample_weight=weight)
    one: Any = weight if np.isscalar(weight) else np.ravel(np.asarray(weight, object))[0]
    if wrong in ("infinite", "complex", "text", "objects"):
        with pytest.raises(ValueError, match="sample_weight"):
            learner.learn_one(stream.X[0], stream.y[0], int(stream.task[0]), sample_weight=one)
    assert saved(learner) == before


@each_of(TAKING)
def test_a_fit_needs_a_row_that_counts(name: str) -> None:
    stream = stream_for(name)
    with pytest.raises(ValueError, match="each sample_weight is zero; expected at least one row that counts"):
        made(name).fit(stream.X, stream.y, stream.task, sample_weight=np.zeros(len(stream.y)))


@pytest.mark.parametrize("kind", ["list", "int8", "bool", "pandas", "objects"])
@each_of(["MultitaskPerceptron"])
def test_weights_of_any_kind(name: str, kind: str) -> None:
    weight = np.array([0, 1, 1, 0, 1] * 20)[: len(stream_for(name).y)]
    given = {
        "list": weight.tolist(),
        "int8": weight.astype(np.int8),
        "bool": weight.astype(bool),
        "pandas": pd.Series(weight, dtype="Int64"),
        "objects": weight.astype(object),
    }[kind]
    assert saved(learn(name, given)[0]) == saved(learn(name, weight.astype(float))[0])


@each_of(name for name in TAKING if name in CLASSIFIERS)
def test_large_weights_stay_finite(name: str) -> None:
    stream = stream_for(name)
    weight = np.resize([1e6, 1e-300, 1e3, 1.0], len(stream.y))
    for scale in (1e-150, 1.0, 1e150):
        learner = made(name)
        answers = learner.test_then_train(scale * stream.X[:8], stream.y[:8], stream.task[:8], sample_weight=weight[:8])
        assert np.isfinite(answers).all()
        assert np.isfinite(weights(learner)).all()


# ---- batch learners ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@each_of(BATCH_TAKING)
def test_batch_learners_take_weights_for_repeats(name: str, sparse: bool) -> None:
    stream = draw(0, n_rows=120, regression=not made(name).classifies())
    X = stream.sparse if sparse else stream.X
    repeats = np.random.default_rng(1).integers(4, size=len(stream.y))
    rows = np.repeat(np.arange(len(repeats)), repeats)
    weighted = made(name).fit(X, stream.y, stream.task, sample_weight=repeats)
    repeated = made(name).fit(X[rows], stream.y[rows], stream.task[rows])
    assert weighted.tasks_ == repeated.tasks_
    assert_close(values(weighted, X, stream.task), values(repeated, X, stream.task), 1e-4)


def test_a_batch_learner_needs_an_estimator_that_takes_weights() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    stream = stream_for("MultitaskPerceptron")
    for learner in (IndependentTasks(estimator=KNeighborsClassifier()), Periodic(KNeighborsClassifier())):
        with pytest.raises(ValueError, match="the fit of KNeighborsClassifier takes none"):
            learner.fit(stream.X, stream.y, stream.task, sample_weight=np.ones(len(stream.y)))


def test_periodic_hands_weights_to_each_training() -> None:
    stream = stream_for("MultitaskPerceptron", n_rows=100)
    weight = drawn_weights(len(stream.y))
    rows = np.flatnonzero(weight)[:50]
    learner = Periodic(PooledTasks(), every=50)
    learner.partial_fit(stream.X, stream.y, stream.task, sample_weight=weight)
    expected = PooledTasks().fit(stream.X[rows], stream.y[rows], stream.task[rows], sample_weight=weight[rows])
    assert learner.n_trainings_ == 1  # rows of weight 0 do not count
    np.testing.assert_array_equal(learner.estimator_.coef_[0], expected.coef_[0])
    with pytest.raises(ValueError, match="takes no sample_weight: the paper's objective"):
        Periodic(RegMTL()).partial_fit(stream.X, stream.y, stream.task, sample_weight=weight)


# ---- scikit-learn --------------------------------------------------------------------------------------------


def test_weights_are_routed_through_a_pipeline() -> None:
    stream = stream_for("MultitaskPerceptron")
    weight = drawn_weights(len(stream.y))
    with sklearn.config_context(enable_metadata_routing=True):
        learner = MultitaskPerceptron().set_fit_request(sample_weight=True, task=True)
        scaler = StandardScaler(with_mean=False).set_fit_request(sample_weight=False)
        model = make_pipeline(scaler, learner).fit(stream.X, stream.y, task=stream.task, sample_weight=weight)
    X = StandardScaler(with_mean=False).fit_transform(sp.csr_matrix(stream.X)).toarray()
    expected = MultitaskPerceptron().fit(X, stream.y, stream.task, sample_weight=weight)
    np.testing.assert_allclose(model[-1].coef_, expected.coef_, rtol=1e-12)
