"""Independent jobs on whatever backend joblib has been told, results as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


def results(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], n_jobs: int | None = None, *, in_order: bool = True
) -> Iterator[Any]:
    """What the function gives for each job's arguments.

    Parameters
    ----------
    n_jobs : int, optional
        Processes; None: as many as `joblib.parallel_config` says, else one.
    in_order : bool
        False: whichever is done first comes first.
    """
    from joblib import Parallel, delayed, effective_n_jobs
    from joblib.parallel import get_active_backend

    if n_jobs == 1:
        return (function(*job) for job in jobs)
    tasks = [delayed(function)(*job) for job in jobs]
    if get_active_backend()[0].supports_return_generator:
        how = "generator" if in_order else "generator_unordered"
        found: Iterator[Any] = Parallel(n_jobs, return_as=how, batch_size=1)(
            tasks
        )  # larger ones leave the last waiting
        return found
    # Ray gives results back only when all are done: a few at a time, so that a killed run loses no more than those.
    at_once = 4 * effective_n_jobs(n_jobs)
    pieces = (tasks[i : i + at_once] for i in range(0, len(tasks), at_once))
    return (result for piece in pieces for result in Parallel(n_jobs)(piece))
