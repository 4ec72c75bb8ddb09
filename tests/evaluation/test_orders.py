"""Learners over several orders, with models whose scores are known: no kernel is compiled here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import shuffle

from shoal import Chunk
from shoal.evaluation import Orders, compare_orders, progressive_validate
from shoal.evaluation.metrics import registry
from shoal.evaluation.result import Checkpoint, Evaluation


class Always(BaseEstimator):  # type: ignore[misc]
    """Says yes with a chance, by its own random numbers."""

    def __init__(self, chance: float = 1.0, random_state: int = 0) -> None:
        self.chance, self.random_state = chance, random_state

    def learn_one(self, x: Any, y: Any) -> None:
        self.random_ = getattr(self, "random_", None) or np.random.default_rng(self.random_state)

    def predict_one(self, x: Any) -> int:
        return int(not hasattr(self, "random_") or self.random_.random() < self.chance)


def made(scores: dict[str, list[float]]) -> Orders:
    n = len(next(iter(scores.values())))
    return Orders("error", list(range(n)), {name: [one_of(score) for score in of] for name, of in scores.items()})


def one_of(score: float) -> Evaluation:
    error = {"error": score}
    history = [Checkpoint(10, 2, error, error, error, error, 0.1)]
    return Evaluation("binary", 10, error, error, {}, history=history)


BETTER = [0.1, 0.2, 0.1, 0.2, 0.1, 0.2]


def test_means_deviations_ranks_and_tests_by_hand() -> None:
    c = [0.2, 0.1, 0.2, 0.1, 0.2, 0.11]  # behind in every other order
    found = made({"b": [0.3] * 6, "a": BETTER, "c": c})
    best, third, last = found.places
    assert [one.name for one in found.places] == ["a", "c", "b"]
    assert (best.mean, best.deviation) == pytest.approx((0.15, 0.05 * math.sqrt(6 / 5)))
    assert [one.mean_rank for one in found.places] == pytest.approx([1.5, 1.5, 3.0])
    assert last.behind == pytest.approx(0.15)
    assert last.p_value == pytest.approx(2 * 2 / 2**6)  # all six signs alike; for two sides, and for two tests
    assert third.p_value > 0.5
    assert not last.is_clear
    assert found.critical_difference == pytest.approx(2.3437 * math.sqrt(3 * 4 / (6 * 6)), rel=1e-4)
    assert found.conclusion.startswith("a is best; 6 orders are too few for the signed rank test (5 %)")
    assert found.conclusion.endswith("3 learners need 7 or more.")
    seven = made({"b": [0.2] * 7, "a": [0.1, 0.3] * 3 + [0.1], "c": [0.3] * 7})
    assert seven.conclusion.startswith("a is best, but its lead over any other may be chance (signed rank test over 7")
    assert made({"a": BETTER, "b": [x + 0.1 for x in BETTER]}).conclusion.startswith("a is best, and clearly ahead")
    assert str(found).splitlines()[1].split() == ["a", "0.1500", "0.0548", "1.50"]
    assert found._repr_html_().count("<tr>") == 4


def test_a_learner_without_a_score_in_some_order_comes_last_and_one_alone_is_not_compared() -> None:
    found = made({"a": [math.nan, *BETTER[1:]], "b": BETTER})
    assert [one.name for one in found.places] == ["b", "a"]
    assert math.isnan(found.critical_difference)
    assert found.conclusion == "there are no two learners to compare"


def test_frames() -> None:
    found = made({"a": BETTER, "b": [x + 0.1 for x in BETTER]})
    assert found.to_frame()["error"].to_list() == pytest.approx([0.15, 0.25])
    assert found.to_frame()["macro_error_deviation"][0] == pytest.approx(found.places[0].deviation)
    assert found.to_frame("orders").shape[0] == 12
    assert found.to_frame("history")["seed"].to_list() == [*range(6)] * 2
    with pytest.raises(ValueError, match="of must be"):
        found.to_frame("tasks")


class TestCompareOrders:
    X, y, task = np.eye(60), np.arange(60) % 3 // 2, np.arange(60) % 2

    def test_each_order_is_the_run_of_shuffled_rows_with_its_seed(self) -> None:
        data = [Chunk(self.X[:20], self.y[:20], self.task[:20]), (self.X[20:], self.y[20:], self.task[20:])]
        learners = {"yes": Always(), "some": Always(0.5)}
        found = compare_orders(learners, data, seeds=[4, 7], metrics=["error"], checkpoints=20)
        for i, seed in enumerate(found.seeds):
            rows = tuple(shuffle(self.X, self.y, self.task, random_state=seed))
            alone = progressive_validate(Always(0.5, random_state=seed), rows, metrics=["error"])
            assert found.evaluations["some"][i].overall == alone.overall
        assert found.scores("error", macro=False)["yes"].tolist() == pytest.approx([2 / 3, 2 / 3])
        assert [point.rows for point in found.evaluations["yes"][0].history] == [20, 40, 60]
        assert not hasattr(learners["some"], "random_")
        assert compare_orders(learners, (self.X, self.y, self.task), seeds=3, metrics=["error"]).seeds == [0, 1, 2]

    def test_what_cannot_be_compared(self) -> None:
        rows = (self.X, self.y, self.task)
        for learners, data, seeds, message in (
            ({}, rows, 3, "expected learners"),
            ({"a": Always()}, rows, 0, "different seeds"),
            ({"a": Always()}, rows, [1, 1], "different seeds"),
            ({"a": Always()}, [], 3, "no rows"),
            ({"a": Always()}, [(*rows, np.arange(60))], 3, "rounds"),
        ):
            with pytest.raises(ValueError, match=message):
                compare_orders(learners, data, seeds=seeds)

    def test_a_metric_of_its_own_ranks(self) -> None:
        assert "error" in registry.METRICS["binary"]
        found = compare_orders({"a": Always(), "b": Always(0.0)}, (self.X, self.y, self.task), seeds=2, metrics="f1")
        assert (found.metric, found.places[0].name) == ("f1", "a")  # more is better
