"""The helpers that place labels and lines."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.report.style import listed, spread, trend


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_moved_apart_in_order_and_around_their_places(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=12)
    places = np.array(spread(values.tolist(), 0.3))
    order = np.argsort(values)
    assert (np.diff(places[order]) >= 0.3 - 1e-12).all()
    assert places.mean() == pytest.approx(values.mean())


def test_labels_with_room_stay() -> None:
    assert spread([3.0, 1.0, 2.0], 0.5) == [3.0, 1.0, 2.0]


def test_a_trend_of_a_line_is_the_line_where_points_carry_it() -> None:
    rows = np.geomspace(10, 10_000, 200)
    line = trend(rows, np.full(200, 0.25))
    assert len(line) > 30
    assert {round(point["value"], 12) for point in line} == {0.25}
    assert min(point["rows"] for point in line) >= 10


def test_a_few_points_carry_no_trend() -> None:
    assert trend(np.array([1.0, 1_000.0]), np.array([0.1, 0.2])) == []


def test_lists_read_like_text() -> None:
    assert [listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
