"""Predicting one row a request, through shards and without: `python -m benchmarks.cluster.serving`.

Shards, the door in front of them and the clients share the cores of one machine, so this is what a hop costs, not what
more machines gain.
"""

import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.serve.__main__ import CLIENTS, Load, ask
from benchmarks.serve.services import make_flights, serving
from benchmarks.tables import flights
from benchmarks.timing import machine

ROUNDS = 5
DOORS = {
    "one engine": (),
    "two shards": ("--shards", "2"),
    "two shards behind Ray Serve": ("--shards", "2", "--cluster", "local"),
}


def main() -> None:
    """Print a table."""
    print(machine())
    found: dict[str, list[Load]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        data = make_flights(folder, flights().drop("delay"))
        services = {
            door: stack.enter_context(serving(data.model, folder / f"live {number}", *options))
            for number, (door, options) in enumerate(DOORS.items())
        }
        for service in services.values():
            ask(f"{service.url}/v1/predict", data.one, 1)
        for _ in range(ROUNDS):
            for door, service in services.items():
                found.setdefault(door, []).append(ask(f"{service.url}/v1/predict", data.one))
    title = f"one row a request, {CLIENTS} clients"
    print(f"{title:34}{'requests/s':>11}{'p50 ms':>8}{'p99 ms':>8}{'/ one':>7}")
    for door, loads in found.items():
        load = Load(*(statistics.median(values) for values in zip(*loads, strict=True)))
        ratio = statistics.median(
            one.requests / other.requests for one, other in zip(loads, found["one engine"], strict=True)
        )
        print(f"{door:34}{load.requests:>11,.0f}{load.median:>8.1f}{load.slow:>8.1f}{ratio:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
