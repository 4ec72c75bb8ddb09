"""Each option that says how rows are read changes what the program does; labels choose the learner; models remember."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal import HedgedSharing, load
from shoal.files import open_stream

Shoal = Callable[..., tuple[int, str, str]]

HEADER = "id;shop;land;at;price;note;size;label"
COLUMNS = ("--task", "shop", "--label", "label", "--no-baselines", "--json", "-")


def line(i: int) -> str:
    """The label follows the note's word, whose other words are new in every row."""
    word = ("good", "bad")[i % 2]
    note = f"{word} item number n{i} x{i}"
    return f"{i};s{i % 3};{'AB'[i % 2]};{9 + i % 9}:30;${i % 7}.5;{note};{i % 5}.0;{word == 'good'}"


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text("\n".join([HEADER, *map(line, range(400))]) + "\n")
    return path


def found(shoal: Shoal, *arguments: Any, command: str = "run") -> dict[str, Any]:
    code, out, err = shoal(command, *arguments)
    assert (code, err) == (0, "")
    result: dict[str, Any] = json.loads(out)
    return result


def note(result: dict[str, Any], column: str) -> str:
    """What the program says of a column."""
    [said] = [one for one in result["notes"] if one.startswith(f"{column}: ")]
    return str(said)


def test_words_are_features_by_themselves(shoal: Shoal, sales: Path) -> None:
    result = found(shoal, sales, *COLUMNS, "--ignore", 'land, "id"')
    assert note(result, "note") == "note: text, single words and pairs hashed into 262,144 features"
    assert result["learners"]["HedgedSharing"]["overall"]["error"] < 0.1
    assert "fields are separated by ';'" in result["notes"]
    assert not any(one.startswith(("land", "id")) for one in result["notes"])


@pytest.mark.parametrize(
    ("options", "column", "said"),
    [
        ((), "price", "which --numeric 'price' would read"),
        ((), "at", "which --date 'at' would read"),
        (("--category", "note"), "note", "category, 400 values one-hot"),
        (("--category", "size"), "size", "category, 5 values one-hot"),
        (("--text", "land"), "land", "text, single words"),
        (("--text", "land", "--hash-bits", "10"), "land", "hashed into 1,024 features"),
        (("--numeric", "price", "--decimal", ","), "price", "numeric"),
        (("--date", "at"), "at", "time of day, hour one-hot"),
    ],
)
def test_columns_are_read_as_the_options_say(
    shoal: Shoal, sales: Path, options: tuple[str, ...], column: str, said: str
) -> None:
    if "--decimal" in options:
        sales.write_text(sales.read_text().replace(".", ","))
    assert said in note(found(shoal, sales, *COLUMNS, *options), column)


def test_task_ids_of_two_columns(shoal: Shoal, sales: Path) -> None:
    assert found(shoal, sales, "--task", "shop,land", *COLUMNS[2:])["tasks"] == 6


