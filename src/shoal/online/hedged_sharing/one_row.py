"""One row: read, answered and learned.

A row is learned in two steps. What needs no answer comes first and may run ahead in another thread: scaling the row,
crossing it, finding its records, and the full experts, which learn from their own forecasts.
"""

from __future__ import annotations

from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights.record_table import add_all, find_all
from shoal.online.hedged_sharing.answer import EVERYBODY, STACK, forecast, mix_label, mix_real
from shoal.online.hedged_sharing.crossed.bins import learn_bins
from shoal.online.hedged_sharing.crossed.experts import crossed_margins, step_crossed
from shoal.online.hedged_sharing.crossed.row import crossed_row
from shoal.online.hedged_sharing.experts import FIRST_CROSSED, FIRST_FULL
from shoal.online.hedged_sharing.full.experts import (
    DRIFT,
    OWN_DRIFT,
    PLACES,
    SLOTS,
    full_margin,
    full_row,
    give_places,
    kalman_step,
    matrix_bytes,
)  # fmt: skip
from shoal.online.hedged_sharing.linear import Row
from shoal.online.hedged_sharing.mixing import LIMIT, sigmoid, times, within
from shoal.online.hedged_sharing.plain.experts import plain_margins, step_plain
from shoal.online.hedged_sharing.scaling import L1, ROWS, learn_scale, scaled_row
from shoal.online.hedged_sharing.sleeping import (
    ALL_POOLED,
    ALWAYS,
    FEATURES,
    NARROW,
    NEVER,
    OWN_PART,
    SHARED_PART,
    is_narrow,
    learn_seen,
    new_features,
    parts_of,
)  # fmt: skip
from shoal.online.hedged_sharing.state import State
from shoal.online.hedged_sharing.targets import (
    LARGEST,
    MEAN,
    deviation,
    learn_error,
    learn_target,
    noise,
)  # fmt: skip
from shoal.online.hedged_sharing.work import (
    FOR_GOOD,
    LARGEST_BEFORE,
    MEAN_BEFORE,
    MEAN_L1,
    MISSING,
    N_CROSSED,
    NARROW_ROW,
    OWN_AWAKE,
    OWN_MARGIN,
    POOLED_AWAKE,
    POOLED_MARGIN,
    SERIAL,
    TARGET,
    UNIT_AFTER,
    UNIT_BEFORE,
    N,
    Settings,
    Work,
)  # fmt: skip

TINY, LEAST = 1e-12, 1e-37  # AdaGrad's first step divides by a root that may be zero; float32 has hardly any less

# ---- what needs no answer ----------------------------------------------------------------------------------


@kernel(alone=False)
def read_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> int:
    """Scale and cross the row, find its records, and ask the full experts; return its new features."""
    task, facts = rounds.task[row], work.facts
    narrow = is_narrow(1, 0, state.seen)  # before this row
    n = scaled_row(rounds, row, state.scale, narrow, not settings.regression, work.row)
    x, feature = work.row.x, work.row.feature
    missing = find_all(state.own, -1 if settings.sharing == ALL_POOLED else task, feature[:n], work.found)
    new, parts = new_features(n, feature, state.scale.features, state.seen), parts_of(settings.sharing)
    interacts = settings.interactions == ALWAYS or (settings.interactions == NARROW and is_narrow(n, new, state.seen))
    work.counts[N], work.counts[N_CROSSED], work.counts[MISSING] = n, 0, missing
    facts[NARROW_ROW] = 1.0 if interacts else 0.0
    if interacts:
        facts[SERIAL] = state.crossed.serial[task] if task >= 0 and parts & OWN_PART else 0
        work.counts[N_CROSSED] = crossed_row(
            rounds, row, n, x, feature, state.crossed.bins, int(facts[SERIAL]),
            len(state.crossed.shared) - 1, len(state.crossed.own) - 1, work.crossed,
        )  # fmt: skip
    features = state.seen[FEATURES] + new
    facts[POOLED_AWAKE] = facts[OWN_AWAKE] = 0.0
    facts[FOR_GOOD] = 1.0 if features > settings.full_features and settings.interactions == NEVER else 0.0
    if features <= settings.full_features:
        _ask_full(task, n, parts, settings, state, work)
    targets = state.targets
    facts[MEAN_BEFORE], facts[UNIT_BEFORE], facts[LARGEST_BEFORE] = targets[MEAN], deviation(targets), targets[LARGEST]
    return new


@kernel(alone=False)
def _ask_full(task: int, n: int, parts: int, settings: Settings, state: State, work: Work) -> None:
    full, facts = state.full, work.facts
    full_row(n, work.row.x, work.row.feature, full, work.full)
    if parts & SHARED_PART:
        facts[POOLED_AWAKE], facts[POOLED_MARGIN] = 1.0, full_margin(n, work.full, full.pooled)
    if parts & OWN_PART:
        slot = full.slot[task] if task >= 0 else 0
        most = settings.memory // matrix_bytes(full.pooled.shape[1], full.pooled.itemsize)
        facts[OWN_AWAKE] = 1.0 if slot > 0 or full.counters[SLOTS] < most else 0.0
        facts[OWN_MARGIN] = full_margin(n, work.full, full.own[slot - 1]) if slot > 0 else 0.0


