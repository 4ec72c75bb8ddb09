"""Hedged sharing as an algorithm: nine ways of learning and sharing, mixed row by row.

The forecasts of nine linear experts (`_experts`) are mixed twice (`_mixing`): by Bayes weights with a fixed share, one
set a task and one for all, then by a regression on the nine and the two mixtures, whose forecast q is the answer.
Labels are forecast by probabilities and mixed on the logits. Real targets are centred on their running mean and
measured in their running deviation; the likelihood of an expert is Gaussian with the mixture's mean squared error.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import open_weighted, padded, weight_of
from shoal.engine.task_weights import record_table as records
from shoal.engine.task_weights.hash_table import has_capacity
from shoal.engine.task_weights.record_table import Records, add_all, find_all
from shoal.model.algorithm import Algorithm, Exchange, Setup, Size
from shoal.model.parameters import WEIGHTS_TYPE, Params, one_of
from shoal.model.state import in_capacity, trimmed
from shoal.online._task_weights import packed_kind
from shoal.online.hedged_sharing.experts import (
    INDEPENDENT,
    LEARNED,
    NUMBERS,
    POOLED,
    TINY,
    Settings,
    Work,
    awake_of,
    margins,
    step_experts,
    step_experts_by,
    waiting_row,
    workspace,
)  # fmt: skip
from shoal.online.hedged_sharing.mixing import (
    LIMIT,
    N_INPUTS,
    TURN,
    bayes,
    gaussian,
    inner,
    labels,
    logit_of,
    mixture,
    newton_step,
    sharpen,
    sigmoid,
    sigmoids,
    times,
    within,
)  # fmt: skip
from shoal.online.hedged_sharing.scaling import L1, ROWS, Scale, learn_scale, new_scale, scaled_row
from shoal.parallel import pipeline
from shoal.parallel.pipeline import Block, Part

COUNT, MEAN, SCATTER, LARGEST, ERRORS = range(5)  # positions in `targets`
MINE, EVERYBODY = 0, 1  # positions in `Work.forecast`


class State(NamedTuple):
    """Everything is per feature or per (task, feature) that occurs; slot 0 of the features is the constant."""

    shared: Annotated[FloatArray, FEATURE, OTHER]  # (1 + features, 8) records of s
    own: Records  # records of v_k
    scale: Scale
    targets: FloatArray  # (5,) of real targets: rows, mean, squared deviations from it, the largest, squared errors
    task_rows: Annotated[IntArray, TASK]  # rows of each task so far
    task_weights: Annotated[FloatArray, TASK, OTHER]  # (tasks, 9) Bayes weights
    weights: FloatArray  # (9,) Bayes weights of all tasks together
    regression: FloatArray  # (16,): 12 and zeros
    covariance: FloatArray  # (12 * 16,)
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel
def deviation(targets: FloatArray) -> float:
    """Of the targets so far, from their mean."""
    return math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0


@kernel
def forecast(task: int, n: int, settings: Settings, state: State, work: Work) -> float:
    """The answer: a logit, or a target less the mean."""
    logits, z, p = work.logits, work.z, work.p
    margins(n, state.shared, state.own.records, work)
    limit = 2.0 * state.targets[LARGEST] if settings.regression else LIMIT
    for e in range(9):
        logits[e] = within(limit, logits[e])
    for e in range(9):
        logits[e] *= work.awake[e]
    rows = state.task_rows[task] if task >= 0 else 0
    trust = rows / (rows + settings.young) if settings.sharing == LEARNED else 1.0
    for rule in range(3):  # a young task's own experts lean on the pooled ones
        logits[9 + rule] = trust * logits[3 * rule + 2] + (1.0 - trust) * logits[3 * rule]
    if settings.regression:
        for e in range(12):
            work.chance[e] = logits[e]
    else:
        sigmoids(logits, work.chance)
    for e in range(9):
        leaning = 9 + e // 3 if e % 3 == 2 else e
        z[e], p[e] = logits[leaning], work.chance[leaning]
    everybody = mixture(state.weights, p)
    mine = mixture(state.task_weights[task], p) if rows > 0 and settings.sharing != POOLED else everybody
    if settings.sharing == INDEPENDENT:
        everybody = mine
    work.forecast[MINE], work.forecast[EVERYBODY] = mine, everybody
    z[11] = 1.0
    if not settings.regression:
        z[9], z[10] = logit_of(mine), logit_of(everybody)
        return within(LIMIT, inner(state.regression, z))
    z[9], z[10] = mine, everybody
    unit = deviation(state.targets)
    for e in range(11):
        z[e] = z[e] / unit if unit > 0.0 else 0.0
    return within(limit, unit * inner(state.regression, z))


@kernel
def learn_target(y: float, h: float, targets: FloatArray) -> None:
    """Take a real target h times into the running mean and deviation; the first is the mean."""
    if targets[COUNT] == 0.0:
        targets[MEAN] = y
    targets[COUNT] += h
    off = y - targets[MEAN]
    targets[MEAN] += times(h, off) / targets[COUNT]
    targets[SCATTER] += times(h, off) * (y - targets[MEAN])
    targets[LARGEST] = max(targets[LARGEST], abs(off))


@kernel
def mix(
    task: int, error: float, curvature: float, y: float, logit: float, h: float, settings: Settings, state: State,
    work: Work,
) -> None:  # fmt: skip
    """Move both mixtures; `work.p` now holds each expert's likelihood. `h` is how often the row counts."""
    if h != 1.0:
        sharpen(work.p, state.weights, h)
    prior = work.uniform if settings.sharing == INDEPENDENT else state.weights
    if state.task_rows[task] == 0:
        for e in range(9):  # a new task starts where all together are
            state.task_weights[task, e] = prior[e]
    bayes(state.weights, work.p, work.uniform)
    bayes(state.task_weights[task], work.p, prior)
    label_times = 1.0 if settings.regression else h
    newton_step(state.regression, state.covariance, work.z, error, curvature, y, logit, label_times, work.direction)


