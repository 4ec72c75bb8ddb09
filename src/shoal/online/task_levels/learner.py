"""TaskLevels as an algorithm, and its public classes."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import open_weighted, weight_of
from shoal.learner import Classifier, Learner, Regressor, WeightedLearner
from shoal.model.algorithm import Algorithm, Explain, Setup, Size, Storage
from shoal.model.explanations import Parts
from shoal.model.parameters import from_keywords
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
from shoal.online.mixed_effects.learner import MixedEffects, MixedEffectsRegressor
from shoal.online.task_levels import levels
from shoal.online.task_levels.levels import (
    DRIFTS,
    LAMBDAS,
    LEVEL,
    LOGIT,
    PRIORS,
    SHARE,
    VARIANCE,
    Levels,
    Scratch,
    answer,
    ask,
    new_scratch,
)


class Settings(NamedTuple):
    """Settings for labels, or for real targets."""

    regression: bool


class State(NamedTuple):
    """Columns of features, and the filter on them."""

    columns: Columns
    levels: Levels
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(inline=False, alone=False)
def decide_row(rounds: Rounds, row: int, settings: Settings, state: State, x: FloatArray, scratch: Scratch) -> float:
    used = max(state.levels.columns[0], 1)
    fill_row(rounds, row, used, state.columns, x)
    f = ask(used, x, rounds.task[row], settings.regression, state.levels, scratch)
    return answer(f, settings.regression, state.levels)


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    x, scratch = np.zeros(len(state.levels.mean)), new_scratch(len(state.levels.mean))
    for row in range(len(decisions)):
        decisions[row] = decide_row(rounds, row, settings, state, x, scratch)


@kernel(inline=False, alone=False)
def learn_row(rounds: Rounds, row: int, settings: Settings, state: State, x: FloatArray, scratch: Scratch) -> float:
    """Learn a row; return its answer from before."""
    task, h, used = rounds.task[row], weight_of(rounds, row), max(state.levels.columns[0], 1)
    missing = fill_row(rounds, row, used, state.columns, x)
    f = ask(used, x, task, settings.regression, state.levels, scratch)
    decision = answer(f, settings.regression, state.levels)
    if h > 0.0:
        if missing > 0:
            used = add_columns(rounds, row, used, state.columns, x)
        y = rounds.y[row] if settings.regression else 0.5 + 0.5 * rounds.y[row]
        levels.learn(used, x, y, h, task, settings.regression, f, state.levels, scratch)
        learn_columns(rounds, row, h, state.columns)
        state.updates[task] += 1
    return decision


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    side = len(state.levels.mean)
    x, scratch = np.zeros(side), new_scratch(side)
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if columns_after(rounds, first, last, state.levels.columns[0], state.columns) > side:
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
        levels.new_levels(size.tasks, 8),
        np.zeros(size.tasks, np.int64),
        np.zeros(3, np.int64),
    )


def extend(setup: Setup, state: State, size: Size, rounds: Rounds) -> State:
    """Room for the next round."""
    first, last = int(rounds.starts[0]), int(rounds.starts[1])
    columns = columns_after(rounds, first, last, int(state.levels.columns[0]), state.columns)
    return state._replace(levels=levels.with_side(state.levels, side_for(columns, len(state.levels.mean))))


def pack(setup: Setup, state: State, size: Size) -> Any:
    packed: State = trimmed(state._replace(levels=levels.pack(state.levels)), allocate(setup, size))
    return packed


def check(setup: Setup, packed: State, size: Size) -> None:
    levels.check(packed.levels)
    check_columns(packed.columns, int(packed.levels.columns[0]))


def unpack(setup: Setup, packed: State, size: Size) -> State:
    return packed._replace(levels=levels.unpack(packed.levels))


def contributions(
    setup: Setup, state: State, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """Contributions of features to x'w, and the task's level; of a label all times the mean kappa of its levels."""
    regression, learned, shares = setup.settings.regression, state.levels, state.levels.grid[SHARE]
    seen = (tasks >= 0) & (learned.rows[tasks] > 0.0)
    own = np.where(seen[:, None, None], learned.levels[tasks], [np.zeros_like(PRIORS), PRIORS])
    unit = shares * np.ones_like(PRIORS)
    kappa = unit / np.sqrt(1.0 + (0.0 if regression else math.pi / 8.0 * LOGIT) * own[:, VARIANCE])
    factor = learned.scale[UNIT] if regression else 1.0
    weights = factor * learned.mean[np.concatenate([[0], state.columns.place[features]])]
    shared = kappa.sum(1)[:, None] * weights * np.concatenate([[1.0], scaled_values(state.columns, features, values)])
    shared[:, 0] += learned.scale[CENTER] if regression else 0.0
    level = np.zeros_like(shared)
    level[:, 0] = factor * (kappa * own[:, LEVEL]).sum(1)
    return Parts(shared, level)


LABELS = Algorithm[State](
    parameters={},
    settings=lambda p: Settings(False),
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="common weights learn from the residuals of levels, and the drift of levels from the rows of all tasks",
    no_weights="",
    storage=Storage(capacity=few_features, extend=extend, pack=pack, check=check, unpack=unpack),
    explain=Explain(contributions=contributions),
)


@from_keywords
class _TaskLevels(WeightedLearner):
    """The base of the classifier and the regressor."""

    def _unit(self, state: State) -> float:
        return float(state.levels.scale[UNIT])

    @property
    def levels_(self) -> FloatArray:
        """(n_tasks,) sum_g a_g b_kg."""
        state: State = self._state("levels_")
        means = state.levels.levels[: len(self.tasks_), LEVEL] @ state.levels.grid[SHARE]
        return np.asarray(self._unit(state) * means)

    @property
    def shares_(self) -> dict[tuple[float, float], float]:
        """The share a_g of each pair (lambda, q), the largest first."""
        state: State = self._state("shares_")
        pairs = [(lam, q) for lam in LAMBDAS for q in DRIFTS]
        found = zip(pairs, state.levels.grid[SHARE].tolist(), strict=True)
        return dict(sorted(found, key=lambda one: -one[1]))

    @property
    def coef_shared_(self) -> FloatArray:
        """(n_features,) common weights w of the raw features."""
        state: State = self._state("coef_shared_")
        return self._unit(state) * per_feature(state.columns, state.levels.mean)[: self.n_features_in_]

    @property
    def intercept_shared_(self) -> float:
        """The constant's common weight."""
        state: State = self._state("intercept_shared_")
        return float(state.levels.scale[CENTER] + self._unit(state) * state.levels.mean[0])


