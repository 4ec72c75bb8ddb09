"""Common weights and tasks' own, whose covariance is learned: a filter on dense rows of few columns.

The margin of a row of task k is x'(mu + u_k), u_k ~ N(0, Omega). For given mu the task's rows are summed up by
A_k = sum h x x' and B_k = sum h x t (h precisions, t targets), so P_k = (Omega^-1 + A_k)^-1, a_k = P_k B_k and
u_k = a_k - P_k A_k mu. A row tells mu through z = x - A_k P_k x, what the task does not know by itself:

    m = z'mu + x'a_k,  V = z'P_mu z + x'P_k x,  e = t - m,  d = 1/h + V
    mu <- mu + P_mu z e/d,   P_mu <- P_mu - P_mu z z'P_mu/d + 1e-6 I
    a_k <- a_k + P_k x (t - x'a_k)/(1/h + x'P_k x),   P_k <- P_k - P_k x x'P_k/(1/h + x'P_k x)

which is exact for real targets as long as Omega stays. Of these h is the row's weight, and all variances are in units
of the noise's, s^2: the mean of e^2/(1 + V), in which row n counts n times until 5,000 rows have come. A label is
matched in moments: with kappa = 1/sqrt(1 + pi V/8), p = sigma(kappa m), c = max(kappa^2 p (1 - p), 1e-4),
h = c/(1 - c V) and t = m + kappa (y - p)/c the mean and the variance of the margin are those after y = 1 with chance p.
Without the match, t and h are those of the implicit step: q = m + V (y - sigma(q)), h = sigma'(q) (at least 1e-4),
t = q + (y - sigma(q))/h.

Omega is the mean of P_k + u_k u_k'/s^2 over tasks (an EM step), all 10 + d/2 rows. Tasks follow it when their turn
comes (`refresh`). At rows 256, 512, 1024, ... all tasks do, and a parameter-expanded step (Liu, Rubin, Wu 1998) scales
Omega's deviations, which EM alone would take long for.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import OTHER, ROW, TASK
from shoal.engine.compile import kernel
from shoal.online.common.dense import add_outer, add_to, inner, product, turns, whole_turns
from shoal.online.common.standardized_targets import UNIT, clipped, from_units, in_units, learn_scale, new_scale

PRIOR = 10.0  # variance of common weights
DRIFT = 1e-6  # which they gain in a row
NOISE_ROWS = 5000.0
LEAST_NOISE = 1e-12
FLAT = 1e-4  # the least curvature of a label
KEPT = 0.2  # tasks that the first covariance counts as
LEAST = 1e-5  # variance of a task's own weight
REFRESHED = 400  # rows of the stream after which a task follows Omega
FIRST_SWEEP = 256  # rows of the stream after which all tasks do; then at twice as many
HELD = 10.0  # added to the curvature of the deviations' scales
MOST = 2.0  # times as large, or as small, a deviation becomes in a sweep
COLUMNS, SLOTS, ROWS, SINCE = range(4)  # positions in `counters`
WEIGHT, SQUARES, NOISE = range(3)  # positions in `sums`
OMEGA, PRECISION, SCATTER, OUTER = range(4)  # positions in `spread`
MEAN, PSEUDO, EFFECT = range(3)  # positions in `vectors`


LEARNED = -1.0


class Rule(NamedTuple):
    """The form of a filter: labels or real targets, and how Omega is learned."""

    regression: bool
    match: bool = True  # the moments of labels; or take the implicit step
    variance: float = LEARNED  # Omega is this times I; 0: no own weights; infinite: no common ones


class Effects(NamedTuple):
    """The learned state. Matrices have `side` columns, the first for the constant 1."""

    mean: Annotated[FloatArray, ROW]  # (side,) mu
    covariance: Annotated[FloatArray, ROW, ROW]  # (side, side) P_mu
    spread: Annotated[FloatArray, OTHER, ROW, ROW]  # (4, side, side) Omega, its inverse, sums of P_k and of u_k u_k'
    own: Annotated[FloatArray, ROW, ROW, ROW]  # (slots, side, side) P_k
    information: Annotated[FloatArray, ROW, ROW, ROW]  # (slots, side, side) A_k
    vectors: Annotated[FloatArray, ROW, OTHER, ROW]  # (slots, 3, side) a_k, B_k, u_k
    slot: Annotated[IntArray, TASK]  # 1 + the task's place in these, or 0
    rows: Annotated[FloatArray, TASK]  # of the task
    refreshed: Annotated[IntArray, TASK]  # the stream's row when it followed Omega
    scale: FloatArray  # (6,) of real targets: see `standardized_targets`
    sums: FloatArray  # (3,) rows, squares of their entries, s^2
    counters: IntArray  # (4,) columns and slots in use, rows, rows since Omega was learned


class Scratch(NamedTuple):
    """Scratch of one row."""

    v: FloatArray  # (side,) P_k x
    z: FloatArray  # x - A_k P_k x
    w: FloatArray  # P_mu z
    t: FloatArray
    matrix: FloatArray  # (side, side)
    curvature: FloatArray  # (side, side)


class Forecast(NamedTuple):
    """The forecast of a row, on the scale of targets; variances in units of the noise's."""

    margin: float  # m
    variance: float  # V
    own_variance: float  # x'P_k x


