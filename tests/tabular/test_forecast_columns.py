"""Columns of tables with forecasts from outside: read as they are, missing where missing, saved, explained, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import Program

import shoal
from shoal import MultitaskPerceptron, MultitaskRegressor, OutsideForecast, TabularClassifier, TabularRegressor


def rows(n: int, *, numbers: bool = False) -> list[dict[str, Any]]:
    """Sales that another model forecasts well, not always; the first rows have no forecast."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(n):
        hidden, price = float(rng.normal()), float(rng.normal())
        score = 2.0 * hidden + price
        forecast = 20.0 + 2.0 * hidden if numbers else 1 / (1 + np.exp(-2.0 * hidden))
        forecast = None if i < 20 or i % 7 == 0 else 0.0 if i == 22 else forecast
        label = 20.0 + score if numbers else "yes" if score > 0 else "no"
        found.append({"shop": f"s{i % 3}", "price": price, "yesterday": forecast, "sold": label})
    return found


def made(*, numbers: bool, forecast: list[str]) -> Any:
    inner = MultitaskRegressor(eta=0.1) if numbers else MultitaskPerceptron(loss="logistic")
    kind = TabularRegressor if numbers else TabularClassifier
    return kind("shop", inner, label="sold", forecast=forecast)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_forecast_is_an_input_as_it_is(tmp_path: Path, numbers: bool) -> None:
    table = rows(600, numbers=numbers)
    model = made(numbers=numbers, forecast=["yesterday"]).partial_fit(table[:400])
    learner, encoder = model.estimator_, model._fitted().table.encoder
    assert isinstance(learner, OutsideForecast)
    assert encoder.feature_names[:2] == ["constant", "yesterday"]
    X, _ = model._to_predict(table[:60])
    expected = [0.0 if one["yesterday"] is None else one["yesterday"] or 1e-300 for one in table[:60]]
    np.testing.assert_array_equal(X[:, [1]].toarray().ravel(), expected)
    assert "yesterday: forecast of another model" in " ".join(model.notes_)
    one_by_one = made(numbers=numbers, forecast=["yesterday"]).partial_fit(table[:100])
    for row in table[100:400]:
        one_by_one.learn_one(row)
    answers = model.predict(table[400:]) if numbers else model.predict_proba(table[400:])
    np.testing.assert_array_equal(one_by_one.predict(table[400:]), model.predict(table[400:]))
    assert model.predict_one(table[450]) == model.predict(table[450:451])[0]
    model.save(tmp_path / "m")
    again: Any = shoal.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(table[400:]) if numbers else again.predict_proba(table[400:]), answers)
    alone = made(numbers=numbers, forecast=[]).partial_fit([{**one, "yesterday": None} for one in table[:400]])
    blind = [{**one, "yesterday": None} for one in table[400:]]
    assert model.score(table[400:]) > alone.score(blind) + 0.05
    why = model.explain_one({**table[402], "yesterday": 19.0 if numbers else 0.9})
    assert any(reason.what.startswith("yesterday") for reason in why.reasons)


@pytest.mark.parametrize("value", ["tomorrow", float("inf")])
def test_an_odd_forecast_is_refused_and_changes_nothing(value: Any) -> None:
    table = rows(200)
    model = made(numbers=False, forecast=["yesterday"]).partial_fit(table)
    before = model.predict_proba(table)
    with pytest.raises(ValueError, match=r"row 1: column 'yesterday' has .*, expected a finite number"):
        model.partial_fit([table[0], {**table[1], "yesterday": value}])
    np.testing.assert_array_equal(model.predict_proba(table), before)
    far = [{**one, "yesterday": 7.0} for one in table[:2]]  # clipped
    assert np.isfinite(model.predict_proba(far)).all()
    with pytest.raises(ValueError, match="no column 'tomorow'"):
        made(numbers=False, forecast=["tomorow"]).fit(table)
    with pytest.raises(ValueError, match="two labels or numbers"):
        made(numbers=False, forecast=["yesterday"]).fit([{**one, "sold": f"a{i % 3}"} for i, one in enumerate(table)])


def test_a_run_takes_forecasts_and_goes_on(shoal: Program, tmp_path: Path) -> None:
    table, model, out = tmp_path / "sales.csv", tmp_path / "m.shoal", tmp_path / "p.csv"
    pl.DataFrame(rows(900)).write_csv(table)
    learner = ("--learner", "MultitaskPerceptron", "--set", "loss=logistic")
    options = ("--task", "shop", "--label", "sold", "--forecast", "yesterday", "--interval", "0.8")
    code, said, _ = shoal("run", table, *options, *learner, "--save", model)
    assert (code, "MultitaskPerceptron" in said) == (0, True)
    assert shoal("run", table, "--load", model, "--save", model)[0] == 0
    assert shoal("predict", table, "--model", model, "--out", out)[0] == 0
    found = pl.read_csv(out)
    assert (found["predicted"] == pl.read_csv(table)["sold"]).to_numpy().mean() > 0.85
    assert "no column 'tomorow'" in shoal("run", table, "--task", "shop", "--label", "sold", "--forecast", "tomorow")[2]
