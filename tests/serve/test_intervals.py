"""A served model answers the intervals and sets with which it was learned, and labels that come late move them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from tests.serve.material import predict_one, records, rows, write_model
from tests.serve.test_http import ARROW, NDJSON, served

from shoal import (
    Conformal,
    Guarded,
    HedgedSharing,
    HedgedSharingRegressor,
    Hierarchy,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    OutsideForecast,
    TabularRegressor,
)
from shoal.model.slicing import as_wide
from shoal.serve.client import Client
from shoal.serve.engine import Engine

MAILS = records(80, seed=5, late_columns=False)


def numbers(path: Path, n: int) -> Path:
    rng = np.random.default_rng(0)
    sales = [
        {"shop": f"s{i % 3}", "size": float(size), "price": float(size) + i % 3}
        for i, size in enumerate(rng.normal(size=n))
    ]
    TabularRegressor("shop", Conformal(MultitaskRegressor(eta=0.1), coverage=0.8), label="price").fit(sales).save(path)
    return path


def test_intervals_are_answered_in_every_format(tmp_path: Path) -> None:
    row = {"shop": "s1", "size": 0.5}
    with Engine(numbers(tmp_path / "m", 200), tmp_path / "live") as engine, served(engine, []) as url:
        with Client(url) as client:
            one, more, new = client.predict([row, {**row, "shop": "s2"}, {**row, "shop": "new"}])
            [why] = client.explain(row)
            about = client.task("s1")
        assert one.low is not None
        assert one.high is not None
        assert one.low < one.predicted < one.high
        assert one.set is None
        assert len({one.low - one.predicted, more.low - more.predicted, new.low - new.predicted}) == 3
        assert predict_one(engine, row, wait=False)[6:] == one[6:]
        assert (why["low"], why["high"]) == (one.low, one.high)
        assert "from" in why["text"].splitlines()[0]
        learner = engine._fold.served.learner
        assert about["coverage"] == learner.coverage_[learner.tasks_.index("s1")]
        assert 0.5 < about["coverage"] <= 1.0
        metrics = httpx.get(f"{url}/metrics").text
        assert "shoal_coverage " in metrics
        assert "shoal_coverage_of_worst_task " in metrics
        [line] = httpx.post(
            f"{url}/v1/predict", content=json.dumps(row), headers={"content-type": NDJSON}
        ).text.splitlines()
        assert json.loads(line)["high"] == one.high
        table = httpx.post(f"{url}/v1/predict", json=[row], headers={"accept": ARROW}).content
        assert pl.read_ipc_stream(table)["low"].to_list() == [one.low]


def test_quantiles_are_answered_in_every_format_and_judged_by_their_loss(tmp_path: Path) -> None:
    rng, row = np.random.default_rng(0), {"shop": "s1", "size": 0.5}
    sales = [
        {"shop": f"s{i % 3}", "size": size, "price": size + rng.normal()} for i, size in enumerate(rng.normal(size=90))
    ]
    learner = HedgedSharingRegressor(target=[0.1, 0.9], memory=8)
    TabularRegressor("shop", learner, label="price").fit(sales).save(tmp_path / "m")
    with Engine(tmp_path / "m", tmp_path / "live") as engine, served(engine, []) as url:
        with Client(url) as client:
            one, new = client.predict([row, {**row, "shop": "new"}])
            assert one.quantiles is not None
            assert new.quantiles is not None
            assert list(one.quantiles) == ["0.1", "0.9"]
            assert one.predicted == one.quantiles["0.1"] < one.quantiles["0.9"]
            assert one.quantiles != new.quantiles
            assert client.model()["quantiles"] == [0.1, 0.9]
            low, high = one.quantiles.values()
            assert engine.wait_until_learned(client.learn([{**row, "price": 9.0}]).position, timeout=60)
            about = client.task("s1")
        assert about["error"] == pytest.approx(9.0 - low, rel=0.01)
        assert about["loss"] == pytest.approx((0.1 * (9.0 - low) + 0.9 * (9.0 - high)) / 2, rel=0.01)
        table = httpx.post(f"{url}/v1/predict", json=[row], headers={"accept": ARROW}).content
        assert set(pl.read_ipc_stream(table)["quantiles"].to_list()[0]) == {"0.1", "0.9"}


def test_before_fifty_rows_an_interval_has_no_ends(tmp_path: Path) -> None:
    row = {"shop": "s1", "size": 0.5}
    with Engine(numbers(tmp_path / "m", 30), tmp_path / "live") as engine, served(engine, []) as url:
        found = httpx.post(f"{url}/v1/predict", json=row).json()
        assert (found["low"], found["high"]) == (None, None)
        with Client(url) as client:
            assert client.predict_one(row)[6:8] == (-math.inf, math.inf)
            assert client.explain(row)[0]["low"] is None
            assert "coverage" not in client.task("s1")


@pytest.mark.parametrize("several", [False, True])
def test_late_labels_move_the_sets(tmp_path: Path, several: bool) -> None:
    inner = MultiClass(MultitaskPerceptron(loss="logistic")) if several else HedgedSharing(memory=8)
    model = write_model(tmp_path, Conformal(inner, coverage=0.8))
    with Engine(model, tmp_path / "live") as engine, served(engine, []) as url, Client(url) as client:
        learner = engine._fold.served.learner
        before, judged = learner.thresholds_, learner.judged_.sum()
        answers = client.predict(MAILS)
        assert {tuple(answer.set or ()) for answer in answers} <= {(), ("no",), ("yes",), ("no", "yes")}
        assert len({tuple(answer.set or ()) for answer in answers}) > 1
        np.testing.assert_array_equal(learner.thresholds_, before)
        wrong = {answer.id: "no" if answer.predicted == "yes" else "yes" for answer in answers}
        receipt = client.label({str(name): label for name, label in wrong.items()})
        assert engine.wait_until_learned(receipt.position, timeout=60)
        assert learner.judged_.sum() == judged + len(MAILS)
        assert (learner.thresholds_ > before).all()
        assert len(client.query(MAILS[:3])) == 3
        assert client.explain(MAILS[0])[0]["set"] == client.predict_one(MAILS[0]).set
        client.learn(MAILS)


def read_by(engine: Engine, mail: dict[str, Any]) -> tuple[Any, Any]:
    served, readers = engine._fold.live
    chunk = served.rows_of(rows([mail]), readers.table)
    return as_wide(chunk.X, served.learner.n_features_in_), chunk.task


def test_a_guarded_model_is_served_with_the_trust_of_its_tasks(tmp_path: Path) -> None:
    guarded = Guarded(MultitaskPerceptron(relation="pooled", loss="logistic"))
    inner = OutsideForecast(Hierarchy(guarded), columns=[])
    model = write_model(tmp_path, Conformal(inner, coverage=0.8))
    with Engine(model, tmp_path / "live") as engine, served(engine, []) as url, Client(url) as client:
        receipt = client.learn(MAILS)
        assert engine.wait_until_learned(receipt.position, timeout=60)
        answer, about = client.predict_one(MAILS[0]), client.task("u1")
        learner: Any = engine._fold.served.learner
        guard = learner.estimator_.estimator_.estimator_
        new = {**MAILS[0], "user": "new"}
        expected = learner.predict_proba(*read_by(engine, new))[0, 1]
        assert client.predict_one(new).probability == pytest.approx(expected)
        assert answer.probability == pytest.approx(learner.predict_proba(*read_by(engine, MAILS[0]))[0, 1])
        assert about["trust"] == guard.trust_[guard.tasks_.index("u1")]
        assert about["harmed"] == ("u1" in guard.harmed_)
        assert f"shoal_tasks_harmed {len(guard.harmed_):.1f}" in httpx.get(f"{url}/metrics").text
