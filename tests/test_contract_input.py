"""Bad input to any learner: one clear sentence that names the row, and the model stays bit for bit as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.cases import CLASSIFIERS, LEARNERS, OPEN, saved, stream_for, taught, weights
from tests.exclusions import each_of
from tests.streams import Stream

from shoal import Learner

N, D = 6, 7  # rows and features of the chunks below


def changed(array: np.ndarray, where: Any, value: Any, kind: Any = float) -> np.ndarray:
    array = array.astype(kind)
    array[where] = value
    return array


def lists(n: int) -> np.ndarray:
    ids = np.empty(n, object)
    ids[:] = [[k] for k in range(n)]
    return ids


def malformed(s: Stream) -> sp.csr_matrix:
    X = sp.csr_matrix(s.X)
    X.indices = X.indices.copy()
    X.indices[2 * D] = D + 3
    return X


Chunk = Callable[[Stream], tuple[Any, ...]]

# name: (chunk (X, y, task, rounds), what the message must say)
CHUNKS: dict[str, tuple[Chunk, str]] = {
    "NaN": (lambda s: (changed(s.X, (3, 2), np.nan), s.y, s.task), "row 3, feature 2: found NaN"),
    "infinity": (lambda s: (changed(s.X, (1, 0), -np.inf), s.y, s.task), "row 1, feature 0: found infinity"),
    "sparse NaN": (
        lambda s: (sp.csr_matrix(changed(s.X * (np.arange(D) != 1), (3, 2), np.nan)), s.y, s.task),
        "row 3, feature 2: found NaN",
    ),
    "float32 infinity": (lambda s: (changed(s.X, (4, 1), np.inf, np.float32), s.y, s.task), "row 4, feature 1"),
    "column out of range": (lambda s: (malformed(s), s.y, s.task), "row 2: the sparse matrix is malformed"),
    "complex": (lambda s: (s.X + 1j, s.y, s.task), "[Cc]omplex"),
    "sparse complex": (lambda s: (sp.csr_matrix(s.X + 1j), s.y, s.task), "expected real numbers"),
    "text": (lambda s: (np.full((N, D), "red"), s.y, s.task), "could not convert string to float"),
    "one dimension": (lambda s: (s.X[0], s.y, s.task), "Expected 2D array"),
    "no rows": (lambda s: (s.X[:0], s.y[:0], s.task[:0]), r"0 sample\(s\)"),
    "no rows, sparse": (lambda s: (sp.csr_matrix(s.X[:0]), s.y[:0], s.task[:0]), r"0 sample\(s\)"),
    "y missing": (lambda s: (s.X, None, s.task), "requires y to be passed"),
    "y short": (lambda s: (s.X, s.y[:-1], s.task), "y must hold one value per row: expected 6 values, got 5"),
    "y two columns": (lambda s: (s.X, np.stack([s.y, s.y], 1), s.task), "1d array|shape"),
    "y NaN": (lambda s: (s.X, changed(s.y, 2, np.nan), s.task), "row 2: the (label|target) is NaN"),
    "y infinite": (lambda s: (s.X, changed(s.y, 4, np.inf), s.task), "row 4: the (label|target) is infinity"),
    "y None": (lambda s: (s.X, changed(s.y, 4, None, object), s.task), "row 4: the (label|target) is (None|NaN)"),
    "task short": (lambda s: (s.X, s.y, s.task[:-1]), "task must hold one id per row: expected 6 ids, got 5 ids"),
    "task one string": (lambda s: (s.X, s.y, "abcdef"), "expected 6 ids, got a single string"),
    "task None": (lambda s: (s.X, s.y, changed(s.task, 2, None, object)), "row 2: its task id is missing"),
    "task NaN": (lambda s: (s.X, s.y, changed(s.task, 2, np.nan)), "row 2: its task id is missing"),
    "task unhashable": (lambda s: (s.X, s.y, lists(N)), "row 0: task ids must be hashable, got list"),
    "task two columns": (lambda s: (s.X, s.y, np.stack([s.task, s.task], 1)), "hashable"),
    "rounds short": (lambda s: (s.X, s.y, s.task, [0, 1, 2]), "rounds must hold one integer per row"),
    "rounds of text": (lambda s: (s.X, s.y, s.task, list("aabbcc")), "rounds must be integers"),
    "rounds of floats": (lambda s: (s.X, s.y, s.task, np.arange(6.0)), "rounds must be integers"),
    "a task twice": (lambda s: (s.X, s.y, [0, 1, 2, 1, 0, 3], [7, 7, 7, 7, 8, 8]), "row 3: .* in round 7"),
}  # fmt: skip

# What only a learner that has learned can refuse.
LATER: dict[str, tuple[Chunk, str]] = {
    "too wide": (lambda s: (np.hstack([s.X, s.X]), s.y, s.task), "X has 14 features, but .* expecting 7 features"),
    "too narrow": (lambda s: (sp.csr_matrix(s.X[:, 1:]), s.y, s.task), "X has 6 features, but .* is expecting 7"),
}

LABELS: dict[str, tuple[Chunk, str]] = {
    "a third label": (lambda s: (s.X, changed(s.y, 3, 2.0), s.task), "Row 3: got a third label"),
    "a third text": (lambda s: (s.X, np.array(list("aabbca")), s.task), "Row .: got a third label"),
    "mixed kinds": (lambda s: (s.X, np.array([1, -1, "a", 1, 1, 1], object), s.task), "(?i)row 2"),
    "real numbers": (lambda s: (s.X, s.X[:, 0], s.task), "Unknown label type: continuous. Row"),
}


def chunk_of(name: str, seed: int = 1) -> Stream:
    stream = stream_for(name, seed, n_rows=20, protocol="one")
    return Stream(*(array[:N] for array in stream))


@contextmanager
def case(name: str) -> Iterator[None]:
    """Say which case it was that failed: a test runs all cases of a learner, 3,000 tests fewer to collect."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"in the case {name!r}")
        raise


