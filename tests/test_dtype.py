"""Weights stored in float32: half the memory, nearly the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from tests.engine.test_task_weights import allow_dense, in_tables
from tests.streams import core_of, draw

import shoal
from shoal.model.state import leaves

GRAPH = [(a, b) for a in range(4) for b in range(a)]
LEARNERS: dict[str, Any] = {
    "MultitaskPerceptron": shoal.MultitaskPerceptron,
    "MultitaskPerceptron-logistic": lambda **options: shoal.MultitaskPerceptron(
        relation=1.0, loss="logistic", eta=0.3, **options
    ),
    "MultitaskPerceptron-graph": lambda **options: shoal.MultitaskPerceptron(relation=GRAPH, **options),
    "MultitaskRegressor": lambda **options: shoal.MultitaskRegressor(eta=0.02, **options),
    "PassiveAggressive": shoal.PassiveAggressive,
    "PassiveAggressive-pooled": lambda **options: shoal.PassiveAggressive(relation="pooled", **options),
    "PassiveAggressiveRegressor": shoal.PassiveAggressiveRegressor,
    "OSMTL": shoal.OSMTL,
    "OSMTLRegressor": shoal.OSMTLRegressor,
    "HedgedSharing": lambda dtype="float64": shoal.HedgedSharing(dtype=dtype),
    "HedgedSharingRegressor": shoal.HedgedSharingRegressor,
}


def stream_for(learner: Any, *, sparse: bool = True) -> Any:
    stream = draw(3, n_rows=400, K=4, d=12, protocol="one", density=0.5)
    X = sp.csr_matrix(stream.X) if sparse else stream.X
    w = np.random.default_rng(0).normal(size=12)
    return X, stream.y if is_classifier(learner) else stream.X @ w, stream.task


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("name", LEARNERS)
def test_answers_are_nearly_those_of_float64(name: str, sparse: bool) -> None:
    """Perceptrons may err on other rows once a margin is within rounding of zero; here none is."""
    exact, short = LEARNERS[name](), LEARNERS[name](dtype="float32")
    X, y, task = stream_for(exact, sparse=sparse)
    expected, found = (learner.test_then_train(X, y, task) for learner in (exact, short))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert (found != expected).any()
    assert any(array.dtype == np.float32 for array in leaves(core_of(short).state))
    if hasattr(short, "coef_"):
        assert short.coef_.dtype == np.float64


@pytest.mark.parametrize("name", LEARNERS)
def test_saved_models_go_on(name: str, tmp_path: Path) -> None:
    learner = LEARNERS[name](dtype=np.float32)
    X, y, task = stream_for(learner)
    learner.partial_fit(X[:200], y[:200], task[:200]).save(tmp_path / "model")
    loaded = shoal.load(tmp_path / "model")
    decisions = [model.test_then_train(X[200:], y[200:], task[200:]) for model in (learner, loaded)]
    np.testing.assert_array_equal(decisions[0], decisions[1])


def test_tables_of_pairs_hold_float32_too(monkeypatch: pytest.MonkeyPatch) -> None:
    learners = [shoal.MultitaskPerceptron(dtype="float32") for _ in range(2)]
    X, y, task = stream_for(learners[0])
    expected = learners[0].test_then_train(X, y, task)
    allow_dense(monkeypatch, 0, 0)
    np.testing.assert_array_equal(learners[1].test_then_train(X, y, task), expected)
    assert in_tables(learners[1])
    assert core_of(learners[1]).state.own.dense.dtype == np.float32


@pytest.mark.parametrize("name", LEARNERS)
def test_another_type_is_refused(name: str) -> None:
    learner = LEARNERS[name](dtype="float16")
    X, y, task = stream_for(learner)
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32', got 'float16'"):
        learner.fit(X, y, task)
    learner.set_params(dtype="float64").fit(X, y, task)
    with pytest.raises(ValueError, match="can only change before fit"):
        learner.set_params(dtype="float32").partial_fit(X, y, task)
