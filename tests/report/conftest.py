"""Evaluations of real runs over streams like those of users."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import HedgedSharing, MultitaskPerceptron, MultitaskRegressor, PassiveAggressive
from shoal.engine.rounds import Chunk
from shoal.evaluation import Evaluation, progressive_validate

Evaluations = dict[str, Evaluation]


def rows(n_tasks: int, n: int = 3_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    names = np.array([f"T{k:03d}" for k in range(n_tasks)])
    code = (n_tasks * rng.random(n) ** 2).astype(int)
    weights = rng.normal(size=5) + 0.5 * rng.normal(size=(n_tasks, 5))
    X = rng.normal(size=(n, 5))
    margin = (X * weights[code]).sum(axis=1) + rng.normal(size=n)
    return X, margin, names[code]


@pytest.fixture(scope="session")
def binary() -> Evaluations:
    """A learner and its baselines, 30 tasks."""
    X, margin, task = rows(30)
    learner = MultitaskPerceptron(relation=30.0)
    learners = {"MultitaskPerceptron": learner, **learner.baselines()}
    return progressive_validate(learners, [Chunk(X, np.where(margin > 0.5, 1, -1), task)])


@pytest.fixture(scope="session")
def regression() -> Evaluations:
    """Squared loss: an update on every row."""
    X, margin, task = rows(8)
    learner = MultitaskRegressor(relation=8.0, eta=0.02)
    return progressive_validate({"MultitaskRegressor": learner, **learner.baselines()}, [Chunk(X, margin, task)])


@pytest.fixture(scope="session")
def graph() -> Evaluations:
    """A relation that is not the same for all pairs: two cliques."""
    edges = [(f"T{i:03d}", f"T{j:03d}") for i in range(6) for j in range(i) if (i < 3) == (j < 3)]
    X, margin, task = rows(6)
    y = np.where(margin > 0, 1, -1)
    return {"graph": progressive_validate(MultitaskPerceptron(relation=edges), [Chunk(X, y, task)])}


@pytest.fixture(scope="session")
def hedged() -> Evaluations:
    """A learner with probabilities that weighs several ways of sharing, and one without."""
    X, margin, task = rows(12, n=2_000)
    learners = {"HedgedSharing": HedgedSharing(), "PassiveAggressive": PassiveAggressive()}
    return progressive_validate(learners, [Chunk(X, np.where(margin > 0, 1, -1), task)])
