"""What a run found, as text and as data frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from shoal import PassiveAggressive
from shoal.evaluation import Checkpoint, Evaluation, compare, search


def evaluation(aucs: Any, errors: Any, rows: Any, **options: Any) -> Evaluation:
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


class TestText:
    def test_progress_and_summary_show_the_numbers(self) -> None:
        text = str(evaluation([0.75, math.nan], [0.125, 0.25], [300, 100], n_updates=7, notes=["AUC of a sample"]))
        lines = text.splitlines()
        assert lines[0].split() == ["rows", "tasks", "error", "since", "last", "macro-AUC", "rows/s"]
        assert lines[1].split() == ["400", "2", "0.1562", "0.1562", "0.7500", "1,600"]
        assert "400 rows of 2 tasks, 7 updates, 0.50 s" in text
        assert lines[-1] == "AUC of a sample"

    def test_numbers_are_never_wider_than_their_column(self) -> None:
        one = evaluation([0.75], [1.3e140], [300])
        assert "1.3e+140" in str(one)
        assert max(map(len, str(one).splitlines())) < 80


class TestNotebooks:
    """What stands in a cell is short, and HTML has no color: the notebook's own fits light and dark."""

    def test_a_run_and_its_verdict(self) -> None:
        runs = [evaluation([0.75 - gap] * 400, [0.125 + gap] * 400, [300] * 400) for gap in (0.0, 0.02, 0.01)]
        verdict = compare(runs[0], independent=runs[1], pooled=runs[2])
        assert repr(runs[0]) == "Evaluation(120,000 rows of 400 tasks: error 0.1250, AUC 0.7000)"
        assert repr(verdict).startswith("Verdict('share partly': Sharing partly is best: one error in 7 fewer than ")
        by_auc = verdict.comparisons[0]
        for found, cells in (
            (runs[0], ["0.1250", "mean over tasks"]),
            (verdict, [verdict.sentence, "0 of 400"]),
            (by_auc, ["all tasks", "macro-AUC", "pooled", "0.0100"]),
        ):
            page = found._repr_html_()
            assert "color" not in page
            for cell in cells:
                assert f">{cell}<" in page

    def test_what_a_search_and_a_forecast_found(self) -> None:
        rng = np.random.default_rng(0)
        X, task = rng.normal(size=(200, 2)), np.arange(200) % 2
        y = np.where(X[:, 0] > 0.0, 1, -1)
        found = search(PassiveAggressive(), X, y, task, parameters={"C": [0.1, 1.0]})
        assert repr(found).startswith("SearchResult(2 trials, best ")
        learner = found.best_learner
        for page in (
            found._repr_html_(),
            learner.explain_one(X[0], 0)._repr_html_(),
            learner.similar_tasks(0)._repr_html_(),
        ):
            assert page.startswith("<table><thead><tr><th>")
            assert "color" not in page


class TestFrames:
    def test_tasks(self) -> None:
        frame = evaluation([0.75, math.nan], [0.1, 0.2], [3, 4]).to_frame()
        assert frame.columns == ["task", "rows", "updates", "error", "auc"]
        assert frame["task"].to_list() == ["t0", "t1"]
        assert frame["rows"].to_list() == [3, 4]

    def test_ids_of_several_kinds_become_text(self) -> None:
        one = evaluation([0.75, 0.5], [0.1, 0.2], [3, 4])
        one.per_task[("a", 1)] = one.per_task.pop("t1")
        assert one.to_frame()["task"].to_list() == ["t0", "('a', 1)"]

    def test_history(self) -> None:
        frame = evaluation([0.75], [0.1], [3]).to_frame("history")
        assert frame.columns[:5] == ["rows", "tasks", "seconds", "error", "macro_error"]
        assert frame["macro_auc"].to_list() == [0.75]

    def test_anything_else_is_refused(self) -> None:
        with pytest.raises(ValueError, match='"tasks" or "history"'):
            evaluation([0.75], [0.1], [3]).to_frame("rows")
