"""Boosted trees: those of the twin, by the row, with the same bits however rows are cut and saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.twins.boosted_trees import BoostedTrees

from shoal.engine.compile import kernel
from shoal.model.state import copied, leaves
from shoal.online import boosted_trees as trees
from shoal.online.boosted_trees import LANES, STAGES, Effort, State
from shoal.online.boosted_trees.forest import N_TREES
from shoal.online.boosted_trees.state import BUFFER, FROZEN, STEP, STORED
from shoal.online.boosted_trees.training import BUDGET, cost_of


@kernel(entry=True, allocates=True)
def learn_rows(X: Any, y: Any, h: Any, task: Any, regression: bool, state: State, out: Any) -> None:
    """Answer and learn rows in order."""
    possible = np.zeros(LANES, np.uint32)
    for i in range(len(X)):
        trees.margins(X.shape[1], X[i], task[i], state, possible, out[i])
        trees.learn(X.shape[1], X[i], y[i], h[i], task[i], regression, Effort(0.0, np.inf), state)


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
        while not trees.has_room(len(part), X.shape[1], state):
            state = trees.extended(state, len(part), X.shape[1])
        at = slice(part[0], part[-1] + 1)
        learn_rows(X[at], y[at], h[at], task[at], regression, state, out[at])
        if saved:
            packed = copied(trees.pack(state))
            trees.check(packed, len(state.tasks.sums))
            state = trees.unpack(packed)
    return state, out


def test_answers_are_those_of_the_twin() -> None:
    """Of two forests; the row behind these begins to train a third."""
    for regression in (True, False):
        X, y, h, task = rows = stream(159, regression=regression)
        _, answers = learned(rows, regression=regression)
        twin = BoostedTrees(regression=regression)
        for i in range(len(y)):
            expected = twin.answer(X[i], task[i])
            assert np.allclose(answers[i], expected, rtol=0, atol=1e-9), (regression, i)
            twin.learn(X[i], y[i], h[i], task[i])
        assert len({split.column for tree in twin.forest.trees for _, split in tree.splits}) >= 5


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


@kernel(entry=True)
def asked(x: Any, task: int, state: State, possible: Any, out: Any) -> bool:
    return trees.margins(len(x), x, task, state, possible, out)


@kernel(entry=True)
def explained(x: Any, task: int, stage: int, state: State, out: Any) -> float:
    return trees.explain(len(x), x, task, stage, state, out)


def test_shares_of_columns_sum_to_the_answer_and_fall_on_what_moves_it() -> None:
    X, _, _, task = rows = stream(600, regression=True)
    state, _ = learned(rows, regression=True)
    shares, sizes = np.zeros((2, 3 + X.shape[1]))
    out, possible = np.zeros(len(STAGES)), np.zeros(LANES, np.uint32)
    for i in range(50):
        asked(X[i], task[i], state, possible, out)
        for stage, answer in zip(STAGES, out, strict=True):
            rest = explained(X[i], task[i], stage, state, shares)
            assert np.isclose(rest + shares.sum(), answer, rtol=0, atol=1e-9)
        sizes += abs(shares)
    assert min(sizes[0], sizes[3], sizes[7]) > 2 * sizes[4]  # the task, and columns 0 and 4; column 1 is noise


def test_before_the_first_training_there_is_no_answer() -> None:
    rows = stream(100, regression=False)
    state, answers = learned(rows, regression=False)
    out = np.ones(len(STAGES))
    assert not asked(rows[0][0], 0, state, np.zeros(LANES, np.uint32), out)
    assert not answers.any()
    assert not out.any()


def test_a_row_does_a_bounded_part_of_a_training() -> None:
    """Counted in additions to histograms; and at the widest, a step is worth a few milliseconds of them."""
    X, y, h, task = stream(2_000, regression=False)
    state, steps = trees.extended(trees.new_state(5), 2_000, X.shape[1]), []
    cost: Any = getattr(cost_of, "py_func", cost_of)  # itself where kernels are plain Python
    for i in range(len(y)):
        before = int(state.counters[STEP])
        learn_rows(X[i : i + 1], y[i : i + 1], h[i : i + 1], task[i : i + 1], False, state, np.zeros((1, len(STAGES))))
        n, columns = int(state.counters[FROZEN]), 3 + X.shape[1]
        after = int(state.counters[STEP]) or columns + N_TREES
        if before > 0:
            costs = [cost(step, n, columns) for step in range(before, after)]
            assert len(costs) == 1 or sum(costs) <= BUDGET
            steps.append(len(costs))
    assert min(steps) < max(steps)
    assert sum(steps) % (columns + N_TREES - 1) == 0
    widest = max(cost(step, BUFFER, 67) for step in (1, 67))
    assert widest < 4 * BUDGET


def test_columns_that_come_later_are_zero_in_rows_before() -> None:
    X, y, h, task = stream(400, regression=True)
    X = np.nan_to_num(X)
    X[:150, 4] = 0.0
    whole, _ = learned((X, y, h, task), regression=True)
    first, _ = learned((X[:150, :4].copy(), y[:150], h[:150], task[:150]), regression=True)
    first = trees.extended(first, 250, 5)
    learn_rows(X[150:], y[150:], h[150:], task[150:], True, first, np.zeros((250, len(STAGES))))
    a, b = (np.zeros(len(STAGES)) for _ in range(2))
    for i in range(20):
        for state, out in ((whole, a), (first, b)):
            asked(X[i], task[i], state, np.zeros(LANES, np.uint32), out)
        assert np.array_equal(a, b)


def test_a_task_is_forgotten() -> None:
    rows = stream(900, regression=True)
    state, _ = learned(rows, regression=True)
    others = rows[3][rows[3] != 2]
    trees.forget(state, 2)
    n = int(state.counters[STORED])
    assert np.array_equal(state.task[:n], others - (others > 2))
    assert np.array_equal(state.targets[:n, 0], rows[1][rows[3] != 2])
    assert state.counters[STEP] == 0
    assert np.isclose(state.tasks.total[0], rows[2][rows[3] != 2].sum())


@pytest.mark.parametrize(
    ("name", "value"), [("counters", 10**6), ("column", 99), ("parent", 31), ("task", 5), ("sizes", 99), ("codes", 64)]
)
def test_saved_numbers_out_of_range_are_refused(name: str, value: int) -> None:
    state, _ = learned(stream(132, regression=False), regression=False)
    packed = trees.pack(state)
    assert packed.codes.size > 0
    trees.check(packed, 5)
    array = getattr(copied(packed), name)
    array.flat[-2] = value
    with pytest.raises(ValueError, match=r"its trees|of its trees"):
        trees.check(packed._replace(**{name: array}), 5)
