"""The helpers that place labels and lines."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest

from shoal.report.style import DARK, listed, spread, trend


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


@pytest.mark.parametrize("page", ["shoal.report/template.html", "shoal.papers/page.html"])
def test_text_can_be_read_on_its_ground(page: str) -> None:
    """A contrast of 4.5 (WCAG 2, AA) in the light and in the dark, which has the pictures' colors."""
    room, name = page.split("/")
    text = resources.files(room).joinpath(name).read_text(encoding="utf-8").replace("white;", "#ffffff;")
    light, dark = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in text.split("prefers-color-scheme", 1))
    for colors in (light, dark):
        for word in colors.keys() - {"rule", "paper", "card"}:
            assert min(contrast(colors[word], colors[ground]) for ground in ("paper", "card")) >= 4.5, word
    assert DARK.items() >= {light[word]: dark[word] for word in ("ink", "quiet", "rule", "card")}.items()


def contrast(one: str, other: str) -> float:
    """Of two colors, from 1 to 21."""

    def luminance(color: str) -> float:
        parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)
