"""What a run found, as text and as data frames; the verdict on sharing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.evaluation import Checkpoint, Evaluation, compare


def evaluation(aucs, errors, rows, **options):
    """An Evaluation of tasks t0, t1, ..."""
    per_task = {
        f"t{k}": {"rows": n, "updates": n // 2, "error": error, "auc": auc}
        for k, (n, error, auc) in enumerate(zip(rows, errors, aucs, strict=True))
    }
    error = float(np.average(errors, weights=rows))
    values = {"error": error, "auc": 0.7}
    macro = {"error": float(np.mean(errors)), "auc": float(np.nanmean(aucs))}
    history = [Checkpoint(sum(rows), len(rows), values, macro, values, values, 0.25)]
    return Evaluation("binary", sum(rows), values, macro, per_task, history=history, wall_seconds=0.5, **options)


ROWS = [10, 500, 30, 40, 20, 1_000, 60, 70, 80, 90, 100, 110]


def three(learner, independent, pooled, rows=ROWS):
    """Evaluations whose task AUCs are the base plus a little noise, the same for each."""
    rng = np.random.default_rng(0)
    noise, error = rng.normal(0, 0.05, len(rows)), rng.uniform(0.1, 0.3, len(rows))
    own = rng.normal(0, 0.002, (3, len(rows)))
    made = [
        evaluation(base + noise + jitter, error - base / 10, rows)
        for base, jitter in zip((learner, independent, pooled), own, strict=True)
    ]
    return made[0], {"independent": made[1], "pooled": made[2]}


class TestText:
    def test_progress_and_summary_show_the_numbers(self):
        text = str(evaluation([0.75, math.nan], [0.125, 0.25], [300, 100], n_updates=7, notes=["AUC of a sample"]))
        lines = text.splitlines()
        assert lines[0].split() == ["rows", "tasks", "error", "since", "last", "macro-AUC", "rows/s"]
        assert lines[1].split() == ["400", "2", "0.1562", "0.1562", "0.7500", "1,600"]
        assert "400 rows of 2 tasks, 7 updates, 0.50 s" in text
        assert lines[-1] == "AUC of a sample"


class TestFrames:
    def test_tasks(self):
        frame = evaluation([0.75, math.nan], [0.1, 0.2], [3, 4]).to_frame()
        assert frame.columns == ["task", "rows", "updates", "error", "auc"]
        assert frame["task"].to_list() == ["t0", "t1"]
        assert frame["rows"].to_list() == [3, 4]

    def test_ids_of_several_kinds_become_text(self):
        one = evaluation([0.75, 0.5], [0.1, 0.2], [3, 4])
        one.per_task[("a", 1)] = one.per_task.pop("t1")
        assert one.to_frame()["task"].to_list() == ["t0", "('a', 1)"]

    def test_history(self):
        frame = evaluation([0.75], [0.1], [3]).to_frame("history")
        assert frame.columns[:5] == ["rows", "tasks", "seconds", "error", "macro_error"]
        assert frame["macro_auc"].to_list() == [0.75]

    def test_anything_else_is_refused(self):
        with pytest.raises(ValueError, match='"tasks" or "history"'):
            evaluation([0.75], [0.1], [3]).to_frame("rows")


class TestVerdict:
    def test_better_than_both_pays(self):
        learner, baselines = three(0.80, 0.70, 0.75)
        verdict = compare(learner, **baselines)
        assert verdict.pays
        assert "sharing pays" in verdict.overall
        auc = verdict.comparisons[0]
        assert auc.metric == "auc"
        expected = learner.macro["auc"] - baselines["independent"].macro["auc"]
        assert auc.gain("independent") == pytest.approx(expected)
        assert f"{expected:+.4f} against one model per task" in verdict.overall

    @pytest.mark.parametrize(
        ("scores", "words"),
        [
            ((0.75, 0.70, 0.80), "sharing does not pay"),
            ((0.70, 0.80, 0.60), "sharing does not pay"),
            ((0.75, 0.75, 0.70), "no clear difference"),
        ],
    )
    def test_worse_or_equal_to_one_of_them_does_not(self, scores, words):
        learner, baselines = three(*scores)
        verdict = compare(learner, **baselines)
        assert not verdict.pays
        assert words in verdict.overall

    def test_the_error_is_over_all_rows_and_lower_is_better(self):
        learner, baselines = three(0.80, 0.70, 0.75)
        error = compare(learner, **baselines).comparisons[1]
        assert (error.scope, error.metric) == ("all tasks", "error")
        assert error.learner == pytest.approx(learner.overall["error"])
        assert error.gain("pooled") == pytest.approx(baselines["pooled"].overall["error"] - learner.overall["error"])
        assert error.gain("pooled") > 0

    def test_the_smallest_tasks_are_those_with_fewest_rows(self):
        learner, baselines = three(0.80, 0.70, 0.75)
        verdict = compare(learner, **baselines)
        auc, error = verdict.comparisons[2:]
        small = [k for k, n in enumerate(ROWS) if n not in (500, 1_000)]
        assert auc.scope == "the ten smallest tasks"
        assert auc.learner == pytest.approx(np.mean([learner.per_task[f"t{k}"]["auc"] for k in small]))
        weights = [ROWS[k] for k in small]
        errors = [learner.per_task[f"t{k}"]["error"] for k in small]
        assert error.learner == pytest.approx(np.average(errors, weights=weights))
        assert verdict.smallest.startswith("In the ten smallest tasks (10 to 110 rows each)")

    def test_undefined_scores_are_left_out_and_counted(self):
        learner, baselines = three(0.80, 0.70, 0.75)
        baselines["pooled"].per_task["t0"]["auc"] = math.nan
        verdict = compare(learner, **baselines)
        assert [c.tasks for c in verdict.comparisons] == [11, 12, 9, 10]
        assert "(defined in 9 of 10 tasks)" in verdict.smallest

    def test_one_task_cannot_tell(self):
        learner, baselines = three(0.80, 0.70, 0.75, rows=[50])
        verdict = compare(learner, **baselines)
        assert not verdict.pays
        assert "too few tasks" in verdict.overall

    def test_what_is_said_of_all_tasks_is_not_said_again_of_the_smallest(self):
        learner, baselines = three(0.80, 0.70, 0.75, rows=[50, 60, 70])
        verdict = compare(learner, **baselines)
        assert [c.scope for c in verdict.comparisons] == ["all tasks"] * 2
        assert verdict.smallest == ""
        assert str(verdict) == verdict.overall
        smallest = compare(learner, **baselines, smallest=1).smallest
        assert smallest.startswith("In the smallest task (50 rows) ")

    def test_without_a_defined_score_it_says_so(self):
        learner, baselines = three(0.80, 0.70, 0.75)
        for values in baselines["pooled"].per_task.values():
            values["auc"] = math.nan
        verdict = compare(learner, **baselines)
        assert "macro-AUC undefined; error" in verdict.overall
        assert "nan" not in str(verdict)

    def test_equal_errors_are_no_negative_zero(self):
        learner, _ = three(0.80, 0.70, 0.75)
        error = compare(learner, independent=learner, pooled=learner).comparisons[1]
        assert f"{error.gain('pooled'):+.4f}" == "+0.0000"

    def test_regression_is_judged_by_rmse(self):
        rng = np.random.default_rng(0)
        made = []
        for level in (1.0, 1.5, 1.2):
            per_task = {k: {"rows": 10, "updates": 1, "rmse": level + 0.001 * rng.normal()} for k in range(20)}
            macro = {"rmse": float(np.mean([values["rmse"] for values in per_task.values()]))}
            made.append(Evaluation("regression", 200, dict(macro), macro, per_task))
        verdict = compare(made[0], independent=made[1], pooled=made[2])
        assert verdict.pays
        assert [c.metric for c in verdict.comparisons] == ["rmse", "rmse"]
        assert verdict.comparisons[0].gain("independent") == pytest.approx(0.5, abs=0.01)

    def test_other_streams_or_missing_metrics_are_refused(self):
        learner, baselines = three(0.80, 0.70, 0.75)
        other = evaluation([0.7] * 3, [0.1] * 3, [1, 2, 3])
        with pytest.raises(ValueError, match="same stream"):
            compare(learner, independent=other, pooled=baselines["pooled"])
        del baselines["pooled"].overall["auc"]
        with pytest.raises(ValueError, match="needs the metric 'auc'"):
            compare(learner, **baselines)