@kernel(allocates=True, alone=False)
def new_scratch(side: int) -> Scratch:
    """For matrices of this side."""
    vectors, matrices = np.zeros((4, side)), np.zeros((2, side, side))
    return Scratch(vectors[0], vectors[1], vectors[2], vectors[3], matrices[0], matrices[1])


# ---- a row -------------------------------------------------------------------------------------------------


@kernel(inline=False, alone=False)
def ask(d: int, x: FloatArray, task: int, state: Effects, scratch: Scratch) -> Forecast:
    """The forecast of a row of d entries, the constant 1 first; task -1 is unseen. x has zeros up to a whole turn."""
    n = turns(min(d, state.counters[COLUMNS]))
    slot = state.slot[task] - 1 if task >= 0 else -1
    v, z, w = scratch.v, scratch.z, scratch.w
    for j in range(n):
        z[j] = x[j]
    m = 0.0
    if slot >= 0:
        product(n, x, state.own[slot], v)
        product(n, v, state.information[slot], scratch.t)
        add_to(n, -1.0, scratch.t, z)
        m = inner(n, x, state.vectors[slot, MEAN])
    else:
        product(n, x, state.spread[OMEGA], v)
    product(n, z, state.covariance, w)
    own = max(inner(n, x, v), 0.0)
    return Forecast(m + inner(n, z, state.mean), own + max(inner(n, z, w), 0.0), own)


@kernel(alone=False)
def answer(f: Forecast, rule: Rule, state: Effects) -> float:
    """The logit kappa m, or the target as it comes."""
    if rule.regression:
        return from_units(f.margin, state.scale)
    return f.margin / math.sqrt(1.0 + math.pi / 8.0 * f.variance)


class Site(NamedTuple):
    """A row's label as a target of its margin, with a precision."""

    error: float  # t - m
    precision: float  # h


@kernel(alone=False)
def matched(m: float, V: float, y: float) -> Site:
    """The normal target that gives the margin its mean and variance after the label."""
    kappa = 1.0 / math.sqrt(1.0 + math.pi / 8.0 * V)
    p = 1.0 / (1.0 + math.exp(-kappa * m))
    c = max(kappa * kappa * p * (1.0 - p), FLAT)
    return Site(kappa * (y - p) / c, c / (1.0 - c * V))


