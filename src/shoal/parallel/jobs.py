"""Independent jobs on the active backend of joblib, with results as they come."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any


def results(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], n_jobs: int | None = None, *, in_order: bool = True
) -> Iterator[Any]:
    """The results of the function for the arguments of each job.

    Parameters
    ----------
    n_jobs : int, optional
        Processes; None: those of `joblib.parallel_config`, else one.
    in_order : bool
        False: the first job to finish comes first.
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
    # Ray returns results only when all jobs are done: a few jobs at a time, so that a killed run loses only those.
    at_once = 4 * effective_n_jobs(n_jobs)
    pieces = (tasks[i : i + at_once] for i in range(0, len(tasks), at_once))
    return (result for piece in pieces for result in Parallel(n_jobs)(piece))
