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

from shoal.online._ahead import Block
from shoal.online._mixing import TURN
from shoal.online._scaling import ScaledRow
from shoal.ops import jit, leaf, leaf_disjoint, leaf_disjoint_in_order, leaf_in_order, padded, prefetch
from shoal.pairs import Found
from shoal.rounds import FloatArray, IntArray, Rounds

EXPERTS = [
    f"{rule}-{sharing}" for rule in ("newton", "adagrad", "constant") for sharing in ("pooled", "together", "own")
]
# Positions in a record: two weights a rule (shared: of pooled and together; own: of together and own), then H and G.
N, A, C, H, G, NUMBERS = 0, 2, 4, 6, 7, 8
RULES = (N, A, C)
TINY = 1e-12  # AdaGrad's first step divides by a root that may be zero


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


class Work(NamedTuple):
    """Scratch of one call."""

    row: ScaledRow  # (longest row + 1, padded) each; its features are places in `shared`
    found: Found  # (same) each; of the row's pairs in `own`
    sums: FloatArray  # (4, same) H of s and v, G of s and v
    steps: FloatArray  # (6, same) of N: pooled, together (s, v), own; of A: s, v
    logits: FloatArray  # (16,) of the nine experts, and of the three own ones leaning on the pooled while young
    chance: FloatArray  # (16,) their sigmoids
    p: FloatArray  # (9,) the experts' forecasts, with the leaning ones
    z: FloatArray  # (16,) inputs of the second mixing, and zeros
    direction: FloatArray  # (16,)
    forecast: FloatArray  # (2,) task's mixture, everybody's
    uniform: FloatArray  # (9,)


@jit
def workspace(rounds: Rounds, first: int, last: int) -> Work:
    longest = rounds.width
    for row in range(first, min(last, len(rounds.indptr) - 1)):
        longest = max(longest, rounds.indptr[row + 1] - rounds.indptr[row])
    n = padded(longest + 1)
    scaled = ScaledRow(np.zeros(n), np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(2))
    found = Found(np.zeros(n, np.int64), np.zeros(n, np.int64))
    return Work(
        scaled, found, np.zeros((4, n)), np.zeros((6, n)),
        np.zeros(16), np.zeros(16), np.zeros(9), np.zeros(TURN), np.zeros(TURN),
        np.zeros(2), np.full(9, 1.0 / 9.0),
    )  # fmt: skip


@leaf
def waiting_row(block: Block, first: int, work: Work) -> Work:
    """The scratch for a row of a block whose entries begin there."""
    row = ScaledRow(block.x[first:], block.feature[first:], *work.row[2:])
    return Work(row, Found(block.place[first:], work.found.entry), *work[2:])


