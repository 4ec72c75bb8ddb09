"""How many threads there may be, and what they took.

Threads of ours obey joblib's `n_jobs`: inside `joblib.parallel_config(n_jobs=1)` there is none but the caller's.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from functools import cache

_helpers = threading.local()


@cache
def n_cores() -> int:
    """What the scheduler's mask and the container's quota leave; `os.cpu_count` knows of neither.

    Asked once, for to read the quota takes 0.2 ms.
    """
    from joblib import cpu_count

    return int(cpu_count())


def n_threads() -> int:
    """The threads that one learner may use: joblib's `n_jobs` where it is set, else the cores that there are."""
    from joblib.parallel import get_active_backend

    n_jobs = get_active_backend()[1]
    if n_jobs is None:
        return n_cores()
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores() + 1 + int(n_jobs))


def halves() -> tuple[set[int], set[int]]:
    """The cores that the process may run on, in two parts; both empty where the system does not say.

    They are empty, too, for any thread but the main one: it has others beside it, whose load only the system knows.
    """
    if not hasattr(os, "sched_getaffinity") or threading.current_thread() is not threading.main_thread():
        return set(), set()
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[::2]), set(cores[1::2])


def stay_on(cores: set[int]) -> None:
    """Run this thread on these cores alone, if there are any.

    Two threads that wait for each other in turns may share one core all the time while another is idle, most of all in
    a virtual machine, where Linux takes a core that sleeps for one that is not to be had.
    """
    if cores:
        with suppress(OSError):  # some of them have been taken away meanwhile
            os.sched_setaffinity(0, cores)


def thread_seconds() -> float:
    """Seconds of a processor that this thread took so far, and threads that learned for it."""
    return time.thread_time() + getattr(_helpers, "seconds", 0.0)


def add_seconds(seconds: float) -> None:
    """Count what another thread took for this one."""
    _helpers.seconds = getattr(_helpers, "seconds", 0.0) + seconds
