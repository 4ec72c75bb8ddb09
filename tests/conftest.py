"""For all tests: fresh compiled code, and how hard Hypothesis searches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SOURCE = Path(__file__).parents[1] / "src" / "shoal"

# A worker a core: threads of the linear algebra library on top would wait for each other, up to 60 times as long.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The first example compiles numba code, so neither deadlines nor "too slow" say anything here.
settings.register_profile(
    "local", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config: pytest.Config) -> None:
    """Delete numba's disk cache if any source is newer: it does not see changes in functions that are called.

    Under xdist only the controller does, before the workers start.
    """
    if hasattr(config, "workerinput"):
        return
    kernels = [*SOURCE.rglob("*.nbi")]
    newest = max(path.stat().st_mtime for path in SOURCE.rglob("*.py"))
    if kernels and newest > min(path.stat().st_mtime for path in kernels):
        for path in [*kernels, *SOURCE.rglob("*.nbc")]:
            path.unlink(missing_ok=True)
