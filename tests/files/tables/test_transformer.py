"""`TableEncoder` as scikit-learn and people with data frames use it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from shoal.files import TableEncoder


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "delay": None if i % 7 == 0 else float(rng.normal()),
            "stops": int(rng.integers(0, 4)),
            "carrier": None if i % 11 == 0 else f"C{rng.integers(0, 5)}",
            "night": bool(i % 3 == 0),
            "when": f"2013-0{1 + i % 9}-10T{i % 24:02}:00:00",
            "remark": f"The flight {i} left at gate {rng.integers(0, 30)} again",
        }
        for i in range(200)
    ]


FRAMES = {
    "polars": pl.DataFrame,
    "pandas": pd.DataFrame,
    "pandas objects": lambda rows: pd.DataFrame(rows).astype({"remark": object, "carrier": "category"}),
    "arrow": pa.Table.from_pylist,
    "pandas dates": lambda rows: pd.DataFrame(rows).assign(when=lambda frame: pd.to_datetime(frame["when"])),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_of_every_kind_give_the_same(kind: str, rows: list[dict[str, Any]]) -> None:
    expected = TableEncoder().fit(rows)
    found = TableEncoder().fit(FRAMES[kind](rows))
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    one, other = expected.transform(rows), found.transform(FRAMES[kind](rows))
    assert (one != other).nnz == 0
    assert one.shape == (200, len(expected.get_feature_names_out()))
    assert "remark: text" in " ".join(found.notes_)


def test_numbers_are_standardized_by_what_fit_saw(rows: list[dict[str, Any]]) -> None:
    encoder = TableEncoder()
    X = encoder.fit_transform(rows)
    names = encoder.get_feature_names_out().tolist()
    stops = X[:, names.index("stops")].toarray().ravel()
    assert stops.mean() == pytest.approx(0, abs=1e-12)
    assert stops.std() == pytest.approx(1)
    assert encoder.feature_names_in_.tolist() == list(rows[0])
    assert encoder.n_features_in_ == 6


@pytest.mark.filterwarnings("ignore:the model does not know column 'unknown'")
def test_transform_changes_nothing_and_leaves_out_what_is_new(rows: list[dict[str, Any]]) -> None:
    encoder = TableEncoder(category=["remark"]).fit(rows[:50])
    before = json.dumps(encoder.to_dict())
    X = encoder.transform([*rows, {"carrier": "never seen", "unknown": 1}, {}])
    assert json.dumps(encoder.to_dict()) == before
    assert X.shape[1] == len(encoder.get_feature_names_out())
    names = encoder.get_feature_names_out()
    missing = [f"{name}=missing" for name in ("carrier", "delay", "remark", "when")]
    assert set(names[X[-1].indices]) - {"constant"} <= set(missing)
    assert "carrier=missing" in names[X[-1].indices]
    assert "carrier=missing" not in names[X[-2].indices]
    assert encoder.transform([]).shape == (0, len(names))


@pytest.mark.parametrize("size", [1, 30, 200])
def test_batches_and_saving_change_nothing(size: int, rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows)
    kinds: dict[str, Any] = {"category": ["carrier"], "text": ["remark"], "date": ["when"], "hash_bits": 10}
    expected, found = TableEncoder(**kinds).fit(frame), TableEncoder(**kinds)
    for piece in frame.iter_slices(size):
        found = TableEncoder.from_dict(json.loads(json.dumps(found.partial_fit(piece).to_dict())))
    if size > 1:  # with one row, a column may be missing at first and begin later
        assert found.to_dict() == expected.to_dict()
        assert found.transform(frame).data.tobytes() == expected.transform(frame).data.tobytes()
    assert clone(found).get_params() == found.get_params()
    assert found.fit(frame).to_dict() == expected.to_dict()  # fit forgets


def test_in_a_pipeline(rows: list[dict[str, Any]]) -> None:
    y = [row["stops"] > 1 for row in rows]
    pipeline = make_pipeline(TableEncoder(ignore=["when"]), LogisticRegression())
    assert pipeline.fit(pd.DataFrame(rows), y).score(rows, y) > 0.9
    names = pipeline[:-1].get_feature_names_out()
    assert not any(name.startswith("when") for name in names)
    assert pipeline[-1].coef_.shape == (1, len(names))


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        ([{"x": 1.0}, {"x": float("inf")}], {}, ValueError, "row 1: column 'x' has inf"),
        ([{"x": "a"}], {"numeric": ["x"]}, ValueError, "row 0: column 'x' has 'a'"),
        ([{"x": 1.0}], {"text": ["z"]}, ValueError, "no column 'z'"),
        ([{"x": [1]}], {}, ValueError, "column 'x' is of type List"),
        ([{"x": 1}], {"text": "x"}, ValueError, "text is 'x', expected a list"),
        ([{"x": 1}], {"hash_bits": 60}, ValueError, "hash_bits=60, expected 1 to 24"),
        ([], {}, ValueError, "no rows"),
        ([{}], {}, ValueError, "the dicts have no keys"),
        (np.ones(2), {}, ValueError, "Expected 2D array"),
        ("x", {}, TypeError, "expected a data frame or a list of dicts"),
        ({"x": 1}, {}, TypeError, "expected a list of dicts"),
    ],
)
def test_what_cannot_be_encoded_is_said(X: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TableEncoder(**options).fit(X)


def test_columns_come_and_go() -> None:
    encoder = TableEncoder(ignore=["id"]).fit(pl.DataFrame({"delay": [1.0, 2.0, None], "stops": [1, 2, 3]}))
    expected = encoder.transform([{"delay": None, "stops": 2}]).toarray().tolist()
    other = pl.DataFrame({"delays": [1.0], "stops": [2], "id": [7]})
    with pytest.warns(UserWarning, match="delay") as caught:
        assert encoder.transform(other).toarray().tolist() == expected
    unknown, absent = (str(one.message) for one in caught)
    assert "does not know column 'delays' (did you mean 'delay'?): it is not used" in unknown
    assert "no column 'delay': its values are taken as missing" in absent
    assert encoder.transform(other).toarray().tolist() == expected  # each is named once
    with pytest.raises(NotFittedError):
        TableEncoder().transform([])
    assert encoder.notes_[-2:] == [
        "the model does not know column 'delays' (did you mean 'delay'?): not used in 2 rows",
        "there is no column 'delay': its values are missing in 2 rows",
    ]
    with pytest.raises(ValueError, match="does not know column 'delays'"):
        encoder.set_params(strict=True).transform(other)


@pytest.mark.filterwarnings("ignore:the model does not know column")
def test_new_columns_are_learned_where_that_is_asked_for() -> None:
    first, later = pl.DataFrame({"a": [1.0, 2.0]}), pl.DataFrame({"a": [3.0], "b": [1.0], "c": [2.0]})
    for n, columns in ((0, ["a"]), (1, ["a", "b"]), (2, ["a", "b", "c"])):
        encoder = TableEncoder(new_columns=n).fit(first).partial_fit(later)
        assert ("does not know column 'c': not used in 1 row" in encoder.notes_[-1]) == (n < 2)
        encoder = TableEncoder.from_dict(encoder.to_dict())
        assert encoder.feature_names_in_.tolist() == columns
        assert encoder.get_feature_names_out().tolist() == ["constant", *columns]
    strict = TableEncoder(strict=True, new_columns=1).fit(first)
    before = strict.to_dict()
    for X, message in (
        (later, "does not know column 'c'"),
        (pl.DataFrame({"b": [1.0]}), "no column 'a'"),
        ([{"a": 1.0, "b": 2.0}, {"a": "x", "b": 2.0}], "row 1: column 'a' has 'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            strict.partial_fit(X)
        assert strict.to_dict() == before


def test_arrays_are_tables_and_nan_is_missing() -> None:
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, np.nan]])
    frame = pd.DataFrame(X, columns=["a", "b"])
    expected = TableEncoder().fit(frame)
    found = TableEncoder().fit(X)
    assert found.feature_names_in_.tolist() == ["0", "1"]
    for encoder, rows in ((found, X), (found, X.tolist()), (expected, X), (expected, frame)):
        assert encoder.transform(rows).toarray().tolist() == expected.transform(frame).toarray().tolist()
    assert found.get_feature_names_out().tolist() == ["constant", "0", "1", "0=missing", "1=missing"]
    assert expected.partial_fit(X).n_features_in_ == 2
