"""The pictures show the numbers of the run; their titles say what is in them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.conftest import Evaluations

from shoal import Conformal, KernelPerceptron, MultitaskRegressor
from shoal.evaluation import Evaluation, progressive_validate
from shoal.report import figures, save_figures
from shoal.report.style import CONFIG, logarithmic, span
from shoal.report.tasks import task_section


def by_name(evaluations: Any) -> Any:
    return {figure.name: figure for figure in figures(evaluations)}


def records(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All data of a chart, layers and panels included."""
    return [record for dataset in spec["datasets"].values() for record in dataset]


def test_a_run_with_baselines_has_all_four_pictures(binary: Evaluations) -> None:
    assert list(by_name(binary)) == ["progress", "gain", "importance", "relation", "updates"]


@pytest.mark.parametrize("kind", ["binary", "regression", "graph", "hedged"])
def test_descriptions_keep_the_schema(request: pytest.FixtureRequest, kind: str) -> None:
    for figure in figures(request.getfixturevalue(kind)):
        assert figure.chart.configure(**CONFIG).to_dict(validate=True)["$schema"].endswith(".json")


def test_no_evaluation_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        figures({})


class TestProgress:
    def test_every_checkpoint_of_every_learner_is_drawn(self, binary: Evaluations) -> None:
        drawn = {(r["name"], r["rows"], r["value"]) for r in records(by_name(binary)["progress"].spec()) if "rows" in r}
        for name, evaluation in binary.items():
            for point in evaluation.history:
                assert (name, point.rows, point.overall["error"]) in drawn
                assert (name, point.rows, point.macro["auc"]) in drawn

    def test_the_title_names_the_leader_and_when_it_took_the_lead(self, binary: Evaluations) -> None:
        learner, rival = binary["MultitaskPerceptron"], binary["pooled"]

        def with_aucs(evaluation: Evaluation, values: Any) -> Evaluation:
            points = [
                replace(point, macro=point.macro | {"auc": value})
                for point, value in zip(evaluation.history, values, strict=True)
            ]
            return replace(evaluation, history=points, macro=evaluation.macro | {"auc": values[-1]})

        assert [point.rows for point in learner.history] == [1_000, 2_000, 3_000]
        cases = {
            (0.6, 0.7, 0.8): "A leads throughout: AUC 0.800 over tasks, against 0.550 (B)",
            (0.5, 0.7, 0.8): "A leads from 2,000 rows on: AUC 0.800 over tasks, against 0.550 (B)",
            (0.6, 0.5, 0.8): "A leads in the end: AUC 0.800 over tasks, against 0.550 (B)",
            (0.6, 0.5, 0.4): "B leads from 2,000 rows on: AUC 0.550 over tasks, against 0.400 (A)",
        }
        for values, title in cases.items():
            two = {"A": with_aucs(learner, values), "B": with_aucs(rival, (0.55, 0.55, 0.55))}
            assert by_name(two)["progress"].title == title

    def test_the_title_counts_those_for_which_there_is_no_space(self, binary: Evaluations) -> None:
        many = dict.fromkeys("ABCDEF", binary["pooled"])
        title = by_name({"best": binary["MultitaskPerceptron"], **many})["progress"].title
        assert title.count("(") <= 3
        assert title.endswith(" others")

    def test_in_regression_less_is_better(self, regression: Evaluations) -> None:
        best = min(regression, key=lambda name: regression[name].macro["rmse"])
        assert by_name(regression)["progress"].title.startswith(f"{best} leads")


