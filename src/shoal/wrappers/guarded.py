"""No task is harmed by sharing: a learner that shares and one that does not, mixed by a weight of each task.

With p1 the forecast of the sharing learner and p0 that of its independent baseline, both learning every row, and of
each task k the log odds a_k, ln(prior/(1 - prior)) at first,

    w = sigma(a_k);   q = w p1 + (1 - w) p0                      the answer
    a_k <- a_k + ln p1(y) - ln p0(y)                             after the label
    w   <- (1 - share) w + share prior                           if `share` is given: for drift

The product of q(y) over a task's rows is prior P1 + (1 - prior) P0, P1 and P0 those of p1 and p0: so for any stream

    loss_k(q) <= min( loss_k(p1) + ln 1/prior,  loss_k(p0) + ln 1/(1 - prior) )

Margins f that are no logits become logits a f/s + c, s² the mean of f² before, (a, c) by one online Newton step a row
for all tasks. Forecasts of real targets are means of Gaussians with the mixture's mean squared error before the row.
The twin in plain NumPy is tests/twins/guarded.py.
"""

import math
from collections.abc import Callable, Hashable
from contextlib import nullcontext
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
from shoal.model.core_around import with_room, without_task
from shoal.model.explanations import Parts, SimilarTask, bare, between, decisions_of
from shoal.model.groups import Groups
from shoal.model.growth import stepping_aside
from shoal.model.parameters import below_one, from_keywords, read, strictly_between
from shoal.online.common.logistic import sigmoid, within
from shoal.online.hedged_sharing.learner import HedgedSharing
from shoal.wrappers.inner import AroundAnyLearner, Mixed, mean_core, of_numbers, seen_through
from shoal.wrappers.label_query import LabelQuery
from shoal.wrappers.multi_class import MultiClass

LEAST = 1e-6  # probabilities are kept within it and 1 less it
STEEP = 700.0  # logits are kept within +-700: exp of them is a number
FLOOR = 1e-3  # of the curvature of a calibration
SHARING, ALONE = range(2)  # whose forecast
LOG_ODDS, LOSS_SHARING, LOSS_ALONE = range(3)  # positions of a task's numbers; log odds less those of the prior
SQUARES, ROWS, SLOPE, INTERCEPT, VARIANCE = 0, 1, 2, 3, 4  # of a calibration; then its 2 x 2 matrix
N_CALIBRATION = VARIANCE + 4
PARAMETERS = {"prior": strictly_between(0.0, 1.0), "share": below_one()}


class Settings(NamedTuple):
    """The settings of the mixing."""

    regression: bool
    calibrates: bool
    prior: float
    share: float


class Mixing(NamedTuple):
    """The learned state of the mixing."""

    own: FloatArray  # (tasks, 3) log odds, and the loss of either forecast in nats
    calibrations: FloatArray  # (2, 8) of either learner's margins
    errors: FloatArray  # (2,) sum of the mixture's squared errors, and of their weights


@kernel(alone=False)
def probability(f: float, c: FloatArray, calibrates: bool) -> float:
    """The probability of the larger label, from a margin."""
    if calibrates:
        scaled = f / math.sqrt(c[SQUARES] / c[ROWS]) if c[SQUARES] > 0.0 else 0.0
        f = c[SLOPE] * scaled + c[INTERCEPT]
    return min(1.0 - LEAST, max(LEAST, sigmoid(within(STEEP, f))))


@kernel(alone=False)
def calibrate(f: float, y: float, c: FloatArray) -> None:
    """One online Newton step of slope and intercept on the margin; y is 0 or 1."""
    if c[SQUARES] > 0.0:
        z = f / math.sqrt(c[SQUARES] / c[ROWS])
        p = sigmoid(within(STEEP, c[SLOPE] * z + c[INTERCEPT]))
        h = max(p * (1.0 - p), FLOOR)
        a, b, d = c[VARIANCE], c[VARIANCE + 1], c[VARIANCE + 3]
        v0, v1 = a * z + b, b * z + d
        scale = 1.0 / (1.0 + h * (z * v0 + v1))
        c[SLOPE] += v0 * (y - p) * scale
        c[INTERCEPT] += v1 * (y - p) * scale
        c[VARIANCE] -= h * scale * v0 * v0
        c[VARIANCE + 1] -= h * scale * v0 * v1
        c[VARIANCE + 2] = c[VARIANCE + 1]
        c[VARIANCE + 3] -= h * scale * v1 * v1
    c[SQUARES] += f * f
    c[ROWS] += 1.0


