"""Copies of states."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from shoal.engine.arrays import IntArray
from shoal.engine.axes import ROW
from shoal.model.state import BLOCK, copied


class State(NamedTuple):
    few: IntArray
    many: Annotated[np.ndarray[Any, Any], ROW]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_a_copy_has_all_bits_and_no_memory_of_its_source(dtype: Any) -> None:
    n = BLOCK // np.dtype(dtype).itemsize
    state = State(np.arange(3), np.zeros((5 * n + 7) // 7 * 7, dtype).reshape(-1, 7))
    numbers = state.many.reshape(-1)
    numbers[[2 * n, 4 * n - 1, -1]] = 1
    numbers[3 * n] = -np.zeros(1, dtype)[0]  # of floats the bits are not zero
    copy = copied(state)
    assert [one.tobytes() for one in copy] == [one.tobytes() for one in state]
    assert not any(np.shares_memory(one, other) for one, other in zip(copy, state, strict=True))
    assert copied(state._replace(many=state.many.T)).many.tobytes() == state.many.T.tobytes()
