"""Metrics for Prometheus: the gauges of the engine, and counts and times of requests."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from shoal.serve.contract import Service

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
COUNTERS = {
    *(f"rows_{what}" for what in ("learned", "judged", "refused")),
    *(f"labels_{what}" for what in ("accepted", "late", "double", "unknown", "asked")),
    "targets_clipped",
}
"""Numbers of the engine that only grow: their names end with `_total`, as Prometheus wants it."""
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD")


class Metrics:
    """Counts of requests: plain numbers of the serving thread, as prometheus_client's counters take locks."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}  # by method, route and status
        self._seconds: dict[str, list[float]] = {}  # by route: requests of each bucket and of longer ones, and the sum

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (method if method in METHODS else "other", route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        if route not in self._seconds:
            self._seconds[route] = [0.0] * (len(BUCKETS) + 2)
        self._seconds[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route][-1] += seconds

    def text(self, service: Service) -> bytes:
        """All metrics as they are now."""
        registry = CollectorRegistry()
        registry.register(_Now(self._metrics(), service))
        return generate_latest(registry)

    def _metrics(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "shoal_requests", "Requests by route and status.", labels=["method", "route", "status"]
        )
        for (method, route, status), n in list(self._requests.items()):
            requests.add_metric([method, route, str(status)], n)
        yield requests
        seconds = HistogramMetricFamily("shoal_request_seconds", "Seconds until the answer began.", labels=["route"])
        for route, (*counts, total) in list(self._seconds.items()):
            ends = [*map(str, BUCKETS), "+Inf"]
            seconds.add_metric([route], list(zip(ends, accumulate(counts), strict=True)), total)
        yield seconds


class _Now:
    """A collector of the requests and of the engine's gauges."""

    def __init__(self, counted: Iterator[Metric], service: Service) -> None:
        self._counted, self._service = counted, service

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        yield from self._counted
        for name, value in self._service.gauges().items():
            is_counter = name in COUNTERS or (name.startswith("follow_") and name != "follow_lag_messages")
            family = CounterMetricFamily if is_counter else GaugeMetricFamily
            yield family(f"shoal_{name}", name.replace("_", " "), value=float(value))
