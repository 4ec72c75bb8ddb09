"""Bayes weights over b and eta: against the twin, and against each model alone."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import assert_close, draw, drawn_weights
from tests.twins import bayes_multitask as twin

from shoal import MultitaskPerceptron, MultitaskRegressor
from shoal.online.bayes_multitask import BS, ETAS, ETAS_OF_NUMBERS, N_MODELS
from shoal.theory import bayes_regret_bound

K = 5


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("loss", "relation", "eta", "step"),
    [
        ("logistic", "auto", "auto", "constant"),
        ("perceptron", "auto", 0.5, "constant"),
        ("hinge", "pairwise", "auto", "sqrt"),
        ("squared_hinge", "auto", 0.05, "sqrt"),
        ("squared", "auto", "auto", "constant"),
        ("squared", 2.0, "auto", "sqrt"),
    ],
)
def test_equals_twin(loss: str, relation: Any, eta: Any, step: str, sparse: bool) -> None:
    kind, etas = (MultitaskRegressor, ETAS_OF_NUMBERS) if loss == "squared" else (MultitaskPerceptron, ETAS)
    stream = draw(1, K=K, protocol="growing", density=0.5 if sparse else 1.0, regression=loss == "squared")
    weight = drawn_weights(len(stream.y))
    weight[np.unique(stream.task, return_index=True)[1]] = 0.5  # no task begins without weight: the twin has them all
    learner = kind(relation=relation, eta=eta, loss=loss, step=step)
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds, sample_weight=weight)
    bs = BS if relation == "auto" else [math.nan if relation == "pairwise" else relation]
    pairs = list(itertools.product(bs, etas if eta == "auto" else [eta]))
    expected, weights = twin.learn(
        stream.X,
        stream.y,
        stream.task,
        stream.rows_of_rounds,
        pairs=pairs,
        loss=loss,
        sqrt_step=step == "sqrt",
        weight=weight,
    )
    assert_close(decisions, expected)
    named = [(float(K) if math.isnan(b) else b, eta) for b, eta in pairs]
    assert list(learner.shares_.values()) == sorted(learner.shares_.values(), reverse=True)
    assert_close(np.array([learner.shares_[pair] for pair in named]), weights)


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.integers(1, 4), st.floats(0.1, 30.0))
def test_labels_lose_no_more_than_the_best_model_by_the_bound(seed: int, n: int, K: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    X, y, task = scale * rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n), rng.integers(K, size=n)
    y = np.where(rng.random(n) < rng.random(), np.sign(X[:, 0]), y)

    def losses(**options: Any) -> float:
        learner = MultitaskPerceptron(loss="logistic", classes=[-1.0, 1.0], **options)
        return float(np.logaddexp(0, -y * learner.test_then_train(X, y, task)).sum())

    best = min(losses(relation=b, eta=eta) for b in BS for eta in ETAS)
    assert losses(relation="auto", eta="auto") <= best + bayes_regret_bound() + 1e-9 * (1 + best)
    assert bayes_regret_bound() == math.log(N_MODELS) == math.log(24)


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.integers(1, 4), st.floats(0.1, 30.0))
def test_numbers_lose_no_more_than_the_best_model_by_the_bound(seed: int, n: int, K: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, 3)), rng.integers(K, size=n)
    y = scale * (rng.normal() + X @ rng.normal(size=3) + rng.standard_t(2, size=n))
    lows = np.minimum.accumulate(np.append(0.0, y))[:-1]
    highs = np.maximum.accumulate(np.append(0.0, y))[:-1]

    def losses(**options: Any) -> float:
        f = MultitaskRegressor(**options).test_then_train(X, y, task)
        return float(((np.clip(f, lows, highs) - np.clip(y, lows, highs)) ** 2).sum() / 2)

    best = min(losses(relation=b, eta=eta) for b in BS for eta in ETAS_OF_NUMBERS)
    width = max(0.0, y.max()) - min(0.0, y.min())
    bound = bayes_regret_bound(width=width)
    assert losses(relation="auto", eta="auto") <= best + bound + 1e-9 * (best + bound)


def test_what_the_data_choose_is_seen() -> None:
    """One rule for all tasks, and tasks of rules of their own."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(3000, 4)), rng.integers(10, size=3000)
    for rules, shared in ((np.tile(rng.normal(size=4), (10, 1)), True), (rng.normal(size=(10, 4)), False)):
        y = np.where(np.einsum("ij,ij->i", X, rules[task]) > 0, 1, -1)
        learner = MultitaskPerceptron(relation="auto", eta="auto", loss="logistic").partial_fit(X, y, task)
        (b, _), share = next(iter(learner.shares_.items()))
        assert share > 0.5
        assert (b >= 16.0) if shared else (b <= 1.0)
        off_diagonal = learner.relation_[0, 1] / learner.relation_[0, 0]
        assert off_diagonal > 0.5 if shared else off_diagonal < 0.1
        assert not hasattr(learner, "coef_")
        assert learner.predict_proba(X[:2], task[:2]).sum() == pytest.approx(2.0)


def test_options_that_do_not_go_together() -> None:
    X, y = np.eye(2), np.array([0, 1])
    with pytest.raises(ValueError, match="eta='auto' goes with constant relations"):
        MultitaskPerceptron(relation=[(0, 1)], eta="auto").fit(X, y, y)
    with pytest.raises(ValueError, match="loss='squared', got 'poisson'"):
        MultitaskRegressor(relation="auto", loss="poisson").fit(X, y, y)
    assert not hasattr(MultitaskPerceptron().fit(X, y, y), "shares_")
