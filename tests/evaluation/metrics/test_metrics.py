"""The metrics are numbers made by hand, and scikit-learn's, overall and for each task, however the stream is cut."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics as sk

from shoal.evaluation.metrics.auc import Ranking, aucs
from shoal.evaluation.metrics.binary import Confusion, Forecasts
from shoal.evaluation.metrics.calibration import N_BINS
from shoal.evaluation.metrics.multiclass import ClassErrors, ClassIndex
from shoal.evaluation.metrics.registry import METRICS, choose
from shoal.evaluation.metrics.regression import QuantileLoss, Residuals
from shoal.evaluation.metrics.scoreboard import Scoreboard

N_TASKS = 40
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # task codes, labels, scores
Reference = Callable[[np.ndarray, np.ndarray], float]  # of labels and scores
Way = Callable[[Callable[[], Any], np.ndarray, np.ndarray, np.ndarray], Any]  # to feed a metric


@pytest.fixture(params=range(3))
def rows(request: pytest.FixtureRequest) -> Rows:
    """Task codes, labels and scores with many ties; some tasks have few rows or one label."""
    rng = np.random.default_rng(request.param)
    code = (N_TASKS * rng.random(2_000) ** 3).astype(np.int64)
    truth = np.where(rng.random(2_000) < 0.3, 1.0, -1.0)
    truth[code == 3] = 1.0
    score = np.round(truth * 0.3 + rng.normal(size=2_000), 1)
    return code, truth, score


def fed(
    make: Callable[[], Any],
    code: np.ndarray,
    truth: np.ndarray,
    score: np.ndarray,
    cuts: tuple[int, ...] = (0, 1, 17, 900, 2_000),
) -> Any:
    metric = make()
    for first, last in pairwise(cuts):
        metric.update(code[first:last], truth[first:last], score[first:last], N_TASKS)
    return metric.values(N_TASKS)


def absorbed(
    make: Callable[[], Any],
    code: np.ndarray,
    truth: np.ndarray,
    score: np.ndarray,
    cuts: tuple[int, ...] = (0, 0, 1, 17, 900, 900, 2_000),
) -> Any:
    """The same, each part counted by a metric of its own, as tasks appear."""
    total, n_tasks = make(), 0
    for first, last in pairwise(cuts):
        part, n_tasks = make(), max(n_tasks, 0, *(code[:last] + 1))
        part.update(code[first:last], truth[first:last], score[first:last], n_tasks)
        total.absorb(part, n_tasks)
    return total.values(N_TASKS)


# Eight rows of two tasks. The scores are log-odds: 3 stands for a probability of 3/4, 9 for one of 9/10.
TASK = np.array([0, 0, 0, 0, 1, 1, 1, 1])
LABEL = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
ODDS = np.log([3.0, 1 / 3, 1.0, 1 / 9, 9.0, 3.0, 1 / 3, 1 / 9])
LOSS = {3: math.log(4 / 3), 1 / 3: math.log(4), 1: math.log(2), 9: math.log(10 / 9)}  # by the odds of the truth
REAL, GUESS = np.array([1.0, 3.0, 10.0, 14.0, 12.0]), np.array([2.0, 2.0, 9.0, 12.0, 13.0])  # errors -1 1 | 1 2 -1
CLASSES = np.array([0.0, 1.0, 2.0, 0.0, 0.0])
JUDGED = np.array([[0.0, 0.5], [2.0, 0.25], [2.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # prediction, probability of the truth
NAN = math.nan


@pytest.mark.parametrize("way", [fed, absorbed])
@pytest.mark.parametrize(
    ("metric", "name", "overall", "per_task"),
    [
        (Confusion, "error", 3 / 8, [2 / 4, 1 / 4]),
        (Confusion, "f1_positive", 4 / 7, [2 / 4, 2 / 3]),  # true + 2, false + 2, false - 1
        (Confusion, "f1_negative", 6 / 9, [2 / 4, 4 / 5]),  # true - 3
        (Ranking, "auc", 12 / 15, [3 / 4, 3 / 3]),  # pairs won: 4 and a tie, 2 and a tie, 5
        (Forecasts, "log_loss", (2 * LOSS[3] + 2 * LOSS[1 / 3] + LOSS[1] + 3 * LOSS[9]) / 8,
         [(LOSS[3] + LOSS[1 / 3] + LOSS[1] + LOSS[9]) / 4, (2 * LOSS[9] + LOSS[1 / 3] + LOSS[3]) / 4]),
        (Forecasts, "brier", (2 / 16 + 2 * 9 / 16 + 1 / 4 + 3 / 100) / 8,
         [(1 / 16 + 9 / 16 + 1 / 4 + 1 / 100) / 4, (2 / 100 + 9 / 16 + 1 / 16) / 4]),
        (Forecasts, "calibration_error", (0.5 + 0.5 + 0.5 + 0.2 + 0.1) / 8, [NAN, NAN]),
        (Residuals, "mae", 6 / 5, [1.0, 4 / 3]),
        (Residuals, "rmse", math.sqrt(8 / 5), [1.0, math.sqrt(2)]),
        (Residuals, "explained_variance", 1 - 7.2 / 130, [0.0, 1 - (14 / 3) / 8]),
        (ClassErrors, "error", 2 / 5, [1 / 2, 1 / 3]),
        (ClassErrors, "log_loss", (math.log(2) + math.log(4) + 15 * math.log(10)) / 5,
         [(math.log(2) + math.log(4)) / 2, 15 * math.log(10) / 3]),
    ],
)  # fmt: skip
def test_numbers_made_by_hand(
    metric: type[Any], name: str, overall: float, per_task: list[float], way: Callable[..., Any]
) -> None:
    if metric is Residuals:
        found = way(metric, TASK[2:7], REAL, GUESS, cuts=(0, 1, 3, 5))[name]
    elif metric is ClassErrors:
        found = way(metric, TASK[2:7], CLASSES, JUDGED, cuts=(0, 1, 3, 5))[name]
    else:
        found = way(metric, TASK, LABEL, ODDS, cuts=(0, 1, 3, 3, 8))[name]
    assert found.overall == pytest.approx(overall, rel=1e-12)
    assert found.per_task[:2] == pytest.approx(per_task, rel=1e-12, nan_ok=True)
    assert np.isnan(found.per_task[2:]).all()


def test_counts_of_predicted_classes_made_by_hand() -> None:
    metric = ClassErrors()
    metric.update(TASK[2:7], CLASSES, JUDGED, 2)
    assert metric.confusion() == {(0, 0): 2, (0, 1): 1, (1, 2): 1, (2, 2): 1}


def assert_equals(values: Any, reference: Reference, code: np.ndarray, truth: np.ndarray, score: np.ndarray) -> None:
    assert values.overall == pytest.approx(reference(truth, score), rel=1e-12)
    for task in range(N_TASKS):
        mine = code == task
        expected = reference(truth[mine], score[mine]) if mine.any() else np.nan
        assert values.per_task[task] == pytest.approx(expected, rel=1e-9, nan_ok=True), f"task {task}"


def auc_or_nan(truth: np.ndarray, score: np.ndarray) -> float:
    return sk.roc_auc_score(truth, score) if len(set(truth)) == 2 else np.nan


def f1_of(label: float) -> Reference:
    def f1(truth: np.ndarray, score: np.ndarray) -> float:
        predicted = np.where(score >= 0, 1.0, -1.0)
        if label not in truth and label not in predicted:
            return np.nan
        return float(sk.f1_score(truth, predicted, pos_label=label, labels=[-1.0, 1.0], zero_division=0))

    return f1


def error_of(truth: np.ndarray, score: np.ndarray) -> float:
    return float(1 - sk.accuracy_score(truth, np.where(score >= 0, 1.0, -1.0)))


@pytest.mark.parametrize("way", [fed, absorbed])
@pytest.mark.parametrize(
    ("metric", "name", "reference"),
    [
        (Ranking, "auc", auc_or_nan),
        (Confusion, "error", error_of),
        (Confusion, "f1_positive", f1_of(1.0)),
        (Confusion, "f1_negative", f1_of(-1.0)),
    ],
)
def test_binary_metrics_equal_scikit_learns(
    rows: Rows, metric: type[Any], name: str, reference: Reference, way: Way
) -> None:
    assert (rows[2] == 0).any(), "margin 0 must occur: it predicts +1"
    assert_equals(way(metric, *rows)[name], reference, *rows)


def probability(score: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-score)))


@pytest.mark.parametrize("way", [fed, absorbed])
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("log_loss", lambda truth, score: sk.log_loss(truth, probability(score), labels=[-1.0, 1.0])),
        ("brier", lambda truth, score: sk.brier_score_loss(truth, probability(score), pos_label=1.0)),
    ],
)
def test_scores_of_probabilities_equal_scikit_learns(rows: Rows, name: str, reference: Reference, way: Way) -> None:
    code, truth, score = rows
    assert_equals(way(Forecasts, code, truth, score)[name], reference, code, truth, score)


@pytest.mark.parametrize("way", [fed, absorbed])
def test_the_calibration_error_compares_forecasts_and_shares_in_bins(rows: Rows, way: Way) -> None:
    code, truth, score = rows
    p, positive = probability(score), truth > 0
    which = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    parts = [abs((p[which == b] - positive[which == b]).sum()) for b in range(N_BINS)]
    assert way(Forecasts, code, truth, score)["calibration_error"].overall == pytest.approx(sum(parts) / len(p))
    metric = Forecasts()
    metric.update(code, truth, score, N_TASKS)
    for found in metric.bins():
        mine = which == int(found.forecast * N_BINS)
        assert found == pytest.approx((mine.sum(), p[mine].mean(), positive[mine].mean()))


def test_certain_and_wrong_costs_much_but_not_infinity() -> None:
    metric = Forecasts()
    metric.update(np.zeros(2, int), np.array([1.0, -1.0]), np.array([-800.0, -800.0]), 1)
    assert metric.values(1)["log_loss"].overall == pytest.approx(400.0)


@pytest.mark.parametrize("way", [fed, absorbed])
def test_scores_of_several_classes_equal_scikit_learns(rows: Rows, way: Way) -> None:
    code = rows[0]
    rng = np.random.default_rng(1)
    y, margins = np.array(["fir", "ash", "oak"])[rng.integers(3, size=len(code))], rng.normal(size=(len(code), 3))
    index = ClassIndex()
    truth = index.encode(y)
    score = index.judged(margins, np.array(["ash", "fir", "oak"]), truth)
    p = probability(margins)
    p /= p.sum(axis=1, keepdims=True)
    predicted = np.array(["ash", "fir", "oak"])[margins.argmax(axis=1)]
    values = way(ClassErrors, code, truth, score)
    assert values["error"].overall == pytest.approx(1 - sk.accuracy_score(y, predicted))
    assert values["log_loss"].overall == pytest.approx(sk.log_loss(y, p, labels=["ash", "fir", "oak"]))
    mine = code == 0
    assert values["error"].per_task[0] == pytest.approx((y != predicted)[mine].mean())
    metric = ClassErrors()
    metric.update(code, truth, score, N_TASKS)
    expected = sk.confusion_matrix(y, predicted, labels=["ash", "fir", "oak"])
    for i, true in enumerate(("ash", "fir", "oak")):
        for j, guess in enumerate(("ash", "fir", "oak")):
            assert metric.confusion()[index.number[true], index.number[guess]] == expected[i, j]


def test_a_class_that_the_learner_does_not_know_has_no_probability() -> None:
    index = ClassIndex()
    truth = index.encode(["a", "b", "c"])
    two = index.judged(np.array([1.0, -1.0, 3.0]), np.array(["a", "b"]), truth)
    p = 1 / (1 + np.exp(-1.0))
    assert two.tolist() == [[1.0, pytest.approx(1 - p)], [0.0, pytest.approx(1 - p)], [1.0, 0.0]]
    one = index.judged(np.array([[0.3]] * 3), np.array(["b"]), truth)
    assert one[:, 0].tolist() == [1.0] * 3
    assert one[:, 1].tolist() == [0.0, 1.0, 0.0]


def explained(truth: np.ndarray, prediction: np.ndarray) -> float:
    return sk.explained_variance_score(truth, prediction) if len(set(truth)) > 1 else np.nan


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("mae", sk.mean_absolute_error),
        ("rmse", sk.root_mean_squared_error),
        ("explained_variance", explained),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("way", [fed, absorbed])
def test_regression_metrics_equal_scikit_learns(
    rows: Rows, name: str, reference: Reference, offset: float, way: Way
) -> None:
    code, _, score = rows
    truth = offset + 2.0 * score + np.random.default_rng(0).normal(size=len(score)) + code
    truth[code == 5] = offset  # constant targets: explained variance is undefined
    assert_equals(way(Residuals, code, truth, score + offset)[name], reference, code, truth, score + offset)


def test_explained_variance_of_constant_targets_is_undefined_and_not_hugely_negative() -> None:
    metric = Residuals()
    code, truth = np.array([0, 1, 1, 2]), np.full(4, 0.1)
    metric.update(code, truth, np.array([0.0, 0.2, 0.1, 0.4]), 4)
    assert np.isnan(metric.values(4)["explained_variance"].overall)


def test_auc_of_nothing_and_of_one_label_is_undefined() -> None:
    none = np.zeros(0)
    overall, per_task = aucs(none.astype(np.int64), none > 0, none, 2)
    assert np.isnan(overall)
    assert np.isnan(per_task).all()
    assert np.isnan(Ranking().values(3)["auc"].per_task).all()


class TestScoreboard:
    def board(self, rows: Sequence[np.ndarray], cuts: tuple[int, ...], window: int = 300) -> Scoreboard:
        board = Scoreboard(*choose(None, "binary"), window)
        for first, last in pairwise(cuts):
            code, truth, score = (column[first:last] for column in rows)
            board.update(code, truth, score, N_TASKS)
        return board

    @pytest.mark.parametrize("cuts", [(0, 2_000), (0, 100, 1_750, 2_000), tuple(range(0, 2_001, 50))])
    def test_the_window_holds_exactly_the_last_rows(self, rows: Rows, cuts: tuple[int, ...]) -> None:
        code, truth, score = (column[-300:] for column in rows)
        windowed = self.board(rows, cuts).checkpoint(N_TASKS).windowed
        assert windowed.overall["auc"] == pytest.approx(sk.roc_auc_score(truth, score))
        assert windowed.overall["error"] == pytest.approx(error_of(truth, score))
        assert windowed.rows.tolist() == np.bincount(code, minlength=N_TASKS).tolist()

    def test_since_last_starts_anew_and_the_total_goes_on(self, rows: Rows) -> None:
        board = self.board([column[:1_000] for column in rows], (0, 1_000))
        first = board.checkpoint(N_TASKS)
        assert first.since_last.overall == first.total.overall
        code, truth, score = (column[1_000:] for column in rows)
        board.update(code, truth, score, N_TASKS)
        second = board.checkpoint(N_TASKS)
        assert second.since_last.overall["auc"] == pytest.approx(sk.roc_auc_score(truth, score))
        assert second.total.overall["auc"] == pytest.approx(sk.roc_auc_score(rows[1], rows[2]))
        assert second.total.rows.tolist() == np.bincount(rows[0], minlength=N_TASKS).tolist()

    def test_macro_is_the_mean_over_tasks_where_it_is_defined_and_the_aucs_that_of_tasks_of_100_rows(
        self, rows: Rows
    ) -> None:
        code, truth, score = rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            per_task = [auc_or_nan(truth[code == k], score[code == k]) for k in range(N_TASKS)]
        assert np.isnan(per_task).any()
        total = self.board(rows, (0, 2_000)).checkpoint(N_TASKS).total
        large = total.rows >= 100
        assert not large.all()
        assert total.macro["auc"] == pytest.approx(np.nanmean(np.array(per_task)[large]))
        seen = total.rows > 0
        assert total.macro["error"] == pytest.approx(np.mean(total.per_task["error"][seen]))

    def test_tasks_may_appear_at_any_time(self) -> None:
        board = Scoreboard(*choose(["error"], "binary"), 10)
        for k in range(100):
            board.update(np.array([k]), np.array([1.0]), np.array([1.0 if k % 2 else -1.0]), k + 1)
        assert board.checkpoint(100).total.per_task["error"].tolist() == [1.0, 0.0] * 50


class TestChoice:
    def test_defaults_are_all_metrics_of_the_kind_from_one_accumulator_per_family(self) -> None:
        makers, names = choose(None, "binary")
        assert tuple(names) == METRICS["binary"]
        assert makers == [Confusion, Ranking, Forecasts]
        without = choose(None, "binary", has_probabilities=False)
        assert without == ([Confusion, Ranking], ["error", "auc", "f1_positive", "f1_negative"])

    def test_what_is_not_asked_for_is_not_computed(self) -> None:
        assert choose(["error"], "binary") == ([Confusion], ["error"])

    @pytest.mark.parametrize(("name", "kind"), [("auk", "binary"), ("auc", "regression"), ("mae", "binary")])
    def test_a_wrong_name_is_refused_with_those_there_are(self, name: str, kind: str) -> None:
        with pytest.raises(ValueError, match=f"{name}.*{kind}.*expected one of.*{METRICS[kind][0]}"):
            choose([name], kind)


def test_crps_is_that_of_the_distribution_behind_the_quantiles() -> None:
    """Of a normal one sigma (z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)); of a number that is certain its distance."""
    rng = np.random.default_rng(0)
    levels, sigma, y, code = (
        (np.arange(400) + 0.5) / 400,
        rng.uniform(0.5, 2.0, 50),
        rng.normal(size=50),
        np.arange(50) % 3,
    )
    judged, certain = QuantileLoss(levels.tolist()), QuantileLoss([0.1, 0.5, 0.9])
    judged.update(code, y, sigma[:, None] * norm.ppf(levels), 3)
    certain.update(code, y, sigma, 3)
    z = y / sigma
    crps = sigma * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    found = judged.values(3)["crps"]
    assert found.overall == pytest.approx(crps.mean(), rel=0.01)
    np.testing.assert_allclose(found.per_task, [crps[code == k].mean() for k in range(3)], rtol=0.01)
    assert certain.values(3)["crps"].overall == pytest.approx(np.abs(y - sigma).mean())
