"""The multitask Perceptron's loops for a given interaction matrix or task graph: w_j <- w_j + y B[j, i] x.

Weights lie feature by feature, so that an update touches one contiguous row of all tasks for each non-zero.
Columns of B come from the matrix, or for large sparse graphs from the factors of A by two triangular solves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, add_to_all, dot, open_round
from shoal.model.validation import BAD, good_until
from shoal.relations import Factors, rates_column


class Settings(NamedTuple):
    """Hyper-parameters."""

    loss: int
    eta: float
    sqrt_step: bool
    epsilon: float
    factors: Factors


class State(NamedTuple):
    """All tasks are known from the start."""

    weights: FloatArray  # (features, tasks) W
    updates: IntArray  # (tasks,)
    clock: IntArray  # (2,) tasks, rounds


@kernel
def margin(rounds: Rounds, row: int, state: State) -> float:
    """<w_i, x>; for an unseen task the mean over all tasks."""
    if rounds.task[row] >= 0:
        return dot(rounds, row, state.weights[:, rounds.task[row]])
    total = 0.0
    n_tasks = state.weights.shape[1]
    for k in range(n_tasks):
        total += dot(rounds, row, state.weights[:, k])
    return float(total / n_tasks)


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    good = 0
    for row in range(len(decisions)):
        good = good_until(rounds, good, row + 1)
        if good == BAD:
            return BAD
        decisions[row] = margin(rounds, row, state)
    return len(decisions)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    column = np.empty(state.weights.shape[1])
    good = rounds.starts[0]
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        good = good_until(rounds, good, last)
        if good == BAD:
            return BAD
        open_round(rounds, r, state.clock)
        step = settings.eta / math.sqrt(state.clock[ROUNDS]) if settings.sqrt_step else settings.eta
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, state)
        for row in range(first, last):
            f = margin(rounds, row, state)
            slope = losses.derivative(settings.loss, f, rounds.y[row], settings.epsilon)
            if slope != 0.0:
                rates_column(settings.factors, rounds.task[row], column)
                column *= losses.step_along(settings.loss, -step * slope, rounds, row)
                add_to_all(rounds, row, column, state.weights)
                state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1
