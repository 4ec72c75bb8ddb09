"""The factor that follows its matrix equals the one computed anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal.batch.sparse_mtl import coefficients
from shoal.batch.sparse_mtl.coefficients import JITTER

append, rank_one = map(from_python, (coefficients.append, coefficients.rank_one))
solve_transposed, solve_upper = map(from_python, (coefficients.solve_transposed, coefficients.solve_upper))
N = 12


def draw(seed: int, size: int, rank: int | None = None) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(rank or 2 * N, size))
    return A.T @ A


def factor(P: np.ndarray) -> np.ndarray:
    R = np.zeros((N + 3, N + 3))
    for k in range(len(P)):
        append(R, k, P[k].copy())
    return R


@given(seed=st.integers(0, 10**6), size=st.integers(1, N))
def test_factor_grown_row_by_row(seed: int, size: int) -> None:
    P = draw(seed, size)
    R = factor(P)
    assert not np.tril(R, -1).any()
    np.testing.assert_allclose(R[:size, :size], np.linalg.cholesky(P).T, rtol=1e-6, atol=1e-7 * P.max())
    np.testing.assert_allclose(R.T @ R, np.pad(P, (0, N + 3 - size)), rtol=0, atol=3 * JITTER * P.max())


@given(seed=st.integers(0, 10**6), size=st.integers(1, N), n=st.integers(1, 20))
def test_rank_one_changes_equal_the_factor_computed_anew(seed: int, size: int, n: int) -> None:
    P, rng = draw(seed, size), np.random.default_rng(seed + 1)
    R, added = factor(P), rng.normal(size=(n, size))
    stays = rng.random(n) < 0.5
    for sign, rows in ((1.0, added), (-1.0, added[~stays])):
        for w in rows:
            assert rank_one(R, size, w.copy(), sign)
    expected = P + added[stays].T @ added[stays]
    np.testing.assert_allclose(R.T @ R, np.pad(expected, (0, N + 3 - size)), rtol=0, atol=1e-9 * expected.max())
    assert (np.diag(R)[:size] > 0).all()


@given(seed=st.integers(0, 10**6), size=st.integers(1, N))
def test_solving_is_solving(seed: int, size: int) -> None:
    P, b = draw(seed, size), np.random.default_rng(seed + 1).normal(size=N + 3)
    R, x = factor(P), b.copy()
    solve_transposed(R, size, x)
    np.testing.assert_allclose(R[:size, :size].T @ x[:size], b[:size], rtol=1e-6, atol=1e-8)
    solve_upper(R, size, x)
    np.testing.assert_allclose(P @ x[:size], b[:size], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(x[size:], b[size:])


def test_a_lost_rank_is_told() -> None:
    P = draw(0, 3)
    R = factor(P)
    assert not rank_one(R, 3, 1.5 * np.sqrt(P[0, 0]) * np.eye(3)[0], -1.0)


@pytest.mark.parametrize("rank", [1, 4])
def test_dependent_columns_leave_a_finite_factor(rank: int) -> None:
    P = draw(0, N, rank)
    R = factor(P)
    assert (np.diag(R)[:N] > 0).all()
    np.testing.assert_allclose((R.T @ R)[:N, :N], P, rtol=0, atol=3 * JITTER * N * P.max())
