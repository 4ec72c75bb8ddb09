"""Frames of deep calls lie in one piece of memory."""

from __future__ import annotations

import resource

from shoal.engine.frames import with_room


def _page_faults(depth: int) -> int:
    """Of a thousand calls from so many frames down."""
    if depth > 0:
        return _page_faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(1_000):
        _nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _nothing(a: int = 1, b: int = 2, c: int = 3) -> tuple[int, ...]:
    return a, b, c, a, b, c, a, b, c


def test_calls_from_any_depth_find_room_for_their_frames() -> None:
    """Without room, each call from two of these depths has a page fault."""
    assert max(with_room(_page_faults, depth) for depth in range(200)) < 500