def test_delimiters_and_dates_of_other_forms(shoal: Shoal, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("day#shop#label\n" + "".join(f"{1 + i % 28:02d}/02/2020#s{i % 2}#{i % 2}\n" for i in range(60)))
    options = ("--delimiter", "#", "--date", "day", "--date-format", "%d/%m/%Y")
    result = found(shoal, path, *COLUMNS, *options)
    assert note(result, "day").startswith("day: date")


def test_several_files_and_patterns_are_one_stream(shoal: Shoal, sales: Path) -> None:
    rows = sales.read_text().splitlines()
    parts = [sales.with_name(f"part{k}.csv") for k in range(2)]
    for k, part in enumerate(parts):
        part.write_text("\n".join([HEADER, *rows[1 + 200 * k : 201 + 200 * k]]) + "\n")
    whole = found(shoal, sales, *COLUMNS)["learners"]["HedgedSharing"]["overall"]
    for inputs in (parts, [sales.with_name("part*.csv")]):
        result = found(shoal, *inputs, *COLUMNS)
        assert result["learners"]["HedgedSharing"]["overall"] == whole


def test_rows_out_of_time_are_refused_or_sorted(shoal: Shoal, tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("t,shop,label\n3,a,1\n1,a,0\n2,a,1\n")
    code, _, err = shoal("run", path, *COLUMNS, "--time", "t")
    assert code == 2
    assert "late.csv, line 3: t '1' is earlier than a row before it" in err
    assert "(--sort sorts them first)" in err
    assert found(shoal, path, *COLUMNS, "--time", "t", "--sort")["rows"] == 3


# ---- labels --------------------------------------------------------------------------------------------------


def table(path: Path, labels: list[str]) -> Path:
    path.write_text("x,shop,label\n" + "".join(f"{i % 7},s{i % 2},{label}\n" for i, label in enumerate(labels)))
    return path


def test_three_labels_are_learned_each_against_the_rest(shoal: Shoal, tmp_path: Path) -> None:
    path = table(tmp_path / "three.csv", [("red", "green", "blue")[i % 3] for i in range(90)])
    code, out, err = shoal("run", path, *COLUMNS[:4])
    assert (code, err) == (0, "")
    assert out.startswith("MultiClass(estimator=HedgedSharing()), next to independent and pooled")
    assert "label has more than two values, so each is learned against the rest\n" in out
    _, out, _ = shoal("run", path, *COLUMNS[:4], "--learner", "PassiveAggressive", "--no-baselines")
    assert out.startswith("MultiClass(estimator=PassiveAggressive())")


def test_many_numbers_are_predicted_as_numbers_unless_they_are_classes(shoal: Shoal, tmp_path: Path) -> None:
    path = table(tmp_path / "many.csv", [f"{i % 50}" for i in range(200)])
    _, out, _ = shoal("run", path, *COLUMNS[:4])
    assert out.startswith("HedgedSharingRegressor()")
    assert "label has many values, so it is predicted as a number; --classify takes each as a label" in out
    assert found(shoal, path, *COLUMNS, "--classify")["kind"] == "multiclass"
    code, _, err = shoal("run", path, *COLUMNS, "--learner", "OSMTL")
    assert code == 2
    assert "--classify to take each number as a label" in err


def test_a_few_numbers_are_classes_unless_they_are_to_be_predicted(shoal: Shoal, tmp_path: Path) -> None:
    path = table(tmp_path / "few.csv", [f"{i % 4}" for i in range(80)])
    _, out, _ = shoal("run", path, *COLUMNS[:4])
    assert "each is learned against the rest; --regression predicts it as a number" in out
    assert found(shoal, path, *COLUMNS, "--regression")["kind"] == "regression"
    for options in (("--regression", "--classify"), ("--regression", "--learner", "OSMTL")):
        code, _, err = shoal("run", path, *COLUMNS, *options)
        assert code == 2
        assert "--regression" in err


def test_a_file_may_begin_with_many_rows_of_one_label(shoal: Shoal, tmp_path: Path) -> None:
    path = table(tmp_path / "sorted.csv", ["ham"] * 35_000 + ["spam"] * 500)
    assert found(shoal, path, *COLUMNS)["rows"] == 35_500
    learner = ("--learners", "PassiveAggressive", "--json", "-")
    assert found(shoal, path, *COLUMNS[:4], *learner, command="compare")["rows"] == 35_500


@pytest.mark.parametrize("learner", ["HedgedSharing", "PassiveAggressive"])
def test_the_second_of_two_labels_is_positive(shoal: Shoal, tmp_path: Path, learner: str) -> None:
    """In what is said, written, saved, gone on with and compared; the model is the same but for its sign."""
    path = table(tmp_path / "two.csv", ["buy" if i % 7 > 2 else "no" for i in range(140)])
    read = {}
    for order in ("no,buy", "buy,no"):
        model, out = tmp_path / f"{order}.shoal", tmp_path / f"{order}.csv"
        options = ("--labels", order, "--learner", learner)
        exact = ("--set", "effort=fast") if learner == "HedgedSharing" else ()  # trees take the first of equal splits
        result = found(shoal, path, *COLUMNS, *options, *exact, "--save", model, "--predictions", out)
        negative, positive = order.split(",")
        assert f"of the labels {positive!r} is positive, {negative!r} negative" in result["notes"]
        assert f"{negative!r} (-1), {positive!r} (+1)" in shoal("inspect", model)[1]
        again = found(shoal, path, "--load", model, "--labels", order, "--json", "-", "--save", model)
        written = pl.read_csv(out), pl.read_csv(io.StringIO(shoal("predict", path, "--model", model)[1]))
        compared = found(
            shoal, path, *COLUMNS[:4], *options[:2], "--learners", learner, "--json", "-", command="compare"
        )
        scores = [one["learners"][learner]["overall"] for one in (result, again, compared)]
        assert all(score["f1_positive"] > 0.8 and score["auc"] > 0.8 for score in scores)
        read[order] = written, scores
    (before, scores), (turned, turned_scores) = read.values()
    for frame, other in zip(before, turned, strict=True):
        sure, middle = ("probability", 1.0) if learner == "HedgedSharing" else ("decision", 0.0)
        assert_allclose(frame[sure] + other[sure], middle, atol=1e-12)
        tied = frame.filter(frame["predicted"] != other["predicted"])  # a decision of 0 is positive
        assert_allclose(tied[sure], middle / 2, atol=1e-12)
    for score, other in zip(scores, turned_scores, strict=True):
        assert_allclose(score["auc"], other["auc"])
        assert_allclose(score["f1_positive"], other["f1_negative"], rtol=0.05)
    code, _, err = shoal("run", path, "--load", model, "--labels", "no,buy")
    assert code == 2
    assert "--labels ['no', 'buy'], but ['buy', 'no'] in the saved state" in err


def test_a_label_that_comes_late_names_the_program_s_options(shoal: Shoal, tmp_path: Path) -> None:
    path = table(tmp_path / "late.csv", [("yes", "no")[i % 2] for i in range(1100)] + ["maybe"])
    code, _, err = shoal("run", path, *COLUMNS)
    assert code == 2
    assert "(--classify takes more labels, --regression any number)" in err
    assert found(shoal, path, *COLUMNS, "--classify")["kind"] == "multiclass"


# ---- models --------------------------------------------------------------------------------------------------


def test_a_model_remembers_how_its_rows_were_read(shoal: Shoal, sales: Path, tmp_path: Path) -> None:
    """The next file needs no options, and no labels; columns are carried along."""
    model, other = tmp_path / "m.shoal", tmp_path / "next.csv"
    sales.write_text(sales.read_text().replace(".", ","))
    options = ("--task", "shop,land", "--label", "label", "--ignore", "id", "--numeric", "price", "--decimal", ",")
    assert shoal("run", sales, *options, "--category", "size", "--save", model, "--quiet")[0] == 0
    rows = [row.rsplit(";", 1)[0] for row in sales.read_text().splitlines()]
    other.write_text("\n".join(rows[:11]) + "\n")
    code, out, err = shoal("predict", other, "--model", model, "--keep", "id,note")
    assert (code, err) == (0, "")
    frame = pl.read_csv(io.StringIO(out))
    assert frame.columns == ["id", "note", "task", "predicted", "probability", "known_task"]
    assert frame["id"].to_list() == list(range(10))
    assert frame["task"][0] == "s0,A"
    with_labels = pl.read_csv(io.StringIO(shoal("predict", sales, "--model", model)[1]))
    assert with_labels["probability"][:10].to_list() == frame["probability"].to_list()
    code, said, _ = shoal("run", sales, "--load", model)
    assert code == 0
    assert "price: numeric" in said
    assert "task=['shop', 'land'], label='label'" in shoal("inspect", model)[1]


def test_models_of_several_labels_predict(shoal: Shoal, tmp_path: Path) -> None:
    path = table(tmp_path / "three.csv", [("red", "green", "blue")[i % 7 % 3] for i in range(140)])
    model = tmp_path / "m.shoal"
    assert shoal("run", path, *COLUMNS[:4], "--save", model, "--quiet")[0] == 0
    frame = pl.read_csv(io.StringIO(shoal("predict", path, "--model", model)[1]))
    assert set(frame["predicted"]) <= {"red", "green", "blue"}
    assert frame["probability"].is_between(1 / 3, 1).all()
    assert "'blue' (0), 'green' (1), 'red' (2)" in shoal("inspect", model)[1]


def test_rows_count_as_often_as_their_weight_says(shoal: Shoal, tmp_path: Path) -> None:
    """In learning: the model is that of the library; scores count rows."""
    path, model = tmp_path / "w.csv", tmp_path / "m.shoal"
    rows = [f"{i % 7},s{i % 2},{i % 3},{int(i % 7 > 3)}" for i in range(120)]
    path.write_text("\n".join(["x,shop,w,label", *rows]) + "\n")
    result = found(shoal, path, *COLUMNS, "--weight", "w", "--save", model)
    assert result["rows"] == 120
    assert not any(one.startswith("w: ") for one in result["notes"])
    [chunk] = open_stream(path, task="shop", label="label", weight="w", kind="auto")
    learner = HedgedSharing().partial_fit(chunk.X, chunk.y, chunk.task, sample_weight=chunk.weight, classes=[0.0, 1.0])
    X = chunk.X
    assert_array_equal(
        load(model).estimator_.decision_function(X, chunk.task), learner.decision_function(X, chunk.task)
    )
    code, _, err = shoal("run", path, *COLUMNS, "--weight", "w", "--learner", "OSMTL")
    assert code == 2
    assert "OSMTL takes no sample_weight" in err
