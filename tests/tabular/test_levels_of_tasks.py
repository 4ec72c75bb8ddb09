"""Task columns as levels: a new shop of a table begins with its country, in Python, in the program and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.cli.conftest import Program

import shoal
from shoal import Hierarchy, MultitaskPerceptron, MultitaskRegressor, TabularClassifier, TabularRegressor

LEVELS = ["country", "shop"]


def rows(n: int, *, numbers: bool = False, seed: int = 0) -> list[dict[str, Any]]:
    """Sales that fall with the price in one country, and rise in the other; a name of a country holds a comma."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        price, shop = float(rng.normal()), int(rng.integers(30))
        sales = (2.0 if shop % 2 else -2.0) * price + 0.3 * float(rng.normal())
        country = "Peru" if shop % 2 else "Korea, Republic of"
        label = 20.0 + sales if numbers else "yes" if sales > 0 else "no"
        found.append({"country": country, "shop": f"s{shop}", "price": price, "sold": label})
    return found


def made(*, numbers: bool, **options: Any) -> Any:
    inner = MultitaskRegressor(eta=0.1) if numbers else MultitaskPerceptron(loss="logistic")
    return (TabularRegressor if numbers else TabularClassifier)(LEVELS, inner, label="sold", **options)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_new_shop_is_answered_by_its_country(tmp_path: Path, numbers: bool) -> None:
    table = rows(600, numbers=numbers)
    new = [{**one, "shop": "new"} for one in rows(200, numbers=numbers, seed=1)]
    model = made(numbers=numbers, hierarchy=True).partial_fit(table[:300])
    for row in table[300:]:
        model.learn_one(row)
    assert model.score(new) > 0.85 > made(numbers=numbers).fit(table).score(new) + 0.2
    assert sorted(model.estimator_.groups_) == ['"Korea, Republic of"', "Peru"]
    assert model.predict_one(new[0]) == model.predict(new[:1])[0]
    why = model.explain_one(new[0])
    assert why.reasons[0].what.startswith("price")
    model.save(tmp_path / "m")
    again: Any = shoal.load(tmp_path / "m")
    again.partial_fit(new)
    np.testing.assert_array_equal(again.predict(table), model.partial_fit(new).predict(table))
    assert isinstance(again.estimator_, Hierarchy)


def test_levels_need_columns_and_two_labels() -> None:
    table = rows(60)
    with pytest.raises(ValueError, match=r"hierarchy=True needs two task columns or more, as in task=\['country'"):
        TabularClassifier("shop", label="sold", hierarchy=True).fit(table)
    with pytest.raises(ValueError, match="two labels or numbers"):
        made(numbers=False, hierarchy=True).fit([{**one, "sold": f"a{i % 3}"} for i, one in enumerate(table)])


def test_a_run_has_levels_and_goes_on(shoal: Program, tmp_path: Path) -> None:
    table, model, new, out = (tmp_path / name for name in ("sales.csv", "m.shoal", "new.csv", "p.csv"))
    pl.DataFrame(rows(600)).write_csv(table)
    pl.DataFrame(rows(200, seed=1)).with_columns(shop=pl.lit("new")).write_csv(new)
    options = ("--task", "country,shop", "--label", "sold")
    learner = ("--learner", "MultitaskPerceptron", "--set", "loss=logistic")
    around = ("--hierarchy", "--guard", "--interval", "0.8")
    code, said, _ = shoal("run", table, *options, *learner, *around, "--save", model)
    assert (code, "MultitaskPerceptron" in said, "the guard" in said) == (0, True, True)
    assert shoal("run", table, "--load", model, "--hierarchy", "--save", model)[0] == 0
    assert shoal("predict", new, "--model", model, "--out", out)[0] == 0
    assert (pl.read_csv(out)["predicted"] == pl.read_csv(new)["sold"]).to_numpy().mean() > 0.85
    assert "two columns of --task or more" in shoal("run", table, "--task", "shop", "--hierarchy")[2]
    assert "is for one process" in shoal("run", table, *options, "--hierarchy", "--shards", "2")[2]
    assert shoal("run", table, *options, *learner, "--save", model)[0] == 0
    assert "was learned without a hierarchy" in shoal("run", table, "--load", model, "--hierarchy")[2]
