"""Hedged sharing as an algorithm: many ways of learning and sharing, mixed row by row.

Experts on dense rows answer and learn a piece of a chunk first (`dense`). Then each row is read, answered and learned
(`row`). Forecasts of all experts (`experts`) go through three mixings: Bayes weights of a task and of all tasks, two
regressions on the experts and these mixtures, and Bayes weights of their answers. Labels are forecast by probabilities
and mixed on the logits. Real targets are centered on their running mean and measured in their running deviation; the
likelihood of an expert is Gaussian with the mixture's mean squared error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.handles import Handle, whole
from shoal.engine.intrinsics import prefetch
from shoal.engine.rounds import Rounds, cut, n_numbers
from shoal.engine.rows import open_weighted, padded, row_bounds, weight_of
from shoal.engine.task_weights.hash_table import has_capacity
from shoal.model.algorithm import Algorithm, Chunks, Exchange, Piece, Row, Setup, Storage, Tasks
from shoal.model.parameters import WEIGHTS_TYPE, Params, one_of, or_auto, positive, truth
from shoal.model.state import described
from shoal.online.boosted_trees import Effort
from shoal.online.hedged_sharing import state as states
from shoal.online.hedged_sharing.columns import N_OUT, DenseSettings
from shoal.online.hedged_sharing.dense import answered, asleep, learned, one, sleeps
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
from shoal.online.hedged_sharing.linear import WIDTH, G, H
from shoal.online.hedged_sharing.row import (
    N_CROSSED,
    Block,
    DenseMargins,
    N,
    Scratch,
    Settings,
    Work,
    answer,
    block_has_room,
    decide_row,
    learn_ahead,
    learn_answer,
    longest_row,
    new_block,
    new_margins,
    read_row,
    scratch_for,
    two_blocks,
    waiting_row,
)
from shoal.online.hedged_sharing.state import State
from shoal.online.kalman_filters.full_matrix import FEW_FULL, MOST_FULL
from shoal.parallel import pipeline
from shoal.parallel.cores import add_seconds, n_threads
from shoal.parallel.pipeline import Part


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
    return has_place and has_capacity(rounds, first, last, state.own.tables)


@kernel(alone=False)
def fetch_records(block: Block, i: int, first: int, state: State) -> None:
    """Have what all tasks share of the features of row i, a wide one, brought from memory while another is learned."""
    n, feature = block.counts[i, N], block.feature[first:]
    if n > FEW_ENTRIES:
        for k in range(n):
            prefetch(state.shared, np.uint64(feature[k]) * np.uint64(WIDTH))


@kernel(entry=True)
def learn(
    rounds: Rounds,
    settings: Settings,
    state: State,
    decisions: FloatArray,
    of_dense: DenseMargins,
    work: Work,
    part: Part,
) -> int:
    """Do a part of the rounds, or of learning them, until there might be no room; return how far it got."""
    end = part.last if part.last >= 0 else len(rounds.starts) - 1
    block, work = part.block, whole(work)
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
                of_row = waiting_row(block, r - part.first, at, at_crossed, work) if waits else work
                h, bounds = weight_of(rounds, row) if learns else 0.0, row_bounds(rounds, row)
                if part.prepares:
                    new = read_row(
                        rounds, row, bounds, settings, state, of_dense.again if learns else of_dense.margins, of_row
                    )
                    if h > 0.0:
                        learn_ahead(rounds, row, bounds, new, h, settings, state, of_row)
                if part.learns:
                    if waits and r + 1 < end:
                        fetch_records(block, r + 1 - part.first, at + padded(of_row.counts[N]), state)
                    f = answer(rounds.task[row], settings, state, of_row)
                    if h > 0.0:
                        learn_answer(rounds.task[row], of_row.ahead[0].target, h, settings, state, of_row)
                    if len(decisions) > 0 and turn == 0:
                        decisions[row] = max(of_row.ahead[0].mean_before + f, of_row.ahead[0].least_before)
                at += padded(of_row.counts[N])
                at_crossed += padded(of_row.counts[N_CROSSED])
    return end


@kernel(entry=True)
def decide(
    rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, of_dense: DenseMargins, work: Work
) -> None:
    scratch = whole(work)
    for row in range(len(decisions)):
        decisions[row] = decide_row(rounds, row, settings, state, of_dense, scratch)


WHOLE = Part(0, -1, True, True, Handle(new_block(0, np.zeros(0, np.int64), 0, 0)))  # row by row


def run(step: Callable[..., int], more: tuple[Any, ...], rounds: Rounds, setup: Setup) -> int:
    """Learn rounds, in two threads if that pays."""
    longest, settings = longest_row(rounds), setup.settings

    def part_of(part: Part) -> int:
        return step(more[0], scratch_for(longest, settings, setup.params.dtype).row, part)

    return pipeline.run(part_of, WHOLE, rounds, partial(two_blocks, rounds=rounds, settings=settings))


ASLEEP = DenseMargins(np.zeros((0, N_OUT)), np.zeros((0, N_OUT)))
PIECE, FIRST_PIECE = 2**12, 2**6  # rows; of a wide stream the first ones may be all dense rows that there are


def pieces(setup: Setup, state: Handle[State], rounds: Rounds, learns: bool) -> Iterable[Piece]:
    """Rows that the experts on dense rows have answered and learned; a thread does the next meanwhile."""
    piece, state = _ask(setup, rounds, learns, 0, state)
    return (piece,) if piece.last == len(rounds.task) else _with_next_ahead(setup, rounds, learns, piece, state)


def _with_next_ahead(setup: Setup, rounds: Rounds, learns: bool, piece: Piece, state: Handle[State]) -> Iterator[Piece]:
    n, ask = len(rounds.task), partial(_ask, setup, rounds, learns)
    with ThreadPoolExecutor(1) as pool:
        while piece.last < n:
            last = piece.last
            pays = n_threads() > 1 and not sleeps(state.dense, setup.settings.dense)
            ahead = pool.submit(_timed, ask, last, state) if pays else None
            yield piece
            (piece, state), seconds = ahead.result() if ahead is not None else (ask(last, state), 0.0)
            add_seconds(seconds)
        yield piece


Asked: TypeAlias = tuple[Piece, Handle[State]]


def _timed(ask: Callable[[int, Handle[State]], Asked], first: int, state: Handle[State]) -> tuple[Asked, float]:
    """With the seconds of processor time that it takes."""
    began = time.thread_time()
    return ask(first, state), time.thread_time() - began


def _ask(setup: Setup, rounds: Rounds, learns: bool, first: int, state: Handle[State]) -> Asked:
    """The piece that begins there, and a state with what groups learned; all that is left once all of them sleep."""
    n = len(rounds.task)
    last = n if sleeps(state.of.dense, setup.settings.dense) else _end(rounds, learns, first)
    piece = rounds if last - first == n else cut(rounds, first, last)
    after, more = _answered(setup, piece, learns, state)
    changes = {} if after is state else {"dense": after.of.dense}
    return Piece(first, last, piece, setup.settings, changes, more), after


def one_row(setup: Setup, state: Handle[State], rounds: Rounds, learns: bool) -> Row:
    """The same of one row; most often one call does it."""
    settings, scratch = setup.settings.dense, _scratch(setup, rounds)
    margins = scratch.margins
    if not sleeps(state.of.dense, settings) and one(rounds, settings, state, margins.margins, learns, scratch.dense):
        return {}, (margins, scratch.row, WHOLE) if learns else (margins, scratch.row)
    after, more = _answered(setup, rounds, learns, state)
    return ({} if after is state else {"dense": after.of.dense}), more


def _answered(
    setup: Setup, rounds: Rounds, learns: bool, state: Handle[State]
) -> tuple[Handle[State], tuple[Any, ...]]:
    """A state with what groups learned of rows, and what the loop over them takes besides."""
    settings, n = setup.settings.dense, len(rounds.task)
    scratch = _scratch(setup, rounds)
    if sleeps(state.of.dense, settings):
        return state, (ASLEEP, scratch.row, WHOLE) if learns else (ASLEEP, scratch.row)
    of_dense = scratch.margins if n == 1 else new_margins(n)
    if not learns:
        answered(rounds, settings, state, of_dense.margins, scratch.dense)
        return state, (of_dense, scratch.row)
    if len(rounds.starts) - 1 < n:
        of_dense = of_dense._replace(again=of_dense.margins.copy())
    after = learned(rounds, settings, state, of_dense.margins, of_dense.again, scratch.dense)
    if sleeps(after.of.dense, settings):
        after = Handle(after.of._replace(dense=asleep(after.of.dense, regression=settings.regression)))
    return after, (of_dense, scratch.row, WHOLE)


def _end(rounds: Rounds, learns: bool, first: int) -> int:
    """Where the piece ends that begins there; if rows are learned, not before the end of its first round."""
    n = len(rounds.task)
    if n - first <= FIRST_PIECE:
        return n
    is_wide = n_numbers(rounds) > FEW_ENTRIES * n
    most = FIRST_PIECE if is_wide and first == 0 else PIECE
    if n - first <= most:
        return n
    starts = rounds.starts if learns else np.arange(0, n + 1)
    at = int(np.searchsorted(starts, first + most, "right")) - 1
    return int(starts[max(at, int(np.searchsorted(starts, first)) + 1)])


def _scratch(setup: Setup, rounds: Rounds) -> Scratch:
    return scratch_for(longest_row(rounds), setup.settings, setup.params.dtype)


SHARING = {"learned": LEARNED, "independent": INDEPENDENT, "pooled": ALL_POOLED}
# The most that levels and effects may cost, in squares of columns, and training of trees, in additions to a histogram.
EFFORTS = {
    "fast": (5e7, Effort(-np.inf, 1.0)),
    "auto": (5e7, Effort(6e8, 500.0)),
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
    most = FEW_FULL if interactions == NEVER else MOST_FULL
    filters, trees = p.effort if interactions != NEVER else (p.effort[0], EFFORTS["fast"][1])
    memory = p.memory * MEGABYTE
    dense = DenseSettings(regression, p.relation, memory, most, most == MOST_FULL, filters, trees)
    return Settings(regression, p.relation, interactions, memory, dense)


def count_features(_: Setup, state: State) -> None:
    """Count the features that any copy has seen: more places than these must not be found."""
    state.seen[FEATURES] = min(int(np.count_nonzero(state.scale.features[:, 1])), FEW_FEATURES + 1)


# Of copies that learned different tasks: the arrays that are averaged, and those that are added up.
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
    chunks=Chunks(seen=Handle, pieces=pieces, row=one_row, run=run),
)
NUMBERS_TO_PREDICT = LABELS._replace(settings=partial(settings_of, regression=True))
