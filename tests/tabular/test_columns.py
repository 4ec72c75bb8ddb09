"""Columns come and go: the program, Python and the service answer the same rows alike, with and without `strict`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file
from tests.cli.conftest import Program
from tests.serve.material import assert_same, predict_one
from tests.serve.material import rows as as_rows
from tests.serve.test_program import free_port

import shoal
from shoal import HedgedSharing, PassiveAggressive, TabularClassifier
from shoal.serve.client import Client
from shoal.serve.contract import Refused
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.limits import Caps

WHOLE = {"shop": "s1", "price": 1.5, "offer": "flyer", "day": "2026-03-01", "title": "free lunch today"}


class Try(NamedTuple):
    """A row, and what must come of it."""

    row: dict[str, Any]
    like: dict[str, Any] | None = WHOLE  # the row that has the same answer; None: refused
    said: tuple[str, ...] = ()  # names that a note must have
    refusal: str = ""


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in WHOLE.items() if name not in names}


MISSING = {**WHOLE, "price": None}
TRIES = {
    "absent": Try(without("price"), MISSING, ("no column 'price'",)),
    "extra": Try({**WHOLE, "weather": "rain"}, WHOLE, ("does not know column 'weather'",)),
    "misspelt": Try(
        {**without("price"), "Price": 1.5}, MISSING, ("'Price' (did you mean 'price'?)", "no column 'price'")
    ),
    "reordered": Try(dict(reversed(WHOLE.items()))),
    "ignored": Try({**WHOLE, "units": 7}, WHOLE),
    "renamed": Try({**without("offer"), "deal": "flyer"}, {**WHOLE, "offer": None}, ("'deal'", "no column 'offer'")),
    "of another type": Try({**WHOLE, "price": "cheap"}, None, (), "column 'price' has 'cheap'"),
    "with missing cells": Try({**WHOLE, "price": None, "title": None}, {**WHOLE, "price": None, "title": None}),
    "of an unseen task and category": Try(
        {**WHOLE, "shop": "s9", "offer": "new"}, {**WHOLE, "shop": "s9", "offer": "new"}
    ),
    "with NaN": Try({**WHOLE, "price": "nan", "offer": "nan"}, {**WHOLE, "price": None, "offer": None}),
    "with infinity": Try({**WHOLE, "price": "inf"}, None, (), "column 'price' has"),
    "without a task": Try(without("shop"), None, (), "no column 'shop'(?!.*did you mean)"),
    "empty": Try({}, None, (), "no column 'shop'|row.csv is empty|have no keys|y is None"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Python saves; its file is the one of the program and the service."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("columns") / "m.shoal"
    table = pl.DataFrame(
        {
            "shop": [f"s{i % 4}" for i in range(300)],
            "price": [None if i % 7 == 0 else float(rng.normal()) for i in range(300)],
            "offer": rng.choice(["none", "flyer"], 300).tolist(),
            "day": [f"2026-0{1 + i % 9}-1{i % 9}" for i in range(300)],
            "title": [" ".join(rng.choice(["free", "lunch", "report", "win"], 4)) + f" {i}" for i in range(300)],
            "units": rng.integers(9, size=300),
            "sold": [("no", "yes")[int(x > 0)] for x in rng.normal(size=300)],
        }
    )
    table[10, "offer"] = None
    TabularClassifier("shop", label="sold", ignore=["units"], hash_bits=10).fit(table).save(path)
    return path


@pytest.fixture(scope="module")
def python(model: Path) -> Any:
    return shoal.load(model)


@pytest.fixture(scope="module")
def services(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Engine]]:
    folder = tmp_path_factory.mktemp("service")
    with (
        Engine(model, folder / "a", EngineSettings(label_wait=0)) as lenient,
        Engine(model, folder / "b", EngineSettings(label_wait=0, strict=True)) as strict,
    ):
        yield {False: lenient, True: strict}


def of_python(model: Any, row: dict[str, Any], *, strict: bool, one: bool) -> tuple[float, str]:
    row = {name: float(value) if value in ("inf", "nan") else value for name, value in row.items()}
    model.set_params(strict=strict)
    say_again(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chance = model.predict_proba_one(row)["yes"] if one else float(model.predict_proba(pl.DataFrame([row]))[0, 1])
    return chance, "; ".join(str(one.message) for one in caught)


def say_again(model: Any) -> None:
    """Each column is named once: here once a try."""
    counted = model._fitted().table.encoder.unmatched
    for names in (counted._named, counted.absent, counted.unknown):
        names.clear()


def of_service(engine: Engine, row: dict[str, Any], *, one: bool) -> tuple[float, str]:
    found = predict_one(engine, row) if one else engine.predict(as_rows([row])).result()[0]
    assert found.probability is not None
    return found.probability, found.note or ""


def of_program(shoal: Program, model: Path, row: dict[str, Any], *, strict: bool) -> tuple[float, str]:
    path = written(row, model.parent)
    code, out, err = shoal("predict", path, "--model", model, *(["--strict"] if strict else []))
    if code != 0:
        raise ValueError(err)
    return float(pl.read_csv(out.encode())["probability"][0]), err


def written(row: dict[str, Any], folder: Path) -> Path:
    """A CSV file of one row."""
    path = folder / "row.csv"
    values = ["" if value is None else str(value) for value in row.values()]
    path.write_text(",".join(row) + "\n" + ",".join(values) + "\n")
    return path


@pytest.mark.parametrize("name", TRIES)
def test_rows_are_answered_alike(
    name: str, shoal: Program, model: Path, python: Any, services: dict[bool, Engine]
) -> None:
    row, like, said, refusal = TRIES[name]
    for strict in (False, True):
        ways: dict[str, Callable[[dict[str, Any]], tuple[float, str]]] = {
            "one row in Python": partial(of_python, python, strict=strict, one=True),
            "a table in Python": partial(of_python, python, strict=strict, one=False),
            "one row in the service": partial(of_service, services[strict], one=True),
            "a table in the service": partial(of_service, services[strict], one=False),
            "the program": partial(of_program, shoal, model, strict=strict),
        }
        for way, ask in ways.items():
            if like is None or (strict and said):
                with pytest.raises((ValueError, Refused), match=refusal or "column '"):
                    ask(row)
                continue
            chance, note = ask(row)
            expected = of_python(python, like, strict=False, one=False)[0]
            assert chance == pytest.approx(expected, abs=1e-12), way
            assert all(one in note for one in said), (way, note)
            assert bool(said) == ("column" in note), (way, note)


class Learning:
    """The ways to learn a row; each returns what is said of its columns."""

    def __init__(self, shoal: Program, model: Path, engine: Engine, folder: Path, *, strict: bool) -> None:
        self.shoal, self.engine, self.folder, self.strict = shoal, engine, folder, strict
        self.one, self.table = (of(model).set_params(strict=strict) for _ in range(2))
        self.saved = Path(shutil.copy(model, folder / f"saved {strict}.shoal"))
        self.ways: dict[str, Callable[[dict[str, Any]], str]] = {
            "one row in Python": lambda row: self._of_python(self.one.learn_one, self.one, row),
            "a table in Python": lambda row: self._of_python(
                lambda row: self.table.partial_fit(pl.DataFrame([row])), self.table, row
            ),
            "the service": self._of_service,
            "the program": self._of_program,
        }

    def _of_python(self, learn: Any, model: Any, row: dict[str, Any]) -> str:
        say_again(model)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learn({name: float(value) if value in ("inf", "nan") else value for name, value in row.items()})
        return "; ".join(str(one.message) for one in caught)

    def _of_service(self, row: dict[str, Any]) -> str:
        receipt = self.engine.learn(as_rows([row])).result()
        assert self.engine.wait_until_learned(timeout=60)
        return receipt.note or ""

    def _of_program(self, row: dict[str, Any]) -> str:
        options = ["--load", self.saved, "--save", self.saved, "--no-baselines", *(["--strict"] if self.strict else [])]
        code, out, err = self.shoal("run", written(row, self.folder), *options)
        if code != 0:
            raise ValueError(err)
        return " ".join(out.split())

    def chances(self, rows: list[dict[str, Any]]) -> dict[str, list[float]]:
        """What each way's model says of rows by now."""
        frame = pl.DataFrame(rows)
        models = {"one row in Python": self.one, "a table in Python": self.table, "the program": of(self.saved)}
        found = {way: one.predict_proba(frame)[:, 1].tolist() for way, one in models.items()}
        return found | {"the service": [one.probability for one in self.engine.predict(as_rows(rows)).result()]}


