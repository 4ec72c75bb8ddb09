"""Boosted trees: the same bits however rows are cut and saved."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.engine.compile import kernel
from shoal.model.state import copied, leaves
from shoal.online import boosted_trees as trees
from shoal.online.boosted_trees import LANES, STAGES, State


@kernel(entry=True, allocates=True)
def learn_rows(X: Any, y: Any, h: Any, task: Any, regression: bool, state: State, out: Any) -> None:
    """Answer and learn rows in order."""
    possible = np.zeros(LANES, np.uint16)
    for i in range(len(X)):
        trees.margins(X.shape[1], X[i], task[i], state, possible, out[i])
        trees.learn(X.shape[1], X[i], y[i], h[i], task[i], regression, state)


def stream(n: int, *, regression: bool, n_tasks: int = 5, seed: int = 0) -> tuple[Any, ...]:
    """Rows of numbers, missing ones, categories and rare indicators; a few tasks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(4, size=n)
    X[:, 2] = rng.random(n) < 0.05
    X[:, 3] = np.where(rng.random(n) < 0.2, np.nan, X[:, 3])
    task = rng.integers(n_tasks, size=n)
    f = X[:, 0] * X[:, 4] + (task % 3 - 1) * X[:, 4] + np.where(np.isnan(X[:, 3]), 1.0, X[:, 2])
    y = f + 0.3 * rng.normal(size=n) if regression else (f + rng.normal(size=n) > 0) * 1.0
    return X, y, rng.integers(1, 3, size=n) * 1.0, task


def learned(rows: tuple[Any, ...], *, regression: bool, cuts: Any = (), saved: bool = False) -> tuple[State, Any]:
    """The state after the rows, cut into chunks, and the answers before each."""
    X, y, h, task = rows
    state, out = trees.new_state(int(task.max()) + 1), np.zeros((len(y), len(STAGES)))
    for part in np.split(np.arange(len(y)), cuts):
        while not fits(len(part), X.shape[1], state):
            state = trees.extended(state, len(part), X.shape[1])
        at = slice(part[0], part[-1] + 1)
        learn_rows(X[at], y[at], h[at], task[at], regression, state, out[at])
        if saved:
            packed = copied(trees.pack(state))
            trees.check(packed, len(state.tasks.sums))
            state = trees.unpack(packed)
    return state, out


@kernel(entry=True)
def fits(n: int, d: int, state: State) -> bool:
    return trees.has_room(n, d, state)


def test_any_chunking_and_saving_at_any_row_gives_the_same_bits() -> None:
    for regression in (True, False):
        rows = stream(700, regression=regression, seed=int(regression))
        cuts = np.unique(np.random.default_rng(1).integers(1, 700, size=150))
        whole, answers = learned(rows, regression=regression)
        parts, others = learned(rows, regression=regression, cuts=cuts, saved=True)
        assert np.array_equal(answers, others)
        assert np.abs(answers[-1]).min() > 0.0
        for a, b in zip(leaves(trees.pack(whole)), leaves(trees.pack(parts)), strict=True):
            assert np.array_equal(a, b, equal_nan=True)
