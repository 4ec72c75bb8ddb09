"""An experiment as data: learners, data sets, a measure, and the numbers that the paper printed."""

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.papers.learners import Spec, is_there

if TYPE_CHECKING:
    from shoal.report.figure import Figure

Protocol = Literal["as published", "as it should be done"]
Measure = Callable[..., Mapping[str, Any]]  # (data, learner, seed, **options) -> numbers and lists of numbers
Draw = Callable[..., "Figure | None"]  # (outcome) -> a picture of it, or None where there is nothing to see

Key = tuple[str, str, str]  # entrant, data set, metric

PAPERS = ("osmtl", "romco", "sparse_mtl", "cavallanti", "yang_li", "theory", "leaderboard")  # files of `by_paper`
HELD_OUT = 1000  # the shuffle on which parameters are chosen; the reported shuffles count from 0
QUICK_SEEDS, QUICK_POINTS = 2, 2


@dataclass(frozen=True)
class Metric:
    """A number that a measure gives."""

    name: str
    title: str
    better: int  # +1 if more is better, -1 if less, 0 if neither
    form: str = ".4f"
    scale: float = 1.0  # ours times this is in the paper's unit
    factor: float = 1.1  # of a number relative to a reference: how far ours may be from the paper's
    given: tuple[str, ...] = ()  # entrants that were told this number, "*" for all; or "*": it repeats other numbers
    whole: float = 0.0  # of a relative number: what is compared is how much is missing to this, as F1 is to 100
    place: tuple[str, int] | None = None  # a list that the measure gives, and which of it; else what has its name
    group: str = ""  # the heading above its column, else the data set's name
    only: str = ""  # the one data set that it is of, else all
    derived: bool = False  # a mean of printed numbers, which the paper does not print itself
    as_ratio: bool = False  # a table shows it over its reference: seconds of two machines have no common unit

    def of(self, result: Mapping[str, Any]) -> float | None:
        """Ours, or None if the measure gave no such number."""
        if self.place is None or self.name in result:
            found: float | None = result.get(self.name)
            return found
        name, position = self.place
        return result[name][position] if position < len(result.get(name, ())) else None


@dataclass(frozen=True)
class Data:
    """A data set as an experiment uses it: a function of a module, so that any process can load it."""

    name: str
    load: Callable[..., Dataset]
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""  # below SHOAL_DATA; empty for generators
    measure: Mapping[str, Any] = field(default_factory=dict)  # options of the measure on this data set
    differs: str = ""  # from the paper's data, so that values are not comparable
    variant_of: str = ""  # another treatment of that data set, to say what was tried
    without: tuple[str, ...] = ()  # entrants that would take too long on it
    quick: Mapping[str, Any] = field(default_factory=dict)  # options of a quick run, where the full data takes long
    quick_rows: int = 900


@dataclass(frozen=True)
class Entrant:
    """A learner with the parameters it is given and those it may choose."""

    name: str
    learner: str  # see `shoal.papers.learners`
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    of_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # data set -> parameters that depend on it
    variant_of: str = ""
    untuned: str = ""  # why it has no grid, in an experiment where others have one

    @property
    def is_there(self) -> bool:
        """Whether this version of the library has the learner."""
        return is_there(self.learner)

    def spec(self, data: Data, point: Mapping[str, Any] | None = None) -> Spec:
        """The learner for that data set, with the parameters it was given, or a point of the grid."""
        own = self.of_data.get(data.variant_of or data.name, {})
        return Spec(self.learner, {**self.parameters, **own, **(point or {})})

    def points(self, data: Data, budget: int) -> list[Spec]:
        """The settings to try: the whole grid, or as many random points of it as the budget allows."""
        if math.prod(map(len, self.grid.values())) <= budget:
            points = itertools.product(*self.grid.values())
            return [self.spec(data, dict(zip(self.grid, point, strict=True))) for point in points]
        draws = {name: _draws(name, len(values)) for name, values in self.grid.items()}
        found: dict[tuple[int, ...], None] = {}
        while len(found) < budget:
            found[tuple(next(draw) for draw in draws.values())] = None
        return [
            self.spec(data, {name: self.grid[name][i] for name, i in zip(self.grid, place, strict=True)})
            for place in found
        ]


def _draws(parameter: str, size: int) -> Iterator[int]:
    """Random places in the grid of a parameter, the same for all learners that have this parameter and as many values.

    Learners that share a parameter try the same values of it, so that none is better by the luck of its draws.
    """
    rng = np.random.default_rng(zlib.crc32(f"{parameter} of {size}".encode()))
    while True:
        yield from rng.permutation(size).tolist()


