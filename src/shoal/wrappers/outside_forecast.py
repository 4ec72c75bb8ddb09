"""Forecasts of other models as inputs beside a learner's own, each judged row by row.

Columns of X hold forecasts that came from elsewhere: of labels the probability of the larger one, of real targets the
number. The learner does not see these columns. Its own forecast f and the outside ones g_1, ..., g_m are mixed twice,

    z = (1, f, g_1, ..., g_m)                                    logits, or numbers less f over the deviation of y - f
    r = w'z                                                      a regression; w = (0, 1, 0, ...) at first
    b = Σ_i v_ki p_i                                             Bayes weights of task k on all forecasts but the 1
    q = u b + (1 - u) r                                          the answer, u = 1/2 at first; of labels probabilities

and after the label y of row t

    P <- P + I 0.001/t;  w <- w + P z (y - r)/(1 + h z'Pz);  P <- P - h P z z'P/(1 + h z'Pz)      P = I at first
    v_ki <- 0.995 v_ki p_i(y)/Σ_j v_kj p_j(y) + 0.005 v_i;  the same of all tasks' v, which goes back to uniform
    u <- (1 - 1e-4) u b(y)/(u b(y) + (1 - u) r(y)) + 1e-4/2

with h = r (1 - r) of labels, 1 of numbers, of which y is less f over that deviation, too: so the mixing sees what the
learner got wrong, and no targets of another size. A forecast that is missing, 0 in X, is the learner's own; a row
without any is answered by f alone, and moves the deviation alone. Likelihoods of numbers are Gaussian with the answer's
mean squared error; it and the deviation are over some 300 rows. The twin in plain NumPy is
tests/twins/outside_forecast.py.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.learner import Learner
from shoal.model.algorithm import Size
from shoal.model.core import CoreLike
from shoal.model.core_around import CoreAround, with_room, without_task
from shoal.model.explanations import Parts, bare, decisions_of
from shoal.model.parameters import from_keywords
from shoal.online.common.logistic import sigmoid, within
from shoal.online.hedged_sharing.learner import HedgedSharing
from shoal.wrappers.conformal import Conformal
from shoal.wrappers.inner import Mixed, mean_core, of_numbers, seen_through
from shoal.wrappers.label_query import LabelQuery
from shoal.wrappers.multi_class import MultiClass

LEAST = 1e-6  # probabilities from outside are kept within it and 1 less it
LIMIT = 15.0  # logits are kept within +-15
FAR, FEW = 20.0, 10  # deviations from f to which numbers are kept, after so many rows
SHARE, SLOW_SHARE = 0.005, 1e-4
DRIFT = 1e-3
FLAT = 1e-5  # the least curvature
MEMORY = 300.0  # rows of mean squared errors
ROWS, SQUARES, ERRORS, ERROR_ROWS, BAYES = range(5)  # positions in `numbers`; the last is u


class Stacking(NamedTuple):
    """The learned state of the mixing of n forecasts."""

    own: Annotated[FloatArray, TASK, OTHER]  # (tasks, 1 + n) rows, and Bayes weights v_k
    weights: FloatArray  # (n,) v, of all tasks
    regression: FloatArray  # (1 + n,) w
    covariance: FloatArray  # (1 + n, 1 + n) P
    numbers: FloatArray  # (5,) rows; of real targets squared errors of f and of the answer, and their count; u


class Scratch(NamedTuple):
    """Scratch of one call."""

    z: FloatArray  # (1 + n,)
    p: FloatArray  # (n,) forecasts: probabilities, or numbers
    direction: FloatArray  # (1 + n,)
    both: FloatArray  # (2,) mixture and regression
    even: FloatArray  # (n,) weights of 1/n


@kernel(alone=False)
def unit_of(numbers: FloatArray) -> float:
    """The deviation of y - f, 1 if f has been right so far."""
    return math.sqrt(numbers[SQUARES] / numbers[ERROR_ROWS]) if numbers[SQUARES] > 0.0 else 1.0


@kernel(alone=False)
def read_inputs(f: float, outside: FloatArray, regression: bool, learned: Stacking, scratch: Scratch) -> None:
    """z and p of a row; NaN: no forecast."""
    z, p, numbers = scratch.z, scratch.p, learned.numbers
    unit, limit = unit_of(numbers), FAR if numbers[ROWS] >= FEW else np.inf
    z[0] = 1.0
    for i in range(len(p)):
        g = f if i == 0 else outside[i - 1]
        if i > 0 and math.isnan(g):
            z[1 + i] = z[1]
        elif regression:
            z[1 + i] = within(limit, (g - f) / unit)
        elif i == 0:
            z[1] = within(LIMIT, g)
        else:
            chance = min(1.0 - LEAST, max(LEAST, g))
            z[1 + i] = math.log(chance / (1.0 - chance))
        p[i] = z[1 + i] if regression else sigmoid(z[1 + i])


@kernel(alone=False)
def is_there(outside: FloatArray) -> bool:
    """Whether there is a forecast from outside."""
    found = False
    for g in outside:
        found |= not math.isnan(g)
    return found


@kernel(alone=False)
def both_answers(
    f: float, outside: FloatArray, k: int, regression: bool, learned: Stacking, scratch: Scratch
) -> tuple[float, float]:
    """The mixture b and the regression r; of labels, probabilities."""
    read_inputs(f, outside, regression, learned, scratch)
    z, p, b, r = scratch.z, scratch.p, 0.0, 0.0
    if not is_there(outside):
        return p[0], p[0]
    known = k >= 0 and learned.own[k, 0] > 0.0
    for i in range(len(p)):
        b += (learned.own[k, 1 + i] if known else learned.weights[i]) * p[i]
    for i in range(len(z)):
        r += learned.regression[i] * z[i]
    return b, r if regression else sigmoid(within(LIMIT, r))


@kernel(alone=False)
def answered(f: float, b: float, r: float, regression: bool, numbers: FloatArray) -> float:
    """q as a logit, or as a number."""
    q = numbers[BAYES] * b + (1.0 - numbers[BAYES]) * r
    return f + unit_of(numbers) * q if regression else math.log(q / (1.0 - q))


@kernel(alone=False)
def move(weights: FloatArray, likelihood: FloatArray, prior: FloatArray, share: float) -> None:
    """Bayes' rule, then a share of the prior."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * likelihood[i]
    for i in range(len(weights)):
        weights[i] = (1.0 - share) * weights[i] * likelihood[i] / total + share * prior[i]


