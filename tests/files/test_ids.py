"""Labels and task ids are what was written, and the same in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.files.conftest import Whole

from shoal import MultiClass, MultitaskPerceptron
from shoal.files import BadRow, open_stream, open_tables
from shoal.files.ids import LARGEST_EXACT, id_of, ids
from shoal.files.labels import as_typed, whole_number

BIG = 2**53
NUMBERS = [3.0, -0.0, 2.5, 1e-7, 0.1, float(BIG), 1e16, 1e20, 1e22, -7.0, 123456789.5, 1e300]


@pytest.mark.parametrize("kind", [pl.Float64, pl.Float32, pl.Int64, pl.Decimal(38, 4), pl.Boolean, pl.String])
def test_a_column_has_the_ids_of_its_values(kind: Any) -> None:
    of_kinds: dict[Any, list[Any]] = {
        pl.Float64: [*NUMBERS, None], pl.Float32: [3.0, 0.1, 2.5, -0.0, 2.0**60, None], pl.Int64: [3, BIG + 1, None],
        pl.Boolean: [True, False, None], pl.String: ["07", "3.0", None],
    }  # fmt: skip
    values = of_kinds.get(kind, [1.0, 2.5, 10.0, 0.0, None])
    column = pl.Series(values, dtype=kind, strict=False)
    single = [float(str(np.float32(v))) if kind == pl.Float32 and v is not None and v < 1e10 else v for v in values]
    assert ids(column).to_list() == [id_of(value) for value in single]
    assert ids(pl.Series([1.0, float("nan"), None, 2.0])).to_list() == ["1", None, None, "2"]


def write(folder: Path, ending: str, rows: list[dict[str, Any]]) -> Path:
    """The rows as a file; in sparse text their only feature is called 1 or x."""
    path, frame = folder / f"a.{ending}", pl.DataFrame(rows, infer_schema_length=None, strict=False)
    if ending == "csv":
        frame.write_csv(path)
    elif ending == "ndjson":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif ending == "json":
        path.write_text(json.dumps(rows))
    elif ending == "parquet":
        frame.write_parquet(path)
    elif ending == "arrow":
        frame.write_ipc(path)
    elif ending == "libsvm":
        path.write_text("\n".join(f"{row['y']} qid:{row['t']} 1:{row['x']}" for row in rows))
    else:
        path.write_text("\n".join(f"{row['y']} |t {row['t']} |f x:{row['x']}" for row in rows))
    return path


ENDINGS = ["csv", "ndjson", "json", "parquet", "arrow", "libsvm", "vw"]
OF_TABLES: dict[str, Any] = {"task": "t", "label": "y"}


def options_of(ending: str) -> dict[str, Any]:
    return {"libsvm": {}, "vw": {"task": "t"}}.get(ending, OF_TABLES)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("labels", [[BIG, BIG + 1, BIG - 1], [2**62 + 1, 2**62], [2**63, 2**63 + 1, 7]])
def test_large_whole_numbers_stay_apart(ending: str, labels: list[int], tmp_path: Path, whole: type[Whole]) -> None:
    rows = [{"t": "u", "x": float(i), "y": label} for i, label in enumerate(labels * 3)]
    found = whole(open_stream(write(tmp_path, ending, rows), kind="multiclass", **options_of(ending)))
    kind: Callable[[Any], Any] = int if max(labels) < 2**63 else str  # more than 64 bits hold is text
    assert found.y.tolist() == [kind(row["y"]) for row in rows]
    assert found.stream.classes == sorted(set(found.y.tolist()), key=int)
    model = MultiClass(MultitaskPerceptron()).fit(found.X, found.y, found.task)
    assert model.classes_.tolist() == sorted(set(found.y.tolist()))


CODES: dict[tuple[str, ...], list[Any]] = {  # labels as a text file has them: the classes, what is predicted then
    ("01234", "1234", "94110"): ["01234", "1234", "94110"],
    ("1", "01", "1e3", "1000"): ["01", "1", "1000", "1e3"],
    ("1.1", "1.10", "1.2"): ["1.1", "1.10", "1.2"],
    ("0", "1", "2"): [0, 1, 2],
    ("0.0", "1.0", "2.0"): [0.0, 1.0, 2.0],
    ("-1", "+1", "0"): ["-1", "0", "+1"],
    ("2013-01-31", "2013-02-01", "x"): ["2013-01-31", "2013-02-01", "x"],
    ("True", "False"): ["False", "True"],
    ("true", "false"): [False, True],
    ("0.5", "10.5", "2.5"): ["0.5", "2.5", "10.5"],
    ("-0", "x"): ["-0", "x"],
}


@pytest.mark.parametrize("labels", CODES)
@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_text_that_is_no_plain_number_stays_text(labels: tuple[str, ...], ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    rows = [f"u,{i},{label}" if ending == "csv" else json.dumps({"t": "u", "x": i, "y": label})
            for i, label in enumerate(labels * 2)]  # fmt: skip
    path.write_text("\n".join(["t,x,y", *rows] if ending == "csv" else rows))
    stream = open_stream(path, kind="multiclass", **OF_TABLES)
    found = stream.as_written(np.concatenate([chunk.y for chunk in stream]).tolist())
    assert stream.as_written(stream.classes) == CODES[labels]
    assert [*map(type, stream.as_written(stream.classes))] == [*map(type, CODES[labels])]
    assert len(set(found)) == len(labels)
    again = open_stream(path, state=json.loads(json.dumps(stream.to_dict())))
    assert again.as_written(stream.classes) == CODES[labels]


def test_codes_in_a_file_are_classes_and_prices_are_targets(tmp_path: Path) -> None:
    for form, kind in (("{:05.0f}", "multiclass"), ("{:.2f}", "regression")):
        path = tmp_path / "a.csv"
        path.write_text("\n".join(["x,y", *(f"{i},{form.format(float(i))}" for i in range(50))]))
        assert open_stream(path, label="y", kind="auto").kind == kind


def test_a_code_that_comes_late_is_not_merged(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["x,y", *(f"{i},{i % 3}" for i in range(1_200)), "7,01"]))
    with pytest.raises(
        BadRow, match=r"line 1202: label '01' in column 'y', expected a whole number \(category=\['y'\]"
    ):
        list(open_stream(path, label="y", kind="multiclass"))
    stream = open_stream(path, label="y", kind="multiclass", category=["y"])
    list(stream)
    assert sorted(stream.classes) == ["0", "01", "1", "2"]
    with pytest.raises(BadRow, match="label '01' in column 'y', expected 0 or 1 or 2"):
        list(open_stream(path, label="y", kind="auto", labels=[0, 1, 2]))
    assert open_stream(path, label="y", kind="auto", labels=["0", "01", "1", "2"]).classes == ["0", "01", "1", "2"]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_typed_columns_with_a_gap_have_the_ids_of_their_integers(missing: Any, tmp_path: Path) -> None:
    text, typed = tmp_path / "a.csv", tmp_path / "a.parquet"
    text.write_text("t,z,x,y\n1,07,1,0\n2,8,2,1\n1,7,3,1\n")
    pd.DataFrame({"t": [1, 2, missing, 1], "z": [7, 8, 9, 7], "x": [1.0, 2, 9, 3], "y": [0, 1, missing, 1]}).to_parquet(
        typed
    )
    first = open_stream(text, category=["z"], **OF_TABLES)
    assert [chunk.task.tolist() for chunk in first] == [["1", "2", "1"]]
    then = open_stream(typed, state=first.to_dict(), skip_bad=True)
    [chunk] = then
    assert (chunk.task.tolist(), chunk.y.tolist(), then.skipped) == (["1", "2", "1"], [0, 1, 1], 1)
    assert then.feature_names == first.feature_names  # 7.0 is the category 7
    frame = pd.DataFrame(
        {"t": pd.array([BIG + 1, None, 3], "Int64"), "y": pd.array([1, 0, BIG + 1], "Int64"), "x": 1.0}
    )
    [chunk] = open_tables([frame.dropna()], kind="multiclass", **OF_TABLES)
    assert (chunk.task.tolist(), chunk.y.tolist()) == ([str(BIG + 1), "3"], [1, BIG + 1])


TASKS = st.one_of(st.integers(-9, 9), st.sampled_from([BIG + 1, 2**62 + 1]), st.just(0))
SEVERAL = st.sampled_from([[0, 1], [-1, 1], [0, 1, 2], [BIG, BIG + 1], [5, -(2**62), 2**62 + 1]])


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows with whole tasks and labels, all labels in them."""
    labels = draw(SEVERAL)
    rows = draw(st.lists(st.tuples(TASKS, st.integers(-8, 8), st.sampled_from(labels)), min_size=2, max_size=12))
    rows += [(0, 1, label) for label in labels]
    return [{"t": t, "x": x / 4, "y": y} for t, x, y in rows]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