@kernel(alone=False)
def trust(log_odds: float, settings: Settings) -> float:
    """w: sigma(a), a the log odds beyond those of the prior."""
    return sigmoid(log_odds + math.log(settings.prior / (1.0 - settings.prior)))


@kernel(alone=False)
def mixed(w: float, f1: float, f0: float, settings: Settings, mixing: Mixing) -> float:
    """The answer: a logit, or a number."""
    if settings.regression:
        return w * f1 + (1.0 - w) * f0
    p1 = probability(f1, mixing.calibrations[SHARING], settings.calibrates)
    p0 = probability(f0, mixing.calibrations[ALONE], settings.calibrates)
    q = w * p1 + (1.0 - w) * p0
    return math.log(q / (1.0 - q))


@kernel(alone=False)
def losses(f1: float, f0: float, y: float, settings: Settings, mixing: Mixing) -> tuple[float, float]:
    """The losses of both forecasts, in nats; real targets without the part that both have."""
    if settings.regression:
        if mixing.errors[0] == 0.0:
            return 0.0, 0.0
        variance = mixing.errors[0] / mixing.errors[1]
        return 0.5 * (y - f1) ** 2 / variance, 0.5 * (y - f0) ** 2 / variance
    p1 = probability(f1, mixing.calibrations[SHARING], settings.calibrates)
    p0 = probability(f0, mixing.calibrations[ALONE], settings.calibrates)
    return -math.log(p1 if y > 0.0 else 1.0 - p1), -math.log(p0 if y > 0.0 else 1.0 - p0)


@kernel(entry=True)
def decide_mixed(
    f1: FloatArray, f0: FloatArray, task: IntArray, settings: Settings, mixing: Mixing, out: FloatArray
) -> None:
    """Answer rows; of an unseen task, -1, with the prior."""
    for row in range(len(out)):
        k = task[row]
        log_odds = mixing.own[k, LOG_ODDS] if k >= 0 else 0.0
        out[row] = mixed(trust(log_odds, settings), f1[row], f0[row], settings, mixing)


@kernel(entry=True)
def learn_mixed(
    f1: FloatArray,
    f0: FloatArray,
    y: FloatArray,
    task: IntArray,
    starts: IntArray,
    weight: FloatArray,
    settings: Settings,
    mixing: Mixing,
    out: FloatArray,
) -> None:
    """Answer and learn rounds: all rows of a round are answered before any is learned."""
    for r in range(len(starts) - 1):
        first, last = starts[r], starts[r + 1]
        for row in range(first, last):
            log_odds = mixing.own[task[row], LOG_ODDS] if task[row] >= 0 else 0.0  # -1: a new task's row of no weight
            out[row] = mixed(trust(log_odds, settings), f1[row], f0[row], settings, mixing)
        for row in range(first, last):
            h = weight[row] if len(weight) > 0 else 1.0
            if h == 0.0:
                continue
            own = mixing.own[task[row]]
            loss1, loss0 = losses(f1[row], f0[row], y[row], settings, mixing)
            own[LOSS_SHARING] += h * loss1
            own[LOSS_ALONE] += h * loss0
            own[LOG_ODDS] += h * (loss0 - loss1)
            if settings.share > 0.0:
                w = (1.0 - settings.share) * trust(own[LOG_ODDS], settings) + settings.share * settings.prior
                own[LOG_ODDS] = math.log(w / (1.0 - w)) - math.log(settings.prior / (1.0 - settings.prior))
        for row in range(first, last):
            h = weight[row] if len(weight) > 0 else 1.0
            if h == 0.0:
                continue
            if settings.regression:
                mixing.errors[0] += h * (y[row] - out[row]) ** 2
                mixing.errors[1] += h
            elif settings.calibrates:
                calibrate(f1[row], 0.5 * (y[row] + 1.0), mixing.calibrations[SHARING])
                calibrate(f0[row], 0.5 * (y[row] + 1.0), mixing.calibrations[ALONE])


@cache
def _packed_kind(sharing: Any, alone: Any) -> Any:
    """The saved arrays around those of both cores."""
    fields: list[tuple[str, Any]] = [
        ("sharing", sharing),
        ("alone", alone),
        ("own", Annotated[FloatArray, TASK, OTHER]),  # (tasks, 3)
        ("calibrations", FloatArray),
        ("errors", FloatArray),
    ]
    return NamedTuple("Packed", fields)


