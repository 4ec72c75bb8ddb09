"""A job: one learner on one data set in one shuffle, by itself; and the jobs that an experiment consists of."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.papers import store
from shoal.papers.experiment import HELD_OUT, QUICK_POINTS, Data, Entrant, Experiment, Measure, Tuning
from shoal.papers.fairness import moved_inside
from shoal.papers.learners import Spec, build, modules
from shoal.papers.outcome import Tried
from shoal.papers.store import Prepared
from shoal.papers.versions import version_of, version_of_function


@dataclass(frozen=True)
class Job:
    """Independent of all others, the same result whenever it is run."""

    entrant: str
    data: str
    spec: Spec
    prepared: Prepared
    measure: Measure
    options: Mapping[str, Any]
    seed: int

    @cached_property
    def key(self) -> str:
        """Hash of all that the result depends on."""
        code = [version_of(modules(self.spec)), version_of_function(self.measure)]
        return store.digest([self.prepared.fingerprint, code, self.spec.to_json(), dict(self.options), self.seed])

    def run(self) -> dict[str, Any]:
        """The numbers; a learner that refuses to go on gives the reason instead."""
        data, start = store.load(self.prepared), time.perf_counter()
        try:
            numbers = dict(self.measure(data, build(self.spec, self.seed), self.seed, **self.options))
        except (ValueError, FloatingPointError) as error:
            numbers = {"failed": str(error)}
        return {**numbers, "wall": time.perf_counter() - start}


def tuning_jobs(experiment: Experiment, ready: Mapping[str, Prepared], quick: bool) -> list[Job]:
    """Every setting of every grid on the held-out shuffle."""
    tuning = experiment.tuning
    if tuning is None:
        return []
    return [
        _tried(experiment, tuning, entrant, data, spec, ready, quick)
        for entrant, data in experiment.pairs(quick)
        if entrant.grid and data.name in ready
        for spec in entrant.points(data, QUICK_POINTS if quick else tuning.budget)
    ]


def moved_jobs(
    experiment: Experiment, ready: Mapping[str, Prepared], quick: bool, tried: list[tuple[Job, Any]]
) -> list[Job]:
    """The chosen settings, off the ends of their grids, on the held-out shuffle: they tell whether an end matters.

    They are never chosen themselves, so that all learners have one budget.
    """
    tuning = experiment.tuning
    if tuning is None or quick:
        return []
    return [
        _tried(experiment, tuning, entrant, data, spec, ready, quick)
        for entrant, data in experiment.pairs(quick)
        if entrant.grid and data.name in ready
        for spec in moved_inside(entrant, chosen(experiment, entrant, data, tried))
    ]


def _tried(
    experiment: Experiment, tuning: Tuning, entrant: Entrant, data: Data, spec: Spec, ready: Mapping[str, Prepared],
    quick: bool,
) -> Job:  # fmt: skip
    options = _options(tuning.options, data, experiment, quick)
    return Job(entrant.name, data.name, spec, ready[data.name], tuning.measure, options, HELD_OUT)


def chosen(experiment: Experiment, entrant: Entrant, data: Data, tried: list[tuple[Job, Any]]) -> Spec:
    """The setting with the best value; the first of equals."""
    if not entrant.grid or experiment.tuning is None:
        return entrant.spec(data)
    mine = scores(experiment, [(job, r) for job, r in tried if (job.entrant, job.data) == (entrant.name, data.name)])
    return max(mine[entrant.name, data.name], key=lambda one: one.score).spec


def scores(experiment: Experiment, tried: list[tuple[Job, Any]]) -> dict[tuple[str, str], list[Tried]]:
    """What each learner's settings were worth; one that failed is worth least."""
    found: dict[tuple[str, str], list[Tried]] = {}
    for job, result in tried:
        assert experiment.tuning is not None
        value = experiment.tuning.better * result.get(experiment.tuning.metric, math.nan)
        one = Tried(job.spec, -math.inf if math.isnan(value) else value)
        found.setdefault((job.entrant, job.data), []).append(one)
    return found


def final_jobs(
    experiment: Experiment, ready: Mapping[str, Prepared], quick: bool, tried: list[tuple[Job, Any]]
) -> list[Job]:
    """Every pair, with the parameters chosen, on every shuffle."""
    jobs = []
    for entrant, data in experiment.pairs(quick):
        if data.name not in ready:
            continue
        spec = chosen(experiment, entrant, data, tried)
        options = _options(experiment.options, data, experiment, quick)
        jobs += [
            Job(entrant.name, data.name, spec, ready[data.name], experiment.measure, options, seed)
            for seed in range(experiment.seeds_of(entrant, data, quick))
        ]
    return jobs


def _options(options: Mapping[str, Any], data: Data, experiment: Experiment, quick: bool) -> dict[str, Any]:
    """Of the measure; a quick run's own values stand in for those of the same name."""
    merged = {**options, **data.measure}
    smaller = {name: value for name, value in experiment.quick.items() if name in merged}
    return {**merged, **smaller} if quick else merged