@example([{"t": t, "x": x, "y": y} for t, x, y in [(3, 1.0, BIG), (BIG + 1, 0.5, BIG + 1), (3, -2.0, BIG + 1)]])
def test_one_table_is_the_same_in_every_format(tmp_path: Path, whole: type[Whole], rows: list[dict[str, Any]]) -> None:
    """The same tasks, the same classes, bit-equal forecasts."""
    expected: dict[bool, Any] = {}
    floats = [{**row, "t": float(row["t"]) or -0.0} if abs(row["t"]) < BIG else row for row in rows]
    sources: list[tuple[str, list[dict[str, Any]]]] = [(ending, rows) for ending in ENDINGS]
    sources += [("parquet", floats), ("ndjson", floats), ("json", floats)]
    for ending, table in sources:
        if ending == "parquet" and table is floats and any(abs(row["t"]) >= BIG for row in rows):
            continue  # floats do not hold these
        found = whole(open_stream(write(tmp_path, ending, table), kind="multiclass", **options_of(ending)))
        assert found.y.tolist() == [row["y"] for row in rows]
        assert found.task.tolist() == [str(row["t"]) for row in rows]
        model = MultiClass(MultitaskPerceptron()).fit(found.X, found.y, found.task)
        said = (model.tasks_, model.classes_.tolist(), model.decision_function(found.X, found.task).tobytes())
        assert expected.setdefault(ending in ("libsvm", "vw"), said) == said, ending