@pytest.mark.parametrize("strict", [False, True])
def test_rows_are_learned_alike(strict: bool, shoal: Program, model: Path, tmp_path: Path) -> None:
    """Each try is learned as the row that it is like, or refused by every way, and then nothing changes."""
    probes = [WHOLE, {**MISSING, "shop": "s9"}, {**WHOLE, "offer": "new", "title": None}]
    expected = of(model)
    with Engine(model, tmp_path / "engine", EngineSettings(label_wait=0, strict=strict)) as engine:
        learning = Learning(shoal, model, engine, tmp_path, strict=strict)
        for name, (row, like, said, refusal) in TRIES.items():
            labeled = {**row, "sold": "yes"} if row else row
            is_refused = like is None or (strict and bool(said))
            if strict and not is_refused:
                continue
            for way, learn in learning.ways.items():
                if is_refused:
                    with pytest.raises((ValueError, Refused), match=f"{refusal}|column '" if strict else refusal):
                        learn(labeled)
                    continue
                note = learn(labeled)
                assert all(one in note for one in said), (name, way, note)
                assert bool(said) == ("does not know column" in note or "there is no column" in note), (name, way, note)
            if not is_refused:
                assert like is not None
                expected.partial_fit(pl.DataFrame([{**like, "sold": "yes"}]))
            right = expected.predict_proba(pl.DataFrame(probes))[:, 1].tolist()
            assert learning.chances(probes) == dict.fromkeys(learning.ways, right), (name, strict)


