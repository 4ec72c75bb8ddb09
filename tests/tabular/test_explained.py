"""Partial dependence and what changed since a time, of `TabularClassifier` and `TabularRegressor`."""

from __future__ import annotations

import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.inspection import partial_dependence

from shoal import MultiClass, MultitaskPerceptron, PassiveAggressive, TabularClassifier, TabularRegressor
from shoal.report import export

RNG = np.random.default_rng(0)
ROWS = [
    {
        "shop": int(shop),
        "price": None if i % 11 == 0 else round(float(price), 2),
        "offer": offer,
        "day": datetime.date(2026, 1, 1) + datetime.timedelta(days=i // 2),
        "note": "as it was",
        "units": float((1 + shop) * (6.0 - price) + 5.0 * (offer == "flyer") * (i >= 200)),
    }
    for i, (shop, price, offer) in enumerate(
        zip(RNG.integers(3, size=400), RNG.uniform(2, 6, 400), RNG.choice(["none", "flyer"], 400), strict=True)
    )
]
FRAME = pl.DataFrame(ROWS)
X = FRAME.drop("units")


@pytest.fixture(scope="module")
def regressor() -> TabularRegressor:
    return TabularRegressor(task="shop", label="units", text=["note"]).fit(ROWS)


@pytest.fixture(scope="module")
def classifier() -> TabularClassifier:
    labels = np.array(["few", "some", "many"])[np.digitize(FRAME["units"], [4.0, 9.0])]
    return TabularClassifier("shop", MultiClass(PassiveAggressive())).fit(X, labels)


def test_the_dependence_is_the_mean_forecast_of_rows_with_the_column_set(regressor: TabularRegressor) -> None:
    values: list[Any]
    for column, values in (("price", [2.5, None]), ("offer", ["flyer", "x"]), ("day", [datetime.date(2026, 3, 2)])):
        found = regressor.partial_dependence(X, column, values)
        for value, average, *of_tasks in zip(values, found.average, *found.by_task.values(), strict=True):
            forecasts = regressor.predict(X.with_columns(pl.lit(value, X[column].dtype).alias(column)))
            assert average == pytest.approx(forecasts.mean(), abs=1e-9)
            means = [forecasts[(X["shop"] == task).to_numpy()].mean() for task in found.by_task]
            assert of_tasks == pytest.approx(means, abs=1e-9)
    assert found.unit == "units"
    assert [*found.by_task] == X["shop"].value_counts(sort=True)["shop"].to_list()


def test_scikit_learn_finds_the_same(regressor: TabularRegressor) -> None:
    ours = regressor.partial_dependence(X, "price")
    frame = X.to_pandas().astype({"price": float})
    theirs = partial_dependence(regressor, frame, ["price"], custom_values={"price": ours.grid_values})
    assert ours.average == pytest.approx(theirs["average"][0], abs=1e-9)


def test_values_are_deciles_frequent_categories_and_the_parts_of_dates(regressor: TabularRegressor) -> None:
    grid = {column: regressor.partial_dependence(X, column).grid_values for column in ("price", "offer", "day")}
    deciles = np.nanquantile(X["price"].to_numpy(), np.arange(1, 10) / 10, method="nearest")
    assert grid["price"] == pytest.approx(deciles)
    assert grid["offer"] == X["offer"].value_counts(sort=True)["offer"].to_list()
    assert grid["day"] == [
        *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        *("January", "February", "March", "April", "May", "June", "July"),
    ]
    for column, message in (("note", "'note' has words: say which"), ("pric", "did you mean 'price'"), ("shop", "no")):
        with pytest.raises(ValueError, match=message):
            regressor.partial_dependence(X, column)
    with pytest.raises(ValueError, match="value 1 to compare: column 'price' has 'dear'"):
        regressor.partial_dependence(X, "price", ["2.5", "dear"])


def test_of_several_labels_one_is_explained(classifier: TabularClassifier) -> None:
    margins = classifier.decision_function(X.with_columns(offer=pl.lit("flyer")))
    found = classifier.partial_dependence(X, "offer", ["flyer"], label="many")
    assert found.average == pytest.approx([margins[:, list(classifier.classes_).index("many")].mean()])
    assert (found.unit, str(found).splitlines()[0]) == (
        "margin for many",
        "mean margin for many over 400 rows if offer were",
    )
    with pytest.raises(ValueError, match="no label 'much'"):
        classifier.partial_dependence(X, "offer", label="much")


def test_a_dependence_is_a_table_a_frame_and_a_picture(regressor: TabularRegressor, tmp_path: Path) -> None:
    found = regressor.partial_dependence(X, "offer", ["none", "flyer"])
    assert found._repr_html_().count("<tr>") == 3
    assert found.to_frame().columns == ["task", "offer", "forecast"]
    assert found.to_frame().filter(pl.col("task").is_null())["forecast"].to_list() == found.average
    names = {path.name for path in export(found, tmp_path / "found")}
    assert names == {f"dependence.{ending}" for ending in ("tex", "csv", "parquet", "svg", "pdf")}
    assert "where offer is flyer" in (tmp_path / "found" / "dependence.svg").read_text()


def test_what_changed_since_a_day_is_the_difference_of_importances(regressor: TabularRegressor, tmp_path: Path) -> None:
    day = datetime.date(2026, 4, 11)
    found = regressor.importance_changes(X, since="2026-04-11")
    assert found == regressor.importance_changes(X, day)._replace(since="2026-04-11")
    assert found[1:] == regressor.importance_changes(X, 200)[1:]
    before, since = (
        {one.column: one for one in regressor.importances(X.filter(mask)).overall}
        for mask in (pl.col("day") < day, pl.col("day") >= day)
    )
    for one in found.overall:
        assert one.change == since[one.column].added - before[one.column].added
        assert (one.share_before, one.share_since) == (before[one.column].share, since[one.column].share)
    assert all(abs(a.change) >= abs(b.change) for a, b in pairwise(found.overall))
    assert found.rows == (200, 200)
    assert set(found.by_task) == {0, 1, 2}
    assert str(found).splitlines()[0].split("  ")[-2:] == ["share before", "share since"]
    [path] = export(found, tmp_path / "changes.csv")
    assert pl.read_csv(path)["column"].to_list() == [one.column for one in found.overall]
    with pytest.raises(ValueError, match="all rows are since 2025-01-01 in column 'day'"):
        regressor.importance_changes(X, "2025-01-01")
    with pytest.raises(ValueError, match="'spring' is no time as column 'day' has them"):
        regressor.importance_changes(X, "spring")
    without = TabularRegressor("shop", label="units").fit(FRAME.drop("day", "note"))
    with pytest.raises(ValueError, match="no column of dates"):
        without.importance_changes(X, "2026-01-01")


def test_importances_are_in_the_units_of_forecasts() -> None:
    many = FRAME["units"].to_numpy() > 8.0
    model = TabularClassifier("shop", MultitaskPerceptron(loss="logistic")).fit(X, many)
    row = X[5].to_dicts()[0]
    shares = dict.fromkeys(X.columns, 0.0)
    for one in model.explain_one(row).reasons:
        shares[one.what.split()[0]] += one.share
    found = model.importances(X[5:6]).overall
    assert len(found) >= 3
    for column in found:
        assert column.added == pytest.approx(abs(shares[column.column]), abs=1e-12)
