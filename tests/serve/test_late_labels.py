"""Labels by themselves: which rows they complete, and what is said of those that complete none."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest
from tests.serve.material import rows

from shoal.serve.commands import Label
from shoal.serve.contract import LabelReceipt, Refused, Rows
from shoal.serve.late_labels import (
    LAG_SECONDS,
    MOST_LAGS,
    Lags,
    complete,
    first_request,
    new_request,
    parse_id,
    prediction_id,
    requests_of,
    time_of,
)
from shoal.serve.log import Waiting
from shoal.serve.row_codec import pack, pack_one

LATE, OLDEST, ONE, TWO = (f"{second * 1000:012x}" + "0" * 10 for second in (1, 5, 5, 9))
WAITING = {
    ONE: Waiting(ONE, 2, pack(rows([{"user": "a", "size": 1.5, "spam": "?"}, {"user": "b", "size": 2.5}])), b"\0\0"),
    TWO: Waiting(TWO, 1, pack_one({"user": "c", "size": 3.5, "fresh": None}), b"\0"),
    LATE: Waiting(LATE, 1, pack_one({"user": "d"}), b"\0"),
}


def completed(*labels: tuple[str, object]) -> tuple[list[object], LabelReceipt]:
    found = complete(Label(labels, None), WAITING, "spam", OLDEST)
    learned = [] if found.rows is None else found.rows.frame.select("user", "size", "spam").rows()
    return list(learned), found.receipt


def test_each_label_completes_its_own_row() -> None:
    found = complete(Label([(f"{TWO}-0", True), (f"{ONE}-1", "no"), (f"{ONE}-0", 2)], None), WAITING, "spam", OLDEST)
    assert found.rows is not None
    assert found.rows.strings
    assert found.rows.frame.select("user", "size", "spam").rows() == [
        ("c", "3.5", "true"), ("b", "2.5", "no"), ("a", "1.5", "2"),
    ]  # fmt: skip
    assert found.receipt == LabelReceipt(None, 3, [], [], [])
    assert found.predicted == [9.0, 5.0, 5.0]
    assert found.labeled == [WAITING[TWO]._replace(labeled=b"\1"), WAITING[ONE]._replace(labeled=b"\1\1")]
    assert [one.open for one in found.labeled] == [0, 0]
    half = complete(Label([(f"{ONE}-1", "no")], None), WAITING, "spam", OLDEST)
    assert half.labeled == [WAITING[ONE]._replace(labeled=b"\0\1")]


def test_the_row_behind_the_last_is_unknown_and_harms_no_other() -> None:
    assert completed((f"{ONE}-1", "yes"), (f"{ONE}-2", "yes"), (f"{ONE}-3", "yes")) == (
        [("b", "2.5", "yes")],
        LabelReceipt(None, 1, [], [], [f"{ONE}-2", f"{ONE}-3"]),
    )


def test_what_no_prediction_gave_is_unknown_what_is_old_late_and_what_has_its_label_double() -> None:
    unknown = ["", "x", f"{ONE}", f"{ONE}-", f"{ONE}--1", f"{ONE}-x", f"z{ONE[1:]}-0", f"{ONE[1:]}-0", f"{'f' * 22}-0"]
    labels = [(name, "yes") for name in (*unknown, f"{LATE}-0", f"{ONE}-0", f"{ONE}-0")]
    found, receipt = completed(*labels)
    assert receipt == LabelReceipt(None, 1, [f"{LATE}-0"], [f"{ONE}-0"], unknown)
    assert found == [("a", "1.5", "yes")]
    nothing = complete(Label([("x", "yes")], None), WAITING, "spam", OLDEST)
    assert (nothing.rows, nothing.labeled, nothing.predicted) == (None, [], [])
    marked = {ONE: WAITING[ONE]._replace(labeled=b"\1\0")}
    again = complete(Label([(f"{ONE}-0", "yes"), (f"{ONE}-1", "no")], None), marked, "spam", OLDEST)
    assert again.receipt == LabelReceipt(None, 1, [], [f"{ONE}-0"], [])
    assert again.labeled == [WAITING[ONE]._replace(labeled=b"\1\1")]


def test_rows_that_make_no_table_are_sent_apart() -> None:
    typed = Rows(pl.DataFrame({"user": ["e"], "size": [1.0]}), strings=False)
    waiting = {**WAITING, TWO: Waiting(TWO, 1, pack(typed), b"\0")}
    labels = [(f"{ONE}-0", "no"), (f"{TWO}-0", "yes")]
    with pytest.raises(Refused, match="send them apart"):
        complete(Label(labels, None), waiting, "spam", OLDEST)
    assert complete(Label(labels[1:], None), waiting, "spam", OLDEST).receipt.accepted == 1


def test_requests_of_labels() -> None:
    assert requests_of(Label([(f"{ONE}-0", 1), (f"{ONE}-7", 1), ("x", 1), (f"{TWO}-0", 1)], None)) == {ONE, TWO}
    assert requests_of(Label([], None)) == set()


def test_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.serve.late_labels.time", SimpleNamespace(time=lambda: 1234.5678))
    made = {new_request() for _ in range(100)}
    assert len(made) == 100
    for request in made:
        assert len(request) == 22
        assert time_of(request) == 1234.567
        assert first_request(1234.567) <= request < first_request(1234.568)
        assert parse_id(prediction_id(request, 17)) == (request, 17)
    assert parse_id(f"{ONE}-999999999") == (ONE, 999_999_999)
    for wrong in (f"{ONE}-1000000000", f"{ONE}-²", f"{ONE}0-1", f"{ONE}_1", f"{ONE[:-1]}g-1"):
        assert parse_id(wrong) is None
    assert first_request(-1.0) == first_request(0.0) == "0" * 22


def test_the_median_lag_of_the_last_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10_000.0]
    monkeypatch.setattr("shoal.serve.late_labels.time", SimpleNamespace(time=lambda: now[0]))
    lags = Lags()
    assert lags.median() is None
    lags.add([9_990.0, 9_980.0, 11_000.0])  # 10, 20, and one by a clock that is ahead
    assert lags.median() == 10.0
    now[0] += LAG_SECONDS - 0.001
    assert lags.median() == 10.0
    lags.add([now[0] - 500.0])
    now[0] += 0.001
    assert lags.median() == 500.0
    lags.add([now[0] - 1.0] * MOST_LAGS)
    assert lags.median() == 1.0