@from_keywords
class TaskLevels(_TaskLevels, Classifier):
    """Common weights and a level of each task, which may drift: logistic regression with random intercepts, by the row.

    The logit of a row of task k is ``x'w + b_k``: x has the constant 1 and each feature over its running r.m.s. The
    level moves by ``b <- b + V (y - p)/(1 + c V)``, its variance by ``V <- V/(1 + c V) + q`` with p = sigma(x'w + b)
    and c = max(p (1 - p), 10⁻³). How much levels differ (V = 4/lambda at the start) and how fast they drift (q) is not
    known, so each task has 35 of them, for lambda in {0.1, 0.3, 1, 3, 10, 30, 100} and q in {0, 0.01, 0.1, 1, 10}, and
    pairs are weighed by their likelihood over the rows of all tasks, ``l_g <- 0.999 l_g + log P_g(y)``. The answer is
    ``Σ_g a_g (x'w + b_kg)/√(1 + pi V_kg/8)``, a = exp(l)/Σ exp(l). A Kalman filter learns w from what the levels
    leave.

    Cost with d the columns in use (features that have come, and the constant): O(d²) and 35 levels an example. Memory
    560 bytes a task.

    Parameters
    ----------
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    levels_ : (n_tasks,) levels, the mean of the 35 by their shares
    shares_ : the share of each pair (lambda, q), the largest first: how much levels differ and how fast they drift
    coef_shared_, intercept_shared_ : (n_features,) and a number, the common weights w of the raw features
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input, and for more than 511 features.

    Notes
    -----
    The decision value is the logit of the probability of the larger label. An unseen task has the level 0. With q = 0 a
    level is the mode of its posterior after a Newton step a row; q > 0 is the local level model of Harvey.

    A row of `sample_weight` h is h rows in a row, taken in 1, 1, 2, 4, ... at a time, but drifts once.

    Odd rows: a wrong label moves its task's level by at most V, and common weights little once they are sure. A value
    beyond 10 times the r.m.s. of its feature is clipped.

    References
    ----------
    Laird, Ware. Random-effects models for longitudinal data. Biometrics 38, 1982.
    Kalman. A new approach to linear filtering and prediction problems. Journal of Basic Engineering 82, 1960.
    Harvey. Forecasting, structural time series models and the Kalman filter. Cambridge University Press, 1989.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MixedEffects, MultitaskPerceptron, TaskLevels
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(4000, 5)), rng.integers(50, size=4000)
    >>> logits = X @ rng.normal(size=5) + 2.0 * rng.normal(size=50)[task]
    >>> y = rng.random(4000) < 1.0 / (1.0 + np.exp(-logits))
    >>> X1 = np.column_stack([X, np.ones(4000)])
    >>> for learner, rows in (TaskLevels(), X), (MixedEffects(covariance=0.0), X), (MultitaskPerceptron(), X1):
    ...     decisions = learner.test_then_train(rows, y, task)
    ...     print(f"{learner!s:40} error {((decisions >= 0) != y)[1000:].mean():.3f}")
    TaskLevels()                             error 0.185
    MixedEffects(covariance=0.0)             error 0.418
    MultitaskPerceptron()                    error 0.282
    """

    algorithm = LABELS
    is_probabilistic = True  # decision values are logits

    classes: Any = None

    def baselines(self) -> dict[str, Learner]:
        """A task's own weights alone, and common weights alone: both with the prior of these."""
        return {
            "independent": MixedEffects(covariance=math.inf, classes=self.classes),
            "pooled": MixedEffects(covariance=0.0, classes=self.classes),
        }


