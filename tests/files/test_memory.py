"""Files may be larger than memory: an endless one is read a block at a time."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.files import open_stream

BLOCK = 1 << 16


class Endless:
    """Standard input that never ends: a header, then the same block of rows for ever."""

    def __init__(self, header: str, row: str) -> None:
        self.given = 0
        self._rows = row.encode() * (BLOCK // len(row.encode()))
        self._next = header.encode()

    def read1(self, size: int) -> bytes:
        block, self._next = self._next or self._rows, b""
        self.given += len(block)
        return block


ENDLESS = {
    "csv": ("x,c,late,t\n", "1.5,blue,1,u\n"),
    "ndjson": ("", json.dumps({"x": 1.5, "c": "blue", "late": 1, "t": "u"}) + "\n"),
    "libsvm": ("", "1 qid:u 1:1.5 9:1\n"),
    "vw": ("", "1 |t u |f x:1.5 c=blue\n"),
}


@pytest.mark.parametrize("format", ENDLESS)
def test_no_more_than_a_few_blocks_are_held(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.files.source.BLOCK", BLOCK)
    header, row = ENDLESS[format]
    endless = Endless(header, row)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
    columns: dict[str, Any] = {"label": "late", "task": "t"} if format in ("csv", "ndjson") else {}
    stream = open_stream("-", format=format, chunk_rows=2_000, **columns)
    for _ in itertools.islice(stream, 5):
        pass
    tracemalloc.start()
    held = []
    for _ in itertools.islice(stream, 15):
        held.append(tracemalloc.get_traced_memory()[0])
        assert endless.given - stream.n_rows * len(row.encode()) <= 2 * BLOCK  # what was read and not given yet
    tracemalloc.stop()
    assert max(held[10:]) < max(held[:5]) + BLOCK
    assert endless.given > 5 * BLOCK


@pytest.mark.parametrize(
    ("format", "before", "words"),
    [
        ("csv", "", "line 1: longer than"), ("csv", "x,late\n1,", "line 2: longer than"),
        ("ndjson", "", "a line of more than"), ("libsvm", "", "a line of more than"),
    ],
    ids=["names of columns", "csv", "ndjson", "libsvm"],
)  # fmt: skip
def test_a_line_that_never_ends_is_named(format: str, before: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few packed bytes may be gigabytes of it."""
    monkeypatch.setattr("shoal.files.source.BLOCK", BLOCK)
    monkeypatch.setattr("shoal.files.source.LONGEST_LINE", 8 * BLOCK)
    monkeypatch.setattr("shoal.files.tables.csv.LONGEST_RECORD", 8 * BLOCK)
    endless = Endless(before, "a")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
    columns: dict[str, Any] = {} if format == "libsvm" else {"label": "late"}
    with pytest.raises(ValueError, match=words):
        list(open_stream("-", format=format, **columns))
    assert endless.given < 12 * BLOCK


def test_a_long_name_of_a_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x," + "y" * 200_000 + "\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.csv: the names of the columns cannot be read"):
        open_stream(path, label="x")


SORT_IN_LITTLE_MEMORY = """
import resource, sys
from shoal.files import open_stream
from shoal.files.tables import table_files
table_files.IN_MEMORY = 1 << 24
resource.setrlimit(resource.RLIMIT_DATA, (1300 << 20,) * 2)
n = 0
for chunk in (stream := open_stream(sys.argv[1], label="y", time="t", sort=True, keep=["t"])):
    assert stream.kept["t"].to_list() == list(range(n, n := n + chunk.X.shape[0]))
print(n)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit counts other things elsewhere")
def test_rows_are_sorted_on_disk_where_memory_does_not_hold_them(tmp_path: Path) -> None:
    """2 million rows of 22 columns. Sorting them in memory takes 1,700 MB, this 950 MB; the libraries take 350 MB."""
    n = 2_000_000
    t = np.random.default_rng(0).permutation(n)
    same = {f"x{j}": np.full(n, j + 0.5) for j in range(20)}  # packs well
    pl.DataFrame({"t": t, "y": t % 2, **same}).write_parquet(tmp_path / "a.parquet")
    run = subprocess.run(
        [sys.executable, "-c", SORT_IN_LITTLE_MEMORY, tmp_path / "a.parquet"],
        env=os.environ | {"POLARS_MAX_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout.strip()) == (0, f"{n}"), run.stderr
