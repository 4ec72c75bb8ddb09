"""One row: read, answered and learned; the scratch of a call, and blocks of rows that wait between two threads.

The work that needs no answer comes first and may run ahead in another thread (`shoal.parallel.pipeline`): scaling the
row, crossing it, finding its records, and the margins of experts on dense rows (`dense`). The answer goes from the
experts' margins, a task's own shrunk to the pooled ones while its rows are few, through three mixings. Linear experts
and the mixings learn from it.
"""

from __future__ import annotations

import math
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_empty
from shoal.engine.compile import kernel
from shoal.engine.handles import Handle
from shoal.engine.rounds import Rounds, n_numbers
from shoal.engine.rows import padded, row_bounds, whole_turns
from shoal.engine.task_weights.record_table import Found, add_all, find_all
from shoal.online.common.logistic import LIMIT, sigmoid, times, within
from shoal.online.hedged_sharing import crossing, dense, linear
from shoal.online.hedged_sharing.columns import IS_WIDE, N_MARGINS, N_OUT, DenseSettings
from shoal.online.hedged_sharing.crossing import (
    CrossedRow,
    crossed_margins,
    crossed_row,
    learn_bins,
    most_entries,
    step_crossed,
)
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    ALWAYS,
    FEATURES,
    FIRST_CROSSED,
    FIRST_DENSE,
    HEAD,
    INDEPENDENT,
    LEARNED,
    N_EXPERTS,
    N_LOGITS,
    NARROW,
    NEVER,
    OF_ALL,
    OF_TASK,
    ONE,
    OWN_PART,
    SHRUNK,
    SHRUNK_AT,
    TOWARD,
    is_narrow,
    is_wide_for_good,
    learn_seen,
    new_features,
    parts_of,
    taking_part,
)
from shoal.online.hedged_sharing.linear import Forecasts, Lanes, Row, new_lanes, plain_margins, step_plain
from shoal.online.hedged_sharing.mixing import (
    DRIFTS,
    LEAST_DRIFT,
    LOGITS_TURN,
    N_ANSWERS,
    N_STACKS,
    SHARE,
    SLOW_SHARE,
    TRUSTS,
    TURN,
    Observed,
    Regression,
    bayes,
    doubt,
    gaussian,
    inner,
    labels,
    learn_doubt,
    logit_of,
    mixture,
    newton_step,
    sharpen,
    sigmoids,
    with_doubt,
)
from shoal.online.hedged_sharing.scaling import (
    ERROR_ROWS,
    FEW,
    L1,
    LARGEST,
    MEAN,
    ROWS,
    ScaledRow,
    deviation,
    learn_error,
    learn_scale,
    learn_target,
    least_answer,
    noise,
    scaled_row,
)
from shoal.online.hedged_sharing.state import State

PLACES, CROSSED_PLACES = 2**16, 2**17  # of a block, for entries of rows and of crossed rows

# The fields of a row that are computed before its answer.
_AHEAD = [
    ("mean_l1", np.float64),  # of scaled rows
    ("crossed", np.bool_),  # whether the experts on crossed rows are awake
    ("serial", np.int64),  # of the task's records of crossed rows
    ("dense", np.bool_),  # whether any expert on dense rows but the first is awake
    ("for_good", np.bool_),  # neither they nor crossed rows will be awake again
    ("target", np.float64),  # 0 or 1, or a real target less the mean before it
    ("mean_before", np.float64),  # of real targets, as are the next four
    ("least_before", np.float64),  # answer
    ("unit_before", np.float64),
    ("unit_after", np.float64),
    ("largest_before", np.float64),
]
AHEAD = np.dtype((np.record, np.dtype(_AHEAD, align=True)))
N, N_CROSSED, MISSING = range(3)  # positions in `counts`: entries of both rows, pairs without a record


class Settings(NamedTuple):
    """The recipe's constants; those before `half_own` are for users to set."""

    regression: bool
    sharing: int
    interactions: int
    memory: float  # bytes, of full matrices
    dense: DenseSettings
    half_own: float = 10.0  # rows after which a task's own experts count half
    half_stack: float = 2.5  # rows after which the second mixing counts half


class DenseMargins(NamedTuple):
    """Margins of experts on dense rows; empty arrays: all sleep."""

    margins: FloatArray  # (rows, N_OUT) before the row's round is learned
    again: FloatArray  # the same just before the row is learned, when others of its round have been


def new_margins(n: int) -> DenseMargins:
    """Of rows that are rounds, to be filled."""
    margins = np.empty((n, N_OUT))
    return DenseMargins(margins, margins)


