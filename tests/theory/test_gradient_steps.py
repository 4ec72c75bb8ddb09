"""No stream and no comparator breaks the regret bound of shared gradient steps, whatever the convex loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.streams import draw
from tests.theory.comparators import comparator_for, kinds, scales
from tests.twins.multitask_perceptron import slope

from shoal import MultitaskPerceptron, MultitaskRegressor, relations
from shoal.engine.losses import REGRESSION
from shoal.theory import gradient_regret_bound

K = 4
RELATIONS: list[Any] = [
    "independent", "pairwise", 1.7, "pooled", [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 3.0)],
    relations.matrix(np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5),
]  # fmt: skip
LABELS = {
    "hinge": lambda f, y: np.maximum(0, 1 - y * f),
    "squared_hinge": lambda f, y: np.maximum(0, 1 - y * f) ** 2,
    "logistic": lambda f, y: np.logaddexp(0, -y * f),
}
TARGETS = {
    "squared": lambda f, y: (f - y) ** 2 / 2,
    "epsilon_insensitive": lambda f, y: np.maximum(0, np.abs(f - y) - 0.3),
    "huber": lambda f, y: np.where(np.abs(f - y) <= 0.3, (f - y) ** 2 / 2, 0.3 * np.abs(f - y) - 0.045),
    "absolute": lambda f, y: np.abs(f - y),
    "quantile": lambda f, y: np.where(y > f, 0.8 * (y - f), 0.2 * (f - y)),
    "poisson": lambda f, y: np.exp(f) - y * f,
    "gamma": lambda f, y: f + y * np.exp(-f),
}
LOSSES: dict[str, Any] = LABELS | TARGETS


def test_each_loss_is_here() -> None:
    assert set(TARGETS) == set(REGRESSION)


@given(
    seed=st.integers(0, 10**6), kind=kinds, scale=scales, relation=st.sampled_from(RELATIONS),
    loss=st.sampled_from([*LOSSES]), eta=st.sampled_from([0.003, 0.1, 3.0]),
)  # fmt: skip
def test_no_stream_breaks_the_bound(seed: int, kind: str, scale: float, relation: Any, loss: str, eta: float) -> None:
    stream = draw(seed, K=K, d=3, n_rows=50, protocol="one", regression=loss in TARGETS)
    y = stream.y
    learner: Any = MultitaskPerceptron(relation=relation, loss=loss, eta=eta)
    if loss in TARGETS:
        learner = MultitaskRegressor(relation=relation, loss=loss, eta=eta, epsilon=0.3, quantile=0.8)
        y = np.floor(np.exp(y)) if loss == "poisson" else np.exp(y) if loss == "gamma" else y
    f = learner.add_tasks(range(K)).test_then_train(stream.X, y, stream.task)
    f = np.log(f) if loss in ("poisson", "gamma") else f
    assume(np.abs(f).max() < 600)  # explicit steps may diverge, and answers of counts are capped at e^700
    g = [slope(loss, a, b, 0.3, 0.8) for a, b in zip(f, y, strict=True)]
    U = comparator_for(stream, kind, scale, seed, K)
    regret = np.sum(LOSSES[loss](f, y) - LOSSES[loss](np.sum(stream.X * U[stream.task], axis=1), y))
    for X in (stream.X, stream.sparse):
        bound = gradient_regret_bound(U, X, stream.task, relation=relation, slopes=g, eta=eta, tasks=range(K))
        assert regret <= bound + 1e-9 * (1 + abs(regret))


def test_the_bound_by_hand() -> None:
    U = np.array([[1.0, 0.0], [0.0, 2.0]])
    arguments: dict[str, Any] = {"relation": "independent", "slopes": [1.0, -2.0, 0.0], "eta": 0.5}
    X = np.array([[3.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    assert gradient_regret_bound(U, X, ["a", "b", "a"], **arguments) == 5.0 / 1.0 + 0.25 * (9.0 + 4.0)
    # Two tasks, A = [[2, -1], [-1, 2]] and B = [[2, 1], [1, 2]]/3: u^T A u = 2 + 8, of which 2/3 counts.
    arguments["relation"] = "pairwise"
    assert gradient_regret_bound(U, X, ["a", "b", "a"], **arguments) == pytest.approx(20 / 3 + 0.25 * 13)
    assert gradient_regret_bound(U, X, ["a", "b", "a"], **arguments | {"relation": "pooled"}) == np.inf
    with pytest.raises(ValueError, match="eta must be a finite number > 0"):
        gradient_regret_bound(U, X, ["a", "b", "a"], **arguments | {"eta": 0.0})
