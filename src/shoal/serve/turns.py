"""Whose turn it is at the model: answers come first, learning waits until nobody asks.

A plain lock would be taken again by the learning thread, slice after slice, before a waiting answer wakes up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.model.growth import stepping_aside

PATIENCE = 0.05  # seconds


class Turns:
    """A lock at which those who answer go before those who learn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answering = _Answering(self._lock)

    def answering(self) -> _Answering:
        """Nothing is learned meanwhile."""
        return self._answering

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Nothing is answered meanwhile, but while the model is made larger. After `PATIENCE` seconds it does not stand
        back any more: rows that are accepted are learned however many ask."""
        self._answering.wait_for_none(PATIENCE)
        with self._lock, stepping_aside(self._standing_back):
            yield

    @contextmanager
    def _standing_back(self) -> Iterator[None]:
        """Answers are given meanwhile."""
        self._lock.release()
        try:
            yield
        finally:
            self._answering.wait_for_none(PATIENCE)
            self._lock.acquire()


class _Answering:
    """A context of many threads at once, one after the other."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._counting = lock, threading.Lock()
        self._asking = 0  # answers that wait or run; changed by one thread at a time, under `_counting`
        self._nobody_asks = threading.Event()
        self._nobody_asks.set()

    def __enter__(self) -> None:
        with self._counting:
            self._asking += 1
            self._nobody_asks.clear()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        with self._counting:
            self._asking -= 1
            if self._asking == 0:
                self._nobody_asks.set()

    def wait_for_none(self, seconds: float) -> None:
        """Until nobody asks, or that long."""
        self._nobody_asks.wait(seconds)
