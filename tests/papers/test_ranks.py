"""Tests over shuffles, on tables whose results are known by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.papers.numbers import outcome

from shoal.evaluation.comparison import critical_difference
from shoal.papers.experiment import Metric
from shoal.papers.outcome import Outcome
from shoal.papers.ranks import rankings

AUC, ERROR = Metric("auc", "AUC", +1), Metric("error", "error", -1)


def table(*columns: list[float], metric: Metric = AUC, champion: str = "a") -> Outcome:
    """Entrants a, b, ... on one data set."""
    numbers = {(name, "one"): {metric.name: values} for name, values in zip("abcdef", columns, strict=False)}
    return outcome(numbers, metric, champion=champion)


def rival(*ahead: int, n: int = 8) -> list[float]:
    """One that is 1, 2, ... behind a champion of zeros, but ahead by so much in these."""
    return [float(i if i in ahead else -i) for i in range(1, n + 1)]


@pytest.mark.parametrize("sign", [1, -1])
def test_holm_never_falls(sign: int) -> None:
    """Rank 2 of eight against it: 3 of the 128 ways to choose signs are as far out; rank 7: 19 are. Three tests."""
    metric = AUC if sign == 1 else ERROR
    columns = [[0.0] * 8, rival(2), rival(2), rival(7)]
    [found] = rankings(table(*([sign * x for x in column] for column in columns), metric=metric))
    assert found.against == pytest.approx({"b": 3 * 3 / 128, "c": 3 * 3 / 128, "d": 19 / 128})


def test_holm_multiplies_by_how_many_are_left() -> None:
    [found] = rankings(table([0.0] * 8, rival(7), rival(), rival(1), [0.0] * 8))
    assert found.against == pytest.approx({"c": 4 * 1 / 128, "d": 3 * 2 / 128, "b": 2 * 19 / 128, "e": 1.0})
    [found] = rankings(table([0.0] * 8, rival(5, 4), rival(6, 3), rival(4, 3, 2)))  # 32 ways each
    assert found.against == pytest.approx(dict.fromkeys("bcd", 3 * 32 / 128))
    [found] = rankings(table([0.0] * 8, [0.0, *rival(n=7)], [0.0, *rival(n=7)], rival()))  # one shuffle is alike
    assert found.against == pytest.approx({"d": 3 / 128, "b": 2 / 64, "c": 2 / 64})
    [found] = rankings(table([0.0] * 8, rival(8, 7), rival(8, 7), rival(8, 7)))
    assert found.against == dict.fromkeys("bcd", 1.0)  # no probability is above it


def test_too_few_shuffles_tell_nothing() -> None:
    """With three rivals the least corrected p is 3 / 2^(n - 1): 0.047 of seven shuffles, 0.094 of six."""
    for n, tells in ((7, True), (6, False)):
        [found] = rankings(table([0.0] * n, rival(n=n), rival(n=n), rival(n=n)))
        assert found.against == (pytest.approx(dict.fromkeys("bcd", 3 / 64)) if tells else {})
    [found] = rankings(table([0.0] * 6, rival(n=6), rival(n=6)))  # two rivals: 0.0625
    assert found.against == {}
    assert rankings(table([0.0] * 8, rival(), rival(), champion="nobody"))[0].against == {}


def test_mean_ranks_and_friedmans_test() -> None:
    """Ranks 1 2 3, 1 2 3, 1 3 2 and 1.5 1.5 3: sums 4.5, 8.5 and 11; chi square 5.375 / (1 - 6 / 96), 2 degrees."""
    columns = [[9.0, 9.0, 9.0, 5.0], [8.0, 8.0, 1.0, 5.0], [7.0, 7.0, 2.0, 1.0]]
    for sign, metric in ((1, AUC), (-1, ERROR)):
        [found] = rankings(table(*([sign * x for x in column] for column in columns), metric=metric))
        assert found.ranks.tolist() == [4.5 / 4, 8.5 / 4, 11 / 4]
        assert (found.names, found.n, found.of, found.data) == (["a", "b", "c"], 4, "shuffles", "one")
        assert np.isnan([found.p_value, found.critical_difference]).all()  # shuffles of the same rows are no data sets
        numbers = {
            (name, f"d{i}"): {metric.name: [sign * column[i]]}
            for name, column in zip("abc", columns, strict=True)
            for i in range(4)
        }
        [found] = rankings(outcome(numbers, metric))
        chi_square = (12 * (4.5**2 + 8.5**2 + 11**2) / (4 * 3 * 4) - 3 * 4 * 4) / (1 - 6 / (4 * (27 - 3)))
        assert found.p_value == pytest.approx(np.exp(-chi_square / 2))  # of a chi square of 2 degrees
        assert found.critical_difference == critical_difference(3, 4) == pytest.approx(2.3437 * np.sqrt(12 / 24), 1e-4)
    [found] = rankings(outcome({(name, f"d{i}"): {"auc": [float(i)]} for name in "abc" for i in range(3)}, AUC))
    assert (found.p_value, found.ranks.tolist()) == (1.0, [2.0] * 3)  # all are alike


def test_who_is_ranked() -> None:
    """Those with two numbers or more and no undefined one, over the shuffles that all have; three of them or more."""
    [found] = rankings(table([3.0, 3.0, 0.0], [2.0, 2.0], [1.0, 1.0, 9.0], [4.0], [9.0, np.nan]))
    assert (found.names, found.n, found.ranks.tolist()) == (["a", "b", "c"], 2, [1.0, 2.0, 3.0])
    assert rankings(table([3.0, 3.0], [2.0, 2.0])) == []
    assert rankings(table([3.0], [2.0], [1.0])) == []
    neither = table([3.0, 3.0], [2.0, 2.0], [1.0, 1.0], metric=replace(AUC, better=0))
    assert rankings(neither) == []
    alone = table([3.0, 3.0], [2.0, 2.0], [1.0, 1.0])
    assert rankings(replace(alone, experiment=replace(alone.experiment, shuffles=False))) == []


def test_over_data_sets_means_are_ranked() -> None:
    levels = {"a": (0.9, 0.8, 0.7, 0.1), "b": (0.5, 0.9, 0.5, 0.5), "c": (0.1, 0.1, 0.1, 0.9)}
    numbers = {(who, f"d{i}"): {"auc": [x - 0.05, x + 0.05]} for who, xs in levels.items() for i, x in enumerate(xs)}
    *each, overall = rankings(outcome(numbers, AUC))
    assert [one.data for one in each] == ["d0", "d1", "d2", "d3"]
    assert (overall.data, overall.of, overall.n) == ("all data sets", "data sets", 4)
    assert overall.ranks.tolist() == [(1 + 2 + 1 + 3) / 4, (2 + 1 + 2 + 2) / 4, (3 + 3 + 3 + 1) / 4]
    assert np.isnan(overall.agreement)
    three = {key: values for key, values in numbers.items() if key[1] != "d3"}
    assert [(one.data, one.n) for one in rankings(outcome(three, AUC))][-1] == ("all data sets", 3)
    del numbers["c", "d3"]  # who lacks a data set is not ranked, and two are too few
    assert [one.data for one in rankings(outcome(numbers, AUC))] == ["d0", "d1", "d2"]
    two = {key: values for key, values in numbers.items() if key[1] in ("d0", "d1")}
    assert [one.data for one in rankings(outcome(two, AUC))] == ["d0", "d1"]


@pytest.mark.parametrize("sign", [1, -1])
def test_agreement_with_the_papers_order(sign: int) -> None:
    """Of the six pairs of a, b, c and d, five come in the paper's order: tau is 4 / 6. Numbers of e are not printed."""
    metric = AUC if sign == 1 else ERROR
    made = table(*([sign * x] * 2 for x in (4.0, 3.0, 1.0, 2.0, 9.0)), metric=metric)
    printed = {(who, "one", metric.name): (sign * x, None) for who, x in zip("abcd", (9.0, 8.0, 7.0, 6.0), strict=True)}
    for published, expected in ((printed, 4 / 6), (dict(list(printed.items())[:3]), 1.0)):
        [found] = rankings(replace(made, experiment=replace(made.experiment, published=published)))
        assert found.agreement == pytest.approx(expected)
    two = dict(list(printed.items())[:2])
    [found] = rankings(replace(made, experiment=replace(made.experiment, published=two)))
    assert np.isnan(found.agreement)


@pytest.mark.parametrize(
    ("k", "q"),
    [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (8, 3.031), (9, 3.102), (10, 3.164)],
)
def test_nemenyis_table_as_demsar_prints_it(k: int, q: float) -> None:
    assert critical_difference(k, 6) == pytest.approx(q * np.sqrt(k * (k + 1) / 36), abs=1.1e-3 * np.sqrt(k * (k + 1)))