class Block(NamedTuple):
    """Rows that are ready, one after the other, each filled up to whole turns of SIMD loops."""

    x: FloatArray
    feature: IntArray
    place: IntArray
    crossed_x: FloatArray
    crossed_shared: IntArray
    crossed_own: IntArray
    counts: IntArray  # (rows, 3)
    ahead: NDArray[np.record]  # (rows,) of AHEAD
    margins: FloatArray  # (rows, N_MARGINS) of experts on dense rows


class Work(NamedTuple):
    """Scratch of one call."""

    row: ScaledRow  # its features are places in `shared`
    found: Found  # of the row's pairs in `own`
    crossed: CrossedRow
    counts: IntArray  # (3,)
    ahead: NDArray[np.record]  # (1,) of AHEAD
    of_dense: FloatArray  # (N_MARGINS,) margins of experts on dense rows, NaN of those that sleep
    plain_lanes: Lanes
    crossed_lanes: Lanes
    logits: FloatArray  # (32,) of own experts, shrunk to the pooled ones, and of all experts
    forecasts: FloatArray  # (32,) their sigmoids, or the same of real targets
    margins: FloatArray  # (experts,) within `logits`
    chances: FloatArray  # (experts,) within `forecasts`
    p: FloatArray  # (experts,) forecasts, with the shrunk ones
    z: FloatArray  # (TURN,) inputs of the second mixing, and zeros
    direction: FloatArray  # (TURN,)
    stacks: FloatArray  # (4,) forecasts of the second mixing's regressions, and the same shrunk to the mixture
    of_stacks: FloatArray  # (4,) their sigmoids, or the same of real targets
    answers: FloatArray  # (3,) forecasts of the third mixing's inputs; of labels, probabilities
    ones: FloatArray  # (3,)
    trusts: FloatArray  # (3,) of the third mixing, before the first row
    forecast: FloatArray  # (2,) of the mixture of all tasks, and the answer
    part: FloatArray  # (experts,) 1 for those that may be awake
    awake: FloatArray  # (experts,) 1, or 0 for those that sleep
    uniform: FloatArray  # (experts,) over those that may be awake


def new_work(longest: int, settings: Settings, dtype: type[np.floating]) -> Work:
    """Scratch for rows of at most `longest` entries."""
    n, crossed_n = whole_turns(longest + 1), most_entries(longest) if settings.interactions != NEVER else 0
    reals, ints, small = np.zeros((5, n)), np.zeros((4, n), np.int64), np.zeros((7, LOGITS_TURN))
    logits, forecasts, part = small[0], small[1], small[4, :N_EXPERTS]
    places = np.zeros((2, crossed_n), np.int64)
    trees = settings.dense.trees.once >= 0.0
    n_part = taking_part(settings.sharing, settings.interactions, trees, settings.regression, part)
    return Work(
        row=ScaledRow(reals[0], ints[0], reals[1], reals[2], reals[3], np.zeros(2)),
        found=Found(ints[1], ints[2]),
        crossed=CrossedRow(np.zeros(crossed_n), places[0], places[1], ints[3], reals[4]),
        counts=np.zeros(3, np.int64),
        ahead=np.zeros(1, AHEAD),
        of_dense=np.full(N_MARGINS, np.nan),
        plain_lanes=new_lanes(linear.N_COLUMNS, n, dtype),
        crossed_lanes=new_lanes(crossing.N_COLUMNS, crossed_n, dtype),
        logits=logits,
        forecasts=forecasts,
        margins=logits[HEAD : HEAD + N_EXPERTS],
        chances=forecasts[HEAD : HEAD + N_EXPERTS],
        p=small[5, :N_EXPERTS],
        z=small[2, :TURN],
        direction=small[3, :TURN],
        stacks=np.zeros(2 * N_STACKS),
        of_stacks=np.zeros(2 * N_STACKS),
        answers=np.zeros(N_ANSWERS),
        ones=np.ones(N_ANSWERS),
        trusts=np.array(TRUSTS),
        forecast=np.zeros(2),
        part=part,
        awake=small[6, :N_EXPERTS],
        uniform=part / n_part,
    )


class Scratch(NamedTuple):
    """Of a thread: it is used again and again, since to make it takes as long as many rows."""

    longest: int  # entries of a row
    row: Handle[Work]
    dense: dense.GroupScratch
    margins: DenseMargins  # of one row


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.scratch: dict[tuple[Settings, Any], Scratch] = {}
        # Settings and dtype, to be compared by identity, and their scratch.
        self.last: tuple[Any, Any, Any] = None, None, None


