"""Tables that somebody else has read are a stream as a file of theirs is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.serve.material import records

from shoal.files import BadRow, open_stream, open_tables

ROWS = records(300, late_columns=False)
FRAME = pl.DataFrame(ROWS)
OPTIONS: dict[str, Any] = {"task": "user", "label": "spam", "hash_bits": 6, "keep": ["day"]}


def everything(stream: Any) -> tuple[np.ndarray, list[str], list[str], list[str]]:
    X, y, task, days = [], [], [], []
    with stream:
        for chunk in stream:
            X.append(chunk.X.toarray())
            y += chunk.y.tolist()
            task += chunk.task.tolist()
            days += stream.kept["day"].to_list()
    width = X[-1].shape[1]
    return np.vstack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in X]), y, task, days


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow", "dicts"])
def test_tables_of_any_library_are_read_like_a_file(kind: str, tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "rows.parquet")
    X, *others = everything(open_stream(tmp_path / "rows.parquet", **OPTIONS))
    parts = [FRAME[a:b] for a, b in ((0, 7), (7, 7), (7, 200), (200, 300))]
    as_kind: dict[str, Any] = {
        "polars": lambda part: part, "pandas": lambda part: part.to_pandas(),
        "arrow": lambda part: part.to_arrow(), "dicts": lambda part: part.to_dicts(),
    }  # fmt: skip
    tables = [as_kind[kind](part) for part in parts if kind in ("polars", "arrow") or part.height]
    again, *other = everything(open_tables(iter(tables), **OPTIONS, read_ahead=kind == "arrow"))
    np.testing.assert_array_equal(again, X)
    assert other == others


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="there are no tables to read"):
        open_tables([], **OPTIONS)
    with pytest.raises(ValueError, match="table 2 has no column 'spam'"):
        everything(open_tables([FRAME, FRAME.drop("spam")], **OPTIONS))
    with pytest.raises(ValueError, match="table 2: column 'size' is of type String, but Float64 in the first"):
        everything(open_tables([FRAME, FRAME.with_columns(pl.col("size").cast(pl.String))], **OPTIONS))
    with pytest.raises(TypeError, match="X is of type Series, expected a data frame"):
        open_tables(FRAME, **OPTIONS)
    with pytest.raises(ValueError, match="format='csv' is for files"):
        open_tables([FRAME], format="csv", **OPTIONS)
    bad = FRAME.with_columns(spam=pl.when(pl.int_range(300) == 250).then(None).otherwise("spam"))
    with pytest.raises(BadRow, match="row 251"):
        everything(open_tables([bad[:200], bad[200:]], **OPTIONS))
