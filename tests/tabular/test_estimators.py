"""`TabularClassifier` and `TabularRegressor` beside the program that reads the same rows from files."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.serve.material import assert_same

import shoal
from shoal import (
    HedgedSharing,
    MultiClass,
    MultitaskRegressor,
    PassiveAggressive,
    PassiveAggressiveRegressor,
    RegMTL,
    TabularClassifier,
    TabularRegressor,
)
from shoal.cli.app import start
from shoal.files import open_stream
from shoal.serve.row_codec import from_dicts
from shoal.serve.served_model import ServedModel
from shoal.tabular import table_model


@pytest.fixture(scope="module")
def sales() -> pd.DataFrame:
    """Numbers with holes, categories, dates, words; the shops' ids are numbers."""
    rng, n = np.random.default_rng(0), 600
    price = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(3))
    return pd.DataFrame(
        {
            "shop": rng.integers(1, 6, n),
            "price": price,
            "offer": rng.choice(["none", "coupon", "flyer"], n),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D"),
            "title": [" ".join(rng.choice(["free", "meeting", "win", "report"], 4)) + f" {i}" for i in range(n)],
        }
    )


@pytest.fixture(scope="module")
def sold(sales: pd.DataFrame) -> pd.Series:
    return pd.Series(sales["price"].fillna(0.0) + (sales["offer"] == "flyer") > 0.3, name="sold")


