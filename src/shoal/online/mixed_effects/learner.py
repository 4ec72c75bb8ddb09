"""MixedEffects as an algorithm, and its public classes."""

import math
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import open_weighted, weight_of
from shoal.learner import Classifier, Learner, Regressor, WeightedLearner
from shoal.model.algorithm import Algorithm, Explain, Setup, Size, Storage, Tasks
from shoal.model.explanations import Parts
from shoal.model.parameters import Params, Reader, from_keywords, non_negative, one_of, positive
from shoal.model.state import trimmed
from shoal.online.common.dense_rows import (
    Columns,
    add_columns,
    check_columns,
    columns_after,
    few_features,
    fill_row,
    learn_columns,
    new_columns,
    per_feature,
    scaled_values,
    side_for,
)
from shoal.online.common.standardized_targets import CENTER, UNIT
from shoal.online.mixed_effects import effects
from shoal.online.mixed_effects.effects import (
    COLUMNS,
    LEARNED,
    NOISE,
    SLOTS,
    Effects,
    Rule,
    Scratch,
    answer,
    ask,
    new_scratch,
)


class Settings(NamedTuple):
    """Hyper-parameters."""

    rule: Rule
    memory: float  # bytes, of tasks' own weights and their matrices


class State(NamedTuple):
    """Columns of features, and the filter on them."""

    columns: Columns
    effects: Effects
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(inline=False, alone=False)
def has_room(rounds: Rounds, first: int, last: int, settings: Settings, state: State) -> bool:
    """Whether a round's new features and tasks fit; memory may have none for more tasks."""
    filter = state.effects
    side, most = len(filter.mean), most_slots(len(filter.mean), settings)
    if columns_after(rounds, first, last, filter.counters[COLUMNS], state.columns) > side:
        return False
    new = 0
    for row in range(first, last):
        new += int(filter.slot[rounds.task[row]] == 0)
    return bool(min(filter.counters[SLOTS] + new, most) <= len(filter.own))


@kernel(entry="too")
def most_slots(side: int, settings: Settings) -> int:
    """Tasks that may have own weights."""
    return 0 if settings.rule.variance == 0.0 else int(settings.memory / effects.slot_bytes(side))


@kernel(inline=False, alone=False)
def decide_row(rounds: Rounds, row: int, settings: Settings, state: State, x: FloatArray, scratch: Scratch) -> float:
    used = max(state.effects.counters[COLUMNS], 1)
    fill_row(rounds, row, used, state.columns, x)
    return answer(ask(used, x, rounds.task[row], state.effects, scratch), settings.rule, state.effects)


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    x, scratch = np.zeros(len(state.effects.mean)), new_scratch(len(state.effects.mean))
    for row in range(len(decisions)):
        decisions[row] = decide_row(rounds, row, settings, state, x, scratch)


@kernel(inline=False, alone=False)
def learn_row(rounds: Rounds, row: int, settings: Settings, state: State, x: FloatArray, scratch: Scratch) -> float:
    """Learn a row; return its answer from before."""
    task, h, used = rounds.task[row], weight_of(rounds, row), max(state.effects.counters[COLUMNS], 1)
    missing = fill_row(rounds, row, used, state.columns, x)
    f = ask(used, x, task, state.effects, scratch)
    decision = answer(f, settings.rule, state.effects)
    if h > 0.0:
        if missing > 0:
            used = add_columns(rounds, row, used, state.columns, x)
        y = rounds.y[row] if settings.rule.regression else 0.5 + 0.5 * rounds.y[row]
        effects.learn(used, x, y, h, task, settings.rule, f, state.effects, scratch)
        learn_columns(rounds, row, h, state.columns)
        state.updates[task] += 1
    return decision


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    x, scratch = np.zeros(len(state.effects.mean)), new_scratch(len(state.effects.mean))
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if not has_room(rounds, first, last, settings, state):
            return r
        open_weighted(rounds, r, state.counters)
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = decide_row(rounds, row, settings, state, x, scratch)
        for row in range(first, last):
            decision = learn_row(rounds, row, settings, state, x, scratch)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = decision
    return len(rounds.starts) - 1


