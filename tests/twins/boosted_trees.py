"""Boosted trees in plain NumPy: a forest is trained at once, from sums over sets of codes, and trees are walked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

BUFFER, SAMPLE, MISSING = 16_384, 4_096, 32
CODES = np.arange(64)
TREES = 120  # of each of two sizes
LARGEST, BUDGET = 131_071.0, 1_000_000


def edges_of(values: Any) -> Any:
    """At most 31, halfway between values, so that each bin holds an equal share of what is left."""
    values = np.sort(values[~np.isnan(values)])
    edges: list[Any] = []
    left, held = len(values), 0
    for below, above in pairwise(values):
        held += 1
        if below != above and len(edges) < 31 and held * (32 - len(edges)) >= left:
            edges.append(below + np.float32(0.5) * (above - below))
            left, held = left - held, 0
    return np.array(edges, np.float32)


def code_of(value: Any, edges: Any) -> int:
    return MISSING if np.isnan(value) else int(np.searchsorted(edges, value))


class Split(NamedTuple):
    gain: float
    column: int
    left: frozenset[int]  # codes


def candidates(c: int, G: Any, H: Any, h_unit: float) -> Any:
    """(candidates, 64) sets of codes that may go to the left, of sums by code; column 0 is the task."""
    there = np.flatnonzero((G != 0) | (H != 0))
    if c == 0:
        there = there[np.argsort(G[there] / (H[there] + 10 / h_unit), kind="stable")]
        place = np.full(64, len(there))
        place[there] = np.arange(len(there))
        lefts, absent = place < np.arange(1, len(there))[:, None], place == len(there)
    else:
        lefts, absent = there[there < MISSING, None] >= CODES, CODES == MISSING
        if MISSING in there:
            return np.stack([lefts, lefts | absent], axis=1).reshape(-1, 64)
    return lefts | (absent & (2 * (lefts @ H) >= H.sum())[:, None])  # what does not occur goes to the larger side


def best_split(codes: Any, g: Any, h: Any, h_unit: float) -> Split:
    """Of rows with these codes (rows, columns), gradients and curvatures in whole numbers."""
    best, least = Split(0.0, -1, frozenset()), max(10.0 * h.sum() / len(h), 1.0)
    for c in range(codes.shape[1] if len(h) >= 20 else 0):
        G, H = np.bincount(codes[:, c], g, 64), np.bincount(codes[:, c], h, 64)
        lefts = candidates(c, G, H, h_unit)
        if len(lefts) > 0:
            G_l, H_l, penalty = lefts @ G, lefts @ H, (10.0 if c == 0 else 1.0) / h_unit
            G_r, H_r = G.sum() - G_l, H.sum() - H_l
            whole = G.sum() ** 2 / (H.sum() + penalty)
            gains = G_l * G_l / (H_l + penalty) + G_r * G_r / (H_r + penalty) - whole
            gains[(H_l < least) | (H_r < least)] = 0.0
            k = int(np.argmax(gains))
            if gains[k] > best.gain:
                best = Split(gains[k], c, frozenset(np.flatnonzero(lefts[k]).tolist()))
    return best


class Tree:
    """Splits in order: the right part of the s-th is leaf s + 1."""

    def __init__(self, codes: Any, g: Any, h: Any, units: tuple[float, float], n_leaves: int) -> None:
        g_unit, h_unit = units

        def offer(rows: Any) -> Split:
            return best_split(codes[rows], g[rows], h[rows], h_unit)

        self.splits: list[tuple[int, Split]] = []
        parts = [np.arange(len(g))]
        offers = [offer(parts[0])]
        while len(parts) < n_leaves and max(each.gain for each in offers) > 0.0:
            leaf = int(np.argmax([each.gain for each in offers]))
            split, rows = offers[leaf], parts[leaf]
            goes_left = np.isin(codes[rows, split.column], list(split.left))
            self.splits.append((leaf, split))
            parts[leaf] = rows[goes_left]
            parts.append(rows[~goes_left])
            offers[leaf] = offer(parts[leaf])
            offers.append(offer(parts[-1]))
        self.values = [-0.1 * (g[rows].sum() * g_unit) / (h[rows].sum() * h_unit + 1.0) for rows in parts]

    def answer(self, codes: Any) -> float:
        leaf = 0
        for s, (parent, split) in enumerate(self.splits):
            if leaf == parent and codes[split.column] not in split.left:
                leaf = s + 1
        return float(self.values[leaf])


class Forest:
    """Of rows (task's place, values as float32), targets and weights."""

    def __init__(self, places: Any, values: Any, y: Any, h: Any, regression: bool) -> None:
        n, m = len(y), min(len(y), SAMPLE)
        self.edges = [edges_of(values[np.arange(m) * n // m, j]) for j in range(values.shape[1])]
        codes = np.array([self.codes(*row) for row in zip(places, values, strict=True)])
        mean = (h * y).sum() / h.sum()
        if not regression:
            self.intercept, self.scale = np.log(((h * y).sum() + 1) / ((h * (1 - y)).sum() + 1)), 1.0
        else:
            self.intercept, self.scale = mean, np.sqrt((h * (y - mean) ** 2).sum() / h.sum())
            y = (y - mean) / self.scale
        self.trees = []
        for n_leaves in (16, 32):
            margin = np.zeros(n) if regression else np.full(n, self.intercept)
            for _ in range(TREES):
                p = margin if regression else 1 / (1 + np.exp(-margin))
                g, c = h * (p - y), h * (1.0 if regression else p * (1 - p))
                g_unit = np.abs(g).max() / LARGEST if regression else h.max() / LARGEST
                h_unit = (1.0 if regression else 0.25) * h.max() / LARGEST
                g, c = np.floor(g / g_unit + 0.5), np.floor(c / h_unit + 0.5)
                self.trees.append(Tree(codes, g, c, (g_unit, h_unit), n_leaves))
                margin = margin + [self.trees[-1].answer(row) for row in codes]

    def codes(self, place: int, values: Any) -> Any:
        values = np.pad(values, (0, max(len(self.edges) - len(values), 0)))
        return [place, *(code_of(value, edges) for value, edges in zip(values, self.edges, strict=False))]

    def answer(self, place: int, values: Any) -> Any:
        answers = [tree.answer(self.codes(place, values)) for tree in self.trees]
        return np.array(
            [
                self.intercept + self.scale * sum(each)
                for each in (answers[:20], answers[:60], answers[:120], answers[120:])
            ]
        )


class BoostedTrees:
    """By the row."""

    def __init__(self, *, regression: bool) -> None:
        self.regression = regression
        self.rows: list[Any] = []  # task, values, target, weight
        self.last: dict[int, float] = {}
        self.due = 100
        self.steps: list[int] = []
        self.forest: Any = None
        self.places: dict[int, int] = {}
        self.next: Any = None

    def mean(self) -> float:
        return float(np.average([row[2] for row in self.rows], weights=[row[3] for row in self.rows]))

    def values(self, x: Any, task: int) -> Any:
        """The task's running mean and last value, and the row."""
        if not self.rows:
            return np.array([0.0, 0.0, *x], np.float32)
        mine, everybody = [row for row in self.rows if row[0] == task], self.mean()
        mean = (sum(h * y for *_, y, h in mine) + 3 * everybody) / (sum(h for *_, h in mine) + 3)
        return np.array([mean, self.last.get(task, everybody), *x], np.float32)

    def answer(self, x: Any, task: int) -> Any:
        return self.forest.answer(self.places.get(task, 0), self.values(x, task)) if self.forest else np.zeros(4)

    def learn(self, x: Any, y: float, h: float, task: int) -> None:
        last = self.last.get(task, self.mean() if self.rows else 0.0)
        self.rows.append((task, self.values(x, task), y, h))
        self.last[task] = y if self.regression else 0.7 * last + 0.3 * y
        if self.steps:
            self.do_steps()
        elif len(self.rows) >= self.due:
            self.train()

    def train(self) -> None:
        """Train a forest that will answer when as much work as it takes has been spread over rows."""
        tasks = sorted({row[0] for row in self.rows})
        places = {task: 1 + i for i, task in enumerate(tasks)} if len(tasks) <= 63 else {}
        frozen = self.rows[-BUFFER:]
        width = max(len(row[1]) for row in frozen)  # columns that came later are 0 in the rows before
        frozen = [(k, np.pad(values, (0, width - len(values))), y, h) for k, values, y, h in frozen]
        task, values, y, h = (np.array(part) for part in zip(*frozen, strict=True))
        forest = Forest(np.array([places.get(k, 0) for k in task]), values, y, h, self.regression)
        n, columns = len(frozen), 1 + values.shape[1]
        self.next = forest, places
        self.steps = [40 * n] * (columns - 1)
        for leaves in (16, 32):
            self.steps += [(3 * n + 2 * leaves * 64) * columns] * TREES
        self.due = len(self.rows) + max(30, len(self.rows) * 3 // 20)

    def do_steps(self) -> None:
        done = 0
        while self.steps and (done == 0 or done + self.steps[0] <= BUDGET):
            done += self.steps.pop(0)
        if not self.steps:
            self.forest, self.places = self.next
