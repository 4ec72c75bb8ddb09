"""Limits by themselves: a clock that the test moves, a model that learns when the test says so."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from shoal.serve.contract import LimitExceeded
from shoal.serve.limits import Caps, Limits


class World:
    """Limits, what the model knows, and the time in seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **caps: int) -> None:
        self.now, self.known = 6_000.0, {"old"}
        self.limits = Limits(Caps(**caps), self.known.__contains__, lambda: len(self.known))
        monkeypatch.setattr("shoal.serve.limits.time", SimpleNamespace(monotonic=lambda: self.now))

    def take(self, *tasks: str, columns: int = 0) -> None:
        self.limits.check(np.array(tasks, object), columns)

    def counted(self) -> tuple[set[str], int, int]:
        mark = self.limits.mark()
        return mark.coming - self.known, mark.tasks, mark.columns

    def refused(self, *tasks: str, columns: int = 0) -> LimitExceeded:
        counted = self.counted()
        with pytest.raises(LimitExceeded) as found:
            self.take(*tasks, columns=columns)
        assert self.counted() == counted  # nothing of it
        return found.value


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch, new_tasks_a_minute=3, new_columns_a_minute=2, tasks=100)


def test_columns_are_taken_up_to_the_cap_and_again_in_the_next_minute(world: World) -> None:
    for minute in range(4):
        world.now = 6_000.0 + 60 * minute
        world.take("old", columns=1)
        world.now += 59.5
        world.take(columns=1)
        error = world.refused(columns=1)
        assert (str(error), error.retry_after) == ("more than 2 new columns a minute", 0.5)
        world.take("old")
    world.now += 0.5
    world.take(columns=2)
    assert world.refused(columns=1).retry_after == 60.0


def test_new_tasks_are_taken_up_to_the_cap_and_again_in_the_next_minute(world: World) -> None:
    for minute in range(3):
        world.now = 6_000.0 + 60 * minute
        world.take(*(f"{minute}-{i}" for i in range(2)), "old")
        world.refused(f"{minute}-2", f"{minute}-3")
        world.take(f"{minute}-2", f"{minute}-2", f"{minute}-0")  # however often; and what came before is not new
        world.now += 30.25
        error = world.refused("next")
        assert (str(error), error.retry_after) == ("more than 3 new tasks a minute", 29.75)
        world.take("old", f"{minute}-1")
        world.known.update(world.limits.coming)


def test_rows_without_tasks_have_no_new_ones(world: World) -> None:
    world.limits.check(None, 1)
    assert world.limits.coming == set()


def test_columns_and_tasks_are_counted_together_or_not_at_all(world: World) -> None:
    world.refused("a", "b", "c", "d", columns=1)
    world.take("a", columns=2)
    world.refused("b", columns=1)
    world.take("b", "c")


def test_what_is_learned_is_no_longer_coming(world: World) -> None:
    world.take("a", "b")
    assert world.limits.coming == {"a", "b"}
    world.known.add("a")
    world.take("c")
    assert world.limits.coming == {"a", "b", "c"}  # to look all through takes time: once a minute
    world.now += 60
    world.take("d")
    assert world.limits.coming == {"b", "c", "d"}


def test_tasks_in_all_are_those_known_and_those_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, tasks=4, new_columns_a_minute=1)
    world.take("a", "b")
    world.refused("c", "d")
    world.take("c")  # old, a, b and c: exactly four
    error = world.refused("d")
    assert (str(error), error.retry_after) == ("this service takes 4 tasks at most", None)
    world.take("a", "old", columns=1)  # what is known may come
    world.known.update("ab")  # learned: they count once, not twice
    assert world.refused("d").retry_after is None
    world.known.remove("old")  # forgotten
    world.take("d")
    assert world.limits.coming == {"c", "d"}
    world.refused("e")


def test_a_rollback_is_as_if_nothing_had_come(world: World) -> None:
    world.take("a", columns=1)
    mark = world.limits.mark()
    world.take("b", "c", columns=1)
    world.limits.rollback(mark)
    assert world.limits.coming == {"a"}
    world.take("b", "c", columns=1)
    world.refused("d")
    world.refused(columns=1)


@pytest.mark.parametrize("later", [0.5, 60.0, 600.0])
def test_a_rollback_restores_the_counts_with_their_minute(later: float, world: World) -> None:
    """The minute may end while a commit is tried; what the last one counted is not taken for the new one's."""
    world.take("a", "b", columns=2)
    world.known.add("a")
    mark = world.limits.mark()
    assert mark == ({"a", "b"}, 100, 2, 2)
    world.now += later
    world.limits.check(np.array(["c"], object), 0)
    world.limits.rollback(mark)
    assert world.limits.mark() == mark
    is_another = later >= 60
    if is_another:
        world.take("d", "e", "f", columns=2)
    else:
        world.take("d")
    world.refused("g")
    world.refused(columns=1)
    world.limits.rollback(mark)
    world.now = 6_000.0  # the minute of the mark: all that it had taken is still counted
    world.take("d")
    world.refused("e")
    world.refused(columns=1)
