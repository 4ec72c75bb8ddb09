"""The encoder equals its plain-Python twin, forgets nothing when saved, and hashes beyond the limit."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.files.conftest import Whole

from shoal.files import open_stream
from shoal.files.tables.column_state import Categories
from shoal.files.tables.encoder import StreamEncoder

MISSING = {"", "NA", "N/A", "NaN", "nan", "null", "None", "?"}


class Twin:
    """Row by row, feature by feature, as the documentation says it: two-pass mean and variance, dicts."""

    def __init__(self, numeric: set[str], dates: set[str]) -> None:
        self.numeric, self.dates = numeric, dates
        self.seen: dict[str, list[float]] = {}

    def row(self, row: dict[str, Any]) -> dict[str, float]:
        features = {"constant": 1.0}
        for column, value in row.items():
            if value is None or value in MISSING:
                features[f"{column}=missing"] = 1.0
            elif column in self.numeric:
                values = self.seen.setdefault(column, [])
                values.append(float(value))
                mean = math.fsum(values) / len(values)
                variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
                features[column] = (values[-1] - mean) / math.sqrt(variance) if variance > 1e-18 else 0.0
            elif column in self.dates:
                day = pl.Series([value]).str.to_datetime("%Y-%m-%dT%H:%M:%S%.6f")[0]
                features[f"{column}.weekday={day.isoweekday()}"] = 1.0
                features[f"{column}.month={day.month}"] = 1.0
                features[f"{column}.hour={day.hour}"] = 1.0
            else:
                features[f"{column}={value}"] = 1.0
        return {name: value for name, value in features.items() if value != 0.0}


def test_equals_its_twin(table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    table = table.select("delay", "late", "seats", "same", "carrier", "when").head(600)
    path = tmp_path / "a.csv"
    table.write_csv(path)
    found = whole(open_stream(path, label="late"))
    names = found.stream.feature_names
    twin = Twin(numeric={"delay", "seats", "same"}, dates={"when"})
    rows = pl.read_csv(path, infer_schema=False).drop("late").rows(named=True)
    for i, row in enumerate(rows):
        expected = twin.row(row)
        x = found.X[i]
        features = {names[j]: value for j, value in zip(x.indices, x.data, strict=True)}
        assert features.keys() == expected.keys()
        assert features == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_features_stand_in_the_order_in_which_they_appear(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("c,x,y\nb,NA,0\na,2,1\n?,3,0\n")
    with open_stream(path, label="y") as stream:
        first = next(stream)
    assert stream.feature_names == ["constant", "c=b", "x=missing", "c=a", "x", "c=missing"]
    np.testing.assert_array_equal(first.X.toarray(), [[1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 1]])


def test_a_constant_column_is_zero_and_missing_is_the_mean(
    table: pl.DataFrame, tmp_path: Path, whole: type[Whole]
) -> None:
    path = tmp_path / "a.csv"
    table.write_csv(path)
    found = whole(open_stream(path, label="late", task="dest"))
    assert not found.column("same").any()
    holes = table["delay"].is_null().to_numpy()
    np.testing.assert_array_equal(found.column("delay=missing"), holes)
    assert not found.column("delay")[holes].any()
    assert found.column("delay")[1_000:].std() == pytest.approx(1, abs=0.1)
    assert f"delay: numeric, scaled by its running mean and standard deviation, {holes.sum()} missing" in (
        found.stream.notes
    )
    assert "never: no value, not used" in found.stream.notes


def test_a_column_without_values_in_the_sample_begins_with_its_first_value(
    table: pl.DataFrame, tmp_path: Path, whole: type[Whole]
) -> None:
    path = tmp_path / "a.csv"
    table.write_csv(path)
    found = whole(open_stream(path, label="late", task="dest", chunk_rows=300))
    assert not found.column("afterwards")[:2_001].any()  # the first value has no variance yet
    assert np.count_nonzero(found.column("afterwards")) == 999
    assert "afterwards=missing" not in found.stream.feature_names


def test_new_json_keys_become_columns(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.ndjson"
    rows = [json.dumps({"x": i, "y": i % 2}) for i in range(1_500)]
    rows += [json.dumps({"x": i, "y": i % 2, "new": f"v{i % 3}", "deep": [1]}) for i in range(100)] + rows[:100]
    path.write_text("\n".join(rows))
    found = whole(open_stream(path, label="y"))
    assert found.stream.feature_names[2:] == [
        "new=v0",
        "deep=[1]",
        "new=v1",
        "new=v2",
        "new=missing",
        "deep=missing",
    ]
    assert found.column("new=missing").sum() == 100
    for chunk_rows in (10, 1_550):
        whole(open_stream(path, label="y", chunk_rows=chunk_rows)).same(found)


@pytest.mark.parametrize("chunk", [1, 64, 500])
def test_beyond_the_limit_values_share_hashed_features(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.files.tables.column_state.LIMIT", 30)
    monkeypatch.setattr("shoal.files.tables.column_state.BUCKETS", 8)
    values = [f"v{i}" for i in np.random.default_rng(3).integers(0, 80, 500)]
    frame = pl.DataFrame({"c": values})
    encoder = StreamEncoder()
    encoder.decide(frame)
    own = list(dict.fromkeys(values))[:30]
    for start in range(0, 500, chunk):
        part = frame.slice(start, chunk)
        X = encoder.encode(encoder.read(part)[0], part.height)
        names = [encoder.feature_names[j] for j in X.indices if j > 0]
        assert names == [f"c={value}" if value in own else f"c#{zlib.crc32(value.encode()) % 8}" for value in part["c"]]
    assert len(encoder.feature_names) <= 1 + 30 + 8
    assert encoder.notes() == ["c: category, 30 values one-hot, the further ones hashed into 8 features"]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_one_value_has_the_slot_that_a_column_of_it_has(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the limit and beyond; -1 for what is not known, in buckets too."""
    monkeypatch.setattr("shoal.files.tables.column_state.LIMIT", 3)
    categories = Categories("c", missing="c=")
    values = [f"v{i}" for i in range(n)]
    learned = categories.encode(pl.Series([*values, None]), learns=True).tolist()
    assert learned == [*range(1, n + 1), 0]
    for asked in (*values, None, "other", "v7", "w"):
        expected = learned[values.index(asked)] if asked in values else -1 if asked else 0
        assert categories.slot_of(asked) == expected
        assert categories.encode(pl.Series([asked], dtype=pl.String), learns=False).tolist() == [expected]
    again = Categories("c", missing="c=")
    again.restore(json.loads(json.dumps(categories.to_dict())))
    assert [again.slot_of(value) for value in values] == learned[:-1]


