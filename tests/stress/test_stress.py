"""One odd row undoes nothing: each stream for each learner that claims to stand it, and rows that Hypothesis draws."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks.odd_rows import draw, with_x, with_y
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stress.streams import LABELS, TARGETS, Stream, deviation, error

from shoal import HedgedSharing, HedgedSharingRegressor, LabelQuery, MultiClass

# The learners that claim it. The papers' learners keep their papers' rules: docs/odd-rows.md has what a row costs them.
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "HedgedSharing": HedgedSharing,
    "HedgedSharing-independent": lambda: HedgedSharing(relation="independent"),
    "MultiClass-HedgedSharing": MultiClass,
    "LabelQuery-HedgedSharing": lambda: LabelQuery(budget=0.5, random_state=0),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "HedgedSharingRegressor": HedgedSharingRegressor,
    "HedgedSharingRegressor-independent": lambda: HedgedSharingRegressor(relation="independent"),
}


def check(make: Callable[[], Any], stream: Stream, usual: Callable[..., float]) -> None:
    """Nowhere above its bound."""
    rows = stream.rows()
    weight = None if stream.n_learned is None else (np.arange(len(rows.y)) < stream.n_learned).astype(float)
    f = make().test_then_train(rows.X, rows.y, rows.task, sample_weight=weight)
    measure = stream.measure or usual
    for first, last, bound in stream.bounds:
        part = type(rows)(*(values[first:last] for values in rows))
        found = measure(part, f[first:last])
        assert found <= bound, f"rows {first} to {last}: {found:.3g}. {stream.what}: {stream.why}"


@pytest.mark.parametrize("learner", CLASSIFIERS)
@pytest.mark.parametrize("stream", LABELS)
def test_labels(stream: str, learner: str) -> None:
    check(CLASSIFIERS[learner], LABELS[stream], error)


@pytest.mark.parametrize("learner", REGRESSORS)
@pytest.mark.parametrize("stream", TARGETS)
def test_targets(stream: str, learner: str) -> None:
    check(REGRESSORS[learner], TARGETS[stream], deviation)


# ---- what streams do not say -----------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["HedgedSharing", "MultiClass-HedgedSharing"])
@pytest.mark.parametrize(("n", "bound"), [(5, 0.5), (20, 0.1), (100, 0.02), (2_000, 0.001)])
def test_a_label_that_came_once_stays_rare(learner: str, n: int, bound: float) -> None:
    """Krichevsky and Trofimov's estimate is 1.5/(n + 2)."""
    y = np.ones(n + 1)
    y[-1] = 0
    p = CLASSIFIERS[learner]().set_params(classes=[0, 1]).fit(np.ones((n + 1, 1)), y).predict_proba(np.ones((1, 1)))
    assert 0.1 / n < p[0, 0] < bound


def test_a_class_that_came_once_stays_rare() -> None:
    x = np.random.default_rng(0).normal(size=100)
    y = np.append(np.where(x > 0, "A", "B"), "C")
    learner = MultiClass().fit(np.append(x, 0.3)[:, None], y)
    p = learner.predict_proba(np.array([[1.0], [0.3], [-1.0]]))
    assert (p[:, 2] < 0.05).all()
    assert learner.predict(np.array([[1.0], [-1.0]])).tolist() == ["A", "B"]


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_float32_copies_of_rows_get_the_same_answers(noise: float) -> None:
    rng = np.random.default_rng(0)
    X, task = np.round(rng.normal(size=(3_000, 4)), 1), rng.integers(3, size=3_000)
    f, wrong = X @ [1.0, -1.0, 0.5, 0.2], rng.random(3_000) < noise
    copies = X.astype(np.float32)
    labels = HedgedSharing().fit(X, (f > 0) ^ wrong, task)
    numbers = HedgedSharingRegressor().fit(X, f + wrong, task)
    np.testing.assert_allclose(labels.decision_function(copies, task), labels.decision_function(X, task), atol=1e-4)
    np.testing.assert_allclose(numbers.predict(copies, task), numbers.predict(X, task), atol=1e-4)


# ---- odd rows that nobody thought of ---------------------------------------------------------------------------

N_ROWS, JUDGED, PIECE = 3_000, 1_000, 250
LABEL, ALL = -1, 5  # fields; the others are the features 0 to 4
SIZES = st.builds(lambda sign, digits: sign * 10.0**digits, st.sampled_from([-1.0, 1.0]), st.floats(-30.0, 150.0))
# The first 10 rows say what is usual, so an odd one among them costs more.
POSITIONS = st.integers(10, N_ROWS - JUDGED - 1)
FIELDS = st.integers(LABEL, ALL)
HALF_AS_MANY = settings(max_examples=settings().max_examples // 2)  # an example is a thousand rows


@cache
def usual(regression: bool) -> tuple[Any, np.ndarray, list[Any]]:
    """A clean stream, how it is answered, and the learner before each piece of it."""
    rows = draw(0, N_ROWS, regression=regression)
    learner: Any = HedgedSharingRegressor() if regression else HedgedSharing()
    answers, before = [], []
    for first in range(0, N_ROWS, PIECE):
        at = slice(first, first + PIECE)
        before.append(copy.deepcopy(learner))
        answers.append(learner.test_then_train(rows.X[at], rows.y[at], rows.task[at]))
    return rows, np.concatenate(answers), before


def with_and_without(position: int, size: float, field: int, *, regression: bool) -> tuple[float, float]:
    """How wrong the answers to the rows after an odd one are."""
    rows, expected, before = usual(regression)
    if field == LABEL:
        odd = with_y(rows, position, size if regression else 1 - rows.y[position])
    else:
        odd = with_x(rows, position if field == ALL else (position, field), size)
    learned = slice(position // PIECE * PIECE, position + 1 + JUDGED)
    learner = copy.deepcopy(before[position // PIECE])
    found = learner.test_then_train(odd.X[learned], odd.y[learned], odd.task[learned])[-JUDGED:]
    after = slice(position + 1, position + 1 + JUDGED)
    judged = type(rows)(*(values[after] for values in rows))
    measure = deviation if regression else error
    return measure(judged, found), measure(judged, expected[after])


@HALF_AS_MANY
@given(POSITIONS, SIZES, FIELDS)
def test_any_odd_row_costs_few_labels(position: int, size: float, field: int) -> None:
    found, without = with_and_without(position, size, field, regression=False)
    assert found <= 2 * without + 0.02


@HALF_AS_MANY
@given(POSITIONS, SIZES, FIELDS)
def test_any_odd_row_costs_few_deviations(position: int, size: float, field: int) -> None:
    """It counts as 10 deviations of the targets, 250 of the noise: a tenth of that in 20 answers of 1,000 makes 3.5."""
    found, without = with_and_without(position, size, field, regression=True)
    assert found <= 2 * without + 1.5
