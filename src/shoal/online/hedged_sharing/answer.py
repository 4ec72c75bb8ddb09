"""From the experts' margins to the answer: young tasks lean on all, then both mixings and each task's stretch."""

from __future__ import annotations

import math

from shoal.engine.compile import kernel
from shoal.online.hedged_sharing.experts import (
    FIRST_CROSSED,
    FIRST_FULL,
    HEAD,
    LEANED,
    LEANING,
    LEANS_ON,
    N_LOGITS,
    OF_ALL,
    OF_TASK,
    ONE,
)  # fmt: skip
from shoal.online.hedged_sharing.mixing import (
    DRIFT,
    LEAST_DRIFT,
    LIMIT,
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
    sigmoids,
    within,
)  # fmt: skip
from shoal.online.hedged_sharing.scaling import FEW
from shoal.online.hedged_sharing.sleeping import ALL_POOLED, INDEPENDENT, LEARNED
from shoal.online.hedged_sharing.state import State
from shoal.online.hedged_sharing.targets import ROWS as ERROR_ROWS
from shoal.online.hedged_sharing.targets import noise
from shoal.online.hedged_sharing.work import (
    FOR_GOOD,
    LARGEST_BEFORE,
    NARROW_ROW,
    OWN_AWAKE,
    POOLED_AWAKE,
    UNIT_BEFORE,
    Settings,
    Work,
)  # fmt: skip

EVERYBODY, STACK, MIXED, STRETCHED = range(4)  # positions in `Work.forecast`
FLAT = 1e-5  # the least curvature of the second mixing
NEAR = 10.0  # deviations of the noise


@kernel(alone=False)
def wake(work: Work) -> None:
    """Who is awake on this row."""
    awake, facts = work.awake, work.facts
    for e in range(len(awake)):
        awake[e] = work.part[e]
    awake[FIRST_FULL] *= facts[POOLED_AWAKE]
    awake[FIRST_FULL + 1] *= facts[OWN_AWAKE]
    for e in range(FIRST_CROSSED, len(awake)):
        awake[e] *= facts[NARROW_ROW]


@kernel(alone=False)
def few_awake(work: Work) -> bool:
    """Whether all after the first FEW inputs of the second mixing sleep."""
    return bool(work.facts[OWN_AWAKE] == 0.0 and work.facts[NARROW_ROW] == 0.0)


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
    limit = 2.0 * work.facts[LARGEST_BEFORE] if settings.regression else LIMIT
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
        unit = work.facts[UNIT_BEFORE]
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
    newton_step(
        state.regression, state.covariance, work.z, error, curvature, y, work.forecast[STACK], label_times,
        drift, work.facts[FOR_GOOD] > 0.0, work.direction,
    )  # fmt: skip


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
    before = work.facts[UNIT_BEFORE]
    learn_stretch(state.stretch[task], work.forecast[MIXED], y, variance, h, True)
    gaussian(work.p, work.awake, y, variance)
    precision = before / variance * before  # of the forecast in units of the deviation
    error = h * ((y - work.forecast[STACK]) / before * precision)
    mix(task, error, h * precision, y, h, 1.0, settings, state, work)
