"""Records of numbers against NumPy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from shoal.engine.intrinsics import STAYS, record_moves, record_products

WIDTH, N_KEPT, ROOM = 8, 3, 40
PATTERN, KEEP = (0, 1, 1, 2, STAYS, 3, 0, 3), (1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 0.99, 1.0)
some_products, some_moves = record_products(WIDTH, N_KEPT), record_moves(PATTERN, KEEP)
wide_products = record_products(2 * WIDTH, 2)
multiply = numba.njit(lambda *arguments: some_products(*arguments))
multiply_wide = numba.njit(lambda *arguments: wide_products(*arguments))
step = numba.njit(lambda *arguments: some_moves(*arguments))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 37])
@pytest.mark.parametrize(("width", "n_kept", "of"), [(WIDTH, N_KEPT, multiply), (2 * WIDTH, 2, multiply_wide)])
def test_products(n: int, dtype: type[np.floating], width: int, n_kept: int, of: Any) -> None:
    rng = np.random.default_rng(n)
    records, place, x = rng.normal(size=(9, width)).astype(dtype), rng.integers(9, size=n + 3), rng.normal(size=n + 3)
    sums, kept = np.full(width, 7.0), np.full((n_kept, ROOM), 7.0, dtype)
    of(n, x, place, records, kept, ROOM, sums)
    rows = records[place[:n]].astype(np.float64)
    np.testing.assert_allclose(sums, x[:n] @ rows, atol=1e-13)
    for column in range(n_kept):
        np.testing.assert_array_equal(kept[column], np.append(rows[:, width - 1 - column], [7.0] * (ROOM - n)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 37])
def test_moves(n: int, dtype: type[np.floating]) -> None:
    """One record after the other, even if it is the same again."""
    rng = np.random.default_rng(n)
    records, place = rng.normal(size=(9, WIDTH)).astype(dtype), rng.integers(9, size=n + 3)
    columns, scales = rng.normal(size=(4, ROOM)).astype(dtype), rng.normal(size=WIDTH).astype(dtype)
    expected = records.copy()
    for i in range(n):
        moves = [0.0 if c == STAYS else columns[c, i] for c in PATTERN]
        expected[place[i]] = np.multiply(KEEP, expected[place[i]], dtype=np.float64) + scales * moves
    step(n, place, columns, ROOM, scales, records)
    np.testing.assert_allclose(records, expected, atol=1e-13 if dtype == np.float64 else 1e-5)
    other = np.float32 if dtype == np.float64 else np.float64
    for given in ((columns.astype(other), ROOM, scales), (columns, ROOM, scales.astype(other))):
        with pytest.raises(numba.TypingError, match="numbers of float"):
            step(n, place, *given, records)
