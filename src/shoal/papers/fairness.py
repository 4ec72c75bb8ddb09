"""Were grids wide enough? A setting that is best on the edge of its grid may have a better one beyond.

An edge counts if a step back inside costs something: if all settings inside are worse, those tried and the chosen one
with that value moved one step. Where they are not, the error is flat there, and nothing can be gained beyond.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from shoal.papers.experiment import Entrant
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome, Tried

# Beyond these there is nothing: shares end at 0 and 1, no task has negative weight in another, a Schatten norm has
# p >= 1, a p-norm Perceptron p >= 2, and one hypothesis for all tasks, or one for each of landmine's 19, are the fewest
# and the most.
NATURAL = {"alpha": (0, 1), "pull": (0, 1), "relation": (0,), "p": (1, 2), "n_hypotheses": (1, 19)}
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


def number(value: Any) -> float | None:
    """A grid's value as a number: itself, or the one number of an inner learner; else None."""
    if isinstance(value, Spec):
        found = [one for one in map(number, value.parameters.values()) if one is not None]
        return found[0] if len(found) == 1 else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def ends(values: Sequence[Any]) -> tuple[float, ...]:
    """The least and the largest number of a grid; none if it has fewer than two numbers."""
    sizes = [size for size in map(number, values) if size is not None]
    return (min(sizes), max(sizes)) if len(sizes) > 1 else ()


def at_ends(entrant: Entrant, spec: Spec) -> Iterator[str]:
    """The parameters whose value is the end of a grid that could go on."""
    for parameter, values in entrant.grid.items():
        size = number(spec.parameters[parameter])
        if size in ends(values) and size not in NATURAL.get(parameter, ()):
            yield parameter


def moved_inside(entrant: Entrant, spec: Spec) -> Iterator[Spec]:
    """The setting with each value that is an end of its grid moved one step."""
    for parameter in at_ends(entrant, spec):
        size, values = number(spec.parameters[parameter]), entrant.grid[parameter]
        others = [value for value in values if number(value) not in (None, size)]
        nearest = min(others, key=lambda value: abs((number(value) or 0.0) - (size or 0.0)))
        yield spec._replace(parameters={**spec.parameters, parameter: nearest})


def edges(outcome: Outcome) -> list[Edge]:
    """The chosen settings that lie on an edge where it matters; a quick run tries too few settings to tell."""
    if outcome.quick:
        return []
    entrants = {entrant.name: entrant for entrant in outcome.experiment.entrants}
    return [
        edge
        for (name, data), tried in outcome.tuned.items()
        for edge in _edges(entrants[name], data, tried, outcome.moved.get((name, data), []))
    ]


def _edges(entrant: Entrant, data: str, tried: list[Tried], moved: list[Tried]) -> Iterator[Edge]:
    best = max(tried, key=lambda one: one.score)
    for parameter in at_ends(entrant, best.spec):
        outer = ends(entrant.grid[parameter])
        sizes = [(number(one.spec.parameters[parameter]), one.score) for one in (*tried, *moved)]
        inside = max((score for size, score in sizes if size not in outer), default=-math.inf)
        if best.score - inside > CLEAR * abs(best.score):
            value = number(best.spec.parameters[parameter]) or 0.0
            yield Edge(data, entrant.name, parameter, value, abs(best.score), abs(inside))
