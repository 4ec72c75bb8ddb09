"""Evidence for rules: the runs of experiments, ours or, as far as it prints numbers, the paper's."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.papers.errors import Difference, paired, unpaired
from shoal.papers.experiment import Experiment, Metric
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome, Runs


class NotRunError(LookupError):
    """A rule asks for runs that are not there."""

    def __init__(self, experiment: str) -> None:
        super().__init__(f"{experiment} has not been run")
        self.experiment = experiment


class Evidence:
    """The runs of experiments, by id; `printed` if they are what the papers print, one number each."""

    def __init__(self, outcomes: Iterable[Outcome], *, printed: bool = False) -> None:
        self.printed = printed
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
        return unpaired(a, b)

    def ratio(self, experiment: str, more: str, less: str, data: str, metric: str) -> float:
        """The ratio of two means; infinite if the second is 0."""
        a, b = (self.mean(experiment, name, data, metric) for name in (more, less))
        return a / b if b else math.inf

    def log_ratio(self, experiment: str, more: str, less: str, data: str, metric: str) -> Difference:
        """The logarithm of the ratio, paired by shuffle; of numbers that are not positive, without an error."""
        a, b = (self.values(experiment, name, data, metric) for name in (more, less))
        if min(a.min(), b.min()) > 0:
            return paired(np.log(a), np.log(b))
        ratio = self.ratio(experiment, more, less, data, metric)
        return Difference(math.log(ratio) if ratio > 0 else -math.inf, 0.0)

    def published(self, experiment: str, entrant: str, data: str, metric: str) -> tuple[float, float | None]:
        """The paper's number and its deviation."""
        return self.experiment(experiment).published[entrant, data, metric]

    def gain(self, experiment: str, learner: str, other: str, data: str, metric: str) -> Difference:
        """The advantage of `learner` over `other`, paired by shuffle; positive is better."""
        a, b = (self.values(experiment, name, data, metric) for name in (learner, other))
        better = self.metric(experiment, metric).better
        return paired(better * a, better * b, self.experiment(experiment).overlap.get(data, 0.0))

    def best(self, experiment: str, names: Iterable[str], data: str, metric: str) -> str:
        """The learner with the best mean."""
        better = self.metric(experiment, metric).better
        return max(names, key=lambda name: better * self.mean(experiment, name, data, metric))


def as_published(experiments: Mapping[str, Experiment]) -> Evidence:
    """The papers' printed numbers as if they were runs, one shuffle each."""
    outcomes = (Outcome(experiment, _printed(experiment), {}, False) for experiment in experiments.values())
    return Evidence(outcomes, printed=True)


def _printed(experiment: Experiment) -> Runs:
    scale = {metric.name: metric.scale for metric in experiment.metrics}
    numbers: dict[tuple[str, str], dict[str, Any]] = {}
    for (entrant, data, metric), (value, _) in experiment.published.items():
        numbers.setdefault((entrant, data), {})[metric] = value / scale[metric]
    return {key: [(Spec("", {}), found)] for key, found in numbers.items()}