def test_columns_are_learned_where_that_is_asked_for_and_dropped_again(
    shoal: Program, model: Path, tmp_path: Path
) -> None:
    table = [{**WHOLE, "sold": ("no", "yes")[i % 2], "weather": float(i % 2)} for i in range(60)]
    path, later = tmp_path / "rows.ndjson", tmp_path / "later.shoal"
    path.write_text("\n".join(json.dumps(row) for row in table))
    code, out, _ = shoal("run", path, "--load", model, "--save", later, "--no-baselines")
    assert (code, "weather" in "".join(out.split())) == (0, True)
    assert "weather" not in columns(later)
    assert shoal("run", path, "--load", model, "--save", later, "--new-columns", "1", "--quiet")[0] == 0
    assert "weather" in columns(later)
    mine = of(model).set_params(new_columns=1)
    mine.partial_fit(pl.DataFrame(table))
    mine.save(tmp_path / "mine.shoal")
    assert "weather" in columns(tmp_path / "mine.shoal")
    caps = EngineSettings(label_wait=0, caps=Caps(new_columns_a_minute=1))
    for settings, is_new in ((EngineSettings(label_wait=0), False), (caps, True)):
        with Engine(model, tmp_path / f"engine {is_new}", settings) as engine:
            receipt = engine.learn(as_rows(table)).result()
            assert (receipt.note is None) == is_new
            engine.wait_until_learned(timeout=60)
            assert ("weather" in engine.describe()["columns"]) == is_new
            assert engine.describe()["unknown"] == ({} if is_new else {"weather": 60})
    code, out, _ = shoal("edit", later, "--drop", "weather,title")
    assert (code, "uses weather, title no more; 3 columns left" in out) == (0, True)
    assert of(later).predict_one(without("title")) == of(later).predict_one({**WHOLE, "weather": 3.0})
    found = of(later)
    found.partial_fit(pl.DataFrame(table).drop("title"))
    assert columns(later) == ["price", "offer", "day"]
    for arguments, message in (
        (["--drop", "wether"], "no column 'wether'"),
        ([], "the columns to leave out by --drop"),
    ):
        code, _, err = shoal("edit", later, *arguments)
        assert (code, message in err) == (2, True)