@kernel(inline=False, alone=False)
def implicit(m: float, V: float, y: float) -> Site:
    """The target of the implicit step, whose q is found by Newton's method between its bounds."""
    low, high = (m, m + V) if y > 0.5 else (m - V, m)
    q, p = m, 0.0
    for _ in range(60):
        p = 1.0 / (1.0 + math.exp(-q))
        g = q - m - V * (y - p)
        if g > 0.0:
            high = q
        else:
            low = q
        new = q - g / (1.0 + V * p * (1.0 - p))
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - q) <= 1e-14 * (1.0 + abs(q)):
            break
        q = new
    c = max(p * (1.0 - p), FLAT)
    return Site((y - p) * (1.0 / c + V), c)


@kernel(inline=False, alone=False)
def learn(
    d: int, x: FloatArray, y: float, h: float, task: int, rule: Rule, f: Forecast, state: Effects, scratch: Scratch
) -> None:
    """Learn a row that counts h times; `f` is its forecast in this state, as `scratch` has it.

    y is 0 or 1, or a real target as it comes. There is room for d columns; for the task, if memory has some.
    """
    changed = open_row(d, x, h, task, rule.variance, state)
    ratio, shift = learn_scale(y, h, state.scale) if rule.regression else (1.0, 0.0)
    if ratio != 1.0 or shift != 0.0:
        rescale(ratio, shift, state)
        changed = True
    done = 0.0
    while done < h:  # a label that counts h times is 1, 1, 2, 4, ... labels, one after the other
        if changed or done > 0.0:
            f = ask(d, x, task, state, scratch)
        part = h if rule.regression else min(max(done, 1.0), h - done)
        if rule.regression:
            s2 = state.sums[NOISE]
            e = clipped(in_units(y, state.scale) - f.margin, s2 * (1.0 + f.variance), h, state.scale)
            rate = 2.0 * h / min(state.sums[WEIGHT] + 1.0 + h, 2.0 * NOISE_ROWS + h)
            state.sums[NOISE] = max(s2 + rate * (e * e / (1.0 + f.variance) - s2), LEAST_NOISE)
            step(x, Site(e, h), task, rule, f, state, scratch)
        else:
            site = matched(f.margin, f.variance, y) if rule.match else implicit(f.margin, f.variance, y)
            step(x, Site(site.error, part * site.precision), task, rule, f, state, scratch)
        done += part
    if state.slot[task] > 0:
        before = state.rows[task]
        state.rows[task] += h
        if is_due(before, state.rows[task]) or state.counters[ROWS] - state.refreshed[task] >= REFRESHED:
            refresh(state.slot[task] - 1, state, scratch)
            state.refreshed[task] = state.counters[ROWS]
    state.counters[ROWS] += 1
    state.counters[SINCE] += 1
    if rule.variance == LEARNED:
        follow(rule, state, scratch)


@kernel(alone=False)
def step(x: FloatArray, site: Site, task: int, rule: Rule, f: Forecast, state: Effects, scratch: Scratch) -> None:
    """Learn a row."""
    used, h, e = state.counters[COLUMNS], site.precision, site.error
    n, d = turns(used), 1.0 / site.precision + f.variance
    add_to(n, e / d, scratch.w, state.mean)
    add_outer(n, -1.0 / d, scratch.w, state.covariance)
    if rule.variance == LEARNED:
        for j in range(used):
            state.covariance[j, j] += DRIFT
    slot = state.slot[task] - 1
    if slot >= 0:
        a, target, d = state.vectors[slot, MEAN], f.margin + e, 1.0 / h + f.own_variance
        add_to(n, (target - inner(n, x, a)) / d, scratch.v, a)
        add_outer(n, -1.0 / d, scratch.v, state.own[slot])
        add_outer(n, -1.0 / d, scratch.v, state.spread[SCATTER])
        add_outer(n, h, x, state.information[slot])
        add_to(n, h * target, x, state.vectors[slot, PSEUDO])


