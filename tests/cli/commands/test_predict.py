"""`shoal predict`: a saved model predicts the rows of a file, and says which tasks it does not know."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import Program, Row

import shoal as library
from shoal import MultitaskPerceptron


def test_predictions_are_the_models_and_it_does_not_change(
    shoal: Program, csv_file: Path, rows: list[Row], model: Path
) -> None:
    before = model.read_bytes()
    code, out, err = shoal("predict", csv_file, "--model", model)
    assert (code, err) == (0, "")
    frame = pl.read_csv(io.StringIO(out))
    assert frame.columns == ["task", "predicted", "probability", "known_task"]
    assert frame["task"].to_list() == [shop for shop, *_ in rows]
    assert frame["known_task"].all()
    assert ((frame["probability"] >= 0.5) == (frame["predicted"] == "yes")).all()
    right = np.mean(frame["predicted"].to_numpy() == np.array([sold for *_, sold in rows]))
    assert right > 0.9
    assert model.read_bytes() == before
    assert library.load(model).estimator_.n_updates_ == len(rows)


def test_unseen_tasks_and_values_are_predicted_and_named(
    shoal: Program, csv_file: Path, model: Path, tmp_path: Path
) -> None:
    other, out = tmp_path / "other.csv", tmp_path / "out.ndjson"
    other.write_text(csv_file.read_text().replace("shop5", "market").replace("green", "violet"))
    code, said, err = shoal("predict", other, "--model", model, "--out", out)
    assert (code, said) == (0, "")
    frame = pl.read_ndjson(out)
    unseen = frame.filter(~pl.col("known_task"))
    assert set(unseen["task"]) == {"market"}
    assert f"the model has not seen 1 task of {len(unseen):,} rows (market)" in err
    assert unseen["probability"].is_between(0, 1).all()


def test_a_regressor_predicts_values(shoal: Program, tmp_path: Path) -> None:
    path, model = tmp_path / "prices.csv", tmp_path / "m.shoal"
    x = np.random.default_rng(0).permutation(np.linspace(-1, 1, 400))
    path.write_text("shop,x,price\n" + "".join(f"s{i % 2},{v:.4f},{3 * v:.4f}\n" for i, v in enumerate(x)))
    columns = ("--task", "shop", "--label", "price")
    options = ("--learner", "HedgedSharingRegressor", "--save", model, "--no-baselines", "--quiet")
    assert shoal("run", path, *columns, *options)[0] == 0
    code, out, _ = shoal("predict", path, "--model", model)
    frame = pl.read_csv(io.StringIO(out))
    assert (code, frame.columns) == (0, ["task", "predicted", "known_task"])
    assert np.abs(frame["predicted"].to_numpy() - 3 * x).max() < 0.5


def test_what_goes_wrong_is_one_line(shoal: Program, csv_file: Path, model: Path, tmp_path: Path) -> None:
    learner = MultitaskPerceptron().fit(np.eye(2), [0, 1])
    learner.save(tmp_path / "python.shoal")
    for arguments, message in (
        (["--model", tmp_path / "python.shoal"], "which does not know how the columns of a table are read"),
        (["--model", tmp_path / "none.shoal"], "no model at"),
        (["--model", model, "--out", model], "is read as the input"),
        (["--model", model, "--out", csv_file], "is read as the input"),
        ([], "requires an argument"),
    ):
        code, _, err = shoal("predict", csv_file, *arguments)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert message in err


@pytest.mark.parametrize(
    ("labels", "frame_type"),
    [
        (["0", "1"], pl.Int64), (["0.0", "1.0"], pl.Float64), (["01234", "1234", "94110"], pl.String),
        (["True", "False"], pl.String), (["true", "false"], pl.Boolean), ([str(2**53), str(2**53 + 1), "7"], pl.Int64),
        (["-1", "+1"], pl.String), (["01", "1"], pl.String),
    ],
)  # fmt: skip
def test_predictions_have_the_labels_of_the_file(
    labels: list[str], frame_type: type[pl.DataType], shoal: Program, tmp_path: Path
) -> None:
    data, model = tmp_path / "a.csv", tmp_path / "m.shoal"
    rows = [f"0{i % 2},{i},{labels[i % len(labels)]}" for i in range(40)]
    data.write_text("\n".join(["shop,size,label", *rows]))
    out = {ending: tmp_path / f"p.{ending}" for ending in ("csv", "parquet", "ndjson")}
    for ending, path in out.items():
        save = ("--save", model) if ending == "csv" else ()
        options = ("--task", "shop", "--label", "label", "--classify", "--no-baselines", "--quiet", *save)
        assert shoal("run", data, *options, "--predictions", path)[0] == 0
    frames = [
        pl.read_csv(out["csv"], infer_schema=False),
        pl.read_parquet(out["parquet"]),
        pl.read_ndjson(out["ndjson"]),
    ]
    assert frames[0]["label"].to_list() == [labels[i % len(labels)] for i in range(40)]
    assert set(frames[0]["predicted"].drop_nulls()) <= set(labels)
    for frame in frames[1:]:
        assert frame.schema["label"] == frame.schema["predicted"] == frame_type
        assert frame["label"].cast(pl.String).to_list() == frames[0]["label"].to_list()
        assert frame["task"].to_list() == [f"0{i % 2}" for i in range(40)]
    said = tmp_path / "said.parquet"
    assert shoal("predict", data, "--model", model, "--keep", "shop", "--out", said)[0] == 0
    predicted = pl.read_parquet(said)
    assert predicted.schema["predicted"] == frame_type
    assert set(predicted["predicted"].cast(pl.String)) <= set(labels)
    assert predicted["shop"].to_list() == frames[1]["task"].to_list()
    assert predicted["known_task"].all()


def test_tasks_of_a_column_with_a_gap_are_known(shoal: Program, tmp_path: Path) -> None:
    data, typed, other, model = (tmp_path / name for name in ("a.csv", "a.parquet", "b.csv", "m.shoal"))
    data.write_text("\n".join(["shop,size,label", *(f"{i % 3 + 1},{i},{i % 2}" for i in range(60))]))
    other.write_text("\n".join(["shop,size,label", *(f"{i % 3 + 1}.0,{i},{i % 2}" for i in range(60))]))
    pl.read_csv(data).cast({"shop": pl.Float64, "label": pl.Float64}).write_parquet(typed)
    options = ("--task", "shop", "--label", "label", "--no-baselines")
    assert shoal("run", data, *options, "--save", model, "--quiet")[0] == 0
    _, out, err = shoal("predict", typed, "--model", model)
    assert (pl.read_csv(io.StringIO(out))["known_task"].all(), err) == (True, "")
    later = tmp_path / "later.shoal"
    _, out, _ = shoal("run", typed, "--load", model, "--save", later)
    assert library.load(later).tasks_ == ["1", "2", "3"]
    assert "known to the model" not in out
    _, out, _ = shoal("run", other, "--load", model)
    assert "no task of b.csv ('1.0', '2.0', '3.0') was known to the model, whose tasks are '1', '2', '3'" in out