def refuse(learner: Learner, arguments: tuple[Any, ...], message: str, verb: str) -> None:
    X, y, task, rounds = (*arguments, None)[:4]
    with pytest.raises(ValueError, match=message):
        getattr(learner, verb)(X, y, task, rounds=rounds)


@each_of(LEARNERS)
def test_bad_chunks_leave_the_model_as_it_was(name: str) -> None:
    learner = taught(name, n_rows=20)
    before = saved(learner)
    for bad, (chunk, message) in (CHUNKS | LATER).items():
        with case(bad):
            arguments = chunk(chunk_of(name))
            refuse(learner, arguments, message, "partial_fit")
            refuse(learner, arguments, message, "test_then_train")
            if bad in CHUNKS:
                refuse(learner, arguments, message, "fit")
            assert saved(learner) == before


@each_of(OPEN)
def test_bad_first_chunks_leave_a_learner_unfitted(name: str) -> None:
    learner, good = LEARNERS[name](), chunk_of(name)
    for bad, (chunk, message) in CHUNKS.items():
        with case(bad):
            refuse(learner, chunk(good), message, "partial_fit")
            assert not hasattr(learner, "n_features_in_")
            assert vars(learner).keys() == vars(LEARNERS[name]()).keys()
    learner.partial_fit(good.X, good.y, good.task)
    assert saved(learner) == saved(LEARNERS[name]().partial_fit(good.X, good.y, good.task))


@each_of(CLASSIFIERS)
def test_bad_labels(name: str) -> None:
    learner = taught(name, n_rows=20)
    before = saved(learner)
    for bad, (chunk, message) in LABELS.items():
        with case(bad):
            refuse(learner, chunk(chunk_of(name)), message, "partial_fit")
            assert saved(learner) == before


@each_of([name for name in LEARNERS if name not in CLASSIFIERS])
def test_regressors_refuse_labels(name: str) -> None:
    learner, s = taught(name, n_rows=20), chunk_of(name)
    before = saved(learner)
    refuse(learner, (s.X, np.array(list("abcdef")), s.task), "y must hold real numbers", "partial_fit")
    with pytest.raises(ValueError, match="classes= is for classifiers"):
        learner.partial_fit(s.X, s.y, s.task, classes=[0, 1])
    assert saved(learner) == before
    assert not hasattr(learner, "decision_function")


