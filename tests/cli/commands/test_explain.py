"""`shoal explain`: weights by name, tasks that are alike, and rows taken apart so that the table adds up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import TABLE, Program

import shoal as library
from shoal import MultiClass, MultitaskPerceptron, PassiveAggressive
from shoal.datasets import load as load_data


@pytest.fixture
def new_rows(tmp_path: Path) -> Any:
    path = tmp_path / "new.csv"
    path.write_text("shop,size,colour\nshop0,1.0,red\nmarket,-0.5,blue\nshop3,,violet\nshop0,-2,green\n")
    return path


def rows_of(text: str) -> Any:
    """feature -> its numbers, of the first table"""
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        cells = re.fullmatch(r"(\S.*?)((?:  +[-+.\de]+){1,4})", line)
        if cells:
            found.setdefault(cells[1], [float(value) for value in cells[2].split()])
    return found


def test_the_features_that_move_a_task_and_the_tasks_like_it(shoal: Program, model: Path) -> None:
    code, out, err = shoal("explain", "--model", model, "--task", "shop0")
    assert (code, err) == (0, "")
    assert out.startswith("what moves decisions for yes most in task shop0\n")
    weights = rows_of(out)
    assert list(weights)[:2] == ["size", "colour=red"]  # as the rows were made
    for _, shared, own, total in (weights["size"], weights["colour=red"]):
        assert shared + own == pytest.approx(total, rel=1e-3)
    assert abs(weights["colour=red"][2]) > abs(weights["colour=red"][1])  # red sells in one shop of three
    alike = re.findall(r"^  (shop\d) +([-\d.]+)$", out, re.M)
    assert alike[0][0] == "shop3"  # the other shop where red sells
    assert float(alike[0][1]) > 0.9


def test_without_a_task_what_all_share(shoal: Program, model: Path) -> None:
    code, out, _ = shoal("explain", "--model", model, "--top", 1)
    assert code == 0
    assert "in all tasks" in out
    assert rows_of(out)["size"][2] == 0.0
    assert "colour" not in out
    assert re.search(r"6 tasks \(shop\d, .*\.\.\.\): --task explains one", out)


def test_which_columns_matter_over_all_rows_and_in_each_task(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "pa.shoal"
    shoal("run", csv_file, *TABLE, "--learner", "PassiveAggressive", "--no-baselines", "--save", model, "--quiet")
    code, out, err = shoal("explain", csv_file, "--model", model, "--importance")
    assert (code, err) == (0, "")
    first, *lines = out.splitlines()
    assert first == "what moves the forecasts of 1,000 rows most"
    assert lines[0].split() == ["share", "added", "shared", "own"]
    assert "added is what a column adds to the margin, up or down, in the mean; share is its part of what all " in out
    assert [line.split()[0] for line in lines[1:3]] == ["size", "colour"]
    assert sum(float(line.split()[1].rstrip("%")) for line in lines[1:3]) == pytest.approx(100.0, abs=0.2)
    assert "in the 5 largest of 6 tasks" in out
    shares = {shop: int(share) for shop, share in re.findall(r"^  (shop\d)  .*colour (\d+)%", out, re.M)}
    for shop, share in shares.items():  # red sells in one shop of three
        assert shop in ("shop0", "shop3") or share < max(shares.values())
    of_one = shoal("explain", csv_file, "--model", model, "--importance", "--task", "shop1", "--top", 1)[1]
    assert "rows most in task shop1\n" in of_one
    assert "(1 more)" in of_one
    code, _, err = shoal("explain", "--model", model, "--importance")
    assert (code, err) == (2, "shoal: --importance is the mean over rows: name a file of them\n")


def test_a_guarded_model_is_explained(shoal: Program, csv_file: Path, tmp_path: Path) -> None:
    """Both of its learners are; once this was refused by words of Python (`estimator_`)."""
    model, learner = tmp_path / "g.shoal", ("--learner", "PassiveAggressive", "--guard")
    shoal("run", csv_file, *TABLE, *learner, "--no-baselines", "--save", model, "--quiet")
    code, out, err = shoal("explain", csv_file, "--model", model, "--importance")
    assert (code, err) == (0, "")
    assert {line.split()[0] for line in out.splitlines()[2:4]} == {"size", "colour"}
    for words in (["--task", "shop0"], [csv_file, "--rows", 1]):
        assert shoal("explain", *words, "--model", model)[::2] == (0, "")


def test_what_changed_and_how_forecasts_depend_on_a_column(
    shoal: Program, csv_file: Path, model: Path, tmp_path: Path
) -> None:
    code, out, err = shoal("explain", csv_file, "--model", model, "--importance", "--since", 801, "--task", "shop1")
    assert (code, err) == (0, "")
    rows = np.array([line.split(",")[0] for line in csv_file.read_text().splitlines()[1:]]) == "shop1"
    counts = rows[:800].sum(), rows[800:].sum()
    said = f"forecasts in task shop1: {counts[0]} rows before and {counts[1]} rows since"
    assert out.startswith(f"what changed since row 801 in what moves {said}\n")
    for change, before, since in re.findall(r"^(?:size|colour) +([-+\d.e]+) +([\d.e-]+) +([\d.e-]+) ", out, re.M):
        assert float(since) - float(before) == pytest.approx(float(change), abs=1e-3)
    folder = tmp_path / "pictures"
    code, out, err = shoal("explain", csv_file, "--model", model, "--dependence", "colour", "--export", folder)
    assert (code, err) == (0, "")
    assert out.startswith("mean probability of yes over 1,000 rows if colour were\ncolour   all rows")
    assert {line.split()[0] for line in out.splitlines()[2:5]} == {"red", "green", "blue"}
    assert (folder / "dependence.pdf").exists()
    for words, message in (
        (["--dependence", "color"], "the model has no column 'color', it has 'size', 'colour': did you mean 'colour'?"),
        (["--since", "3"], "--since compares two parts of a file by --importance: give both"),
        (
            ["--importance", "--since", "2026-01-01"],
            "the model has no column of dates: give the number of a row",
        ),
        (["--importance", "--since", "1"], "all rows are since row 1: there is nothing to compare"),
    ):
        assert shoal("explain", csv_file, "--model", model, *words)[::2] == (2, f"shoal: {message}\n")


def test_rows_of_a_file_are_taken_apart(shoal: Program, model: Path, new_rows: Any) -> None:
    code, out, err = shoal("explain", new_rows, "--model", model)
    assert (code, err) == (0, "")
    first, new, missing = [part.splitlines() for part in out.strip().split("\n\n")]
    for head, *shares in (first, new, missing):
        said = [float(line.split()[0]) for line in shares]
        assert sum(said) == pytest.approx(float(head.split()[-1]), abs=1e-3 * len(said))
    assert re.match(r"row 1, task shop0: predicted yes, probability of yes [01]\.\d{3}$", first[0])
    assert first[1].endswith("usual for shop shop0")
    assert {line.split(maxsplit=1)[1] for line in first[2:]} >= {"size 1", "colour red"}
    assert "task market (not seen: explained by what the tasks share)" in new[0]
    assert new[1].endswith("usual for any shop, as market is new")
    assert any(line.endswith("size -0.50") for line in new)
    assert not any("violet" in line for line in missing)  # what the model has not learned moves nothing


def test_rows_of_one_task_and_few_features(shoal: Program, model: Path, new_rows: Any) -> None:
    _, out, _ = shoal("explain", new_rows, "--model", model, "--task", "shop0", "--rows", 5, "--top", 1)
    assert re.findall(r"^row (\d+), task (\w+)", out, re.M) == [("1", "shop0"), ("4", "shop0")]
    assert re.search(r"^ +[-+]\d\.\d{3}  \d others$", out, re.M)


def test_a_labeled_file_is_explained_alike(shoal: Program, model: Path, csv_file: Path, rows: Any) -> None:
    code, out, _ = shoal("explain", csv_file, "--model", model, "--rows", 1)
    assert code == 0
    assert f"task {rows[0][0]}:" in out
    assert "sold" not in out


@pytest.mark.parametrize("ending", ["libsvm", "vw"])
def test_sparse_text(shoal: Program, rows: Any, tmp_path: Path, ending: Any) -> None:
    path, model = tmp_path / f"sales.{ending}", tmp_path / "m.shoal"
    lines = {
        "libsvm": lambda shop, size, sold: f"{1 if sold == 'yes' else -1} qid:{shop[-1]} 1:{size} 4:1",
        "vw": lambda shop, size, sold: f"{1 if sold == 'yes' else -1} |shop {shop} |x size:{size} one",
    }
    path.write_text("".join(lines[ending](shop, size, sold) + "\n" for shop, size, _, sold in rows[:300]))
    task = ("--task", "shop") if ending == "vw" else ()
    assert shoal("run", path, *task, "--save", model, "--no-baselines", "--quiet")[0] == 0
    code, out, err = shoal("explain", "--model", model)
    assert (code, err) == (0, "")
    assert out.startswith("what moves decisions for 1 most in all tasks\n")
    assert next(iter(rows_of(out))) in ("1", "x^size")
    code, out, err = shoal("explain", path, "--model", model, "--rows", 2)
    assert (code, err, out.count("decision ")) == (0, "", 2)


def test_models_of_python_are_explained_by_their_names(shoal: Program, tmp_path: Path) -> None:
    path = tmp_path / "m.shoal"
    learner = MultitaskPerceptron(relation="independent")
    for x, y in ({"sale": 1.0, "hi": 1.0}, 0), ({"hi": 2.0}, 1):
        learner.learn_one(x, y, 7)
    learner.save(path)
    code, out, _ = shoal("explain", "--model", path)
    assert code == 0
    assert "most\n" in out  # one task: no need to name it
    assert list(rows_of(out)) == ["sale", "hi"] or list(rows_of(out)) == ["hi", "sale"]
    learner.learn_one({"hi": 1.0}, 0, 8)
    learner.save(path)
    _, out, _ = shoal("explain", "--model", path)
    assert "nothing: all weights are 0, for tasks share none; --task names one" in out
    assert "sale" in shoal("explain", "--model", path, "--task", "7")[1]


def test_regressors_are_explained_in_the_unit_of_the_target(shoal: Program, tmp_path: Path) -> None:
    path, model = tmp_path / "prices.csv", tmp_path / "m.shoal"
    x = np.random.default_rng(0).permutation(np.linspace(-1, 1, 400))
    path.write_text("shop,x,price\n" + "".join(f"s{i % 2},{v:.4f},{3 * v + 100:.4f}\n" for i, v in enumerate(x)))
    options = ("--learner", "HedgedSharingRegressor", "--save", model, "--no-baselines", "--quiet")
    assert shoal("run", path, "--task", "shop", "--label", "price", *options)[0] == 0
    _, out, _ = shoal("explain", path, "--model", model, "--rows", 1)
    first, usual = out.splitlines()[:2]
    assert float(first.rpartition("price ")[2]) == pytest.approx(100 + 3 * x[0], abs=2)
    assert float(usual.split()[0]) == pytest.approx(100, abs=3)
    assert f"x {x[0]:.2f}" in out
    assert "what moves forecasts most in task s1" in shoal("explain", "--model", model, "--task", "s1")[1]


def test_several_classes(shoal: Program, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, path = rng.normal(size=(300, 3)), tmp_path / "m.shoal"
    y = np.array(["ash", "elm", "fir"])[X.argmax(axis=1)]
    MultiClass(PassiveAggressive()).fit(X, y, rng.integers(2, size=300)).save(path)
    _, out, _ = shoal("explain", "--model", path, "--task", "1")
    assert re.findall(r"decisions for (\w+) most", out) == ["ash", "elm", "fir"]
    _, out, _ = shoal("explain", "--model", path, "--task", "1", "--class", "fir")
    assert re.findall(r"decisions for (\w+) most", out) == ["fir"]
    code, _, err = shoal("explain", "--model", path, "--class", "oak")
    assert code == 2
    assert "expected one of ash, elm, fir" in err


def test_what_goes_wrong_is_one_line(
    shoal: Program, model: Path, csv_file: Path, new_rows: Any, tmp_path: Path
) -> None:
    library.KernelPerceptron().fit(np.eye(2), [0, 1], [0, 1]).save(tmp_path / "kernel.shoal")
    for arguments, message in (
        (["--model", model, "--task", "shp0"], "the model has no task 'shp0' (did you mean shop0?)"),
        ([new_rows, "--model", model, "--task", "shop1"], "has no rows of task shop1"),
        ([new_rows, "--model", tmp_path / "kernel.shoal"], "does not know how the columns of a table are read"),
        (["--model", tmp_path / "kernel.shoal"], "there are no contributions of single features"),
        (["--model", model, "--rows", "0"], "--rows must be 1 or more"),
        (["--model", model, "--top", "0"], "--top must be 1 or more"),
        (["--model", tmp_path / "none.shoal"], "no model at"),
        ([tmp_path / "none.csv", "--model", model], "none.csv"),
        ([csv_file], "requires an argument"),
    ):
        code, _, err = shoal("explain", *arguments)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert message in err


def test_models_of_data_sets_keep_the_names_of_features(shoal: Program, tmp_path: Path) -> None:
    data, path = "dataset:related_tasks", tmp_path / "m.shoal"
    assert shoal("run", data, "--save", path, "--no-baselines", "--quiet")[0] == 0
    name = load_data("related_tasks").feature_names[0]
    _, out, _ = shoal("explain", "--model", path, "--top", 1000)
    assert name in rows_of(out)
    code, out, err = shoal("explain", data, "--model", path, "--rows", 2, "--top", 1000)
    assert (code, err, out.count("decision ")) == (0, "", 2)
    assert name in rows_of(out)
    code, _, err = shoal("explain", "dataset:landmine", "--model", path)
    assert code == 2
    assert "features, but the model" in err or "landmine" in err
    (tmp_path / "any.csv").write_text("x\n1\n")
    code, _, err = shoal("predict", tmp_path / "any.csv", "--model", path)
    assert code == 2
    assert "does not know how the columns of a table are read" in err


def test_words_can_keep_their_names(shoal: Program, tmp_path: Path) -> None:
    path, model = tmp_path / "mails.csv", tmp_path / "m.shoal"
    words = [("win money now", "meeting at noon")[i % 2] for i in range(60)]
    rows = [f"{word} n{i} x{i},{'spam' if i % 2 == 0 else 'ham'}" for i, word in enumerate(words)]
    path.write_text("\n".join(["body,label", *rows]) + "\n")
    options = ("--label", "label", "--no-baselines", "--quiet", "--save", model)
    assert shoal("run", path, *options)[0] == 0
    hint = (
        r"\n(body#\d+) is a word or a pair of words; a model trained with --keep-names \(keep_names=True\) says which\n"
    )
    out = shoal("explain", "--model", model)[1]
    assert [name in rows_of(out) for name in re.findall(hint, out)] == [True]
    assert shoal("run", path, *options, "--keep-names")[0] == 0
    out = shoal("explain", "--model", model)[1]
    assert "body=win money" in out
    assert "--keep-names" not in out