class TestGain:
    def test_each_task_stands_at_its_difference(self, binary: Evaluations) -> None:
        points = [r for r in records(by_name(binary)["gain"].spec()) if "gain" in r]
        seen = {(r["task"], round(r["gain"], 12)) for r in points}
        for baseline in ("independent", "pooled"):
            for task, mine in binary["MultitaskPerceptron"].per_task.items():
                gain = mine["auc"] - binary[baseline].per_task[task]["auc"]
                assert np.isnan(gain) or (task, round(gain, 12)) in seen

    def test_what_lies_beyond_the_picture_is_at_its_edge_with_its_value(self, binary: Evaluations) -> None:
        learner = binary["MultitaskPerceptron"]
        task = next(iter(learner.per_task))
        far = replace(learner, per_task=learner.per_task | {task: learner.per_task[task] | {"auc": 9.0}})
        spec = by_name(binary | {"MultitaskPerceptron": far})["gain"].spec()
        beyond = [r for r in records(spec) if r.get("task") == task and r.get("side") == "above"]
        assert beyond
        assert all(r["text"] == f"{task} {r['gain']:+.2f}" and r["y"] < r["gain"] for r in beyond)

    def test_in_regression_a_lower_error_is_a_gain(self, regression: Evaluations) -> None:
        found = [r for r in records(by_name(regression)["gain"].spec()) if "gain" in r]
        assert found
        assert all(r["gain"] == pytest.approx(r["baseline"] - r["learner"]) for r in found)

    def test_without_baselines_there_is_none(self, graph: Evaluations) -> None:
        assert "gain" not in by_name(graph)


class TestRelation:
    def test_the_relation_in_force_is_shown_with_its_groups_side_by_side(self, graph: Evaluations) -> None:
        evaluation = graph["graph"]
        spec = by_name(graph)["relation"].spec()
        learner = evaluation.learner
        column = {task: k for k, task in enumerate(learner.tasks_)}
        cells = records(spec)
        assert len(cells) == 30
        for cell in cells:
            expected = learner.relation_[column[cell["row"]], column[cell["column"]]]
            assert cell["value"] == pytest.approx(expected, rel=1e-3)
        order = [int(task[1:]) < 3 for task in spec["encoding"]["x"]["sort"]]
        assert order in ([True] * 3 + [False] * 3, [False] * 3 + [True] * 3)

    def test_where_all_pairs_are_alike_the_learned_weights_are_compared(self, binary: Evaluations) -> None:
        figure = by_name(binary)["relation"]
        learner = binary["MultitaskPerceptron"].learner
        assert "the same for every pair" in figure.caption
        unit = learner.coef_ / np.linalg.norm(learner.coef_, axis=1, keepdims=True)
        cosine = unit @ unit.T
        column = {task: k for k, task in enumerate(learner.tasks_)}
        for cell in records(figure.spec()):
            assert cell["value"] == pytest.approx(cosine[column[cell["row"]], column[cell["column"]]], abs=1e-3)

    def test_of_many_tasks_the_largest_are_shown_and_the_reader_is_told(
        self, monkeypatch: pytest.MonkeyPatch, binary: Evaluations
    ) -> None:
        monkeypatch.setattr("shoal.report.relation.MAX_TASKS", 10)
        figure = by_name(binary)["relation"]
        per_task = binary["MultitaskPerceptron"].per_task
        largest = sorted(per_task, key=lambda task: -per_task[task]["rows"])[:10]
        assert set(figure.spec()["encoding"]["x"]["sort"]) == set(largest)
        assert "10 of 30 tasks are shown" in figure.caption


