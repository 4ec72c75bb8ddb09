"""scikit-learn's own checks on every batch learner of the table (they pass no task)."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.batch.cases import BATCH


# Some checks give features around 100 with random labels: liblinear stalls there, and says so, as it should.
@pytest.mark.filterwarnings("ignore:a linear SVM did not converge")
@parametrize_with_checks([make() for make in BATCH.values()])
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
