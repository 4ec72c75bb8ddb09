"""Row operations against NumPy, dense and sparse, for any width."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python
from tests.streams import assert_close, draw

from shoal.engine import arrays, compile, intrinsics, rows
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import GROUP
from shoal.engine.rounds import Rounds
from shoal.model.algorithm import Size
from shoal.model.table import read_table

dot, dot_two, dot_all = map(from_python, (rows.dot, rows.dot_two, rows.dot_all))
add, add_to_all, squared_norm = map(from_python, (rows.add, rows.add_to_all, rows.squared_norm))
equal = from_python(intrinsics.equal)
NO_INTEGERS = np.zeros(0, np.int64)


def rounds_of(X: Any) -> Rounds:
    t = read_table(X)
    n = t.n_rows
    return Rounds(t.width, t.indptr, t.indices, t.values, np.zeros(n, np.int64), np.ones(n), np.arange(n + 1))


@given(seed=st.integers(0, 10**6), d=st.integers(1, 40), K=st.integers(1, 40), sparse=st.booleans())
def test_against_numpy(seed: int, d: int, K: int, sparse: bool) -> None:
    stream = draw(seed, d=d, n_rows=4, density=0.5)
    rng = np.random.default_rng(seed)
    rounds = rounds_of(stream.sparse if sparse else stream.X)
    row = int(rng.integers(len(stream.y)))
    x = stream.X[row]
    w = rng.normal(size=d)
    W = np.zeros((d, rows.whole_turns(K)))
    W[:, :K] = rng.normal(size=(d, K))
    atol = 1e-13 * np.abs(W).sum()
    np.testing.assert_allclose(dot(rounds, row, w), x @ w, rtol=1e-12, atol=atol)
    np.testing.assert_allclose(squared_norm(rounds, row), x @ x, rtol=1e-12)
    if sparse:
        np.testing.assert_allclose(dot_two(rounds, row, w, w[::-1].copy()), (x @ w, x @ w[::-1]), atol=atol)
    out = np.full(W.shape[1], np.nan)
    dot_all(rounds, row, W, out)
    np.testing.assert_allclose(out, x @ W, rtol=1e-12, atol=atol)
    moved = w.copy()
    add(rounds, row, 0.7, moved)
    assert_close(moved, w + 0.7 * x)
    scales = np.where(rng.random(W.shape[1]) < 0.5, rng.normal(size=W.shape[1]), 0.0)
    scales[K:] = 0.0
    expected = W + np.outer(x, scales)
    add_to_all(rounds, row, scales, W)
    assert_close(W, expected)


@pytest.mark.parametrize("n_tasks", [0, 1, arrays.LANES - 1, arrays.LANES, arrays.LANES + 1, 1000])
def test_padding_is_to_whole_turns(n_tasks: int) -> None:
    room = rows.whole_turns(n_tasks)
    assert room % arrays.LANES == 0
    assert n_tasks <= room < n_tasks + arrays.LANES


@pytest.mark.parametrize("shape", [(0, 8), (1, 3), (5, 8), (1000, 16), (2**20, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_begin_with_a_cache_line_and_many_with_a_huge_page(shape: tuple[int, ...], dtype: type) -> None:
    for _ in range(5):
        zeros = arrays.aligned_zeros(shape, dtype)
        assert zeros.ctypes.data % (64 if zeros.nbytes < 2**22 else 2**21) == 0 or zeros.size == 0
        assert zeros.shape == shape
        assert zeros.dtype == dtype
        assert not zeros.any()
        assert zeros.flags.c_contiguous


def test_call_gives_what_the_function_gives() -> None:
    """`call` skips numba's dispatch; the machine code is the same."""
    from shoal.online import passive_aggressive as pa

    core: Any = pa.PassiveAggressive().new_core()
    settings = core.setup.settings
    stream = draw(0, K=1)
    rounds = rounds_of(stream.X)
    results = []

    def dispatched(function: Any, *arguments: Any) -> Any:
        return function(*arguments[:-1])

    for run in (compile.call, dispatched):
        state, decisions = core.algorithm.allocate(core.setup, Size(1, 7)), np.empty(len(stream.y))
        run(pa.learn, rounds, settings, state, decisions, "float64")
        results.append((decisions.tobytes(), state.own.dense.tobytes()))
    assert results[0] == results[1]


@given(st.lists(st.integers(-3, 3), min_size=GROUP + 5, max_size=GROUP + 5), st.integers(0, 5))
def test_eight_numbers_are_compared_at_once(numbers: list[int], i: int) -> None:
    array = np.array(numbers, np.int32)
    for value in range(-3, 4):
        bits = equal(array, i, np.int32(value))
        assert [bits >> j & 1 for j in range(GROUP)] == [number == value for number in numbers[i : i + GROUP]]
        assert bits >> GROUP == 0


def test_a_kernel_refuses_a_call_from_python() -> None:
    """Without a wrapper the process would end there."""
    no_rounds: Any = None
    with pytest.raises(TypeError, match=r"shoal.engine.rows.squared_norm is a kernel"):
        rows.squared_norm(no_rounds, 0)


@kernel
def double(n: int) -> int:
    return 2 * n


# Lives as long as what it calls: river's checks follow all references, and may not meet a dead one.
call_twice: Any = numba.njit(lambda n: double(0) + double(n))


def test_a_kernel_is_compiled_once_for_constants_and_numbers() -> None:
    compiled: Any = double
    assert call_twice(3) == 6
    assert len(compiled.overloads) == 1


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("kind", [np.float64, np.int32, np.uint8])
def test_arrays_begin_where_a_cache_line_or_a_huge_page_does(kind: Any, more: int) -> None:
    """Large ones, of two huge pages, at a page."""
    size = np.dtype(kind).itemsize
    for n, edge in ((17 + more, arrays.LINE), (2 * arrays.HUGE_PAGE // size + more, arrays.LINE)):
        edge = arrays.HUGE_PAGE if n * size >= 2 * arrays.HUGE_PAGE else edge
        for made in (arrays.aligned_zeros((n, 1), kind), arrays.aligned_empty((n, 1), kind)):
            assert (made.shape, made.dtype, made.ctypes.data % edge) == ((n, 1), np.dtype(kind), 0)
            assert made.flags.c_contiguous
    assert not arrays.aligned_zeros((3, 5)).any()
    assert arrays.aligned_empty((0,)).shape == (0,)
