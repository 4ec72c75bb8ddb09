"""Records of numbers against NumPy."""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
import pytest
from tests.compiled import from_python

from shoal.engine.compile import kernel
from shoal.engine.intrinsics import STAYS, KnownFlags, record_moves, record_products

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


@kernel(alone=False, disjoint=True)
def _double(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(x)):
        out[i] = 2.0 * x[i]


def test_code_that_is_optimised_within_its_callers_is_none_of_its_own() -> None:
    """Compiled now, or read from the disk."""
    x, out = np.arange(5.0), np.zeros(5)
    from_python(_double)(x, out)
    np.testing.assert_array_equal(out, 2.0 * x)
    [compiled] = cast(Any, _double).overloads.values()
    assert not list(compiled.library.get_defined_functions())
    with pytest.raises(TypeError, match="_double is a kernel for compiled code"):
        _double(x, out)


@kernel(entry=True)
def _one_more(n: int) -> int:
    return n + 1


@kernel
def _three_more(n: int) -> int:
    return _one_more(n) + _one_more(1) + _one_more(2)


def test_a_kernel_is_compiled_for_types_and_not_for_values() -> None:
    assert from_python(_three_more)(5) == 11
    assert _one_more(1) == 2
    assert len(cast(Any, _one_more).overloads) == 1


def test_flags_are_alike_if_the_same_is_set() -> None:
    made: Any = KnownFlags
    flags, alike, other = made(), made(), made()
    for each in (flags, alike, other):
        each.nrt = True
    other.noalias = True
    assert flags == alike == made(alike)
    assert hash(flags) == hash(alike)
    assert flags != other
    assert hash(flags) != hash(other)