class TestUpdates:
    def test_each_tasks_share(self, binary: Evaluations) -> None:
        figure = by_name(binary)["updates"]
        drawn = {(r["name"], r["task"]): r["share"] for r in records(figure.spec()) if "updates" in r}
        for name, evaluation in binary.items():
            for task, values in evaluation.per_task.items():
                assert drawn[name, task] == values["updates"] / values["rows"]
        learner = binary["MultitaskPerceptron"]
        assert f"update on {learner.n_updates / learner.rows:.0%} of all rows" in figure.title

    def test_names_of_lines_that_end_together_stand_16_pixels_apart(self, binary: Evaluations) -> None:
        spec = by_name(dict.fromkeys("AB", binary["pooled"]))["updates"].spec()
        low, high = sorted(record["place"] for record in records(spec) if "place" in record)
        top = spec["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
        assert (high - low) / top * spec["height"] == pytest.approx(16)

    def test_an_update_on_every_row_is_no_picture(self, regression: Evaluations) -> None:
        assert "updates" not in by_name(regression)


class TestFiles:
    def test_png_and_svg_with_the_title_in_it(self, tmp_path: Path, graph: Evaluations) -> None:
        written = save_figures(tmp_path / "new" / "folder", graph)
        names = {path.name for path in written}
        assert names == {f"{n}.{e}" for n in ("progress", "importance", "relation", "updates") for e in ("png", "svg")}
        for path in written:
            content = path.read_bytes()
            if path.suffix == ".png":
                assert content.startswith(b"\x89PNG")
            else:
                assert b"<svg" in content
                assert by_name(graph)[path.stem].title.split(" ")[0].encode() in content

    def test_an_unknown_format_is_refused(self, tmp_path: Path, graph: Evaluations) -> None:
        with pytest.raises(ValueError, match="'gif' is not known"):
            save_figures(tmp_path, graph, formats=["gif"])


class TestCalibration:
    def test_a_point_is_a_bin_of_a_learner_with_probabilities(self, hedged: Evaluations) -> None:
        figure = by_name(hedged)["calibration"]
        drawn = [r for r in records(figure.spec()) if "name" in r]
        bins = [found for found in hedged["HedgedSharing"].calibration if found.rows >= 20]
        assert [(r["rows"], r["forecast"], r["share"]) for r in drawn] == [tuple(found) for found in bins]
        assert {r["name"] for r in drawn} == {"HedgedSharing"}
        error = hedged["HedgedSharing"].overall["calibration_error"]
        assert figure.title == f"Forecasts of HedgedSharing are {100 * error:.1f} points off on average"

    def test_bins_of_few_rows_are_counted_and_not_judged(self, hedged: Evaluations) -> None:
        learner = hedged["HedgedSharing"]
        bins = [learner.calibration[0]._replace(rows=n) for n in (19, 20, 21)]
        spec = by_name({"HedgedSharing": replace(learner, calibration=bins)})["calibration"].spec()
        drawn = [
            {record["rows"] for name in re.findall(r"data-[0-9a-f]+", str(panel)) for record in spec["datasets"][name]
             if "rows" in record}
            for panel in spec["hconcat"]
        ]  # fmt: skip
        assert drawn == [{20, 21}, {19, 20, 21}]

    def test_without_probabilities_there_is_none(self, binary: Evaluations) -> None:
        assert "calibration" not in by_name(binary)


class TestForecasts:
    def test_equal_parts_of_the_rows_and_their_residuals(self, regression: Evaluations) -> None:
        figure = by_name(regression)["forecasts"]
        sample = regression["MultitaskRegressor"].sample
        assert sample is not None
        truth, forecast = sample.pairs.T
        assert len(truth) == 3_000  # all
        drawn = records(figure.spec())
        parts = [r for r in drawn if "low" in r]
        order = np.argsort(forecast, kind="stable").reshape(20, 150)
        for part, rows in zip(parts, order, strict=True):
            expected = [forecast[rows].mean(), truth[rows].mean(), *np.quantile(truth[rows], [0.1, 0.9])]
            assert list(part.values()) == pytest.approx(expected)
        bars = [r for r in drawn if "share" in r]
        assert sum(r["share"] for r in bars) == pytest.approx(0.98, abs=0.001)
        error = np.abs(truth - forecast)
        assert f"at most {np.median(error):.3g} off, nine in ten at most {np.quantile(error, 0.9):.3g}" in figure.title

    def test_labels_few_rows_and_equal_numbers_have_none(self, regression: Evaluations, binary: Evaluations) -> None:
        assert "forecasts" not in by_name(binary)
        first = regression["MultitaskRegressor"]
        assert first.sample is not None
        pairs = first.sample.pairs
        for few in (pairs[:39], pairs * [0, 1], pairs * [1, 0], pairs * np.nan):
            assert "forecasts" not in by_name({"a": replace(first, sample=first.sample._replace(pairs=few))})
        infinite = np.concatenate([pairs[:100], [[1.0, np.inf]]])
        assert "forecasts" in by_name({"a": replace(first, sample=first.sample._replace(pairs=infinite))})


class TestConfusion:
    def test_shares_of_the_frequent_labels_and_the_worst_pairs(self, binary: Evaluations) -> None:
        told = {(a, b): 1 + 100 * (a == b) + 50 * (a == 0) for a in range(14) for b in range(14)} | {(3, 5): 90}
        one = replace(binary["pooled"], kind="multiclass", confusion={**told, (2, None): 7})
        figure = by_name({"a": one})["confusion"]
        assert figure.title.startswith("a takes 3 for 5 most often: ")
        assert "the 12 most frequent of 14 labels" in figure.caption
        cells = {(r["true"], r["predicted"]): r["share"] for r in records(figure.spec()) if "true" in r}
        assert len(cells) == 144
        assert cells["3", "5"] == 90 / (101 + 90 + 12)
        pairs = [(r["pair"], r["rows"]) for r in records(figure.spec()) if "pair" in r]
        assert pairs[:2] == [("3 → 5", 90), ("0 → 1", 51)]
        assert len(pairs) == 10

    def test_without_mistakes_there_is_none(self, binary: Evaluations) -> None:
        assert "confusion" not in by_name(binary)
        assert "confusion" not in by_name({"a": replace(binary["pooled"], confusion={(1, 1): 3, (1, None): 1})})


class TestImportance:
    def test_columns_by_what_they_add(self, binary: Evaluations) -> None:
        first = binary["MultitaskPerceptron"]
        assert first.sample is not None
        found = first.learner.importances(first.sample.X, first.sample.task)
        drawn = [r for r in records(by_name(binary)["importance"].spec()) if "share" in r and "column" in r]
        assert [(r["column"], r["share"]) for r in drawn] == [
            (f"column {one.column}", one.share) for one in found.overall
        ]
        columns: list[str | None] = ["size", "size", "colour", "colour", None]
        drawn = records(by_name({"a": replace(first, columns=columns)})["importance"].spec())
        assert {r["column"] for r in drawn if "own" in r} == {"size", "colour"}

    def test_learners_that_cannot_explain_have_none(self) -> None:
        X = np.random.default_rng(0).normal(size=(60, 2))
        y = np.where(X[:, 0] > 0, 1, -1)
        found = progressive_validate(KernelPerceptron(), (X, y, np.arange(60) % 3))
        assert "importance" not in by_name({"a": found})


class TestSharing:
    def test_a_point_is_the_winner_of_a_task(self, hedged: Evaluations) -> None:
        learner = hedged["HedgedSharing"].learner
        best = learner.weights_.argmax(axis=1)
        expected = {task: learner.experts_[k] for task, k in zip(learner.tasks_, best, strict=True)}
        figure = by_name(hedged)["sharing"]
        assert {r["task"]: r["way"] for r in records(figure.spec())} == expected
        way, n = Counter(expected.values()).most_common(1)[0]
        assert figure.title == f"HedgedSharing trusts {way} most in {n} of 12 tasks"

    def test_learners_of_one_way_have_none(self, binary: Evaluations) -> None:
        assert "sharing" not in by_name(binary)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [([333, 334, 333], [334]), ([330, 450], [330, 450]), ([9, 300], [10, 20, 50, 100, 200]), ([3, 400], [10, 100])],
)
def test_ticks_of_a_logarithmic_axis_are_few_and_apart(values: list[float], ticks: list[float]) -> None:
    scale, found = logarithmic(values)
    assert found == ticks
    assert scale.domain == list(span(values))


def test_coverage_is_drawn_over_the_stream_and_by_task() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(600, 2)), np.arange(600) % 4
    learner = Conformal(MultitaskRegressor(eta=0.05), coverage=0.8)
    found = progressive_validate(learner, (X, X[:, 0] + rng.normal(size=600), task), checkpoints=200)
    figure = by_name({"one": found})["coverage"]
    drawn = records(figure.spec())
    line = [record for record in drawn if "judged" in record]
    assert [(record["rows"], record["judged"]) for record in line] == [(200, 150), (400, 200), (600, 200)]
    inside = sum(record["coverage"] * record["judged"] for record in line)
    learner = found.learner
    assert inside == pytest.approx((learner.coverage_ * learner.judged_).sum())
    assert f"held {inside / 550:.1%} of the targets; 80.0% was asked for" in figure.title
    by_task = {record["task"]: record["coverage"] for record in drawn if "task" in record}
    assert by_task == {str(k): share for k, share in enumerate(learner.coverage_.tolist())}
    again = progressive_validate(learner, (X[:100], X[:100, 0], task[:100]))  # what came before is not of this run
    assert again.history[-1].coverage is not None
    assert again.history[-1].coverage.judged == 100
    assert '"coverage"' in task_section({"one": found})