def test_a_learner_without_a_table_is_refused_with_the_way_out(shoal: Program, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    path, csv = tmp_path / "alone.shoal", tmp_path / "rows.csv"
    HedgedSharing().fit(frame, [0, 1, 0, 1]).save(path)
    frame.with_columns(y=pl.Series([0, 1, 0, 1])).write_csv(csv)
    for arguments in (
        ("serve", path),
        ("predict", csv, "--model", path),
        ("run", csv, "--label", "y", "--load", path),
        ("explain", csv, "--model", path),
        ("edit", path, "--drop", "a"),
    ):
        code, _, err = shoal(*arguments)
        assert (code, len(err.splitlines())) == (2, 1), err
        assert f"{path} holds a HedgedSharing alone" in err
        assert "shoal.TabularClassifier(task, HedgedSharing(…))" in err


def test_a_learner_without_a_table_takes_libsvm_text(shoal: Program, tmp_path: Path) -> None:
    """Feature 1 is its first column, and ids are of its own type; a file that counts from 0 is refused, not shifted."""
    X, task = np.random.default_rng(0).normal(size=(40, 3)).round(2), np.arange(40) % 2 + 7
    y = np.where(X[:, 0] > 0, "yes", "no")
    learner = PassiveAggressive().fit(X[:20], y[:20], task[:20])
    path, rows, zero, vw = (tmp_path / name for name in ("alone.shoal", "one.svm", "zero.svm", "rows.vw"))
    learner.save(path)
    dump_svmlight_file(X, y == "yes", str(rows), zero_based=False, query_id=task)
    dump_svmlight_file(X, y == "yes", str(zero), query_id=task)
    vw.write_text("1 |f a b\n")
    code, out, err = shoal("predict", rows, "--model", path)
    assert (code, err) == (0, "")
    assert pl.read_csv(out.encode())["predicted"].to_list() == learner.predict(X, task).tolist()
    assert shoal("explain", rows, "--model", path)[1].startswith("row 1, task 7: predicted")
    for file, message in (
        (zero, "line 1: feature index 0, expected 1 or more"),
        (vw, "holds a PassiveAggressive alone"),
    ):
        code, _, err = shoal("predict", file, "--model", path)
        assert (code, len(err.splitlines())) == (2, 1)
        assert message in err
    numbers, later = PassiveAggressive().fit(X[:20], y[:20] == "yes", task[:20]), tmp_path / "later.shoal"
    numbers.save(path)
    for model in (path, later):
        numbers.partial_fit(X, y == "yes", task)
        assert shoal("run", rows, "--load", model, "--no-baselines", "--quiet", "--save", later)[0] == 0
        assert of(later).tasks_ == [7, 8]
        assert of(later).decision_function(X, task) == pytest.approx(numbers.decision_function(X, task))


def of(path: Path) -> Any:
    return shoal.load(path)


def columns(path: Path) -> list[str]:
    return list(of(path)._fitted().table.encoder.column_names)


def test_a_model_of_python_is_served_and_comes_back_the_same(model: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = [
        {
            **WHOLE,
            "shop": f"s{i % 5}",
            "price": float(rng.normal()),
            "title": f"win {i} lunch",
            "sold": ("no", "yes")[i % 2],
        }
        for i in range(40)
    ]
    mine = of(model)
    for row in table:
        mine.learn_one(row)
    mine.save(tmp_path / "mine.shoal")
    port, exported = free_port(), tmp_path / "exported.shoal"
    command = [sys.executable, "-m", "shoal", "serve", str(model), "--folder", str(tmp_path / "live")]
    with ExitStack() as ends:
        process = ends.enter_context(subprocess.Popen([*command, "--port", str(port)], stderr=subprocess.DEVNULL))
        ends.callback(process.terminate)
        client = ends.enter_context(Client(f"http://127.0.0.1:{port}", retries=9))
        for row in table:
            client.learn(row)
        while client.model()["rows"] < len(table):
            time.sleep(0.01)
        client.export(exported)
    assert process.returncode == 0
    assert_same(tmp_path / "mine.shoal", exported)
    assert of(exported).predict_proba(table).tobytes() == mine.predict_proba(table).tobytes()
