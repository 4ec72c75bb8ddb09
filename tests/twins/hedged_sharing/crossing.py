"""The crossed row, one entry at a time: features' values, their bins, and pairs of these, hashed to places."""

from __future__ import annotations

import numpy as np

MASK = 2**64 - 1


def splitmix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


class Sample:
    """A reservoir of 256 values and its sixteenths."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.taken = 0
        self.edges: list[float] | None = None

    def take(self, value: float, often: bool) -> None:
        self.taken += 1
        if self.taken <= 256:
            self.values.append(value)
        elif (at := splitmix(self.taken) % self.taken) < 256:
            self.values[at] = value
        if self.taken >= 32 and bin(self.taken).count("1") == 1:
            ordered = sorted(self.values)
            wanted = often and len(set(ordered)) >= 4
            self.edges = [self.edge(ordered, i * len(ordered) // 16) for i in range(1, 16)] if wanted else None

    @staticmethod
    def edge(ordered: list[float], at: int) -> float:
        """A sixteenth of the way from a value to the next that is not the same, rounded."""
        value = ordered[at]
        later = [other for other in ordered[at:] if other - value > 1e-5 * abs(value)]
        return value + 0.0625 * ((later[0] if later else ordered[-1]) - value)


class Crossing:
    """Bins so far, and what a row becomes."""

    def __init__(self, n_shared: int, n_own: int) -> None:
        self.n_shared, self.n_own = n_shared, n_own
        self.occurred: dict[int, int] = {}
        self.samples: dict[int, Sample] = {}
        self.rows = 0

    def row(self, raw: np.ndarray, z: np.ndarray, serial: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places that all tasks share, the task's own, and values; z has the constant first."""
        features = np.flatnonzero(raw).tolist()
        unit = 1 / np.sqrt(len(features) + 1)
        entries, items = [(splitmix(MASK), z[0])], []
        for j in features:
            item = (splitmix(32 * j + 16), z[1 + j])
            entries.append(item)
            if j in self.samples and self.samples[j].edges is not None:
                b = sum(edge < float(raw[j]) for edge in self.samples[j].edges or [])
                item = (splitmix(32 * j + b), unit)
                entries.append(item)
            items.append(item)
        n = len(items)
        reach = n if n <= 23 else 256 // n
        for a in range(n):
            for c in range(a + 1, min(a + reach + 1, n)):
                key = splitmix((items[a][0] + items[c][0]) & MASK)
                entries.append((key, items[a][1] * items[c][1]))
        of_task = splitmix(serial) | 1
        if serial == 0:
            return np.array([1 + ((key >> 32) % self.n_shared) for key, _ in entries]), *self._nowhere(entries)
        shared = [1 + ((key >> 32) % self.n_shared) for key, _ in entries]
        own = [1 + ((splitmix(key ^ of_task) >> 32) % self.n_own) for key, _ in entries]
        return np.array(shared), np.array(own), np.array([value for _, value in entries])

    @staticmethod
    def _nowhere(entries: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
        """The place of no task's record, and the values."""
        return np.zeros(len(entries), np.int64), np.array([value for _, value in entries])

    def learn(self, raw: np.ndarray) -> None:
        self.rows += 1
        for j in np.flatnonzero(raw).tolist():
            self.occurred[j] = self.occurred.get(j, 0) + 1
            often = 2 * self.occurred[j] > self.rows
            if j not in self.samples and (self.rows < 16 or not often or len(self.samples) == 128):
                continue
            self.samples.setdefault(j, Sample()).take(float(raw[j]), often)
