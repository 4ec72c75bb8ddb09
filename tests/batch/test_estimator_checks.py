"""scikit-learn's own checks on every batch learner of the table (they pass no task)."""

from __future__ import annotations

import pytest
from tests.batch.cases import BATCH
from tests.test_estimator_checks import assert_passes_scikit_learns_checks, of_each_kind


@pytest.mark.parametrize("name", of_each_kind(BATCH))
def test_scikit_learns_checks(name: str) -> None:
    assert_passes_scikit_learns_checks(BATCH[name]())
