"""Passive-Aggressive against its twin and against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import SGDClassifier, SGDRegressor
from tests.streams import assert_close, draw, drawn_weights
from tests.twins import passive_aggressive as twin

from shoal import PassiveAggressive, PassiveAggressiveRegressor

VARIANTS = ["PA", "PA-I", "PA-II"]


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("sharing", ["independent", "pooled"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", [PassiveAggressive, PassiveAggressiveRegressor])
def test_equals_twin(kind: type[Any], variant: str, weighted: bool, sharing: str, protocol: str, sparse: bool) -> None:
    regression = kind is PassiveAggressiveRegressor
    stream = draw(1, protocol=protocol, density=0.3 if sparse else 1.0, regression=regression)  # has empty rows
    learner = kind(variant=variant, C=0.4, relation=sharing)
    X = stream.sparse if sparse else stream.X
    weight = drawn_weights(len(stream.y)) if weighted else None
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds, sample_weight=weight)
    expected, W, updates = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, variant=variant, C=0.4,
        epsilon=0.1 if regression else None, pooled=sharing == "pooled", weight=weight,
    )  # fmt: skip
    assert_close(decisions, expected)
    assert_close(learner.coef_, W)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize(("variant", "rate"), [("PA-I", "pa1"), ("PA-II", "pa2")])
def test_equals_scikit_learn(variant: str, rate: str, C: float) -> None:
    stream = draw(2, n_rows=300, K=1)
    common = {
        "penalty": None,
        "learning_rate": rate,
        "eta0": C,
        "fit_intercept": False,
        "shuffle": False,
        "max_iter": 1,
    }
    ours = PassiveAggressive(variant=variant, C=C).fit(stream.X, stream.y)
    theirs = SGDClassifier(loss="hinge", tol=None, **common).fit(stream.X, stream.y)
    assert_close(ours.coef_, theirs.coef_)
    target = stream.X @ np.arange(stream.X.shape[1]) + 0.1 * stream.y
    ours_r = PassiveAggressiveRegressor(variant=variant, C=C, epsilon=0.2).fit(stream.X, target)
    theirs_r = SGDRegressor(loss="epsilon_insensitive", epsilon=0.2, tol=None, **common).fit(stream.X, target)
    assert_close(ours_r.coef_[0], theirs_r.coef_)


@given(seed=st.integers(0, 10**6))
def test_pa_repairs_its_row_and_moves_no_further_than_needed(seed: int) -> None:
    """PA's defining property: zero loss on the row after the step, and the step is along x."""
    stream = draw(seed, n_rows=40, K=3, protocol="one")
    learner = PassiveAggressive(variant="PA")
    for x, y, task in zip(stream.X, stream.y, stream.task, strict=True):
        learner.learn_one(x, y, task)
        assert y * learner.decision_one(x, task) >= 1 - 1e-9


def test_variants_order_their_steps() -> None:
    x, y = np.array([[0.1, 0.2]]), [1]
    size = {v: np.abs(PassiveAggressive(variant=v, C=0.5).partial_fit(x, y).coef_).sum() for v in VARIANTS}
    assert size["PA"] > size["PA-I"] > 0
    assert size["PA"] > size["PA-II"] > 0


def test_independent_is_one_model_a_task_and_pooled_one_for_all() -> None:
    stream = draw(3, protocol="one")
    learner = PassiveAggressive().fit(stream.X, stream.y, stream.task)
    for k in learner.tasks_:
        own = stream.task == k
        np.testing.assert_array_equal(learner.coef_[k], PassiveAggressive().fit(stream.X[own], stream.y[own]).coef_[0])
    pooled = PassiveAggressive(relation="pooled").fit(stream.X, stream.y, stream.task)
    np.testing.assert_array_equal(pooled.coef_[-1], PassiveAggressive().fit(stream.X, stream.y).coef_[0])
    assert (pooled.coef_ == pooled.coef_[0]).all()


@given(seed=st.integers(0, 10**6), variant=st.sampled_from(VARIANTS))
def test_flipping_all_labels_flips_all_weights(seed: int, variant: str) -> None:
    stream = draw(seed, n_rows=60)
    learner = PassiveAggressive(variant=variant)
    weights = learner.fit(stream.X, stream.y, stream.task).coef_
    np.testing.assert_array_equal(learner.fit(stream.X, -stream.y, stream.task).coef_, -weights)


def test_unseen_tasks() -> None:
    stream = draw(4)
    nobody = np.full(len(stream.y), "nobody")
    independent = PassiveAggressive().fit(stream.X, stream.y, stream.task)
    np.testing.assert_array_equal(independent.decision_function(stream.X, nobody), 0.0)
    pooled = PassiveAggressive(relation="pooled").fit(stream.X, stream.y, stream.task)
    np.testing.assert_array_equal(
        pooled.decision_function(stream.X, nobody), pooled.decision_function(stream.X, stream.task)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "PA-III"}, "variant must be one of"),
        ({"C": 0.0}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"relation": "some"}, "relation must be"),
    ],
)
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    for kind in (PassiveAggressive, PassiveAggressiveRegressor):
        with pytest.raises(ValueError, match=message):
            kind(**options).partial_fit([[1.0]], [1.0])
    with pytest.raises(ValueError, match="epsilon must be"):
        PassiveAggressiveRegressor(epsilon=-1.0).partial_fit([[1.0]], [1.0])