@kernel(alone=False)
def learn_ahead(rounds: Rounds, row: int, new: int, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn what needs no answer."""
    task, n, facts, y = rounds.task[row], work.counts[N], work.facts, rounds.y[row]
    if settings.sharing != ALL_POOLED and work.counts[MISSING] > 0:  # one model for all needs no pairs
        add_all(state.own, task, work.row.feature[:n], work.counts[MISSING], work.found)
    if facts[NARROW_ROW] > 0.0:
        learn_bins(rounds, row, state.crossed.bins)
        if state.crossed.serial[task] == 0:  # from its next row on the task has records
            state.crossed.last[0] += 1
            state.crossed.serial[task] = state.crossed.last[0]
    limit = LIMIT
    if settings.regression:
        limit = 2.0 * facts[LARGEST_BEFORE]
        facts[TARGET] = learn_target(y, h, state.targets)
        facts[UNIT_AFTER] = deviation(state.targets)
    else:
        facts[TARGET] = 0.5 * (y + 1.0)
    y = facts[TARGET]
    if state.seen[FEATURES] + new <= settings.full_features:
        _learn_full(task, n, y, h, limit, settings, state, work)
    learn_scale(state.scale, work.row, n, h, is_narrow(1, 0, state.seen))
    facts[MEAN_L1] = state.scale.sums[L1] / state.scale.sums[ROWS]
    learn_seen(n, new, state.seen)


@kernel(alone=False)
def _learn_full(
    task: int, n: int, y: float, h: float, limit: float, settings: Settings, state: State, work: Work
) -> None:
    full, facts = state.full, work.facts
    give_places(n, work.row.x, work.row.feature, full, work.full)
    used = full.counters[PLACES]
    if facts[POOLED_AWAKE] > 0.0:
        m = within(limit, facts[POOLED_MARGIN])
        kalman_step(n, work.full, m, y, h, DRIFT, used, settings.regression, full.pooled)
    if facts[OWN_AWAKE] > 0.0:
        if full.slot[task] == 0:
            full.counters[SLOTS] += 1
            full.slot[task] = full.counters[SLOTS]
        m = within(limit, facts[OWN_MARGIN])
        kalman_step(n, work.full, m, y, h, OWN_DRIFT, used, settings.regression, full.own[full.slot[task] - 1])


# ---- what needs the answer ---------------------------------------------------------------------------------


@kernel(alone=False)
def answer(task: int, settings: Settings, state: State, work: Work) -> float:
    """The decision on a row that has been read."""
    n, n_crossed, row, facts = work.counts[N], work.counts[N_CROSSED], work.row, work.facts
    parts = parts_of(settings.sharing)
    plain_margins(
        n, row.x, row.feature, work.found.place, state.shared, state.own.records, work.plain_lanes, work.margins, parts
    )
    if facts[NARROW_ROW] > 0.0:
        crossed = state.crossed
        crossed_margins(
            n_crossed, work.crossed, crossed.shared, crossed.own, work.crossed_lanes, work.margins[FIRST_CROSSED:],
            parts,
        )  # fmt: skip
    work.margins[FIRST_FULL], work.margins[FIRST_FULL + 1] = facts[POOLED_MARGIN], facts[OWN_MARGIN]
    return forecast(task, settings, state, work)


@kernel(alone=False)
def learn_answer(task: int, y: float, h: float, f: float, settings: Settings, state: State, work: Work) -> None:
    """Learn what needs the answer f: the linear experts and the mixtures."""
    facts, e = work.facts, y - work.forecast[EVERYBODY]
    if settings.regression:
        unit = facts[UNIT_AFTER]
        e = learn_error(e, h, unit, state.errors)
        y, squared = work.forecast[EVERYBODY] + e, h * e * e
        tiny = max(TINY * unit * unit, LEAST)
        _step(task, Row(y, h, h, squared, unit / facts[MEAN_L1], tiny, True), settings, state, work)
        variance = noise(state.errors)
        if variance > 0.0 and facts[UNIT_BEFORE] > 0.0:
            mix_real(task, y, variance, h, settings, state, work)
    else:
        q = sigmoid(f)
        curvature = times(h, q * (1.0 - q))
        _step(task, Row(y, h, curvature, h * e * e, 1.0 / facts[MEAN_L1], TINY, False), settings, state, work)
        mix_label(task, y, sigmoid(work.forecast[STACK]), h, settings, state, work)
    state.rows[0] += 1
    state.task_rows[task] += 1
    state.updates[task] += 1


@kernel(alone=False)
def _step(task: int, row: Row, settings: Settings, state: State, work: Work) -> None:
    n, n_crossed, parts = work.counts[N], work.counts[N_CROSSED], parts_of(settings.sharing)
    step_plain(
        n, work.row.x, work.row.feature, work.found.place, row, work.margins, work.chances, work.awake, state.shared,
        state.own.records, work.plain_lanes, parts,
    )  # fmt: skip
    if work.facts[NARROW_ROW] > 0.0:
        first, crossed = FIRST_CROSSED, state.crossed
        step_crossed(
            n_crossed, work.crossed, int(work.facts[SERIAL]), row, work.margins[first:], work.chances[first:],
            work.awake[first:], crossed.shared, crossed.own, work.crossed_lanes, parts,
        )  # fmt: skip


@kernel(alone=False)
def decide_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    """The decision, of which nothing is learned."""
    read_row(rounds, row, settings, state, work)
    return float(state.targets[MEAN] + answer(rounds.task[row], settings, state, work))
