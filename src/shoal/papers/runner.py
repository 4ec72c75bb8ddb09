"""Runs experiments: known results are read, the others computed by joblib and stored one by one.

A job is one learner on one data set in one shuffle, independent of all others. An experiment's jobs have three stages:
every setting of every grid on a held-out shuffle, the chosen settings moved off the ends of their grids, and the chosen
settings on all shuffles.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from shoal.papers.cache import store
from shoal.papers.cache.store import Prepared
from shoal.papers.cache.versions import version_of, version_of_function
from shoal.papers.experiment import HELD_OUT, QUICK_POINTS, Data, Entrant, Experiment, Measure, Tuning
from shoal.papers.fairness import moved_inside
from shoal.papers.learners import Spec, build, modules
from shoal.papers.origin import origin
from shoal.papers.outcome import Outcome, Runs, Tried
from shoal.parallel.jobs import results as results_of

OnProgress = Callable[[int, int], object]  # jobs done, jobs in all (of this stage)


class State(NamedTuple):
    """How much of an experiment is known already."""

    done: int
    total: int  # a lower bound until the parameters are chosen
    missing: list[str]  # data sets that are not there, entrants that this version lacks

    def __str__(self) -> str:
        if self.total == 0:
            return "not yet"
        if self.done == 0:
            return "not started"
        return "cached" if self.done >= self.total else f"{self.done / self.total:.0%} cached"


def state(experiment: Experiment, quick: bool = False) -> State:
    """Look only: load no data and run no jobs."""
    ready = {}
    for data in _used(experiment, quick):
        prepared = store.known(data, quick)
        if prepared is not None:
            ready[data.name] = prepared
    final = sum(experiment.seeds_of(entrant, data, quick) for entrant, data in experiment.pairs(quick))
    everything = {data.name: Prepared("", "") for data in _used(experiment, quick)}
    total = len(_tuning_jobs(experiment, everything, quick)) + final
    tuned = [(job, store.read(job.key)) for job in _tuning_jobs(experiment, ready, quick)]
    done = sum(result is not None for _, result in tuned)
    if ready and done == len(tuned):
        moved = _moved_jobs(experiment, ready, quick, tuned)
        total += len(moved)
        rest = [*moved, *_final_jobs(experiment, ready, quick, tuned)]
        done += sum(store.read(job.key) is not None for job in rest)
    absent = [f"{entrant.name} (not yet)" for entrant in experiment.entrants if not entrant.is_there]
    return State(done, total, absent)


def recall(experiment: Experiment, quick: bool = False) -> Outcome:
    """The stored results, running nothing; leave out learners whose shuffles are not all there."""
    known = {data.name: store.known(data, quick) for data in _used(experiment, quick)}
    ready = {name: prepared for name, prepared in known.items() if prepared is not None}
    tuned = [(job, store.read(job.key)) for job in _tuning_jobs(experiment, ready, quick)]
    if any(result is None for _, result in tuned):
        return Outcome(experiment, {}, {}, quick)
    moved = [(job, store.read(job.key)) for job in _moved_jobs(experiment, ready, quick, tuned)]
    finished = [(job, result) for job, result in moved if result is not None]
    found = [(job, store.read(job.key)) for job in _final_jobs(experiment, ready, quick, tuned)]
    partial = {(job.entrant, job.data) for job, result in found if result is None}
    return _outcome(experiment, quick, {}, tuned, finished, [pair for pair in found if _whose(pair[0]) not in partial])


def _whose(job: Job) -> tuple[str, str]:
    return job.entrant, job.data


def _outcome(
    experiment: Experiment,
    quick: bool,
    missing: dict[str, str],
    tuned: list[tuple[Job, Any]],
    moved: list[tuple[Job, Any]],
    done: list[tuple[Job, Any]],
) -> Outcome:
    runs: Runs = {}
    for job, result in done:
        runs.setdefault(_whose(job), []).append((job.spec, result))
    seconds = {job.key: result["wall"] for job, result in [*tuned, *moved, *done]}
    origins = [result["origin"] for _, result in [*tuned, *moved, *done]]
    scores, off_ends = _scores(experiment, tuned), _scores(experiment, moved)
    return Outcome(experiment, runs, missing, quick, seconds, scores, off_ends, origins)


def reproduce(
    experiment: Experiment, *, quick: bool = False, n_jobs: int | None = 1, on_progress: OnProgress | None = None
) -> Outcome:
    """Run what is not known yet, and compare with the paper.

    Parameters
    ----------
    experiment : Experiment
    quick : bool
        Two shuffles, two settings a grid and small pieces of the data: whether everything runs, not how well.
    n_jobs : int or None
        Processes, of whatever backend `joblib.parallel_config` has set; None: as many as it says.
    on_progress : function of (jobs done, jobs in all)

    Returns
    -------
    Outcome
        Data sets that are not there are named in it; the others are run.
    """
    ready, missing = {}, {}
    for data in _used(experiment, quick):
        try:
            ready[data.name] = store.prepare(data, quick)
        except FileNotFoundError as error:
            missing[data.name] = str(error)
    first = _tuning_jobs(experiment, ready, quick)
    tuned = run_all(first, n_jobs, on_progress)
    moved = run_all(_moved_jobs(experiment, ready, quick, tuned), n_jobs, on_progress)
    done = run_all(_final_jobs(experiment, ready, quick, tuned), n_jobs, on_progress)
    return _outcome(experiment, quick, missing, tuned, moved, done)


def _used(experiment: Experiment, quick: bool) -> list[Data]:
    """The data sets that a learner runs on."""
    return list({data.name: data for _, data in experiment.pairs(quick)}.values())


def run_all(jobs: list[Job], processes: int | None, on_progress: OnProgress | None = None) -> list[tuple[Job, Any]]:
    """The jobs with their results, in order."""
    results = {job.key: store.read(job.key) for job in jobs}
    todo = list({job.key: job for job in jobs if results[job.key] is None}.values())
    done = len(results) - len(todo)
    if on_progress is not None and jobs:
        on_progress(done, len(results))
    for key, result in results_of(_compute, [(job,) for job in todo], processes, in_order=False):
        store.write(key, result)
        results[key] = result
        done += 1
        if on_progress is not None:
            on_progress(done, len(results))
    return [(job, results[job.key]) for job in jobs]


def _compute(job: Job) -> tuple[str, Any]:
    # A job is one core's: numpy's threads would stand in each other's way, and waiting ones count in CPU seconds.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver that stops early says so in its own numbers
        return job.key, job.run()


@dataclass(frozen=True)
class Job:
    """One learner on one data set in one shuffle: the same result whenever it runs."""

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
        return {**numbers, "wall": time.perf_counter() - start, "origin": origin()}


def _tuning_jobs(experiment: Experiment, ready: Mapping[str, Prepared], quick: bool) -> list[Job]:
    """Every setting of every grid on the held-out shuffle."""
    tuning = experiment.tuning
    if tuning is None:
        return []
    return [
        Job(entrant.name, data.name, spec, ready[data.name], tuning.measure, options, HELD_OUT)
        for entrant, data, options in _tuned_pairs(experiment, tuning, ready, quick)
        for spec in entrant.points(data, QUICK_POINTS if quick else tuning.budget)
    ]


def _moved_jobs(
    experiment: Experiment, ready: Mapping[str, Prepared], quick: bool, tried: list[tuple[Job, Any]]
) -> list[Job]:
    """The chosen settings, off the ends of their grids, on the held-out shuffle: they tell whether an end matters.

    They are never chosen themselves, so that all learners have one budget.
    """
    tuning = experiment.tuning
    if tuning is None or quick:
        return []
    return [
        Job(entrant.name, data.name, spec, ready[data.name], tuning.measure, options, HELD_OUT)
        for entrant, data, options in _tuned_pairs(experiment, tuning, ready, quick)
        for spec in moved_inside(entrant, _chosen(experiment, entrant, data, tried))
    ]


def _tuned_pairs(
    experiment: Experiment, tuning: Tuning, ready: Mapping[str, Prepared], quick: bool
) -> Iterator[tuple[Entrant, Data, dict[str, Any]]]:
    """Learners with a grid on data sets that are there, and the options of the measure."""
    for entrant, data in experiment.pairs(quick):
        if entrant.grid and data.name in ready:
            yield entrant, data, _options(tuning.options, data, experiment, quick)


def _chosen(experiment: Experiment, entrant: Entrant, data: Data, tried: list[tuple[Job, Any]]) -> Spec:
    """The setting with the best value; the first of equals."""
    if not entrant.grid or experiment.tuning is None:
        return entrant.spec(data)
    scores = _scores(experiment, [(job, r) for job, r in tried if (job.entrant, job.data) == (entrant.name, data.name)])
    return max(scores[entrant.name, data.name], key=lambda one: one.score).spec


def _scores(experiment: Experiment, tried: list[tuple[Job, Any]]) -> dict[tuple[str, str], list[Tried]]:
    """The score of each learner's settings; one that failed is worst."""
    found: dict[tuple[str, str], list[Tried]] = {}
    for job, result in tried:
        assert experiment.tuning is not None
        value = experiment.tuning.better * result.get(experiment.tuning.metric, math.nan)
        one = Tried(job.spec, -math.inf if math.isnan(value) else value)
        found.setdefault((job.entrant, job.data), []).append(one)
    return found


def _final_jobs(
    experiment: Experiment, ready: Mapping[str, Prepared], quick: bool, tried: list[tuple[Job, Any]]
) -> list[Job]:
    """Every pair, with the parameters chosen, on every shuffle."""
    jobs = []
    for entrant, data in experiment.pairs(quick):
        if data.name not in ready:
            continue
        spec = _chosen(experiment, entrant, data, tried)
        options = _options(experiment.options, data, experiment, quick)
        jobs += [
            Job(entrant.name, data.name, spec, ready[data.name], experiment.measure, options, seed)
            for seed in range(experiment.seeds_of(entrant, data, quick))
        ]
    return jobs


def _options(options: Mapping[str, Any], data: Data, experiment: Experiment, quick: bool) -> dict[str, Any]:
    """Options of the measure; those of a quick run replace others of the same name."""
    merged = {**options, **data.measure}
    smaller = {name: value for name, value in experiment.quick.items() if name in merged}
    return {**merged, **smaller} if quick else merged
