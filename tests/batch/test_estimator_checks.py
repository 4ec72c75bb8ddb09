"""scikit-learn's own checks on every batch learner of the table (they pass no task)."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.batch.cases import BATCH


@parametrize_with_checks([make() for make in BATCH.values()])
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
