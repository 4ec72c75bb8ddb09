"""How many threads a learner may use, and the processor time that they took.

The project's threads obey joblib's `n_jobs`: inside `joblib.parallel_config(n_jobs=1)` only the caller's thread works.
"""

import threading
import time
from functools import cache

_helpers = threading.local()


@cache
def n_cores() -> int:
    """The cores that the scheduler's mask and the container's quota allow; `os.cpu_count` ignores both.

    Cached, because reading the quota takes 0.2 ms.
    """
    from joblib import cpu_count

    return int(cpu_count())


def n_threads() -> int:
    """The threads that one learner may use: joblib's `n_jobs` if it is set, else one a core."""
    from joblib.parallel import get_active_backend

    n_jobs = get_active_backend()[1]
    if n_jobs is None:
        return n_cores()
    return int(n_jobs) if n_jobs > 0 else max(1, n_cores() + 1 + int(n_jobs))


def thread_seconds() -> float:
    """Processor seconds of this thread so far, and of the threads that learned for it."""
    return time.thread_time() + getattr(_helpers, "seconds", 0.0)


def add_seconds(seconds: float) -> None:
    """Add the processor seconds that another thread took for this one."""
    _helpers.seconds = getattr(_helpers, "seconds", 0.0) + seconds