@kernel
def learn_label(
    task: int, n: int, y: float, logit: float, h: float, mean_l1: float, s: Settings, state: State, w: Work
) -> None:
    """y is 0 or 1."""
    q = sigmoid(logit)
    g, curvature = times(h, (y - w.forecast[EVERYBODY]) ** 2), times(h, q * (1.0 - q))
    if h != 1.0:
        step_experts_by(h, n, y, curvature, g, s.eta / mean_l1, TINY, s, state.shared, state.own.records, w)
    else:
        step_experts(n, y, curvature, g, s.eta / mean_l1, TINY, s, state.shared, state.own.records, w)
    labels(w.p, y > 0.5)
    mix(task, y - q, curvature, y, logit, h, s, state, w)


@kernel
def learn_real(
    task: int, n: int, y: float, f: float, h: float, mean_l1: float, s: Settings, state: State, w: Work
) -> None:
    """f is less the mean before the row."""
    targets = state.targets
    before, mean = deviation(targets), targets[MEAN] if targets[COUNT] > 0.0 else y
    learn_target(y, h, targets)
    y -= mean
    unit, g = deviation(targets), times(h, (y - w.forecast[EVERYBODY]) ** 2)
    targets[ERRORS] += g
    tiny = max(TINY * unit * unit, 1e-300)
    eta = s.eta * unit / mean_l1
    if h != 1.0:
        step_experts_by(h, n, y, h, g, eta, tiny, s, state.shared, state.own.records, w)
    else:
        step_experts(n, y, 1.0, g, eta, tiny, s, state.shared, state.own.records, w)
    variance = targets[ERRORS] / targets[COUNT]
    if variance > 0.0 and before > 0.0:
        gaussian(w.p, y, variance)
        precision = before / variance * before  # of the forecast in units of the deviation
        mix(task, times(h, (y - f) / before * precision), times(h, precision), y, f, h, s, state, w)