@kernel(alone=False)
def likelihoods(p: FloatArray, y: float, h: float, variance: float) -> None:
    """Forecasts become likelihoods of h times y, of labels (variance NaN) or numbers; the best is 1."""
    if math.isnan(variance):
        best = 0.0
        for i in range(len(p)):
            p[i] = p[i] if y > 0.0 else 1.0 - p[i]
            best = max(best, p[i])
        for i in range(len(p)):
            p[i] = (p[i] / best) ** h
    else:
        least = np.inf
        for i in range(len(p)):
            least = min(least, (y - p[i]) ** 2)
        for i in range(len(p)):
            p[i] = math.exp(0.5 * h * (least - (y - p[i]) ** 2) / variance) if variance > 0.0 else 1.0


@kernel(alone=False)
def step(y: float, r: float, curvature: float, h: float, learned: Stacking, scratch: Scratch) -> None:
    """One online Newton step of the regression."""
    z, direction, P = scratch.z, scratch.direction, learned.covariance
    drift, tau = DRIFT / (learned.numbers[ROWS] + 1.0), 0.0
    for i in range(len(z)):
        P[i, i] += drift
    for i in range(len(z)):
        direction[i] = 0.0
        for j in range(len(z)):
            direction[i] += P[i, j] * z[j]
        tau += direction[i] * z[i]
    scale = h / (1.0 + h * curvature * tau)
    for i in range(len(z)):
        learned.regression[i] += scale * (y - r) * direction[i]
        for j in range(len(z)):
            P[i, j] -= scale * curvature * direction[i] * direction[j]


@kernel(alone=False)
def learn_row(
    f: float, outside: FloatArray, k: int, y: float, h: float, regression: bool, learned: Stacking, scratch: Scratch
) -> None:
    """Learn a row of weight h: y is 0 or 1, or a real target."""
    b, r = both_answers(f, outside, k, regression, learned, scratch)
    numbers, p, variance = learned.numbers, scratch.p, np.nan
    mixes = is_there(outside) and not (regression and numbers[SQUARES] == 0.0)  # before the first error, without a unit
    q = numbers[BAYES] * b + (1.0 - numbers[BAYES]) * r
    if regression:
        unit, kept = unit_of(numbers), 1.0 - min(h, MEMORY) / MEMORY
        y = within(FAR if numbers[ROWS] >= FEW else np.inf, (y - f) / unit)
        numbers[SQUARES] = kept * numbers[SQUARES] + h * (unit * y) ** 2
        numbers[ERRORS] = kept * numbers[ERRORS] + h * (unit * (y - q)) ** 2
        numbers[ERROR_ROWS] = kept * numbers[ERROR_ROWS] + h
        variance = numbers[ERRORS] / numbers[ERROR_ROWS] / unit / unit
    if not mixes:
        return
    step(y, r, 1.0 if regression else max(FLAT, r * (1.0 - r)), h, learned, scratch)
    scratch.both[0], scratch.both[1] = b, r
    likelihoods(p, y, h, variance)
    likelihoods(scratch.both, y, h, variance)
    own = learned.own[k]
    for i in range(len(p) if own[0] == 0.0 else 0):
        own[1 + i] = learned.weights[i]
    move(own[1:], p, learned.weights, SHARE)
    move(learned.weights, p, scratch.even, SHARE)
    u = numbers[BAYES] * scratch.both[0]
    numbers[BAYES] = (1.0 - SLOW_SHARE) * u / (u + (1.0 - numbers[BAYES]) * scratch.both[1]) + 0.5 * SLOW_SHARE
    own[0] += h
    numbers[ROWS] += h


