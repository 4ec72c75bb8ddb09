"""Intervals and sets of labels around any learner, whose thresholds tasks share in part.

A row has a score s >= 0, how wrong the forecast is: |y - f| of real targets, 1 - p(y) of labels, and |y - m|/h where
the learner answers quantiles, m and h the middle and half the width of the outer two. The answer holds all targets
whose score is at most a threshold q, which follows the stream so that a share `coverage` of the targets is in the
answers of every task. For a row of task k, with alpha = 1 - coverage, c_k rows of k judged so far and n of all,

    ln q = t + u_k                                                          before the row
    e    = 1[s > q] - alpha                                                 after its target
    t   <- t + 0.02 e / √max(1, n/2000)                                     shared
    u_k <- u_k + max(0.1 / √(1 + c_k/20), least_step) e,  c_k <- c_k + 1    the task's own, 0 at first

and t = ln(2 x the median score of the first 50 rows), before which the answer is everything. This is quantile tracking
(Angelopoulos, Candès, Tibshirani 2023, their P control) of ln q, with a shared and an own integrator. Its twin in plain
NumPy is tests/twins/conformal.py.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.learner import Learner, available_if, is_probabilistic_kind, logistic
from shoal.model.algorithm import Size
from shoal.model.core import CoreLike
from shoal.model.core_around import CoreAround, with_room, without_task
from shoal.model.parameters import from_keywords, non_negative, read, strictly_between
from shoal.online.common.logistic import within
from shoal.online.hedged_sharing.learner import HedgedSharingRegressor
from shoal.wrappers.inner import AroundAnyLearner, inner_core, of_labels, of_numbers, seen_through
from shoal.wrappers.label_query import LabelQuery
from shoal.wrappers.multi_class import MultiClass, OneAgainstRest

FIRST = 50  # rows, whose median score is where the shared threshold begins
SHARED_STEP, SHARED_ROWS = 0.02, 2000.0
OWN_STEP, OWN_ROWS = 0.1, 20.0
LARGEST = 300.0  # |t| and |u_k|: exp of their sum is still a number
LEAST_SCORE, LARGEST_SCORE = 1e-100, 1e100  # where all first forecasts are exact; where an interval has no width
LEVEL, ROWS = range(2)  # positions in what is shared: t, n
OFFSET, JUDGED, COVERED = range(3)  # of each task: u_k, c_k, rows whose target was in the answer
NONE = np.zeros(0)
PARAMETERS = {"coverage": strictly_between(0.0, 1.0), "least_step": non_negative()}


class Thresholds(NamedTuple):
    """The learned part of all thresholds."""

    shared: FloatArray  # (2,) t, n
    own: FloatArray  # (tasks, 3) u_k, c_k, and rows whose target was in the answer
    first: FloatArray  # (50,) scores of the first rows


class Learned(NamedTuple):
    """The decisions on rows before these were learned."""

    decisions: Any  # (n,); of classes an array each, that of the rest first
    chances: FloatArray  # of classes (n, n_classes), numbered as they came
    known: NDArray[np.bool_]  # of classes, whether each had come


@kernel(entry=True, allocates=True)
def follow(
    scores: FloatArray,
    task: IntArray,
    starts: IntArray,
    weight: FloatArray,
    alpha: float,
    least_step: float,
    thresholds: Thresholds,
    out: FloatArray,
) -> None:
    """Move the thresholds by the scores of rounds; all rows of a round are judged before any moves one.

    `out` takes the threshold of each row before its round, unless it is empty.
    """
    shared, own, first = thresholds
    for r in range(len(starts) - 1):
        level, n, moved = shared[LEVEL], shared[ROWS], 0.0
        if len(out) > 0:
            for row in range(starts[r], starts[r + 1]):
                offset = own[task[row], OFFSET] if task[row] >= 0 else 0.0  # -1: a new task's row of no weight
                out[row] = math.exp(level + offset) if n >= FIRST else np.inf
        for row in range(starts[r], starts[r + 1]):
            if len(weight) > 0 and weight[row] == 0.0:
                continue
            if n < FIRST:
                if shared[ROWS] < FIRST:
                    first[int(shared[ROWS])] = scores[row]
            else:
                of_task = own[task[row]]
                missed = 1.0 if scores[row] > math.exp(level + of_task[OFFSET]) else 0.0
                e = missed - alpha
                moved += SHARED_STEP * e / math.sqrt(max(1.0, shared[ROWS] / SHARED_ROWS))
                step = max(OWN_STEP / math.sqrt(1.0 + of_task[JUDGED] / OWN_ROWS), least_step)
                of_task[OFFSET] = within(LARGEST, of_task[OFFSET] + step * e)
                of_task[JUDGED] += 1.0
                of_task[COVERED] += 1.0 - missed
            shared[ROWS] += 1.0
        shared[LEVEL] = within(LARGEST, level + moved)
        if n < FIRST <= shared[ROWS]:
            shared[LEVEL] = math.log(max(2.0 * np.median(first), LEAST_SCORE))


def scores_of_numbers(f: FloatArray, y: FloatArray) -> FloatArray:
    """|y - f|."""
    return np.abs(y - f)


def middle_and_half(quantiles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """m and h of rows of quantiles."""
    low, high = quantiles[:, 0], quantiles[:, -1]
    return (low + high) / 2.0, (high - low) / 2.0


def scores_of_quantiles(quantiles: FloatArray, y: FloatArray) -> FloatArray:
    """|y - m|/h."""
    middle, half = middle_and_half(quantiles)
    away = np.abs(y - middle)
    return np.minimum(np.divide(away, half, out=LARGEST_SCORE * np.sign(away), where=half > 0.0), LARGEST_SCORE)


def intervals(answers: FloatArray, q: FloatArray) -> FloatArray:
    """(n, 2) the targets whose score is at most q, of forecasts or of rows of quantiles."""
    if answers.ndim == 1:
        return np.column_stack([answers - q, answers + q])
    middle, half = middle_and_half(answers)
    reach = np.where(np.isinf(q), np.inf, half) * q
    return np.column_stack([middle - reach, middle + reach])


def scores_of_labels(f: FloatArray, y: FloatArray) -> FloatArray:
    """1 - p(y) of labels -1 and +1, f the logit of +1."""
    return logistic(-y * f)


def classes_before(codes: FloatArray, n_classes: int, n_known: int, starts: IntArray) -> NDArray[np.bool_]:
    """(n, n_classes) whether each class had come before the row's round.

    Parameters
    ----------
    codes : (n,) classes, numbered as they came
    n_known : classes that had come before the first row
    starts : (n_rounds + 1,)
    """
    before = np.maximum.accumulate(np.concatenate([[n_known], codes.astype(np.int64) + 1]))
    known = np.repeat(before[starts[:-1]], np.diff(starts))
    return np.asarray(np.arange(n_classes) < known[:, None])


def chances_of_classes(values: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """(n, n_classes) the probability of each class among the known ones, from its logit against the rest."""
    p = logistic(values) * known
    total = p.sum(axis=1, keepdims=True)
    return np.asarray(p / np.where(total > 0.0, total, 1.0))


@cache
def _packed_kind(inner: Any) -> Any:
    """The saved arrays around those of the inner core."""
    fields: list[tuple[str, Any]] = [
        ("estimator", inner),
        ("shared", FloatArray),  # (2,)
        ("first", FloatArray),  # (50,)
        ("own", Annotated[FloatArray, TASK, OTHER]),  # (tasks, 3)
    ]
    return NamedTuple("Packed", fields)


class ConformalCore(CoreAround):
    """A core with thresholds that follow the scores of its forecasts."""

    def __init__(self, inner: Any, values: dict[str, Any], *, regression: bool) -> None:
        super().__init__(inner)
        params = read(PARAMETERS, values)
        self.regression = regression
        self.alpha, self.least_step = 1.0 - params.coverage, params.least_step
        self.shared, self.first, self.own = np.zeros(2), np.zeros(FIRST), np.zeros((0, 3))

    def thresholds(self, task: IntArray) -> FloatArray:
        """q of rows of these tasks, below 0 for an unseen one; infinity before the first 50 rows."""
        if self.shared[ROWS] < FIRST:
            return np.full(len(task), np.inf)
        offsets = np.append(self.own[:, OFFSET], 0.0)
        known = (task >= 0) & (task < len(self.own))
        return np.asarray(np.exp(self.shared[LEVEL] + offsets[np.where(known, task, -1)]))

    def learn_all(self, rounds: Rounds, out: FloatArray, thresholds: FloatArray = NONE) -> Learned:
        """Learn rounds; return the decisions before each, and fill `thresholds` with the thresholds before each."""
        chances, known = NONE, NONE > 0.0
        if isinstance(self.inner, OneAgainstRest):
            n_known = len(self.inner.classes)
            decisions: Any = self.inner.learn_all(rounds, keep=True)
            known = classes_before(rounds.y, len(decisions) - 1, n_known, rounds.starts)
            chances = chances_of_classes(np.stack(decisions[1:], axis=1), known)
            scores = 1.0 - chances[np.arange(len(rounds.y)), rounds.y.astype(np.int64)]
        else:
            decisions = out if len(out) > 0 else self.inner.new_out(len(rounds.y))
            self.inner.learn(rounds, decisions)
            if decisions.ndim == 2:
                scores = scores_of_quantiles(decisions, rounds.y)
            else:
                scores = (scores_of_numbers if self.regression else scores_of_labels)(decisions, rounds.y)
        follow(
            scores,
            rounds.task,
            rounds.starts,
            rounds.weight,
            self.alpha,
            self.least_step,
            Thresholds(self.shared, self.own, self.first),
            thresholds,
        )
        return Learned(decisions, chances, known)

    # ---- the interface of a core ---------------------------------------------------------------------------

    def reserve(self, n_tasks: int, n_features: int) -> None:
        super().reserve(n_tasks, n_features)
        self.own = with_room(self.own, n_tasks)

    def leave(self, k: int, n_tasks: int) -> None:
        self.inner.leave(k, n_tasks)
        self.own = without_task(self.own, k)

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        self.learn_all(rounds, out)

    def adopt(self, other: Any) -> None:
        super().adopt(other)
        self.alpha, self.least_step = other.alpha, other.least_step

    def snapshot(self) -> Callable[[], None]:
        rollback, kept = self.inner.snapshot(), (self.shared.copy(), self.first.copy(), self.own.copy())

        def go_back() -> None:
            rollback()
            self.shared, self.first, self.own = kept

        return go_back

    def nbytes(self) -> int:
        return super().nbytes() + self.own.nbytes

    # ---- files -----------------------------------------------------------------------------------------------

    def _packed(self, inner: Any, shared: FloatArray, first: FloatArray, own: FloatArray) -> Any:
        kind: Any = type(inner)
        return _packed_kind(kind)(inner, shared, first, own)

    def pack(self, size: Size) -> Any:
        return self._packed(self.inner.pack(size), self.shared, self.first, self.own[: size.tasks])

    def blank(self, size: Size) -> Any:
        return self._packed(self.inner.blank(size), np.zeros(2), np.zeros(FIRST), np.zeros((size.tasks, 3)))

    def unpack(self, packed: Any, size: Size) -> None:
        own = packed.own
        if not (abs(packed.shared[LEVEL]) <= LARGEST and (np.abs(own[:, OFFSET]) <= LARGEST).all()):
            raise ValueError("its thresholds are out of range")
        counts = np.concatenate([packed.shared[ROWS:], own[:, JUDGED], own[:, COVERED]])
        if not (np.isfinite(counts) & (counts >= 0.0)).all():
            raise ValueError("its numbers of rows are negative")
        self.inner.unpack(packed.estimator, size)
        self.shared, self.first, self.own = packed.shared, packed.first, packed.own


@from_keywords
class Conformal(AroundAnyLearner):
    """Any learner with intervals, or sets of labels, that hold the target of a share of each task's rows.

    The answer holds every target whose score is at most ``q = exp(t + u_k)``: ``[f - q, f + q]``, or all labels with
    ``1 - p(l) <= q``. Around quantiles, such as ``HedgedSharingRegressor(target=[0.05, 0.95])``, it is
    ``[m - q h, m + q h]``, m and h the middle and half the width of the outer two: its width follows the row.

    After each row ``e = 1[s > q] - (1 - coverage)`` moves t, which all tasks share, by ``0.02 e/√max(1, n/2000)`` and
    the task's own u_k by ``max(0.1/√(1 + c_k/20), least_step) e``, after c_k of its rows and n of all. The learner
    itself learns as it does alone. Cost: the learner's; three numbers a task.

    Parameters
    ----------
    estimator : regressor, classifier with probabilities, or `MultiClass` around one; None: `HedgedSharingRegressor()`
        It stays as it is; its trained copy is `estimator_`.
    coverage : float, 0 < coverage < 1
        The share of rows whose target shall be in the answer.
    least_step : float >= 0
        The least step of a task's own threshold, 0.02 where the spread of tasks drifts.

    Attributes
    ----------
    estimator_ : the trained learner
    thresholds_ : (n_tasks,) q of each task; infinite before the first 50 rows
    coverage_ : (n_tasks,) the share of a task's rows that were in the answer, after the first 50 rows of all; or NaN
    judged_ : (n_tasks,) how many these rows are
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a learner without forecasts that a score can judge.

    Notes
    -----
    For any sequence of scores, the targets of a task outside their answers are ``(1 - coverage) n_k`` up to
    ``2 B/gamma``, B the largest |u_k| and gamma the last step: steps of u_k do not rise, and their sum with e is u_k.
    So the coverage of each task tends to `coverage` where scores stay within constant factors. Nothing is assumed of
    the rows, and nothing is said of a single row. Of a few hundred rows no interval, however right, has exactly its
    share. Where forecasts are calibrated, own thresholds bring little; they pay where tasks differ in spread.
    A row with a `sample_weight` moves the thresholds once; targets that come late move them when they come. An unseen
    task has u_k = 0.

    References
    ----------
    Angelopoulos, Candès, Tibshirani. Conformal PID Control for Time Series Prediction. NeurIPS 2023, section 2:
    quantile tracking. The logarithmic scale and the shared part are this library's.

    Romano, Patterson, Candès. Conformalized Quantile Regression. NeurIPS 2019; with the score over the width as in
    Sesia, Candès. A comparison of some conformal quantile regression methods. Stat 9(1), 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import Conformal, MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(8000, 5)), rng.integers(20, size=8000)
    >>> y = X.sum(axis=1) + rng.normal(size=8000) * (1 + task)  # tasks differ in spread
    >>> learner = Conformal(MultitaskRegressor(eta=0.01), coverage=0.9).partial_fit(X[:6000], y[:6000], task[:6000])
    >>> low, high = learner.predict_interval(X, task).T
    >>> errors = np.abs(y - learner.predict(X, task))
    >>> one_for_all = np.quantile(errors[:6000], 0.9)
    >>> for name, inside in ("one width", errors <= one_for_all), ("by task", (low <= y) & (y <= high)):
    ...     of_tasks = [inside[6000:][task[6000:] == k].mean() for k in range(20)]
    ...     print(f"{name:10} coverage {np.mean(of_tasks):.2f}, of the worst task {min(of_tasks):.2f}")
    one width  coverage 0.89, of the worst task 0.69
    by task    coverage 0.90, of the worst task 0.79
    """

    estimator: Learner | None = field(default=None, kw_only=False)
    coverage: float = 0.9
    least_step: float = 0.0

    default = HedgedSharingRegressor
    estimator_names = ("estimator",)

    def new_core(self) -> CoreLike:
        """The thresholds around a core of the estimator."""
        estimator = self.plain
        inner = inner_core(estimator, Learner, "Conformal")
        if isinstance(estimator, Conformal | LabelQuery):
            raise ValueError(f"Conformal goes around the learner itself, got a {type(estimator).__name__}")
        if of_labels(estimator) and not is_probabilistic_kind(estimator):
            raise ValueError(f"sets of labels need probabilities, and a {type(estimator).__name__} has none")
        if estimator.answers_several and inner.new_out(0).shape[1] < 2:
            raise ValueError("an interval needs two quantiles or more, got one")
        return ConformalCore(inner, self.get_params(deep=False), regression=not of_labels(estimator))

    @property
    def answers_several(self) -> bool:
        """Does the estimator answer quantiles?"""
        return self.plain.answers_several

    @property
    def is_probabilistic(self) -> bool:
        """Are the estimator's decision values logits?"""
        return bool(getattr(self.plain, "is_probabilistic", False))

    # ---- intervals and sets --------------------------------------------------------------------------------

    def predict_thresholds(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) the threshold q of each row; infinite before the first 50 rows."""
        model = self._fitted_model()
        return model.core_as(ConformalCore).thresholds(model.rows_to_decide(X, task).task)

    def _threshold_one(self, task: Hashable) -> float:
        model = self._fitted_model()
        column = np.array([model.tasks.column.get(task, -1)])
        return float(model.core_as(ConformalCore).thresholds(column)[0])

    @available_if(of_numbers)
    def predict_interval(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) the lower and the upper end of each row's interval; infinite before the first 50 rows."""
        return intervals(self.estimator_.predict(X, task), self.predict_thresholds(X, task))

    @available_if(of_numbers)
    def predict_interval_one(self, x: Any, task: Hashable = None) -> tuple[float, float]:
        """The interval of one example (dict or 1-d array)."""
        q = np.array([self._threshold_one(task)])
        low, high = intervals(np.array([self.estimator_.predict_one(x, task)]), q)[0].tolist()
        return low, high

    @available_if(of_labels)
    def predict_set(self, X: Any, task: Any = None) -> NDArray[np.bool_]:
        """(n, n_classes) whether each label of `classes_` is in the row's set; a set may be empty."""
        return np.asarray(1.0 - self.predict_proba(X, task) <= self.predict_thresholds(X, task)[:, None])

    @available_if(of_labels)
    def predict_set_one(self, x: Any, task: Hashable = None) -> list[Any]:
        """The labels in the set of one example (dict or 1-d array)."""
        q = self._threshold_one(task)
        return [label for label, p in self.predict_proba_one(x, task).items() if 1.0 - p <= q]

    @property
    def thresholds_(self) -> FloatArray:
        """(n_tasks,) q of each task."""
        model = self._known("thresholds_")
        return model.core_as(ConformalCore).thresholds(np.arange(len(model.tasks)))

    @property
    def coverage_(self) -> FloatArray:
        """(n_tasks,) the share of each task's judged rows whose target was in the answer; NaN if none was judged."""
        model = self._known("coverage_")
        own = model.core_as(ConformalCore).own[: len(model.tasks)]
        judged, covered = own[:, JUDGED], own[:, COVERED]
        return np.where(judged > 0.0, covered / np.maximum(judged, 1.0), np.nan)

    @property
    def judged_(self) -> FloatArray:
        """(n_tasks,) each task's rows after the first 50 of all."""
        model = self._known("judged_")
        return model.core_as(ConformalCore).own[: len(model.tasks), JUDGED].copy()

    def judge_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> tuple[FloatArray, NDArray[Any]]:
        """Learn like `partial_fit`; return decision values and answers, both given *before* learning each round.

        Answers are (n, 2) intervals, or (n, n_classes) whether each label of `classes_` was in the row's set.
        """
        model, found = self._begun(), list[tuple[Learned, FloatArray]]()
        core = model.core_as(ConformalCore)

        def learn(rounds: Rounds, out: FloatArray) -> None:
            thresholds = np.empty(len(rounds.y))
            found.append((core.learn_all(rounds, out, thresholds), thresholds))

        model.learn(X, y, task, rounds, classes, sample_weight, learn=learn)
        self._keep(model)
        [(learned, q)] = found
        if isinstance(self.plain, MultiClass):
            inside = (1.0 - learned.chances <= q[:, None]) & learned.known
            codes, never = model.labels.codes, np.zeros(len(q), np.bool_)
            columns = [inside[:, codes[label]] if label in codes else never for label in self.classes_.tolist()]
            return np.asarray(self.estimator_._side_by_side(learned.decisions)), np.stack(columns, axis=1)
        values = np.asarray(learned.decisions)
        if of_numbers(self):
            return values, intervals(values, q)
        p = logistic(values)
        return values, np.column_stack([p, 1.0 - p]) <= q[:, None]  # 1 - p(l) is what is left for the other label

    # ---- the estimator's own answers -----------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The trained learner, as it is now."""
        model = self._known("estimator_")
        return seen_through(self.plain, model, model.core_as(ConformalCore).inner)

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the estimator's decision values given *before* learning each round."""
        if not isinstance(self.plain, MultiClass):
            return super().test_then_train(X, y, task, rounds=rounds, classes=classes, sample_weight=sample_weight)
        model, decisions = self._begun(), []
        core = model.core_as(ConformalCore)

        def learn(rounds: Rounds, out: FloatArray) -> None:
            decisions.extend(core.learn_all(rounds, out).decisions)

        model.learn(X, y, task, rounds, classes, sample_weight, learn=learn)
        self._keep(model)
        return np.asarray(self.estimator_._side_by_side(decisions))

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) the estimator's predictions."""
        self._fitted_model()
        return np.asarray(self.estimator_.predict(X, task))

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The estimator's prediction for one example (dict or 1-d array)."""
        self._fitted_model()
        return self.estimator_.predict_one(x, task)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """The estimator's score: accuracy, or R^2."""
        self._fitted_model()
        return float(self.estimator_.score(X, y, task, sample_weight))

    @available_if(of_labels)
    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """The estimator's margins."""
        self._fitted_model()
        return np.asarray(self.estimator_.decision_function(X, task))

    @available_if(of_labels)
    def decision_one(self, x: Any, task: Hashable = None) -> Any:
        """The estimator's margin of one example (dict or 1-d array)."""
        self._fitted_model()
        return self.estimator_.decision_one(x, task)

    @available_if(is_probabilistic_kind)
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, n_classes) the estimator's probabilities, in the order of `classes_`."""
        self._fitted_model()
        return np.asarray(self.estimator_.predict_proba(X, task))

    @available_if(is_probabilistic_kind)
    def predict_log_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, n_classes) logarithms of the estimator's probabilities."""
        self._fitted_model()
        return np.asarray(self.estimator_.predict_log_proba(X, task))

    @available_if(is_probabilistic_kind)
    def predict_proba_one(self, x: Any, task: Hashable = None) -> dict[Any, float]:
        """The estimator's probability of each label for one example (dict or 1-d array)."""
        self._fitted_model()
        found: dict[Any, float] = self.estimator_.predict_proba_one(x, task)
        return found

    def deciding_cores(self) -> dict[Any, CoreLike]:
        """The estimator's."""
        self._fitted_model()
        found: dict[Any, CoreLike] = self.estimator_.deciding_cores()
        return found

    def baselines(self) -> dict[str, Learner]:
        options = self.get_params(deep=False)
        return {name: Conformal(**{**options, "estimator": b}) for name, b in self.plain.baselines().items()}

    @property
    def classes_(self) -> NDArray[Any]:
        """(n_classes,) the estimator's labels."""
        return np.asarray(self.estimator_.classes_)

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights, if the estimator's are linear."""
        return np.asarray(self.estimator_.coef_)

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) the estimator's task relationship, or None."""
        return self.estimator_.relation_ if self.__sklearn_is_fitted__() else None