@kernel(inline=False)
def learn_weighted(
    task: int, n: int, y: float, f: float, h: float, mean_l1: float, settings: Settings, state: State, work: Work
) -> None:
    """A row that counts other than once has compiled code of its own: the usual one keeps its speed and its bits."""
    if settings.regression:
        learn_real(task, n, y, f, h, mean_l1, settings, state, work)
    else:
        learn_label(task, n, 0.5 * (y + 1.0), f, h, mean_l1, settings, state, work)


@kernel
def answer(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> float:
    n = scaled_row(rounds, row, state.scale, not settings.regression, work.row)
    find_all(state.own, -1 if settings.sharing == POOLED else rounds.task[row], work.row.feature[:n], work.found)
    return float(state.targets[MEAN] + forecast(rounds.task[row], n, settings, state, work))


@kernel
def prepare_row(rounds: Rounds, row: int, settings: Settings, state: State, work: Work) -> int:
    """Scale the row, find or make its pairs; return how many entries it has. Needs no label and no expert's weights."""
    n, h = scaled_row(rounds, row, state.scale, not settings.regression, work.row), weight_of(rounds, row)
    task = -1 if settings.sharing == POOLED else rounds.task[row]  # one model for all needs no pairs
    missing = find_all(state.own, task, work.row.feature[:n], work.found)
    if h == 0.0:
        return n
    if missing > 0 and task >= 0:
        add_all(state.own, rounds.task[row], work.row.feature[:n], missing, work.found)
    learn_scale(state.scale, work.row, n, h)
    return n


@kernel
def learn_row(rounds: Rounds, row: int, n: int, mean_l1: float, settings: Settings, state: State, work: Work) -> float:
    """Answer the row, then learn it."""
    task, mean, h = rounds.task[row], state.targets[MEAN], weight_of(rounds, row)
    f = forecast(task, n, settings, state, work)
    if h == 0.0:
        return float(mean + f)
    if h != 1.0:
        learn_weighted(task, n, rounds.y[row], f, h, mean_l1, settings, state, work)
    elif settings.regression:
        learn_real(task, n, rounds.y[row], f, 1.0, mean_l1, settings, state, work)
    else:
        learn_label(task, n, 0.5 * (rounds.y[row] + 1.0), f, 1.0, mean_l1, settings, state, work)
    state.task_rows[task] += 1
    state.updates[task] += 1
    return float(mean + f)


@kernel
def decide_rows(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, work: Work) -> None:
    for row in range(len(decisions)):
        decisions[row] = answer(rounds, row, settings, state, work)


@kernel
def learn_rounds(
    rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, part: Part, end: int, block: Block,
    work: Work,
) -> int:  # fmt: skip
    """Do a part of the rounds, or of learning them, until `own` might get too full; return how far it got."""
    at, waits = 0, len(part.block.n) > 0
    for r in range(part.first, end):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if part.prepares and not has_capacity(rounds, first, last, state.own.tables):
            return r
        if part.learns:
            open_weighted(rounds, r, state.counters)
        if len(decisions) > 0 and last - first > 1:
            for row in range(first, last):
                decisions[row] = answer(rounds, row, settings, state, work)
        for row in range(first, last):
            i, waiting = r - part.first if waits else 0, waiting_row(block, at, work)
            if part.prepares:
                block.n[i] = prepare_row(rounds, row, settings, state, waiting)
                block.mean_l1[i] = state.scale.sums[L1] / state.scale.sums[ROWS]
            n = block.n[i]
            if part.learns:
                decision = learn_row(rounds, row, n, block.mean_l1[i], settings, state, waiting)
                if len(decisions) > 0 and last - first == 1:
                    decisions[row] = decision
            at += padded(n) if waits else 0  # else all rows use the same place
    return end


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    decide_rows(rounds, settings, state, decisions, workspace(rounds, 0, len(decisions), settings))


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, part: Part) -> int:
    end = part.last if part.last >= 0 else len(rounds.starts) - 1
    work, block = workspace(rounds, rounds.starts[part.first], rounds.starts[end], settings), part.block
    if len(block.n) == 0:
        block = Block(work.row.x, work.row.feature, work.found.place, np.zeros(1, np.int64), np.zeros(1))
    return learn_rounds(rounds, settings, state, decisions, part, end, block, work)


