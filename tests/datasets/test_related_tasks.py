"""The generator's promises: relatedness, noise, drift, sparse rows, one seed for each part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from shoal.datasets import make_related_tasks, related_tasks


@pytest.mark.parametrize("nnz", [None, 7])
def test_rows_have_unit_norm_and_all_tasks_occur(nnz: int | None) -> None:
    data = make_related_tasks(n_tasks=4, n_features=50, n_rows=500, nnz=nnz)
    X = data.X if nnz is None else data.X.toarray()
    np.testing.assert_allclose((X**2).sum(axis=1), 1, rtol=1e-12)
    assert X.shape == (500, 50)
    assert set(data.task.tolist()) == {0, 1, 2, 3}
    assert set(data.y.tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize(("n_features", "nnz"), [(50, 7), (50, 1), (50, 50)])
def test_sparse_rows_hold_one_entry_in_each_block(n_features: int, nnz: int) -> None:
    X = make_related_tasks(n_features=n_features, n_rows=2_000, nnz=nnz).X
    assert isinstance(X, csr_matrix)
    assert (np.diff(X.indptr) == nnz).all()
    assert X.has_canonical_format
    assert len(np.unique(X.indices)) == n_features  # every column can occur


@pytest.mark.parametrize("relatedness", [0.0, 0.5, 1.0])
def test_relatedness_is_the_cosine_of_two_tasks(relatedness: float) -> None:
    rules = related_tasks._rules(40, 20_000, relatedness, None, np.random.default_rng(0))
    units = rules / np.linalg.norm(rules, axis=1, keepdims=True)
    cosines = (units @ units.T)[np.triu_indices(40, 1)]
    np.testing.assert_allclose(cosines, relatedness, atol=0.05)


def test_tasks_of_two_groups_have_its_square() -> None:
    rules = related_tasks._rules(40, 20_000, 0.6, 4, np.random.default_rng(0))
    cosines = rules @ rules.T / np.outer(*[np.linalg.norm(rules, axis=1)] * 2)
    group = np.arange(40) % 4
    expected = np.where(group[:, None] == group, 0.6, 0.36)
    np.testing.assert_allclose(cosines[~np.eye(40, dtype=bool)], expected[~np.eye(40, dtype=bool)], atol=0.05)


def test_noise_flips_labels_and_nothing_else() -> None:
    clean, noisy = (make_related_tasks(n_rows=20_000, noise=noise, seed=4) for noise in (0.0, 0.2))
    np.testing.assert_array_equal(clean.X, noisy.X)
    np.testing.assert_array_equal(clean.task, noisy.task)
    assert (clean.y != noisy.y).mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(make_related_tasks(noise=1.0).y, -make_related_tasks(noise=0.0).y)


def test_without_noise_a_task_is_linear() -> None:
    data = make_related_tasks(n_tasks=1, n_features=4, n_rows=3_000, noise=0.0)
    weights = data.X.T @ data.y  # the mean of y x points along the rule of a rotation-invariant x
    assert (np.where(data.X @ weights >= 0, 1, -1) == data.y).mean() > 0.97


def test_drift_turns_the_rules() -> None:
    still = make_related_tasks(noise=0.0)
    half_turns = make_related_tasks(noise=0.0, drift=np.pi)
    np.testing.assert_array_equal(half_turns.y, still.y * (-1.0) ** np.arange(len(still)))
    slow = make_related_tasks(noise=0.0, drift=np.pi / len(still))
    agreement = (slow.y == still.y).reshape(4, -1).mean(axis=1)
    assert agreement[0] > 0.85
    assert (np.diff(agreement) < 0).all()
    assert agreement[3] < 0.15


def test_seed() -> None:
    np.testing.assert_array_equal(make_related_tasks(seed=1).X, make_related_tasks(seed=1).X)
    assert not np.array_equal(make_related_tasks(seed=1).X, make_related_tasks(seed=2).X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tasks": 0}, "n_tasks must be at least 1, got 0"),
        ({"relatedness": 1.5}, "relatedness must lie between 0 and 1, got 1.5"),
        ({"noise": -0.1}, "noise must lie between 0 and 1, got -0.1"),
        ({"n_groups": 0}, "n_groups must be at least 1, got 0"),
        ({"nnz": 21}, "nnz must lie between 1 and n_features = 20, got 21"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_related_tasks(**options)
