"""The state, the kernels and the algorithm of `LocalGlobalGaussian`, which has the equations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.random import QUERIES, SEED, uniform
from shoal.engine.rounds import Rounds
from shoal.engine.rows import dot, open_round
from shoal.model.algorithm import Algorithm, Setup, Size, as_needed, doubled
from shoal.model.parameters import SEEDED, Params, Reader, one_of, positive, whole
from shoal.model.state import in_capacity
from shoal.online import _feature_maps as maps
from shoal.online._gaussian import DIAGONAL, FULL, Covariance, condition, prior, prior_variance, pull, variance

LARGEST_STEP = 1e300  # of g: finite whatever the margin, so that 0 times it is 0


class Settings(NamedTuple):
    """Hyper-parameters."""

    lam: float
    eps: float
    h: float
    hinge: bool
    form: int  # of covariances: FULL, DIAGONAL or a rank
    all_queried: bool  # covariances take in every queried row, not only mistaken ones
    post: bool  # theta with the covariances after the row
    shared: bool  # is there a global Gaussian
    personal: bool  # and local ones (the baselines lack one of them)


class State(NamedTuple):
    """Means and factors of covariances, the feature map, and who was asked for labels. D features after the map."""

    shared_mean: FloatArray  # (D,) mu_0
    mean: Annotated[FloatArray, TASK, OTHER]  # (tasks, D) mu_k
    shared_factor: FloatArray  # S_0, see `Covariance`
    shared_inner: FloatArray
    shared_directions: IntArray
    factor: Annotated[FloatArray, TASK, OTHER, OTHER]  # S_k
    inner: Annotated[FloatArray, TASK, OTHER, OTHER]
    directions: Annotated[IntArray, TASK]
    points: FloatArray  # the feature map's, see `MapState`
    offsets: FloatArray
    cholesky: FloatArray
    ridge_cholesky: FloatArray
    used: IntArray
    random: NDArray[np.uint64]  # (3,) see `shoal.engine.random`
    queries: Annotated[IntArray, TASK]  # labels asked for
    granted: Annotated[IntArray, TASK]  # those that `query_one` asked for and that have not come yet
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(allocates=True)
def of_all(state: State) -> Covariance:
    """S_0."""
    return Covariance(state.shared_factor, state.shared_inner, state.shared_directions)


@kernel(allocates=True)
def of_task(state: State, k: int) -> Covariance:
    """S_k."""
    return Covariance(state.factor[k], state.inner[k], state.directions[k : k + 1])


@kernel
def margin(rounds: Rounds, row: int, state: State) -> float:
    """<mu_0 + mu_k, x>; an unseen task has mu_k = 0."""
    f, k = dot(rounds, row, state.shared_mean), rounds.task[row]
    return f + dot(rounds, row, state.mean[k]) if k >= 0 else f


@kernel
def doubt(rounds: Rounds, row: int, settings: Settings, state: State, work: FloatArray) -> float:
    """xᵀ (S_0 + S_k) x; an unseen task has S_k = I."""
    k, lam, form, post, v = rounds.task[row], settings.lam, settings.form, settings.post, 0.0
    if settings.shared:
        v += variance(rounds, row, of_all(state), lam, form, post, work)
    if settings.personal and k >= 0:
        v += variance(rounds, row, of_task(state, k), lam, form, post, work)
    elif settings.personal:
        v += prior_variance(rounds, row, lam, form, post)
    return v


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, state)


@kernel(entry=True, allocates=True)
def thetas(rounds: Rounds, settings: Settings, state: State, out: FloatArray) -> None:
    """How sure the model is of each row beyond its doubt: |f| - xᵀ (S_0 + S_k) x/(4 eps)."""
    work = np.empty(len(state.shared_mean))
    for row in range(len(out)):
        v = doubt(rounds, row, settings, state, work)
        out[row] = abs(margin(rounds, row, state)) - v / (4.0 * settings.eps)


@kernel(entry=True)
def wants_label(theta: float, h: float, random: NDArray[np.uint64]) -> bool:
    """Yes where theta <= 0, else with probability h/(h + theta)."""
    return theta <= 0.0 or uniform(random, QUERIES) < h / (h + theta)


@kernel
def asks(rounds: Rounds, row: int, f: float, settings: Settings, state: State, work: FloatArray) -> bool:
    """Is the row's label asked for, or has it been? Counts the question."""
    k = rounds.task[row]
    if state.granted[k] > 0:
        state.granted[k] -= 1
        return True
    if settings.h < np.inf:
        v = doubt(rounds, row, settings, state, work)
        if not wants_label(abs(f) - v / (4.0 * settings.eps), settings.h, state.random):
            return False
    state.queries[k] += 1
    return True


