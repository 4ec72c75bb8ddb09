"""Whether grids were wide enough: a setting that is best on the edge of its grid may have a better one beyond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shoal.papers.experiment import Entrant
from shoal.papers.outcome import Outcome, Tried

NATURAL = {"alpha": (0.0, 1.0), "pull": (0.0, 1.0), "relation": (0.0,)}  # beyond these there is nothing
CLEAR = 0.005  # an edge counts if what lies inside is worse by more than this share of the best value


class Edge(NamedTuple):
    """A chosen value at an end of its grid, and the tuning metric with it and with the best value inside."""

    data: str
    entrant: str
    parameter: str
    value: float
    best: float
    inside: float

    def __str__(self) -> str:
        return (
            f"{self.data} / {self.entrant}: {self.parameter}={self.value:g} is the end of its grid "
            f"({self.best:.4g}, inside {self.inside:.4g})"
        )


def edges(outcome: Outcome) -> list[Edge]:
    """The chosen settings that lie on an edge where it matters."""
    entrants = {entrant.name: entrant for entrant in outcome.experiment.entrants}
    return [edge for (name, data), tried in outcome.tuned.items() for edge in _edges(entrants[name], data, tried)]


def _edges(entrant: Entrant, data: str, tried: list[Tried]) -> Iterator[Edge]:
    best = max(tried, key=lambda one: one.score)
    for parameter, values in entrant.grid.items():
        if len(values) < 3 or not all(isinstance(value, int | float) for value in values):
            continue
        ends, value = (min(values), max(values)), best.spec.parameters[parameter]
        if value not in ends or value in NATURAL.get(parameter, ()):
            continue
        inside = max((one.score for one in tried if one.spec.parameters[parameter] not in ends), default=float("-inf"))
        if best.score - inside > CLEAR * abs(best.score):
            yield Edge(data, entrant.name, parameter, float(value), abs(best.score), abs(inside))
