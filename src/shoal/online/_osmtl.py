"""The state and the kernels of OSMTL; `osmtl` has the equations."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LANES, FloatArray, IntArray
from shoal.engine.axes import FEATURE, INFINITE, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, add, add_to_all, dot, dot_all


class Settings(NamedTuple):
    """Hyper-parameters."""

    alpha: float  # negative: corollary 2's schedule
    C: float  # negative: corollary 2's schedule
    lam: float
    threshold: bool  # OSMTL-t
    margin_trigger: bool
    memory: bool
    follow: bool
    epsilon: float  # regression's zone without loss; negative: classification
    given: FloatArray  # (K, K) P as the user gave it, or (0, 0): it is learned


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together: a round needs every learner on every row."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # W, tasks padded to blocks
    log_attention: Annotated[FloatArray, TASK, TASK, INFINITE]  # log P, or (0, 0) where P is given
    updates: Annotated[IntArray, TASK]  # fired triggers
    counters: IntArray  # (3,) tasks, rounds, features


class Work(NamedTuple):
    """Scratch of one call: as many numbers as tasks, or as rows of the largest round."""

    margins: FloatArray  # [j, k]: learner k on the row of the j-th present task
    pull: FloatArray  # [j, k]: how far that row moves learner k
    losses: FloatArray
    moved: FloatArray
    fired: NDArray[np.bool_]
    present: NDArray[np.bool_]
    places: IntArray  # 0, 1, 2, ...


@kernel(entry=True)
def enter(state: State, n_tasks: int) -> None:
    """New tasks get their fair share 1/K of every attention, the others keep what is left; their own is uniform."""
    known = state.counters[TASKS]
    if n_tasks <= known:
        return
    state.counters[TASKS] = n_tasks
    if len(state.log_attention) == 0:  # a given attention stays as it is
        return
    share = -math.log(n_tasks)
    for k in range(known):
        for j in range(known):
            state.log_attention[k, j] += math.log(known / n_tasks)
        for j in range(known, n_tasks):
            state.log_attention[k, j] = share
    for k in range(known, n_tasks):
        for j in range(n_tasks):
            state.log_attention[k, j] = share


@kernel(entry=True)
def schedule(settings: Settings, t: int) -> tuple[float, float]:
    """alpha and C; "auto" is corollary 2 with the doubling trick: T = 2^m in rounds 2^m to 2^(m+1) - 1."""
    root = math.sqrt(2.0 ** math.floor(math.log2(t)))
    alpha = settings.alpha if settings.alpha >= 0.0 else root / (1.0 + root)
    C = settings.C if settings.C >= 0.0 else (1.0 + root) / (root * root)
    return alpha, C


@kernel
def loss_of(f: float, y: float, settings: Settings) -> float:
    """l_kj: [1 - y f]_+, or in regression [|y - f| - epsilon]_+."""
    return max(0.0, 1.0 - y * f) if settings.epsilon < 0.0 else max(0.0, abs(y - f) - settings.epsilon)


@kernel
def direction(f: float, y: float, settings: Settings) -> float:
    """Where l_kj falls: y, or in regression the sign of y - f; 0 where there is no loss."""
    if settings.epsilon < 0.0:
        return y if y * f < 1.0 else 0.0
    return math.copysign(1.0, y - f) if abs(y - f) > settings.epsilon else 0.0


@kernel(entry=True)
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


@kernel
def shift_attention(log_p: FloatArray, tasks: IntArray, rate: float, settings: Settings, work: Work) -> None:
    """Move row k of log P on the present tasks, which keep their total mass (spec 2.3)."""
    losses, moved = work.losses, work.moved
    mass = log_sum_exp(log_p, tasks)
    for i in range(len(tasks)):
        if settings.threshold:  # OSMTL-t: P_kj proportional to (lambda - l_kj)_+, here over lambda, which may be inf
            slack = 1.0 - losses[i] / settings.lam
            moved[i] = math.log(slack) if slack > 0.0 else -np.inf
            if settings.memory:
                moved[i] += log_p[tasks[i]]
        else:  # eq. 11
            moved[i] = log_p[tasks[i]] - rate * losses[i]
    moved_mass = log_sum_exp(moved, work.places[: len(tasks)])
    if moved_mass == -np.inf:  # no task is well enough predicted: the row stays
        return
    for i in range(len(tasks)):
        log_p[tasks[i]] = moved[i] - moved_mass + mass


@kernel
def decide_rows(rounds: Rounds, state: State, decisions: FloatArray, margins: FloatArray) -> None:
    n_tasks = state.counters[TASKS]
    for row in range(len(decisions)):
        if rounds.task[row] >= 0:
            decisions[row] = dot(rounds, row, state.weights[:, rounds.task[row]])
        else:  # an unseen task: the mean over all
            dot_all(rounds, row, state.weights, margins)
            total = 0.0
            for k in range(n_tasks):
                total += margins[k]
            decisions[row] = total / max(n_tasks, 1)


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    decide_rows(rounds, state, decisions, np.empty(state.weights.shape[1]))


@kernel
def answer_all(
    rounds: Rounds, first: int, tasks: IntArray, everyone: bool, n_fired: int, weights: FloatArray, work: Work
) -> None:
    """Margins of the learners that fired on all rows of the round; of all learners where that costs no more."""
    for j in range(len(tasks)):
        if everyone or n_fired * LANES >= 2 * len(tasks):
            dot_all(rounds, first + j, weights, work.margins[j])
        else:
            for i in range(len(tasks)):
                if work.fired[i] and i != j:
                    work.margins[j, tasks[i]] = dot(rounds, first + j, weights[:, tasks[i]])


@kernel
def spread(rounds: Rounds, row: int, pull: FloatArray, n_tasks: int, W: FloatArray) -> None:
    """w_k <- w_k + pull_k x; column by column where few learners move."""
    n_moving = 0
    for k in range(n_tasks):
        n_moving += int(pull[k] != 0.0)
    if n_moving * LANES >= 2 * n_tasks:
        add_to_all(rounds, row, pull, W)
    elif n_moving > 0:
        for k in range(n_tasks):
            if pull[k] != 0.0:
                add(rounds, row, pull[k], W[:, k])


@kernel
def answer_own(
    rounds: Rounds, first: int, tasks: IntArray, settings: Settings, W: FloatArray, decisions: FloatArray, work: Work
) -> int:
    """Every row's margin under its own learner; returns how many fire."""
    n_fired = 0
    for j in range(len(tasks)):
        row = first + j
        f, y = dot(rounds, row, W[:, tasks[j]]), rounds.y[row]
        work.margins[j, tasks[j]] = f
        if len(decisions) > 0:
            decisions[row] = f
        work.fired[j] = direction(f, y, settings) != 0.0 if settings.margin_trigger else is_mistake(f, y)
        n_fired += int(work.fired[j])
    return n_fired