SHARING = {"learned": LEARNED, "independent": INDEPENDENT, "pooled": POOLED}
PARAMETERS = {"relation": one_of(SHARING), "dtype": WEIGHTS_TYPE}


def settings_of_labels(p: Params) -> Settings:
    return Settings(sharing=p.relation)


def settings_of_numbers(p: Params) -> Settings:
    return Settings(sharing=p.relation, regression=True)


def with_records(setup: Setup, size: Size, own: Any) -> Any:
    """A new state, or a packed one, with these records of tasks."""
    (n_tasks, n_features), awake = size, awake_of(setup.settings)
    start, uniform = np.zeros(TURN), awake / awake.sum()
    start[9] = 1.0  # the regression begins as the task's mixture
    kind = State if isinstance(own, Records) else packed_kind(State, "own", records.Packed)
    return kind(
        aligned_zeros((1 + n_features, NUMBERS), setup.params.dtype), own, new_scale(n_features), np.zeros(5),
        np.zeros(n_tasks, np.int64), np.tile(uniform, (n_tasks, 1)), uniform,
        start, np.eye(N_INPUTS, TURN).ravel(), np.zeros(n_tasks, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip


def allocate(setup: Setup, size: Size) -> State:
    state: State = with_records(setup, size, records.new_records(NUMBERS, size.tasks, dtype=setup.params.dtype))
    return state


def grow(setup: Setup, state: State, size: Size) -> State:
    larger = with_records(setup, size, records.for_tasks(state.own, size.tasks))
    tables, n = larger.own.tables, len(state.updates)
    for old, new in zip(
        (state.own.tables.start, state.own.tables.size, state.own.tables.filled),
        (tables.start, tables.size, tables.filled),
        strict=True,
    ):
        new[:n] = old
    grown: State = in_capacity(state._replace(own=larger.own), larger)
    return grown


def extend(setup: Setup, state: State, size: Size, rounds: Rounds) -> State:
    """Of the rows that are left each entry may be a new pair."""
    first, n_rows = int(rounds.starts[0]), len(rounds.task)
    entries = (n_rows - first) * rounds.width if rounds.width > 0 else int(rounds.indptr[-1] - rounds.indptr[first])
    most = size.tasks * (1 + size.features) - int(state.own.used[0])
    return state._replace(own=records.with_capacity(state.own, max(min(entries + n_rows - first, most), 0)))


def leave(setup: Setup, state: State, k: int) -> None:
    records.remove(state.own, k)


def pack(setup: Setup, state: State, size: Size) -> Any:
    own = records.pack(state.own, size.tasks)
    smaller = with_records(setup, size, own)
    return trimmed(type(smaller)(**{**state._asdict(), "own": own}), smaller)


def blank(setup: Setup, size: Size) -> Any:
    return with_records(setup, size, records.blank(NUMBERS, size.tasks, setup.params.dtype))


def check(setup: Setup, packed: Any, size: Size) -> None:
    records.check(packed.own, NUMBERS, size.tasks, 1 + size.features)
    if (packed.task_rows < 0).any() or not (packed.task_weights >= 0).all() or not (packed.weights >= 0).all():
        raise ValueError("its numbers of rows or its weights of experts are negative")


def unpack(setup: Setup, packed: Any, size: Size) -> State:
    return State(**{**packed._asdict(), "own": records.unpack(packed.own, NUMBERS, size.tasks)})


LABELS = Algorithm[State](
    parameters=PARAMETERS,
    settings=settings_of_labels,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange=Exchange(
        mean=("shared", "weights"),
        sum=("scale.features", "scale.sums"),
        local=("targets", "regression", "covariance", "counters"),
    ),
    grow=grow,
    extend=extend,
    leave=leave,
    pack=pack,
    blank=blank,
    check=check,
    unpack=unpack,
    run=pipeline.run,
    no_weights="",
)
NUMBERS_TO_PREDICT = LABELS._replace(settings=settings_of_numbers)