def test_kinds_may_be_given(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip,size,y\n01,big,0\n02,?,1\n")
    assert whole(open_stream(path, label="y", category=["zip"])).stream.feature_names[1] == "zip=01"
    with pytest.raises(ValueError, match="line 2: column 'size' has 'big'"):
        list(open_stream(path, label="y", numeric=["size"]))


def test_booleans_are_numbers_and_days_have_no_hour(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("b,d,y\nTrue,2024-02-29,0\nfalse,2024-03-02,1\n,2024-03-02T23:10:00+02:00,1\n")
    found = whole(open_stream(path, label="y"))
    assert found.column("b").tolist() == [0.0, -1.0, 0.0]
    assert [name for name in found.stream.feature_names if name.startswith("d")] == [
        "d.weekday=4",
        "d.month=2",
        "d.weekday=6",
        "d.month=3",
        "d.hour=23",
    ]


@pytest.mark.parametrize("cut", [400, 2_100])
def test_saved_and_restored_equals_continued(cut: int, table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    table = pl.concat([table, table.with_columns(pl.col("carrier") + "x")])
    options: dict[str, Any] = {"label": "late", "task": "dest"}
    table.write_csv(tmp_path / "all.csv")
    table.head(1_000 + cut).write_csv(tmp_path / "first.csv")
    table.slice(1_000 + cut).write_parquet(tmp_path / "second.parquet")
    expected = whole(open_stream(tmp_path / "all.csv", **options))
    first = whole(open_stream(tmp_path / "first.csv", **options))
    state = json.loads(json.dumps(first.stream.to_dict(), allow_nan=False))
    second = whole(open_stream(tmp_path / "second.parquet", state=state, **options))
    assert second.stream.feature_names == expected.stream.feature_names
    tail = expected.X[1_000 + cut :]
    np.testing.assert_array_equal(second.X.data, tail.data)
    np.testing.assert_array_equal(second.X.indices, tail.indices)
    assert second.stream.to_dict() == expected.stream.to_dict()
    table.drop("seats").write_csv(tmp_path / "narrow.csv")
    narrow = whole(open_stream(tmp_path / "narrow.csv", state=state, **options)).stream
    assert narrow.unmatched == [f"there is no column 'seats': its values are missing in {len(table):,} rows"]
    with pytest.raises(ValueError, match="there is no column 'seats'"):
        whole(open_stream(tmp_path / "narrow.csv", state=state, strict=True, **options))
    (tmp_path / "a.vw").write_text("1 | a")
    with pytest.raises(ValueError, match="saved state is of table"):
        open_stream(tmp_path / "a.vw", state=state)


@pytest.mark.parametrize("chunk_rows", [1, 50, 10_000])
def test_a_late_column_is_what_its_first_value_is(
    chunk_rows: int, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.files.tables.reader.SAMPLE", 60)
    path = tmp_path / "a.csv"
    rows = [f"{i},,,{i % 2}" for i in range(90)] + ["1,12B,5,0", "2,7,6,1", "3,8,7,0"] + ["4,9,8,1"] * 20
    path.write_text("\n".join(["x,word,number,y", *rows]))
    with open_stream(path, label="y", chunk_rows=chunk_rows) as stream:
        X = whole(stream).X
    assert stream.feature_names[2:] == ["word=12B", "number", "word=7", "word=8", "word=9"]
    assert X[:, 2:4].toarray()[90:92].tolist() == [[1.0, 0.0], [0.0, 1.0]]
