"""Evidence for rules: the runs of experiments, ours or, as far as it prints numbers, the paper's."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.papers.experiment import Experiment, Metric
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome, Runs


class NotRunError(LookupError):
    """A rule asks for runs that are not there."""

    def __init__(self, experiment: str) -> None:
        super().__init__(f"{experiment} has not been run")
        self.experiment = experiment


class Difference(NamedTuple):
    """The difference of two learners on the same shuffles."""

    mean: float
    error: float  # standard error; 0 with one value, such as a published one

    @property
    def above(self) -> bool:
        """More than two standard errors above 0."""
        return self.mean > 2 * self.error and self.mean > 0

    @property
    def below(self) -> bool:
        """More than two standard errors below 0."""
        return Difference(-self.mean, self.error).above


def paired(a: FloatArray, b: FloatArray) -> Difference:
    """The first less the second, over the shuffles that both have."""
    n = min(len(a), len(b))
    d = a[:n] - b[:n]
    return Difference(float(d.mean()), float(d.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0)


class Evidence:
    """The runs of experiments, by id."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._outcomes = {outcome.experiment.id: outcome for outcome in outcomes}

    def experiment(self, id: str) -> Experiment:
        """The experiment of that id."""
        if id not in self._outcomes:
            raise NotRunError(id)
        return self._outcomes[id].experiment

    def metric(self, experiment: str, name: str) -> Metric:
        """An experiment's metric by name."""
        return next(metric for metric in self.experiment(experiment).metrics if metric.name == name)

    def values(self, experiment: str, entrant: str, data: str, metric: str) -> FloatArray:
        """A number in every shuffle, in the paper's unit."""
        known = self.metric(experiment, metric)
        found = self._outcomes[experiment].values(entrant, data, known)
        if not len(found) or np.isnan(found).any():
            raise NotRunError(experiment)
        return found

    def mean(self, experiment: str, entrant: str, data: str, metric: str) -> float:
        """Over shuffles."""
        return float(self.values(experiment, entrant, data, metric).mean())

    def gap(self, experiment: str, entrant: str, data: tuple[str, str], metric: str) -> Difference:
        """A number on one data set less that on another; their shuffles are not paired."""
        a, b = (self.values(experiment, entrant, where, metric) for where in data)
        error = sum(float(v.var(ddof=1)) / len(v) for v in (a, b) if len(v) > 1) ** 0.5
        return Difference(float(a.mean() - b.mean()), error)

    def ratio(self, experiment: str, more: str, less: str, data: str, metric: str) -> float:
        """The ratio of two means; infinite if the second is 0."""
        a, b = (self.mean(experiment, name, data, metric) for name in (more, less))
        return a / b if b else math.inf

    def published(self, experiment: str, entrant: str, data: str, metric: str) -> tuple[float, float | None]:
        """The paper's number and its deviation."""
        return self.experiment(experiment).published[entrant, data, metric]

    def gain(self, experiment: str, who: str, other: str, data: str, metric: str) -> Difference:
        """The advantage of `who` over `other`, paired by shuffle; positive is better."""
        a, b = (self.values(experiment, name, data, metric) for name in (who, other))
        better = self.metric(experiment, metric).better
        return paired(better * a, better * b)

    def best(self, experiment: str, names: Iterable[str], data: str, metric: str) -> str:
        """The learner with the best mean."""
        better = self.metric(experiment, metric).better
        return max(names, key=lambda name: better * self.mean(experiment, name, data, metric))


def as_published(experiments: Mapping[str, Experiment]) -> Evidence:
    """The papers' printed numbers as if they were runs, one shuffle each."""
    return Evidence(Outcome(experiment, _printed(experiment), {}, False) for experiment in experiments.values())


def _printed(experiment: Experiment) -> Runs:
    scale = {metric.name: metric.scale for metric in experiment.metrics}
    numbers: dict[tuple[str, str], dict[str, Any]] = {}
    for (entrant, data, metric), (value, _) in experiment.published.items():
        numbers.setdefault((entrant, data), {})[metric] = value / scale[metric]
    return {key: [(Spec("", {}), found)] for key, found in numbers.items()}
