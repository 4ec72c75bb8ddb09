"""Models that their own rows pull to a common one,  u_k <- (1 - alpha) u_k + alpha g,  without O(d) work a sparse row.

While g_j stands still, n pulls are one: u_kj <- g_j + (1 - alpha)^n (u_kj - g_j). So a sparse row of task k pulls its
own features at once, and for all others the pull stays *pending*. Before g moves on a feature, all pending pulls are
applied there: O(nnz K) a row instead of O(d). A dense row pulls all features anyway, and then nothing is pending.

A model may have several parts (a Gaussian has two) that are pulled together.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS, feature_at, row_bounds
from shoal.model.algorithm import Setup, Size

CountArray = NDArray[np.int16]
MOST = 32_000  # pulls that may be pending on a feature; at this many the task's whole model is applied: d/32,000 a row

ROUNDING = 1e-12  # the common model has often just repaired the row: the loss is then zero but for this


class State(NamedTuple):
    """Task models lie feature by feature: before g moves on a feature, all of them are read there."""

    common: Annotated[FloatArray, OTHER, FEATURE]  # (parts, features) the global model g
    own: Annotated[FloatArray, OTHER, FEATURE, TASK]  # (parts, features, tasks) u, less the pulls that are pending
    applied: Annotated[CountArray, FEATURE, TASK]  # pulls that u_kj has had
    pulls: Annotated[IntArray, TASK]  # pulls of the task since nothing was pending
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


def allocate(n_parts: int, setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    common, own = np.zeros((n_parts, n_features)), np.zeros((n_parts, n_features, n_tasks))
    applied, pulls = np.zeros((n_features, n_tasks), np.int16), np.zeros(n_tasks, np.int64)
    return State(common, own, applied, pulls, updates=np.zeros(n_tasks, np.int64), counters=np.zeros(3, np.int64))


def powers_of(keep: float) -> FloatArray:
    """(MOST + 2,) the weights keep^n that n pulls leave to the old value."""
    return np.asarray(float(keep) ** np.arange(MOST + 2), np.float64)


@kernel(entry="too", allocates=True)
def may_be_pending(rounds: Rounds, powers: FloatArray, pulls: IntArray) -> bool:
    """Whether any task may have a pull pending while these rows are learned."""
    return bool(powers[1] != 1.0) and (rounds.width == 0 or bool(np.any(pulls > 0)))


@kernel
def part_at(i: int, j: int, k: int, powers: FloatArray, state: State) -> float:
    """Part i of u_kj, with the pulls pending."""
    pending = state.pulls[k] - state.applied[j, k]
    value: float = state.own[i, j, k]
    if pending > 0:
        value = state.common[i, j] + powers[pending] * (value - state.common[i, j])
    return value


@kernel
def _take(pending: int, j: int, k: int, powers: FloatArray, state: State) -> None:
    common, own = state.common, state.own
    for i in range(len(own)):
        own[i, j, k] = common[i, j] + powers[pending] * (own[i, j, k] - common[i, j])


@kernel
def apply_pending(rounds: Rounds, row: int, powers: FloatArray, state: State) -> None:
    """Apply the pulls pending on the row's features to all tasks: to be called before the common model moves there."""
    first, last = row_bounds(rounds, row)
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        for k in range(state.counters[TASKS]):
            pending = state.pulls[k] - state.applied[j, k]
            if pending > 0:
                _take(pending, j, k, powers, state)
                state.applied[j, k] = state.pulls[k]


@kernel
def pull(rounds: Rounds, row: int, k: int, powers: FloatArray, state: State) -> None:
    """u_k <- (1 - alpha) u_k + alpha g: done on the row's features, pending on the others."""
    applied, pulls = state.applied, state.pulls
    if powers[1] == 1.0:  # alpha = 0
        return
    if rounds.width > 0 or pulls[k] == MOST:
        for j in range(len(applied)):
            _take(pulls[k] - applied[j, k] + 1, j, k, powers, state)
            applied[j, k] = 0
        pulls[k] = 0
        return
    pulls[k] += 1
    first, last = row_bounds(rounds, row)
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        _take(pulls[k] - applied[j, k], j, k, powers, state)
        applied[j, k] = pulls[k]


def with_pulls(powers: FloatArray, state: State) -> FloatArray:
    """(parts, features, tasks) all models with the pulls that are pending."""
    pending = state.pulls - state.applied
    g, u = state.common[:, :, None], state.own
    return np.asarray(np.where(pending == 0, u, g + powers[pending] * (u - g)))


def retune(before: Setup, after: Setup, state: State) -> None:
    """New hyper-parameters: apply the pending pulls with the old ones."""
    settle(before, state)


def settle(setup: Setup, state: State) -> None:
    """Apply all pulls that are pending."""
    if state.pulls.any():
        state.own[...] = with_pulls(setup.settings.powers, state)
        state.applied[...] = 0
        state.pulls[...] = 0


def check(setup: Setup, state: State, size: Size) -> None:
    """Raise ValueError unless all numbers of pulls are in range."""
    if state.pulls.size and not (state.pulls.min() >= 0 and state.pulls.max() <= MOST):
        raise ValueError("its numbers of pulls are out of range")
    if state.applied.size and not (state.applied.min() >= 0 and (state.applied <= state.pulls).all()):
        raise ValueError("its numbers of applied pulls are out of range")