@kernel(alone=False)
def is_due(before: float, rows: float) -> bool:
    """Whether a task has had its row 1, 2, 3, 4, 8, 16, ... by now."""
    at = 1.0
    while at <= before:
        at += 1.0 if at < 4.0 else at
    return rows >= at


# ---- columns, tasks and the scale of targets --------------------------------------------------------------------


@kernel(inline=False, alone=False)
def open_row(d: int, x: FloatArray, h: float, task: int, variance: float, state: Effects) -> bool:
    """Count the row, let in its new columns and its task; return whether there are any."""
    for j in range(d):
        state.sums[SQUARES] += h * x[j] * x[j]
    state.sums[WEIGHT] += h
    first, n_slots, c = state.counters[COLUMNS], state.counters[SLOTS], variance
    if variance == LEARNED:
        c = first_variance(state)
    for j in range(first, d):
        if variance == math.inf:
            c = PRIOR
        else:
            state.covariance[j, j] = PRIOR
        state.spread[OMEGA, j, j] = c
        state.spread[PRECISION, j, j] = 1.0 / c if c > 0.0 else 0.0
        state.spread[SCATTER, j, j] = n_slots * c
        for k in range(n_slots):
            state.own[k, j, j] = c
    used = max(first, d)
    state.counters[COLUMNS] = used
    is_new = state.slot[task] == 0 and n_slots < len(state.own)
    if is_new:
        state.counters[SLOTS] = state.slot[task] = n_slots + 1
        for i in range(used):
            add_to(turns(used), 1.0, state.spread[OMEGA, i], state.own[n_slots, i])
            add_to(turns(used), 1.0, state.spread[OMEGA, i], state.spread[SCATTER, i])
    return bool(is_new or first < d)


@kernel(alone=False)
def first_variance(state: Effects) -> float:
    """The first variance of a task's own weights: tasks' margins vary by 1."""
    return float(state.sums[WEIGHT] / state.sums[SQUARES])


@kernel(inline=False, alone=False)
def rescale(ratio: float, shift: float, state: Effects) -> None:
    """The scale of targets moves."""
    n = turns(state.counters[COLUMNS])
    add_to(n, ratio - 1.0, state.mean, state.mean)
    state.mean[0] += shift
    for k in range(state.counters[SLOTS]):
        a, B, u = state.vectors[k, MEAN], state.vectors[k, PSEUDO], state.vectors[k, EFFECT]
        for j in range(n):
            B[j] = ratio * B[j] + shift * state.information[k, j, 0]
            u[j] *= ratio
        product(n, B, state.own[k], a)
    for i in range(n):
        for j in range(n):
            state.spread[OUTER, i, j] *= ratio * ratio


# ---- the covariance of tasks' own weights ------------------------------------------------------------------------


@kernel(inline=False, alone=False)
def invert(used: int, n: int, matrix: FloatArray, top: FloatArray) -> None:
    """M <- M^-1 of a positive definite one, by Gauss and Jordan without pivots; columns from `used` on are zero."""
    for k in range(used):
        row, pivot = matrix[k], 1.0 / matrix[k, k]
        for j in range(n):
            top[j] = row[j] * pivot
        top[k] = pivot
        eliminate(k, used, n, top, matrix)
        for j in range(n):
            row[j] = top[j]


@kernel(disjoint=True, inline=False, alone=False)
def eliminate(k: int, used: int, n: int, top: FloatArray, matrix: FloatArray) -> None:
    """Each row less its k-th number times the top; row k, which is the top, included."""
    for i in range(used):
        row, factor = matrix[i], matrix[i, k]
        for j in range(n):
            row[j] -= factor * top[j]
        row[k] = -factor * top[k]  # written last: the processor waits where a vector is read of which a number is new


