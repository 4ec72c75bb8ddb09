"""Quantiles of targets around a learner's forecast, from how far targets were from forecasts before.

Of a row of task k with the forecast f, the mean absolute error so far U, and two logarithms of its part in this row,
z = phi'w and s = phi'b + x'c, ten answers are given for each level p, phi_p the normal quantile:

    f + U t,      f + U (t + u_k),      f + U phi'v,
    f + U e^z t,  f + U e^z (t + u_k),  f + U e^z phi_p,  f + U e^z (phi_p + x'r)
    f + U e^s t,  f + U e^s (t + u_k),  f + U e^s phi_p

with t, u_k, v and r of their own. x is the row, each feature over its largest size so far. phi = (1, f, |f|, a_k): f
less the mean of targets in units of their mean absolute deviation, a_k the mean logarithm of the task's errors less
that of all. After the target, with g = 1[y <= q] - p the slope of the pinball loss at an answer q, and n_k of n rows
the task's,

    t <- t - g/sqrt(1 + n/20),    u_k <- u_k - 0.15 g/sqrt(1 + n_k/2)

as in Conformal. AdaGrad moves v, r, w by the slope of z + |y - f|/(U e^z), and b and c by that of s. Answers are mixed
by exp(-L), L the sum of pinball losses in units of the mixture's, of which each row keeps 0.9995. Quantiles at several
levels are put in order, which makes no loss larger (Chernozhukov, Fernández-Val, Galichon 2010). While no target has
been negative no answer is, while all have been positive none is below half the least, and while all have been whole
numbers answers are rounded. Its twin in plain NumPy is tests/twins/residual_quantiles.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import feature_at, row_bounds, weight_of
from shoal.model.algorithm import Size
from shoal.model.core import SHAPES_STATE
from shoal.model.core_around import CoreAround, with_room, without_task
from shoal.model.explanations import Parts

# Positions in `common`; the last 16 are w and b, each behind it its squared slopes.
ROWS, UNIT, MEAN, SPREAD, LOG, LEAST, FRACTIONS, SIZE, WIDE, N_COMMON = 0, 1, 2, 3, 4, 5, 6, 7, 15, 23
# Positions in a level's numbers: t of six answers, v and its squared slopes, losses L and their unit.
SHIFT, LINE, LINE_SQUARES, LOSS, LOSS_UNIT, N_LEVEL = 0, 6, 10, 14, 24, 25
# Positions in a task's numbers; from FIRST_OWN on three u_k for each level.
TASK_ROWS, TASK_LOG, FIRST_OWN = 0, 1, 2
# Positions in a feature's numbers; c and its squared slopes, from FIRST_ROW on r and its squared slopes for each level.
LARGEST, WIDTH, WIDTH_SQUARES, FIRST_ROW = 0, 1, 2, 3
N_PHI, N_SIZES, N_SHIFTS, N_ANSWERS = 4, 3, 6, 10
LINE_ANSWER, NORMAL_ANSWER, ROW_ANSWER, WIDTH_ANSWER = 6, 7, 8, 9
SHARED_ROWS, OWN_STEP, OWN_ROWS = 20.0, 0.15, 2.0
LINE_STEP, SIZE_STEP, WIDTH_STEP, ROW_STEP = 1.0, 0.3, 1.0, 0.3
KEPT = 0.9995  # of the losses, after every row
LONGEST = 2000.0  # rows that means are over
FARTHEST, FAR = 20.0, 50.0  # units of an error, and of a loss, that count
MOST_REPEATS = 100.0
TINY = 1e-12


class Head(NamedTuple):
    """The learned numbers, and the levels."""

    common: FloatArray  # (23,)
    levels: FloatArray  # (levels, 25)
    own: FloatArray  # (tasks, 2 + 3 levels)
    features: FloatArray  # (features, 3 + 2 levels)
    wanted: FloatArray  # (levels,) p
    normal: FloatArray  # (levels,) phi_p


class Scratch(NamedTuple):
    """Scratch of one call."""

    phi: FloatArray  # (4,)
    sizes: FloatArray  # (3,) U, U e^z, U e^s
    answers: FloatArray  # (10,)
    weights: FloatArray  # (10,)


@kernel(allocates=True)
def new_scratch() -> Scratch:
    return Scratch(np.zeros(N_PHI), np.zeros(N_SIZES), np.zeros(N_ANSWERS), np.zeros(N_ANSWERS))


@kernel
def within(value: float, low: float, high: float) -> float:
    return float(min(max(value, low), high))


@kernel
def scaled(value: float, of_feature: FloatArray) -> float:
    """Over the largest size so far, at most 1."""
    largest = of_feature[LARGEST]
    return within(value / largest, -1.0, 1.0) if largest > 0.0 else 0.0


@kernel
def describe(rounds: Rounds, row: int, f: float, head: Head, scratch: Scratch) -> None:
    """Fill phi and the three sizes."""
    common, phi, sizes, task = head.common, scratch.phi, scratch.sizes, rounds.task[row]
    phi[0] = 1.0
    phi[1] = within((f - common[MEAN]) / common[SPREAD], -4.0, 4.0) if common[SPREAD] > 0.0 else 0.0
    phi[2] = abs(phi[1])
    phi[3] = head.own[task, TASK_LOG] - common[LOG] if task >= 0 and head.own[task, TASK_ROWS] > 0.0 else 0.0
    z = s = 0.0
    for j in range(N_PHI):
        z += common[SIZE + j] * phi[j]
        s += common[WIDE + j] * phi[j]
    first, last = row_bounds(rounds, row)
    for i in range(first, last):
        of_feature = head.features[feature_at(rounds, row, i)]
        s += scaled(rounds.values[i], of_feature) * of_feature[WIDTH]
    sizes[0] = common[UNIT] if common[UNIT] > 0.0 else 1.0
    sizes[1], sizes[2] = sizes[0] * math.exp(within(z, -5.0, 5.0)), sizes[0] * math.exp(within(s, -5.0, 5.0))


@kernel
def ask_level(rounds: Rounds, row: int, level: int, f: float, head: Head, scratch: Scratch) -> float:
    """The mixture's answer; `scratch.answers` has the ten."""
    task, (first, last), sizes = rounds.task[row], row_bounds(rounds, row), scratch.sizes
    numbers, answers, weights, (unit, size, width) = (
        head.levels[level],
        scratch.answers,
        scratch.weights,
        (sizes[0], sizes[1], sizes[2]),
    )
    for e in range(N_SHIFTS):
        own = head.own[task, FIRST_OWN + N_SIZES * level + e // 2] if task >= 0 and e % 2 == 1 else 0.0
        answers[e] = f + sizes[e // 2] * (numbers[SHIFT + e] + own)
    line = 0.0
    for j in range(N_PHI):
        line += numbers[LINE + j] * scratch.phi[j]
    answers[LINE_ANSWER], answers[NORMAL_ANSWER] = f + unit * line, f + size * head.normal[level]
    answers[WIDTH_ANSWER] = f + width * head.normal[level]
    line = 0.0
    for i in range(first, last):
        of_feature = head.features[feature_at(rounds, row, i)]
        line += scaled(rounds.values[i], of_feature) * of_feature[FIRST_ROW + 2 * level]
    answers[ROW_ANSWER] = f + size * (head.normal[level] + line)
    least, total, mass = np.inf, 0.0, 0.0
    for e in range(N_ANSWERS):
        least = min(least, numbers[LOSS + e])
    for e in range(N_ANSWERS):
        weights[e] = math.exp(least - numbers[LOSS + e])
        mass += weights[e]
    for e in range(N_ANSWERS):
        total += weights[e] / mass * answers[e]
    return total


@kernel(inline=False)
def answer(rounds: Rounds, row: int, f: float, head: Head, scratch: Scratch, out: FloatArray) -> None:
    """The quantiles of a row in order of their levels."""
    describe(rounds, row, f, head, scratch)
    least, n = head.common[LEAST], head.common[ROWS]
    for level in range(len(out)):
        q = ask_level(rounds, row, level, f, head, scratch)
        if n > 0.0 and head.common[FRACTIONS] == 0.0:
            q = np.floor(q + 0.5)
        if n > 0.0 and least >= 0.0:
            q = max(q, 0.5 * least)
        place = level
        while place > 0 and out[place - 1] > q:
            out[place] = out[place - 1]
            place -= 1
        out[place] = q


@kernel
def pinball(y: float, q: float, p: float) -> float:
    return p * (y - q) if y > q else (1.0 - p) * (q - y)


@kernel
def step_features(rounds: Rounds, row: int, at: int, step: float, g: float, features: FloatArray) -> None:
    """AdaGrad on a weight of each feature of a row; its squared slopes stand behind it."""
    n_nonzero, (first, last) = 0.0, row_bounds(rounds, row)
    for i in range(first, last):
        n_nonzero += 0.0 if rounds.values[i] == 0.0 else 1.0
    step /= math.sqrt(max(n_nonzero, 1.0))
    for i in range(first, last):
        of_feature = features[feature_at(rounds, row, i)]
        slope = g * scaled(rounds.values[i], of_feature)
        if slope != 0.0:
            of_feature[at + 1] += slope * slope + TINY
            of_feature[at] -= step * slope / math.sqrt(of_feature[at + 1])


@kernel
def step_level(rounds: Rounds, row: int, level: int, f: float, h: float, head: Head, scratch: Scratch) -> None:
    """Move the numbers of a level by a row."""
    q = ask_level(rounds, row, level, f, head, scratch)
    y, p, numbers = rounds.y[row], head.wanted[level], head.levels[level]
    answers, n, own = scratch.answers, head.common[ROWS], head.own[rounds.task[row]]
    loss, before = pinball(y, q, p), numbers[LOSS_UNIT]
    for e in range(N_ANSWERS):
        if before > 0.0:
            numbers[LOSS + e] = KEPT * numbers[LOSS + e] + h * min(pinball(y, answers[e], p) / before, FAR)
    counted = min(loss, FAR * before) if n > SHARED_ROWS and before > 0.0 else loss
    numbers[LOSS_UNIT] += h * max(1.0 / (n + 1.0), 1.0 / LONGEST) * (counted - before)
    for e in range(N_SHIFTS):
        g = h * ((1.0 if y <= answers[e] else 0.0) - p)
        numbers[SHIFT + e] -= g / math.sqrt(1.0 + n / SHARED_ROWS)
        if e % 2 == 1:
            own[FIRST_OWN + N_SIZES * level + e // 2] -= OWN_STEP * g / math.sqrt(1.0 + own[TASK_ROWS] / OWN_ROWS)
    g = h * ((1.0 if y <= answers[LINE_ANSWER] else 0.0) - p)
    for j in range(N_PHI):
        slope = g * scratch.phi[j]
        numbers[LINE_SQUARES + j] += slope * slope + TINY
        numbers[LINE + j] -= LINE_STEP * slope / math.sqrt(numbers[LINE_SQUARES + j])
    g = h * ((1.0 if y <= answers[ROW_ANSWER] else 0.0) - p)
    step_features(rounds, row, FIRST_ROW + 2 * level, ROW_STEP, g, head.features)


@kernel
def step_common(rounds: Rounds, row: int, f: float, h: float, head: Head, scratch: Scratch) -> None:
    """Learn the error's size, and the means."""
    common, own, n, y = head.common, head.own[rounds.task[row]], head.common[ROWS], rounds.y[row]
    phi, unit = scratch.phi, scratch.sizes[0]
    error, rate = abs(y - f), h * max(1.0 / (n + 1.0), 1.0 / LONGEST)
    slope_of_z, slope_of_s = max(1.0 - error / scratch.sizes[1], -3.0), max(1.0 - error / scratch.sizes[2], -3.0)
    step_features(rounds, row, WIDTH, WIDTH_STEP, h * slope_of_s, head.features)
    for at, g in ((SIZE, h * slope_of_z), (WIDE, h * slope_of_s)):
        for j in range(at, at + N_PHI):
            slope = g * phi[j - at]
            common[j + N_PHI] += slope * slope + TINY
            common[j] -= SIZE_STEP * slope / math.sqrt(common[j + N_PHI])
    log = within(math.log(max(error / unit, 1e-3)), -7.0, 7.0)
    if own[TASK_ROWS] == 0.0:
        own[TASK_LOG] = common[LOG] + 0.3 * (log - common[LOG])
    else:
        own[TASK_LOG] += h * max(1.0 / (1.0 + own[TASK_ROWS]), 0.03) * (log - own[TASK_LOG])
    common[LOG] += rate * (log - common[LOG])
    counted = min(error, FARTHEST * common[UNIT]) if n > SHARED_ROWS and common[UNIT] > 0.0 else error
    common[UNIT] += rate * (counted - common[UNIT])
    apart = abs(y - common[MEAN]) if n > 0.0 else 0.0
    apart = min(apart, FARTHEST * common[SPREAD]) if n > SHARED_ROWS and common[SPREAD] > 0.0 else apart
    common[MEAN] += rate * (math.copysign(apart, y - common[MEAN]) if n > 0.0 else y)
    common[SPREAD] += rate * (apart - common[SPREAD])
    common[FRACTIONS] += 0.0 if y == np.floor(y) else 1.0
    common[LEAST] = min(common[LEAST], y) if n > 0.0 else y
    common[ROWS] += 1.0
    own[TASK_ROWS] += 1.0


@kernel(inline=False)
def learn_row(rounds: Rounds, row: int, f: float, head: Head, scratch: Scratch) -> None:
    """A row of weight h is h rows one after the other, the last a part of one."""
    left, (first, last) = min(weight_of(rounds, row), MOST_REPEATS), row_bounds(rounds, row)
    for i in range(first, last if left > 0.0 else first):
        of_feature = head.features[feature_at(rounds, row, i)]
        of_feature[LARGEST] = max(of_feature[LARGEST], abs(rounds.values[i]))
    while left > 0.0:
        h = min(left, 1.0)
        describe(rounds, row, f, head, scratch)
        for level in range(len(head.levels)):
            step_level(rounds, row, level, f, h, head, scratch)
        step_common(rounds, row, f, h, head, scratch)
        left -= h


@kernel(entry=True, allocates=True)
def follow(rounds: Rounds, forecasts: FloatArray, head: Head, out: FloatArray) -> None:
    """Learn the rounds; `out` (n, levels), unless it is empty, takes the answers before each."""
    scratch = new_scratch()
    for r in range(len(rounds.starts) - 1):
        if len(out) > 0:
            for row in range(rounds.starts[r], rounds.starts[r + 1]):
                answer(rounds, row, forecasts[row], head, scratch, out[row])
        for row in range(rounds.starts[r], rounds.starts[r + 1]):
            learn_row(rounds, row, forecasts[row], head, scratch)


@kernel(entry=True, allocates=True)
def answer_all(rounds: Rounds, forecasts: FloatArray, head: Head, out: FloatArray) -> None:
    """Fill out (n, levels)."""
    scratch = new_scratch()
    for row in range(len(out)):
        answer(rounds, row, forecasts[row], head, scratch, out[row])


# ---- the core --------------------------------------------------------------------------------------------------------


@cache
def _packed_kind(inner: Any) -> Any:
    """The saved arrays around those of the inner core."""
    fields: list[tuple[str, Any]] = [
        ("estimator", inner),
        ("common", FloatArray),  # (23,)
        ("levels", FloatArray),  # (levels, 25)
        ("own", Annotated[FloatArray, TASK, OTHER]),  # (tasks, 2 + 3 levels)
        ("features", Annotated[FloatArray, FEATURE, OTHER]),  # (features, 3 + 2 levels)
    ]
    return NamedTuple("Packed", fields)


class QuantileCore(CoreAround):
    """A core whose forecasts become quantiles."""

    def __init__(self, inner: Any, wanted: tuple[float, ...], *, several: bool, pooled: bool) -> None:
        from scipy.special import ndtri

        super().__init__(inner)
        self.wanted, self.several, self.pooled = np.array(wanted), several, pooled
        self.normal = ndtri(self.wanted)
        self.common, self.levels = np.zeros(N_COMMON), self._new_levels()
        self.own, self.features = self._new_own(0), self._new_features(0)

    @property
    def _kind(self) -> tuple[Any, ...]:
        return self.wanted.tolist(), self.several, self.pooled

    def _new_levels(self) -> FloatArray:
        """Answers begin at the normal quantiles; of the mean absolute error of 0.8 deviations."""
        levels = np.zeros((len(self.wanted), N_LEVEL))
        levels[:, SHIFT : SHIFT + N_SHIFTS] = levels[:, LINE : LINE + 1] = self.normal[:, None] / 0.8
        return levels

    def _new_own(self, n_tasks: int) -> FloatArray:
        return np.zeros((n_tasks, FIRST_OWN + N_SIZES * len(self.wanted)))

    def _new_features(self, n_features: int) -> FloatArray:
        return np.zeros((n_features, FIRST_ROW + 2 * len(self.wanted)))

    @property
    def _head(self) -> Head:
        return Head(self.common, self.levels, self.own, self.features, self.wanted, self.normal / 0.8)

    @property
    def _arrays(self) -> tuple[FloatArray, ...]:
        return self.common, self.levels, self.own, self.features

    def reserve(self, n_tasks: int, n_features: int) -> None:
        super().reserve(n_tasks, n_features)
        self.own, self.features = with_room(self.own, n_tasks), with_room(self.features, n_features)

    def leave(self, k: int, n_tasks: int) -> None:
        self.inner.leave(k, n_tasks)
        if not self.pooled:
            self.own = without_task(self.own, k)

    def _for_offsets(self, rounds: Rounds) -> Rounds:
        """Rounds with the tasks that own offsets are of: one for all if tasks are pooled."""
        return rounds._replace(task=np.zeros_like(rounds.task)) if self.pooled else rounds

    def new_out(self, n_rows: int) -> FloatArray:
        return np.empty((n_rows, len(self.wanted)) if self.several else n_rows)

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        forecasts = np.empty(len(rounds.y))
        self.inner.learn(rounds, forecasts)
        answers = out.reshape(len(out), -1) if len(out) > 0 else np.empty((0, len(self.wanted)))
        follow(self._for_offsets(rounds), forecasts, self._head, answers)

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        forecasts = np.empty(len(out))
        self.inner.decide(rounds, forecasts)
        answer_all(self._for_offsets(rounds), forecasts, self._head, out.reshape(len(out), -1))

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """Contributions to the forecast; the quantile's distance from it is part of the intercept.

        Raises
        ------
        ValueError
            If there are several quantiles.
        """
        parts: Parts = self.inner.contributions(tasks, features, values)
        if self.several:
            raise ValueError("an explanation is of one number, and this learner answers several quantiles")
        if values is not None:
            forecasts = sum(part.sum(axis=1) for part in (parts.shared, parts.own))
            forecasts = forecasts + parts.pairs_shared.sum() + parts.pairs_own.sum()
            common, both = np.empty((2, len(tasks), 1))
            n, columns = len(tasks), np.tile(features, len(tasks)).astype(np.int32)
            indptr = np.arange(n + 1) * len(features)
            row = Rounds(0, indptr, columns, np.tile(values, n), tasks, np.zeros(n), np.arange(n + 1))
            answer_all(self._for_offsets(row._replace(task=np.full_like(tasks, -1))), forecasts, self._head, common)
            answer_all(self._for_offsets(row), forecasts, self._head, both)
            parts.shared[:, 0] += common[:, 0] - forecasts
            parts.own[:, 0] += both[:, 0] - common[:, 0]
        return parts

    def adopt(self, other: Any) -> None:
        if not isinstance(other, QuantileCore) or other._kind != self._kind:
            raise ValueError(SHAPES_STATE)
        super().adopt(other)

    def snapshot(self) -> Callable[[], None]:
        rollback, kept = self.inner.snapshot(), [numbers.copy() for numbers in self._arrays]

        def go_back() -> None:
            rollback()
            self.common, self.levels, self.own, self.features = kept

        return go_back

    def nbytes(self) -> int:
        return super().nbytes() + sum(numbers.nbytes for numbers in self._arrays)

    # ---- files -----------------------------------------------------------------------------------------------------

    def pack(self, size: Size) -> Any:
        inner, own, features = self.inner.pack(size), self.own[: size.tasks], self.features[: size.features]
        kind: Any = type(inner)
        return _packed_kind(kind)(inner, self.common, self.levels, own, features)

    def blank(self, size: Size) -> Any:
        inner, own, features = self.inner.blank(size), self._new_own(size.tasks), self._new_features(size.features)
        kind: Any = type(inner)
        return _packed_kind(kind)(inner, np.zeros(N_COMMON), self._new_levels(), own, features)

    def unpack(self, packed: Any, size: Size) -> None:
        counts = [
            packed.common[ROWS],
            packed.common[FRACTIONS],
            packed.common[UNIT],
            packed.common[SPREAD],
            *packed.own[:, TASK_ROWS],
        ]
        squares = [
            *packed.common[SIZE + N_PHI : WIDE],
            *packed.common[WIDE + N_PHI :],
            *packed.levels[:, LINE_SQUARES:].ravel(),
            *packed.features[:, WIDTH_SQUARES::2].ravel(),
        ]
        if not (np.array(counts + squares) >= 0.0).all():
            raise ValueError("its numbers of rows or its sums of squares are negative")
        self.inner.unpack(packed.estimator, size)
        self.common, self.levels, self.own, self.features = packed[1:]