@kernel(entry=True)
def decide_rows(
    f: FloatArray,
    outside: FloatArray,
    task: IntArray,
    regression: bool,
    learned: Stacking,
    scratch: Scratch,
    out: FloatArray,
) -> None:
    """Answer rows; of an unseen task, -1, as all tasks together."""
    for row in range(len(out)):
        b, r = both_answers(f[row], outside[row], task[row], regression, learned, scratch)
        out[row] = answered(f[row], b, r, regression, learned.numbers)


@kernel(entry=True)
def learn_rows(
    f: FloatArray,
    outside: FloatArray,
    rounds: Rounds,
    regression: bool,
    learned: Stacking,
    scratch: Scratch,
    out: FloatArray,
) -> None:
    """Answer and learn rounds: all rows of a round are answered before any is learned."""
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        for row in range(first, last):
            both = both_answers(f[row], outside[row], rounds.task[row], regression, learned, scratch)
            out[row] = answered(f[row], both[0], both[1], regression, learned.numbers)
        for row in range(first, last):
            h, y = rounds.weight[row] if len(rounds.weight) > 0 else 1.0, rounds.y[row]
            if h > 0.0:
                y = y if regression else 0.5 * (y + 1.0)
                learn_row(f[row], outside[row], rounds.task[row], y, h, regression, learned, scratch)


def apart(rounds: Rounds, columns: Sequence[int]) -> tuple[Rounds, FloatArray]:
    """The rows without the forecasts, and these, (n, columns); NaN where there is none."""
    n, width = len(rounds.task), rounds.width
    outside = np.zeros((n, len(columns)))
    if width > 0:
        values = rounds.values.reshape(-1, width).copy()
        for j, column in enumerate(columns):
            if column < width:
                outside[:, j], values[:, column] = values[:, column], 0.0
        rest = rounds._replace(values=values.ravel())
    else:
        first, last = int(rounds.indptr[0]), int(rounds.indptr[-1])
        indices, values = rounds.indices[first:last], rounds.values[first:last]
        row = np.repeat(np.arange(n), np.diff(rounds.indptr))
        kept = np.ones(len(indices), np.bool_)
        for j, column in enumerate(columns):
            in_column = indices == column
            outside[row[in_column], j] = values[in_column]
            kept &= ~in_column
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row[kept], minlength=n))]).astype(np.int64)
        rest = rounds._replace(indptr=indptr, indices=indices[kept], values=values[kept])
    return rest, np.where(outside == 0.0, np.nan, outside)


@cache
def _packed_kind(inner: Any) -> Any:
    """The saved arrays, with those of the inner core."""
    return NamedTuple("Packed", [("estimator", inner), ("stacking", Stacking)])


def new_stacking(n: int, n_tasks: int) -> Stacking:
    """The state for n forecasts, the learner's among them, before the first row."""
    numbers, regression = np.zeros(5), np.zeros(1 + n)
    numbers[BAYES], regression[1] = 0.5, 1.0
    return Stacking(np.zeros((n_tasks, 1 + n)), np.full(n, 1.0 / n), regression, np.eye(1 + n), numbers)


def new_scratch(n: int) -> Scratch:
    """Scratch for n forecasts."""
    return Scratch(np.empty(1 + n), np.empty(n), np.empty(1 + n), np.empty(2), np.full(n, 1.0 / n))


