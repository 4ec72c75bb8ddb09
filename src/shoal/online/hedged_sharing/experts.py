"""The nine linear experts of hedged sharing: three rules times three ways of sharing, all on one scaled row.

Three learning rules (N diagonal second order, A AdaGrad, C constant step) times three ways of sharing (pooled: s;
together: s + v_k, both step; own: v_k). With margin m of an expert, error e (of a label y - sigmoid(m), of a real
target y - m), curvature c (p (1 - p), or 1) and per-feature steps r_j,

    w_j <- w_j + r_j x_j e / (1 + tau c),   tau = sum_j r_j x_j^2      (one Newton iterate of the implicit step)

N: r = 1/(1/a + H), H the sum of c x^2 at the final forecast;  A: r = eta/sqrt(G), G the sum of squared gradients;
C: r constant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import RECORD, move, prefetch, products
from shoal.engine.rounds import Rounds
from shoal.engine.rows import padded
from shoal.engine.task_weights.record_table import Found
from shoal.online.hedged_sharing.mixing import TURN, weighted_slope
from shoal.online.hedged_sharing.scaling import ScaledRow
from shoal.parallel.pipeline import Block

EXPERTS = [
    f"{rule}-{sharing}" for rule in ("newton", "adagrad", "constant") for sharing in ("pooled", "together", "own")
]
# Positions in a record: two weights a rule (shared: of pooled and together; own: of together and own), then H and G.
N, A, C, H, G, NUMBERS = 0, 2, 4, 6, 7, RECORD
RULES = (N, A, C)
TINY = 1e-12  # AdaGrad's first step divides by a root that may be zero


LEARNED, INDEPENDENT, POOLED = 0, 1, 2  # who takes part: all experts, those of own weights, the pooled ones


@kernel(entry=True)
def wake(sharing: int, awake: FloatArray) -> None:
    """1 for experts that take part, 0 for the others."""
    for e in range(9):
        own, pooled = e % 3 == 2, e % 3 == 0
        asleep = (sharing == INDEPENDENT and not own) or (sharing == POOLED and not pooled)
        awake[e] = 0.0 if asleep else 1.0


def awake_of(settings: Settings) -> FloatArray:
    """(9,) 1 for experts that take part."""
    awake = np.empty(9)
    wake(settings.sharing, awake)
    return awake


class Settings(NamedTuple):
    """The recipe's constants; none is for users to set."""

    regression: bool = False
    prior_one: float = 10.0  # a of pooled and own N experts
    prior_both: float = 1.0  # a of the two parts of "together"
    eta: float = 3.0  # of A, divided by the mean 1-norm of rows
    step_pooled: float = 0.4  # of C
    step_both: float = 0.1
    step_own: float = 1.6
    young: float = 10.0  # rows after which a task's own experts count half
    sharing: int = LEARNED


class Work(NamedTuple):
    """Scratch of one call."""

    row: ScaledRow  # (longest row + 1, padded) each; its features are places in `shared`
    found: Found  # (same) each; of the row's pairs in `own`
    sums: FloatArray  # (4, same) H of s and v, G of s and v
    steps: FloatArray  # (6, same) of N: pooled, together (s, v), own; of A: s, v
    squares: FloatArray  # (same) x^2
    of_shared: FloatArray  # (8,) what the records' numbers add up to, or what their steps are multiplied by
    of_own: FloatArray  # (8,)
    logits: FloatArray  # (16,) of the nine experts, and of the three own ones leaning on the pooled while young
    chance: FloatArray  # (16,) their sigmoids
    p: FloatArray  # (9,) the experts' forecasts, with the leaning ones
    z: FloatArray  # (16,) inputs of the second mixing, and zeros
    direction: FloatArray  # (16,)
    forecast: FloatArray  # (2,) task's mixture, everybody's
    uniform: FloatArray  # (9,) over the experts that are awake
    awake: FloatArray  # (9,) 1, or 0 for experts that take no part


