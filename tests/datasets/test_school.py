"""The counts of the school file, as its README measured them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shoal.datasets import load_school, school


def test_counts_and_scales(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("school")
    data = load_school()
    schools, pupils = np.unique(data.task, return_counts=True)
    assert schools.tolist() == list(range(1, 140))
    assert [pupils.min(), np.median(pupils), pupils.max()] == [22, 103, 251]
    assert data.X.shape == (15_362, 28)
    assert (data.y.min(), data.y.max()) == (1, 70)
    np.testing.assert_allclose([data.y.mean(), data.y.std()], [20.60, 12.72], atol=0.005)
    assert data.kind == "regression"


def test_columns_are_what_their_names_say(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("school")
    data = load_school()
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(data.feature_names):
        groups.setdefault(name.split("=")[0], []).append(j)
    unknown = {"vr_band": 15}  # pupils without a level
    for group in ("year", "gender", "vr_band", "ethnic_group", "school_gender", "denomination", "constant"):
        assert set(np.unique(data.X[:, groups[group]])) <= {0, 1}
        levels = data.X[:, groups[group]].sum(axis=1)
        assert set(levels) <= {0, 1}
        assert (levels == 0).sum() == unknown.get(group, 0)
    percentages = data.X[:, groups["free_meals"] + groups["vr_band1"]]
    np.testing.assert_allclose(percentages.mean(axis=0), [0.409, 0.221], atol=0.0005)


def test_the_checksum_is_that_of_the_file(benchmark_files: Callable[[str], Path]) -> None:
    content = (benchmark_files("school") / "school.mat").read_bytes()
    assert hashlib.sha256(content).hexdigest() == school._SOURCE.sha256
