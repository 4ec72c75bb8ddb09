"""`shoal run` from file to verdict, model and report."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import TABLE, Program, Row

import shoal as library


def scores(out: str) -> dict[str, list[float]]:
    """learner -> its row of the final table as numbers."""
    learners = "HedgedSharing|MultitaskRegressor|OSMTL|independent|pooled"
    found = re.findall(rf"^({learners}) +([-\d., ]+)$", out, re.M)
    return {name: [float(value.replace(",", "")) for value in values.split()] for name, values in found}


def test_csv_gives_the_table_the_baselines_and_the_verdict(shoal: Program, csv_file: Path) -> None:
    code, out, err = shoal("run", csv_file, *TABLE)
    assert (code, err) == (0, "")
    assert "1,500" in out
    assert " is best: " in out
    assert "smallest" not in out  # six tasks: they are all
    found = scores(out)
    assert set(found) == {"HedgedSharing", "independent", "pooled"}
    assert all(0 < error < 0.5 for error, *_ in found.values())
    assert "colour: category, 3 values one-hot" in out


def test_every_format_gives_the_same_scores(shoal: Program, csv_file: Path, rows: list[Row], tmp_path: Path) -> None:
    frame = pl.DataFrame(rows, schema=["shop", "size", "colour", "sold"], orient="row")
    frame.write_parquet(tmp_path / "sales.parquet")
    frame.write_ndjson(tmp_path / "sales.ndjson")
    frame.write_ipc(tmp_path / "sales.arrow")
    expected = scores(shoal("run", csv_file, *TABLE)[1])
    for name in ("sales.parquet", "sales.ndjson", "sales.arrow"):
        found = scores(shoal("run", tmp_path / name, *TABLE)[1])
        assert {k: v[:-1] for k, v in found.items()} == {k: v[:-1] for k, v in expected.items()}  # not the seconds


def test_sparse_text_formats(shoal: Program, tmp_path: Path, rows: list[Row]) -> None:
    colours = {"red": 2, "green": 3, "blue": 4}
    libsvm, vw = [], []
    for shop, size, colour, sold in rows:
        sign = 1 if sold == "yes" else -1
        libsvm.append(f"{sign} qid:{shop[-1]} 1:{size} {colours[colour]}:1 5:1")
        vw.append(f"{sign} |shop {shop} |x size:{size} {colour} constant")
    (tmp_path / "sales.libsvm").write_text("\n".join(libsvm) + "\n")
    (tmp_path / "sales.vw").write_text("\n".join(vw) + "\n")
    by_qid = scores(shoal("run", tmp_path / "sales.libsvm")[1])
    by_namespace = scores(shoal("run", tmp_path / "sales.vw", "--task", "shop")[1])
    assert {k: v[:-1] for k, v in by_qid.items()} == {k: v[:-1] for k, v in by_namespace.items()}
    assert by_qid["HedgedSharing"][0] < 0.3


def test_standard_input(shoal: Program, csv_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = scores(shoal("run", csv_file, *TABLE)[1])
    stdin = type("Input", (), {"buffer": io.BytesIO(csv_file.read_bytes())})()
    monkeypatch.setattr(sys, "stdin", stdin)
    found = scores(shoal("run", "-", *TABLE)[1])
    assert {k: v[:-1] for k, v in found.items()} == {k: v[:-1] for k, v in expected.items()}


def test_a_saved_model_goes_on_as_if_it_had_never_stopped(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    header, *lines = csv_file.read_text().splitlines()
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("\n".join([header, *lines[:700]]) + "\n")
    second.write_text("\n".join([header, *lines[700:]]) + "\n")
    whole, part = tmp_path / "whole.shoal", tmp_path / "part.shoal"
    assert shoal("run", csv_file, *TABLE, "--save", whole)[0] == 0
    assert shoal("run", first, *TABLE, "--save", part)[0] == 0
    code, out, _ = shoal("run", second, "--load", part, "--save", part)
    assert code == 0
    assert part.read_bytes() == whole.read_bytes()
    assert library.load(whole).tasks_[0].startswith("shop")
    assert set(scores(out)) == {"HedgedSharing", "independent", "pooled"}
    assert " is best: " in out


def test_a_model_of_an_own_learner_goes_on_if_it_is_trusted(
    shoal: Program, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 32."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_file.py").write_text("import shoal\n\nclass Mine(shoal.PassiveAggressive):\n    pass\n")
    code, _, err = shoal("run", csv_file, *TABLE, "--learner", "own_file:Mine", "--set", "C=0.1", "--save", "m.shoal")
    assert (code, err) == (0, "")
    monkeypatch.delitem(sys.modules, "own_file")
    for command in (["run", csv_file, "--load"], ["inspect"], ["explain", "--model"], ["predict", csv_file, "--model"]):
        code, _, err = shoal(*command, "m.shoal")
        assert (code, len(err.splitlines())) == (2, 1)
        assert "m.shoal holds a own_file.Mine, which is no learner of shoal" in err
        assert "--trusted own_file:Mine of shoal run, predict, explain and inspect" in err
        assert "own_file" not in sys.modules
        code, out, err = shoal(*command, "m.shoal", "--trusted", "own_file:Mine")
        assert (code, err) == (0, "")
        assert ("Mine" in out) == (command[0] in ("run", "inspect"))
        monkeypatch.delitem(sys.modules, "own_file")


def test_a_model_without_its_baselines_gives_no_verdict(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    model, light = tmp_path / "m.shoal", tmp_path / "light.shoal"
    assert shoal("run", csv_file, *TABLE, "--save", model, "--quiet")[0] == 0
    code, out, _ = shoal("run", csv_file, "--load", model, "--save", light, "--no-baselines")
    assert code == 0
    assert "verdict" not in out
    assert light.stat().st_size < 0.7 * model.stat().st_size
    code, out, _ = shoal("run", csv_file, "--load", light)
    assert code == 0
    assert "there will be no verdict: the model was saved without its baselines" in out
    assert set(scores(out)) == {"HedgedSharing"}


def test_regression(shoal: Program, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x, shop = rng.normal(size=800), rng.integers(4, size=800)
    lines = [f"s{k},{v:.4f},{2 * v + 0.1 * k:.4f}" for k, v in zip(shop, x, strict=True)]
    path = tmp_path / "prices.csv"
    path.write_text("shop,x,price\n" + "\n".join(lines) + "\n")
    code, out, err = shoal("run", path, "--task", "shop", "--label", "price", "--learner", "MultitaskRegressor")
    assert (code, err) == (0, "")
    assert "macro-RMSE" in out
    assert scores(out)["MultitaskRegressor"][1] < 2  # RMSE; the target has standard deviation 2


def test_metrics_by_name_and_weights_of_labels(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    how = ("run", csv_file, *TABLE, "--learner", "PassiveAggressive", "--json", tmp_path / "a.json")
    code, out, err = shoal(*how, "--metrics", "f1,balanced_error", "--class-weight", "yes=5")
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "a.json").read_text())["learners"]["PassiveAggressive"]
    assert [*found["overall"]] == ["f1", "balanced_error", "auc", "error"]  # two for the verdict
    for of in (found["overall"], found["macro"], found["standard_errors"], found["last_rows"]["overall"]):
        assert f"{of['balanced_error']:.4f}" in out
    assert re.search(r"^ +f1  bal\. error +AUC  macro-AUC +error", out, re.M)
    assert "Sharing" in out
    for wrong in (["--metrics", "r2"], ["--class-weight", "yes"], ["--class-weight", "yes=-1"]):
        assert shoal(*how, *wrong)[0] == 2


def test_simultaneous_learner_and_delay(shoal: Program, csv_file: Path) -> None:
    code, out, _ = shoal("run", csv_file, *TABLE, "--learner", "OSMTL", "--set", "alpha=0.9", "--delay", "50")
    assert code == 0
    assert scores(out)["OSMTL"][0] < 0.5


def test_report_and_pictures(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    report, pictures = tmp_path / "report.html", tmp_path / "pictures"
    code, _, err = shoal("run", csv_file, *TABLE, "--report", report, "--figures", pictures)
    assert (code, err) == (0, "")
    assert "sales.csv" in report.read_text(encoding="utf-8")
    assert {path.suffix for path in pictures.iterdir()} == {".png", ".svg"}


def test_bad_rows_stop_or_are_counted(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    lines = csv_file.read_text().splitlines()
    lines[5] = "shop1,big,red,yes"
    lines[9] = "shop1,0.5,red,perhaps"
    broken = tmp_path / "broken.csv"
    broken.write_text("\n".join(lines) + "\n")
    code, _, err = shoal("run", broken, *TABLE)
    assert code == 2
    assert "broken.csv, line 6" in err
    assert len(err.splitlines()) == 1
    code, out, _ = shoal("run", broken, *TABLE, "--skip-bad", "--labels", "no,yes")
    assert code == 0
    assert "2 bad rows skipped" in out
    assert "line 10" in out


def test_without_arguments_it_shows_examples(shoal: Program) -> None:
    code, out, err = shoal("run")
    assert (code, err) == (0, "")
    assert out.count("shoal run ") == 4  # three of them, and where the options are


def test_built_in_data(shoal: Program) -> None:
    code, out, _ = shoal("run", "dataset:related_tasks")
    assert code == 0
    assert scores(out)["HedgedSharing"][0] < scores(out)["independent"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere.csv", *TABLE], "there is no file nowhere.csv"),
        (["run", "nowhere.csv"], "there is no file nowhere.csv"),
        (["run", "dataset:nothing"], "there is no data set 'nothing'"),
        (["run", "dataset:related_tasks", "--task", "x"], "leave out --task"),
        (["run", "dataset:school", "--learner", "OSMTL"], "OSMTL is for labels"),
        (["run", "dataset:related_tasks", "--learner", "OSMTLL"], "did you mean OSMTL?"),
        (["run", "dataset:related_tasks", "--learner", "MultitaskPerceptron", "--set", "etta=1"], "did you mean eta?"),
        (["run", "dataset:related_tasks", "--learner", "MultitaskPerceptron", "--set", "eta"], "name=value"),
        (["run", "dataset:related_tasks", "--learner", "MultitaskPerceptron", "--set", "eta=-1"], "eta must be"),
        (["run", "dataset:related_tasks", "--window", "0"], 'Invalid value "0" for --window'),
        (["run", "dataset:related_tasks", "--save", "no/such/folder/m.shoal"], "does not exist"),
        (["run", "dataset:related_tasks", "--load", "no.shoal"], "no model at"),
        (["run", "dataset:related_tasks", "--load", "no.shoal", "--set", "eta=1"], "leave out --learner"),
        (["run", "dataset:related_tasks", "--labell", "x"], "--labell"),
        (["swim"], "Unknown command"),
        (["inspect", "no.shoal"], "no model at"),
    ],
)
def test_what_goes_wrong_is_one_line_and_exit_code_2(
    shoal: Program,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data_folder: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = shoal(*arguments)
    assert code == 2
    assert message in err
    assert err.startswith("shoal: ")
    assert len(err.splitlines()) == 1


@pytest.fixture
def data_folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """School must be there to be refused for its kind."""
    if "dataset:school" in request.node.callspec.params["arguments"]:
        from shoal.datasets import load_school

        try:
            load_school()
        except FileNotFoundError as error:
            pytest.skip(f"needs the School file: {error}")
