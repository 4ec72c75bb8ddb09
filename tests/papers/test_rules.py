"""The rules of claims and what they look at, on numbers whose answers are known by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.papers.numbers import outcome

from shoal.evaluation.comparison import holm
from shoal.papers.claims import rules
from shoal.papers.claims.claim import Number
from shoal.papers.claims.evidence import Evidence, NotRunError, as_published
from shoal.papers.errors import Difference, one_sample, paired, unpaired
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
    assert found[:3] == pytest.approx((2.0, 1 / math.sqrt(3), 2))
    assert found.corrected is None
    assert paired(np.array([3.0, 5.0]), np.array([2.0, 2.0]))[:3] == pytest.approx((2.0, 1.0, 1))
    assert paired(np.array([3.0]), np.array([2.0, 9.0])) == Difference(1.0, 0.0)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045)])
def test_above_and_below_begin_at_the_quantile_of_t(freedom: int, quantile: float) -> None:
    """The two-sided 5 % points, as tables print them."""
    for mean, above in ((quantile - 1e-3, False), (quantile + 1e-3, True)):
        found = Difference(mean, 1.0, freedom)
        assert (found.above, found.below) == (above, False)
        opposite = Difference(-mean, 1.0, freedom)
        assert (opposite.above, opposite.below) == (False, above)
    assert Difference(quantile, 1.0, freedom).p == pytest.approx(0.05, abs=1e-4)


def test_without_an_error_any_difference_is_one() -> None:
    assert Difference(1e-9, 0.0).p == 0.0
    assert Difference(0.0, 0.0).p == Difference(-1.0, 0.5).p == 1.0
    assert not Difference(0.0, 0.0).below
    assert str(Difference(1.0, 0.0)) == ""


def test_overlapping_splits_widen_the_error() -> None:
    """Nadeau and Bengio: with n = 4, deviation 2 and three test rows to a training row, 2 sqrt(1/4 + 3)."""
    values = np.array([1.0, 5.0, 3.0, 3.0]) * math.sqrt(3 / 2)  # squares about the mean: 12, over 3 is 4
    found = one_sample(values, overlap=3.0)
    assert found[:3] == pytest.approx((3 * math.sqrt(3 / 2), 1.0, 3))
    assert found.corrected == pytest.approx(2 * math.sqrt(3.25))
    assert found.corrected_p > found.p
    assert str(found) == "t = 3.7, 1.0 corrected for overlap"
    assert one_sample(values).corrected is None
    assert one_sample(values).corrected_p == one_sample(values).p


def test_welchs_error() -> None:
    """Variances 2 of two and 1 of three: 1 + 1/3, with (4/3)^2 / (1 + (1/3)^2 / 2) degrees of freedom."""
    found = unpaired(np.array([1.0, 3.0]), np.array([0.0, 1.0, 2.0]))
    assert found[:3] == pytest.approx((1.0, math.sqrt(4 / 3), (16 / 9) / (1 + 1 / 18)))
    assert unpaired(np.array([1.0]), np.array([0.0]))[:2] == (1.0, 0.0)


def test_holm_multiplies_by_how_many_are_left() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])  # 0.04 alone is below 0.06, and may not be
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


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
    assert found.gain(TABLE, "a", "b", "one", "auc")[:2] == pytest.approx((0.1, 0.0), abs=1e-12)
    assert found.gain(TABLE, "a", "b", "one", "error")[:2] == pytest.approx((10.0, 0.0), abs=1e-12)
    gain = found.gain(TABLE, "c", "b", "one", "error")  # -10, 20 and -10: deviation sqrt(300)
    assert gain[:3] == pytest.approx((0.0, 10.0, 2), abs=1e-12)


def test_the_best_is_by_its_mean() -> None:
    found = evidence(b=B, a=A, d=D)
    for metric in ("auc", "error"):
        assert found.best(TABLE, ["b", "a", "d"], "one", metric) == "a"
        assert found.best(TABLE, ["d", "b"], "one", metric) == "b"


def test_a_gap_between_data_sets_is_of_no_pairs() -> None:
    found = on(a={"one": [0.5, 0.7], "two": [0.1, 0.3, 0.2]}, b={"one": [0.9], "two": [0.4]})
    gap = found.gap(TABLE, "a", ("one", "two"), "auc")  # variances 0.02 of two and 0.01 of three
    assert gap[:2] == pytest.approx((0.4, math.sqrt(0.02 / 2 + 0.01 / 3)))
    assert found.gap(TABLE, "b", ("one", "two"), "auc")[:2] == pytest.approx((0.5, 0.0))


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
    [({"least": 1.9}, True), ({"least": 2.1}, False), ({"most": 2.1}, True), ({"most": 1.9}, False)],
)
def test_a_ratio_is_beyond_a_factor(bounds: dict[str, Any], holds: bool) -> None:
    case = rules.ratio(evidence(a=[0.5, 0.5], b=[0.25, 0.25]), TABLE, "one", "auc", "a", "b", **bounds)
    [(kind, factor)] = bounds.items()
    assert (case.where, case.holds) == ("one, a/b", holds)
    assert (str(case.first), str(case.second)) == ("a over b 2", f"asked: at {kind} {factor:g}")


def test_the_ratios_of_shuffles_have_an_error() -> None:
    """Ratios of 1, 2 and 4: logarithms 0, 1 and 2 times ln 2, an error of ln 2 / sqrt(3)."""
    found = evidence(a=[0.1, 0.2, 0.4], b=[0.1, 0.1, 0.1], c=[0.0, 0.0, 0.0])
    difference = rules.ratio(found, TABLE, "one", "auc", "a", "b", least=1.0).difference
    assert difference is not None
    assert difference[:3] == pytest.approx((math.log(2), math.log(2) / math.sqrt(3), 2))
    assert not difference.above
    assert rules.ratio(found, TABLE, "one", "auc", "a", "c", least=10.0).holds
    assert rules.ratio(found, TABLE, "one", "auc", "c", "a", most=0.1).holds


@pytest.mark.parametrize(("margin", "holds"), [(0.1, False), (0.13, False), (0.2, True)])
def test_no_worse_is_less_than_a_margin_behind(margin: float, holds: bool) -> None:
    """Behind by 0.1 with an error of 0.01 and 2 degrees of freedom: the interval ends at 0.143."""
    found = evidence(a=[0.5, 0.5, 0.5], b=[0.6, 0.6 - 0.01 * math.sqrt(3), 0.6 + 0.01 * math.sqrt(3)])
    case = rules.no_worse(found, TABLE, "one", "auc", "a", "b", margin, "here")
    assert (case.where, case.holds) == ("here", holds)
    assert rules.no_worse(found, TABLE, "one", "auc", "b", "a", 0.0).holds


def test_a_bound_is_broken_by_a_single_shuffle() -> None:
    metrics = (Metric("broken", "b", -1), Metric("value", "v", 0), Metric("bound", "b", 0))
    for broken in ([0.0, 0.0], [0.0, 1.0]):
        numbers = {("a", "one"): {"broken": broken, "value": [3.0, 4.6], "bound": [10.0, 12.2]}}
        case = rules.unbroken(Evidence([outcome(numbers, *metrics)]), TABLE, "a", "one")
        assert (case.where, case.holds) == ("one, a", not any(broken))
        assert (str(case.first), str(case.second)) == ("observed 4", "bound 11")
        assert case.near == pytest.approx(3.8 / 11.1)


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
