"""The counts of the landmine file, as its README measured them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.datasets import landmine, load_landmine

ROWS = """690 690 689 508 509 509 510 511 508 509 689 688 508 510 507 445 449 448 449 449 451 454 447 449
445 448 448 454 449"""
MINES = "40 48 39 19 22 29 29 26 31 15 38 35 27 31 17 32 27 31 30 37 33 39 17 41 31 36 36 26 42"


def test_29_fields(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("landmine")
    data = load_landmine()
    fields, rows = np.unique(data.task, return_counts=True)
    assert fields.tolist() == list(range(1, 30))
    assert rows.tolist() == [int(n) for n in ROWS.split()]
    assert [int((data.y[data.task == k] > 0).sum()) for k in fields] == [int(n) for n in MINES.split()]
    assert data.X.shape == (14_820, 10)
    assert (data.X[:, -1] == 1).all()
    assert np.isfinite(data.X).all()
    assert data.kind == "binary"


def test_19_fields_are_a_selection_of_the_29(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("landmine")
    data, all_fields = load_landmine(19), load_landmine(29)
    assert sorted(set(data.task.tolist())) == [*range(1, 11), *range(16, 25)]
    assert (len(data), int((data.y > 0).sum())) == (9_674, 585)
    for field in (1, 16, 24):
        np.testing.assert_array_equal(data.X[data.task == field], all_fields.X[all_fields.task == field])


def test_the_checksum_is_that_of_the_file(benchmark_files: Callable[[str], Path]) -> None:
    content = (benchmark_files("landmine") / "LandmineData.mat").read_bytes()
    assert hashlib.sha256(content).hexdigest() == landmine._SOURCE.sha256


def test_another_number_of_tasks_is_refused() -> None:
    with pytest.raises(ValueError, match="landmine comes with 29 or 19 tasks, got n_tasks=20"):
        load_landmine(20)
