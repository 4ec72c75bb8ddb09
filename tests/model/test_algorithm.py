"""How much capacity a state that is too small gets."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.model.algorithm import Size, as_needed, doubled

SETUP: Any = None
HAVE = Size(tasks=4, features=10)


@pytest.mark.parametrize(
    ("need", "twice", "exactly"),
    [
        ((5, 10), (8, 10), (5, 10)),
        ((4, 11), (4, 20), (4, 11)),
        ((9, 3), (9, 10), (9, 10)),
        ((8, 21), (8, 21), (8, 21)),
        ((4, 10), (4, 10), (4, 10)),
    ],
)
def test_what_has_to_grow_grows(need: tuple[int, int], twice: tuple[int, int], exactly: tuple[int, int]) -> None:
    assert doubled(SETUP, HAVE, Size(*need)) == twice
    assert as_needed(SETUP, HAVE, Size(*need)) == exactly
