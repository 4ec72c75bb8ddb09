"""Metrics of scikit-learn over a stream against numbers made by hand; error bars by blocks."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from shoal import OSMTL, Chunk, MultiClass, PassiveAggressive, PassiveAggressiveRegressor
from shoal.evaluation import progressive_validate
from shoal.evaluation.metrics import from_rows
from shoal.evaluation.metrics.registry import choose
from shoal.evaluation.metrics.scoreboard import Scoreboard
from shoal.evaluation.result import higher_is_better

# Eight rows of two tasks; scores are log-odds. By their sign: 2 true +, 1 false -, 2 false + (one is 0), 3 true -.
TASK = np.array([0, 0, 0, 0, 1, 1, 1, 1])
LABEL = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
ODDS = np.log([3.0, 1 / 3, 1.0, 1 / 9, 9.0, 3.0, 1 / 3, 1 / 9])
REAL, GUESS = np.array([1.0, 3.0, 10.0, 14.0, 12.0]), np.array([2.0, 2.0, 9.0, 12.0, 13.0])  # errors -1 1 | 1 2 -1
POISSON = 2 / 5 * sum(y * math.log(y / p) - y + p for y, p in zip(REAL.tolist(), GUESS.tolist(), strict=True))
CLASSES = np.array([0.0, 1.0, 2.0, 0.0, 0.0])
# The predicted class, the probability of the true one, and those of all three; the last answer came before any class.
JUDGED = np.array(
    [
        [0.0, 0.5, 0.5, 0.25, 0.25],
        [2.0, 0.25, 0.25, 0.25, 0.5],
        [2.0, 0.75, 0.125, 0.125, 0.75],
        [0.0, 0.5, 0.5, 0.5, 0.0],
        [-1.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


def found(metric: Any, kind: str, cuts: tuple[int, ...] = (0, 2, 3, 5)) -> Any:
    """The metric's values, from pieces that are absorbed."""
    code, truth, score = {
        "binary": (TASK, LABEL, ODDS),
        "regression": (TASK[2:7], REAL, GUESS),
        "multiclass": (TASK[2:7], CLASSES, JUDGED),
    }[kind]
    [make], [name] = choose([metric], kind)
    total: Any = make()
    for first, last in pairwise((*cuts, len(code))):
        part: Any = make()
        part.update(code[first:last], truth[first:last], score[first:last], 2)
        total.absorb(part, 2)
    total.values(2)  # a checkpoint in between changes nothing
    return total.values(2)[name]


