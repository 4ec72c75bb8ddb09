"""The verdict on sharing: which of three ways is best, by which score, and is that beyond chance?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import wilcoxon

from shoal import Conformal, Guarded, MultiClass, MultitaskPerceptron
from shoal.evaluation import Evaluation, compare, progressive_validate
from shoal.evaluation.comparison import compare_by
from shoal.evaluation.metrics.regression import Divergence

ROWS = [100, 500, 130, 140, 120, 1_000, 160, 170, 180, 190, 200, 210]


def evaluation(aucs: Any, errors: Any, rows: Any, **options: Any) -> Evaluation:
    """An Evaluation of tasks t0, t1, ..."""
    columns = zip(rows, errors, aucs, strict=True)
    per_task = {f"t{k}": {"rows": n, "updates": 0, "error": e, "auc": auc} for k, (n, e, auc) in enumerate(columns)}
    overall = {"error": float(np.average(errors, weights=rows)), "auc": 0.7}
    macro = {"error": float(np.mean(errors)), "auc": float(np.nanmean(aucs))}
    return Evaluation("binary", sum(rows), overall, macro, per_task, **options)


def three(
    learner: Any, independent: Any, pooled: Any, rows: Any = ROWS, error_follows: bool = True
) -> tuple[Evaluation, dict[str, Any]]:
    """Evaluations whose task AUCs are the base plus a little noise, the same for each."""
    rng = np.random.default_rng(0)
    noise, error = rng.normal(0, 0.05, len(rows)), rng.uniform(0.1, 0.3, len(rows))
    own = rng.normal(0, 0.002, (3, len(rows)))
    side = 1 if error_follows else -1
    made = [
        evaluation(base + noise + jitter, error - side * base / 10, rows)
        for base, jitter in zip((learner, independent, pooled), own, strict=True)
    ]
    return made[0], {"independent": made[1], "pooled": made[2]}


@pytest.mark.parametrize(
    ("scores", "outcome", "best"),
    [
        (
            (0.80, 0.70, 0.75),
            "share partly",
            "Sharing partly is best: one error in ",
        ),
        ((0.75, 0.70, 0.80), "share fully", "One model for all is best: "),
        ((0.70, 0.80, 0.60), "do not share", "One model per task is best: "),
    ],
)
def test_the_best_by_macro_auc_gives_the_outcome_its_name(
    scores: tuple[float, float, float], outcome: str, best: str
) -> None:
    learner, baselines = three(*scores)
    verdict = compare(learner, **baselines)
    assert (verdict.outcome, verdict.is_clear) == (outcome, True)
    assert verdict.sentence.startswith(best)
    assert ";" not in verdict.sentence  # nothing may be chance, and the other scores and the smallest tasks agree


def test_differences_have_standard_errors_over_tasks() -> None:
    learner, baselines = three(0.80, 0.70, 0.75)
    auc, _, error = compare(learner, **baselines).comparisons[:3]
    tasks = list(learner.per_task)
    for name, other in baselines.items():
        gains = np.array([learner.per_task[task]["auc"] - other.per_task[task]["auc"] for task in tasks])
        found = auc.differences[name]
        assert found.mean == pytest.approx(gains.mean())
        assert found.standard_error == pytest.approx(gains.std(ddof=1) / math.sqrt(len(gains)))
        assert found.is_clear == (wilcoxon(gains).pvalue < 0.05)
        assert auc.gains[name] == found
        assert f"+{gains.mean():.4f} ± {found.standard_error:.4f}" in str(compare(learner, **baselines))
        assert error.gains[name].mean == pytest.approx(other.overall["error"] - learner.overall["error"])
    own = baselines["independent"].per_task
    losing = sum(learner.per_task[task]["error"] > own[task]["error"] for task in tasks)
    assert error.losing == losing
    assert compare(learner, **baselines).lines[-1].losing == f"{losing} of 12"
    assert (error.metric, error.macro, auc.macro) == ("error", False, True)


def test_what_is_within_chance_is_said_to_be() -> None:
    learner, baselines = three(0.75, 0.7501, 0.70)
    verdict = compare(learner, **baselines)
    assert not verdict.is_clear
    assert verdict.sentence.count(" could be chance") == 1
    assert "; the difference to " in verdict.sentence


def test_another_score_that_disagrees_is_told() -> None:
    learner, baselines = three(0.80, 0.70, 0.75, error_follows=False)
    verdict = compare(learner, **baselines)
    assert "; by error one model per task is best" in verdict.sentence
    assert verdict.sentence.startswith("Sharing partly is best: its macro-AUC is 0.0986 above that of a model per task")
    gain = verdict.comparisons[2].gains["independent"]
    assert gain.mean < 0.0
    assert verdict.lines[-1].over_independent.startswith("-0.0")


def test_the_smallest_tasks_are_those_with_fewest_rows() -> None:
    learner, baselines = three(0.80, 0.70, 0.75)
    verdict = compare(learner, **baselines)
    auc, error = verdict.comparisons[3:]
    small = [k for k, n in enumerate(ROWS) if n < 175]
    assert auc.scope == "the six smallest tasks"
    assert auc.scores["learner"] == pytest.approx(np.mean([learner.per_task[f"t{k}"]["auc"] for k in small]))
    errors = [learner.per_task[f"t{k}"]["error"] for k in small]
    assert error.scores["learner"] == pytest.approx(np.average(errors, weights=[ROWS[k] for k in small]))
    for k in small:  # there one model for all is best
        baselines["pooled"].per_task[f"t{k}"]["auc"] = learner.per_task[f"t{k}"]["auc"] + 0.01
    assert "; in the six smallest tasks one model for all is best" in compare(learner, **baselines).sentence


def test_undefined_scores_are_left_out_and_counted() -> None:
    learner, baselines = three(0.80, 0.70, 0.75)
    baselines["pooled"].per_task["t0"]["auc"] = math.nan
    verdict = compare(learner, **baselines)
    assert [c.tasks for c in verdict.comparisons] == [11, 12, 12, 5, 6]
    assert verdict.lines[0].losing.endswith(" of 11")
    for values in baselines["pooled"].per_task.values():
        values["auc"] = math.nan
    verdict = compare(learner, **baselines)
    assert (verdict.outcome, verdict.comparisons[0].outcome) == ("share partly", "undecided")
    assert verdict.sentence.startswith("Sharing partly is best: one error in ")
    assert [line.score for line in verdict.lines] == ["AUC", "error"]
    assert "nan" not in str(verdict)


def test_the_auc_over_all_rows_stands_beside_the_macro_auc() -> None:
    learner, baselines = three(0.80, 0.70, 0.75)
    learner.overall["auc"], baselines["independent"].overall["auc"], baselines["pooled"].overall["auc"] = 0.7, 0.6, 0.75
    verdict = compare(learner, **baselines)
    assert verdict.outcome == "share partly"
    assert "; by AUC over all rows one model for all is best" in verdict.sentence
    found = verdict.comparisons[1]
    assert (found.metric, found.macro, found.best, found.is_clear) == ("auc", False, "pooled", False)
    assert found.gains["independent"].mean == pytest.approx(0.1)
    assert verdict.lines[1] == ("AUC", "0.7500  one for all", "+0.1000", "-0.0500", "")


def test_the_auc_of_small_tasks_decides_nothing() -> None:
    """Of 1,001 rows the two tasks of 100 and 201 hold 301; with 700 rows more in one of these, most."""
    rows = [100, 201, *[70] * 10]
    learner, baselines = three(0.80, 0.70, 0.75, rows=rows, error_follows=False)
    verdict = compare(learner, **baselines)
    auc = verdict.comparisons[0]
    assert (auc.metric, auc.macro, auc.tasks, auc.outcome) == ("auc", True, 2, "undecided")
    assert auc.scores["learner"] == pytest.approx(np.mean([learner.per_task[task]["auc"] for task in ("t0", "t1")]))
    assert verdict.outcome == "do not share"
    assert verdict.sentence.startswith("One model per task is best: ")
    learner, baselines = three(0.80, 0.70, 0.75, rows=[100, 901, *rows[2:]], error_follows=False)
    found = compare(learner, **baselines)
    assert found.sentence.startswith("Sharing partly is best: its macro-AUC is ")
    assert found.lines[0].losing.endswith(" of 2")


def test_one_task_has_nothing_to_share() -> None:
    learner, baselines = three(0.80, 0.70, 0.75, rows=[50])
    verdict = compare(learner, **baselines)
    assert verdict.outcome == "undecided"
    assert verdict.sentence == "No verdict: there is one task, and nothing to share."


@pytest.mark.parametrize(
    ("n_tasks", "scope"),
    [(11, ""), (12, "the six smallest tasks"), (60, "the six smallest tasks"), (61, "the smallest tenth of the tasks")],
)
def test_the_smallest_are_a_tenth_or_six(n_tasks: int, scope: str) -> None:
    learner, baselines = three(0.80, 0.70, 0.75, rows=[*range(50, 50 + n_tasks)])
    found = compare(learner, **baselines).comparisons
    assert {c.scope for c in found} == {"all tasks", *([scope] if scope else [])}
    assert found[-1].tasks == (n_tasks if n_tasks < 12 else 6 if n_tasks < 61 else 7)


def scored(metric: str, scores: Sequence[float], rows: Sequence[int]) -> Evaluation:
    """Only one metric, of tasks 0, 1, ..."""
    per_task = {k: {"rows": n, metric: score} for k, (n, score) in enumerate(zip(rows, scores, strict=True))}
    return Evaluation("regression", sum(rows), {metric: 0.0}, {metric: 0.0}, per_task)


@pytest.mark.parametrize(("metric", "sign"), [("rmse", -1.0), ("explained_variance", 1.0)])
@pytest.mark.parametrize("macro", [True, False])
def test_a_comparison_by_hand(metric: str, sign: float, macro: bool) -> None:
    """Over two tasks of 1 and 3 rows the best is ahead by 1 and 2, or by 3 and 1."""
    scores = {"learner": [5.0, 5.0], "independent": [4.0, 3.0], "pooled": [2.0, 4.0]}
    made = {name: scored(metric, [sign * x for x in found], [1, 3]) for name, found in scores.items()}
    found = compare_by(made, metric, macro=macro, scope="all tasks", tasks=[0, 1])
    assert (found.best, found.outcome, found.tasks, found.is_clear) == ("learner", "share partly", 2, False)
    mean = {"independent": 1.5 if macro else 1.75, "pooled": 2.0 if macro else 1.5}
    assert {name: difference.mean for name, difference in found.differences.items()} == mean
    assert found.gains == found.differences
    assert found.runner_up == ("independent" if macro else "pooled")
    assert found.scores["pooled"] == sign * (3.0 if macro else 3.5)
    # sqrt(n / (n - 1) * sum of squares of what each task's part of the mean is away from it)
    part = {"independent": 0.25, "pooled": 0.5} if macro else {"independent": 0.1875, "pooled": 0.375}
    errors = {name: math.sqrt(2 * 2 * x**2) for name, x in part.items()}
    assert {name: one.standard_error for name, one in found.differences.items()} == pytest.approx(errors)


@pytest.mark.parametrize(("n_tasks", "is_clear"), [(5, False), (6, True)])
def test_six_tasks_are_needed_for_a_clear_difference(n_tasks: int, is_clear: bool) -> None:
    """All ahead: the least two-sided probability is 2 / 2^5 with five tasks, 2 / 2^6 with six."""
    rows = [10] * n_tasks
    made = {name: scored("rmse", [level] * n_tasks, rows) for name, level in (("learner", 1.0), ("pooled", 2.0))}
    assert compare_by(made, "rmse", macro=True, scope="all tasks", tasks=range(n_tasks)).is_clear == is_clear


def test_one_score_alone_is_best_of_nothing() -> None:
    found = compare_by({"learner": scored("rmse", [1.0], [9])}, "rmse", macro=True, scope="all tasks", tasks=[0])
    assert (found.best, found.runner_up, found.outcome, found.is_clear) == (None, None, "undecided", False)


def test_equal_scores_have_a_difference_of_zero() -> None:
    learner, _ = three(0.80, 0.70, 0.75)
    verdict = compare(learner, independent=learner, pooled=learner)
    assert not verdict.is_clear
    assert ": as many errors as a model per task, as many errors as one model for all; " in verdict.sentence
    assert {f"{found.gains['pooled'].mean:+.4f}" for found in verdict.comparisons} == {"+0.0000"}


def regression(levels: Sequence[float], **options: Any) -> list[Evaluation]:
    rng = np.random.default_rng(0)
    made = []
    for level in levels:
        values = {k: {"rows": 10, "updates": 1, "rmse": level + 0.001 * rng.normal(), "mae": level} for k in range(20)}
        macro = {"rmse": float(np.mean([value["rmse"] for value in values.values()])), "mae": level}
        made.append(Evaluation("regression", 200, dict(macro), macro, values, **options))
    return made


def test_regression_is_judged_by_rmse_and_lower_is_better() -> None:
    learner, independent, pooled = regression((1.0, 1.5, 1.2), learner=MultitaskPerceptron())
    verdict = compare(learner, independent=independent, pooled=pooled)
    assert (verdict.outcome, verdict.is_clear) == ("share partly", True)
    assert verdict.sentence.startswith(
        "Sharing partly is best: its macro-RMSE is 33.3 % below that of a model per task and "
    )
    assert verdict.lines[0].best == "0.9998  MultitaskPerceptron"
    assert verdict.comparisons[0].differences["independent"].mean == pytest.approx(0.5, abs=0.01)


def test_a_learner_that_diverged_is_named_and_not_compared() -> None:
    [independent] = regression((1e140,), diverged=1_204)
    learner, pooled = regression((1.0, 1.2))
    verdict = compare(learner, independent=independent, pooled=pooled)
    assert verdict.diverged == {"independent": 1_204}
    assert str(verdict).startswith("A model per task diverged at row 1,204 and is not compared. Sharing partly is best")
    assert verdict.lines[0].over_independent == ""
    assert verdict.outcome == "share partly"
    assert "e+140" not in str(verdict)
    nothing = compare(independent, independent=independent, pooled=pooled)
    assert nothing.outcome == "undecided"


def test_divergence_is_found_at_its_row_however_the_stream_is_cut() -> None:
    truth, prediction = np.array([0.0, 2.0, -5.0, 1.0, 1.0]), np.array([9.0, 1999.0, 5000.0, 5001.0, np.nan])
    for size in (1, 2, 5):
        found = Divergence()
        for first in range(0, 5, size):
            found.update(truth[first : first + size], prediction[first : first + size])
        assert found.row == 4
    whole = Divergence()
    whole.update(truth[:3], np.array([0.0, np.inf, 0.0]))
    assert whole.row == 2


def test_other_streams_or_missing_metrics_are_refused() -> None:
    learner, baselines = three(0.80, 0.70, 0.75)
    other = evaluation([0.7] * 3, [0.1] * 3, [1, 2, 3])
    with pytest.raises(ValueError, match="same stream"):
        compare(learner, independent=other, pooled=baselines["pooled"])
    del baselines["pooled"].overall["auc"]
    with pytest.raises(ValueError, match="needs the metric 'auc'"):
        compare(learner, **baselines)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_predictions_diverge_beyond_a_thousand_times_the_largest_target(sign: float) -> None:
    """The targets up to the row count, its own too; where all were 0 there is no scale."""
    truth, beyond = np.array([0.0, -2.0, 0.5]), np.nextafter(2_000.0, np.inf)
    for forecasts, row in (
        ([1e300, sign * 2_000.0, sign * 2_000.0], None), ([0.0, sign * beyond, 0.0], 2),
        ([0.0, 0.0, sign * beyond], 3), ([np.nan, 0.0, 0.0], 1), ([np.inf, 0.0, 0.0], None),
    ):  # fmt: skip
        whole, parts = Divergence(), Divergence()
        whole.update(truth, np.array(forecasts))
        for i in range(3):
            parts.update(truth[i : i + 1], np.array(forecasts[i : i + 1]))
        assert whole.row == parts.row == row


def test_the_verdict_names_tasks_that_sharing_harms_and_what_guarding_would_have_given() -> None:
    rng = np.random.default_rng(0)
    task = rng.integers(4, size=1200)
    X = rng.normal(size=(1200, 3))
    y = (X[:, 0] * np.where(task == 3, -1.0, 1.0) + 0.3 * rng.normal(size=1200)) > 0.0  # the last one is against all
    sharing = MultitaskPerceptron(relation="pooled", loss="logistic")
    learners = {"sharing": sharing, **sharing.baselines(), "guarded": Guarded(sharing)}
    found = progressive_validate(learners, (X, y, task), metrics=["log_loss", "error", "auc"])
    verdict = compare(found["sharing"], independent=found["independent"], pooled=found["pooled"])
    assert verdict.harm is not None
    assert verdict.name == "MultitaskPerceptron"
    inside = replace(found["sharing"], learner=Conformal(MultiClass(sharing)))
    assert compare(inside, independent=found["independent"], pooled=found["pooled"]).name == "MultitaskPerceptron"
    guarded = found["guarded"].learner
    assert set(verdict.harm.nats) == set(guarded.harmed_)
    assert next(iter(verdict.harm.nats)) == 3
    shared, own = (300 * found[name].per_task[3]["log_loss"] for name in ("sharing", "independent"))
    rows = found["sharing"].per_task[3]["rows"]
    assert verdict.harm.nats[3] == pytest.approx((shared - own) * rows / 300)
    assert verdict.harm.guarded_log_loss == pytest.approx(found["guarded"].overall["log_loss"], abs=1e-4)
    text = f"Sharing harms {len(verdict.harm.nats)} of 4 tasks"
    assert text in str(verdict)
    assert text in verdict._repr_html_()
    alone = compare(found["independent"], independent=found["independent"], pooled=found["pooled"])
    assert alone.harm is not None
    assert (alone.harm.nats, str(alone.harm)) == ({}, "")
    learner, baselines = three(0.80, 0.70, 0.75)
    assert compare(learner, **baselines).harm is None  # without probabilities
