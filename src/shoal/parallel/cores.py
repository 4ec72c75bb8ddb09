"""How many threads there may be, and what they took.

Threads of ours obey joblib's `n_jobs`: inside `joblib.parallel_config(n_jobs=1)` there is none but the caller's.
"""

from __future__ import annotations

import threading
import time
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


def thread_seconds() -> float:
    """Seconds of a processor that this thread took so far, and threads that learned for it."""
    return time.thread_time() + getattr(_helpers, "seconds", 0.0)


def add_seconds(seconds: float) -> None:
    """Count what another thread took for this one."""
    _helpers.seconds = getattr(_helpers, "seconds", 0.0) + seconds