# ---- the algorithm -----------------------------------------------------------------------------------------------


def allocate(setup: Setup, size: Size) -> State:
    return State(
        new_columns(size.features),
        effects.new_effects(size.tasks, 8, 0),
        np.zeros(size.tasks, np.int64),
        np.zeros(3, np.int64),
    )


def extend(setup: Setup, state: State, size: Size, rounds: Rounds) -> State:
    """Room for the next round. If matrices that grow leave memory for fewer tasks, the youngest lose theirs."""
    first, last = int(rounds.starts[0]), int(rounds.starts[1])
    counters, have = state.effects.counters, len(state.effects.own)
    columns = columns_after(rounds, first, last, int(counters[COLUMNS]), state.columns)
    side = side_for(columns, len(state.effects.mean))
    new = int((state.effects.slot[rounds.task[first:last]] == 0).sum())
    most, need = most_slots(side, setup.settings), int(counters[SLOTS]) + new
    for k in np.flatnonzero(state.effects.slot > most):
        effects.forget(state.effects, int(k))
    slots = min(have if need <= have else max(2 * have, need), most)
    return state._replace(effects=effects.with_room(state.effects, side, slots))


def pack(setup: Setup, state: State, size: Size) -> Any:
    packed: State = trimmed(state._replace(effects=effects.pack(state.effects)), allocate(setup, size))
    return packed


def check(setup: Setup, packed: State, size: Size) -> None:
    effects.check(packed.effects)
    check_columns(packed.columns, int(packed.effects.counters[COLUMNS]))


def unpack(setup: Setup, packed: State, size: Size) -> State:
    return packed._replace(effects=effects.unpack(packed.effects))


def leave(setup: Setup, state: State, k: int) -> None:
    effects.forget(state.effects, k)


class Weights(NamedTuple):
    """Weights of tasks on dense rows; the first is the constant's."""

    common: FloatArray  # (columns,) mu
    own: FloatArray  # (tasks, columns) u_k


def weights_of(state: State, tasks: IntArray) -> Weights:
    """mu and u_k = a_k - P_k A_k mu of tasks; -1 is unseen."""
    filter, own = state.effects, np.zeros((len(tasks), len(state.effects.mean)))
    for i, k in enumerate(tasks.tolist()):
        at = int(filter.slot[k]) - 1 if k >= 0 else -1
        if at >= 0:
            own[i] = filter.vectors[at, effects.MEAN] - filter.own[at] @ (filter.information[at] @ filter.mean)
    return Weights(filter.mean, own)


@kernel(entry=True, allocates=True)
def ask_one(x: FloatArray, task: int, state: Effects) -> effects.Forecast:
    """The forecast of a dense row."""
    return ask(len(x), x, task, state, new_scratch(len(x)))