def check_stacking(learned: Stacking) -> None:
    """Raise ValueError if no mixing could have learned it."""
    if not all(np.isfinite(array).all() for array in learned):
        raise ValueError("the weights of its forecasts are not finite")
    own, numbers = learned.own, learned.numbers
    counts = np.concatenate([own.ravel(), learned.weights, numbers[[ROWS, SQUARES, ERRORS, ERROR_ROWS]]])
    if (counts < 0.0).any() or not 0.0 <= numbers[BAYES] <= 1.0 or not learned.weights.sum() > 0.0:
        raise ValueError("its numbers of rows or its weights of forecasts are out of range")
    if (own[:, 0] > 0.0).any() and not (own[own[:, 0] > 0.0, 1:].sum(axis=1) > 0.0).all():
        raise ValueError("a task's weights of forecasts are all zero")


class OutsideCore(CoreAround):
    """A core beside which forecasts from outside are mixed in."""

    def __init__(self, inner: Any, columns: Sequence[int], *, regression: bool) -> None:
        super().__init__(inner)
        self.columns, self.regression = tuple(columns), regression
        self.learned = new_stacking(1 + len(self.columns), 0)

    # ---- the interface of a core ---------------------------------------------------------------------------

    def reserve(self, n_tasks: int, n_features: int) -> None:
        super().reserve(n_tasks, n_features)
        self.learned = self.learned._replace(own=with_room(self.learned.own, n_tasks))

    def leave(self, k: int, n_tasks: int) -> None:
        self.inner.leave(k, n_tasks)
        self.learned = self.learned._replace(own=without_task(self.learned.own, k))

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        rows, outside = apart(rounds, self.columns)
        f, answers = np.empty(len(rounds.y)), out if len(out) > 0 else np.empty(len(rounds.y))
        self.inner.learn(rows, f)
        scratch = new_scratch(1 + len(self.columns))
        learn_rows(f, outside, rounds, self.regression, self.learned, scratch, answers)

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        rows, outside = apart(rounds, self.columns)
        f = np.empty(len(rounds.task))
        self.inner.decide(rows, f)
        self._answer(f, outside, rounds.task, out)

    def _answer(self, f: FloatArray, outside: FloatArray, task: IntArray, out: FloatArray) -> None:
        scratch = new_scratch(1 + len(self.columns))
        decide_rows(f, outside, task, self.regression, self.learned, scratch, out)

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """Contributions of the estimator, then of each forecast; the intercept has the rest of the mixing's effect."""
        places = [np.flatnonzero(features == column) for column in self.columns]
        if values is None:
            parts: Parts = bare(self.inner).contributions(tasks, features, None)
            for place in places:
                parts.shared[:, 1 + place] = parts.own[:, 1 + place] = 0.0
            return parts
        outside, rest = np.full((len(tasks), len(places)), np.nan), values.copy()
        for place in places:
            rest[place] = 0.0
        parts = bare(self.inner).contributions(tasks, features, rest)
        before = decisions_of(parts)
        f, answers = before, np.empty(len(tasks))
        self._answer(f, outside, tasks, answers)
        parts.shared[:, 0] += answers - f
        for j, place in enumerate(places):
            if len(place) > 0 and values[place[0]] != 0.0:
                outside[:, j], before = values[place[0]], answers.copy()
                self._answer(f, outside, tasks, answers)
                parts.shared[:, 1 + place[0]] = answers - before
        return parts

    def adopt(self, other: Any) -> None:
        if len(other.columns) != len(self.columns):
            raise ValueError("this hyper-parameter shapes the state: it can only change before fit")
        super().adopt(other)
        self.columns = other.columns

    def snapshot(self) -> Callable[[], None]:
        rollback, kept = self.inner.snapshot(), Stacking(*(array.copy() for array in self.learned))

        def go_back() -> None:
            rollback()
            self.learned = kept

        return go_back

    def nbytes(self) -> int:
        return super().nbytes() + self.learned.own.nbytes

    # ---- files -----------------------------------------------------------------------------------------------

    def _packed(self, inner: Any, learned: Stacking) -> Any:
        kind: Any = type(inner)
        return _packed_kind(kind)(inner, learned)

    def pack(self, size: Size) -> Any:
        return self._packed(self.inner.pack(size), self.learned._replace(own=self.learned.own[: size.tasks]))

    def blank(self, size: Size) -> Any:
        return self._packed(self.inner.blank(size), new_stacking(1 + len(self.columns), size.tasks))

    def unpack(self, packed: Any, size: Size) -> None:
        check_stacking(packed.stacking)
        self.inner.unpack(packed.estimator, size)
        self.learned = packed.stacking


