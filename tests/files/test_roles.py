"""Columns that are no features: tasks, labels, weights, times, and what is carried along."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.conftest import Whole

from shoal.files import BadRow, ReadOptions, open_stream
from shoal.files.labels import MAX_NUMERIC_CLASSES, SHOWN, Labels
from shoal.files.tables.label_columns import Tasks

ROWS = "shop,country,x,w,when,sold\nA,DE,1,1,2013-01-02,yes\nB,DE,2,0.5,2013-01-01,no\nA,AT,4,3,2013-01-03,yes\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text(ROWS)
    return path


def test_options_are_keywords_or_one_object(path: Path, whole: type[Whole]) -> None:
    options = ReadOptions(task="shop", label="sold", weight="w")
    one = whole(open_stream(path, options))
    one.same(whole(open_stream(path, task="shop", label="sold", weight="w")))
    one.same(whole(open_stream(path, options.changed(label="x"), label="sold")))
    with pytest.raises(TypeError, match="no option 'lables': did you mean 'labels'"):
        open_stream(path, lables="sold")


def test_the_values_of_several_columns_are_one_id(path: Path, whole: type[Whole]) -> None:
    found = whole(open_stream(path, task=["shop", "country"], label="sold"))
    assert found.task.tolist() == ["A,DE", "B,DE", "A,AT"]
    assert not any(name.startswith(("shop", "country")) for name in found.stream.feature_names)
    path.write_text(ROWS.replace("A,AT", "A,"))
    with pytest.raises(BadRow, match="line 4: no task in column 'country'"):
        list(open_stream(path, task=["shop", "country"], label="sold"))
    with pytest.raises(ValueError, match="no column 'land'"):
        open_stream(path, task=["shop", "land"], label="sold")


@given(st.lists(st.tuples(*[st.text('a,"\n', min_size=1, max_size=4)] * 2), min_size=1, max_size=30))
def test_ids_are_lines_of_csv_and_so_never_the_same(pairs: list[tuple[str, str]]) -> None:
    tasks = Tasks(["a", "b"])
    ids, problems = tasks.read(pl.DataFrame(pairs, schema=["a", "b"], orient="row"))
    assert problems == []
    assert [tuple(next(csv.reader(io.StringIO(task, newline="")))) for task in ids] == pairs


def test_weights(path: Path) -> None:
    chunk = next(open_stream(path, label="sold", weight="w"))
    assert chunk.weight.tolist() == [1.0, 0.5, 3.0]
    assert "w" not in open_stream(path, label="sold", weight="w").feature_names
    assert next(open_stream(path, label="sold")).weight is None
    for wrong in ("-1", "", "many", "inf"):
        path.write_text(ROWS.replace("0.5", wrong))
        found = f"weight '{wrong}'" if wrong else "no weight"
        with pytest.raises(BadRow, match=f"line 3: {found} in column 'w', expected a finite number >= 0"):
            list(open_stream(path, label="sold", weight="w"))
    with pytest.raises(ValueError, match="both weight and label"):
        open_stream(path, label="w", weight="w")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
def test_rows_come_in_the_order_of_time(
    ending: str, chunk_rows: int, path: Path, tmp_path: Path, whole: type[Whole]
) -> None:
    table = pl.read_csv(path, try_parse_dates=True)
    table.write_parquet(tmp_path / "a.parquet")
    options: dict[str, Any] = {"label": "sold", "time": "when", "chunk_rows": chunk_rows}
    unit = {"csv": "line 3", "parquet": "row 2"}[ending]
    with pytest.raises(BadRow, match=f"{unit}: when .* is earlier than a row before it"):
        list(open_stream(tmp_path / f"a.{ending}", **options))
    skipping = whole(open_stream(tmp_path / f"a.{ending}", skip_bad=True, **options))
    assert (skipping.X.shape[0], skipping.stream.skipped) == (2, 1)
    table.sort("when").write_csv(tmp_path / "sorted.csv")
    expected = whole(open_stream(tmp_path / "sorted.csv", **options))
    found = whole(open_stream(tmp_path / f"a.{ending}", sort=True, **options))
    found.same(expected)
    assert "when.month=1" in found.stream.feature_names
    state = json.loads(json.dumps(found.stream.to_dict()))
    with pytest.raises(BadRow, match="is earlier"):  # than the last row of the stream that it goes on with
        list(open_stream(path, state=state))
    assert sum(chunk.X.shape[0] for chunk in open_stream(path, state=state, labeled=False)) == 3


def test_times_may_be_numbers_or_have_a_form(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,y\n9,0\n10,1\n9.5,0\n")
    with pytest.raises(BadRow, match=r"line 4: t '9\.5' is earlier"):
        list(open_stream(path, label="y", time="t"))
    path.write_text("t,y\n31/01/2013,0\n01/02/2013,1\n")
    assert len(list(open_stream(path, label="y", time="t", date_format="%d/%m/%Y"))) == 1
    path.write_text("t,y\n02/01/2013,0\n01/02/2013,1\n")
    with pytest.raises(ValueError, match="expected times: numbers, dates as"):
        open_stream(path, label="y", time="t")
    path.write_text("t,y\n1,0\n,1\n")
    with pytest.raises(BadRow, match="line 3: no time in column 't', expected a number"):
        list(open_stream(path, label="y", time="t"))
    with pytest.raises(ValueError, match="sort= needs time="):
        open_stream(path, label="y", sort=True)


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_rows_sorted_on_disk_are_those_sorted_in_memory(
    ending: str, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, n, files = np.random.default_rng(0), 3_000, []
    for k in range(3):
        table = pl.DataFrame({"t": rng.integers(-5, 50, n), "x": rng.normal(size=n), "y": rng.integers(0, 2, n)})
        table = table.with_columns(
            t=pl.when(pl.col("x") > 2.5).then(None).otherwise(pl.col("t") / 8), id=pl.int_range(n)
        )
        files.append(tmp_path / f"{k}.{ending}")
        if ending == "json":  # a key that is missing, or comes late
            rows = [{key: value for key, value in row.items() if value is not None} for row in table.to_dicts()]
            files[-1].write_text("\n".join(json.dumps({**row, f"z{k}": 1.0}) for row in rows))
        else:
            getattr(table, f"write_{ending}")(files[-1])
    options: dict[str, Any] = {"label": "y", "time": "t", "sort": True, "keep": ["id", "t"], "skip_bad": True}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "sorting"))
    expected = whole(open_stream(files, **options))  # without a folder
    (tmp_path / "sorting").mkdir()
    monkeypatch.setattr("shoal.files.tables.table_files.IN_MEMORY", 50_000)
    found = whole(open_stream(files, **options))
    found.same(expected)
    assert found.stream.kept.equals(expected.stream.kept)
    assert found.stream.skipped == expected.stream.skipped > 10
    assert found.stream.bad_rows == expected.stream.bad_rows
    assert not list((tmp_path / "sorting").iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"0.* cannot be sorted on disk: .*No such file"):
        open_stream(files, **options)


def test_columns_are_carried_along_with_good_rows(path: Path) -> None:
    path.write_text(ROWS.replace("B,DE,2", "B,DE,"[:5] + "bad"))
    options: dict[str, Any] = {
        "label": "sold",
        "keep": ["shop", "sold"],
        "numeric": ["x"],
        "chunk_rows": 1,
        "skip_bad": True,
    }
    with open_stream(path, **options) as stream:
        kept = [stream.kept.rows() for _ in stream]
    assert kept == [[("A", "yes")], [("A", "yes")]]
    with pytest.raises(ValueError, match="no column 'id'"):
        open_stream(path, label="sold", keep=["id"])


LABELS: dict[str, tuple[list[str], str, list[Any]]] = {
    "binary": (["yes", "no", "yes"], "binary", ["no", "yes"]),
    "truth": (["true", "False", "TRUE"], "binary", [0.0, 1.0]),
    "digits": (["1", "2", "2"], "binary", [1.0, 2.0]),
    "words": (["a", "b", "c"], "multiclass", ["a", "b", "c"]),
    "grades": (["1", "2", "3"], "multiclass", [1.0, 2.0, 3.0]),
    "mixed": (["1", "2", "x"], "multiclass", ["1", "2", "x"]),
    "real": (["1.5", "2", "3"], "regression", []),
    "many": ([str(i) for i in range(30)], "regression", []),
}


@pytest.mark.parametrize(
    ("name", "ending"),
    [(name, "csv") for name in LABELS] + [(n, e) for n in ("digits", "grades", "real", "many") for e in ("vw", "svm")],
)
def test_the_first_rows_decide_the_kind(name: str, ending: str, tmp_path: Path, whole: type[Whole]) -> None:
    labels, kind, classes = LABELS[name]
    options: dict[str, Any] = {"label": "y"} if ending == "csv" else {}
    row = {"csv": "1,{}\n", "vw": "{} |f a\n", "svm": "{} 1:1\n"}[ending]
    path = tmp_path / f"a.{ending}"
    path.write_text(("x,y\n" if ending == "csv" else "") + "".join(row.format(label) for label in labels))
    found = whole(open_stream(path, kind="auto", **options))
    assert (found.stream.kind, found.stream.classes) == (kind, classes)
    expected = (
        labels
        if isinstance((classes or [0.0])[0], str)
        else [{"true": 1, "false": 0}.get(s.lower(), s) for s in labels]
    )
    assert found.y.tolist() == [
        label if isinstance(label, str) and found.y.dtype.kind == "U" else float(label) for label in expected
    ]


@pytest.mark.parametrize("chunk_rows", [1, 100])
@pytest.mark.parametrize("ending", ["csv", "vw"])
def test_many_labels(chunk_rows: int, ending: str, tmp_path: Path, whole: type[Whole]) -> None:
    labels = np.random.default_rng(0).integers(0, 20, 300)
    path = tmp_path / f"a.{ending}"
    lines = [f"1,{label}" if ending == "csv" else f"{label} |f a" for label in labels]
    path.write_text("\n".join(["x,y", *lines] if ending == "csv" else lines))
    column: dict[str, Any] = {"label": "y"} if ending == "csv" else {}
    stream = open_stream(path, kind="multiclass", chunk_rows=chunk_rows, **column)
    found = whole(stream)
    assert found.y.tolist() == labels.tolist()
    assert stream.classes == list(range(20))
    state = json.loads(json.dumps(stream.to_dict()))
    assert state["labels"]["classes"] == list(dict.fromkeys(labels.tolist()))
    with pytest.raises(BadRow, match=r"label 1?[0-9] is none of those given, expected 0 or 1 or 2"):
        list(open_stream(path, kind="multiclass", labels=[0, 1, 2], **column))
    given = whole(open_stream(path, kind="multiclass", labels=[0, 1, 2], skip_bad=True, **column))
    assert given.y.tolist() == [label for label in labels.tolist() if label < 3]


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
def test_rows_to_be_predicted_have_the_features_that_were_saved(
    ending: str, tmp_path: Path, table: pl.DataFrame, whole: type[Whole]
) -> None:
    table.head(2_000).write_csv(tmp_path / "train.csv")
    trained = whole(open_stream(tmp_path / "train.csv", task="dest", label="late", ignore=["never"]))
    state = json.loads(json.dumps(trained.stream.to_dict()))
    new = table.tail(1_000).with_columns(carrier=pl.col("carrier") + pl.when(pl.col("same") > 0).then(pl.lit("")))
    new = new.with_columns(pl.when(pl.int_range(1_000) < 10).then(pl.lit("NEW")).otherwise("carrier").alias("carrier"))
    new = new.drop("late", "never")
    path = tmp_path / f"new.{ending}"
    writers: dict[str, Callable[[Path], object]] = {
        "csv": new.write_csv, "parquet": new.write_parquet, "ndjson": new.write_ndjson,
    }  # fmt: skip
    writers[ending](path)
    found = [*open_stream(path, state=state, labeled=False, chunk_rows=300)]
    assert {chunk.X.shape[1] for chunk in found} == {trained.X.shape[1]}
    assert all(chunk.y is None for chunk in found)
    assert [task for chunk in found for task in chunk.task] == new["dest"].to_list()
    assert open_stream(path, state=state, labeled=False).to_dict() == trained.stream.to_dict()  # nothing is learned
    delay = trained.stream.feature_names.index("delay")
    seen = table.head(2_000)["delay"].drop_nulls()
    expected = (new["delay"].fill_null(seen.mean()) - seen.mean()) / seen.std(ddof=0)
    np.testing.assert_allclose(np.concatenate([c.X[:, delay].toarray().ravel() for c in found]), expected, atol=1e-9)


def test_rows_without_labels_need_no_state(path: Path) -> None:
    path.write_text(ROWS.replace(",sold", "").replace(",yes", "").replace(",no", ""))
    (chunk,) = open_stream(path, task="shop", labeled=False, label="sold")
    assert (chunk.y, chunk.task.tolist()) == (None, ["A", "B", "A"])
    with pytest.raises(ValueError, match="no column 'sold'"):
        open_stream(path, task="shop", label="sold")


@pytest.mark.parametrize("ending", ["vw", "svm"])
def test_sparse_text_to_be_predicted(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_text({"vw": "1 |f a:2 b\n-1 |f b\n", "svm": "1 1:2 2:1\n-1 2:1\n"}[ending])
    stream = open_stream(path)
    list(stream)
    state = json.loads(json.dumps(stream.to_dict()))
    lines = {"vw": "|f b new\n1 |f a:3\n'tag |f a b\n\n|f x\n", "svm": "2:1 9:1\n1 1:3\n1:1 2:1\n\n7:1\n"}[ending]
    path.write_text(lines)
    for chunk_rows in (1, 100):
        chunks = list(open_stream(path, state=state, labeled=False, chunk_rows=chunk_rows))
        dense = np.concatenate([chunk.X.toarray() for chunk in chunks])
        assert dense.tolist() == [[0, 1], [3, 0], [1, 1], [0, 0]]
        assert all(chunk.y is None for chunk in chunks)


def test_what_was_saved_needs_not_be_said_again(path: Path) -> None:
    first = open_stream(path, task="shop", label="sold", weight="w", ignore=["country"])
    list(first)
    state = json.loads(json.dumps(first.to_dict()))
    path.write_text(ROWS.replace("shop,", "shop,").replace("yes", "no"))
    second = open_stream(path, state=state)
    chunk = next(second)
    assert (chunk.task.tolist(), chunk.weight.tolist()) == (["A", "B", "A"], [1.0, 0.5, 3.0])
    assert second.classes == ["no", "yes"]
    assert not any(name.startswith("country") for name in second.feature_names)
    with pytest.raises(ValueError, match="label='x', but 'sold' in the saved state"):
        open_stream(path, state=state, label="x")


def test_importance_weights_of_vw(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    lines = [f"{1 - 2 * (i % 2)} {'' if i < 5 else i / 4} 'tag|f a{i}:0.5" for i in range(20)]
    path.write_text("\n".join(lines))
    chunks = list(open_stream(path, chunk_rows=5))
    assert chunks[0].weight is None
    assert [w for chunk in chunks[1:] for w in chunk.weight] == [i / 4 for i in range(5, 20)]
    path.write_text("1 2.5 |f a\n-1 x |f a\n1 3 |f b:z\n-1 |f a\n")
    (chunk,) = open_stream(path, skip_bad=True)
    assert chunk.weight.tolist() == [2.5, 1.0]


@pytest.mark.parametrize("n", [MAX_NUMERIC_CLASSES - 1, MAX_NUMERIC_CLASSES, MAX_NUMERIC_CLASSES + 1])
def test_so_many_whole_numbers_are_classes_and_more_are_targets(n: int) -> None:
    labels = Labels("auto")
    labels.decide({str(k): 1 for k in range(n)}, [float(k) for k in range(n)])
    assert (labels.kind, labels.numeric) == ("multiclass" if n <= MAX_NUMERIC_CLASSES else "regression", True)


@pytest.mark.parametrize(("found", "kind"), [({"1": 5}, "binary"), ({"1": 1, "0": 1}, "binary"),
                                             ({"1": 1, "0": 1, "2": 1}, "multiclass"),
                                             ({"1.5": 1, "0": 1, "2": 1}, "regression")])  # fmt: skip
def test_two_labels_are_binary_and_three_are_not(found: dict[str, int], kind: str) -> None:
    labels = Labels("auto")
    labels.decide(found, [float(text) for text in found])
    assert labels.kind == kind


@pytest.mark.parametrize(("odd", "numeric"), [(1, True), (2, False)])
def test_a_tenth_of_the_rows_may_be_no_numbers(odd: int, numeric: bool) -> None:
    labels = Labels("binary")
    labels.decide({"1": 5, "0": 5 - odd, "x": odd}, None)
    assert labels.numeric is numeric


@pytest.mark.parametrize("given", [False, True])
def test_one_class_more_than_there_may_be_is_a_bad_row(given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.files.labels.MAX_CLASSES", 4)
    labels = Labels("multiclass", ["a", "b", "c", "d"] if given else None, as_text=True)
    labels.numeric = False
    assert labels.codes(["a", "b"]) == [0, 1]
    assert labels.codes(["d", "c", "e", "a"] if not given else ["c", "d", "e", "a"]) == [2, 3, -1, 0]
    assert "is none of those given" if given else "is one more than 4" in labels.unexpected("e")
    assert Labels.from_dict(labels.to_dict()).classes == labels.classes


def test_more_labels_than_anybody_asked_for_are_refused_with_their_cost(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,day\n" + "".join(f"{i},day {i // 30}\n" for i in range(1_600)))
    message = r"line 1502: label 'day 50' in column 'day' is one more than 50: .* 50 times as much as one .*multiclass"
    with pytest.raises(BadRow, match=message):
        list(open_stream(path, label="day", kind="auto"))
    asked = open_stream(path, label="day", kind="multiclass")
    list(asked)
    assert len(asked.classes) == 54
    assert sum(len(chunk.y) for chunk in open_stream(path, state=asked.to_dict())) == 1_600


@pytest.mark.parametrize("n", [0, 1, SHOWN, SHOWN + 1])
def test_a_message_shows_the_first_labels(n: int) -> None:
    labels = Labels("multiclass", as_text=True)
    labels.codes([f"c{k}" for k in range(n)])
    shown = [repr(f"c{k}") for k in range(min(n, SHOWN))] + ([f"{n - SHOWN} others"] if n > SHOWN else [])
    assert labels.expected() == (" or ".join(shown) or "a label")


SAVED: dict[str, Any] = {
    "kind": "binary",
    "numeric": True,
    "asked": True,
    "classes": [1, 0],
    "written": ["1", "0"],
    "given": False,
}


@pytest.mark.parametrize(
    "forged",
    [
        {"kind": "ternary"}, {"numeric": 2}, {"numeric": "x", "classes": [], "written": []}, {"classes": ["1", "0"]},
        {"numeric": False}, {"classes": [1]}, {"written": ["1"]}, {"written": ["1", 0]}, {"classes": [1, 1]},
        {"classes": [1, 0, 2], "written": ["1", "0", "2"]}, {"given": 1}, {"classes": [True, 0]}, {"asked": 1},
    ],
    ids=str,
)  # fmt: skip
def test_forged_labels_are_refused(forged: dict[str, Any]) -> None:
    assert Labels.from_dict(SAVED).to_dict() == SAVED
    assert Labels.from_dict({**SAVED, "numeric": None, "classes": [], "written": []}).numeric is None
    with pytest.raises(ValueError, match="damaged"):
        Labels.from_dict({**SAVED, **forged})
