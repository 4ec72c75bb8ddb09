"""Model files of 0.2.0, kept for ever: a shoal of their format gives the same forecasts, others name a way out.

`python -m tests.test_kept_models` wrote them. After the release of 0.2.0 nothing is written here again: a later format
gets a folder of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.model import persistence

FOLDER = Path(__file__).parent / "data" / "models-0.2.0"
FORMAT = 6  # of 0.2.0
LEARNERS: dict[str, Callable[[], Any]] = {
    "Conformal": lambda: shoal.Conformal(shoal.PassiveAggressiveRegressor()),
    "Guarded": lambda: shoal.Guarded(shoal.MultitaskPerceptron(relation="pooled", loss="hinge")),
    "HedgedSharing": shoal.HedgedSharing,
    "HedgedSharingRegressor": shoal.HedgedSharingRegressor,
    "KernelPerceptron": lambda: shoal.KernelPerceptron(kernel="rbf", gamma=0.5, budget=20),
    "MixedEffectsRegressor": shoal.MixedEffectsRegressor,
    "MultiClass": lambda: shoal.MultiClass(shoal.PassiveAggressive()),
    "MultitaskPerceptron": lambda: shoal.MultitaskPerceptron(relation=[("a", "b"), ("b", "c")], loss="logistic"),
    "OSMTL": shoal.OSMTL,
    "ROMCO": shoal.ROMCO,
    "TabularClassifier": lambda: shoal.TabularClassifier(
        "task", shoal.PassiveAggressive(), text=["title"], hash_bits=8
    ),
}


def rows() -> tuple[Any, Any, Any]:
    """Seventy rows of three tasks; the files learned the first sixty."""
    columns = np.arange(70)[:, None] * np.array([[0.7, 1.3, 2.1]])
    X = np.sin(columns)
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] > 0.1, 1, -1), np.array(list("abc") * 24)[:70]


def table() -> pl.DataFrame:
    """The same rows with columns of each kind: the task, numbers with a gap, a category, a text and a date."""
    X, _, task = rows()
    return pl.DataFrame(
        {
            "task": task,
            "price": [None if i % 9 == 4 else float(value) for i, value in enumerate(X[:, 0])],
            "offer": [["none", "coupon", "flyer"][int(value > 0) + int(value > 0.5)] for value in X[:, 1]],
            "title": [f"{'free' if value > 0 else 'report'} offer number {i}" for i, value in enumerate(X[:, 2])],
            "day": [f"2026-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(70)],
        }
    )


def answers(learner: Any) -> list[float]:
    """Of the last ten rows: margins, or predictions of numbers."""
    X, _, task = rows()
    answer = learner.decision_function if hasattr(learner, "decision_function") else learner.predict
    last = (table()[60:],) if isinstance(learner, shoal.TabularClassifier) else (X[60:], task[60:])
    return [float(value) for value in answer(*last)]


def write() -> None:
    """The files, and what their models answered."""
    X, y, task = rows()
    kept = {}
    for name, make in LEARNERS.items():
        learner = make()
        target = y if hasattr(learner, "decision_function") else X[:, 0] + y
        if isinstance(learner, shoal.TabularClassifier):
            learner.fit(table()[:60], target[:60])
        else:
            learner.fit(X[:60], target[:60], task[:60])
        learner.save(FOLDER / f"{name}.shoal")
        kept[name] = answers(learner)
    (FOLDER / "decisions.json").write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_of_the_first_release_answers_as_it_did(name: str) -> None:
    path = FOLDER / f"{name}.shoal"
    if persistence.FORMAT != FORMAT:
        with pytest.raises(ValueError, match=f"has format {FORMAT}; this shoal reads {persistence.FORMAT}: train it"):
            shoal.load(path)
        return
    kept = json.loads((FOLDER / "decisions.json").read_text(encoding="utf-8"))[name]
    np.testing.assert_allclose(answers(shoal.load(path)), kept, rtol=1e-9, atol=1e-12)


if __name__ == "__main__":
    write()
