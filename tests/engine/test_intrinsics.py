"""Records of eight numbers against NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from shoal.engine.intrinsics import RECORD, move, products

multiply = numba.njit(lambda *arguments: products(*arguments))
step = numba.njit(lambda *arguments: move(*arguments))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 37])
def test_products(n: int, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(n)
    records, place, x = rng.normal(size=(9, RECORD)).astype(dtype), rng.integers(9, size=n + 3), rng.normal(size=n + 3)
    sums, sixth, seventh = np.full(RECORD, 7.0), *np.full((2, n + 3), 7.0)
    multiply(n, x, place, records, sixth, seventh, sums)
    rows = records[place[:n]].astype(np.float64)
    np.testing.assert_allclose(sums, x[:n] @ rows, atol=1e-13)
    np.testing.assert_array_equal(sixth, np.append(rows[:, 6], [7.0] * 3))
    np.testing.assert_array_equal(seventh, np.append(rows[:, 7], [7.0] * 3))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 37])
def test_move(n: int, dtype: type[np.floating]) -> None:
    """One record after the other, even if it is the same again."""
    rng = np.random.default_rng(n)
    records, place = rng.normal(size=(9, RECORD)).astype(dtype), rng.integers(9, size=n + 3)
    (a, b, c, d, e), scales = rng.normal(size=(5, n + 3)), rng.normal(size=RECORD)
    expected = records.copy()
    for i in range(n):
        expected[place[i]] += (scales * [a[i], b[i], c[i], c[i], d[i], d[i], e[i], e[i]]).astype(np.float64)
    step(n, place, a, b, c, d, e, scales, records)
    np.testing.assert_allclose(records, expected, atol=1e-13 if dtype == np.float64 else 1e-5)
