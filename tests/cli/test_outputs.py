"""What `shoal run` writes: predictions, tasks, JSON, models and reports; and that it destroys nothing."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import mean_pinball_loss
from tests.cli.conftest import TABLE, Program, Row

import shoal as library
from shoal.cli.app import start
from shoal.cli.outputs import check_folder, check_outputs

READ: dict[str, Callable[..., pl.DataFrame]] = {
    ".csv": pl.read_csv,
    ".ndjson": pl.read_ndjson,
    ".parquet": pl.read_parquet,
}


@pytest.mark.parametrize("ending", READ)
def test_predictions_are_those_that_were_scored(
    shoal: Program, csv_file: Path, rows: list[Row], tmp_path: Path, ending: str
) -> None:
    path, found = tmp_path / f"predictions{ending}", tmp_path / "found.json"
    kept = ("--keep", "size,shop", "--delay", "7")
    code, _, err = shoal("run", csv_file, *TABLE, "--predictions", path, *kept, "--json", found, "--quiet")
    assert (code, err) == (0, "")
    frame = READ[ending](path)
    assert frame.columns == ["size", "shop", "task", "label", "predicted", "probability"]
    assert frame["shop"].equals(frame["task"])
    assert frame["size"].cast(pl.Float64).equals(pl.read_csv(csv_file)["size"])
    assert frame["task"].to_list() == [shop for shop, *_ in rows]
    assert frame["label"].to_list() == [sold for *_, sold in rows]
    overall = json.loads(found.read_text())["learners"]["HedgedSharing"]["overall"]
    assert (frame["label"] != frame["predicted"]).mean() == pytest.approx(overall["error"])
    p, positive = frame["probability"].to_numpy(), frame["label"].to_numpy() == "yes"
    assert np.mean(np.square(p - positive)) == pytest.approx(overall["brier"])


def test_intervals_and_sets_stand_beside_what_is_predicted(shoal: Program, tmp_path: Path, csv_file: Path) -> None:
    rng, prices, out, model = np.random.default_rng(0), tmp_path / "prices.csv", tmp_path / "out.csv", tmp_path / "m"
    size = rng.normal(size=900)
    frame = pl.DataFrame({"shop": rng.integers(3, size=900), "size": size, "price": size + rng.normal(size=900)})
    frame.write_csv(prices)
    options = ("--task", "shop", "--label", "price", "--learner", "MultitaskRegressor", "--set", "eta=0.1")
    code, said, _ = shoal("run", prices, *options, "--interval", "0.8", "--predictions", out, "--save", model)
    assert (code, "of the targets were in intervals of 0.8; in the worst task" in " ".join(said.split())) == (0, True)
    found = pl.read_csv(out)
    assert found.columns == ["task", "label", "predicted", "low", "high"]
    assert found["low"][:50].is_infinite().all()
    inside = found["label"].is_between(found["low"], found["high"])[50:]
    assert 0.7 < inside.sum() / len(inside) < 0.9
    assert shoal("predict", prices, "--model", model, "--interval", "0.8", "--out", out)[0] == 0
    assert {"low", "high"} <= set(pl.read_csv(out).columns)
    assert "the intervals of" in shoal("predict", prices, "--model", model, "--interval", "0.9")[2]
    again = ("--load", model, "--interval", "0.8", "--save", model, "--predictions", out)
    assert shoal("run", prices, *again)[0] == 0
    assert pl.read_csv(out)["low"].is_finite().all()
    labels = ("--learner", "MultitaskPerceptron", "--set", "loss=logistic", "--interval", "0.9", "--predictions", out)
    assert shoal("run", csv_file, *TABLE, *labels)[0] == 0
    sets = pl.read_csv(out)["set"].fill_null("")
    assert set(sets) <= {"", "no", "yes", "no|yes"}
    assert (sets[:50] == "no|yes").all()
    kind = np.array(["ash", "elm", "fir"])[np.digitize(size, [-0.5, 0.5])]
    frame.select("shop", "size", kind=pl.Series(kind)).write_csv(prices)
    kinds = ("--task", "shop", "--label", "kind", "--interval", "0.8", "--predictions", out, "--save", model)
    code, said, _ = shoal("run", prices, *kinds, *labels[:4])
    assert (code, "of the targets were in sets of 0.8" in " ".join(said.split())) == (0, True)
    found = pl.read_csv(out).with_columns(pl.col("set").fill_null("").str.split("|"))[50:]
    assert 0.7 < found.select(pl.col("set").list.contains(pl.col("label"))).to_series().to_numpy().mean() < 0.9
    assert shoal("predict", prices, "--model", model, "--out", out)[0] == 0
    assert {"ash", "elm", "fir"} <= set(pl.read_csv(out)["set"])


def test_quantiles_stand_beside_each_other_and_are_judged_by_their_loss(shoal: Program, tmp_path: Path) -> None:
    rng, prices, out, model = np.random.default_rng(0), tmp_path / "prices.csv", tmp_path / "out.csv", tmp_path / "m"
    size = rng.normal(size=600)
    frame = pl.DataFrame({"shop": rng.integers(3, size=600), "size": size, "price": size + rng.normal(size=600)})
    frame.write_csv(prices)
    options, target = ("--task", "shop", "--label", "price"), ("--target", "0.1,median,0.9")
    found = tmp_path / "found.json"
    code, said, _ = shoal("run", prices, *options, *target, "--predictions", out, "--save", model, "--json", found)
    assert (code, "pinball is the mean loss of the quantiles 0.1, 0.5, 0.9" in " ".join(said.split())) == (0, True)
    told = json.loads(found.read_text())
    assert [(one["metric"], one["macro"]) for one in told["verdict"]["comparisons"]] == [
        ("pinball", True),
        ("pinball", False),
    ]
    columns = ["task", "label", "predicted", "quantile 0.1", "quantile 0.5", "quantile 0.9"]
    rows = pl.read_csv(out)
    assert rows.columns == columns
    assert rows["predicted"].to_list() == rows["quantile 0.5"].to_list()
    overall = told["learners"]["HedgedSharingRegressor"]["overall"]
    losses = [mean_pinball_loss(rows["label"], rows[f"quantile {p}"], alpha=p) for p in (0.1, 0.5, 0.9)]
    assert overall == {"pinball": pytest.approx(np.mean(losses))}
    assert shoal("predict", prices, "--model", model, "--out", out)[0] == 0
    assert pl.read_csv(out).columns == ["task", *columns[2:], "known_task"]
    assert shoal("run", prices, "--load", model, *target)[0] == 0
    assert "was learned with target [0.1, 0.5, 0.9]" in shoal("run", prices, "--load", model, "--target", "0.9")[2]


def test_targets_that_a_run_refuses(shoal: Program, csv_file: Path) -> None:
    of_labels = shoal("run", csv_file, *TABLE, "--target", "0.9")[2]
    assert "--target is for numbers, and sales.csv has labels: --regression takes labels as numbers" in of_labels
    size = (csv_file, "--task", "shop", "--label", "size")
    assert "levels between 0 and 1 in rising order, got price (--label" in shoal("run", *size, "--target", "price")[2]
    assert "MultitaskRegressor has none" in shoal("run", *size, "--learner", "MultitaskRegressor", "--target", "0.9")[2]
    assert "judges numbers by squared errors" in shoal("run", *size, "--target", "0.9", "--guard")[2]


def test_a_guard_is_in_the_model_and_names_whom_it_guarded(shoal: Program, tmp_path: Path, csv_file: Path) -> None:
    model, learner = tmp_path / "m", ("--learner", "PassiveAggressive", "--set", "relation=pooled")
    code, said, _ = shoal("run", csv_file, *TABLE, *learner, "--guard", "--save", model)
    assert (code, "without the guard, sharing would have harmed" in " ".join(said.split())) == (0, True)
    assert shoal("run", csv_file, "--load", model, "--guard")[0] == 0
    assert shoal("predict", csv_file, "--model", model, "--out", tmp_path / "p.csv")[0] == 0
    assert shoal("run", csv_file, *TABLE, *learner, "--save", model)[0] == 0
    assert "was learned without a guard" in shoal("run", csv_file, "--load", model, "--guard")[2]


def test_json_on_standard_output_is_all_there_is(shoal: Program, csv_file: Path) -> None:
    code, out, err = shoal("run", csv_file, *TABLE, "--json", "-")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["schema"], found["rows"], found["tasks"], found["stopped"]) == (1, 1500, 6, None)
    assert list(found["learners"]) == ["HedgedSharing", "independent", "pooled"]
    assert found["verdict"]["outcome"] in ("share partly", "share fully", "do not share")
    assert found["learners"]["HedgedSharing"]["history"][-1]["rows"] == 1500
    assert "NaN" not in out


def test_a_row_per_task_with_the_scores_of_all(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    assert shoal("run", csv_file, *TABLE, "--tasks-out", path)[0] == 0
    frame = pl.read_csv(path)
    assert sorted(frame["task"].to_list()) == [f"shop{k}" for k in range(6)]
    assert frame["rows"].sum() == 1500
    assert {"auc", "independent_auc", "pooled_auc", "sharing", "weight"} <= set(frame.columns)
    assert frame["weight"].is_between(1 / 9, 1).all()
    assert not [name for name in frame.columns if "calibration" in name]  # no task has it alone


def test_quiet_prints_nothing(shoal: Program, csv_file: Path) -> None:
    assert shoal("run", csv_file, *TABLE, "--quiet") == (0, "", "")


def test_save_every_writes_on_the_way(
    shoal: Program, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = []

    def save(path: str, contestants: dict[str, library.Learner], *_: object) -> Path:
        saved.append([learner.n_updates_ for learner in contestants.values()])
        return csv_file  # any file

    monkeypatch.setattr("shoal.cli.commands.run.save_model", save)
    assert shoal("run", csv_file, *TABLE, "--save", tmp_path / "m.shoal", "--save-every", 1000)[0] == 0
    assert saved == [[1000] * 3, [1500] * 3]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_pass_and_what_was_learned_is_kept(
    shoal: Program, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    from shoal.cli import streams as opening
    from shoal.cli.commands import run as module

    run: Any = module
    streams: Any = opening

    def stop_after_300_rows(_: object, n: int) -> None:
        if n == 300:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    chunked = streams.open_stream
    monkeypatch.setattr(
        streams, "open_stream", lambda *a, **k: chunked(*a, **k | {"chunk_rows": 100, "read_ahead": False})
    )
    monkeypatch.setattr(run.Display, "rows", stop_after_300_rows)
    model, predictions = tmp_path / "m.shoal", tmp_path / "p.csv"
    ended, out, err = shoal("run", csv_file, *TABLE, "--save", model, "--predictions", predictions)
    assert (ended, err) == (code, "")
    name = signal.Signals(number).name
    assert f"stopped by {name} after 300 rows" in out
    assert " is best: " in out
    assert library.load(model).estimator_.n_updates_ == 300
    assert len(pl.read_csv(predictions)) == 300
    assert signal.getsignal(number) == before


def test_a_signal_before_the_first_row_is_said(
    shoal: Program, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.cli.commands import run as module

    run: Any = module
    begun = run.warmed_up

    def stop(*arguments: object, **protocol: object) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return begun(*arguments, **protocol)

    monkeypatch.setattr(run, "warmed_up", stop)
    ended, _, err = shoal("run", csv_file, *TABLE, "--save", tmp_path / "m.shoal")
    assert (ended, err) == (143, "shoal: stopped by SIGTERM before the first row: nothing is saved\n")
    assert not (tmp_path / "m.shoal").exists()


def test_outputs_destroy_nothing(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    content, pipe = csv_file.read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link.csv"
    link.symlink_to(csv_file)
    reading, writing = os.pipe()
    for option in ("--save", "--report", "--json"):
        for name, message in (
            (csv_file, "is read as the input"),
            (link, "is read as the input"),
            (tmp_path, "is a folder"),
            (pipe, "is a device or a pipe"),
            (f"/dev/fd/{writing}", "is a device or a pipe"),  # what /dev/stdout is in a pipeline
            (tmp_path / "no" / "x", "does not exist; make it first"),
        ):
            code, _, err = shoal("run", csv_file, *TABLE, option, name)
            assert (code, len(err.splitlines())) == (2, 1)
            assert option in err
            assert message in err
    os.close(reading)
    os.close(writing)
    assert csv_file.read_bytes() == content
    assert pipe.is_fifo()


def test_a_full_disk_behind_standard_output_is_said(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shoal.cli.app.app", lambda *_, **__: full())
    with pytest.raises(SystemExit):
        start(["learners"])
    expected = "shoal: there is no room left for standard output, or in the folder of --export or --figures\n"
    assert capsys.readouterr().err == expected


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    check_outputs({"--save": str(tmp_path / "a"), "--report": str(tmp_path / "b"), "--json": None}, ["-", None])
    with pytest.raises(ValueError, match=r"--report .*a is the file of --save, too"):
        check_outputs({"--save": str(tmp_path / "a"), "--report": str(tmp_path / "a")}, [])


def test_no_room_and_no_right_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.touch()
    with pytest.raises(NotADirectoryError, match=r"--figures .*a is a file, expected a folder"):
        check_folder("--figures", str(file))
    for folder in (None, str(tmp_path), str(tmp_path / "new")):
        check_folder("--figures", folder)
    with pytest.raises(FileNotFoundError, match=r"the folder .*new for --figures does not exist; make it first"):
        check_folder("--figures", str(tmp_path / "new" / "newer"))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"--save .* cannot be written to"):
        check_outputs({"--save": str(file)}, [])
    with pytest.raises(PermissionError, match=rf"the folder {tmp_path} for --figures cannot be written to"):
        check_folder("--figures", str(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"total": 0, "free": 0}))
    with pytest.raises(PermissionError, match="cannot be written to"):  # /proc has no disk
        check_outputs({"--save": str(file)}, [])
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"total": 1 << 30, "free": 0}))
    with pytest.raises(OSError, match="no room"):
        check_outputs({"--save": str(file)}, [])
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"total": 1 << 30, "free": 1 << 20}))
    check_outputs({"--save": str(file)}, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--predictions", "p.xlsx"], "--predictions p.xlsx must end in .csv, .parquet, .ndjson"),
        (["--tasks-out", "t"], "--tasks-out t must end in"),
        (["--save-every", "10"], "--save-every takes a number of rows, 1 or more, and needs --save"),
        (["--json", "-", "--predictions", "-"], "cannot both be standard output"),
        (["--keep", "size"], "--keep takes columns of a file, and writes them into --predictions"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    shoal: Program, csv_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = shoal("run", csv_file, *TABLE, *options)
    assert code == 2
    assert message in err