@pytest.mark.parametrize(
    ("metric", "kind", "overall", "per_task"),
    [
        ("f1", "binary", 4 / 7, [2 / 4, 2 / 3]),
        ("balanced_error", "binary", 1 - (2 / 3 + 3 / 5) / 2, [1 / 2, 1 - (1 + 2 / 3) / 2]),
        ("matthews", "binary", (2 * 3 - 2 * 1) / math.sqrt(4 * 3 * 5 * 4), [0.0, (1 * 2) / math.sqrt(2 * 1 * 3 * 2)]),
        ("average_precision", "binary", (1 + 2 / 3 + 1 / 2) / 3, [(1 + 2 / 3) / 2, 1.0]),
        ("roc_auc", "binary", 12 / 15, [3 / 4, 1.0]),
        ("neg_brier_score", "binary", -(2 / 16 + 2 * 9 / 16 + 1 / 4 + 3 / 100) / 8, None),
        (sk.balanced_accuracy_score, "binary", (2 / 3 + 3 / 5) / 2, None),
        (sk.make_scorer(sk.fbeta_score, beta=2), "binary", 5 * 2 / (5 * 2 + 4 * 1 + 2), None),
        ("accuracy_score", "binary", 5 / 8, [1 / 2, 3 / 4]),
        ("r2", "regression", 1 - 8 / 130, [0.0, 1 - 6 / 8]),
        ("mape", "regression", (1 + 1 / 3 + 1 / 10 + 2 / 14 + 1 / 12) / 5, [2 / 3, (1 / 10 + 2 / 14 + 1 / 12) / 3]),
        ("pinball", "regression", 6 / 2 / 5, [1 / 2, 4 / 2 / 3]),
        ("pinball:0.9", "regression", (2 * 0.1 + 4 * 0.9) / 5, [(0.1 + 0.9) / 2, (3 * 0.9 + 0.1) / 3]),
        ("poisson_deviance", "regression", POISSON, None),
        ("neg_max_error", "regression", -2.0, [-1.0, -2.0]),
        ("f1_macro", "multiclass", (4 / 5 + 0 + 2 / 3) / 3, None),
        ("f1_weighted", "multiclass", (3 * 4 / 5 + 0 + 2 / 3) / 5, None),
        ("balanced_error", "multiclass", 1 - (2 / 3 + 0 + 1) / 3, None),
        ("roc_auc_ovr", "multiclass", (6 / 6 + (1 / 2 + 1) / 4 + 4 / 4) / 3, None),
        (partial(sk.recall_score, average="macro"), "multiclass", (2 / 3 + 0 + 1) / 3, None),
    ],
)
def test_numbers_made_by_hand(
    metric: Any, kind: str, overall: float, per_task: list[float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_rows, "LEAST", 1)
    values = found(metric, kind)
    assert values.overall == pytest.approx(overall, rel=1e-12)
    if per_task is not None:
        assert values.per_task == pytest.approx(per_task, rel=1e-12)


def test_a_task_has_a_value_from_100_rows_on_and_one_label_has_no_average_precision() -> None:
    [make], [name] = choose(["average_precision"], "binary")
    metric: Any = make()
    code, label = np.repeat([0, 1, 2], [99, 100, 100]), np.where(np.arange(299) % 2, 1.0, -1.0)
    label[199:] = -1.0
    metric.update(code, label, label, 3)
    assert metric.values(3)[name].per_task == pytest.approx([np.nan, 1.0, np.nan], nan_ok=True)
    assert metric.notes() == []


def test_why_a_value_is_undefined_is_said() -> None:
    [make], _ = choose(["neg_mean_squared_log_error"], "regression")
    metric: Any = make()
    metric.update(np.zeros(2, int), np.array([1.0, 2.0]), np.array([-3.0, 1.0]), 1)
    assert np.isnan(metric.values(1)["neg_mean_squared_log_error"].overall)
    assert metric.notes()[0].startswith(
        "neg_mean_squared_log_error is undefined: Mean Squared Logarithmic Error cannot"
    )


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("r2", "binary", "it is one of numbers"),
        ("roc_auc", "regression", "it is one of labels"),
        ("f1", "multiclass", "average='binary'"),
        ("confusion_matrix", "binary", "confusion_matrix"),
        ("pinball", "binary", "it is one of numbers"),
        ("matthews", "regression", "it is one of labels"),
    ],
)
def test_a_metric_of_other_targets_is_refused_before_the_stream(name: str, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose([name], kind)


def test_a_learner_without_probabilities_has_no_metric_of_them() -> None:
    assert choose(["neg_log_loss", "f1"], "binary", has_probabilities=False)[1] == ["f1"]
    with pytest.raises(ValueError, match="no probabilities"):
        choose("neg_log_loss", "binary", has_probabilities=False)


def test_errors_are_to_be_small_and_scores_large() -> None:
    small = ["error", "log_loss", "mape", "pinball:0.1", "poisson_deviance", "max_error", "balanced_error"]
    large = ["auc", "f1_positive", "explained_variance", "r2", "neg_max_error", "average_precision", "matthews"]
    assert [higher_is_better(name) for name in [*small, *large]] == [False] * len(small) + [True] * len(large)


class TestBlocks:
    def errors(self, wrong: np.ndarray, piece: int) -> float:
        board = Scoreboard(*choose(["error"], "binary"), 10)
        for first in range(0, len(wrong), piece):
            truth = np.where(wrong[first : first + piece], -1.0, 1.0)
            board.update(np.zeros(len(truth), int), truth, np.ones(len(truth)), 1)
        return board.errors()["error"]

    @pytest.mark.parametrize("piece", [7, 100, 5_000])
    def test_ten_blocks_by_hand(self, piece: int) -> None:
        wrong = np.arange(1_099) // 100 % 2 == 1  # blocks of error 0 and 1; the last 99 rows are no block
        assert self.errors(wrong, piece) == pytest.approx(math.sqrt(10 / 4 / 9) / math.sqrt(10))

    @pytest.mark.parametrize("piece", [7, 100, 5_000])
    def test_twenty_blocks_become_ten(self, piece: int) -> None:
        assert self.errors(np.arange(2_000) // 100 % 2 == 1, piece) == 0.0  # each of 200 rows has an error of 1/2
        wrong = np.arange(2_400) < 1_000  # five blocks of 200 rows are wrong, seven are not
        assert self.errors(wrong, piece) == pytest.approx(math.sqrt(5 * 7 / 12 / 11) / math.sqrt(12))

    def test_fewer_than_ten_say_nothing(self) -> None:
        assert math.isnan(self.errors(np.zeros(999, bool), 50))


@pytest.fixture(scope="module")
def stream() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(1_200, 3)), rng.integers(3, size=1_200)
    return X, (X[:, 0] + rng.normal(size=1_200) > 1.2).astype(int), task


class TestInTheLoop:
    def test_a_function_of_scikit_learn_is_over_all_rows_by_task_macro_and_in_the_window(self, stream: Any) -> None:
        """Finding 25: it was an error about a missing y_true."""
        metrics = ["error", sk.balanced_accuracy_score, "roc_auc", "auc"]
        answers: list[np.ndarray] = []
        on: Any = {"on_predictions": lambda found: answers.append(np.asarray(found.decision))}
        result = progressive_validate(PassiveAggressive(), stream, metrics=metrics, window=300, **on)
        _, y, task = stream
        predicted = (np.concatenate(answers) >= 0).astype(int)
        name = "balanced_accuracy_score"
        assert result.overall[name] == pytest.approx(sk.balanced_accuracy_score(y, predicted))
        assert result.windowed[name] == pytest.approx(sk.balanced_accuracy_score(y[-300:], predicted[-300:]))
        by_task = [sk.balanced_accuracy_score(y[task == k], predicted[task == k]) for k in range(3)]
        assert [result.per_task[k][name] for k in range(3)] == pytest.approx(by_task)
        assert result.macro[name] == pytest.approx(np.mean(by_task))
        assert result.overall["roc_auc"] == result.overall["auc"]
        parts = [sk.balanced_accuracy_score(y[i : i + 100], predicted[i : i + 100]) for i in range(0, 1_200, 100)]
        assert result.standard_errors[name] == pytest.approx(np.std(parts, ddof=1) / math.sqrt(12))
        assert str(result).splitlines()[6].split()[0] == "±"

    def test_several_labels_have_scores_of_each(self, stream: Any) -> None:
        X, _, task = stream
        y = np.array(["ash", "fir", "oak"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
        guesses: list[Any] = []
        learner = MultiClass(PassiveAggressive())
        on: Any = {"on_predictions": lambda found: guesses.extend(found.predicted)}
        result = progressive_validate(learner, (X, y, task), metrics=["f1_macro", "error", "roc_auc_ovr"], **on)
        known = np.array([guess if guess is not None else "none" for guess in guesses])
        expected = sk.classification_report(y, known, output_dict=True, zero_division=0.0)
        for label, scores in result.per_class.items():
            theirs = expected[label]
            assert [*scores.values()] == pytest.approx([*theirs.values()])
            assert [*scores] == ["precision", "recall", "f1", "rows"]
        assert 0.5 < result.overall["roc_auc_ovr"] < 1.0

    def test_class_weights_are_the_weights_of_rows(self, stream: Any) -> None:
        X, y, task = stream
        given = progressive_validate(PassiveAggressive(), stream, class_weight={1: 4.0})
        by_hand = progressive_validate(PassiveAggressive(), [Chunk(X, y, task, None, np.where(y == 1, 4.0, 1.0))])
        assert given.overall == by_hand.overall
        plain = progressive_validate(PassiveAggressive(), stream)
        assert given.overall != plain.overall
        seen = np.cumsum(np.eye(2)[y], axis=0)
        share = seen[np.arange(len(y)), y] / (1.0 + np.arange(len(y))) * (seen > 0).sum(axis=1)
        balanced = progressive_validate(PassiveAggressive(), stream, class_weight="balanced")
        by_hand = progressive_validate(PassiveAggressive(), [Chunk(X, y, task, None, 1.0 / share)])
        assert balanced.overall == by_hand.overall

    def test_class_weights_without_a_meaning(self, stream: Any) -> None:
        result = progressive_validate(PassiveAggressive(), stream, class_weight={2: 3.0})
        assert result.notes == ["class_weight names 2, a label that no row has"]
        with pytest.raises(ValueError, match="predict numbers"):
            progressive_validate(PassiveAggressiveRegressor(), stream, class_weight="balanced")
        with pytest.raises(ValueError, match="takes no sample_weight"):
            progressive_validate(OSMTL(), stream, class_weight="balanced")
        with pytest.raises(ValueError, match='must be "balanced" or a dict'):
            progressive_validate(PassiveAggressive(), stream, class_weight="equal")