@kernel
def step(y: float, f: float, v: float, settings: Settings) -> float:
    """g y of eq. 3, v = xᵀ S_k x with the new S_k."""
    loss = max(0.0, 1.0 - y * f)
    g = min(0.5 / settings.eps, loss / v) if settings.hinge else min(loss / (settings.eps + v), LARGEST_STEP)
    return y * g


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    lam, form, work, S_0 = settings.lam, settings.form, np.empty(len(state.shared_mean)), of_all(state)
    asked, mistaken = np.empty(len(state.updates), np.bool_), np.empty(len(state.updates), np.bool_)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        for row in range(first, last):  # a task's own Gaussian: nothing that the round's other rows look at
            k, y, f = rounds.task[row], rounds.y[row], margin(rounds, row, state)
            if len(decisions) > 0:
                decisions[row] = f
            mistaken[row - first] = is_mistake(f, y)
            asked[row - first] = asks(rounds, row, f, settings, state, work)
            if not asked[row - first] or not (mistaken[row - first] or settings.all_queried):
                continue
            if settings.personal:
                S_k = of_task(state, k)
                v = condition(rounds, row, S_k, lam, form, work)  # eq. 2
                if mistaken[row - first]:
                    pull(rounds, row, S_k, step(y, f, v, settings), form, work, state.mean[k])  # eq. 3
            else:
                v = variance(rounds, row, S_0, lam, form, False, work)
            state.updates[k] += mistaken[row - first] and v > 0.0
        if not settings.shared:
            continue
        for row in range(first, last):  # eq. 4: Woodbury's formula is these steps one after the other
            if asked[row - first] and (mistaken[row - first] or settings.all_queried):
                condition(rounds, row, S_0, lam, form, work)
        for row in range(first, last):  # eq. 5
            if asked[row - first] and mistaken[row - first]:
                scale = rounds.y[row] / (2.0 * settings.eps)
                pull(rounds, row, S_0, scale, form, work, state.shared_mean)


def settings_for(shared: bool, personal: bool) -> Callable[[Params], Settings]:
    """With the global Gaussian, the local ones, or both."""

    def settings(p: Params) -> Settings:
        return Settings(
            p.lam, p.eps, p.h, p.loss == "hinge", p.covariance, p.update == "all", p.theta == "post",
            shared, personal,
        )  # fmt: skip

    return settings


def seed_of(p: Params) -> int:
    """The model's seed; a learner that draws nothing has seed 0, so that equal models are equal."""
    draws = p.h < math.inf or p.features.kind in (maps.RFF, maps.NYSTROM)
    return p.random_state.seed if draws or p.random_state.given else 0


def allocate(setup: Setup, size: Size) -> State:
    return with_seed(setup, size, seed_of(setup.params))


def with_seed(setup: Setup, size: Size, seed: int) -> State:
    n_tasks, form = size.tasks, setup.settings.form
    D = maps.n_mapped(setup.params.features, size.features)
    try:
        S_0, S = prior(None, D, form), prior(n_tasks, D, form)
        return State(
            np.zeros(D), np.zeros((n_tasks, D)), S_0.factor, S_0.inner, S_0.used, S.factor, S.inner, S.used,
            *maps.allocate(setup.params.features, size.features, seed), np.array([seed, 0, 0], np.uint64),
            np.zeros(n_tasks, np.int64), np.zeros(n_tasks, np.int64), np.zeros(n_tasks, np.int64),
            np.zeros(3, np.int64),
        )  # fmt: skip
    except MemoryError:
        raise ValueError(
            f"no memory for the covariances of {n_tasks} tasks over {D} features; use covariance='diagonal' or a rank"
        ) from None


def grow(setup: Setup, state: State, size: Size) -> State:
    grown: State = in_capacity(state, with_seed(setup, size, int(state.random[SEED])))
    return grown


def capacity(setup: Setup, have: Size, need: Size) -> Size:
    """A transformer takes the features that it was fitted on."""
    expected = getattr(setup.params.features.transformer, "n_features_in_", need.features)
    if need.features != expected:
        raise ValueError(f"X has {need.features} features, but the transformer is expecting {expected} features")
    return (doubled if setup.params.features.transformer is None else as_needed)(setup, have, need)


def check(setup: Setup, state: State, size: Size) -> None:
    if not 0 <= state.used[0] <= len(state.offsets) or state.granted.min(initial=0) < 0:
        raise ValueError("the number of its dictionary's rows is out of range")
    directions = np.append(state.directions, state.shared_directions)
    if not ((directions >= 0) & (directions <= len(state.shared_inner))).all():
        raise ValueError("the number of its covariances' directions is out of range")


def retune(before: Setup, after: Setup, state: State) -> None:
    old, new = before.params.features, after.params.features
    if (old.kernel, old.gamma, old.ridge) != (new.kernel, new.gamma, new.ridge):
        raise ValueError("this hyper-parameter shapes the state: it can only change before fit")


NAMED = one_of({"full": FULL, "diagonal": DIAGONAL})
RANK = whole(1, "a rank")
FORM = Reader(f"{NAMED.text} or {RANK.text}", lambda value: (NAMED if isinstance(value, str) else RANK).convert(value))
PARAMETERS = {
    "lam": positive(),
    "eps": positive(),
    "h": positive(infinite=True),
    "loss": one_of(("squared_hinge", "hinge")),
    "covariance": FORM,
    "features": maps.FEATURE_MAP,
    "update": one_of(("mistaken", "all")),
    "theta": one_of(("post", "pre")),
    "random_state": SEEDED,
}


def algorithm_for(shared: bool, personal: bool, *, mapped: bool) -> Algorithm[State]:
    """On rows as they come, or on their features."""
    return Algorithm[State](
        parameters=PARAMETERS,
        settings=settings_for(shared, personal),
        allocate=allocate,
        learn=learn,
        decide=decide,
        exchange="covariances of different rows multiply: neither a mean nor a sum of copies is that of all rows",
        no_weights="its posterior takes each row in once, and its paper weighs no row",
        simultaneous=True,
        capacity=capacity,
        grow=grow,
        check=check,
        pieces=maps.pieces if mapped else None,
        may_fail=lambda p: p.features.transformer is not None or callable(p.features.kernel),
        retune=retune,
        confidence=thetas,
        linear=not mapped,
    )
