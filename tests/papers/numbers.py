"""Outcomes of given numbers, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.papers.by_paper import romco
from shoal.papers.experiment import Data, Entrant, Experiment, Metric
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome
from shoal.papers.protocols import progressive

Numbers = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]  # (entrant, data) -> metric -> a number per shuffle


def outcome(numbers: Numbers, *metrics: Metric, **options: Any) -> Outcome:
    """Of the entrants and data sets that are named; published numbers, a champion and so on may be said."""
    entrants, data = (list(dict.fromkeys(names)) for names in zip(*numbers, strict=True))
    given: dict[str, Any] = {
        "id": "made/table", "title": "t", "source": "s", "protocol": "as published", "metrics": metrics, "seeds": 1,
        "data": tuple(Data(name, romco.MHC.load) for name in data), "measure": progressive, "seconds": 1,
        "entrants": tuple(Entrant(name, "PassiveAggressive") for name in entrants),
    }  # fmt: skip
    runs = {
        key: [(Spec("", {}), dict(zip(found, values, strict=True))) for values in zip(*found.values(), strict=True)]
        for key, found in numbers.items()
    }
    return Outcome(Experiment(**(given | options)), runs, {}, False)
