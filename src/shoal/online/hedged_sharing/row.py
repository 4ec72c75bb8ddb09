"""One row: read, answered and learned.

What needs no answer comes first and may run ahead in another thread: scaling the row, crossing it, finding its records,
and the experts with full matrices, which learn from their own forecasts. The answer goes from the experts' margins,
those of young tasks leaning on the pooled ones, through both mixings and the task's stretch. The linear experts and the
mixtures learn from it.
"""

from __future__ import annotations

import math

from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights.record_table import add_all, find_all
from shoal.online.hedged_sharing.crossing import crossed_margins, crossed_row, learn_bins, step_crossed
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    ALWAYS,
    FEATURES,
    FIRST_CROSSED,
    FIRST_FULL,
    HEAD,
    INDEPENDENT,
    LEANED,
    LEANING,
    LEANS_ON,
    LEARNED,
    N_LOGITS,
    NARROW,
    NEVER,
    OF_ALL,
    OF_TASK,
    ONE,
    OWN_PART,
    SHARED_PART,
    is_narrow,
    learn_seen,
    new_features,
    parts_of,
)
from shoal.online.hedged_sharing.kalman import (
    OWN_DRIFT,
    PLACES,
    POOLED_DRIFT,
    SLOTS,
    full_margin,
    full_row,
    give_places,
    kalman_step,
    matrix_bytes,
)
from shoal.online.hedged_sharing.linear import Forecasts, Row, plain_margins, step_plain
from shoal.online.hedged_sharing.mixing import (
    DRIFT,
    LEAST_DRIFT,
    LIMIT,
    Observed,
    Regression,
    bayes,
    doubt,
    doubted,
    gaussian,
    inner,
    labels,
    learn_doubt,
    learn_stretch,
    logit_of,
    mixture,
    newton_step,
    sharpen,
    sigmoid,
    sigmoids,
    times,
    within,
)
from shoal.online.hedged_sharing.scaling import (
    ERROR_ROWS,
    FEW,
    L1,
    LARGEST,
    MEAN,
    ROWS,
    deviation,
    learn_error,
    learn_scale,
    learn_target,
    noise,
    scaled_row,
)
from shoal.online.hedged_sharing.scratch import (
    MISSING,
    N_CROSSED,
    N,
    Settings,
    Work,
)
from shoal.online.hedged_sharing.state import State

EVERYBODY, STACK, MIXED, STRETCHED = range(4)  # positions in `Work.forecast`
FLAT = 1e-5  # the least curvature of the second mixing
NEAR = 10.0  # deviations of the noise


@kernel(alone=False)
def wake(work: Work) -> None:
    """Who is awake on this row."""
    awake, ahead = work.awake, work.ahead[0]
    for e in range(len(awake)):
        awake[e] = work.part[e]
    awake[FIRST_FULL] *= ahead.pooled_awake
    awake[FIRST_FULL + 1] *= ahead.own_awake
    for e in range(FIRST_CROSSED, len(awake)):
        awake[e] *= ahead.crossed


@kernel(alone=False)
def few_awake(work: Work) -> bool:
    """Whether all after the first FEW inputs of the second mixing sleep."""
    return not (work.ahead[0].own_awake or work.ahead[0].crossed)


@kernel(alone=False)
def lean(trust: float, work: Work) -> None:
    """A young task's own experts lean on the pooled ones."""
    for i in range(len(LEANING)):
        own, pooled = work.margins[LEANING[i]], work.margins[LEANS_ON[i]]
        work.logits[LEANED[i]] = trust * own + (1.0 - trust) * pooled


@kernel(alone=False)
def near_the_heaviest(state: State, work: Work) -> None:
    """Pull forecasts of real targets to within 10 deviations of the noise from that of the heaviest expert.

    The fixed share leaves some weight to the worst of them, which may be off by what targets were long ago.
    """
    p, awake, heaviest, most = work.p, work.awake, 0, -1.0
    reach = NEAR * math.sqrt(noise(state.errors))
    if state.errors[ERROR_ROWS] < FEW or reach == 0.0:
        return
    for e in range(len(awake)):
        if awake[e] * state.weights[e] > most:
            heaviest, most = e, awake[e] * state.weights[e]
    center = p[heaviest]
    for e in range(len(awake)):
        p[e] = center + within(reach, p[e] - center)
        work.z[HEAD + e] = p[e] * awake[e]


