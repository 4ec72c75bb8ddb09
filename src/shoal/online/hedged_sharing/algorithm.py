"""Hedged sharing as an algorithm: many ways of learning and sharing, mixed row by row.

The forecasts of the experts (`experts`) are mixed twice (`answer`): by Bayes weights with a fixed share, one set a task
and one for all, then by a regression on the experts and the two mixtures. Its forecast times a factor of the task is
the answer. Labels are forecast by probabilities and mixed on the logits. Real targets are centred on their running mean
and measured in their running deviation; the likelihood of an expert is Gaussian with the mixture's mean squared error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import prefetch
from shoal.engine.rounds import Rounds, cut
from shoal.engine.rows import open_weighted, padded, weight_of
from shoal.engine.task_weights.hash_table import has_capacity
from shoal.model.algorithm import Algorithm, Chunks, Exchange, Piece, Setup, Storage, Tasks
from shoal.model.parameters import WEIGHTS_TYPE, Params, one_of, or_auto, positive, truth
from shoal.model.state import described
from shoal.online.boosted_trees import Effort
from shoal.online.hedged_sharing import state as states
from shoal.online.hedged_sharing.dense import N_MARGINS, Dense, answered, asleep, learned, sleeps
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
from shoal.online.hedged_sharing.kalman import FEW_FULL, MOST_FULL
from shoal.online.hedged_sharing.linear import WIDTH, G, H
from shoal.online.hedged_sharing.row import (
    N_CROSSED,
    Block,
    N,
    Settings,
    Work,
    answer,
    block_has_room,
    decide_row,
    for_dense,
    learn_ahead,
    learn_answer,
    new_block,
    read_row,
    two_blocks,
    waiting_row,
    workspace,
)
from shoal.online.hedged_sharing.state import Mixed, State, mixed
from shoal.parallel import pipeline
from shoal.parallel.cores import add_seconds, n_threads
from shoal.parallel.pipeline import Part


@kernel(inline=False, alone=False)
def decide_rows(
    rounds: Rounds, first: int, last: int, settings: Settings, state: Mixed, decisions: FloatArray, work: Work
) -> None:
    """The decisions on some rows."""
    for row in range(first, last):
        decisions[row] = decide_row(rounds, row, settings, state, work)


@kernel(inline=False, alone=False)
def fits(
    rounds: Rounds,
    first: int,
    last: int,
    i: int,
    at: int,
    at_crossed: int,
    settings: Settings,
    state: Mixed,
    block: Block,
) -> bool:
    """Whether there is room for a round in the state, and in the block if there is one."""
    has_place = len(block.counts) == 0 or block_has_room(rounds, first, i, at, at_crossed, settings, block)
    return has_place and has_capacity(rounds, first, last, state.own.tables)


@kernel(alone=False)
def fetch_records(block: Block, i: int, first: int, state: Mixed) -> None:
    """Have what all tasks share of the features of row i, a wide one, brought from memory while another is learned."""
    n, feature = block.counts[i, N], block.feature[first:]
    if n > FEW_ENTRIES:
        for k in range(n):
            prefetch(state.shared, np.uint64(feature[k]) * np.uint64(WIDTH))


@kernel(inline=False, alone=False)
def learn_rounds(
    rounds: Rounds,
    settings: Settings,
    state: Mixed,
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
                    new = read_row(rounds, row, settings, state, settings.again if learns else settings.margins, here)
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
def decide(rounds: Rounds, settings: Settings, state: Mixed, decisions: FloatArray) -> None:
    work = workspace(rounds, 0, len(decisions), settings, state.shared)
    decide_rows(rounds, 0, len(decisions), settings, state, decisions, work)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: Mixed, decisions: FloatArray, part: Part) -> int:
    end = part.last if part.last >= 0 else len(rounds.starts) - 1
    work = workspace(rounds, rounds.starts[part.first], rounds.starts[end], settings, state.shared)
    return learn_rounds(rounds, settings, state, decisions, part, end, part.block, work)


WHOLE = Part(0, -1, True, True, new_block(0, np.zeros(0, np.int64), 0, 0))  # row by row


def run(step: Callable[[Part], int], rounds: Rounds, settings: Settings) -> int:
    """Learn rounds, in two threads if that pays."""
    return pipeline.run(step, WHOLE, rounds, partial(two_blocks, rounds=rounds, settings=settings))


ASLEEP = np.zeros((0, N_MARGINS))  # margins of experts on dense rows that all sleep
PIECE = 2**12  # rows


class Asked(NamedTuple):
    """A piece of which the experts on dense rows have said theirs, and what they have learned then."""

    piece: Piece
    dense: Dense


def pieces(setup: Setup, state: State, rounds: Rounds, learns: bool) -> Iterator[Piece]:
    """Rows of which the experts on dense rows have said, and learned, theirs; a thread does the next meanwhile."""
    n, ask = len(rounds.task), partial(_ask, setup, rounds, learns)
    asked = ask(0, state.dense)
    if asked.piece.last == n:
        yield asked.piece
        return
    with ThreadPoolExecutor(1) as pool:
        while asked.piece.last < n:
            last, dense = asked.piece.last, asked.dense
            ahead = pool.submit(_timed, ask, last, dense) if n_threads() > 1 else None
            yield asked.piece
            asked, seconds = ahead.result() if ahead is not None else (ask(last, dense), 0.0)
            add_seconds(seconds)
        yield asked.piece


def _timed(ask: Callable[[int, Dense], Asked], first: int, dense: Dense) -> tuple[Asked, float]:
    """With the seconds of processor time that it takes."""
    began = time.thread_time()
    return ask(first, dense), time.thread_time() - began


def _ask(setup: Setup, rounds: Rounds, learns: bool, first: int, dense: Dense) -> Asked:
    """The piece that begins there; all that is left once all of them sleep."""
    settings, n = setup.settings, len(rounds.task)
    if sleeps(dense, settings.full_features):
        piece = rounds if first == 0 else cut(rounds, first, n)
        return Asked(Piece(first, n, piece, settings, {"dense": dense}), dense)
    told, last, piece = for_dense(settings), n, rounds
    if first + PIECE < n:
        starts = rounds.starts if learns else np.arange(0, n + 1)
        at = int(np.searchsorted(starts, first + PIECE, "right")) - 1
        last = int(starts[max(at, int(np.searchsorted(starts, first)) + 1)])
    if last - first < n:
        piece = cut(rounds, first, last)
    margins = again = np.empty((last - first, N_MARGINS))
    if learns:
        again = margins if len(piece.starts) - 1 == last - first else margins.copy()
        dense = learned(piece, told, dense, margins, again)
        if sleeps(dense, told.most):
            dense = asleep(dense, regression=told.regression)
    else:
        answered(piece, told, dense, margins)
    settings = settings._replace(margins=margins, again=again)
    return Asked(Piece(first, last, piece, settings, {"dense": dense}), dense)


SHARING = {"learned": LEARNED, "independent": INDEPENDENT, "pooled": ALL_POOLED}
# What levels and effects may cost, in squares of columns, and training trees, in additions to a histogram.
EFFORTS = {
    "fast": (5e7, Effort(-np.inf, 1.0)),
    "auto": (2e8, Effort(6e8, 500.0)),
    "full": (np.inf, Effort(0.0, np.inf)),
}
PARAMETERS = {
    "relation": one_of(SHARING),
    "interactions": or_auto(truth(), NARROW),
    "memory": positive(),
    "effort": one_of(EFFORTS),
    "dtype": WEIGHTS_TYPE,
}
MEGABYTE = 1e6


def settings_of(p: Params, *, regression: bool) -> Settings:
    """Of labels, or of real targets."""
    interactions = NARROW if p.interactions is NARROW else ALWAYS if p.interactions else NEVER
    full_features = FEW_FULL if interactions == NEVER else MOST_FULL
    filters, trees = p.effort if interactions != NEVER else (p.effort[0], EFFORTS["fast"][1])
    memory = p.memory * MEGABYTE
    return Settings(regression, p.relation, interactions, memory, full_features, filters, trees, ASLEEP, ASLEEP)


def count_features(_: Setup, state: State) -> None:
    """A feature that another copy has seen has come: who counts places for features must not find more than came."""
    state.seen[FEATURES] = min(int(np.count_nonzero(state.scale.features[:, 1])), FEW_FEATURES + 1)


# Of copies that learned different tasks: what is averaged, and what is added up. Each keeps the rest.
MEANS = ("shared", "weights", "slow", "trusts", "crossed.shared", "scale.features", "scale.recent")
TOTALS = ("scale.sums", "surprises")
LABELS = Algorithm[State](
    parameters=PARAMETERS,
    settings=partial(settings_of, regression=False),
    allocate=states.allocate,
    learn=learn,
    decide=decide,
    exchange=Exchange(
        mean=MEANS,
        sum=TOTALS,
        sums_within=(
            *((name, (-1 - H, -1 - G)) for name in ("shared", "crossed.shared")),
            ("scale.features", (0, 1)),
        ),
        local=tuple(
            leaf.name
            for leaf in described(State)
            if TASK not in leaf.axes and leaf.name not in (*MEANS, *TOTALS) and not leaf.name.startswith("own.")
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
    chunks=Chunks(pieces=pieces, run=run, seen=mixed),
)
NUMBERS_TO_PREDICT = LABELS._replace(settings=partial(settings_of, regression=True))
