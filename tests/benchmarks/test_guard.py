"""The regression guard: every learner has a workload, and gives the numbers that it gave before.

Instructions are counted by `make guard`, not here: importing under valgrind alone takes 40 s.
"""

from __future__ import annotations

import pytest
from benchmarks.guard import cost
from benchmarks.guard.__main__ import TIMES, costs, differences, read
from benchmarks.guard.workloads import BATCH, EXCLUDED, ONLINE, numbers

from shoal.cli.commands.learners import batch_kinds, learner_kinds

MEANT = 'If this is meant: `python -m benchmarks.guard --cost --update "why"`, and commit numbers.json with the change.'


def test_every_public_learner_has_a_workload_or_a_reason() -> None:
    listed = {*ONLINE, *BATCH, *EXCLUDED}
    assert listed == {*learner_kinds(), *batch_kinds()}
    assert set(ONLINE) <= set(learner_kinds())
    assert not {*ONLINE, *BATCH} & set(EXCLUDED)
    assert set(read()["learners"]) == {*ONLINE, *BATCH}


@pytest.mark.parametrize("name", [*ONLINE, *BATCH])
def test_error_and_loss_are_as_they_were(name: str) -> None:
    said = differences(name, numbers(name), read()["learners"].get(name, {}))
    assert not said, "\n".join([*said, MEANT])


def test_what_differs_is_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def instructions(elsewhere: int) -> dict[str, float]:
        counted.append(elsewhere)
        return {"A": 100.0 + 20 * elsewhere, "B": 108.0 - 6 * elsewhere, "C": 110.0 + elsewhere, "D": 50.0}

    monkeypatch.setattr(cost, "instructions", instructions)
    found = costs(["A", "B", "C"], {name: {"instructions": 100.0} for name in "ABC"})
    assert counted == list(range(TIMES))
    assert {name: count["instructions"] for name, count in found.items()} == {"A": 100.0, "B": 102.0, "C": 110.0}


def test_a_difference_is_noticed() -> None:
    known = {"error": 0.25, "loss": 0.5, "instructions": 1000.0}
    assert differences("X", dict(known), known) == []
    assert differences("X", known | {"loss": 0.500001}, known) == ["X: loss is 0.500001, was 0.5 (+0.00%)"]
    assert differences("X", known | {"instructions": 1049.0}, known) == []
    assert differences("X", known | {"instructions": 949.0}, known) == ["X: instructions is 949, was 1000 (-5.10%)"]
    assert differences("X", {"error": 0.0}, {"error": 0.0}) == []
    assert differences("X", {"error": 0.1}, {}) == ["X: error is 0.1, nothing known so far"]