@kernel(entry=True)
def constant_input(unit: float, state: State) -> float:
    """Of the second mixing: 10 deviations of the noise, at most 1, so that its drift is no larger than the noise."""
    return min(1.0, NEAR * math.sqrt(noise(state.errors)) / unit) if unit > 0.0 else 1.0


@kernel(alone=False)
def forecast(task: int, settings: Settings, state: State, work: Work) -> float:
    """The answer: a logit, or a target less the mean. `work.margins` holds the experts' margins."""
    margins, z, p, awake = work.margins, work.z, work.p, work.awake
    wake(work)
    few = few_awake(work)
    limit = 2.0 * work.ahead[0].largest_before if settings.regression else LIMIT
    for e in range(len(awake)):
        margins[e] = within(limit, margins[e]) * awake[e]
    rows = state.task_rows[task] if task >= 0 else 0
    lean(rows / (rows + settings.young) if settings.sharing == LEARNED else 1.0, work)
    if settings.regression:
        for e in range(N_LOGITS):
            work.forecasts[e] = work.logits[e]
    else:
        sigmoids(work.logits, few, work.forecasts)
    for e in range(len(awake)):
        z[HEAD + e], p[e] = margins[e], work.chances[e]
    for i in range(len(LEANING)):
        e = LEANING[i]
        z[HEAD + e], p[e] = work.logits[LEANED[i]] * awake[e], work.forecasts[LEANED[i]]
    if settings.regression:
        near_the_heaviest(state, work)
    everybody = mixture(state.weights, p, awake)
    mine = mixture(state.task_weights[task], p, awake) if rows > 0 and settings.sharing != ALL_POOLED else everybody
    if settings.sharing == INDEPENDENT:
        everybody = mine
    work.forecast[EVERYBODY] = everybody
    if settings.sharing == ALL_POOLED:
        rows = state.rows[0]
    trust = rows / (rows + settings.fresh)
    if not settings.regression:
        z[OF_TASK], z[OF_ALL] = logit_of(mine), logit_of(everybody)
        z[ONE] = 1.0
        stack = within(LIMIT, inner(state.regression, z, few))
        everybody = z[OF_ALL]
    else:
        z[OF_TASK], z[OF_ALL] = mine, everybody
        unit = work.ahead[0].unit_before
        for i in range(len(z)):
            z[i] = z[i] / unit if unit > 0.0 else 0.0
        z[ONE] = constant_input(unit, state)
        stack = within(limit, unit * inner(state.regression, z, few))
    work.forecast[STACK] = stack
    work.forecast[MIXED] = trust * stack + (1.0 - trust) * everybody
    own = task >= 0 and settings.sharing != ALL_POOLED
    f = float((1.0 + (state.stretch[task, 0] if own else 0.0)) * work.forecast[MIXED])
    work.forecast[STRETCHED] = f
    return f if settings.regression else doubted(f, doubt(state.surprises))


@kernel(alone=False)
def mix(
    task: int, error: float, curvature: float, y: float, h: float, rho: float, settings: Settings, state: State,
    work: Work,
) -> None:  # fmt: skip
    """Move both mixtures; `work.p` now holds each expert's likelihood. `h` is how often the row counts."""
    if h != 1.0:
        sharpen(work.p, state.weights, work.awake, h)
    prior = work.uniform if settings.sharing == INDEPENDENT else state.weights
    if state.task_rows[task] == 0:
        for e in range(len(prior)):  # a new task starts where all together are
            state.task_weights[task, e] = prior[e]
    bayes(state.weights, work.p, work.awake, work.uniform)
    bayes(state.task_weights[task], work.p, work.awake, prior)
    label_times = 1.0 if settings.regression or h == 1.0 else rho * h
    drift = max(DRIFT / (state.rows[0] + 1), LEAST_DRIFT if settings.sharing == INDEPENDENT else 0.0)
    seen = Observed(error, curvature, y, work.forecast[STACK], label_times)
    regression = Regression(state.regression, state.covariance, work.direction)
    newton_step(work.z, seen, drift, work.ahead[0].for_good, regression)


