"""Predictions while a learner of several cores forgets a task, or grows, are those of before or after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from shoal import Guarded, Hierarchy, MultiClass, PassiveAggressive
from shoal.model.growth import stepping_aside

GROUPS = 6
LEARNERS = [Guarded(PassiveAggressive()), Hierarchy(PassiveAggressive()), MultiClass(PassiveAggressive())]


def rows(n: int, seed: int) -> tuple[Any, Any, Any]:
    """A shop a country, so that a country goes with its shop."""
    rng = np.random.default_rng(seed)
    X, shop = rng.normal(size=(n, 4)), rng.integers(GROUPS, size=n)
    task = np.array([f"country {k},shop {k}" for k in shop.tolist()], object)
    return X, np.where(X[:, 0] * (shop - 2.5) > 0, 1, -1), task


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_what_is_answered_meanwhile(learner: Any) -> None:
    X, y, task = rows(300, seed=0)
    learner.partial_fit(X, y, task)
    others = task != "country 2,shop 2"
    new = np.array([f"country {k % 70},shop {k}" for k in range(300)], object)
    seen = list[bytes]()

    def answers() -> bytes:
        asked = np.concatenate([task[others], [f"country {k},another shop" for k in range(70)]])
        return bytes(learner.decision_function(np.vstack([X[others], X[:70]]), asked).tobytes())

    @contextmanager
    def looking() -> Iterator[None]:
        seen.append(answers())
        yield

    for change, argument in ((learner.forget_task, "country 2,shop 2"), (learner.add_tasks, new)):
        before = answers()
        with stepping_aside(looking):
            change(argument)
        assert seen
        assert {*seen} <= {before, answers()}
        seen.clear()
    with stepping_aside(looking):
        learner.partial_fit(X, y, [f"land {k % 200},shop {k}" for k in range(300)])
    assert seen
