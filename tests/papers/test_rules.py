"""The rules of claims and what they look at, on numbers whose answers are known by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.papers.numbers import outcome

from shoal.papers.claims import rules
from shoal.papers.claims.claim import Number
from shoal.papers.claims.evidence import Difference, Evidence, NotRunError, as_published, paired
from shoal.papers.experiment import Experiment, Metric

METRICS = (Metric("auc", "AUC", +1, ".4f"), Metric("error", "error", -1, ".2f", scale=100.0))
TABLE = "made/table"
A, B, C, D = [0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.7, 0.9, 0.5], [0.1, 0.2, 0.3]


def evidence(**columns: list[float]) -> Evidence:
    """Entrants on one data set; what is 0.9 in AUC is 10 % in error."""
    return on(**{name: {"one": values} for name, values in columns.items()})


def on(**tables: dict[str, list[float]]) -> Evidence:
    numbers = {
        (name, data): {"auc": values, "error": [1 - x for x in values]}
        for name, found in tables.items()
        for data, values in found.items()
    }
    return Evidence([outcome(numbers, *METRICS)])


def test_paired_differences() -> None:
    found = paired(np.array([3.0, 5.0, 7.0]), np.array([2.0, 3.0, 4.0, 99.0]))  # 1, 2 and 3: deviation 1
    assert found == pytest.approx((2.0, 1 / math.sqrt(3)))
    assert found.above
    assert not found.below
    assert paired(np.array([3.0, 5.0]), np.array([2.0, 2.0])) == pytest.approx((2.0, 1.0))
    assert paired(np.array([3.0]), np.array([2.0, 9.0])) == Difference(1.0, 0.0)


def test_above_and_below_begin_beyond_two_standard_errors() -> None:
    for mean, above in ((2.0, False), (2.0001, True)):
        assert (Difference(mean, 1.0).above, Difference(mean, 1.0).below) == (above, False)
        assert (Difference(-mean, 1.0).above, Difference(-mean, 1.0).below) == (False, above)
    assert not Difference(0.0, 0.0).below


def test_numbers_are_in_the_papers_unit() -> None:
    found = evidence(a=A)
    assert found.values(TABLE, "a", "one", "auc").tolist() == A
    assert found.values(TABLE, "a", "one", "error") == pytest.approx([10, 20, 30])
    assert found.mean(TABLE, "a", "one", "error") == pytest.approx(20)
    assert found.metric(TABLE, "error") == METRICS[1]
    assert found.experiment(TABLE).id == TABLE


def test_what_is_missing_or_undefined_has_not_been_run() -> None:
    found = evidence(a=A, b=[0.5, math.nan, 0.5])
    asks: list[Callable[[], Any]] = [
        lambda: found.values(TABLE, "b", "one", "auc"),
        lambda: found.values(TABLE, "a", "two", "auc"),
        lambda: found.experiment("made/other"),
    ]
    for ask, name in zip(asks, (TABLE, TABLE, "made/other"), strict=True):
        with pytest.raises(NotRunError, match=f"{name} has not been run") as error:
            ask()
        assert error.value.experiment == name


def test_gains_are_positive_whichever_way_the_metric_points() -> None:
    found = evidence(a=A, b=B, c=C)
    assert found.gain(TABLE, "a", "b", "one", "auc") == pytest.approx((0.1, 0.0), abs=1e-12)
    assert found.gain(TABLE, "a", "b", "one", "error") == pytest.approx((10.0, 0.0), abs=1e-12)
    gain = found.gain(TABLE, "c", "b", "one", "error")  # -10, 20 and -10: deviation sqrt(300)
    assert gain == pytest.approx((0.0, 10.0), abs=1e-12)


def test_the_best_is_by_its_mean() -> None:
    found = evidence(b=B, a=A, d=D)
    for metric in ("auc", "error"):
        assert found.best(TABLE, ["b", "a", "d"], "one", metric) == "a"
        assert found.best(TABLE, ["d", "b"], "one", metric) == "b"


def test_a_gap_between_data_sets_is_of_no_pairs() -> None:
    found = on(a={"one": [0.5, 0.7], "two": [0.1, 0.3, 0.2]}, b={"one": [0.9], "two": [0.4]})
    gap = found.gap(TABLE, "a", ("one", "two"), "auc")  # variances 0.02 of two and 0.01 of three
    assert gap == pytest.approx((0.4, math.sqrt(0.02 / 2 + 0.01 / 3)))
    assert found.gap(TABLE, "b", ("one", "two"), "auc") == pytest.approx((0.5, 0.0))


def test_the_ratio_of_means() -> None:
    found = evidence(a=[0.2, 0.4], b=[0.1, 0.1], c=[0.0, 0.0])
    assert found.ratio(TABLE, "a", "b", "one", "auc") == pytest.approx(3)
    assert found.ratio(TABLE, "b", "a", "one", "auc") == pytest.approx(1 / 3)
    assert found.ratio(TABLE, "c", "a", "one", "auc") == 0
    assert found.ratio(TABLE, "a", "c", "one", "auc") == math.inf


@pytest.mark.parametrize("metric", ["auc", "error"])
def test_who_beats_whom(metric: str) -> None:
    found = evidence(a=A, b=B, c=C, d=D)
    case = rules.beats(found, TABLE, "one", metric, ["d", "a"], ["d", "b"])
    assert case.holds
    assert (case.where, case.first.name, case.second.name) == ("one", "a", "b")
    assert case.first == Number("a", found.mean(TABLE, "a", "one", metric), ".4f" if metric == "auc" else ".2f")
    assert not rules.beats(found, TABLE, "one", metric, ["b"], ["a"]).holds
    assert not rules.beats(found, TABLE, "one", metric, ["a"], ["c"]).holds  # ahead by less than two standard errors
    assert not rules.beats(found, TABLE, "one", metric, ["a"], ["a"]).holds
    assert rules.beats(found, TABLE, "one", metric, ["a"], ["b"], "elsewhere").where == "elsewhere"
    each = list(rules.beats_each(found, TABLE, "one", metric, iter(["a", "d"]), ["b", "c", "d"]))
    assert [(one.where, one.holds, one.first.name, one.second.name) for one in each] == [
        ("one, b", True, "a", "b"), ("one, c", False, "a", "c"), ("one, d", True, "a", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bounds", "holds"),
    [({"least": 2.0}, True), ({"least": 2.1}, False), ({"most": 2.0}, True), ({"most": 1.9}, False),
     ({"least": 1.0, "most": 3.0}, True), ({"least": 2.1, "most": 3.0}, False), ({}, True)],
)  # fmt: skip
def test_a_ratio_lies_between_two_numbers(bounds: dict[str, float], holds: bool) -> None:
    case = rules.ratio(evidence(a=[0.5, 0.5], b=[0.25, 0.25]), TABLE, "one", "auc", "a", "b", **bounds)
    asked = f"asked: at most {bounds['most']:g}" if "most" in bounds else f"asked: at least {bounds.get('least', 0):g}"
    assert (case.where, case.holds) == ("one, a/b", holds)
    assert (str(case.first), str(case.second)) == ("a over b 2", asked)


def test_a_bound_is_broken_by_a_single_shuffle() -> None:
    metrics = (Metric("broken", "b", -1), Metric("value", "v", 0), Metric("bound", "b", 0))
    for broken in ([0.0, 0.0], [0.0, 1.0]):
        numbers = {("a", "one"): {"broken": broken, "value": [3.0, 4.6], "bound": [10.0, 12.2]}}
        case = rules.unbroken(Evidence([outcome(numbers, *metrics)]), TABLE, "a", "one")
        assert (case.where, case.holds) == ("one, a", not any(broken))
        assert (str(case.first), str(case.second)) == ("observed 4", "bound 11")


@pytest.mark.parametrize(
    ("ys", "most", "found"),
    [([4, 3, 2, 1], -0.9, -1.0), ([1, 3, 2, 4], -0.9, 0.8), ([1, 2, 3, 4], -0.9, 1.0), ([4, 3, 2, 1], -1.0, -1.0),
     ([4, 2, 3, 1], -0.79, -0.8), ([4, 2, 3, 1], -0.9, -0.8), ([5, 5, 5, 5], -0.9, 0.0), ([5, 5, 5, 5], 0.0, 0.0),
     ([2, 2, 1, 1], -0.8, -2 / math.sqrt(5))],
)  # fmt: skip
def test_values_fall_along_an_axis(ys: list[float], most: float, found: float) -> None:
    case = rules.trend("x", iter([1.0, 2.0, 3.0, 4.0]), iter(ys), most)
    assert (case.where, case.holds) == ("x", found <= most)
    assert (case.first.value, case.second.value) == pytest.approx((found, most))


@pytest.mark.parametrize(
    ("ours", "tau", "metric"),
    [("abcd", 1.0, "auc"), ("abdc", 4 / 6, "auc"), ("dcba", -1.0, "auc"), ("abcd", 1.0, "error")],
)
def test_learners_come_in_the_papers_order(ours: str, tau: float, metric: str) -> None:
    levels = {name: [0.9 - 0.1 * i] * 2 for i, name in enumerate(ours)}
    printed = {"auc": (0.8, 0.7, 0.6, 0.5), "error": (20.0, 30.0, 40.0, 50.0)}[metric]
    published = {(name, "one", metric): (value, None) for name, value in zip("abcd", printed, strict=True)}
    numbers = {(name, "one"): {"auc": xs, "error": [1 - x for x in xs]} for name, xs in levels.items()}
    found = Evidence([outcome(numbers, *METRICS, published=published)])
    for least, holds in ((tau - 1e-9, True), (tau + 1e-6, False)):
        case = rules.same_order(found, TABLE, "one", metric, "abcd", least)
        assert (case.where, case.holds) == ("one", holds)
        assert case.first.value == pytest.approx(tau)
        assert case.second == ("asked: at least", least, ".2f")
    for name, numbers_of in numbers.items():
        numbers_of["auc"] = numbers_of["error"] = [0.9 if name[0] in "ab" else 0.1]
    two = rules.same_order(Evidence([outcome(numbers, *METRICS, published=published)]), TABLE, "one", metric, "abcd", 0)
    assert two.first.value == pytest.approx((1 if metric == "auc" else -1) * 4 / math.sqrt(4 * 6))
    same = rules.same_order(evidence_of(published, 0.5), TABLE, "one", metric, "abcd", 0.0)
    assert (same.first.value, same.holds) == (0.0, True)


def evidence_of(published: dict[Any, Any], level: float) -> Evidence:
    numbers = {(name, "one"): {"auc": [level], "error": [level]} for name in "abcd"}
    return Evidence([outcome(numbers, *METRICS, published=published)])


def test_the_main_entrants_are_no_variants() -> None:
    made = outcome({(name, "one"): {"auc": [0.5], "error": [0.5]} for name in "abcd"}, *METRICS)
    a, b, c, d = made.experiment.entrants
    changed = replace(made.experiment, entrants=(a, replace(b, variant_of="a"), c, d))
    found = Evidence([replace(made, experiment=changed)])
    assert rules.mains(found, TABLE) == ["a", "c", "d"]
    assert rules.mains(found, TABLE, iter("c")) == ["a", "d"]


def test_printed_numbers_are_runs_of_one_shuffle() -> None:
    made = outcome({("a", "one"): {"auc": [0.5], "error": [0.5]}}, *METRICS).experiment
    printed = {("a", "one", "auc"): (0.75, None), ("a", "one", "error"): (12.5, 0.3)}
    experiments: dict[str, Experiment] = {TABLE: replace(made, published=printed)}
    found = as_published(experiments)
    assert found.values(TABLE, "a", "one", "auc").tolist() == [0.75]
    assert found.values(TABLE, "a", "one", "error").tolist() == [12.5]  # in the paper's unit again
    assert found.published(TABLE, "a", "one", "error") == (12.5, 0.3)
