"""scikit-learn's own checks on every learner of the table whose tasks need no names (they pass no task)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import has_fit_parameter
from tests.cases import LEARNERS, OPEN, refuses_weights

from shoal import Learner, PassiveAggressive
from shoal.evaluation import Periodic

# It looks for the word "zero" in the refusal, and the reason in that is each learner's own.
BY_WORDS = {"check_all_zero_sample_weights_error"}
ORDER = "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"
WEIGHTS = (
    "check_all_zero_sample_weights_error", "check_classifiers_one_label_sample_weights", "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten", "check_sample_weights_pandas_series", "check_sample_weights_shape", *ORDER,
)  # fmt: skip


def expected_to_fail(estimator: Any) -> dict[str, str]:
    """Checks that a learner cannot pass, with the reason; one that passes after all is an error."""
    found = {}
    if isinstance(estimator, PassiveAggressive) and estimator.variant == "PA":
        reason = "PA repairs every row entirely, so on overlapping classes its last row decides (Crammer et al., 4)"
        found["check_classifiers_train"] = reason
    if not has_fit_parameter(estimator, "sample_weight"):
        return found
    if refuses_weights(estimator):
        found |= dict.fromkeys(WEIGHTS, "it hands sample_weight to the learner that it holds, which has none")
    elif isinstance(estimator, Learner) and not isinstance(estimator, Periodic):
        found |= dict.fromkeys(ORDER, "it learns in order, and the check shuffles the rows that it repeats")
    return found


def assert_passes_scikit_learns_checks(estimator: Any) -> None:
    """All of them in one test, which names each that failed."""
    expected = expected_to_fail(estimator)
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(results) > 30
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # its switch, SCIPY_ARRAY_API, would change SciPy for all other tests
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert not passed & set(expected) - BY_WORDS


def of_each_kind(table: Mapping[str, Callable[[], Any]]) -> list[str]:
    """The first setting of each class as a classifier and as a regressor: by others no check goes another way."""
    kinds: dict[Any, str] = {}
    for name, make in table.items():
        kinds.setdefault((type(make()), is_classifier(make())), name)
    return [*kinds.values()]


@pytest.mark.parametrize("name", [*of_each_kind({name: LEARNERS[name] for name in OPEN}), "PassiveAggressive-PA"])
def test_scikit_learns_checks(name: str) -> None:
    assert_passes_scikit_learns_checks(LEARNERS[name]())
