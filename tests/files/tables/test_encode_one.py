"""A single row of plain values gets the features of a frame of one row, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.files.tables.encode_one import OneRow, Unread
from shoal.files.tables.encoder import StreamEncoder

WORDS = st.lists(st.sampled_from(["gate", "late", "Ünïted", "雨", "hi", "hi"]), max_size=6).map(" ".join)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9), st.just("NA")),
        "same": st.just(3),
        "color": st.one_of(st.none(), st.sampled_from(["red", "blue", "", "?", "new"]), st.integers(0, 3)),
        "many": st.integers(0, 3_000).map(lambda i: f"v{i}"),
        "day": st.one_of(st.none(), st.sampled_from(["2013-01-31", "2013-02-01 06:00", "2014-05-05T23:10:00Z"])),
        "text": st.one_of(st.none(), WORDS),
        "unknown": st.integers(),
    },
)


def texts(rows: list[dict[str, object]], names: list[str]) -> pl.DataFrame:
    def text(value: object) -> str | None:
        return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)

    return pl.DataFrame(
        {name: [text(row.get(name)) for row in rows] for name in names},
        schema_overrides=dict.fromkeys(names, pl.String),
    )


@pytest.fixture(scope="module")
def encoder() -> StreamEncoder:
    rng, vocabulary = np.random.default_rng(0), ["gate", "late", "ünïted", "雨", "hi", "you"]
    rows: list[dict[str, object]] = [
        {
            "size": None if i % 7 == 0 else float(rng.normal()), "same": 3,
            "color": None if i % 11 == 0 else ["red", "blue", "0", "1"][i % 4], "many": f"v{i}",
            "day": None if i % 13 == 0 else f"2013-{1 + i % 12:02}-0{1 + i % 9} 0{i % 10}:00",
            "text": None if i % 17 == 0 else " ".join([*rng.choice(vocabulary, 5), str(i)]),
        }
        for i in range(2_000)
    ]  # fmt: skip
    found = StreamEncoder(hash_bits=10)
    frame = texts(rows, list(rows[0]))
    found.decide(frame.head(1_000))
    found.encode(found.read(frame)[0], frame.height)
    return found


@given(ROWS)
def test_a_single_row_is_read_as_a_frame_is(encoder: StreamEncoder, row: dict[str, object]) -> None:
    frame = texts([row], list(row)) if row else pl.DataFrame({"size": [None]}, schema={"size": pl.String})
    expected = encoder.encode(encoder.read(frame, learns=False)[0], 1, learns=False)
    found = encoder.one_row().read(row)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.values, expected.data)


@pytest.mark.parametrize("row", [{"size": "3.5"}, {"size": 1e300}, {"size": [1]}, {"day": "soon"}, {"text": {"a": 1}}])
def test_what_is_unusual_is_left_to_the_frame(encoder: StreamEncoder, row: dict[str, object]) -> None:
    with pytest.raises(Unread):
        encoder.one_row().read(row)


def test_each_row_says_what_it_lacks_and_has_besides(encoder: StreamEncoder) -> None:
    reader = encoder.one_row()
    whole: dict[str, object] = dict.fromkeys(["size", "same", "color", "many", "day", "text"])
    without = {name: None for name in whole if name != "color"}
    assert reader.note(whole) is None
    for _ in range(2):
        lacks = "there is no column 'color': taken as missing"
        assert reader.note(without) == lacks
        assert reader.note({**without, "colour": 1}) == (
            f"the model does not know column 'colour' (did you mean 'color'?): not used; {lacks}"
        )
        assert reader.note({**whole, "late": 1}) == "the model does not know column 'late': not used"


def test_readers_do_not_change_while_the_encoder_learns_on(encoder: StreamEncoder) -> None:
    row = {"size": 0.5, "color": "green", "text": "gate late nobody", "many": "v1", "late": "x"}
    hashed = [{**row, "many": f"w{i}", "day": "2015-05-05 23:10"} for i in range(2_000)]  # more than have their own
    frame = texts([row, *hashed], list(hashed[0]))
    encoder.learn_one(row)
    reader: OneRow = encoder.one_row()
    frozen = encoder.frozen()

    def arrays(X: csr_matrix) -> list[NDArray[Any]]:
        return [X.indptr, X.indices, X.data]

    def read() -> csr_matrix:
        return frozen.encode(frozen.read(frame, learns=False)[0], frame.height, learns=False)

    before, alone = read(), reader.read(row)
    encoder.learn_one({**row, "size": 3.5, "color": "violet"})
    encoder.encode(encoder.read(frame)[0], frame.height)
    np.testing.assert_array_equal(reader.read(row).indices, alone.indices)
    np.testing.assert_array_equal(reader.read(row).values, alone.values)
    for old, new in zip(arrays(before), arrays(read()), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(before[0].indices, alone.indices)
    assert before.shape[1] == read().shape[1] < len(encoder.feature_names)
    assert len(encoder.one_row().read(row).indices) > len(alone.indices)
