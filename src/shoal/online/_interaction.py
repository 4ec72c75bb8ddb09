"""The multitask Perceptron's loops for a given interaction matrix or task graph: w_j <- w_j + y B[j, i] x.

Weights lie feature by feature, so that an update touches one contiguous row of all tasks for each non-zero.
Columns of B come from the matrix, or for large sparse graphs from the factors of A by two triangular solves.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, add_to_all, dot, open_weighted
from shoal.model.algorithm import Algorithm, Setup, Size
from shoal.model.parameters import Params
from shoal.online.common.relation_rates import named_tasks
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

    weights: Annotated[FloatArray, FEATURE, TASK]  # W
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


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
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, state)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    column = np.empty(state.weights.shape[1])
    for r in range(len(rounds.starts) - 1):
        first, last = open_weighted(rounds, r, state.counters)
        step = settings.eta / math.sqrt(state.counters[ROUNDS]) if settings.sqrt_step else settings.eta
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, state)
        for row in range(first, last):
            f = margin(rounds, row, state)
            slope = losses.derivative(settings.loss, f, rounds.y[row], settings.epsilon)
            if slope != 0.0 and (len(rounds.weight) == 0 or rounds.weight[row] > 0.0):
                rates_column(settings.factors, rounds.task[row], column)
                if len(rounds.weight) > 0:
                    rate, y = column[rounds.task[row]], rounds.y[row]
                    column *= losses.weighted_step(settings.loss, step, f, y, settings.epsilon, rate, rounds, row)
                else:
                    column *= losses.step_along(settings.loss, -step * slope, rounds, row)
                add_to_all(rounds, row, column, state.weights)
                state.updates[rounds.task[row]] += 1


def settings(p: Params) -> Settings:
    factors = p.relation.factors(unit_own_rate=p.loss != losses.PERCEPTRON)
    return Settings(p.loss, p.eta, p.step == "sqrt", getattr(p, "epsilon", 0.0), factors)


def allocate(setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    weights = np.zeros((n_features, n_tasks), setup.params.dtype)
    return State(weights, np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


ALGORITHM = Algorithm[State](
    parameters={},  # those of the learner
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="every step moves the weights of all tasks that the relation ties to the row's",
    named_tasks=named_tasks,
    no_weights="",
)