_of_thread = _OfThread()
LONGEST_KEPT = 2**14  # entries


def scratch_for(longest: int, settings: Settings, dtype: type[np.floating]) -> Scratch:
    """The scratch of this thread, for rows of this length."""
    found: Scratch | None
    of_settings, of_dtype, found = _of_thread.last
    if found is not None and of_settings is settings and of_dtype is dtype and found.longest >= longest:
        return found  # to hash settings would take longer than to learn an entry of a row
    found = _of_thread.scratch.get((settings, dtype))
    if found is None or found.longest < longest:
        row, of_dense = Handle(new_work(longest, settings, dtype)), dense.new_scratch(longest, dtype)
        found = Scratch(longest, row, of_dense, new_margins(1))
        if longest <= LONGEST_KEPT:
            _of_thread.scratch[settings, dtype] = found
    if longest <= LONGEST_KEPT:
        _of_thread.last = settings, dtype, found
    return found


def longest_row(rounds: Rounds) -> int:
    """Entries of the longest row."""
    if rounds.width > 0 or len(rounds.task) == 0:
        return rounds.width
    return n_numbers(rounds) if len(rounds.task) == 1 else int(np.diff(rounds.indptr).max())


def new_block(n_rows: int, entries: IntArray, n_places: int, n_crossed: int) -> Block:
    """Room for so much, in an array of 3 (n_places + n_crossed) numbers."""
    plain, crossed = entries[: 3 * n_places].reshape(3, -1), entries[3 * n_places :].reshape(3, -1)
    return Block(
        plain[0].view(np.float64), plain[1], plain[2], crossed[0].view(np.float64), crossed[1], crossed[2],
        np.zeros((n_rows, 3), np.int64), np.zeros(n_rows, AHEAD), np.full((n_rows, N_MARGINS), np.nan),
    )  # fmt: skip


def two_blocks(n_rows: int, rounds: Rounds, settings: Settings) -> tuple[Handle[Block], Handle[Block]]:
    """Two blocks, each with room for at most this number of rows; any one row fits.

    Entries are written before they are read, so they are not cleared. One array: for a large one memory comes faster.
    """
    longest = longest_row(rounds)
    n_places = max(PLACES, whole_turns(longest + 1))
    n_crossed = 0 if settings.interactions == NEVER else max(CROSSED_PLACES, most_entries(longest))
    first, second = aligned_empty((2, 3 * (n_places + n_crossed)), np.int64)
    blocks = (new_block(n_rows, numbers, n_places, n_crossed) for numbers in (first, second))
    return Handle(next(blocks)), Handle(next(blocks))


@kernel(alone=False)
def block_has_room(
    rounds: Rounds, row: int, i: int, first: int, first_crossed: int, settings: Settings, block: Block
) -> bool:
    """Whether the row, however much of it counts, has room in a block as its i-th, from these places on."""
    begin, end = row_bounds(rounds, row)
    n_crossed = most_entries(end - begin) if settings.interactions != NEVER else 0
    return bool(
        i < len(block.counts)
        and first + padded(end - begin + 1) <= len(block.x)
        and first_crossed + n_crossed <= len(block.crossed_x)
    )


@kernel(alone=False)
def waiting_row(block: Block, i: int, first: int, first_crossed: int, work: Work) -> Work:
    """The scratch for row i of a block, whose entries begin there."""
    row = ScaledRow(block.x[first:], block.feature[first:], *work.row[2:])
    crossed = CrossedRow(
        block.crossed_x[first_crossed:], block.crossed_shared[first_crossed:], block.crossed_own[first_crossed:],
        *work.crossed[3:],
    )  # fmt: skip
    found = Found(block.place[first:], work.found.entry)
    return Work(row, found, crossed, block.counts[i], block.ahead[i : i + 1], block.margins[i], *work[6:])


# ---- the answer ----------------------------------------------------------------------------------------------------


ALL_TASKS, ANSWER = range(2)  # positions in `Work.forecast`; of labels, probabilities without doubt
LEAST_CURVATURE = 1e-5  # the least curvature of the second mixing
NEAR = 10.0  # deviations of the noise


@kernel(alone=False)
def without_sleepers(work: Work) -> Work:
    """The same with the first experts alone, if all others sleep for good."""
    n = FIRST_DENSE + 1 if work.ahead[0].for_good else N_EXPERTS
    return Work(*work[:12], work.p[:n], *work[13:22], work.awake[:n], work.uniform)


