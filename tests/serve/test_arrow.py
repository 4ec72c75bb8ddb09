"""Arrow bodies that would become much more than they are must not be read; all others are."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Literal

import polars as pl
import pyarrow as pa
import pytest

from shoal.serve.contract import Refused
from shoal.serve.http.arrow import read
from shoal.serve.http.problems import HttpProblem

TABLE = pl.DataFrame({"user": ["u1", "u2"] * 500, "size": [1.0, 2.5] * 500})
MOST = 100_000


def of_polars(frame: pl.DataFrame, compression: Literal["uncompressed", "lz4", "zstd"] = "uncompressed") -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compression=compression)
    return buffer.getvalue()


def of_pyarrow(compression: str | None, *, legacy: bool = False) -> bytes:
    """With a dictionary, in several batches."""
    users = pa.array(TABLE["user"].to_list()).dictionary_encode()
    table = pa.table({"user": users, "size": TABLE["size"].to_list()})
    buffer = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_legacy_format=legacy)
    with pa.ipc.new_stream(buffer, table.schema, options=options) as stream:
        stream.write_table(table, max_chunksize=300)
    return buffer.getvalue()


@pytest.mark.parametrize("body", [of_polars(TABLE), of_pyarrow(None), of_pyarrow(None, legacy=True)])
def test_plain_streams_are_read(body: bytes) -> None:
    assert read(body, MOST).with_columns(pl.col("user").cast(pl.String)).equals(TABLE)


@pytest.mark.parametrize(
    "body", [of_polars(TABLE, "lz4"), of_polars(TABLE, "zstd"), of_pyarrow("lz4"), of_pyarrow("zstd")]
)
def test_compressed_streams_are_refused(body: bytes) -> None:
    with pytest.raises(HttpProblem, match="compressed") as raised:
        read(body, MOST)
    assert raised.value.status == 415


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (pa.table([[1], [2]], names=["size", "size"]), "two columns are called 'size'"),
        (pa.table({"size": pa.RunEndEncodedArray.from_arrays([2], [1.0])}), "'size' is of type RunEndEncoded"),
    ],
)
def test_columns_at_which_polars_panics_are_named(
    table: pa.Table, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """They cost no line of the log."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(Refused, match=sentence):
        read(buffer.getvalue(), MOST)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["a" * 1_000])])
def test_many_rows_of_one_long_text_are_refused(kind: pl.DataType) -> None:
    frame = pl.DataFrame({"x": pl.Series(["a" * 1_000]).cast(kind)}).select(pl.col("x").gather([0] * 1_000))
    body = of_polars(frame)
    assert len(body) < MOST
    with pytest.raises(HttpProblem, match="bytes of text") as raised:
        read(body, MOST)
    assert raised.value.status == 413


def test_any_bytes_are_read_or_refused() -> None:
    """Each byte of the metadata in turn is another one."""
    body = of_pyarrow(None)
    for at in range(0, len(body), 7):
        for value in (0, 127, 255):
            with suppress(HttpProblem, Refused):
                read(body[:at] + bytes([value]) + body[at + 1 :], MOST)