@kernel(entry=True, allocates=True)
def workspace(rounds: Rounds, first: int, last: int, settings: Settings) -> Work:
    awake = np.empty(9)
    wake(settings.sharing, awake)
    longest = rounds.width
    for row in range(first, min(last, len(rounds.indptr) - 1)):
        longest = max(longest, rounds.indptr[row + 1] - rounds.indptr[row])
    n = padded(longest + 1)
    scaled = ScaledRow(np.zeros(n), np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(2))
    found = Found(np.zeros(n, np.int64), np.zeros(n, np.int64))
    return Work(
        scaled, found, np.zeros((4, n)), np.zeros((6, n)), np.zeros(n), np.zeros(NUMBERS), np.zeros(NUMBERS),
        np.zeros(16), np.zeros(16), np.zeros(9), np.zeros(TURN), np.zeros(TURN),
        np.zeros(2), awake / awake.sum(), awake,
    )  # fmt: skip


@kernel
def waiting_row(block: Block, first: int, work: Work) -> Work:
    """The scratch for a row of a block whose entries begin there."""
    row = ScaledRow(block.x[first:], block.feature[first:], *work.row[2:])
    return Work(row, Found(block.place[first:], work.found.entry), *work[2:])


@kernel
def margins(n: int, shared: FloatArray, own: FloatArray, work: Work) -> None:
    """The nine margins, and H and G of the row's features for `step_experts`."""
    x, sums, out = work.row.x, work.sums, work.logits
    s, v = work.of_shared, work.of_own
    for i in range(n):  # comes while the shared ones are multiplied
        prefetch(own, np.uint64(work.found.place[i]) * np.uint64(NUMBERS))
    products(n, x, work.row.feature, shared, sums[0], sums[2], s)
    products(n, x, work.found.place, own, sums[1], sums[3], v)
    for rule in range(3):  # pooled, together, own
        first, second = 2 * rule, 2 * rule + 1
        out[3 * rule], out[3 * rule + 1], out[3 * rule + 2] = s[first], s[second] + v[first], v[second]


@kernel(disjoint=True)
def _newton_steps(
    n: int, x: FloatArray, H_s: FloatArray, H_v: FloatArray, h: float, one: float, both: float, pooled: FloatArray,
    together_s: FloatArray, together_v: FloatArray, own: FloatArray, squares: FloatArray,
) -> tuple[float, float, float]:  # fmt: skip
    """1/(1/a + H), H taking the row in first, and each expert's tau. A division costs most, so one serves all four."""
    tau0 = tau1 = tau2 = 0.0
    for i in range(padded(n)):
        square = x[i] * x[i]
        of_s, of_v = H_s[i] + h * square, H_v[i] + h * square
        s, v = (one + of_s) * (both + of_s), (one + of_v) * (both + of_v)
        inverse = 1.0 / (s * v)
        r0, r1 = (both + of_s) * v * inverse, (one + of_s) * v * inverse
        r2, r3 = (one + of_v) * s * inverse, (both + of_v) * s * inverse
        tau0 += square * r0
        tau1 += square * (r1 + r2)
        tau2 += square * r3
        pooled[i], together_s[i], together_v[i], own[i] = r0 * x[i], r1 * x[i], r2 * x[i], r3 * x[i]
        squares[i] = square
    return tau0, tau1, tau2


@kernel(disjoint=True)
def _adagrad_steps(
    n: int, x: FloatArray, G_s: FloatArray, G_v: FloatArray, g: float, eta: float, tiny: float, of_s: FloatArray,
    of_v: FloatArray,
) -> tuple[float, float, float]:  # fmt: skip
    """eta/sqrt(G), G taking the row in first, and the sums of both times x^2, and of x^2."""
    tau_s = tau_v = squares = 0.0
    for i in range(padded(n)):
        square = x[i] * x[i]
        root_s, root_v = math.sqrt(G_s[i] + g * square + tiny), math.sqrt(G_v[i] + g * square + tiny)
        scale = eta / (root_s * root_v)
        tau_s += square * scale * root_v
        tau_v += square * scale * root_s
        squares += square
        of_s[i], of_v[i] = scale * root_v * x[i], scale * root_s * x[i]
    return tau_s, tau_v, squares


