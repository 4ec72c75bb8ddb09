"""JSON arrays are read as the same objects on lines of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream
from shoal.files.tables.json import cut_array

OPTIONS: dict[str, Any] = {"task": "dest", "label": "late"}


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_objects_is_a_table(
    indent: int | None, table: pl.DataFrame, tmp_path: Path, whole: type[Whole]
) -> None:
    table.write_ndjson(tmp_path / "lines.json")
    expected = whole(open_stream(tmp_path / "lines.json", **OPTIONS))
    path = tmp_path / "array.json"
    path.write_text(json.dumps(table.with_columns(pl.selectors.temporal().cast(pl.String)).to_dicts(), indent=indent))
    whole(open_stream(path, **OPTIONS)).same(expected)


def test_arrays_are_cut_the_same_wherever_their_blocks_end() -> None:
    values = [{"a": 'é, ]"\\'}, [1, 2], 12, {"b": {"c": [None]}}, "x"]
    text = (" [\n" + ",\n".join(map(json.dumps, values)) + " ]\n").encode()
    for size in range(1, len(text)):
        blocks = [text[i : i + size] for i in range(0, len(text), size)]
        found = [one for block in cut_array("a.json", blocks) for one in block]
        assert [json.loads(one) for _, one in found] == values
        assert [line for line, _ in found] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"x": 1, "y": 0},\n{"x": 1', "line 2: damaged .*delimiter"),
        ('[{"x": 1, "y": 0}\n{"x": 1}]', "line 2: damaged .*'{' found, expected , or ]"),
        ('[{"x": 1, "y": 0}]\n[]', "line 2: damaged .*text follows its end"),
        ('[{"x": 1, "y": 0},\n', "line 1: damaged .*it breaks off"),
        ("[]", "is empty"),
    ],
)
def test_an_array_that_breaks_off_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        list(open_stream(path, label="y"))


def test_values_of_an_array_that_are_no_objects_are_bad_rows(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"x": 1, "y": 0},\n{"x": 2, "y": 1},\n 7]')
    with pytest.raises(BadRow, match="line 3: a JSON int, expected a JSON object"):
        list(open_stream(path, label="y"))
    assert whole(open_stream(path, label="y", skip_bad=True)).y.tolist() == [0.0, 1.0]
