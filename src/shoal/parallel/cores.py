"""How many cores there are for this process, which may be fewer than the machine has."""

from __future__ import annotations


def n_cores() -> int:
    """What the scheduler's mask and the container's quota leave; `os.cpu_count` knows of neither."""
    from joblib import cpu_count

    return int(cpu_count())
