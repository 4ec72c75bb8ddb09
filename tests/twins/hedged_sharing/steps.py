"""Steps of one expert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


def sigmoid(m: Any) -> Any:
    return 1 / (1 + np.exp(-m))


def parts(h: float) -> Iterator[float]:
    """1, 1, 2, 4, ..., and what is left of h."""
    done = 0.0
    while done < h:
        yield min(max(done, 1.0), h - done)
        done += min(max(done, 1.0), h - done)


def moved(m: float, y: float, tau: float, h: float, divided: bool = True) -> float:
    """What a label of weight h moves a margin by, over tau."""
    total = 0.0
    for part in parts(h):
        p = sigmoid(m + tau * total)
        total += part * (y - p) / (1 + divided * tau * part * p * (1 - p))
    return total


class Now(NamedTuple):
    """A row to be learned."""

    y: float
    h: float
    c: float  # curvature of the answer
    e2: float  # squared error of the mixture of all tasks
    per_row: float  # one over the mean 1-norm
    tiny: float
    real: bool

    def pull(self, m: float, tau: float, divided: bool = True) -> float:
        if self.real:
            return self.h * (self.y - m) / (1 + self.h * tau)
        return moved(m, self.y, tau, self.h, divided)


class Table:
    """Weights of linear experts, as vectors over the entries of a row: of all tasks, and of each."""

    def __init__(self, K: int, d: int, experts: list[tuple[str, str, float, bool]]) -> None:
        self.experts = experts
        self.s = np.zeros((len(experts), d))
        self.v = np.zeros((len(experts), K, d))
        self.sums, self.own_sums = np.zeros((3, d)), np.zeros((3, K, d))  # H, G, HF

    def margins(self, places: np.ndarray, own_places: np.ndarray, x: np.ndarray, k: int) -> list[float]:
        return [
            (sharing != "own") * (self.s[e, places] @ x) + (sharing != "pooled") * (self.v[e, k, own_places] @ x)
            for e, (_, sharing, _, _) in enumerate(self.experts)
        ]

    def learn(self, places: np.ndarray, own_places: np.ndarray, x: np.ndarray, k: int, m: np.ndarray, now: Now) -> None:
        rates = [
            self.rates(sums, at, x, now)
            for sums, at in ((self.sums, places), (self.own_sums[:, k], own_places))
        ]  # fmt: skip
        for e, (rule, sharing, a, divided) in enumerate(self.experts):
            r, own_r = (of(rule, a) for of in rates)
            tau = (sharing != "own") * (r @ x**2) + (sharing != "pooled") * (own_r @ x**2)
            pull = now.pull(m[e], tau, divided)
            if sharing != "own":
                np.add.at(self.s[e], places, r * x * pull)
            if sharing != "pooled":
                np.add.at(self.v[e, k], own_places, own_r * x * pull)
        for sums, at in ((self.sums, places), (self.own_sums[:, k], own_places)):
            for j, value in zip(at, x, strict=True):  # one after the other: two entries may share a record
                sums[0, j] += now.c * value**2
                sums[1, j] += now.e2 * value**2
                sums[2, j] = 0.99 * sums[2, j] + now.c * value**2

    @staticmethod
    def rates(sums: np.ndarray, at: np.ndarray, x: np.ndarray, now: Now) -> Any:
        H, G = sums[0, at] + now.c * x**2, sums[1, at] + now.e2 * x**2
        HF = 0.99 * sums[2, at] + now.c * x**2

        def of(rule: str, a: float) -> np.ndarray:
            if rule == "A":
                return np.asarray(a * now.per_row / np.sqrt(G + now.tiny))
            return np.full(len(x), a) if rule == "C" else 1 / (a + (HF if rule == "F" else H))

        return of
