"""Hedged sharing as an algorithm: many ways of learning and sharing, mixed row by row.

The forecasts of the experts (`experts`) are mixed twice (`answer`): by Bayes weights with a fixed share, one set a task
and one for all, then by a regression on the experts and the two mixtures. Its forecast times a factor of the task is
the answer. Labels are forecast by probabilities and mixed on the logits. Real targets are centred on their running mean
and measured in their running deviation; the likelihood of an expert is Gaussian with the mixture's mean squared error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import prefetch
from shoal.engine.rounds import Rounds
from shoal.engine.rows import open_weighted, padded, weight_of
from shoal.engine.task_weights.hash_table import has_capacity
from shoal.model.algorithm import Algorithm, Chunks, Exchange, Setup, Storage, Tasks
from shoal.model.parameters import WEIGHTS_TYPE, Params, one_of, or_auto, positive, truth
from shoal.online.hedged_sharing import state as states
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    ALWAYS,
    FEATURES,
    FEW_ENTRIES,
    FEW_FEATURES,
    INDEPENDENT,
    LEARNED,
    NARROW,
    NEVER,
)
from shoal.online.hedged_sharing.kalman import (
    FEW_FULL,
    MOST_FULL,
    PLACES,
    SLOTS,
    matrix_bytes,
)
from shoal.online.hedged_sharing.linear import WIDTH, G, H
from shoal.online.hedged_sharing.row import answer, decide_row, learn_ahead, learn_answer, read_row
from shoal.online.hedged_sharing.scratch import (
    N_CROSSED,
    Block,
    N,
    Settings,
    Work,
    block_has_room,
    new_block,
    two_blocks,
    waiting_row,
    workspace,
)
from shoal.online.hedged_sharing.state import State
from shoal.parallel import pipeline
from shoal.parallel.pipeline import Part


@kernel(inline=False, alone=False)
def decide_rows(
    rounds: Rounds, first: int, last: int, settings: Settings, state: State, decisions: FloatArray, work: Work
) -> None:
    """The decisions on some rows."""
    for row in range(first, last):
        decisions[row] = decide_row(rounds, row, settings, state, work)


@kernel(inline=False, alone=False)
def has_room(rounds: Rounds, first: int, last: int, settings: Settings, state: State) -> bool:
    """Whether a round's pairs, new features and new tasks fit."""
    if not has_capacity(rounds, first, last, state.own.tables):
        return False
    full, side = state.full, state.full.pooled.shape[1]
    if state.seen[FEATURES] > settings.full_features:
        return True
    new = new_tasks = 0
    for row in range(first, last):
        new += _new_places(rounds, row, state)
        new_tasks += int(full.slot[rounds.task[row]] == 0)
    if min(full.counters[PLACES] + new, settings.full_features + 1) > side:
        return False
    most = np.int64(settings.memory // matrix_bytes(side, full.pooled.itemsize))
    return settings.sharing == ALL_POOLED or min(full.counters[SLOTS] + new_tasks, most) <= len(full.own)


@kernel(alone=False)
def _new_places(rounds: Rounds, row: int, state: State) -> int:
    """Entries of a row whose feature has no column."""
    new = 0
    if rounds.width > 0:
        for j in range(rounds.width):
            new += int(rounds.values[row * rounds.width + j] != 0.0 and state.full.place[j] == 0)
    else:
        for p in range(rounds.indptr[row], rounds.indptr[row + 1]):
            new += int(state.full.place[rounds.indices[p]] == 0)
    return new


@kernel(inline=False, alone=False)
def fits(
    rounds: Rounds,
    first: int,
    last: int,
    i: int,
    at: int,
    at_crossed: int,
    settings: Settings,
    state: State,
    block: Block,
) -> bool:
    """Whether there is room for a round in the state, and in the block if there is one."""
    has_place = len(block.counts) == 0 or block_has_room(rounds, first, i, at, at_crossed, settings, block)
    return has_place and has_room(rounds, first, last, settings, state)


@kernel(alone=False)
def fetch_records(block: Block, i: int, first: int, state: State) -> None:
    """Have what all tasks share of the features of row i, a wide one, brought from memory while another is learned."""
    n, feature = block.counts[i, N], block.feature[first:]
    if n > FEW_ENTRIES:
        for k in range(n):
            prefetch(state.shared, np.uint64(feature[k]) * np.uint64(WIDTH))


@kernel(inline=False, alone=False)
def learn_rounds(
    rounds: Rounds,
    settings: Settings,
    state: State,
    decisions: FloatArray,
    part: Part,
    end: int,
    block: Block,
    work: Work,
) -> int:
    """Do a part of the rounds, or of learning them, until there might be no room; return how far it got."""
    at, at_crossed, waits = 0, 0, len(block.counts) > 0
    for r in range(part.first, end):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if part.prepares and not fits(rounds, first, last, r - part.first, at, at_crossed, settings, state, block):
            return r
        if part.learns:
            open_weighted(rounds, r, state.counters)
        asked_first = len(decisions) > 0 and last - first > 1  # all answers of a round come before it is learned
        for turn in range(2 if asked_first else 1):
            learns = turn == 1 or not asked_first
            for row in range(first, last):
                here = waiting_row(block, r - part.first, at, at_crossed, work) if waits else work
                h = weight_of(rounds, row) if learns else 0.0
                if part.prepares:
                    new = read_row(rounds, row, settings, state, here)
                    if h > 0.0:
                        learn_ahead(rounds, row, new, h, settings, state, here)
                if part.learns:
                    if waits and r + 1 < end:
                        fetch_records(block, r + 1 - part.first, at + padded(here.counts[N]), state)
                    f = answer(rounds.task[row], settings, state, here)
                    if h > 0.0:
                        learn_answer(rounds.task[row], here.ahead[0].target, h, f, settings, state, here)
                    if len(decisions) > 0 and turn == 0:
                        decisions[row] = here.ahead[0].mean_before + f
                at += padded(here.counts[N])
                at_crossed += padded(here.counts[N_CROSSED])
    return end


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    work = workspace(rounds, 0, len(decisions), settings, state.shared)
    decide_rows(rounds, 0, len(decisions), settings, state, decisions, work)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, part: Part) -> int:
    end = part.last if part.last >= 0 else len(rounds.starts) - 1
    work = workspace(rounds, rounds.starts[part.first], rounds.starts[end], settings, state.shared)
    return learn_rounds(rounds, settings, state, decisions, part, end, part.block, work)