@kernel(inline=False, alone=False)
def refresh(slot: int, state: Effects, scratch: Scratch) -> None:
    """A task follows Omega and mu."""
    used, own, P = state.counters[COLUMNS], state.own[slot], scratch.matrix
    n, scatter, outer = turns(used), state.spread[SCATTER], state.spread[OUTER]
    a, B, u = state.vectors[slot, MEAN], state.vectors[slot, PSEUDO], state.vectors[slot, EFFECT]
    for i in range(used):
        for j in range(n):
            P[i, j] = state.spread[PRECISION, i, j] + state.information[slot, i, j]
    invert(used, n, P, scratch.t)
    for i in range(used):
        for j in range(n):
            scatter[i, j] += P[i, j] - own[i, j]
            own[i, j] = P[i, j]
    add_outer(n, -1.0, u, outer)
    product(n, B, own, a)
    product(n, state.mean, state.information[slot], scratch.t)
    product(n, scratch.t, own, u)
    for j in range(n):
        u[j] = a[j] - u[j]
    add_outer(n, 1.0, u, outer)


@kernel(inline=False, alone=False)
def follow(rule: Rule, state: Effects, scratch: Scratch) -> None:
    """Learn Omega, if it is time."""
    rows, used = state.counters[ROWS], state.counters[COLUMNS]
    for j in range(used):
        scratch.z[j] = 1.0
    if rows >= FIRST_SWEEP and rows & (rows - 1) == 0:
        expand(rule, state, scratch)
        learn_omega(rule, state, scratch)
        for slot in range(state.counters[SLOTS]):
            refresh(slot, state, scratch)
    elif state.counters[SINCE] >= 10 + used // 2:
        learn_omega(rule, state, scratch)


@kernel(alone=False)
def noise(rule: Rule, state: Effects) -> float:
    """s^2; labels have none apart from their curvature."""
    return float(state.sums[NOISE]) if rule.regression else 1.0


@kernel(inline=False, alone=False)
def learn_omega(rule: Rule, state: Effects, scratch: Scratch) -> None:
    """An EM step; deviations are multiplied by `scratch.z`."""
    used, n_slots, z = state.counters[COLUMNS], state.counters[SLOTS], scratch.z
    omega, precision, unit = state.spread[OMEGA], state.spread[PRECISION], 1.0 / noise(rule, state)
    for i in range(used):
        for j in range(used):
            mean = (state.spread[SCATTER, i, j] + unit * state.spread[OUTER, i, j]) / (n_slots + 2.0)
            omega[i, j] = z[i] * z[j] * mean
        omega[i, i] += KEPT * first_variance(state) / (n_slots + 2.0) + LEAST
        for j in range(used):
            precision[i, j] = omega[i, j]
    invert(used, turns(used), precision, scratch.t)
    state.counters[SINCE] = 0


@kernel(inline=False, alone=False)
def expand(rule: Rule, state: Effects, scratch: Scratch) -> None:
    """`scratch.z` <- the factors of the deviations, after all tasks have followed Omega.

    Were each u_k multiplied by columns z, the expected fit would be best at z = 1 + M^-1 g with
    M = sum_k A_k o (P_k + u_k u_k'/s^2) and g_j = (Omega^-1 sum_k (P_k + u_k u_k'/s^2))_jj - tasks.
    """
    used, n_slots, M, z = state.counters[COLUMNS], state.counters[SLOTS], scratch.curvature, scratch.z
    n, unit = turns(used), 1.0 / noise(rule, state)
    for i in range(used):
        for j in range(n):
            M[i, j] = 0.0
        M[i, i] = HELD
    for k in range(n_slots):
        refresh(k, state, scratch)
        u = state.vectors[k, EFFECT]
        for i in range(used):
            for j in range(n):
                M[i, j] += state.information[k, i, j] * (state.own[k, i, j] + unit * u[i] * u[j])
    g, sums = scratch.w, state.spread
    for i in range(n):
        g[i] = 0.0
    for i in range(used):
        g[i] = inner(n, sums[PRECISION, i], sums[SCATTER, i]) + unit * inner(n, sums[PRECISION, i], sums[OUTER, i])
        g[i] -= n_slots
    invert(used, n, M, scratch.t)
    product(n, g, M, z)
    for j in range(used):
        z[j] = min(max(1.0 + z[j], 1.0 / MOST), MOST)


