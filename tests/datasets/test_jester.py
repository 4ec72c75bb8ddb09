"""Counts of the file as its README measured them, and a small made file."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.datasets import load_jester


def test_counts(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("jester5k")
    data = load_jester()
    assert data.X.shape == (3000, 1443)
    tasks, sizes = np.unique(data.task, return_counts=True)
    assert (len(tasks), set(sizes)) == (30, {100})
    assert np.abs(data.X).max() <= 1
    ratings = load_jester(kind="regression")
    np.testing.assert_array_equal(ratings.y > 0, data.y > 0)
    assert set(data.task).isdisjoint(data.feature_names)
    assert set(load_jester(seed=1).task) != set(data.task)


def test_rows_are_jokes_and_features_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ratings = rng.uniform(-9.9, 9.9, size=(4, 100)).round(2)
    header = "user," + ",".join(f"j{j}" for j in range(1, 101))
    lines = [f"u{i}," + ",".join(map(str, row)) for i, row in enumerate(ratings.tolist())]
    lines.insert(1, "partial," + ",".join(["1.5"] * 99) + ",")
    (tmp_path / "jester5k").mkdir()
    (tmp_path / "jester5k" / "jester5k.csv.gz").write_bytes(gzip.compress("\n".join([header, *lines]).encode()))
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    data = load_jester(n_tasks=2, kind="regression")
    assert data.feature_names == ("u2", "u3")
    np.testing.assert_allclose(data.X[:100], ratings[2:].T / 10)
    np.testing.assert_allclose(data.y[data.task == "u1"], ratings[1])
    with pytest.raises(ValueError, match="n_tasks must lie between 1 and 3, got 4"):
        load_jester(n_tasks=4)
    with pytest.raises(ValueError, match="kind must be 'binary' or 'regression', got 'stars'"):
        load_jester(kind="stars")  # type: ignore[arg-type]
