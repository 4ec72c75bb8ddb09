"""`shoal compare`: learners side by side, tuned or not, with ranks that a script can read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from tests.cli.conftest import TABLE, Program

from shoal import Chunk
from shoal.cli.commands.compare import split_stream, standing_lines
from shoal.cli.display import _listed
from shoal.cli.streams import Stream
from shoal.datasets import Dataset
from shoal.evaluation.learner_ranks import Standing, conclusion

TWO = ("--learners", "HedgedSharing,PassiveAggressive")


def standing(name: str, rank: Any, p_value: Any = 1.0, score: Any = 0.5, behind: Any = 0.0) -> Any:
    return Standing(name, rank, "auc", score, 1.5, behind, 0.01, p_value, 7, None if rank else 12)


def test_a_table_of_ranks_and_one_of_scores(shoal: Program, csv_file: Path) -> None:
    code, out, err = shoal("compare", csv_file, *TABLE, *TWO)
    assert (code, err) == (0, "")
    ranks = re.findall(r"^(\w+) +(\d) +(0\.\d{4}) +(\d\.\d\d)", out, re.M)
    assert [(name, rank) for name, rank, *_ in ranks] == [("HedgedSharing", "1"), ("PassiveAggressive", "2")]
    assert float(ranks[0][2]) > float(ranks[1][2])
    assert "HedgedSharing is best" in out
    assert out.startswith("HedgedSharing(), next to PassiveAggressive\n")
    assert "on sales.csv; every row is predicted before it is learned" in out
    assert "colour: category, 3 values one-hot" in out


def test_five_learners_by_default_and_settings_after_colons(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    assert shoal("compare", csv_file, *TABLE, "--quiet", "--json", tmp_path / "a.json")[:2] == (0, "")
    found = json.loads((tmp_path / "a.json").read_text())
    assert len(found["learners"]) == len(found["standings"]) == 5
    names = "PassiveAggressive:C=0.01,PassiveAggressive:C=1:relation=pooled"
    assert shoal("compare", csv_file, *TABLE, "--learners", names, "--json", tmp_path / "b.json", "--quiet")[0] == 0
    found = json.loads((tmp_path / "b.json").read_text())["learners"]
    assert [one["parameters"]["C"] for one in found.values()] == ["0.01", "1"]
    assert [one["parameters"]["relation"] for one in found.values()] == ["'independent'", "'pooled'"]


def test_each_sees_what_run_shows_it(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    shoal("run", csv_file, *TABLE, "--json", tmp_path / "run.json", "--quiet")
    shoal("compare", csv_file, *TABLE, *TWO, "--json", tmp_path / "compare.json", "--quiet")
    run, compared = (json.loads((tmp_path / name).read_text()) for name in ("run.json", "compare.json"))
    assert run["learners"]["HedgedSharing"]["overall"] == compared["learners"]["HedgedSharing"]["overall"]
    assert {"standings", "tuning"} == compared.keys() - run.keys()
    assert compared["verdict"] is None


def test_tuning_on_the_first_rows_leaves_them_out(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    learners = ("--learners", "HedgedSharing,PassiveAggressive:relation=independent")
    code, out, err = shoal("compare", csv_file, *TABLE, *learners, "--tune", 400, "--json", tmp_path / "f.json")
    assert (code, err) == (0, "")
    assert "tuned on the first 400 rows, which are left out of the scores" in out
    assert re.search(r"^  HedgedSharing +nothing to tune$", out, re.M)
    assert re.search(r"^  PassiveAggressive:relation=independent +C=[\d.]+ \(7 tried, AUC 0\.\d{4}\)$", out, re.M)
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["rows"] == 1100
    [(name, tuned)] = found["tuning"].items()
    assert tuned["rows"] == 400
    assert tuned["best"].keys() == {"C"}  # what the user has set stays
    assert found["learners"][name]["parameters"]["C"] == repr(tuned["best"]["C"])
    assert found["learners"][name]["parameters"]["relation"] == "'independent'"


@pytest.mark.parametrize("size", [1, 3, 5, 12])
def test_rows_are_split_wherever_chunks_end(size: int) -> None:
    """Chunks of a file get wider as features appear."""
    X = np.tril(np.arange(1.0, 145.0).reshape(12, 12))
    y, task = np.arange(12), np.array([f"t{i % 2}" for i in range(12)])
    ends = range(size, 12 + size, size)
    chunks = [Chunk(csr_matrix(X[end - size : end, :end]), y[end - size : end], task[end - size : end]) for end in ends]
    first, rest = split_stream(Stream(iter(chunks), "regression", None, "f", 12, None), 5)
    np.testing.assert_array_equal(first.X.toarray(), X[:5, : first.X.shape[1]])
    assert first.y.tolist() == [0, 1, 2, 3, 4]
    assert first.task.tolist() == ["t0", "t1", "t0", "t1", "t0"]
    assert rest.total_rows == 7
    others = list(rest.chunks)
    assert [label for chunk in others for label in chunk.y.tolist()] == list(range(5, 12))
    for chunk in others:
        np.testing.assert_array_equal(chunk.X.toarray(), X[chunk.y][:, : chunk.X.shape[1]])


def test_regressors_and_the_report(shoal: Program, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path, report = tmp_path / "prices.csv", tmp_path / "r.html"
    lines = [f"s{i % 4},{v:.4f},{3 * v + i % 4:.4f}" for i, v in enumerate(rng.normal(size=400))]
    path.write_text("shop,x,price\n" + "\n".join(lines) + "\n")
    learners = ("--learners", "HedgedSharingRegressor,MultitaskRegressor")
    columns = ("--task", "shop", "--label", "price")
    code, out, err = shoal("compare", path, *columns, *learners, "--tune", 100, "--report", report)
    assert (code, err) == (0, "")
    assert "macro-RMSE" in out
    page = report.read_text()
    assert "2 learners on prices.csv" in page
    assert "HedgedSharingRegressor is best" in page or "MultitaskRegressor is best" in page


def test_what_the_standings_say() -> None:
    best = standing("A", 1)
    assert conclusion([best, standing("B", 2, 0.01)]).startswith("A is best, and clearly ahead of all others")
    assert conclusion([best, standing("B", 2, 0.2)]).startswith("A is best, but its lead over any other may be chance")
    some = conclusion([best, standing("B", 2, 0.2), standing("C", 3, 0.01)])
    assert some.startswith("A is best; its lead over B may be chance")
    few = [replace(one, n_tasks=6) for one in (best, standing("B", 2, 0.01), standing("C", 3, 0.01))]
    assert conclusion(few).startswith("A is best; 6 tasks are too few for the signed rank test (5 %)")
    assert conclusion([best]) == "there are no two learners to compare"
    lines = standing_lines([best, standing("long name", 2, 1e-300, 3e141, 1e-9), standing("C", None)])
    assert len({len(line) for line in lines[:3]}) == 1
    assert "diverged at row 12" in lines[3]


def test_options_of_one_learner_are_not_options_here(shoal: Program, csv_file: Path) -> None:
    for option in ("--save", "--load", "--learner", "--set", "--predictions", "--figures", "--tasks-out"):
        code, _, err = shoal("compare", csv_file, *TABLE, option, "x")
        assert code == 2
        assert option in err


MINE = """class MyLearner:
    def __init__(self, sign=1.0):
        self.sign = sign

    def learn_one(self, x, y):
        pass

    def decision_one(self, x):
        return self.sign * x.get(1, 0.0)

    def predict_one(self, x):
        raise AssertionError
