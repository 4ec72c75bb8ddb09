"""Model files of 0.2.0, kept for ever: a shoal of their format gives the same forecasts, others name a way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.model import persistence

FOLDER = Path(__file__).parent / "data" / "models-0.2.0"
FORMAT = 6  # of 0.2.0
LEARNERS: dict[str, Callable[[], Any]] = {
    "KernelPerceptron": lambda: shoal.KernelPerceptron(kernel="rbf", gamma=0.5, budget=20),
    "MixedEffectsRegressor": shoal.MixedEffectsRegressor,
    "MultiClass": lambda: shoal.MultiClass(shoal.PassiveAggressive()),
    "MultitaskPerceptron": lambda: shoal.MultitaskPerceptron(relation=[("a", "b"), ("b", "c")], loss="logistic"),
    "OSMTL": shoal.OSMTL,
    "ROMCO": shoal.ROMCO,
}


def rows() -> tuple[Any, Any, Any]:
    """Seventy rows of three tasks; the files learned the first sixty."""
    columns = np.arange(70)[:, None] * np.array([[0.7, 1.3, 2.1]])
    X = np.sin(columns)
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] > 0.1, 1, -1), np.array(list("abc") * 24)[:70]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_of_the_first_release_answers_as_it_did(name: str) -> None:
    path = FOLDER / f"{name}.shoal"
    if persistence.FORMAT != FORMAT:
        with pytest.raises(ValueError, match=f"has format {FORMAT}; this shoal reads {persistence.FORMAT}: train it"):
            shoal.load(path)
        return
    X, _, task = rows()
    learner: Any = shoal.load(path)
    answer = learner.decision_function if hasattr(learner, "decision_function") else learner.predict
    kept = json.loads((FOLDER / "decisions.json").read_text(encoding="utf-8"))[name]
    np.testing.assert_allclose(answer(X[60:], task[60:]), kept, rtol=1e-9, atol=1e-12)