@kernel(alone=False)
def mix_label(task: int, y: float, q: float, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn a label, 0 or 1; q is the second mixing's probability.

    With chance rho the label says something about its row, and so much of it moves the second mixing: where classes
    come apart its curvature is nearly 0, and one wrong label would turn its weights round.
    """
    eps = doubt(state.surprises)
    happened = (1.0 - eps) * (q if y > 0.5 else 1.0 - q)
    rho = happened / (happened + 0.5 * eps)
    if rho > 0.5:
        learn_stretch(state.stretch[task], work.forecast[MIXED], y, 1.0, h, False)
    labels(work.p, y > 0.5, eps)
    mix(task, rho * (y - q), h * max(rho * q * (1.0 - q), FLAT), y, h, rho, settings, state, work)
    learn_doubt(work.forecast[STRETCHED], y, h, state.surprises)


@kernel(alone=False)
def mix_real(task: int, y: float, variance: float, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn a real target less its mean."""
    before = work.ahead[0].unit_before
    learn_stretch(state.stretch[task], work.forecast[MIXED], y, variance, h, True)
    gaussian(work.p, work.awake, y, variance)
    precision = before / variance * before  # of the forecast in units of the deviation
    error = h * ((y - work.forecast[STACK]) / before * precision)
    mix(task, error, h * precision, y, h, 1.0, settings, state, work)


TINY, LEAST = 1e-12, 1e-37  # AdaGrad's first step divides by a root that may be zero; float32 has hardly any less

# ---- what needs no answer ----------------------------------------------------------------------------------


@kernel(alone=False)
def read_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> int:
    """Scale and cross the row, find its records, and ask the full experts; return its new features."""
    task, ahead = rounds.task[row], work.ahead[0]
    narrow = is_narrow(1, 0, state.seen)  # before this row
    n = scaled_row(rounds, row, state.scale, narrow, not settings.regression, work.row)
    feature = work.row.feature
    missing = find_all(state.own, -1 if settings.sharing == ALL_POOLED else task, feature[:n], work.found)
    new, parts = new_features(n, feature, state.scale.features, state.seen), parts_of(settings.sharing)
    interacts = settings.interactions == ALWAYS or (settings.interactions == NARROW and is_narrow(n, new, state.seen))
    work.counts[N], work.counts[N_CROSSED], work.counts[MISSING] = n, 0, missing
    ahead.crossed = interacts
    if interacts:
        ahead.serial = state.crossed.serial[task] if task >= 0 and parts & OWN_PART else 0
        work.counts[N_CROSSED] = crossed_row(
            rounds, row, n, work.row, state.crossed.bins, ahead.serial,
            len(state.crossed.shared) - 1, len(state.crossed.own) - 1, work.crossed,
        )  # fmt: skip
    features = state.seen[FEATURES] + new
    ahead.pooled_awake = ahead.own_awake = False
    ahead.for_good = features > settings.full_features and settings.interactions == NEVER
    if features <= settings.full_features:
        _ask_full(task, n, parts, settings, state, work)
    targets = state.targets
    ahead.mean_before, ahead.unit_before, ahead.largest_before = targets[MEAN], deviation(targets), targets[LARGEST]
    return new


@kernel(alone=False)
def _ask_full(task: int, n: int, parts: int, settings: Settings, state: State, work: Work) -> None:
    full, ahead = state.full, work.ahead[0]
    full_row(n, work.row.x, work.row.feature, full, work.full)
    if parts & SHARED_PART:
        ahead.pooled_awake, ahead.pooled_margin = True, full_margin(n, work.full, full.pooled)
    if parts & OWN_PART:
        slot = full.slot[task] if task >= 0 else 0
        most = settings.memory // matrix_bytes(full.pooled.shape[1], full.pooled.itemsize)
        ahead.own_awake = slot > 0 or full.counters[SLOTS] < most
        ahead.own_margin = full_margin(n, work.full, full.own[slot - 1]) if slot > 0 else 0.0


@kernel(alone=False)
def learn_ahead(rounds: Rounds, row: int, new: int, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn what needs no answer."""
    task, n, ahead, y = rounds.task[row], work.counts[N], work.ahead[0], rounds.y[row]
    if settings.sharing != ALL_POOLED and work.counts[MISSING] > 0:  # one model for all needs no pairs
        add_all(state.own, task, work.row.feature[:n], work.counts[MISSING], work.found)
    if ahead.crossed:
        learn_bins(rounds, row, state.crossed.bins)
        if state.crossed.serial[task] == 0:  # from its next row on the task has records
            state.crossed.last[0] += 1
            state.crossed.serial[task] = state.crossed.last[0]
    limit = LIMIT
    if settings.regression:
        limit = 2.0 * ahead.largest_before
        ahead.target = learn_target(y, h, state.targets)
        ahead.unit_after = deviation(state.targets)
    else:
        ahead.target = 0.5 * (y + 1.0)
    y = ahead.target
    if state.seen[FEATURES] + new <= settings.full_features:
        _learn_full(task, n, y, h, limit, settings, state, work)
    learn_scale(state.scale, work.row, n, h, is_narrow(1, 0, state.seen))
    ahead.mean_l1 = state.scale.sums[L1] / state.scale.sums[ROWS]
    learn_seen(n, new, state.seen)


@kernel(alone=False)
def _learn_full(
    task: int, n: int, y: float, h: float, limit: float, settings: Settings, state: State, work: Work
) -> None:
    full, ahead = state.full, work.ahead[0]
    give_places(n, work.row.x, work.row.feature, full, work.full)
    used = full.counters[PLACES]
    if ahead.pooled_awake:
        m = within(limit, ahead.pooled_margin)
        kalman_step(n, work.full, m, y, h, POOLED_DRIFT, used, settings.regression, full.pooled)
    if ahead.own_awake:
        if full.slot[task] == 0:
            full.counters[SLOTS] += 1
            full.slot[task] = full.counters[SLOTS]
        m = within(limit, ahead.own_margin)
        kalman_step(n, work.full, m, y, h, OWN_DRIFT, used, settings.regression, full.own[full.slot[task] - 1])


# ---- what needs the answer ---------------------------------------------------------------------------------


@kernel(alone=False)
def answer(task: int, settings: Settings, state: State, work: Work) -> float:
    """The decision on a row that has been read."""
    n, n_crossed, row, ahead = work.counts[N], work.counts[N_CROSSED], work.row, work.ahead[0]
    parts = parts_of(settings.sharing)
    plain_margins(n, row, work.found.place, state.shared, state.own.records, work.plain_lanes, work.margins, parts)
    if ahead.crossed:
        crossed = state.crossed
        crossed_margins(
            n_crossed, work.crossed, crossed.shared, crossed.own, work.crossed_lanes, work.margins[FIRST_CROSSED:],
            parts,
        )  # fmt: skip
    work.margins[FIRST_FULL], work.margins[FIRST_FULL + 1] = ahead.pooled_margin, ahead.own_margin
    return forecast(task, settings, state, work)


@kernel(alone=False)
def learn_answer(task: int, y: float, h: float, f: float, settings: Settings, state: State, work: Work) -> None:
    """Learn what needs the answer f: the linear experts and the mixtures."""
    ahead, e = work.ahead[0], y - work.forecast[EVERYBODY]
    if settings.regression:
        unit = ahead.unit_after
        e = learn_error(e, h, unit, state.errors)
        y, squared = work.forecast[EVERYBODY] + e, h * e * e
        tiny = max(TINY * unit * unit, LEAST)
        _step(task, Row(y, h, h, squared, unit / ahead.mean_l1, tiny, True), settings, state, work)
        variance = noise(state.errors)
        if variance > 0.0 and ahead.unit_before > 0.0:
            mix_real(task, y, variance, h, settings, state, work)
    else:
        q = sigmoid(f)
        curvature = times(h, q * (1.0 - q))
        _step(task, Row(y, h, curvature, h * e * e, 1.0 / ahead.mean_l1, TINY, False), settings, state, work)
        mix_label(task, y, sigmoid(work.forecast[STACK]), h, settings, state, work)
    state.rows[0] += 1
    state.task_rows[task] += 1
    state.updates[task] += 1


@kernel(alone=False)
def _step(task: int, row: Row, settings: Settings, state: State, work: Work) -> None:
    n, n_crossed, parts = work.counts[N], work.counts[N_CROSSED], parts_of(settings.sharing)
    step_plain(
        n, work.row, work.found.place, row, Forecasts(work.margins, work.chances, work.awake), state.shared,
        state.own.records, work.plain_lanes, parts,
    )  # fmt: skip
    if work.ahead[0].crossed:
        first, crossed = FIRST_CROSSED, state.crossed
        forecasts = Forecasts(work.margins[first:], work.chances[first:], work.awake[first:])
        step_crossed(
            n_crossed, work.crossed, work.ahead[0].serial, row, forecasts, crossed.shared, crossed.own,
            work.crossed_lanes, parts,
        )  # fmt: skip


@kernel(alone=False)
def decide_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    """The decision, of which nothing is learned."""
    read_row(rounds, row, settings, state, work)
    return float(state.targets[MEAN] + answer(rounds.task[row], settings, state, work))