@leaf_in_order
def _products(
    n: int, x: FloatArray, place: IntArray, records: FloatArray, H_: FloatArray, G_: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """Inner products of the six weights in a record with x; H and G side by side for the steps."""
    n0 = n1 = a0 = a1 = c0 = c1 = 0.0
    for i in range(n):
        record, value = records[np.uint32(place[i])], x[i]
        n0 += record[N] * value
        n1 += record[N + 1] * value
        a0 += record[A] * value
        a1 += record[A + 1] * value
        c0 += record[C] * value
        c1 += record[C + 1] * value
        H_[i], G_[i] = record[H], record[G]
    return n0, n1, a0, a1, c0, c1


@leaf
def margins(n: int, shared: FloatArray, own: FloatArray, work: Work) -> None:
    """The nine margins, and H and G of the row's features for `step_experts`."""
    x, sums, out = work.row.x, work.sums, work.logits
    for i in range(n):  # comes while the shared ones are multiplied
        prefetch(own, np.uint64(work.found.place[i]) * np.uint64(NUMBERS))
    n0, n1, a0, a1, c0, c1 = _products(n, x, work.row.feature, shared, sums[0], sums[2])
    m0, m1, b0, b1, d0, d1 = _products(n, x, work.found.place, own, sums[1], sums[3])
    out[0], out[1], out[2] = n0, n1 + m0, m1  # pooled, together, own
    out[3], out[4], out[5] = a0, a1 + b0, b1
    out[6], out[7], out[8] = c0, c1 + d0, d1


@leaf_disjoint
def _newton_steps(
    n: int, x: FloatArray, H_s: FloatArray, H_v: FloatArray, h: float, one: float, both: float, pooled: FloatArray,
    together_s: FloatArray, together_v: FloatArray, own: FloatArray,
) -> tuple[float, float, float]:  # fmt: skip
    """1/(1/a + H), H taking the row in first, and each expert's tau. A division costs most, so one serves all four."""
    tau0 = tau1 = tau2 = 0.0
    for i in range(padded(n)):
        square = x[i] * x[i]
        H_s[i] += h * square
        H_v[i] += h * square
        s, v = (one + H_s[i]) * (both + H_s[i]), (one + H_v[i]) * (both + H_v[i])
        inverse = 1.0 / (s * v)
        r0, r1 = (both + H_s[i]) * v * inverse, (one + H_s[i]) * v * inverse
        r2, r3 = (one + H_v[i]) * s * inverse, (both + H_v[i]) * s * inverse
        tau0 += square * r0
        tau1 += square * (r1 + r2)
        tau2 += square * r3
        pooled[i], together_s[i], together_v[i], own[i] = r0 * x[i], r1 * x[i], r2 * x[i], r3 * x[i]
    return tau0, tau1, tau2


@leaf
def _adagrad_steps(
    n: int, x: FloatArray, G_s: FloatArray, G_v: FloatArray, g: float, eta: float, tiny: float, of_s: FloatArray,
    of_v: FloatArray,
) -> tuple[float, float, float]:  # fmt: skip
    """eta/sqrt(G), G taking the row in first, and the sums of both times x^2, and of x^2."""
    tau_s = tau_v = squares = 0.0
    for i in range(padded(n)):
        square = x[i] * x[i]
        G_s[i] += g * square
        G_v[i] += g * square
        root_s, root_v = math.sqrt(G_s[i] + tiny), math.sqrt(G_v[i] + tiny)
        scale = eta / (root_s * root_v)
        tau_s += square * scale * root_v
        tau_v += square * scale * root_s
        squares += square
        of_s[i], of_v[i] = scale * root_v * x[i], scale * root_s * x[i]
    return tau_s, tau_v, squares


@leaf
def step_experts(
    n: int, y: float, curvature: float, g: float, eta: float, tiny: float, settings: Settings, shared: FloatArray,
    own: FloatArray, work: Work,
) -> None:  # fmt: skip
    """Move all nine experts, H and G; `curvature` and the squared gradient `g` are those of the answer."""
    x, sums, steps, regression = work.row.x, work.sums, work.steps, settings.regression
    tau0, tau1, tau2 = _newton_steps(
        n, x, sums[0], sums[1], curvature, 1.0 / settings.prior_one, 1.0 / settings.prior_both, steps[0], steps[1],
        steps[2], steps[3],
    )  # fmt: skip
    tau_s, tau_v, squares = _adagrad_steps(n, x, sums[2], sums[3], g, eta, tiny, steps[4], steps[5])
    p = work.chance
    n0, n1, n2 = slope(p[0], y, tau0, regression), slope(p[1], y, tau1, regression), slope(p[2], y, tau2, regression)
    a0, a2 = slope(p[3], y, tau_s, regression), slope(p[5], y, tau_v, regression)
    a1 = slope(p[4], y, tau_s + tau_v, regression)
    c0 = slope(p[6], y, settings.step_pooled * squares, regression) * settings.step_pooled
    c1 = slope(p[7], y, 2.0 * settings.step_both * squares, regression) * settings.step_both
    c2 = slope(p[8], y, settings.step_own * squares, regression) * settings.step_own
    _move(n, work.row.feature, x, (n0, n1, a0, a1, c0, c1), steps[0], steps[1], steps[4], sums[0], sums[2], shared)
    _move(n, work.found.place, x, (n1, n2, a1, a2, c1, c2), steps[2], steps[3], steps[5], sums[1], sums[3], own)


@leaf_disjoint_in_order
def _move(
    n: int, place: IntArray, x: FloatArray, slopes: tuple[float, float, float, float, float, float], first: FloatArray,
    second: FloatArray, adagrad: FloatArray, H_: FloatArray, G_: FloatArray, records: FloatArray,
) -> None:  # fmt: skip
    """w <- w + slope step x, and H and G as they are now."""
    n0, n1, a0, a1, c0, c1 = slopes
    for i in range(n):
        record = records[np.uint32(place[i])]
        record[N] += n0 * first[i]
        record[N + 1] += n1 * second[i]
        record[A] += a0 * adagrad[i]
        record[A + 1] += a1 * adagrad[i]
        record[C] += c0 * x[i]
        record[C + 1] += c1 * x[i]
        record[H], record[G] = H_[i], G_[i]


@leaf
def slope(p: float, y: float, tau: float, regression: bool) -> float:
    """e / (1 + tau c): the step cannot overshoot."""
    return (y - p) / (1.0 + tau * (1.0 if regression else p * (1.0 - p)))
