"""Ranks and significance of several learners, by hand and against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from shoal.evaluation import Evaluation
from shoal.evaluation.learner_ranks import standings


def evaluation(errors: Any, *, kind: str = "regression", metric: Any = "rmse", diverged: Any = None) -> Any:
    per_task = {k: {"rows": 100, metric: value} for k, value in enumerate(errors)}
    mean = float(np.nanmean(errors))
    return Evaluation(kind, 100 * len(errors), {metric: mean}, {metric: mean}, per_task, diverged=diverged)


def test_by_hand() -> None:
    found = standings(
        {"c": evaluation([3.0, 1.0, 3.0]), "a": evaluation([1.0, 1.0, 2.0]), "b": evaluation([2.0, 2.0, 2.0])}
    )
    assert [(one.name, one.rank) for one in found] == [("a", 1), ("b", 2), ("c", 3)]
    assert [one.score for one in found] == pytest.approx([4 / 3, 2.0, 7 / 3])
    assert [one.mean_rank for one in found] == pytest.approx(
        [(1 + 1.5 + 1.5) / 3, (2 + 3 + 1.5) / 3, (3 + 1.5 + 3) / 3]
    )
    assert [one.behind for one in found] == pytest.approx([0.0, 2 / 3, 1.0])
    assert found[1].standard_error == pytest.approx(np.std([1, 1, 0], ddof=1) / 3**0.5)
    assert not any(one.is_clear for one in found)  # three tasks cannot show it


def rival(*ahead: int, n: int = 8) -> list[float]:
    """Errors 1, 2, ... above those of a champion of zeros, but as much below in these tasks."""
    return [float(-i if i in ahead else i) for i in range(1, n + 1)]


def test_holms_correction_by_hand() -> None:
    """Ranks of 2 of eight against the best: 3 of 128 pairs of signs are as far out; of 7: 19; of 15: 95; of none: 1."""
    three = {"best": [0.0] * 8, "b": rival(2), "c": rival(2), "d": rival(7)}
    found = {one.name: one.p_value for one in standings({name: evaluation(row) for name, row in three.items()})}
    assert found == pytest.approx({"best": 1.0, "b": 3 * 3 / 128, "c": 3 * 3 / 128, "d": 19 / 128})
    three = {"best": [0.0] * 8, "b": rival(7), "c": rival(), "d": rival(8, 7)}
    found = {one.name: one.p_value for one in standings({name: evaluation(row) for name, row in three.items()})}
    assert found == pytest.approx({"best": 1.0, "c": 3 * 1 / 128, "b": 2 * 19 / 128, "d": 95 / 128})


def test_ranks_and_p_values_are_scipys_after_holms_correction() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((4, 12)) + np.array([[0.0], [0.1], [0.8], [0.9]])
    found = {one.name: one for one in standings({str(i): evaluation(row) for i, row in enumerate(table)})}
    ranks = rankdata(table, axis=0).mean(axis=1)
    order = np.argsort(table.mean(axis=1))
    raw = {str(i): wilcoxon(table[order[0]], table[i]).pvalue for i in order[1:]}
    largest = 0.0
    for place, name in enumerate(sorted(raw, key=lambda name: raw[name])):
        largest = max(largest, min(1.0, (3 - place) * raw[name]))
        assert found[name].p_value == pytest.approx(largest)
    for i in range(4):
        assert found[str(i)].mean_rank == pytest.approx(ranks[i])
    assert found["3"].is_clear
    assert found[str(order[0])].p_value == 1.0


def test_more_auc_is_better_and_undefined_tasks_are_left_out() -> None:
    nan = float("nan")
    found = standings(
        {
            "a": evaluation([0.5, 0.9, nan], kind="binary", metric="auc"),
            "b": evaluation([0.8, 0.8, 0.1], kind="binary", metric="auc"),
        }
    )
    assert [one.name for one in found] == ["b", "a"]
    assert [one.score for one in found] == pytest.approx([0.8, 0.7])


def test_where_most_rows_are_in_small_tasks_the_log_loss_ranks_or_the_error_that_all_have() -> None:
    def small(auc: float, error: float, log_loss: float | None) -> Evaluation:
        scores = {"error": error, "auc": auc} | ({} if log_loss is None else {"log_loss": log_loss})
        tasks = {"a": {"rows": 99, **scores}, "b": {"rows": 199, **scores}, "c": {"rows": 101, **scores}}
        tasks |= {str(k): {"rows": 50, **scores} for k in range(5)}
        return Evaluation("binary", 649, scores, scores, tasks)

    found = standings({"auc": small(0.9, 0.2, 0.5), "log_loss": small(0.8, 0.3, 0.4)})
    assert [(one.name, one.metric) for one in found] == [("log_loss", "log_loss"), ("auc", "log_loss")]
    assert [one.score for one in found] == pytest.approx([0.4, 0.5])
    found = standings({"auc": small(0.9, 0.2, None), "log_loss": small(0.8, 0.3, 0.4)})
    assert [(one.name, one.metric) for one in found] == [("auc", "error"), ("log_loss", "error")]
    large, other = small(0.9, 0.2, 0.5), small(0.8, 0.3, 0.4)
    for evaluation in (large, other):
        del evaluation.per_task["a"]  # 300 rows of 550 are in tasks of 100 or more
    assert standings({"auc": large, "log_loss": other})[0].metric == "auc"


def test_who_diverged_or_has_no_score_comes_last_without_a_rank() -> None:
    found = standings({"wild": evaluation([1e9, 1e9], diverged=7), "calm": evaluation([2.0, 1.0])})
    assert [(one.name, one.rank, one.diverged) for one in found] == [("calm", 1, None), ("wild", None, 7)]
    assert [one.rank for one in standings({"wild": evaluation([1e9], diverged=7)})] == [None]


def test_other_streams_are_refused() -> None:
    with pytest.raises(ValueError, match="different rows or tasks"):
        standings({"a": evaluation([1.0]), "b": evaluation([1.0, 2.0])})
    with pytest.raises(ValueError, match="empty"):
        standings({})


def test_one_task_has_no_standard_error() -> None:
    found = standings({"a": evaluation([1.0]), "b": evaluation([3.0])})
    assert [(one.name, one.behind) for one in found] == [("a", 0.0), ("b", 2.0)]
    assert np.isnan([one.standard_error for one in found]).all()
