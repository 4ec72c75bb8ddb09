"""Medians of repeated timings, and the machine they were taken on."""

import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

REPEATS = 5


def seconds(run: Callable[[Any], object], setup: Callable[[], Any] = lambda: None, repeats: int = REPEATS) -> float:
    """Median time of `run(setup())` over the repeats; the first, which loads compiled code, does not count."""
    times = []
    for repeat in range(repeats + 1):
        argument = setup()
        start = time.perf_counter()
        run(argument)
        if repeat:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def seconds_a_call(call: Callable[[], object], calls: int = 20_000) -> float:
    """Median over the repeats of the mean time of a call."""

    def many(_: object) -> None:
        for _ in range(calls):
            call()

    return seconds(many) / calls


def machine() -> str:
    """Processor, Python and the versions that matter."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = f"{models[0]}, {len(models)} cores" if models else cpu
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "scikit-learn", "river"))
    return f"{cpu}; Python {platform.python_version()}, {versions}"
