"""What is made in a thread comes in order, with its errors, and the thread ends."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream
from shoal.parallel.read_ahead import QUEUE_SIZE, BackgroundIterator


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "shoal reads ahead"]


def numbers(until: int, made: list[int], closed: list[bool]) -> Generator[int, None, None]:
    try:
        for i in range(until):
            made.append(i)
            yield i
        raise KeyError("no more")
    finally:
        closed.append(True)


def test_items_in_order_then_the_error() -> None:
    closed: list[bool] = []
    items = BackgroundIterator(numbers(50, [], closed))
    assert [next(items) for _ in range(50)] == list(range(50))
    with pytest.raises(KeyError, match="no more"):
        next(items)
    assert closed == [True]
    assert list(items) == []
    assert threads() == []


@pytest.mark.parametrize("used", [0, 1, 5])
@pytest.mark.parametrize("how", ["close", "forget"])
def test_the_thread_ends_when_nobody_asks_any_more(used: int, how: str) -> None:
    made: list[int] = []
    closed: list[bool] = []
    items = BackgroundIterator(numbers(10**9, made, closed))
    assert [next(items) for _ in range(used)] == list(range(used))
    if how == "close":
        items.close()
        assert list(items) == []
    else:
        del items
        gc.collect()
    assert closed == [True]
    assert threads() == []
    assert len(made) <= used + 2 * QUEUE_SIZE + 2


def test_no_more_is_made_than_asked_for() -> None:
    made: list[int] = []
    items = BackgroundIterator(numbers(10**9, made, []))
    next(items)
    time.sleep(0.2)
    assert len(made) <= QUEUE_SIZE + 2
    items.close()


def vw(n: int) -> str:
    rng = np.random.default_rng(0)
    rows = zip(rng.choice(["1", "-1"], n), rng.integers(0, 3 * n, (n, 3)).tolist(), strict=True)
    return "".join(f"{y} |t {t} |f a{i}:{j / 7} b{j}\n" for y, (t, i, j) in rows)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_stream_is_the_same_with_and_without_a_thread(
    ends: str, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.vw"
    path.write_text(vw(9_000).replace("\n", ends), newline="")
    options: dict[str, Any] = {"task": "t", "chunk_rows": 1_000}
    stream = open_stream(path, **options)
    ahead: list[Any] = []
    for chunk in stream:
        assert threads() or len(ahead) >= 9 - QUEUE_SIZE - 1
        # What the stream says belongs to this chunk, not to those that are being read.
        assert len(stream.feature_names) == chunk.X.shape[1] == len(stream.to_dict()["reader"]["names"])
        ahead.append(chunk)
    assert threads() == []
    assert ahead[0].X.shape[1] < ahead[-1].X.shape[1]
    monkeypatch.setattr("shoal.parallel.read_ahead.MIN_ROWS_FOR_THREAD", 10**9)
    for one, other in zip(ahead, open_stream(path, **options), strict=True):
        assert one.X.shape == other.X.shape
        assert one.X.data.tobytes() == other.X.data.tobytes()
        assert one.X.indices.tobytes() == other.X.indices.tobytes()
        assert (one.y.tolist(), one.task.tolist()) == (other.y.tolist(), other.task.tolist())


def test_errors_come_behind_the_chunks_before_them(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text(vw(5_500) + "what is this\n" + vw(5_000))
    stream = open_stream(path, task="t", chunk_rows=1_000)
    with pytest.raises(BadRow, match="line 5501: no"):
        list(stream)
    assert stream.n_rows == 5_000
    skipping = open_stream(path, task="t", chunk_rows=1_000, skip_bad=True)
    skipped = [skipping.skipped for _ in skipping]
    assert skipped == [0] * 5 + [1] * 6
    assert threads() == []


def test_a_stream_that_is_given_up_leaves_no_thread(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text(vw(20_000))
    with open_stream(path, task="t", chunk_rows=1_000) as stream:
        next(stream)
    assert threads() == []
    stream = open_stream(path, task="t", chunk_rows=1_000)
    next(stream)
    source = stream._sources
    assert source is not None
    del stream
    gc.collect()
    assert threads() == []
    source.close()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.ndjson"])
def test_tables_are_the_same_with_and_without_a_thread(
    name: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    writers: dict[str, Callable[[Path], object]] = {
        "csv": table.write_csv, "parquet": table.write_parquet, "ndjson": table.write_ndjson,
    }  # fmt: skip
    writers[path.suffix[1:]](path)
    options: dict[str, Any] = {"task": "dest", "label": "late", "chunk_rows": 1_000}
    ahead = whole(open_stream(path, **options))
    assert threads() == []
    monkeypatch.setattr("shoal.parallel.read_ahead.MIN_ROWS_FOR_THREAD", 10**9)
    whole(open_stream(path, **options)).same(ahead)


def test_chunks_of_a_table_made_ahead_are_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {"x": rng.normal(size=9_000), "c": rng.choice(["a", "b", "c"], 9_000), "t": rng.choice(["u", "v"], 9_000)}
    ).with_columns(y=pl.Series(rng.integers(0, 2, 9_000)))
    table.write_parquet(tmp_path / "a.parquet")
    streams = [
        open_stream(tmp_path / "a.parquet", task="t", label="y", chunk_rows=2_000, read_ahead=ahead)
        for ahead in (False, True)
    ]
    for one, other in zip(*streams, strict=True):
        assert (one.X != other.X).nnz == 0
        np.testing.assert_array_equal(one.y, other.y)
        np.testing.assert_array_equal(one.task, other.task)
    assert streams[0].to_dict() == streams[1].to_dict()
    assert streams[0].notes == streams[1].notes


def test_a_bad_row_ahead_comes_after_the_chunks_before_it(tmp_path: Path) -> None:
    lines = [f"{i % 7},{i % 2}" for i in range(5_000)]
    lines[4_500] = "nonsense,1"
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "\n".join(lines) + "\n")
    stream = open_stream(path, label="y", chunk_rows=1_000, read_ahead=True)
    with pytest.raises(BadRow, match="line 4502"):
        list(stream)
    assert stream.n_rows == 4_000