FRAMES: dict[str, Any] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "dicts": lambda frame: frame.to_dict("records"),
    "array": lambda frame: frame.to_numpy(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_of_every_kind_give_the_same(kind: str, sales: pd.DataFrame, sold: pd.Series) -> None:
    expected = TabularClassifier("shop", PassiveAggressive()).fit(sales, sold)
    found = TabularClassifier(0 if kind == "array" else "shop", PassiveAggressive())
    found.fit(FRAMES[kind](sales), sold.to_numpy())
    margins = expected.decision_function(sales)
    assert found.decision_function(FRAMES[kind](sales)).tobytes() == margins.tobytes()
    assert expected.decision_function(FRAMES[kind](sales)).tobytes() == margins.tobytes()
    assert expected.score(sales, sold) > 0.9


def test_learning_is_what_the_program_does(sales: pd.DataFrame, sold: pd.Series, tmp_path: Path) -> None:
    sales.assign(sold=sold).to_parquet(tmp_path / "sales.parquet", index=False)
    file, mine = tmp_path / "sales.parquet", tmp_path / "mine.shoal"
    columns = ["--task", "shop", "--label", "sold", "--hash-bits", "10", "--no-baselines", "--quiet"]
    start(["run", str(file), *columns, "--save", str(tmp_path / "m.shoal")])
    theirs = shoal.load(tmp_path / "m.shoal")
    assert isinstance(theirs, TabularClassifier)
    model = TabularClassifier("shop", hash_bits=10)
    for rows in (slice(0, 400), slice(400, 600)):
        model.partial_fit(sales[rows], sold[rows])
    model.save(mine)
    assert model.predict_proba(sales).tobytes() == theirs.predict_proba(sales).tobytes()
    assert theirs.tasks_ == model.tasks_
    assert theirs.knows_task(3)
    assert theirs.classes_.tolist() == [False, True]
    with open_stream(file, task="shop", label="sold", hash_bits=10) as stream:
        for _ in stream:
            pass
    assert model._fitted().table.encoder.to_dict() == stream.to_dict()["reader"]["encoder"]


def test_single_rows_are_rows_of_a_table(sales: pd.DataFrame, sold: pd.Series) -> None:
    rows = sales.to_dict("records")
    whole, single = (TabularClassifier("shop", text=["title"], hash_bits=10) for _ in range(2))
    for verb in (whole, single):
        verb.partial_fit(sales[:100], sold[:100])
    whole.partial_fit(sales[100:130], sold[100:130], sample_weight=np.full(30, 2.0))
    for row, label in zip(rows[100:130], sold[100:130].tolist(), strict=True):
        single.learn_one(row, label, sample_weight=2.0)
    assert single.predict_proba(sales).tobytes() == whole.predict_proba(sales).tobytes()
    np.testing.assert_allclose(np.exp(whole.predict_log_proba(sales)), whole.predict_proba(sales))
    for row, chances, label in zip(rows[:40], whole.predict_proba(sales), whole.predict(sales), strict=False):
        assert single.predict_proba_one(row) == {False: chances[0], True: chances[1]}
        assert single.predict_one(row) is bool(label)
    explanation = single.explain_one(rows[0])
    said = [one.what for one in explanation.reasons]
    assert {f"offer {rows[0]['offer']}", f'title "{rows[0]["title"].split()[0].lower()}"'} <= set(said)
    shares = [one.share for one in explanation.reasons]
    assert explanation.usual + sum(shares) == pytest.approx(explanation.forecast)
    assert explanation.forecast == pytest.approx(single.predict_proba_one(rows[0])[True])
    assert explanation.label is True
    assert len(str(explanation).splitlines()) <= 10


@pytest.mark.parametrize(
    ("labels", "tasks", "classes"),
    [
        ([0, 1], [7, 8], [0, 1]),
        ([-1.0, 1.0], [7.0, 8.0], [-1.0, 1.0]),
        ([False, True], [False, True], [False, True]),
        (["no", "yes"], ["7", "07"], ["no", "yes"]),
        (["10", "9", "8"], ["a", "b"], ["10", "8", "9"]),
        ([3, 1, 2], [7, 8], [1, 2, 3]),
    ],
)
def test_ids_and_labels_come_back_as_they_came(labels: Any, tasks: Any, classes: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [{"t": tasks[i % 2], "x": float(rng.normal())} for i in range(60)]
    y = [labels[i % len(labels)] for i in range(60)]
    model = TabularClassifier("t", MultiClass(PassiveAggressive()) if len(labels) > 2 else PassiveAggressive())
    model.fit(rows, y).save(tmp_path / "m.shoal")
    for one in (model, shoal.load(tmp_path / "m.shoal"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert one.classes_.tolist() == classes
        assert [type(label) for label in one.classes_.tolist()] == [type(label) for label in classes]
        assert [(task, type(task)) for task in one.tasks_] == [(task, type(task)) for task in tasks]
        assert one.predict_one(rows[0]) == one.predict(rows)[0]
        assert one.predict_one(rows[0]) in classes
        assert one.knows_task(tasks[1])
        assert not one.knows_task("neither")


@pytest.mark.filterwarnings("ignore:.*column 'unknown'", "ignore:there is no column 'price'")
@pytest.mark.parametrize("kind", ["binary", "several", "numbers"])
def test_a_dict_is_learned_as_a_frame_of_one_row_bit_for_bit(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New categories, words, tasks and labels; missing, late, absent and unknown columns; outliers; refused rows."""
    rng = np.random.default_rng(1)
    words = ["free", "lunch", "Straße", "win", "東京駅"]
    rows = [
        {
            "shop": int(rng.integers(6)) if i > 100 else 1,
            "price": [None, float("nan"), float(rng.normal()), i % 5, True, 1e9][i % 6 if i % 60 == 5 else i % 5],
            "offer": [None, float("nan"), f"o{i % (3 + i // 20)}", 3.0][i % 4],
            "day": [None, "2026-03-01", f"2026-0{1 + i % 9}-1{i % 9} 06:00", "2026-01-31"][i % 4],
            "title": None if i % 9 == 0 else " ".join(rng.choice(words, 4)) + f" {i}",
            "late": None if i < 130 else float(i),
            "word": None if i < 140 else "x",
        }
        for i in range(220)
    ]
    labels: list[Any] = [float(rng.normal()) if kind == "numbers" else ("no", "yes")[i % 2] for i in range(220)]
    if kind == "several":
        labels[:60] = [("no", "yes", "neither")[i % 3] for i in range(60)]
    for i in range(60, 70):
        del rows[i]["price"]
        rows[i + 10]["unknown"] = 1
    several = MultiClass(PassiveAggressive())
    estimator = {"binary": HedgedSharing(), "several": several, "numbers": PassiveAggressiveRegressor()}[kind]
    made = TabularRegressor if kind == "numbers" else TabularClassifier
    frames, dicts = (made("shop", estimator, text=["title"], hash_bits=8, keep_names=True) for _ in range(2))
    for one in (frames, dicts):
        one.fit(rows[:60], labels[:60])
    for row, label in zip(rows[60:], labels[60:], strict=True):
        frames.partial_fit([row], [label])
    learned, by_frame = made._learn, list[Any]()

    def noted(*arguments: Any) -> Any:
        by_frame.append(arguments)
        return learned(*arguments)

    monkeypatch.setattr(made, "_learn", noted)
    for i, (row, label) in enumerate(zip(rows[60:], labels[60:], strict=True)):
        dicts.learn_one(row, label)
        dicts = {50: copy.deepcopy, 100: lambda one: pickle.loads(pickle.dumps(one))}.get(i, lambda one: one)(dicts)
    assert len(by_frame) < 30
    frames.save(tmp_path / "frames.shoal")
    dicts.save(tmp_path / "dicts.shoal")
    assert_same(tmp_path / "frames.shoal", tmp_path / "dicts.shoal")
    assert dicts.predict_one(rows[3]) == frames.predict(rows[3:4])[0]
    assert dicts.notes_ == frames.notes_
    for row, label in (
        ({**rows[3], "price": "x"}, labels[0]),
        ({**rows[3], "title": "\ud83d"}, labels[0]),
        ({**rows[3], "shop": None}, labels[0]),
    ):
        with pytest.raises(ValueError, match=r"column|surrogates"):
            dicts.learn_one(row, label)
    dicts.save(tmp_path / "dicts.shoal")
    assert_same(tmp_path / "frames.shoal", tmp_path / "dicts.shoal")


def test_words_for_missing_values_and_the_decimal_mark_are_options(tmp_path: Path) -> None:
    rows = [{"price": ("1,234", "5,678")[i % 2], "offer": ("-", "flyer", None)[i % 3], "y": i % 2} for i in range(30)]
    said: dict[str, Any] = {"label": "y", "numeric": ["price"]}
    model = TabularClassifier(estimator=PassiveAggressive(), missing=["-"], decimal=",", **said).fit(rows)
    assert "offer=-" not in model._fitted().table.encoder.feature_names
    assert model.explain_one({"price": "1,234", "offer": "-"}) == model.explain_one({"price": 1.234, "offer": None})
    assert model.explain_one({"price": "1,234", "offer": "-"}) == model.explain_one(rows[0])
    thousands = TabularClassifier(estimator=PassiveAggressive(), decimal=".", **said).fit(rows)
    assert thousands.decision_function(rows[:1]) == thousands.decision_function([{**rows[0], "price": 1234}])
    model.save(tmp_path / "m.shoal")
    found = shoal.load(tmp_path / "m.shoal")
    assert (found.missing, found.decimal) == (["-"], ",")
    assert found.predict(rows).tolist() == model.predict(rows).tolist()


def test_a_column_may_hold_the_labels(sales: pd.DataFrame, tmp_path: Path) -> None:
    table = sales.assign(units=sales["price"].fillna(0.0) * 2.0, n=1.0)
    model = TabularRegressor("shop", label="units", weight="n", ignore=["title"], hash_bits=8).fit(table)
    assert model.score(table) > 0.9
    assert model.predict(table.drop(columns=["units", "n", "title"])).tobytes() == model.predict(table).tobytes()
    model.save(tmp_path / "m.shoal")
    found = TabularRegressor.load(tmp_path / "m.shoal")
    assert found.get_params()["ignore"] == ["title"]
    assert (found.label, found.weight, found.task) == ("units", "n", "shop")
    before = found.predict_one(table.iloc[0].to_dict())
    assert before == model.predict(table)[0]
    found.learn_one(table.iloc[0].to_dict())
    assert found.predict_one(table.iloc[0].to_dict()) != before
    assert clone(found).fit(table).predict(table).tobytes() == model.predict(table).tobytes()
    with pytest.raises(ValueError, match="holds no TabularClassifier but a HedgedSharingRegressor"):
        TabularClassifier.load(tmp_path / "m.shoal")


def test_learners_of_all_kinds(sales: pd.DataFrame, sold: pd.Series, tmp_path: Path) -> None:
    batch = TabularClassifier("shop", RegMTL(), hash_bits=8).fit(sales, sold)
    assert batch.score(sales, sold) > 0.8
    batch.save(tmp_path / "m.shoal")
    assert (shoal.load(tmp_path / "m.shoal").predict(sales) == batch.predict(sales)).all()
    with pytest.raises(ValueError, match="learns all rows at once: use fit"):
        batch.partial_fit(sales, sold)
    colors = TabularClassifier("shop", hash_bits=8).fit(sales.drop(columns="offer"), sales["offer"])
    assert isinstance(colors.estimator_, MultiClass)
    assert colors.predict_proba(sales[:3]).shape == (3, 3)
    np.testing.assert_allclose(np.exp(colors.predict_log_proba(sales[:3])), colors.predict_proba(sales[:3]))
    row = sales.iloc[0].to_dict()
    chances = colors.predict_proba_one(row)
    assert set(chances) == {"coupon", "flyer", "none"}
    found = colors.explain_one(row, label="flyer")
    assert found.label == "flyer"
    assert found.forecast == pytest.approx(chances["flyer"])
    assert found.usual + sum(one.share for one in found.reasons) == pytest.approx(found.forecast)


def test_a_table_without_tasks_and_with_dates_of_a_form(tmp_path: Path) -> None:
    """A loaded model reads dates as the first did, and what is dropped is read no more."""
    rows: list[Any] = [
        {"x": float(i % 7), "day": f"{1 + i % 28:02}.0{1 + i % 9}.2026", "note": f"word {i % 3}"} for i in range(90)
    ]
    y = [3.0 * row["x"] + int(row["day"][3:5]) for row in rows]
    model: Any = TabularRegressor(date=["day"], date_format="%d.%m.%Y", text=["note"], hash_bits=8).fit(rows, y)
    model.save(tmp_path / "m.shoal")
    loaded = shoal.load(tmp_path / "m.shoal")
    assert isinstance(loaded, TabularRegressor)
    assert loaded.predict(rows).tobytes() == model.predict(rows).tobytes()
    found = loaded.explain_one(rows[3])
    assert found.usual + sum(one.share for one in found.reasons) == pytest.approx(model.predict(rows[3:4])[0])
    said = [one.what for one in found.reasons]
    assert {"day April", "x 3", 'note "word 0"'} <= {*said}
    assert [what for what in said if what.startswith("x ") and " and " not in what] == ["x 3"]  # with its bin
    loaded.drop_columns(["note"]).save(tmp_path / "m.shoal")
    again = shoal.load(tmp_path / "m.shoal")
    for one in (loaded, again):
        options = one._fitted().table.options
        assert ("text" in options, options["date"], options["ignore"]) == (False, ["day"], ["note"])
        assert list(one._fitted().table.encoder.column_names) == ["x", "day"]
    assert again.predict(rows).tobytes() == loaded.predict(rows).tobytes()
    PassiveAggressive().partial_fit([[1.0], [2.0]], [0, 1]).save(tmp_path / "plain.shoal")
    assert isinstance(shoal.load(tmp_path / "plain.shoal"), PassiveAggressive)


def test_rows_come_in_the_order_of_time(tmp_path: Path) -> None:
    """As with --time: what a file's rows were is held by Python, what Python's were by files."""
    rows = [{"when": f"2026-01-{1 + i:02}", "x": float(i % 5), "y": i % 2} for i in range(20)]
    model = TabularClassifier(estimator=PassiveAggressive(), label="y", time="when").fit(rows[:15])
    model.save(tmp_path / "a.shoal")
    found = shoal.load(tmp_path / "a.shoal")
    assert found.time == "when"
    for one in (model, found):
        before = one.estimator_.n_updates_
        wrong: list[tuple[Any, Any]] = [(one.partial_fit, rows[10:]), (one.learn_one, rows[3])]
        for learn, late in wrong:
            with pytest.raises(
                ValueError, match=r"when '2026-01-\d\d' is earlier than a row before it, expected .*time$"
            ):
                learn(late)
        with pytest.raises(ValueError, match="X has no column 'when'"):
            one.learn_one({"x": 1.0, "y": 1})
        assert one.estimator_.n_updates_ == before
        assert one.partial_fit(rows[15:17]).predict(rows[:3]).shape == (3,)  # rows to predict may be older
        one.learn_one(rows[17])
        with pytest.raises(ValueError, match="is earlier than a row before it"):
            one.learn_one(rows[16])
    found.save(tmp_path / "b.shoal")
    model.save(tmp_path / "a.shoal")
    assert_same(tmp_path / "a.shoal", tmp_path / "b.shoal")
    pl.DataFrame(rows[16:]).write_csv(tmp_path / "late.csv")
    with pytest.raises(SystemExit):
        start(["run", str(tmp_path / "late.csv"), "--load", str(tmp_path / "b.shoal"), "--quiet"])
    assert TabularClassifier("when", time="x", ignore=["x"]).fit(rows[:5], [0, 1, 0, 1, 0]).n_features_in_ == 3


def test_many_labels_are_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    rows = [{"x": float(i)} for i in range(80)]
    many, fifty = [f"c{i % 60}" for i in range(80)], [f"c{i % 50}" for i in range(80)]
    with pytest.raises(
        ValueError, match=r"label has 60 labels, and each is a learner of its own: some 60 times the time"
    ):
        TabularClassifier(estimator=PassiveAggressive()).fit(rows, many)
    model = TabularClassifier(estimator=PassiveAggressive()).fit(rows, fifty)
    with pytest.raises(
        ValueError, match=r"label 'c50' .* is one more than 50.*\(estimator=MultiClass\(...\) takes them\)"
    ):
        model.partial_fit(rows, many)
    for one in (TabularClassifier(estimator=MultiClass(PassiveAggressive())), TabularClassifier()):
        classes = None if one.estimator is not None else sorted(set(many))
        assert len(one.partial_fit(rows[:60], many[:60], classes=classes).classes_) == 60


def test_a_table_without_its_package_names_the_extra(sales: pd.DataFrame, sold: pd.Series, tmp_path: Path) -> None:
    TabularClassifier("shop", PassiveAggressive(), hash_bits=8).fit(sales[:50], sold[:50]).save(tmp_path / "m.shoal")
    code = f"import sys; sys.modules['polars'] = None; import shoal; shoal.load({str(tmp_path / 'm.shoal')!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr.splitlines()[-1].endswith('needs the package polars: pip install "shoal[data]"')


def test_a_row_is_counted_from_the_first_of_the_table(
    sales: pd.DataFrame, sold: pd.Series, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a long table is checked piece by piece."""
    monkeypatch.setattr(table_model, "ROWS", 100)
    model = TabularClassifier("shop", PassiveAggressive()).partial_fit(sales, sold)
    wrong = sales.assign(price=["x" if i == 555 else "1" for i in range(600)])
    with pytest.raises(ValueError, match="row 555: column 'price' has 'x'"):
        model.partial_fit(wrong, sold)


def test_what_is_wrong_is_said_and_changes_nothing(sales: pd.DataFrame, sold: pd.Series, tmp_path: Path) -> None:
    model = TabularClassifier("shop", PassiveAggressive(), hash_bits=8)
    with pytest.raises(NotFittedError):
        model.predict(sales)
    model.partial_fit(sales, sold).save(tmp_path / "before.shoal")
    wrong = sales.assign(price=np.inf)
    for X, y, message in (
        (wrong, sold, "row 0: column 'price' has inf, expected a finite number"),
        (sales.assign(price=["x" if i == 5 else "1" for i in range(600)]), sold, "row 5: column 'price' has 'x'"),
        (sales.drop(columns="shop"), sold, "X has no column 'shop'"),
        (sales.assign(shop=None), sold, "no task in column 'shop'"),
        (sales, ["third"] * 600, "'third'"),
        (sales, sold[:5], "expected 600 values, got 5"),
        (sales, None, "the target y is None"),
        (sales, np.arange(600) / 7, "Unknown label type: continuous"),
        (sales[:0], sold[:0], "no rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y)
    with pytest.raises(ValueError, match="sample_weight is -1"):
        model.partial_fit(sales, sold, sample_weight=-np.ones(600))
    row = {**sales[:1].to_dict("records")[0], "day": "2026-03-01"}
    for column, ask in itertools.product(("shop", "offer"), (model.predict_one, lambda x: model.learn_one(x, sold[0]))):
        with pytest.raises(ValueError, match=f"column '{column}': half of a surrogate pair"):
            ask({**row, column: "\ud83d"})
    model.save(tmp_path / "after.shoal")
    assert_same(tmp_path / "before.shoal", tmp_path / "after.shoal")
    with pytest.raises(ValueError, match=r"no column 'titel'.*did you mean 'title'"):
        TabularClassifier("shop", text=["titel"]).fit(sales, sold)
    first = TabularClassifier("shop", HedgedSharing(classes=["no", "yes"]))
    first.learn_one({"shop": 1, "price": 2.0}, "yes")
    assert first.classes_.tolist() == ["no", "yes"]


def test_weights_are_those_of_the_argument_or_of_their_column_or_one() -> None:
    rng = np.random.default_rng(4)
    bare = pl.DataFrame({"shop": ["a", "b"] * 20, "size": rng.normal(size=40), "units": rng.normal(size=40)})
    weight = rng.integers(1, 4, 40).astype(float)

    def forecasts(table: pl.DataFrame, sample_weight: Any = None) -> Any:
        learner = PassiveAggressiveRegressor()
        model = TabularRegressor("shop", learner, label="units", weight="n").fit(table, sample_weight=sample_weight)
        return np.asarray(model.predict(bare)).tolist()

    ones, weighted = forecasts(bare.with_columns(n=1.0)), forecasts(bare.with_columns(n=pl.Series(weight)))
    assert ones != weighted
    assert forecasts(bare) == ones
    assert forecasts(bare, weight) == weighted
    assert forecasts(bare.with_columns(n=5.0), weight) == weighted


def test_refused_rows_leave_no_column_behind(sales: pd.DataFrame, sold: pd.Series) -> None:
    model: Any = TabularClassifier("shop", PassiveAggressive(), new_columns=5).fit(sales[:100], sold[:100])
    known = model._fitted().table.encoder.column_names
    new = sales[100:104].assign(more=1.0)
    with pytest.raises(ValueError, match="price"):
        model.partial_fit(new.assign(price=["1", "2", "3", "much"]), sold[100:104])
    assert model._fitted().table.encoder.column_names == known
    model.partial_fit(new, sold[100:104])
    assert model._fitted().table.encoder.column_names == [*known, "more"]


def test_counts_are_checked_by_row_and_explained_in_their_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before they reach the learner: the program names the line; shares of exp(f) add up to the forecast."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": rng.choice(["a", "b"], 200), "x": rng.normal(size=200)})
    frame["units"] = rng.poisson(np.exp(1 + 0.5 * frame["x"]))
    model = TabularRegressor("shop", MultitaskRegressor(loss="poisson"), label="units").fit(frame)
    found = model.explain_one({"shop": "a", "x": 1.5})
    assert found.unit == "units"
    assert found.forecast == pytest.approx(found.predicted)
    assert found.usual + sum(one.share for one in found.reasons) == pytest.approx(found.forecast)
    before = model.predict(frame)
    wrong = frame.assign(units=frame["units"].where(frame.index != 150, -1))
    with pytest.raises(ValueError, match=r"row 150: label .*-1.* in column 'units', expected a number >= 0"):
        model.partial_fit(wrong)
    np.testing.assert_array_equal(model.predict(frame), before)
    wrong.to_csv(tmp_path / "w.csv", index=False)
    arguments = [str(tmp_path / "w.csv"), "--task", "shop", "--label", "units", "--regression", "--no-baselines"]
    with pytest.raises(SystemExit):
        start(["run", *arguments, "--learner", "MultitaskRegressor", "--set", "loss=poisson"])
    assert "line 152: label '-1' in column 'units', expected a number >= 0" in capsys.readouterr().err
    with pytest.raises(ValueError, match="expected a number >= 0"):
        model.learn_one({"shop": "a", "x": 0.0}, -1)
    model.save(tmp_path / "m.shoal")
    served = ServedModel(tmp_path / "m.shoal")
    rows = from_dicts([{"shop": "a", "x": 0.0, "units": units} for units in (2, -1)])
    _, [fault] = served.check(rows)
    assert (fault.row, fault.column) == (1, "units")