WHOLE = Part(0, -1, True, True, new_block(0, np.zeros(0, np.int64), 0, 0))  # row by row


def run(step: Callable[[Part], int], rounds: Rounds, settings: Settings) -> int:
    """Learn rounds, in two threads if that pays."""
    return pipeline.run(step, WHOLE, rounds, partial(two_blocks, rounds=rounds, settings=settings))


SHARING = {"learned": LEARNED, "independent": INDEPENDENT, "pooled": ALL_POOLED}
PARAMETERS = {
    "relation": one_of(SHARING),
    "interactions": or_auto(truth(), NARROW),
    "memory": positive(),
    "dtype": WEIGHTS_TYPE,
}
MEGABYTE = 1e6


def settings_of(p: Params, *, regression: bool) -> Settings:
    """Of labels, or of real targets."""
    interactions = NARROW if p.interactions is NARROW else ALWAYS if p.interactions else NEVER
    full_features = FEW_FULL if interactions == NEVER else MOST_FULL
    return Settings(regression, p.relation, interactions, p.memory * MEGABYTE, full_features)


def count_features(_: Setup, state: State) -> None:
    """A feature that another copy has seen has come: who counts places for features must not find more than came."""
    state.seen[FEATURES] = min(int(np.count_nonzero(state.scale.features[:, 1])), FEW_FEATURES + 1)


LABELS = Algorithm[State](
    parameters=PARAMETERS,
    settings=partial(settings_of, regression=False),
    allocate=states.allocate,
    learn=learn,
    decide=decide,
    exchange=Exchange(
        mean=("shared", "weights", "crossed.shared", "scale.features", "scale.recent"),
        sum=("scale.sums", "surprises"),
        sums_within=(
            *((name, (-1 - H, -1 - G)) for name in ("shared", "crossed.shared")),  # HF forgets: a mean
            ("scale.features", (0, 1)),
        ),
        local=(
            "targets",
            "errors",
            "rows",
            "seen",
            "regression",
            "covariance",
            "counters",
            "crossed.bins.occurred",
            "crossed.bins.numeric",
            "crossed.bins.taken",
            "crossed.bins.is_binned",
            "crossed.bins.sample",
            "crossed.bins.edges",
            "crossed.bins.counters",
            "crossed.own",
            "crossed.last",
            "full.place",
            "full.pooled",
            "full.own",
            "full.counters",
        ),
        recount=count_features,
    ),
    no_weights="",
    storage=Storage(
        grow=states.grow,
        extend=states.extend,
        pack=states.pack,
        blank=states.blank,
        check=states.check,
        unpack=states.unpack,
    ),
    tasks=Tasks(leave=states.leave),
    chunks=Chunks(run=run),
)
NUMBERS_TO_PREDICT = LABELS._replace(settings=partial(settings_of, regression=True))
