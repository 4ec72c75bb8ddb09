"""Handles give kernels and Python the arrays of the named tuple."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.handles import Handle, whole


class Inner(NamedTuple):
    counts: IntArray
    table: NDArray[np.float32]


class Outer(NamedTuple):
    first: FloatArray
    inner: Inner
    columns: FloatArray  # every other column of another array
    records: NDArray[Any]
    last: IntArray


def outer() -> Outer:
    records = np.array([(1.5, 1.0), (2.5, 0.25)], np.dtype([("x", np.float64), ("h", np.float64)]))
    inner = Inner(np.array([3, 4]), np.arange(6, dtype=np.float32).reshape(2, 3))
    return Outer(np.array([0.5]), inner, np.arange(12.0).reshape(3, 4)[:, ::2], records, np.zeros(0, np.int64))


@kernel(entry="too")
def read(held: Any, scale: float) -> tuple[float, float, float, float]:
    inner = held.inner
    inner.counts[1] += 1
    last_record = held.records[len(held.records) - 1]
    return (
        scale * held.first[0] + len(held.last),
        float(inner.counts[1] + inner.table[1, 2]),
        held.columns[2, 1],
        last_record.x + last_record.h,
    )


@kernel(entry=True)
def read_whole(held: Any, scale: float) -> tuple[float, float, float, float]:
    opened = whole(held)
    return read(Outer(opened.first[:], opened.inner, opened.columns, opened.records, opened.last), scale)


def test_kernels_read_and_write_the_arrays_of_the_tuple() -> None:
    plain = outer()
    handle = Handle(plain)
    for n, function in enumerate((read, read_whole), 1):
        assert function(handle, 2.0) == (1.0, 4.0 + n + 5.0, 10.0, 2.75)
    assert plain.inner.counts[1] == 6


def test_python_reads_the_same_and_a_copy_finds_its_own_arrays() -> None:
    handle = Handle(outer())
    assert handle.inner.table is handle.of.inner.table
    other = pickle.loads(pickle.dumps(handle))
    read(other, 1.0)
    assert (other.inner.counts[1], handle.inner.counts[1]) == (5, 4)