def test_ids_and_numbers_at_their_limits() -> None:
    """Floats beyond 128 bits are written out, too; whole numbers are labels up to 64 bits."""
    floats = [np.nextafter(LARGEST_EXACT, 0.0), LARGEST_EXACT, np.nextafter(LARGEST_EXACT, np.inf), -LARGEST_EXACT]
    assert ids(pl.Series([*floats, 1.5])).to_list() == [*(str(int(value)) for value in floats), "1.5"]
    assert ids(pl.Series(floats)).to_list() == [str(int(value)) for value in floats]
    for number in (2**63 - 1, -(2**63)):
        assert whole_number(str(number)) == whole_number(f"{number}.0") == number
        assert whole_number(str(number + (1 if number > 0 else -1))) is None
    assert [whole_number(text, ",") for text in ("1,0", "1.0", "7")] == [1, None, 7]
    for value in (BIG, BIG + 1, float(BIG), 1e22):
        assert as_typed(str(value)) == (value if "e" not in str(value) else str(value))
    assert as_typed(f"{BIG + 1}.0") == f"{BIG + 1}.0"  # no float


def test_ids_of_floats_by_hand() -> None:
    """As in JSON and Python, without an exponent and without a point that nothing follows."""
    expected = {
        1e-7: "0.0000001", 2.5e-300: f"0.{'0' * 299}25", 0.1: "0.1", 1e22: "1" + "0" * 22, -2.0: "-2",
        1 / 3: repr(1 / 3), 123456789.5: "123456789.5",
    }  # fmt: skip
    assert {value: id_of(value) for value in expected} == expected
    assert dict(zip(expected, ids(pl.Series([*expected])).to_list(), strict=True)) == expected
    assert [id_of(value) for value in (float("inf"), float("nan"), np.float64(3.0))] == ["inf", "nan", "3"]