@kernel
def attention(k: int, j: int, settings: Settings, state: State) -> float:
    """P_kj, as it was given or as it is learned."""
    return settings.given[k, j] if len(settings.given) > 0 else math.exp(state.log_attention[k, j])


@kernel
def collect(
    rounds: Rounds, first: int, tasks: IntArray, alpha: float, C: float, settings: Settings, state: State, work: Work
) -> None:
    """pull of the learners that fired, from all rows with l_kj > 0."""
    n, pull = len(tasks), work.pull
    for j in range(n):
        for k in range(pull.shape[1]):
            pull[j, k] = 0.0
    for i in range(n):  # learner k = tasks[i] and its own data
        k = tasks[i]
        if not work.fired[i]:
            continue
        state.updates[k] += 1
        for j in range(n):
            step = direction(work.margins[j, k], rounds.y[first + j], settings)
            if step != 0.0:
                R = (1.0 - alpha) * attention(k, tasks[j], settings, state)  # eq. 3
                if i == j:
                    R += alpha
                pull[j, k] = C * R * step  # eq. 9


@kernel
def borrow(
    rounds: Rounds, first: int, tasks: IntArray, rate: float, settings: Settings, state: State, work: Work
) -> None:
    """pull of the absent learners k: C (1 - alpha) P_kj y_j on fired rows with l_kj > 0; `rate` is C (1 - alpha)."""
    n_tasks, present = state.counters[TASKS], work.present
    for k in range(n_tasks):
        present[k] = False
    for j in range(len(tasks)):
        present[tasks[j]] = True
    for j in range(len(tasks)):
        if work.fired[j]:
            for k in range(n_tasks):
                step = 0.0 if present[k] else direction(work.margins[j, k], rounds.y[first + j], settings)
                if step != 0.0:
                    work.pull[j, k] = rate * attention(k, tasks[j], settings, state) * step


@kernel
def learn_rounds(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, work: Work) -> None:
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        n, tasks = last - first, rounds.task[first:last]
        n_tasks = state.counters[TASKS]
        for k in tasks:
            n_tasks = max(n_tasks, k + 1)
        enter(state, n_tasks)
        state.counters[ROUNDS] += 1
        alpha, C = schedule(settings, state.counters[ROUNDS])
        n_fired = answer_own(rounds, first, tasks, settings, state.weights, decisions, work)
        if n_fired == 0:
            continue
        answer_all(rounds, first, tasks, settings.follow, n_fired, state.weights, work)
        collect(rounds, first, tasks, alpha, C, settings, state, work)
        if settings.follow and n < n_tasks:  # absent tasks borrow the rows on which their own learner erred
            borrow(rounds, first, tasks, C * (1.0 - alpha), settings, state, work)
        for j in range(n):
            spread(rounds, first + j, work.pull[j], n_tasks, state.weights)
        rate = C * (1.0 - alpha) / settings.lam
        if len(settings.given) == 0 and (rate > 0.0 or settings.threshold):
            for i in range(n):
                if work.fired[i]:
                    for j in range(n):
                        work.losses[j] = loss_of(work.margins[j, tasks[i]], rounds.y[first + j], settings)
                    shift_attention(state.log_attention[tasks[i]], tasks, rate, settings, work)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    tasks, most = state.weights.shape[1], 1
    for r in range(len(rounds.starts) - 1):
        most = max(most, rounds.starts[r + 1] - rounds.starts[r])
    work = Work(
        np.empty((most, tasks)), np.empty((most, tasks)), np.empty(most), np.empty(most), np.empty(most, np.bool_),
        np.empty(tasks, np.bool_), np.arange(most),
    )  # fmt: skip
    learn_rounds(rounds, settings, state, decisions, work)