One = tuple[Callable[[Learner, np.ndarray, float], Any], str]

ONES: dict[str, One] = {
    "round of nothing": (lambda m, x, y: m.learn_round({}), "an empty round"),
    "NaN": (lambda m, x, y: m.learn_one(changed(x, 2, np.nan), y, 0), "row 0, feature 2: found NaN"),
    "infinity of a new task": (lambda m, x, y: m.learn_one(changed(x, 2, np.inf), y, "new"), "row 0, feature 2"),
    "width": (lambda m, x, y: m.learn_one(x[1:], y, 0), "X has 6 features, but .* expecting 7"),
    "two dimensions": (lambda m, x, y: m.learn_one(x[None], y, 0), "a dict or a 1-d array, got 2 dimensions"),
    "dict": (lambda m, x, y: m.learn_one({"f0": 1.0}, y, 0), "expected an array, got a dict"),
    "mixed": (lambda m, x, y: m.learn_round({0: (x, y), 1: ({"f0": 1.0}, y)}), "all dicts or all arrays"),
    "lengths": (lambda m, x, y: m.learn_round({0: (x, y), 1: (x[1:], y)}), "differ in length"),
    "y None": (lambda m, x, y: m.learn_one(x, None, 0), "row 0: the (label|target) is (None|NaN)"),
    "y NaN": (lambda m, x, y: m.learn_one(x, np.nan, 0), "row 0: the (label|target) is NaN"),
    "task NaN": (lambda m, x, y: m.learn_one(x, y, float("nan")), "row 0: its task id is missing"),
    "second row": (lambda m, x, y: m.learn_round({0: (x, y), 1: (changed(x, 3, np.nan), y)}), "row 1, feature 3"),
    "predict NaN": (lambda m, x, y: m.predict_one(changed(x, 1, np.nan), 0), "row 0, feature 1: found NaN"),
    "predict width": (lambda m, x, y: m.predict_one(x[1:], 0), "X has 6 features, but .* expecting 7"),
    "predict dict": (lambda m, x, y: m.predict_one({"f0": 1.0}, 0), "expected an array, got a dict"),
    "predict a table of NaN": (lambda m, x, y: m.predict([changed(x, 1, np.nan)], [0]), "row 0, feature 1: found NaN"),
    "predict a wide table": (lambda m, x, y: m.predict([[*x, 0.0]], [0]), "X has 8 features"),
    "predict without ids": (lambda m, x, y: m.predict([x, x], [0]), "expected 2 ids, got 1 ids"),
    "predict unhashable": (lambda m, x, y: m.predict([x, x], lists(2)), "row 0: task ids must be hashable"),
    "add a missing task": (lambda m, x, y: m.add_tasks([0, None]), "row 1: its task id is missing"),
    "add a list as a task": (lambda m, x, y: m.add_tasks([0, *lists(2)[1:]]), "row 1: task ids must be hashable"),
}  # fmt: skip


@each_of(LEARNERS)
def test_bad_examples_leave_the_model_as_it_was(name: str) -> None:
    learner, s = taught(name, n_rows=20), chunk_of(name)
    before = saved(learner)
    for bad, (act, message) in ONES.items():
        if bad == "infinity of a new task" and name not in OPEN:
            message = "row 0, feature 2"  # found before the task is
        with case(bad):
            with pytest.raises(ValueError, match=message):
                act(learner, s.X[0], float(s.y[0]))
            assert saved(learner) == before


@pytest.mark.parametrize("x", [{"a": "red"}, {"a": np.nan}, {"a": 1.0, "b": np.inf}, {"a": None}], ids=str)
@each_of(LEARNERS)
def test_bad_dicts(name: str, x: dict[str, Any]) -> None:
    learner = LEARNERS[name]()
    y = 1.0
    with pytest.raises(ValueError, match=r"row 0, feature '[ab]': expected a finite number"):
        learner.learn_one(x, y, 0)
    assert not hasattr(learner, "n_features_in_")
    learner.learn_one({"a": 1.0, "b": 1.0}, y, 0)
    before = saved(learner)
    for act in (lambda: learner.learn_one(x, y, 0), lambda: learner.predict_one(x, 0)):
        with pytest.raises(ValueError, match=r"row 0, feature '[ab]': expected a finite number"):
            act()
    assert saved(learner) == before