def with_forecasts(learner: Any, n: int) -> Any:
    """The learner, mixed with the forecasts in the first n columns of X behind the constant, where tables put them.

    Raises
    ------
    ValueError
        If it is no learner of this library, or is for more than two labels.
    """
    if isinstance(learner, MultiClass) or not isinstance(learner, Learner):
        raise ValueError("forecasts from outside are for learners of shoal with two labels or numbers")
    found = OutsideForecast(learner, columns=[*range(1, 1 + n)])
    found.new_core()  # raises now if it cannot go around the learner
    return found


@from_keywords
class OutsideForecast(Mixed):
    """Any learner with forecasts of other models beside its own, each judged row by row and used as far as it is good.

    Columns of X hold the forecasts: of labels the probability of the larger one, of real targets the number; 0 is none.
    The learner does not see them. The answer is ``q = u b + (1 - u) r``, b the mixture of all forecasts by the Bayes
    weights of the task, r a regression on them, which begins as the learner's own. Cost: the learner's, O(m²) for m
    forecasts; 2 + m numbers a task.

    Parameters
    ----------
    estimator : classifier of two labels, or regressor; None: `HedgedSharing()`
        It stays as it is; its trained copy is `estimator_`.
    columns : sequence of int
        The columns of X with forecasts. In tables `forecast=` of `TabularClassifier` and `TabularRegressor` and
        `shoal run --forecast` name them.

    Attributes
    ----------
    estimator_ : the trained learner
    weights_ : (n_tasks, 1 + m) Bayes weights of its own forecast and of the others in each task
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or an estimator for more than two labels.

    Notes
    -----
    A missing forecast is the learner's own. A forecast of 0 is given as a tiny number, such as 1e-300, as tables do;
    probabilities are kept within [1e-6, 1 - 1e-6]. A forecast must have been made without the row's label. Where a
    forecast is bad the Bayes weights leave it within some rows, but not for ever: a share of 0.005 goes back.

    References
    ----------
    Herbster, Warmuth. Tracking the Best Expert. Machine Learning 32, 1998: Bayes weights with a share. Breiman. Stacked
    Regressions. Machine Learning 24, 1996. Their combination is this library's.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import HedgedSharing, OutsideForecast
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(4000, 4)), rng.integers(10, size=4000)
    >>> logits = 2.0 * X[:, 0] * X[:, 1] + X[:, 2] * (1 + task % 3)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-logits))
    >>> outside = 1 / (1 + np.exp(-2.0 * X[:, 0] * X[:, 1]))  # another model knows a part
    >>> with_it = np.column_stack([X[:, 2:], outside])
    >>> for learner in HedgedSharing(), OutsideForecast(HedgedSharing(), columns=[2]):
    ...     f = learner.test_then_train(with_it if hasattr(learner, "columns") else X[:, 2:], y, task)
    ...     print(f"{type(learner).__name__:15} log-loss {np.logaddexp(0.0, np.where(y, -f, f)).mean():.3f}")
    HedgedSharing   log-loss 0.561
    OutsideForecast log-loss 0.417
    """

    estimator: Learner | None = field(default=None, kw_only=False)
    columns: Sequence[int] = ()

    default = HedgedSharing
    estimator_names = ("estimator",)

    def new_core(self) -> CoreLike:
        """The mixing around a core of the estimator."""
        estimator, columns = self.plain, list(self.columns)
        inner = mean_core(estimator, "OutsideForecast")
        if isinstance(estimator, Conformal | LabelQuery | MultiClass | OutsideForecast):
            raise ValueError(f"OutsideForecast goes around the learner itself, got a {type(estimator).__name__}")
        if not all(isinstance(one, int | np.integer) and one >= 0 for one in columns) or len({*columns}) < len(columns):
            raise ValueError(f"columns must be different columns of X, numbers from 0 on; got {self.columns!r}")
        return OutsideCore(inner, [int(one) for one in columns], regression=of_numbers(estimator))

    def baselines(self) -> dict[str, Learner]:
        """The estimator's, with the same forecasts."""
        return {
            name: OutsideForecast(baseline, columns=self.columns) for name, baseline in self.plain.baselines().items()
        }

    # ---- learned attributes --------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The trained learner, as it is now."""
        model = self._known("estimator_")
        return seen_through(self.plain, model, model.core_as(OutsideCore).inner)

    @property
    def weights_(self) -> FloatArray:
        """(n_tasks, 1 + m) Bayes weights of the learner's forecast and of the others in each task."""
        model = self._known("weights_")
        learned = model.core_as(OutsideCore).learned
        own = learned.own[: len(model.tasks)]
        return np.asarray(np.where(own[:, :1] > 0.0, own[:, 1:], learned.weights))

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) the estimator's task relationship, or None."""
        return self.estimator_.relation_ if self.__sklearn_is_fitted__() else None