def _new_mixing(n_tasks: int) -> Mixing:
    calibrations = np.zeros((2, N_CALIBRATION))
    calibrations[:, SLOPE] = calibrations[:, VARIANCE] = calibrations[:, VARIANCE + 3] = 1.0
    return Mixing(np.zeros((n_tasks, 3)), calibrations, np.zeros(2))


class GuardedCore:
    """A core that shares and one that does not, and the mixing of their answers."""

    groups: Groups | None = None

    def __init__(self, cores: list[CoreLike], values: dict[str, Any], *, regression: bool, calibrates: bool) -> None:
        params = read(PARAMETERS, values)
        self.cores = cores
        first = cores[SHARING]
        self.settings = Settings(regression, calibrates, params.prior, params.share)
        self.named_tasks, self.simultaneous, self.no_weights = first.named_tasks, first.simultaneous, first.no_weights
        self.may_fail = any(core.may_fail for core in cores)
        self.mixing = _new_mixing(0)

    # ---- the interface of a core ---------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        return self.cores[SHARING].state

    @property
    def learns_in_blocks(self) -> bool:
        return False

    def reserve(self, n_tasks: int, n_features: int) -> None:
        for core in self.cores:
            core.reserve(n_tasks, n_features)
        self.mixing = self.mixing._replace(own=with_room(self.mixing.own, n_tasks))

    def enter(self, n_tasks: int) -> None:
        for core in self.cores:
            core.enter(n_tasks)

    def leave(self, k: int, n_tasks: int) -> None:
        with stepping_aside(nullcontext):  # one core would have the task, the other not
            for core in self.cores:
                core.leave(k, n_tasks)
        self.mixing = self.mixing._replace(own=without_task(self.mixing.own, k))

    def new_out(self, n_rows: int) -> FloatArray:
        return np.empty(n_rows)

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        sharing, alone, answers = np.empty((3, len(rounds.y)))
        for core, decisions in zip(self.cores, (sharing, alone), strict=True):
            core.learn(rounds, decisions)
        learn_mixed(
            sharing, alone, rounds.y, rounds.task, rounds.starts, rounds.weight, self.settings, self.mixing, answers
        )
        if len(out) > 0:
            out[:] = answers

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        sharing, alone = np.empty((2, len(rounds.task)))
        for core, decisions in zip(self.cores, (sharing, alone), strict=True):
            core.decide(rounds, decisions)
        decide_mixed(sharing, alone, rounds.task, self.settings, self.mixing, out)

    # ---- explaining ------------------------------------------------------------------------------------------

    def trust(self, log_odds: FloatArray) -> FloatArray:
        """w of tasks, as the kernel has it."""
        odds = log_odds + math.log(self.settings.prior / (1.0 - self.settings.prior))
        return np.asarray(1.0 / (1.0 + np.exp(np.clip(-odds, -STEEP, STEEP))))

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """Contributions of both learners, u times the one's and 1 - u times the other's.

        The answer's logit a lies between their logits f1 and f0, so u = (a - f0) / (f1 - f0); of numbers, and without
        `values`, u is the task's trust.
        """
        both = [bare(core).contributions(tasks, features, values) for core in self.cores]
        sharing, alone = map(decisions_of, both)
        if self.settings.calibrates:
            both = [_calibrated(parts, c) for parts, c in zip(both, self.mixing.calibrations, strict=True)]
        f1, f0 = map(decisions_of, both)
        log_odds = np.where(tasks >= 0, self.mixing.own[np.maximum(tasks, 0), LOG_ODDS], 0.0)
        u = self.trust(log_odds)
        if values is None:
            return between(u, *both)
        answers = np.empty(len(tasks))
        decide_mixed(sharing, alone, tasks, self.settings, self.mixing, answers)
        if not self.settings.regression:
            apart = f1 != f0
            u[apart] = np.clip((answers - f0)[apart] / (f1 - f0)[apart], 0.0, 1.0)
        found = between(u, *both)
        found.shared[:, 0] += answers - decisions_of(found)  # forecasts are kept within bounds
        return found

    def likeness(self, k: int, n_tasks: int) -> FloatArray | None:
        """(n_tasks,) how alike tasks are to task k, where the learner that shares learns it."""
        found: FloatArray | None = bare(self.cores[SHARING]).likeness(k, n_tasks)
        return found

    def updates(self, n_tasks: int) -> IntArray:
        return self.cores[SHARING].updates(n_tasks)

    def adopt(self, other: Any) -> None:
        for core, other_core in zip(self.cores, other.cores, strict=True):
            core.adopt(other_core)
        self.settings, self.named_tasks, self.simultaneous = other.settings, other.named_tasks, other.simultaneous
        self.may_fail = other.may_fail

    def attach(self, other: Any) -> None:
        for core, other_core in zip(self.cores, other.cores, strict=True):
            core.attach(other_core)

    def snapshot(self) -> Callable[[], None]:
        rollbacks, kept = [core.snapshot() for core in self.cores], Mixing(*(array.copy() for array in self.mixing))

        def go_back() -> None:
            for rollback in rollbacks:
                rollback()
            self.mixing = kept

        return go_back

    def nbytes(self) -> int:
        return sum(core.nbytes() for core in self.cores) + self.mixing.own.nbytes

    # ---- files -----------------------------------------------------------------------------------------------

    def _packed(self, cores: list[Any], mixing: Mixing) -> Any:
        sharing, alone = cores
        kinds: Any = type(sharing), type(alone)
        return _packed_kind(*kinds)(sharing, alone, *mixing)

    def pack(self, size: Size) -> Any:
        own = self.mixing.own[: size.tasks]
        return self._packed([core.pack(size) for core in self.cores], self.mixing._replace(own=own))

    def blank(self, size: Size) -> Any:
        return self._packed([core.blank(size) for core in self.cores], _new_mixing(size.tasks))

    def expect_labels(self, labels: Any) -> None:
        for core in self.cores:
            core.expect_labels(labels)

    def unpack(self, packed: Any, size: Size) -> None:
        mixing = Mixing(packed.own, packed.calibrations, packed.errors)
        if not all(np.isfinite(array).all() for array in mixing):
            raise ValueError("the weights of its tasks are not finite")
        counts = np.concatenate([mixing.errors, mixing.calibrations[:, : ROWS + 1].ravel()])
        if (counts < 0.0).any() or (
            (mixing.calibrations[:, SQUARES] > 0.0) & (mixing.calibrations[:, ROWS] == 0.0)
        ).any():
            raise ValueError("its numbers of rows are not those of its sums")
        if mixing.errors[0] > 0.0 and mixing.errors[1] == 0.0:
            raise ValueError("its numbers of rows are not those of its sums")
        for core, part in zip(self.cores, packed[:2], strict=True):
            core.unpack(part, size)
        self.mixing = mixing