@kernel
def step_experts(
    n: int, y: float, curvature: float, g: float, eta: float, tiny: float, settings: Settings, shared: FloatArray,
    own: FloatArray, work: Work,
) -> None:  # fmt: skip
    """Move all nine experts, H and G; `curvature` and the squared gradient `g` are those of the answer."""
    x, sums, steps, squares, regression = work.row.x, work.sums, work.steps, work.squares, settings.regression
    tau0, tau1, tau2 = _newton_steps(
        n, x, sums[0], sums[1], curvature, 1.0 / settings.prior_one, 1.0 / settings.prior_both, steps[0], steps[1],
        steps[2], steps[3], squares,
    )  # fmt: skip
    tau_s, tau_v, norm = _adagrad_steps(n, x, sums[2], sums[3], g, eta, tiny, steps[4], steps[5])
    p = work.chance
    n0, n1, n2 = slope(p[0], y, tau0, regression), slope(p[1], y, tau1, regression), slope(p[2], y, tau2, regression)
    a0, a2 = slope(p[3], y, tau_s, regression), slope(p[5], y, tau_v, regression)
    a1 = slope(p[4], y, tau_s + tau_v, regression)
    c0 = slope(p[6], y, settings.step_pooled * norm, regression) * settings.step_pooled
    c1 = slope(p[7], y, 2.0 * settings.step_both * norm, regression) * settings.step_both
    c2 = slope(p[8], y, settings.step_own * norm, regression) * settings.step_own
    awake = work.awake
    n0, n1, n2, a0, a1, a2 = n0 * awake[0], n1 * awake[1], n2 * awake[2], a0 * awake[3], a1 * awake[4], a2 * awake[5]
    c0, c1, c2 = c0 * awake[6], c1 * awake[7], c2 * awake[8]
    scales_s, scales_v = work.of_shared, work.of_own  # one number of a record each
    scales_s[N], scales_s[N + 1], scales_v[N], scales_v[N + 1] = n0, n1, n1, n2
    scales_s[A], scales_s[A + 1], scales_v[A], scales_v[A + 1] = a0, a1, a1, a2
    scales_s[C], scales_s[C + 1], scales_v[C], scales_v[C + 1] = c0, c1, c1, c2
    scales_s[H], scales_s[G] = curvature * awake[0], g * awake[0]
    scales_v[H], scales_v[G] = curvature * awake[2], g * awake[2]
    move(n, work.row.feature, steps[0], steps[1], steps[4], x, squares, scales_s, shared)
    move(n, work.found.place, steps[2], steps[3], steps[5], x, squares, scales_v, own)


@kernel(inline=False)
def step_experts_by(
    h: float, n: int, y: float, curvature: float, g: float, eta: float, tiny: float, s: Settings, shared: FloatArray,
    own: FloatArray, work: Work,
) -> None:  # fmt: skip
    """The same for a row that counts h times; `curvature` and `g` are h times those of the answer.

    Every expert moves by `weighted_slope`, with the steps r of this row; of a real target, where one step is exact, by
    h e / (1 + tau h).
    """
    x, sums, steps = work.row.x, work.sums, work.steps
    tau0, tau1, tau2 = _newton_steps(
        n, x, sums[0], sums[1], curvature, 1.0 / s.prior_one, 1.0 / s.prior_both, steps[0], steps[1], steps[2],
        steps[3], work.squares,
    )  # fmt: skip
    tau_s, tau_v, norm = _adagrad_steps(n, x, sums[2], sums[3], g, eta, tiny, steps[4], steps[5])
    sizes = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, s.step_pooled, s.step_both, s.step_own)
    taus = (
        tau0, tau1, tau2, tau_s, tau_s + tau_v, tau_v, s.step_pooled * norm, 2.0 * s.step_both * norm,
        s.step_own * norm,
    )  # fmt: skip
    of_shared, of_own = work.of_shared, work.of_own
    for e in range(9):
        tau, m, place = taus[e], work.logits[e], 2 * (e // 3)
        pull = h * (y - m) / (1.0 + tau * h) if s.regression else weighted_slope(m, y, tau, h)
        pull *= sizes[e] * work.awake[e]
        if e % 3 < 2:  # pooled, together
            of_shared[place + e % 3] = pull
        if e % 3 > 0:  # together, own
            of_own[place + e % 3 - 1] = pull
    of_shared[H], of_shared[G] = curvature * work.awake[0], g * work.awake[0]
    of_own[H], of_own[G] = curvature * work.awake[2], g * work.awake[2]
    move(n, work.row.feature, steps[0], steps[1], steps[4], x, work.squares, of_shared, shared)
    move(n, work.found.place, steps[2], steps[3], steps[5], x, work.squares, of_own, own)


@kernel
def slope(p: float, y: float, tau: float, regression: bool) -> float:
    """e / (1 + tau c): the step cannot overshoot."""
    return (y - p) / (1.0 + tau * (1.0 if regression else p * (1.0 - p)))