@dataclass(frozen=True)
class Tuning:
    """The choice of parameters: the best value of a metric on a held-out shuffle."""

    measure: Measure
    metric: str
    better: int
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 60  # settings tried, at most, the same for every learner


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Parameters
    ----------
    id : str
        Such as "osmtl/table1".
    title : str
    source : str
        Paper, table or figure, page.
    protocol : "as published" or "as it should be done"
    data, entrants, metrics
        The learners and their data; metrics in the order of columns. Variants (see `Data`, `Entrant`) are shown only to
        say what was tried.
    measure, options
        A function of a module, ``measure(data, learner, seed, **options)``, and its options.
    seeds : int
        Shuffles that are reported, seeds 0, 1, ...
    seconds : float
        How long all of it took on one core, roughly.
    reference : function of (entrant, data, metric), optional
        Other such triples: the number is compared relative to their mean, ours to ours and the paper's to the paper's.
        For other data and other machines. None of them: it is compared as it is.
    published : dict of (entrant, data, metric) -> (value, deviation or None)
    deviation : str
        The kind of the published deviations.
    tuning : Tuning, optional
        For entrants with a grid.
    notes : sequence of str
        Differences from the paper that a reader must know.
    figure : function of an `Outcome`, optional
    champion : str
        The paper's own method, which the signed-rank tests set against all others.
    own : sequence of str
        All forms of the paper's own method: better than published speaks for the paper, of a baseline against it.
    overlap : dict of data set -> number
        Test rows over training rows, where every seed splits the same rows anew.
    runs_of : str
        The experiment whose runs and settings it shows.
    repeats : bool
        Its published numbers stand in another table, too, and are counted there.
    unreached : int
        Numbers that the paper prints and our data do not reach.
    unreached_why : str
    """

    id: str
    title: str
    source: str
    protocol: Protocol
    data: tuple[Data, ...]
    entrants: tuple[Entrant, ...]
    metrics: tuple[Metric, ...]
    measure: Measure
    seeds: int
    seconds: float
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)  # options that a quick run has instead
    published: Mapping[Key, tuple[float, float | None]] = field(default_factory=dict)
    reference: Callable[[str, str, str], Sequence[Key]] | None = None
    deviation: str = "standard deviation"
    tuning: Tuning | None = None
    variant_seeds: int = 5
    notes: tuple[str, ...] = ()
    figure: Draw | None = None
    champion: str = ""
    own: tuple[str, ...] = ()
    overlap: Mapping[str, float] = field(default_factory=dict)
    runs_of: str = ""
    repeats: bool = False
    unreached: int = 0
    unreached_why: str = ""
    shuffles: bool = True  # whether seeds are paired samples that a test may compare

    def __post_init__(self) -> None:
        known = {e.name for e in self.entrants}, {d.name for d in self.data}, {m.name for m in self.metrics}
        for key in self.published:
            if any(part not in names for part, names in zip(key, known, strict=True)):
                raise ValueError(f"{self.id}: no entrant, data set and metric are called {key}")
        for data in self.data:
            if unknown := set(data.without) - known[0]:
                raise ValueError(f"{self.id}: {data.name!r} is without {sorted(unknown)}, which are no entrants")
        if self.tuning is None and any(entrant.grid for entrant in self.entrants):
            raise ValueError(f"{self.id}: an entrant has a grid but there is no tuning")

    @property
    def decisive(self) -> Metric:
        """The metric that compares learners: the first that all data sets have."""
        return next(metric for metric in self.metrics if not metric.only)

    @property
    def is_aside(self) -> bool:
        """Whether no paper has it: a control, or mistakes against a bound; claims sum it up."""
        return self.paper == "theory" or self.source.startswith("controls of ")

    @property
    def paper(self) -> str:
        """The first part of the id."""
        return self.id.partition("/")[0]

    def seeds_of(self, entrant: Entrant, data: Data, quick: bool) -> int:
        """Number of shuffles of this pair."""
        full = self.variant_seeds if entrant.variant_of or data.variant_of else self.seeds
        return min(full, QUICK_SEEDS) if quick else full

    def pairs(self, quick: bool = False) -> list[tuple[Entrant, Data]]:
        """Learners with data sets; variants of either meet main ones of the other, and a quick run leaves them out."""
        most = 0 if quick else 1
        present = [entrant for entrant in self.entrants if entrant.is_there]
        return [
            (entrant, data)
            for data in self.data
            for entrant in present
            if bool(entrant.variant_of) + bool(data.variant_of) <= most and entrant.name not in data.without
        ]


def experiments() -> dict[str, Experiment]:
    """All experiments by id, paper by paper."""
    modules = [import_module(f"shoal.papers.by_paper.{name}") for name in PAPERS]
    return {experiment.id: experiment for module in modules for experiment in module.EXPERIMENTS}


# ---- entrants and grids that several experiments share ---------------------------------------------------------------

_FORMS = {"HedgedSharing": "learned", "HedgedSharing, independent": "independent", "HedgedSharing, pooled": "pooled"}
OF_LABELS, OF_NUMBERS = (  # the library's default and its two forms without sharing
    tuple(
        Entrant(name, learner, {"relation": relation}, untuned="it has nothing to tune")
        for name, relation in _FORMS.items()
    )
    for learner in ("HedgedSharing", "HedgedSharingRegressor")
)


def decades(first: float, last: float, per_decade: int) -> tuple[float, ...]:
    """Values for a hyper-parameter: powers of ten with so many values a decade, both ends included.

    Examples
    --------
    >>> decades(0.01, 1.0, 2)
    (0.01, 0.0316, 0.1, 0.316, 1.0)
    """
    n = round(per_decade * math.log10(last / first))
    return tuple(float(f"{first * 10 ** (i / per_decade):.3g}") for i in range(n + 1))


TENTHS = tuple(round(0.1 * i, 1) for i in range(11))
QUARTERS = decades(1e-5, 1e4, 4)  # a step or the C of a loss: four values a decade
CONFIDENCE = (0.5001, 0.501, 0.51, *(round(0.55 + 0.05 * i, 2) for i in range(9)), 0.975, 0.99, 0.999)
