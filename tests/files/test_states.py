"""A saved state that is damaged or forged is refused, or at least harmless: model files come from strangers."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from shoal.files import TableEncoder, open_stream
from shoal.files.sparse_text import _check
from shoal.files.sparse_text.libsvm import LARGEST_INDEX

FORGED: list[Any] = [None, -7, 2**40, 1.5, "x", [], {}, [0, 0], True]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of a JSON value, the first few of each list and dict."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 2)):
            yield from leaves(value[i], (*path, i))


def forged(state: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], object, dict[str, Any]]]:
    """States with one part of another kind, emptied, or left out."""
    for path in list(leaves(state)):
        for other in (*FORGED, ...):
            made = copy.deepcopy(state)
            part = made
            for key in path[:-1]:
                part = part[key]
            if other is ...:
                del part[path[-1]]
            else:
                part[path[-1]] = other
            yield path, other, made


def write(path: Path) -> Path:
    if path.suffix == ".csv":
        texts = [f"flight {i % 9} was {i} late" for i in range(30)]
        whens = [f"2013-01-{1 + i % 28:02}" for i in range(30)]
        table = pl.DataFrame({"x": range(30), "c": ["a", "b"] * 15, "text": texts, "when": whens, "y": [0, 1] * 15})
        table.write_csv(path)
    else:
        line = {".vw": "1 |f a b\n-1 |f c\n", ".svm": "1 1:1\n-1 3:1\n"}[path.suffix]
        path.write_text(line)
    return path


@pytest.mark.parametrize("ending", ["csv", "vw", "svm"])
def test_a_forged_state_is_refused_or_harmless(ending: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{ending}")
    options: dict[str, Any] = {"label": "y", "hash_bits": 4} if ending == "csv" else {}
    stream = open_stream(path, **options)
    list(stream)
    state = json.loads(json.dumps(stream.to_dict()))
    refused = 0
    for where, _, made in forged(state):
        try:
            for labeled in (True, False):
                opened = open_stream(path, state=made, labeled=labeled)
                for chunk in opened:
                    assert chunk.X.shape[1] == len(opened.feature_names), where
                    assert not chunk.X.nnz or 0 <= chunk.X.indices.min() <= chunk.X.indices.max() < chunk.X.shape[1], (
                        where
                    )
        except ValueError:
            refused += 1
    assert refused > 30


def test_a_forged_encoder_is_refused_or_harmless() -> None:
    rows = [{"x": float(i), "c": "ab"[i % 2], "text": f"flight {i} was late"} for i in range(20)]
    state = json.loads(json.dumps(TableEncoder(hash_bits=3).fit(rows).to_dict()))["encoder"]
    for where, _, made in forged(state):
        try:
            encoder = TableEncoder.from_dict({"parameters": {}, "encoder": made})
            X = encoder.transform(rows)
        except ValueError:
            continue
        assert X.shape[1] == len(encoder.get_feature_names_out()), where
        assert X.indices.max() < X.shape[1], where


@pytest.mark.parametrize(("width", "zero"), [(0, None), (2, None), (2, 0), (2, 1), (LARGEST_INDEX, LARGEST_INDEX - 1)])
def test_feature_0_has_a_column_of_the_model_or_none(width: int, zero: int | None) -> None:
    _check("libsvm", {"width": width, "zero": zero})


@pytest.mark.parametrize(
    ("width", "zero", "what"),
    [
        (2, 2, "column of feature 0"), (2, -1, "column of feature 0"), (2, True, "column of feature 0"),
        (0, 0, "column of feature 0"), (-1, None, "width"), (LARGEST_INDEX + 1, None, "width"), (True, None, "width"),
    ],
)  # fmt: skip
def test_no_other_column_may_be_that_of_feature_0(width: Any, zero: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        _check("libsvm", {"width": width, "zero": zero})


def test_two_features_of_one_name_are_refused() -> None:
    _check("vw", {"names": ["f^a", "f^b"]})
    with pytest.raises(ValueError, match="names of features"):
        _check("vw", {"names": ["f^a", "f^b", "f^a"]})
