"""Files may be larger than memory: an endless one is read a block at a time."""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc
from types import SimpleNamespace
from typing import Any

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
