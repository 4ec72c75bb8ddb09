"""Counts of the 16 domains as their README measured them, and small made files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.datasets import load, load_sentiment
from shoal.datasets.sentiment import _DOMAINS

FEWER = {"baby": 1900, "camera_photo": 1997, "electronics": 1998, "magazines": 1970, "software": 1915}


def test_counts(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("sentiment16_fdu_mtl")
    data = load_sentiment(min_reviews=1, pairs=False)
    assert data.X.shape[0] == 31_780
    # The README counts 90,088 distinct tokens as written; here they are also made lower case.
    assert 85_000 < data.X.shape[1] <= 90_088
    tasks, sizes = np.unique(data.task, return_counts=True)
    assert dict(zip(tasks.tolist(), sizes.tolist(), strict=True)) == {name: FEWER.get(name, 2000) for name in _DOMAINS}
    for name in _DOMAINS:
        assert 0.47 < (data.y[data.task == name] > 0).mean() < 0.54


@pytest.fixture
def small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sentiment16_fdu_mtl"
    folder.mkdir()
    for name in _DOMAINS:
        train = "1\tvery good , good\n0\tvery bad caf\xe9\n" if name == "books" else "1\tgood\n"
        for part, text in (("train", train), ("test", "0\tbad , bad\n")):
            (folder / f"{name}.task.{part}.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))


@pytest.mark.usefixtures("small_files")
def test_words_and_pairs_of_words_are_counted() -> None:
    data = load_sentiment(min_reviews=1)
    books = data.subset(data.task == "books")
    assert books.y.tolist() == [1, -1, -1]
    words = [{data.feature_names[j]: n for j, n in zip(row.indices, row.data, strict=True)} for row in books.X]
    assert words[0] == {"very": 1, "good": 2, ",": 1, "very good": 1, "good ,": 1, ", good": 1}
    assert words[1] == {"very": 1, "bad": 1, "caf\xe9": 1, "very bad": 1, "bad caf\xe9": 1}
    by_name = load("sentiment")
    assert by_name.name == "sentiment"
    assert "caf\xe9" not in by_name.feature_names
    assert all(" " not in name for name in load_sentiment(pairs=False).feature_names)
    scaled = load_sentiment(transform="log-norm")
    assert np.allclose(scaled.X.power(2).sum(axis=1), 1)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="transform must be 'counts' or 'log-norm', got 'tfidf'"):
        load_sentiment(transform="tfidf")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="min_reviews must be at least 1, got 0"):
        load_sentiment(min_reviews=0)
