"""Which learners are left out of which generic test, and why: the one table, audited by test_contract_exclusions.py.

What only chooses a kind of stream, say for regressors, is not here but in the tables of cases.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

ALL_SUMS = "its weights are functions of what all tasks learned, so that they change where one leaves"
RATES = "its rates depend on the number of tasks, and all weights with them"
ROUNDING = "its weights are computed anew from the sums that stay, which may round differently"
MANY_LABELS = "a third label is one more class for it, and a single one needs no partner: see test_multi_class.py"
AROUND_ANOTHER = "it holds estimators of others, which need not have coefficients"
KERNEL = "its functions are sums of kernels, which have no coefficients"
HEDGED = "it weighs a row's gradients and losses by h, with the rates of one row"
ONCE = "it scales a row by an r.m.s. in which the row counts once, and drifts or follows its covariance once a row"
HASHED = "records of pairs of columns have places by a hash of these: now and then two share one"
LOSS_BEFORE = "it counts the loss of a row h times as it was before the row"
OWN_SETS = "it chooses the tasks' own sets in turn, in the order of appearance"

WHOLE_ROWS = "it compares whole rows, so that its decisions are no sums over features"
OF_WHOLE_ROWS = {
    "KernelPerceptron": WHOLE_ROWS,
    "KernelPerceptron-linear-budget": WHOLE_ROWS,
    "KernelPerceptron-independent": WHOLE_ROWS,
    "KernelPerceptron-graph": WHOLE_ROWS,
    "SecondOrderPerceptron": WHOLE_ROWS,
    "SecondOrderPerceptron-rbf-budget": WHOLE_ROWS,
    "SecondOrderPerceptron-independent": WHOLE_ROWS,
    "SecondOrderPerceptron-matrix": WHOLE_ROWS,
    "SecondOrderPerceptron-primal": WHOLE_ROWS,
    "SecondOrderPerceptron-primal-graph": WHOLE_ROWS,
    "SecondOrderPerceptron-primal-pooled": WHOLE_ROWS,
    "SchattenPerceptron-rbf": WHOLE_ROWS,
}
UNEXPLAINED = OF_WHOLE_ROWS
PLACES = "its columns of X are named by their places"
OUTSIDE = ("OutsideForecast", "OutsideForecast-numbers")
CROSSING = ("HedgedSharing", "HedgedSharing-pooled", "HedgedSharingRegressor")
KEEPS_ROWS = "it keeps rows that it erred on, with a budget up to that many"
NAME_THEIRS = {"KernelPerceptron-graph", "SecondOrderPerceptron-matrix", "SecondOrderPerceptron-primal-graph"}

EXCLUSIONS: dict[str, dict[str, str]] = {
    "test_forgetting_a_task_leaves_the_weights_of_the_others": {
        "KernelPerceptron": ALL_SUMS,
        "KernelPerceptron-linear-budget": ALL_SUMS,
        "KernelPerceptron-independent": ROUNDING,
        "MultitaskPerceptron": RATES,
        "MultitaskPerceptron-auto": RATES,
        "MultitaskPerceptron-b-logistic": RATES,
        "MultitaskPerceptron-squared-hinge": ROUNDING,
        "MultitaskRegressor": ROUNDING,
        "MultitaskRegressor-auto": RATES,
        "MultitaskRegressor-epsilon": RATES,
        "MultitaskRegressor-quantile": RATES,
        "PNormPerceptron": ALL_SUMS,
        "PNormPerceptron-b-sqrt": ALL_SUMS,
        "SchattenPerceptron": ALL_SUMS,
        "SchattenPerceptron-rbf": ALL_SUMS,
        "SchattenPerceptron-shared": ALL_SUMS,
        "SecondOrderPerceptron": ALL_SUMS,
        "SecondOrderPerceptron-rbf-budget": ALL_SUMS,
        "SecondOrderPerceptron-independent": ROUNDING,
        "SecondOrderPerceptron-primal": ROUNDING,
        "OutsideForecast": ROUNDING,
        "Hierarchy": RATES,
    },
    "test_memory_does_not_grow_with_rows": {
        **{name: KEEPS_ROWS for name in OF_WHOLE_ROWS if "primal" not in name},
        **dict.fromkeys(CROSSING, "its trees are trained on the last 16,384 rows, which it keeps"),
    },
    "test_feature_order_changes_nothing": dict.fromkeys(CROSSING, HASHED) | dict.fromkeys(OUTSIDE, PLACES),
    "test_features_of_dicts_appear_over_time": dict.fromkeys(CROSSING, HASHED) | dict.fromkeys(OUTSIDE, PLACES),
    "test_baselines_are_learners_of_the_same_kind_of_target": dict.fromkeys(
        OUTSIDE, "each task weighs forecasts by itself, whatever the learner shares"
    ),
    "test_contributions_add_up_to_the_decision": UNEXPLAINED,
    "test_dict_rows_are_explained_by_name_and_unseen_names_add_nothing": UNEXPLAINED,
    "test_threads_explain_at_once": UNEXPLAINED,
    "test_similar_tasks_are_the_other_tasks_in_order": {
        name: why for name, why in OF_WHOLE_ROWS.items() if name != "SchattenPerceptron-rbf"
    },
    "test_an_unseen_task_is_explained_by_what_is_shared": {
        name: why for name, why in UNEXPLAINED.items() if name not in NAME_THEIRS
    },
    "test_whole_weights_are_repeated_rows": {
        "HedgedSharing": HEDGED,
        "HedgedSharing-independent": HEDGED,
        "HedgedSharing-pooled": HEDGED,
        "HedgedSharingRegressor": HEDGED,
        "HedgedSharingRegressor-median": HEDGED,
        "MixedEffects": ONCE,
        "MixedEffects-fixed": ONCE,
        "MixedEffects-pooled": ONCE,
        "MixedEffectsRegressor": ONCE,
        "MixedEffectsRegressor-independent": ONCE,
        "TaskLevels": ONCE,
        "TaskLevelsRegressor": ONCE,
        "Guarded": LOSS_BEFORE,
        "Guarded-numbers": LOSS_BEFORE,
        "Hierarchy": LOSS_BEFORE,
        "Hierarchy-numbers": LOSS_BEFORE,
        "MultitaskPerceptron-auto": LOSS_BEFORE,
        "MultitaskRegressor-auto": LOSS_BEFORE,
        **dict.fromkeys(OUTSIDE, LOSS_BEFORE),
        "LabelQuery": "it asks once for the label of a row of any weight",
        "MultitaskPerceptron-b-logistic": "its steps shrink with the rounds, and repeated rows are rounds of their own",
        "MultitaskRegressor-epsilon": "its steps shrink with the rounds, and repeated rows are rounds of their own",
        "PassiveAggressive-pooled": "PA-II makes one step for C h in place of C, not h steps",
    },
    "test_bad_labels": {"MultiClass": MANY_LABELS, "MultiClass-OSMTL": MANY_LABELS},
    "test_one_unknown_label_needs_classes": {"MultiClass": MANY_LABELS, "MultiClass-OSMTL": MANY_LABELS},
    "test_the_order_of_rows_does_not_matter": {
        "IndependentTasks-tree": "a tree breaks ties by the order of rows",
        "SHAMO": "its random starts are drawn task by task, in the order of appearance",
        "SparseMTL": OWN_SETS,
        "SparseMTL-few": OWN_SETS,
        "SparseMTL-task": OWN_SETS,
        "SparseMTLRegressor": OWN_SETS,
        "SparseMTLRegressor-few": OWN_SETS,
    },
    "test_values_are_products_with_coef": {
        "IndependentTasks-logistic": AROUND_ANOTHER,
        "IndependentTasks-tree": AROUND_ANOTHER,
        "IndependentTasks-ridge": AROUND_ANOTHER,
        "PooledTasks-ridge": AROUND_ANOTHER,
        "RegMTL-rbf": KERNEL,
        "RegMTL-newton-rbf": KERNEL,
        "RegMTLRegressor-rbf-squared": KERNEL,
        "SparseMTL": KERNEL,
        "SparseMTL-few": KERNEL,
        "SparseMTL-task": KERNEL,
        "SparseMTLRegressor": KERNEL,
        "SparseMTLRegressor-common": KERNEL,
        "SparseMTLRegressor-few": KERNEL,
    },
}

OFFERED: dict[str, set[str]] = {}  # the settings that each test named without the table: what the audit compares with


def settings_for(test: str, names: Iterable[str]) -> list[str]:
    """Those of these settings on which the test runs."""
    names = list(names)
    OFFERED.setdefault(test, set()).update(names)
    return [name for name in names if name not in EXCLUSIONS.get(test, {})]


def each_of(names: Iterable[str]) -> Callable[[Any], Any]:
    """Run a test on each of these settings but those that the table leaves out of it."""
    return lambda test: pytest.mark.parametrize("name", settings_for(test.__name__, names))(test)
