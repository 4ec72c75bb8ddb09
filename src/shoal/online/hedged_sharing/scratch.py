"""Scratch of one call, and blocks of rows that wait between the two threads of `shoal.parallel.pipeline`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_empty
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import padded, row_bounds, whole_turns
from shoal.engine.task_weights.record_table import Found
from shoal.online.boosted_trees import Effort
from shoal.online.hedged_sharing import crossing, linear
from shoal.online.hedged_sharing.crossing import CrossedRow, most_entries
from shoal.online.hedged_sharing.dense import N_MARGINS, DenseSettings
from shoal.online.hedged_sharing.experts import HEAD, N_EXPERTS, NEVER, taking_part
from shoal.online.hedged_sharing.linear import Lanes, new_lanes
from shoal.online.hedged_sharing.mixing import LOGITS_TURN, N_ANSWERS, N_STACKS, TRUSTS, TURN
from shoal.online.hedged_sharing.scaling import ScaledRow

PLACES, CROSSED_PLACES = 2**16, 2**17  # of a block, for entries of rows and of crossed rows

# What is computed of a row before its answer.
_AHEAD = [
    ("mean_l1", np.float64),  # of scaled rows
    ("crossed", np.bool_),  # whether the experts on crossed rows are awake
    ("serial", np.int64),  # of the task's records of crossed rows
    ("dense", np.bool_),  # whether any expert on dense rows but the first is awake
    ("for_good", np.bool_),  # neither they nor crossed rows will be awake again
    ("target", np.float64),  # 0 or 1, or a real target less the mean before it
    ("mean_before", np.float64),  # of real targets, as are the next three
    ("unit_before", np.float64),
    ("unit_after", np.float64),
    ("largest_before", np.float64),
]
AHEAD = np.dtype((np.record, np.dtype(_AHEAD, align=True)))
N, N_CROSSED, MISSING = range(3)  # positions in `counts`: entries of both rows, pairs without a record


class Settings(NamedTuple):
    """The recipe's constants; sharing, interactions and memory are for users to set."""

    regression: bool
    sharing: int
    interactions: int
    memory: float  # bytes, of full matrices
    full_features: int  # beyond which there are no full matrices
    filters: float  # as in `dense`
    trees: Effort
    margins: FloatArray  # (rows, N_MARGINS) of experts on dense rows, or empty: all sleep
    again: FloatArray  # the same just before each row is learned, when others of its round have been
    young: float = 10.0  # rows after which a task's own experts count half
    fresh: float = 2.5  # rows after which the second mixing counts half


def for_dense(settings: Settings) -> DenseSettings:
    """What experts on dense rows are told."""
    return DenseSettings(*settings[:2], settings.memory, settings.full_features, settings.filters, settings.trees)


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
    logits: FloatArray  # (32,) of own experts leaning on pooled ones while young, and of all experts
    forecasts: FloatArray  # (32,) their sigmoids, or the same of real targets
    margins: FloatArray  # (experts,) within `logits`
    chances: FloatArray  # (experts,) within `forecasts`
    p: FloatArray  # (experts,) forecasts, with the leaning ones
    z: FloatArray  # (TURN,) inputs of the second mixing, and zeros
    direction: FloatArray  # (TURN,)
    stacks: FloatArray  # (2,) forecasts of the second mixing's regressions
    answers: FloatArray  # (3,) forecasts of the third mixing's inputs; of labels, probabilities
    ones: FloatArray  # (3,)
    trusts: FloatArray  # (3,) of the third mixing, before the first row
    forecast: FloatArray  # (2,) of the mixture of all tasks, and the answer
    part: FloatArray  # (experts,) 1 for those that may be awake
    awake: FloatArray  # (experts,) 1, or 0 for those that sleep
    uniform: FloatArray  # (experts,) over those that may be awake


@kernel(inline=False, allocates=True, alone=False)
def workspace(rounds: Rounds, first: int, last: int, settings: Settings, dtype_of: FloatArray) -> Work:
    """For rows from `first` up to `last`."""
    longest = rounds.width
    for row in range(first, min(last, len(rounds.indptr) - 1)):
        longest = max(longest, rounds.indptr[row + 1] - rounds.indptr[row])
    n, crossed_n = padded(longest + 1), most_entries(longest) if settings.interactions != NEVER else 0
    # One array of each kind: each takes its time to be made.
    reals, ints = np.zeros(4 * n + 2 * crossed_n), np.zeros(3 * n + 2 * crossed_n, np.int64)
    small = np.zeros((7, LOGITS_TURN))
    room = ints[3 * n :]
    row_x, squares, counts, recent = reals[:n], reals[n : 2 * n], reals[2 * n : 3 * n], reals[3 * n : 4 * n]
    logits, forecasts, part = small[0], small[1], small[4, :N_EXPERTS]
    n_part = taking_part(settings.sharing, settings.interactions, settings.trees.once >= 0.0, settings.regression, part)
    return Work(
        ScaledRow(row_x, ints[:n], squares, counts, recent, np.zeros(2)),
        Found(ints[n : 2 * n], ints[2 * n : 3 * n]),
        CrossedRow(
            reals[4 * n : 4 * n + crossed_n], room[:crossed_n], room[crossed_n:], np.zeros(n, np.int64), np.zeros(n)
        ),
        np.zeros(3, np.int64), np.zeros(1, AHEAD), np.full(N_MARGINS, np.nan), new_lanes(linear.N_COLUMNS, n, dtype_of),
        new_lanes(crossing.N_COLUMNS, crossed_n, dtype_of),
        logits, forecasts, logits[HEAD : HEAD + N_EXPERTS], forecasts[HEAD : HEAD + N_EXPERTS], small[5, :N_EXPERTS],
        small[2, :TURN], small[3, :TURN], np.zeros(N_STACKS), np.zeros(N_ANSWERS), np.ones(N_ANSWERS),
        np.array(TRUSTS), np.zeros(2), part, small[6, :N_EXPERTS], part / n_part,
    )  # fmt: skip


def new_block(n_rows: int, entries: IntArray, n_places: int, n_crossed: int) -> Block:
    """Room for so much, in an array of 3 (n_places + n_crossed) numbers."""
    plain, crossed = entries[: 3 * n_places].reshape(3, -1), entries[3 * n_places :].reshape(3, -1)
    return Block(
        plain[0].view(np.float64), plain[1], plain[2], crossed[0].view(np.float64), crossed[1], crossed[2],
        np.zeros((n_rows, 3), np.int64), np.zeros(n_rows, AHEAD), np.full((n_rows, N_MARGINS), np.nan),
    )  # fmt: skip


def two_blocks(n_rows: int, rounds: Rounds, settings: Settings) -> tuple[Block, Block]:
    """Each with room for at most so many rows; any one of these fits.

    Entries are written before they are read, so they are not cleared. One array: for a large one memory comes faster.
    """
    longest = rounds.width if rounds.width > 0 else int(np.diff(rounds.indptr).max())
    n_places = max(PLACES, whole_turns(longest + 1))
    n_crossed = 0 if settings.interactions == NEVER else max(CROSSED_PLACES, most_entries(longest))
    these, those = aligned_empty((2, 3 * (n_places + n_crossed)), np.int64)
    return new_block(n_rows, these, n_places, n_crossed), new_block(n_rows, those, n_places, n_crossed)


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