def _calibrated(parts: Parts, c: FloatArray) -> Parts:
    """Contributions to the logit of a margin: see `probability`."""
    scale = c[SLOPE] / math.sqrt(c[SQUARES] / c[ROWS]) if c[SQUARES] > 0.0 else 0.0
    shared = parts.shared * scale
    shared[:, 0] += c[INTERCEPT]
    return parts._replace(
        shared=shared,
        own=parts.own * scale,
        pairs_shared=parts.pairs_shared * scale,
        pairs_own=parts.pairs_own * scale,
    )


@from_keywords
class Guarded(Mixed):
    """Any learner that shares, guarded against harm: no task loses more than ln 1/(1 - prior) nats by sharing.

    The answer is ``q = w p1 + (1 - w) p0``, p1 the learner's forecast, p0 that of its independent baseline, which
    learns the same rows, and ``w = sigma(a_k)`` the trust of task k in sharing. After a label,
    ``a_k <- a_k + ln p1(y) - ln p0(y)`` (forecasts are kept within [1e-6, 1 - 1e-6]); `share` of w goes back to the
    prior after each row. Cost: two learners; three numbers a task.

    Parameters
    ----------
    estimator : classifier of two labels, or regressor; None: `HedgedSharing()`
        With a baseline "independent". It stays as it is; its trained copies are `estimator_` and `independent_`.
    prior : float, 0 < prior < 1
        The trust in sharing before a task's first row.
    share : float, 0 <= share < 1
        Where tasks drift: how much of the trust goes back to the prior after each row.

    Attributes
    ----------
    estimator_ , independent_ : the trained learners
    trust_ : (n_tasks,) w of each task
    harmed_ : tasks that the learner alone would have served worse than its baseline, by more than ln 2 nats
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a learner without such a baseline.

    Notes
    -----
    For labels, any stream and any task, ``loss_k(q) <= min(loss_k(p1) + ln 1/prior, loss_k(p0) + ln 1/(1 - prior))``
    in nats: the product of q(y) over the task's rows is the Bayes mixture of two models. With `share` s the bounds have
    T ln 1/(1 - s) more after T rows. Margins that are no logits are calibrated first: p(y = 1) = sigma(a f/s + c), s²
    the mean of f², (a, c) by an online Newton step a row. So there are probabilities for all. For real targets the
    likelihoods are Gaussian, with the mixture's mean squared error of the rows before, and the bound is of these. A
    weight of h multiplies a row's losses by h.

    References
    ----------
    The mixture is Bayes' rule. Its share: Herbster, Warmuth. Tracking the Best Expert. Machine Learning 32, 1998.
    Negative transfer: Zhang, Deng, Zhang, Wu. A Survey on Negative Transfer. IEEE/CAA J. Autom. Sinica 10, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import Guarded, MultitaskPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(6000, 5)), rng.integers(10, size=6000)
    >>> w = np.ones((10, 5))
    >>> w[7:] = -1.0  # three tasks are unlike the others
    >>> y = np.where((X * w[task]).sum(axis=1) + rng.normal(size=6000) > 0, 1, -1)
    >>> pooled = MultitaskPerceptron(relation=50.0, loss="logistic")
    >>> for learner in pooled, Guarded(pooled):
    ...     wrong = np.sign(learner.test_then_train(X, y, task)) != y
    ...     print(f"error {wrong.mean():.3f}, of the three {wrong[task > 6].mean():.3f}")
    error 0.205, of the three 0.235
    error 0.182, of the three 0.182
    >>> sorted(learner.harmed_)  # these three, and others by them
    [0, 4, 6, 7, 8, 9]
    """

    estimator: Learner | None = field(default=None, kw_only=False)
    prior: float = 0.5
    share: float = 0.0

    default = HedgedSharing
    estimator_names = ("estimator",)

    def new_core(self) -> CoreLike:
        """The mixing of a core of the estimator and one of its independent baseline."""
        cores = [mean_core(one, "Guarded") for one in (self.plain, self._alone())]
        calibrates = not self._has_logits()
        regression = of_numbers(self.plain)
        return GuardedCore(cores, self.get_params(deep=False), regression=regression, calibrates=calibrates)

    def _has_logits(self) -> bool:
        return bool(getattr(self.plain, "is_probabilistic", False))

    def _alone(self) -> Learner:
        """The baseline of the estimator that shares nothing."""
        estimator = self.plain
        if not isinstance(estimator, Learner):
            raise ValueError(f"Guarded needs a learner of this library, got {type(estimator).__name__}")
        if isinstance(estimator, AroundAnyLearner | LabelQuery | MultiClass):
            raise ValueError(f"Guarded goes around the learner itself, got a {type(estimator).__name__}")
        try:
            return estimator.baselines()["independent"]
        except (KeyError, NotImplementedError):
            raise ValueError(f"a {type(estimator).__name__} has no independent baseline to guard it by") from None

    def baselines(self) -> dict[str, Learner]:
        """The estimator's."""
        return self.plain.baselines()

    def similar_tasks(self, task: Hashable, n: int = 5) -> list[SimilarTask]:
        """The tasks most like one, as `estimator_` has them."""
        self._fitted_model()
        return self.estimator_.similar_tasks(task, n)

    # ---- learned attributes --------------------------------------------------------------------------------

    def _core(self, attribute: str) -> GuardedCore:
        return self._known(attribute).core_as(GuardedCore)

    @property
    def estimator_(self) -> Learner:
        """The trained learner that shares, as it is now."""
        return seen_through(self.plain, self._known("estimator_"), self._core("estimator_").cores[SHARING])

    @property
    def independent_(self) -> Learner:
        """The trained baseline, as it is now."""
        return seen_through(self._alone(), self._known("independent_"), self._core("independent_").cores[ALONE])

    @property
    def trust_(self) -> FloatArray:
        """(n_tasks,) how far each task trusts sharing."""
        core, n_tasks = self._core("trust_"), len(self.tasks_)
        return core.trust(core.mixing.own[:n_tasks, LOG_ODDS])

    @property
    def harmed_(self) -> list[Any]:
        """Tasks that sharing without a guard would have cost more than ln 2 nats."""
        own = self._core("harmed_").mixing.own
        lost = own[:, LOSS_SHARING] - own[:, LOSS_ALONE]
        return [task for k, task in enumerate(self.tasks_) if lost[k] > math.log(2.0)]

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) the estimator's task relationship, or None."""
        return self.estimator_.relation_ if self.__sklearn_is_fitted__() else None