# ---- room --------------------------------------------------------------------------------------------------------


@kernel(entry="too")
def slot_bytes(side: int) -> int:
    """Bytes of a task's own weights and their matrices."""
    return 8 * side * (2 * side + 3)


def new_effects(n_tasks: int, side: int, slots: int) -> Effects:
    """Nothing learned."""
    return Effects(
        aligned_zeros((side,)),
        aligned_zeros((side, side)),
        aligned_zeros((4, side, side)),
        aligned_zeros((slots, side, side)),
        aligned_zeros((slots, side, side)),
        aligned_zeros((slots, 3, side)),
        np.zeros(n_tasks, np.int64),
        np.zeros(n_tasks),
        np.zeros(n_tasks, np.int64),
        new_scale(),
        np.array([0.0, 0.0, 1.0]),
        np.zeros(4, np.int64),
    )


IN_SIDES = 6  # fields, the first, whose last axes have a matrix's side


def with_room(state: Effects, side: int, slots: int) -> Effects:
    """The same with matrices of this side for `slots` tasks, all that are in use; the same arrays if they fit."""
    if side == len(state.mean) and slots == len(state.own):
        return state
    found = new_effects(0, side, slots)
    for old, new in zip(state[:IN_SIDES], found[:IN_SIDES], strict=True):
        block = tuple(slice(min(lengths)) for lengths in zip(old.shape, new.shape, strict=True))
        new[block] = old[block]
    return _with_rest_of(state, found)


def _with_rest_of(state: Effects, matrices: Effects) -> Effects:
    return matrices._replace(
        slot=state.slot,
        rows=state.rows,
        refreshed=state.refreshed,
        scale=state.scale,
        sums=state.sums,
        counters=state.counters,
    )


def forget(state: Effects, k: int) -> None:
    """The task's own weights go, the last slot's take their place. Common weights keep what they learned."""
    at, last = int(state.slot[k]) - 1, int(state.counters[SLOTS]) - 1
    if at < 0:
        return
    u = state.vectors[at, EFFECT]
    state.spread[SCATTER] -= state.own[at]
    state.spread[OUTER] -= np.outer(u, u)
    for array in (state.own, state.information, state.vectors):
        array[at] = array[last]
        array[last] = 0.0
    state.slot[state.slot == last + 1] = at + 1
    state.slot[k] = 0
    state.counters[SLOTS] = last


def pack(state: Effects) -> Effects:
    """The part in use, to be saved."""
    return with_room(state, int(state.counters[COLUMNS]), int(state.counters[SLOTS]))


def check(packed: Effects) -> None:
    """Raise ValueError unless sizes, places and divisors are in range."""
    used, n = (int(packed.counters[at]) for at in (COLUMNS, SLOTS))
    empty = new_effects(0, max(used, 0), max(n, 0))
    if any(old.shape != new.shape for old, new in zip(packed[:IN_SIDES], empty[:IN_SIDES], strict=True)):
        raise ValueError("its matrices are of another size than it says")
    slots = packed.slot[packed.slot > 0]
    if (packed.slot < 0).any() or (slots > n).any() or len(np.unique(slots)) != len(slots):
        raise ValueError("places of tasks' own weights are out of range")
    if any(not (numbers >= 0).all() for numbers in (packed.counters, packed.rows, packed.refreshed, packed.sums)):
        raise ValueError("its numbers of rows are negative")
    if not (packed.sums[NOISE] > 0.0 and packed.scale[UNIT] > 0.0):
        raise ValueError("its noise or its unit is not positive")


def unpack(packed: Effects) -> Effects:
    """The inverse of `pack`."""
    return with_room(packed, whole_turns(packed.covariance.shape[1]), len(packed.own))