"""


def test_own_learners_over_random_orders_to_report_json_and_files(
    shoal: Program, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings 37 and 38."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_file_of_learners.py").write_text(MINE)
    two = "my_file_of_learners:MyLearner,my_file_of_learners:MyLearner:sign=-1"
    how = ("compare", csv_file, *TABLE, "--learners", two, "--json", "f.json", "--report", "r.html")
    code, out, err = shoal(*how, "--shuffles", 6, "--metrics", "error", "--export", "files")
    assert (code, err) == (0, "")
    assert "my_file_of_learners:MyLearner is best, and clearly ahead of all others (signed rank test over 6" in out
    found = json.loads((tmp_path / "f.json").read_text())
    assert (found["seeds"], found["rows"], found["tasks"]) == ([0, 1, 2, 3, 4, 5], 1500, 6)
    assert [one["p_value"] for one in found["places"]] == [1.0, 2 / 2**6]
    good, bad = (scores["overall"] for scores in found["learners"].values())
    assert all(a["error"] < 0.3 < 0.7 < b["error"] for a, b in zip(good, bad, strict=True))
    page = (tmp_path / "r.html").read_text()
    assert page.index("is best, and clearly ahead") < page.index("Mean ranks that differ by less than 0.80 are alike")
    assert (tmp_path / "files" / "places.tex").exists()
    code, out, err = shoal(*how, "--metrics", "error")
    assert (code, err) == (0, "")
    page = (tmp_path / "r.html").read_text()
    assert page.index("mean rank over tasks") < page.index("Scores")  # the conclusion and ranks come first
    code, out, err = shoal("run", csv_file, *TABLE, "--learner", "my_file_of_learners:MyLearner", "--metrics", "f1")
    assert (code, err) == (0, "")
    assert "MyLearner" in out
    for wrong, message in (
        (["--shuffles", "3", "--seeds", "1,2"], "are 2 orders, and --shuffles says 3"),
        (["--seeds", "a"], "--seeds takes numbers"),
        (["--learners", "no_such_file:A"], "No module named 'no_such_file'"),
        (["--learners", "my_file_of_learners:A"], "my_file_of_learners has no class A"),
        (["--learners", "my_file_of_learners:MyLearner:a=1"], "has no hyper-parameter 'a'"),
    ):
        code, _, err = shoal("compare", csv_file, *TABLE, *wrong)
        assert (code, len(err.splitlines())) == (2, 1)
        assert message in err


def test_what_goes_wrong_is_one_line(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["--learners", "HedgedSharin"], "did you mean HedgedSharing?"),
        (["--learners", "OSMTL:alfa=1"], "OSMTL has no hyper-parameter 'alfa'"),
        (["--learners", "OSMTL,OSMTL"], "names OSMTL twice"),
        (["--learners", "OSMTL,MultitaskRegressor"], "all for labels or all for numbers"),
        (["--learners", "SMTL"], "batch learner"),
        (["--learners", "TabularClassifier"], "TabularClassifier is for Python: a run reads tables by itself"),
        (["--tune", "3"], "--tune takes a number of rows, 10 or more"),
        (["--tune", "1500"], "--tune 1500: the stream has no more rows"),
        (["--tune", "2000"], "--tune 2000: the stream has only 1,500 rows"),
        (["--report", csv_file], "is read as the input"),
        (["--json", tmp_path / "no" / "f.json"], "does not exist"),
    ):
        code, _, err = shoal("compare", csv_file, *TABLE, *arguments)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert message in err


def test_a_data_set_says_whether_labels_or_numbers_are_learned(
    shoal: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(200, 2)), np.repeat(["a", "b"], 100)
    data = Dataset("toy", X, X @ [1.0, 2.0], task, ("u", "v"), "A toy.", "regression")
    monkeypatch.setattr("shoal.datasets.load", lambda name: data)
    assert shoal("compare", "dataset:toy", "--json", tmp_path / "f.json", "--quiet")[0] == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert list(found["learners"]) == ["HedgedSharingRegressor", "MultitaskRegressor", "PassiveAggressiveRegressor"]


def test_names_that_have_no_room_are_counted() -> None:
    assert _listed(["a"]) == "a"
    assert _listed(list("abc")) == "a, b and c"
    assert _listed(list("abcdefg")) == "7 others"
