"""How rows become rounds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.engine.rounds import Rounds, cut, form_rounds


def starts(task: list[int], rounds: Any = None, *, simultaneous: bool = False) -> list[int]:
    columns = np.array(task, np.int64)
    return list(form_rounds(columns, int(columns.max()) + 1, rounds, simultaneous=simultaneous).tolist())


def test_the_three_ways() -> None:
    assert starts([0, 1, 1, 0]) == [0, 1, 2, 3, 4]
    assert starts([0, 1, 1, 0, 2, 0], simultaneous=True) == [0, 2, 5, 6]
    assert starts([0, 1, 2, 0], [7, 7, 3, 3]) == [0, 2, 4]
    assert starts([0, 1, 2, 0], [7, 7, 3, 7]) == [0, 2, 3, 4]  # only consecutive rows share a round
    assert starts([0], simultaneous=True) == [0, 1]


@given(task=st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_runs_without_repeats_are_maximal(task: list[int]) -> None:
    offsets = starts(task, simultaneous=True)
    assert offsets[0] == 0
    assert offsets[-1] == len(task)
    for first, last in pairwise(offsets):
        assert len(set(task[first:last])) == last - first > 0
        assert last == len(task) or task[last] in task[first:last]  # one more row would repeat a task


@given(task=st.lists(st.integers(0, 3), min_size=1, max_size=20), data=st.data())
def test_integers_form_rounds_or_name_the_row(task: list[int], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(-2, 2), min_size=len(task), max_size=len(task)))
    bad: int | None = None
    seen: set[int] = set()
    for row, (k, number) in enumerate(zip(task, numbers, strict=True)):
        seen = seen if row and number == numbers[row - 1] else set()
        if k in seen:
            bad = row
            break
        seen.add(k)
    if bad is None:
        changes = [row for row in range(1, len(task)) if numbers[row] != numbers[row - 1]]
        assert starts(task, numbers) == [0, *changes, len(task)]
    else:
        with pytest.raises(ValueError, match=rf"row {bad}: its task already has a row in round {numbers[bad]};"):
            starts(task, numbers)


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        ([0, 1], r"one integer per row: expected shape \(3,\), got \(2,\)"),
        ([[0], [1], [2]], "one integer per row"),
        (["a", "b", "c"], "rounds must be integers"),
        ([0.0, 1.0, 2.0], "rounds must be integers"),
    ],
)
def test_bad_rounds(rounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        starts([0, 1, 2], rounds)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("first", "last"), [(0, 6), (0, 3), (1, 3), (3, 6), (1, 6), (3, 3)])
@pytest.mark.parametrize("starts", [[0, 1, 2, 3, 4, 5, 6], [0, 1, 3, 6]])
def test_a_cut_has_the_rows_between(starts: list[int], first: int, last: int, sparse: bool) -> None:
    """In tasks, targets and weights, which are all different."""
    values, offsets = np.arange(12.0), np.array([0, 2, 2, 5, 6, 10, 12])
    whole = Rounds(
        0 if sparse else 2, offsets if sparse else np.zeros(0, np.int64), np.arange(12, dtype=np.int32), values,
        np.arange(6), np.arange(10.0, 16.0), np.array(starts), np.arange(20.0, 26.0),
    )  # fmt: skip
    part = cut(whole, first, last)
    assert part.task.tolist() == list(range(first, last))
    assert part.y.tolist() == [10.0 + row for row in range(first, last)]
    assert part.weight.tolist() == [20.0 + row for row in range(first, last)]
    assert part.starts.tolist() == [start - first for start in starts if first <= start <= last]
    if sparse:
        assert part.indptr.tolist() == offsets[first : last + 1].tolist()
        assert part.values.tolist() == values.tolist()
    else:
        assert part.values.tolist() == values[2 * first : 2 * last].tolist()
