"""Numbers for Prometheus: those of the engine, and how long requests took."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from shoal.serve.contract import Service

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
KNOWN = re.compile(r"/(health|ready|metrics|page|v1/(predict|learn|labels|query|model|tasks|export|events))\b")
METHODS = ("GET", "POST", "DELETE", "HEAD")


@lru_cache(maxsize=1024)
def _route(path: str) -> str:
    found = KNOWN.match(path)
    return found[0] if found else "other"


class Metrics:
    """A registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "shoal_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "shoal_request_seconds", "Seconds until the answer began.", ["route"], buckets=BUCKETS,
            registry=self._registry,
        )  # fmt: skip
        self._found: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}  # to look labels up takes longest

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        """One request."""
        key = (method if method in METHODS else "other", _route(path), status)
        if key not in self._found:
            self._found[key] = self._requests.labels(key[0], key[1], str(status)), self._seconds.labels(key[1])
        requests, histogram = self._found[key]
        requests.inc()
        histogram.observe(seconds)

    def text(self, service: Service) -> bytes:
        """All numbers of now."""
        return generate_latest(self._registry) + generate_latest(_of(service))


def _of(service: Service) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Gauges(service))
    return registry


class _Gauges:
    """What the engine says of itself."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._service.gauges().items():
            yield GaugeMetricFamily(f"shoal_{name}", name.replace("_", " "), value=float(value))