@kernel(alone=False)
def wake(work: Work) -> None:
    """Which experts are awake on this row."""
    awake, ahead = work.awake, work.ahead[0]
    for e in range(len(awake)):
        awake[e] = work.part[e]
    for i in range(N_MARGINS):
        if math.isnan(work.of_dense[i]):
            awake[FIRST_DENSE + i] = 0.0
    for e in range(FIRST_CROSSED, len(awake)):
        awake[e] *= ahead.crossed


@kernel(alone=False)
def few_awake(work: Work) -> bool:
    """Whether all after the first FEW inputs of the second mixing sleep."""
    return not (work.ahead[0].dense or work.ahead[0].crossed)


@kernel(alone=False)
def shrink(trust: float, work: Work) -> None:
    """In a task of few rows its own experts shrink to the pooled ones."""
    for i in range(len(SHRUNK)):
        own, pooled = work.margins[SHRUNK[i]], work.margins[TOWARD[i]]
        work.logits[SHRUNK_AT[i]] = trust * own + (1.0 - trust) * pooled


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


@kernel(entry="too")
def constant_input(unit: float, errors: FloatArray) -> float:
    """Of the second mixing: 10 deviations of the noise, at most 1, so that its drift is no larger than the noise."""
    return min(1.0, NEAR * math.sqrt(noise(errors)) / unit) if unit > 0.0 else 1.0


@kernel(alone=False)
def forecast(task: int, settings: Settings, state: State, work: Work) -> float:
    """The answer: a logit, or a target less the mean. `work.margins` holds the experts' margins."""
    margins, z, p, awake = work.margins, work.z, work.p, work.awake
    few = few_awake(work)
    limit = 2.0 * work.ahead[0].largest_before if settings.regression else LIMIT
    for e in range(len(awake)):
        margins[e] = within(limit, margins[e]) * awake[e]
    rows = state.task_rows[task] if task >= 0 else 0
    shrink(rows / (rows + settings.half_own) if settings.sharing == LEARNED else 1.0, work)
    if settings.regression:
        for e in range(N_LOGITS):
            work.forecasts[e] = work.logits[e]
    else:
        sigmoids(work.logits, few, work.forecasts)
    for e in range(len(awake)):
        z[HEAD + e], p[e] = margins[e], work.chances[e]
    for i in range(len(SHRUNK)):
        e = SHRUNK[i]
        if e < len(awake):
            z[HEAD + e], p[e] = work.logits[SHRUNK_AT[i]] * awake[e], work.forecasts[SHRUNK_AT[i]]
    if settings.regression:
        near_the_heaviest(state, work)
    of_task = of_all = mixture(state.weights, p, awake)
    if rows > 0 and settings.sharing != ALL_POOLED:
        of_task = mixture(state.task_weights[task], p, awake)
    if settings.sharing == INDEPENDENT:
        of_all = of_task
    work.forecast[ALL_TASKS], work.answers[N_STACKS] = of_all, mixture(state.slow, p, awake)
    if settings.sharing == ALL_POOLED:
        rows = state.rows[0]
    unit = work.ahead[0].unit_before if settings.regression else 1.0
    if settings.regression:
        z[OF_TASK], z[OF_ALL] = of_task, of_all
        for i in range(HEAD + len(awake)):
            z[i] = z[i] / unit if unit > 0.0 else 0.0
        z[ONE] = constant_input(unit, state.errors)
    else:
        z[OF_TASK], z[OF_ALL], z[ONE] = logit_of(of_task), logit_of(of_all), 1.0
        of_all = z[OF_ALL]
    trust = rows / (rows + settings.half_stack)
    for s in range(N_STACKS):
        work.stacks[s] = within(limit, unit * inner(state.stacks[s], z, few))
        work.stacks[N_STACKS + s] = trust * work.stacks[s] + (1.0 - trust) * of_all
    for s in range(2 * N_STACKS):
        work.of_stacks[s] = work.stacks[s] if settings.regression else sigmoid(work.stacks[s])
    for s in range(N_STACKS):
        work.answers[s] = work.of_stacks[N_STACKS + s]
    work.forecast[ANSWER] = mixture(state.trusts, work.answers, work.ones)
    if settings.regression:
        return float(work.forecast[ANSWER])
    return logit_of(with_doubt(work.forecast[ANSWER], doubt(state.surprises)))