@from_keywords
class TaskLevelsRegressor(_TaskLevels, Regressor):
    """Common weights and a level of each task, which may drift: a regression with random intercepts, by the row.

    As `TaskLevels` with ``y = x'w + b_k`` + noise of variance s²: ``b <- b + v e/(1 + v)``, ``v <- v/(1 + v) + q`` with
    e = y - x'w - b and v the level's variance over s². A new level has v = 1/lambda. Each of the 35 pairs (lambda, q)
    has its noise, the mean of e²/(1 + v) over at most 2,000 rows, and its score,
    ``l <- 0.999 l - (log(s² (1 + v)) + e²/(s² (1 + v)))/2``. The answer is ``x'w + Σ_g a_g b_kg``.

    Cost and memory are those of `TaskLevels`.

    Parameters
    ----------
    None : there is nothing to choose.

    Attributes
    ----------
    levels_ : (n_tasks,) levels, the mean of the 35 by their shares
    shares_ : the share of each pair (lambda, q), the largest first: how much levels differ and how fast they drift
    coef_shared_, intercept_shared_ : (n_features,) and a number, the common weights w of the raw features
    relation_ : None
    tasks_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input, and for more than 511 features.

    Notes
    -----
    Targets are measured from the mean of the first ten in units of their deviation, so their scale and offset do not
    matter. An unseen task has the level 0. For one pair, given w, levels are exact: `b_k` is the posterior mean of the
    random walk. A row of `sample_weight` h has the precision h.

    Odd rows: an error beyond 7 deviations of the forecast is clipped, farther as more than one row of a thousand is; so
    one absurd target after the first ten does no more than a large one. A value beyond 10 times the r.m.s. of its
    feature is clipped.

    References
    ----------
    As `TaskLevels`.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MixedEffectsRegressor, MultitaskRegressor, TaskLevelsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), np.tile(np.arange(30), 100)
    >>> walks = np.cumsum(0.3 * rng.normal(size=(100, 30)), axis=0) + rng.normal(size=30)
    >>> y = X @ rng.normal(size=5) + walks.ravel() + rng.normal(size=3000)
    >>> for learner in (TaskLevelsRegressor(), MixedEffectsRegressor(), MultitaskRegressor()):
    ...     predictions = learner.test_then_train(X, y, task)
    ...     print(f"{learner!s:24} mean squared error {((predictions - y) ** 2)[1000:].mean():.3f}")
    TaskLevelsRegressor()    mean squared error 1.331
    MixedEffectsRegressor()  mean squared error 2.920
    MultitaskRegressor()     mean squared error 8.675
    """

    algorithm = LABELS._replace(settings=lambda p: Settings(True))

    def baselines(self) -> dict[str, Learner]:
        """A task's own weights alone, and common weights alone: both with the prior of these."""
        return {
            "independent": MixedEffectsRegressor(covariance=math.inf),
            "pooled": MixedEffectsRegressor(covariance=0.0),
        }