@each_of(CLASSIFIERS)
def test_one_unknown_label_needs_classes(name: str) -> None:
    learner = LEARNERS[name]()
    with pytest.raises(ValueError, match=r"only one label, .*'spam'.*; make the learner with classes="):
        learner.learn_one([1.0], "spam", 0)
    assert not hasattr(learner, "n_features_in_")
    learner.partial_fit([[1.0]], ["spam"], [0], classes=["ham", "spam"])
    assert learner.classes_.tolist() == ["ham", "spam"]
    with pytest.raises(ValueError, match="differ from the model's"):
        learner.partial_fit([[1.0]], ["spam"], [0], classes=["eggs", "spam"])
    with pytest.raises(ValueError, match="Row 0: got a third label 'eggs'"):
        learner.learn_one([1.0], "eggs", 0)


# Each: labels in order of arrival, the larger one.
KINDS: dict[str, tuple[list[Any], Any]] = {
    "int": ([-1, 1, 1, -1], 1),
    "zero one": ([0, 0, 1, 0], 1),
    "one first": ([1, 0, 1, 0], 1),
    "float": ([1.0, -1.0, 1.0, -1.0], 1.0),
    "bool": ([True, False, True, True], True),
    "text": (["spam", "ham", "spam", "ham"], "spam"),
    "other numbers": ([3, 7, 7, 3], 7),
    "object": (np.array(["b", "a", "b", "a"], object).tolist(), "b"),
}


@pytest.mark.parametrize("kind", KINDS)
@each_of(CLASSIFIERS)
def test_kinds_of_labels(name: str, kind: str) -> None:
    """Any two labels are +1 and -1 in disguise, row by row where the first one tells the other."""
    y, larger = KINDS[kind]
    X = stream_for(name, n_rows=20).X[:4]
    task, signs = [0, 1, 0, 1], [1 if label == larger else -1 for label in y]
    plain = LEARNERS[name]().partial_fit(X, signs, task)
    learner = LEARNERS[name]().partial_fit(X, np.array(y, object) if kind == "object" else y, task)
    assert learner.classes_.tolist() == sorted(set(y))
    np.testing.assert_array_equal(weights(learner), weights(plain))
    expected = [learner.classes_[int(sign > 0)] for sign in plain.predict(X, task)]
    assert learner.predict(X, task).tolist() == expected
    answer = learner.predict_one(X[0], 0)
    assert type(answer) in (type(y[0]), str, bool, int, float)
    assert answer == expected[0]
    known = kind in ("int", "zero one", "one first", "float", "bool")
    one_by_one, wanted = LEARNERS[name](), LEARNERS[name]()
    for x, label, sign, k in zip(X, y, signs, task, strict=True):
        wanted.partial_fit([x], [sign], [k])
        one_by_one.partial_fit([x], [label], [k], classes=None if known else sorted(set(y)))
    np.testing.assert_array_equal(weights(one_by_one), weights(wanted))
    if known:
        by_one = LEARNERS[name]()
        for x, label, k in zip(X, y, task, strict=True):
            by_one.learn_one(x, label, k)
        np.testing.assert_array_equal(weights(by_one), weights(wanted))


@pytest.mark.parametrize(("first", "then"), [(1, 2), (0, -1), (1.0, 7.0), (-1, -2)])
def test_a_label_never_changes_its_sign(first: Any, then: Any) -> None:
    """1 was learned as +1; if the other label is 2, it should have been -1: too late to turn it round."""
    learner = LEARNERS["PassiveAggressive"]().partial_fit([[1.0]], [first])
    before = saved(learner)
    with pytest.raises(ValueError, match="make the learner with classes="):
        learner.partial_fit([[1.0]], [then])
    with pytest.raises(ValueError, match="make the learner with classes="):
        learner.partial_fit([[1.0]], [then], classes=[first, then])
    assert saved(learner) == before