@kernel(alone=False)
def mix(task: int, h: float, settings: Settings, state: State, work: Work) -> None:
    """Move the Bayes weights; `work.p` and `work.answers` now hold likelihoods. `h` is how often the row counts."""
    if h != 1.0:
        sharpen(work.p, state.weights, work.awake, h)
        sharpen(work.answers, state.trusts, work.ones, h)
    prior = work.uniform if settings.sharing == INDEPENDENT else state.weights
    if state.task_rows[task] == 0:
        for e in range(len(prior)):  # a new task starts where all together are
            state.task_weights[task, e] = prior[e]
    bayes(state.weights, work.p, work.awake, work.uniform, SHARE)
    bayes(state.task_weights[task], work.p, work.awake, prior, SHARE)
    bayes(state.slow, work.p, work.awake, work.uniform, SLOW_SHARE)
    bayes(state.trusts, work.answers, work.ones, work.trusts, SLOW_SHARE)


@kernel(alone=False)
def step_stack(s: int, seen: Observed, settings: Settings, state: State, work: Work) -> None:
    """Move one regression of the second mixing."""
    drift = max(DRIFTS[s] / (state.rows[0] + 1), LEAST_DRIFT if settings.sharing == INDEPENDENT else 0.0)
    regression = Regression(state.stacks[s], state.covariances[s], work.direction)
    newton_step(work.z, seen, drift, work.ahead[0].for_good, regression)


