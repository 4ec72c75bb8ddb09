"""An experiment's results: each number beside the paper's, with a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.papers.experiment import Data, Entrant, Experiment, Key, Metric
from shoal.papers.learners import Spec
from shoal.papers.origin import told

Runs = dict[tuple[str, str], list[tuple[Spec, dict[str, Any]]]]  # (entrant, data) -> a result per shuffle


class Tried(NamedTuple):
    """A setting on the held-out shuffle; a higher score is better."""

    spec: Spec
    score: float


class Row(NamedTuple):
    """One number of a table."""

    data: str
    entrant: str
    metric: Metric
    paper: float | None
    paper_deviation: float | None
    ours: float
    deviation: float
    shuffles: int
    verdict: str  # reproduced, better, worse, differs, given, reference, not comparable, ...
    why: str
    setting: str  # the parameters chosen
    relative: tuple[float, float] | None = None  # the paper's and ours over those of the reference

    @property
    def difference(self) -> float:
        """Ours - paper."""
        return float("nan") if self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Outcome:
    """An experiment with its results."""

    experiment: Experiment
    runs: Runs
    missing: Mapping[str, str]  # data set -> why it is not there
    quick: bool
    seconds: Mapping[str, float] = field(default_factory=dict)  # of every job, by its key, on one core
    tuned: Mapping[tuple[str, str], list[Tried]] = field(default_factory=dict)  # (entrant, data) -> the settings tried
    moved: Mapping[tuple[str, str], list[Tried]] = field(default_factory=dict)  # the chosen ones, off ends of grids
    origins: Sequence[Mapping[str, str]] = ()  # of every job

    @property
    def origin(self) -> str:
        """When, where and from which code the runs were made."""
        return told(self.origins)

    def values(self, entrant: str, data: str, metric: Metric) -> FloatArray:
        """The metric in every shuffle, in the paper's unit."""
        results = self.runs.get((entrant, data), [])
        return metric.scale * np.array([metric.of(result) for _, result in results], float)

    def lists(self, entrant: str, data: str, name: str) -> FloatArray:
        """(shuffles, ...) of a result that is a list, such as a curve or a matrix."""
        results = self.runs.get((entrant, data), [])
        return np.array([result[name] for _, result in results if name in result], float)

    def rows(self) -> list[Row]:
        """The table: data sets, entrants and metrics in their order, variants left out."""
        return [
            self._row(entrant, data, metric)
            for data in self.main_data()
            for entrant in self.main_entrants()
            for metric in self.experiment.metrics
            if metric.only in ("", data.name) and self._tells(entrant.name, data.name, metric)
        ]

    def _tells(self, entrant: str, data: str, metric: Metric) -> bool:
        """Whether we or the paper have the number, or its runs failed; not every learner has every number."""
        results = [result for _, result in self.runs.get((entrant, data), [])]
        has_run = any(metric.of(result) is not None or "failed" in result for result in results)
        return has_run or (entrant, data, metric.name) in self.experiment.published

    def main_data(self) -> list[Data]:
        """Without variants."""
        return [data for data in self.experiment.data if not data.variant_of]

    def main_entrants(self) -> list[Entrant]:
        """Without variants."""
        return [entrant for entrant in self.experiment.entrants if not entrant.variant_of]

    def tried(self, row: Row) -> list[tuple[str, float]]:
        """The same number under each variant of data and entrant."""
        values = []
        for entrant, data in self.experiment.pairs(self.quick):
            as_data = data.variant_of == row.data and entrant.name == row.entrant
            as_entrant = entrant.variant_of == row.entrant and data.name == row.data
            found = self.values(entrant.name, data.name, row.metric)
            if (as_data or as_entrant) and len(found):
                values.append((data.name if as_data else entrant.name, float(np.mean(found))))
        return values

    def _row(self, entrant: Entrant, data: Data, metric: Metric) -> Row:
        paper, spread = self.experiment.published.get((entrant.name, data.name, metric.name), (None, None))
        values = self.values(entrant.name, data.name, metric)
        ours = float(np.mean(values)) if len(values) else float("nan")
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        runs = self.runs.get((entrant.name, data.name), [])
        row = Row(
            data.name,
            entrant.name,
            metric,
            paper,
            spread,
            ours,
            deviation,
            len(values),
            "",
            "",
            str(runs[0][0]) if runs and entrant.grid else "",
        )
        row = row._replace(relative=self._relative(row))
        verdict, why = self._verdict(row, entrant, data)
        return row._replace(verdict=verdict, why=why)

    def _verdict(self, row: Row, entrant: Entrant, data: Data) -> tuple[str, str]:
        if not entrant.is_there:
            return "not yet", f"this version has no {entrant.learner}"
        if data.name in self.missing:
            return "no data", self.missing[data.name]
        if (entrant.name, data.name) not in self.runs:
            return "not run", f"shoal reproduce {self.experiment.id}"
        if np.isnan(row.ours):
            reasons = [result["failed"] for _, result in self.runs[entrant.name, data.name] if "failed" in result]
            return "failed", reasons[0] if reasons else "the number is undefined"
        if row.paper is None:
            return ("not in the paper" if self.experiment.published else ""), ""
        if self.quick:
            return "not comparable", "a quick run, on a piece of the data"
        if row.metric.derived:
            return "derived", ""
        if "*" in row.metric.given or entrant.name in row.metric.given:
            return "given", ""
        if row.relative is not None:
            return self._relative_verdict(row)
        if data.differs:
            return "not comparable", data.differs
        tolerance = 2.0 * row.deviation if row.paper_deviation is None else row.paper_deviation
        if abs(row.difference) <= tolerance:
            return "reproduced", ""
        if row.metric.better == 0:
            return "differs", ""
        return ("better" if row.metric.better * row.difference > 0 else "worse"), ""

    def _reference(self, row: Row) -> list[Key]:
        of = self.experiment.reference
        return [] if of is None else list(of(row.entrant, row.data, row.metric.name))

    def _relative(self, row: Row) -> tuple[float, float] | None:
        """The paper's number and ours, each over its reference."""
        keys, published = self._reference(row), self.experiment.published
        if row.paper is None or not keys or any(key not in published or key[:2] not in self.runs for key in keys):
            return None
        whole = row.metric.whole
        paper = float(np.mean([published[key][0] for key in keys])) - whole
        ours = float(np.mean([self.values(entrant, data, row.metric).mean() for entrant, data, _ in keys])) - whole
        return ((row.paper - whole) / paper, (row.ours - whole) / ours) if paper and ours else None

    def _relative_verdict(self, row: Row) -> tuple[str, str]:
        assert row.relative is not None
        if self._reference(row) == [(row.entrant, row.data, row.metric.name)]:
            return "reference", ""
        paper, ours = row.relative
        if paper / row.metric.factor <= ours <= paper * row.metric.factor:
            return "reproduced", ""
        if row.metric.better == 0:
            return "differs", ""
        better = -1 if row.metric.whole else row.metric.better  # the less is missing, the better
        return ("better" if better * (ours - paper) > 0 else "worse"), ""