def contributions(
    setup: Setup, state: State, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """Contributions: kappa w_j x_j with the kappa of the row, or (None) of a row that has the constant alone."""
    rule, scale = setup.settings.rule, state.effects.scale
    common, own = weights_of(state, tasks)
    x, row = scaled_values(state.columns, features, values), np.zeros(len(common))
    if values is not None:
        row[state.columns.place[features]] = x
    row[0] = 1.0
    kappa = [scale[UNIT]] * len(tasks)
    if not rule.regression:
        kappa = [1.0 / math.sqrt(1.0 + math.pi / 8.0 * ask_one(row, k, state.effects).variance) for k in tasks.tolist()]
    columns, factors = np.concatenate([[0], state.columns.place[features]]), np.concatenate([[1.0], x])
    by = np.array(kappa)[:, None] * factors
    shared = by * common[columns]
    shared[:, 0] += scale[CENTER] if rule.regression else 0.0
    return Parts(shared, by * own[:, columns])


VARIANCE = non_negative(infinite=True)
NAMED = one_of({"learned": LEARNED})
FORM = Reader(
    f"'learned' or {VARIANCE.text}", lambda value: (NAMED if isinstance(value, str) else VARIANCE).convert(value)
)
PARAMETERS = {
    "covariance": FORM,
    "memory": positive(),
}
MEGABYTE = 1e6


def settings_of(p: Params, *, regression: bool) -> Settings:
    """Settings for labels, or for real targets."""
    return Settings(Rule(regression, True, float(p.covariance)), p.memory * MEGABYTE)


LABELS = Algorithm[State](
    parameters=PARAMETERS,
    settings=partial(settings_of, regression=False),
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="a row's step of the common weights depends on its task's earlier rows and on the covariance of all tasks",
    no_weights="",
    tasks=Tasks(leave=leave),
    storage=Storage(capacity=few_features, extend=extend, pack=pack, check=check, unpack=unpack),
    explain=Explain(contributions=contributions),
)


@from_keywords
class _MixedEffects(WeightedLearner):
    """The base of the classifier and the regressor."""

    covariance: str | float = "learned"
    memory: float = 256.0

    def baselines(self) -> dict[str, Learner]:
        """Own weights alone, and common ones alone."""
        parameters = self.get_params(deep=False)
        found = {"independent": math.inf, "pooled": 0.0}
        return {name: type(self)(**{**parameters, "covariance": value}) for name, value in found.items()}

    def _unit(self, state: State) -> float:
        return float(state.effects.scale[UNIT])

    @property
    def coef_shared_(self) -> FloatArray:
        """(n_features,) common weights mu of the raw features."""
        state: State = self._state("coef_shared_")
        return self._unit(state) * per_feature(state.columns, state.effects.mean)[: self.n_features_in_]

    @property
    def coef_task_(self) -> FloatArray:
        """(n_tasks, n_features) tasks' own weights u_k of the raw features."""
        state: State = self._state("coef_task_")
        own = weights_of(state, np.arange(len(self.tasks_))).own
        return self._unit(state) * per_feature(state.columns, own)[:, : self.n_features_in_]

    @property
    def intercept_shared_(self) -> float:
        """The constant's common weight."""
        state: State = self._state("intercept_shared_")
        return float(state.effects.scale[CENTER] + self._unit(state) * state.effects.mean[0])

    @property
    def intercept_task_(self) -> FloatArray:
        """(n_tasks,) the constant's own weights."""
        state: State = self._state("intercept_task_")
        return self._unit(state) * weights_of(state, np.arange(len(self.tasks_))).own[:, 0]

    @property
    def covariance_(self) -> FloatArray:
        """(1 + n_features, 1 + n_features) Omega of own weights of raw features; the constant comes first."""
        state: State = self._state("covariance_")
        unit = self._unit(state) ** 2 * (state.effects.sums[NOISE] if isinstance(self, Regressor) else 1.0)
        rates = np.zeros((1 + self.n_features_in_, len(state.effects.mean)))
        rates[0, 0] = 1.0
        features = np.arange(self.n_features_in_, dtype=np.int32)
        rates[1 + features, state.columns.place[features]] = scaled_values(state.columns, features, None)
        return np.asarray(unit * rates @ state.effects.spread[effects.OMEGA] @ rates.T)


@from_keywords
class MixedEffects(_MixedEffects, Classifier):
    """Common weights, and tasks' own whose covariance is learned: the mixed-effects logistic model, by the row.

    The logit of a row of task k is ``x'(mu + u_k)``, ``u_k ~ N(0, Omega)``: x has the constant 1 and each feature over
    its running r.m.s. Omega says in which directions tasks differ and how much, so that a few rows of a new task move
    its weights where tasks differ and leave them where all are alike. With ``A_k = Σ h x x'``, ``B_k = Σ h t x``,
    ``P_k = (Omega⁻¹ + A_k)⁻¹`` and ``a_k = P_k B_k``, a row is asked about through ``z = x - A_k P_k x``, what its task
    does not know by itself: ``m = z'mu + x'a_k``, ``V = z'P_mu z + x'P_k x``. Its label is matched in moments: with
    ``kappa = 1/√(1 + pi V/8)``, ``p = sigma(kappa m)``, ``c = max(kappa² p (1 - p), 10⁻⁴)`` it counts as a target
    ``t = m + kappa (y - p)/c`` of precision ``h = c/(1 - c V)``, which a Kalman filter takes in:
    ``mu <- mu + P_mu z (t - m)/(1/h + V)``, ``a_k <- a_k + P_k x (t - x'a_k)/(1/h + x'P_k x)``. Omega is the mean of
    ``P_k + u_k u_k'`` over tasks, ``u_k = a_k - P_k A_k mu``.

    Cost with d the columns in use (features that have come, and the constant): O(d²) an example. A task's rows 1, 2, 3,
    4, 8, 16, ..., and one that comes 400 rows of the stream after its last of these, cost O(d³); rows 256, 512, 1024,
    ... of the stream cost O(d³) for each task. Memory 16 d² bytes a task.

    Parameters
    ----------
    covariance : "learned" or float >= 0 (inf allowed)
        Of tasks' own weights. A number is their variance from then on, as in ridge regression on common and own
        columns: 0 leaves only common weights, inf only own ones (with variance 10).
    memory : float > 0
        Megabytes for tasks' own weights. Tasks that come when all is taken have none: common weights answer them.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    covariance_ : (1 + n_features, 1 + n_features) Omega over the constant and the raw features
    coef_shared_, intercept_shared_ : (n_features,) and a number, the common weights mu
    coef_task_, intercept_task_ : (n_tasks, n_features) and (n_tasks,), the own weights u_k
    relation_ : None, for what is learned is no relation between pairs of tasks but the covariance of all their weights
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, and for more than 511 features.

    Notes
    -----
    The decision value is the logit ``kappa m`` of the probability of the larger label; kappa depends on the row, so
    there is no `coef_`. An unseen task has u = 0 and ``P_k = Omega``: common weights answer it, the less sure the more
    tasks differ. Common weights gain the variance 10⁻⁶ in a row. At rows 256, 512, ... a parameter-expanded step
    scales Omega's deviations, for which the mean alone would take many more rows.

    A row of `sample_weight` h is h rows in a row, taken in 1, 1, 2, 4, ... at a time.

    Odd rows: a wrong label moves the logit of its row by at most kappa V, which is little once there is little doubt. A
    value beyond 10 times the r.m.s. of its feature is clipped.

    References
    ----------
    Robbins. An empirical Bayes approach to statistics. 3rd Berkeley Symposium, 1956.
    Efron, Morris. Stein's estimation rule and its competitors. JASA 68, 1973.
    Laird, Ware. Random-effects models for longitudinal data. Biometrics 38, 1982: Omega by EM, section 4.
    MacKay. The evidence framework applied to classification networks. Neural Computation 4, 1992: kappa.
    Opper. A Bayesian approach to on-line learning. In: On-line learning in neural networks, 1998: moment matching.
    Liu, Rubin, Wu. Parameter expansion to accelerate EM: the PX-EM algorithm. Biometrika 85, 1998.

    Examples
    --------
    >>> from shoal import MixedEffects, MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for learner in (MixedEffects(), MixedEffects(covariance=0.0), MultitaskPerceptron()):
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{learner!s:30} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    MixedEffects()                 error 0.111
    MixedEffects(covariance=0.0)   error 0.114
    MultitaskPerceptron()          error 0.162
    """

    algorithm = LABELS
    is_probabilistic = True  # decision values are logits

    classes: Any = None


@from_keywords
class MixedEffectsRegressor(_MixedEffects, Regressor):
    """Common weights, and tasks' own whose covariance is learned: the linear mixed model, by the row.

    Targets are ``y = x'(mu + u_k) + noise``, ``u_k ~ N(0, s² Omega)``, noise of variance s²: x has the constant 1 and
    each feature over its running r.m.s. The filter is that of `MixedEffects` with ``t = y``, ``h = 1``. While Omega
    stays, it is exact: mu and u_k have the posterior of all rows so far, and the cost of a row does not grow with them.
    Omega is the mean of ``P_k + u_k u_k'/s²`` over tasks, s² that of ``(y - m)²/(1 + V)`` over rows, in which row n
    counts n times until 5,000 have come.

    Cost and memory are those of `MixedEffects`.

    Parameters
    ----------
    covariance : "learned" or float >= 0 (inf allowed)
        Of tasks' own weights over the noise's variance. A number stays, and then the posterior is exact: 0 leaves only
        common weights, inf only own ones (with variance 10).
    memory : as in `MixedEffects`

    Attributes
    ----------
    covariance_ : (1 + n_features, 1 + n_features) s² Omega over the constant and the raw features
    noise_ : s², the variance of targets around their task's model
    coef_shared_, intercept_shared_ : (n_features,) and a number, the common weights mu
    coef_task_, intercept_task_ : (n_tasks, n_features) and (n_tasks,), the own weights u_k
    relation_ : None, as of `MixedEffects`
    tasks_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, and for more than 511 features.

    Notes
    -----
    Targets are measured from the mean of the first ten in units of their deviation, so their scale and offset do not
    matter. An unseen task is answered by the common weights. A row of `sample_weight` h has the precision h.

    Odd rows: an error beyond 7 deviations of the forecast is clipped, farther as more than one row of a thousand is; so
    one absurd target after the first ten does no more than a large one. A value beyond 10 times the r.m.s. of its
    feature is clipped.

    References
    ----------
    Henderson. Best linear unbiased estimation and prediction under a selection model. Biometrics 31, 1975.
    Harville. Maximum likelihood approaches to variance component estimation and to related problems. JASA 72, 1977.
    Laird, Ware. Random-effects models for longitudinal data. Biometrics 38, 1982.
    Kalman. A new approach to linear filtering and prediction problems. Journal of Basic Engineering 82, 1960.
    And those of `MixedEffects`.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MixedEffectsRegressor, MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), rng.integers(100, size=3000)
    >>> weights = rng.normal(size=5) + [1.0, 1.0, 0.1, 0.0, 0.0] * rng.normal(size=(100, 5))
    >>> y = np.einsum("ij,ij->i", X, weights[task]) + rng.normal(size=3000)
    >>> for learner in (MixedEffectsRegressor(), MixedEffectsRegressor(covariance=0.0), MultitaskRegressor()):
    ...     predictions = learner.test_then_train(X, y, task)
    ...     print(f"{learner!s:40} mean squared error {((predictions - y) ** 2)[1000:].mean():.3f}")
    MixedEffectsRegressor()                  mean squared error 1.148
    MixedEffectsRegressor(covariance=0.0)    mean squared error 2.844
    MultitaskRegressor()                     mean squared error 1.856
    >>> model = MixedEffectsRegressor().fit(X, y, task)
    >>> print("tasks' weights deviate by", np.sqrt(model.covariance_.diagonal()[1:]).round(1))
    tasks' weights deviate by [0.9 1.  0.1 0.1 0.1]
    """

    algorithm = LABELS._replace(settings=partial(settings_of, regression=True))

    @property
    def noise_(self) -> float:
        """s^2, in squares of the targets' own unit."""
        state: State = self._state("noise_")
        return float(self._unit(state) ** 2 * state.effects.sums[NOISE])