@kernel(alone=False)
def mix_label(task: int, y: float, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn a label, 0 or 1.

    With chance rho the label says something about its row, and so much of it moves a regression: where classes come
    apart its curvature is nearly 0, and one wrong label would turn its weights round.
    """
    eps = doubt(state.surprises)
    for s in range(N_STACKS):
        q = work.of_stacks[s]
        happened = (1.0 - eps) * (q if y > 0.5 else 1.0 - q)
        rho = happened / (happened + 0.5 * eps)
        often = 1.0 if h == 1.0 else rho * h
        seen = Observed(rho * (y - q), h * max(rho * q * (1.0 - q), LEAST_CURVATURE), y, work.stacks[s], often)
        step_stack(s, seen, settings, state, work)
    labels(work.p, y > 0.5, eps)
    labels(work.answers, y > 0.5, eps)
    mix(task, h, settings, state, work)
    p = work.forecast[ANSWER]
    learn_doubt(p if y > 0.5 else 1.0 - p, h, state.surprises)


@kernel(alone=False)
def mix_real(task: int, y: float, variance: float, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn a real target less its mean."""
    before = work.ahead[0].unit_before
    precision = before / variance * before  # of the forecast in units of the deviation
    for s in range(N_STACKS):
        error = h * ((y - work.stacks[s]) / before * precision)
        step_stack(s, Observed(error, h * precision, y, work.stacks[s], 1.0), settings, state, work)
    gaussian(work.p, work.awake, y, variance)
    gaussian(work.answers, work.ones, y, variance)
    mix(task, h, settings, state, work)


TINY, LEAST = 1e-12, 1e-37  # AdaGrad's first step divides by a root that may be zero; float32 has hardly any less

# ---- before the answer --------------------------------------------------------------------------------------


@kernel(alone=False)
def read_row(
    rounds: Rounds,
    row: int,
    bounds: tuple[int, int],
    settings: Settings,
    state: State,
    margins: FloatArray,
    work: Work,
) -> int:
    """Scale and cross the row, find its records, take the margins of dense experts; return its new features."""
    task, ahead = rounds.task[row], work.ahead[0]
    narrow = is_narrow(1, 0, state.seen)  # before this row
    n = scaled_row(rounds, bounds, state.scale, narrow, not settings.regression, work.row)
    feature = work.row.feature
    missing = find_all(state.own, -1 if settings.sharing == ALL_POOLED else task, feature[:n], work.found)
    new, parts = new_features(n, feature, state.scale.features, state.seen), parts_of(settings.sharing)
    interacts = settings.interactions == ALWAYS or (settings.interactions == NARROW and is_narrow(n, new, state.seen))
    work.counts[N], work.counts[N_CROSSED], work.counts[MISSING] = n, 0, missing
    ahead.crossed = interacts
    if interacts:
        ahead.serial = state.crossed.serial[task] if task >= 0 and parts & OWN_PART else 0
        work.counts[N_CROSSED] = crossed_row(
            rounds, bounds[0], n, work.row, state.crossed.bins, ahead.serial,
            state.crossed.shared, state.crossed.own, work.crossed,
        )  # fmt: skip
    targets = state.targets
    ahead.least_before = least_answer(targets)
    ahead.mean_before, ahead.unit_before, ahead.largest_before = targets[MEAN], deviation(targets), targets[LARGEST]
    features = state.seen[FEATURES] + new
    wide = settings.interactions == NARROW and is_wide_for_good(new, state.seen)
    awake = len(margins) > 0 and not math.isnan(margins[row, IS_WIDE])
    ahead.dense = False
    ahead.for_good = features > settings.dense.most and (wide or settings.interactions == NEVER) and not awake
    for i in range(N_MARGINS):
        work.of_dense[i] = margins[row, i] if len(margins) > 0 else np.nan
        ahead.dense |= i > 0 and not math.isnan(work.of_dense[i])
    return new


@kernel(alone=False)
def learn_ahead(
    rounds: Rounds,
    row: int,
    bounds: tuple[int, int],
    new: int,
    h: float,
    settings: Settings,
    state: State,
    work: Work,
) -> None:
    """Learn all that does not depend on the answer."""
    task, n, ahead, y = rounds.task[row], work.counts[N], work.ahead[0], rounds.y[row]
    if ahead.crossed:
        learn_bins(rounds, bounds, state.crossed.bins)
        if state.crossed.serial[task] == 0:  # from its next row on the task has records
            state.crossed.last[0] += 1
            state.crossed.serial[task] = state.crossed.last[0]
    if settings.regression:
        ahead.target = learn_target(y, h, state.targets)
        ahead.unit_after = deviation(state.targets)
    else:
        ahead.target = 0.5 * (y + 1.0)
    learn_scale(state.scale, work.row, n, h, is_narrow(1, 0, state.seen))
    ahead.mean_l1 = state.scale.sums[L1] / state.scale.sums[ROWS]
    learn_seen(n, new, state.seen)
    if settings.sharing != ALL_POOLED and work.counts[MISSING] > 0:  # one model for all needs no pairs
        add_all(state.own, task, work.row.feature[:n], work.counts[MISSING], work.found)


# ---- after the answer ---------------------------------------------------------------------------------------


@kernel(alone=False)
def answer(task: int, settings: Settings, state: State, work: Work) -> float:
    """The decision on a row that has been read."""
    wake(work)
    n, n_crossed, row, ahead = work.counts[N], work.counts[N_CROSSED], work.row, work.ahead[0]
    parts = parts_of(settings.sharing)
    plain_margins(n, row, work.found.place, state.shared, state.own.records, work.plain_lanes, work.margins, parts)
    if ahead.crossed:
        crossed = state.crossed
        crossed_margins(
            n_crossed, work.crossed, crossed.shared, crossed.own, work.crossed_lanes, work.margins[FIRST_CROSSED:],
            parts,
        )  # fmt: skip
    for i in range(N_MARGINS):
        m = work.of_dense[i]
        work.margins[FIRST_DENSE + i] = 0.0 if math.isnan(m) else m
    return forecast(task, settings, state, without_sleepers(work))


@kernel(alone=False)
def learn_answer(task: int, y: float, h: float, settings: Settings, state: State, work: Work) -> None:
    """Learn the linear experts and the mixtures, which depend on the answer."""
    work = without_sleepers(work)
    ahead, e = work.ahead[0], y - work.forecast[ALL_TASKS]
    if settings.regression:
        unit = ahead.unit_after
        e = learn_error(e, h, unit, state.errors)
        y, squared = work.forecast[ALL_TASKS] + e, h * e * e
        tiny = max(TINY * unit * unit, LEAST)
        _step(task, Row(y, h, h, squared, unit / ahead.mean_l1, tiny, True), settings, state, work)
        variance = noise(state.errors)
        if variance > 0.0 and ahead.unit_before > 0.0:
            mix_real(task, y, variance, h, settings, state, work)
    else:
        q = with_doubt(work.forecast[ANSWER], doubt(state.surprises))
        curvature = times(h, q * (1.0 - q))
        _step(task, Row(y, h, curvature, h * e * e, 1.0 / ahead.mean_l1, TINY, False), settings, state, work)
        mix_label(task, y, h, settings, state, work)
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
def decide_row(rounds: Rounds, row: int, settings: Settings, state: State, of_dense: DenseMargins, work: Work) -> float:
    """The decision, of which nothing is learned."""
    read_row(rounds, row, row_bounds(rounds, row), settings, state, of_dense.margins, work)
    return float(max(state.targets[MEAN] + answer(rounds.task[row], settings, state, work), work.ahead[0].least_before))
