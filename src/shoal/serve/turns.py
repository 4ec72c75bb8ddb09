"""Whose turn it is at the model: answers come first, learning waits until nobody asks.

A plain lock would be taken again by the learning thread, slice after slice, before a waiting answer wakes up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock at which those who answer go before those who learn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking = 0  # answers that wait or run; changed by one thread at a time, under `_counting`
        self._counting = threading.Lock()
        self._nobody_asks = threading.Event()
        self._nobody_asks.set()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Nothing is learned meanwhile."""
        with self._counting:
            self._asking += 1
            self._nobody_asks.clear()
        try:
            with self._lock:
                yield
        finally:
            with self._counting:
                self._asking -= 1
                if self._asking == 0:
                    self._nobody_asks.set()

    @contextmanager
    def learning(self, patience: float = 0.05) -> Iterator[None]:
        """Nothing is answered meanwhile. After `patience` seconds it does not stand back any more: rows that are
        accepted are learned however many ask."""
        self._nobody_asks.wait(patience)
        with self._lock:
            yield
