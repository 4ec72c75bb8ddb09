"""Adaptive Smoothed Online Multi-Task Learning (Murugesan, Liu, Carbonell, Yang, NIPS 2016, algorithm 2).

Each task's learner k listens to the others' rows with weights R = alpha I + (1 - alpha) P, where row k of P, its
*attention*, moves towards the tasks whose rows it predicts well. In a round with losses l_kj = [1 - y_j <w_k, x_j>]_+,
every k whose trigger fires makes (eqs. 9 and 11; right-hand sides are those before the round)

    w_k  <- w_k + C sum_{j: l_kj > 0} R_kj y_j x_j          P_kj <- P_kj exp(-C (1 - alpha)/lambda l_kj) / normaliser

P is kept as log P: losses of raw counts reach 1e5, where every exp underflows and P would become 0/0.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.learner import Classifier, Learner
from shoal.losses import is_mistake
from shoal.ops import BLOCK, ROUNDS, TASKS, add_to_all, dot_all, jit, padded
from shoal.online.multitask_perceptron import MultitaskPerceptron
from shoal.rounds import FloatArray, IntArray, Rounds


class Settings(NamedTuple):
    """Hyper-parameters."""

    alpha: float  # negative: corollary 2's schedule
    C: float  # negative: corollary 2's schedule
    lam: float
    threshold: bool  # OSMTL-t
    margin_trigger: bool
    memory: bool
    follow: bool


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together: a round needs every learner on every row."""

    weights: FloatArray  # (features, tasks padded to blocks) W
    log_attention: FloatArray  # (tasks, tasks) log P
    updates: IntArray  # (tasks,) fired triggers
    clock: IntArray  # (2,) tasks, rounds


@jit
def enter(state: State, n_tasks: int) -> None:
    """A new task gets its fair share 1/K of every attention, the others keep (K-1)/K; its own is uniform."""
    for new in range(state.clock[TASKS], n_tasks):
        for k in range(new):
            for j in range(new):
                state.log_attention[k, j] += math.log(new / (new + 1.0))
            state.log_attention[k, new] = -math.log(new + 1.0)
        for j in range(new + 1):
            state.log_attention[new, j] = -math.log(new + 1.0)
    state.clock[TASKS] = max(state.clock[TASKS], n_tasks)


@jit
def schedule(settings: Settings, t: int) -> tuple[float, float]:
    """alpha and C; "auto" is corollary 2 with the doubling trick: T = 2^m in rounds 2^m to 2^(m+1) - 1."""
    root = math.sqrt(2.0 ** math.floor(math.log2(t)))
    alpha = settings.alpha if settings.alpha >= 0.0 else root / (1.0 + root)
    C = settings.C if settings.C >= 0.0 else (1.0 + root) / (root * root)
    return alpha, C


@jit
def log_sum_exp(log_p: FloatArray, tasks: IntArray) -> float:
    """log sum of exp over some entries; -inf if all are."""
    top = -np.inf
    for j in tasks:
        top = max(top, log_p[j])
    if top == -np.inf:
        return top
    total = 0.0
    for j in tasks:
        total += math.exp(log_p[j] - top)
    return top + math.log(total)


@jit
def shift_attention(log_p: FloatArray, losses: FloatArray, tasks: IntArray, rate: float, settings: Settings) -> None:
    """Move row k of log P on the present tasks, which keep their total mass (spec 2.3)."""
    mass = log_sum_exp(log_p, tasks)
    moved = np.empty(len(tasks))
    for i in range(len(tasks)):
        if settings.threshold:  # OSMTL-t: P_kj proportional to (lambda - l_kj)_+
            room = settings.lam - losses[i]
            moved[i] = math.log(room) if room > 0.0 else -np.inf
            if settings.memory:
                moved[i] += log_p[tasks[i]]
        else:  # eq. 11
            moved[i] = log_p[tasks[i]] - rate * losses[i]
    moved_mass = log_sum_exp(moved, np.arange(len(tasks)))
    if moved_mass == -np.inf:  # no task is well enough predicted: the row stays
        return
    for i in range(len(tasks)):
        log_p[tasks[i]] = moved[i] - moved_mass + mass


@jit
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    margins = np.empty(state.weights.shape[1])
    n_tasks = state.clock[TASKS]
    for row in range(len(decisions)):
        dot_all(rounds, row, state.weights, margins)
        if rounds.task[row] >= 0:
            decisions[row] = margins[rounds.task[row]]
        else:  # an unseen task: the mean over all
            decisions[row] = margins[:n_tasks].sum() / max(n_tasks, 1)


@jit
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    n_room = state.weights.shape[1]
    margins = np.empty((n_room, n_room))  # [j, k]: learner k on the row of the j-th present task
    pull = np.empty((n_room, n_room))  # [j, k]: how far that row moves learner k
    fired = np.zeros(n_room, np.bool_)
    losses = np.empty(n_room)
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        n, tasks = last - first, rounds.task[first:last]
        enter(state, tasks.max() + 1)
        state.clock[ROUNDS] += 1
        n_tasks = state.clock[TASKS]
        alpha, C = schedule(settings, state.clock[ROUNDS])
        any_fired = False
        for j in range(n):
            row = first + j
            dot_all(rounds, row, state.weights, margins[j])
            f, y = margins[j, tasks[j]], rounds.y[row]
            if len(decisions) > 0:
                decisions[row] = f
            fired[j] = y * f < 1.0 if settings.margin_trigger else is_mistake(f, y)
            any_fired |= fired[j]
        if not any_fired:
            continue
        pull[:n] = 0.0
        for i in range(n):  # learner k = tasks[i] and its own data
            k = tasks[i]
            if not fired[i]:
                continue
            state.updates[k] += 1
            for j in range(n):
                y = rounds.y[first + j]
                losses[j] = max(0.0, 1.0 - y * margins[j, k])
                if losses[j] > 0.0:
                    R = (1.0 - alpha) * math.exp(state.log_attention[k, tasks[j]])
                    if i == j:
                        R += alpha
                    pull[j, k] = C * R * y  # eq. 9
        if settings.follow and n < n_tasks:  # absent tasks borrow the rows on which their own learner erred
            borrow(rounds, first, tasks, fired, C * (1.0 - alpha), margins, pull, state)
        for j in range(n):
            add_to_all(rounds, first + j, pull[j], state.weights)
        rate = C * (1.0 - alpha) / settings.lam
        if rate > 0.0 or settings.threshold:
            for i in range(n):
                if fired[i]:
                    for j in range(n):
                        losses[j] = max(0.0, 1.0 - rounds.y[first + j] * margins[j, tasks[i]])
                    shift_attention(state.log_attention[tasks[i]], losses, tasks, rate, settings)


@jit
def borrow(
    rounds: Rounds, first: int, tasks: IntArray, fired: FloatArray, step: float, margins: FloatArray,
    pull: FloatArray, state: State,
) -> None:  # fmt: skip
    """pull of the absent learners k: C (1 - alpha) P_kj y_j on fired rows with l_kj > 0."""
    present = np.zeros(state.clock[TASKS], np.bool_)
    present[tasks] = True
    for j in range(len(tasks)):
        y = rounds.y[first + j]
        if fired[j]:
            for k in range(len(present)):
                if not present[k] and y * margins[j, k] < 1.0:
                    pull[j, k] = step * math.exp(state.log_attention[k, tasks[j]]) * y
