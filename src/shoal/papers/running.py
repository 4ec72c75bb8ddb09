"""Runs experiments: what is known is read, the rest is done by joblib, each result kept as soon as it is there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from shoal.papers import store
from shoal.papers.experiment import Data, Experiment
from shoal.papers.jobs import Job, final_jobs, moved_jobs, scores, tuning_jobs
from shoal.papers.outcome import Outcome, Runs
from shoal.papers.store import Prepared
from shoal.parallel.jobs import results as results_of

OnProgress = Callable[[int, int], object]  # jobs done, jobs in all (of this stage)


class State(NamedTuple):
    """What of an experiment is known already."""

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
    """Look, but do nothing: neither load data nor run jobs."""
    ready = {}
    for data in _used(experiment, quick):
        prepared = store.known(data, quick)
        if prepared is not None:
            ready[data.name] = prepared
    final = sum(experiment.seeds_of(entrant, data, quick) for entrant, data in experiment.pairs(quick))
    everything = {data.name: Prepared("", "") for data in _used(experiment, quick)}
    total = len(tuning_jobs(experiment, everything, quick)) + final
    tuned = [(job, store.read(job.key)) for job in tuning_jobs(experiment, ready, quick)]
    done = sum(result is not None for _, result in tuned)
    if ready and done == len(tuned):
        moved = moved_jobs(experiment, ready, quick, tuned)
        total += len(moved)
        rest = [*moved, *final_jobs(experiment, ready, quick, tuned)]
        done += sum(store.read(job.key) is not None for job in rest)
    absent = [f"{entrant.name} (not yet)" for entrant in experiment.entrants if not entrant.is_there]
    return State(done, total, absent)


def recall(experiment: Experiment, quick: bool = False) -> Outcome:
    """What is kept of it, running nothing; a learner whose shuffles are not all there is left out."""
    known = {data.name: store.known(data, quick) for data in _used(experiment, quick)}
    ready = {name: prepared for name, prepared in known.items() if prepared is not None}
    tuned = [(job, store.read(job.key)) for job in tuning_jobs(experiment, ready, quick)]
    if any(result is None for _, result in tuned):
        return Outcome(experiment, {}, {}, quick)
    moved = [(job, store.read(job.key)) for job in moved_jobs(experiment, ready, quick, tuned)]
    told = [(job, result) for job, result in moved if result is not None]
    found = [(job, store.read(job.key)) for job in final_jobs(experiment, ready, quick, tuned)]
    partial = {(job.entrant, job.data) for job, result in found if result is None}
    return _outcome(experiment, quick, {}, tuned, told, [pair for pair in found if _whose(pair[0]) not in partial])


def _whose(job: Job) -> tuple[str, str]:
    return job.entrant, job.data


def _outcome(
    experiment: Experiment, quick: bool, missing: dict[str, str], tuned: list[tuple[Job, Any]],
    moved: list[tuple[Job, Any]], done: list[tuple[Job, Any]],
) -> Outcome:  # fmt: skip
    runs: Runs = {}
    for job, result in done:
        runs.setdefault(_whose(job), []).append((job.spec, result))
    seconds = {job.key: result["wall"] for job, result in [*tuned, *moved, *done]}
    return Outcome(experiment, runs, missing, quick, seconds, scores(experiment, tuned), scores(experiment, moved))


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
    first = tuning_jobs(experiment, ready, quick)
    tuned = run_all(first, n_jobs, on_progress)
    moved = run_all(moved_jobs(experiment, ready, quick, tuned), n_jobs, on_progress)
    done = run_all(final_jobs(experiment, ready, quick, tuned), n_jobs, on_progress)
    return _outcome(experiment, quick, missing, tuned, moved, done)


def _used(experiment: Experiment, quick: bool) -> list[Data]:
    """The data sets that somebody runs on."""
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
