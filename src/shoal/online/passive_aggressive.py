"""Passive-Aggressive (Crammer et al., JMLR 2006): the smallest step that repairs the loss of the row.

With l = [1 - y <w, x>]_+ (regression: l = [|y - <w, x>| - epsilon]_+),  w <- w + tau y x  where
PA tau = l/||x||^2,  PA-I tau = min(C, l/||x||^2),  PA-II tau = l/(||x||^2 + 1/(2C)).

One model per task is the multi-task papers' PA-ITL or PA-Unique, one for all tasks their PA-ONE or PA-Global.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import on_stack
from shoal.engine.rounds import Rounds
from shoal.engine.rows import add, dot, open_weighted, squared_norm
from shoal.engine.task_weights import weights as task_weights
from shoal.engine.task_weights.lookahead import Lookahead, nothing_ahead
from shoal.engine.task_weights.weights import TaskWeights, as_matrix, has_capacity, task_add, task_dot
from shoal.learner import Classifier, Learner, Regressor, WeightedLearner
from shoal.model.algorithm import Algorithm, Exchange, Setup, Size
from shoal.model.parameters import WEIGHTS_TYPE, Params, from_keywords, non_negative, one_of, positive
from shoal.online.common.task_weights import with_task_weights

VARIANTS = {"PA": 0, "PA-I": 1, "PA-II": 2}


class Settings(NamedTuple):
    """Hyper-parameters."""

    variant: int
    C: float
    epsilon: float  # regression's zone without loss; negative: classification
    pooled: bool


class State(NamedTuple):
    """One row of weights a model."""

    shared: Annotated[FloatArray, FEATURE]  # w if tasks are pooled, or empty
    own: TaskWeights  # (tasks, features) w, or (tasks, 0) if pooled
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel
def margin(rounds: Rounds, row: int, settings: Settings, state: State, ahead: Lookahead) -> float:
    """<w, x>; an unseen task has w = 0 if tasks are independent."""
    if settings.pooled:
        return dot(rounds, row, state.shared)
    return task_dot(rounds, row, rounds.task[row], state.own, ahead) if rounds.task[row] >= 0 else 0.0


@kernel
def step(f: float, y: float, norm: float, C: float, settings: Settings) -> float:
    """tau times the direction: y, or in regression the sign of y - f."""
    if settings.epsilon < 0.0:
        loss, direction = max(0.0, 1.0 - y * f), y
    else:
        loss, direction = max(0.0, abs(y - f) - settings.epsilon), math.copysign(1.0, y - f)
    if loss == 0.0 or norm == 0.0:
        return 0.0
    if settings.variant == 2:
        return direction * loss / (norm + 0.5 / C)
    tau = loss / norm
    return direction * (min(C, tau) if settings.variant == 1 else tau)


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    ahead = on_stack()
    nothing_ahead(ahead)
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, settings, state, ahead)


@kernel(entry=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    ahead = on_stack()
    nothing_ahead(ahead)
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if not has_capacity(rounds, first, last, state.own):
            return r
        open_weighted(rounds, r, state.counters)
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, settings, state, ahead)
        for row in range(first, last):
            f = margin(rounds, row, settings, state, ahead)
            C = settings.C * rounds.weight[row] if len(rounds.weight) > 0 else settings.C
            change = step(f, rounds.y[row], squared_norm(rounds, row), C, settings)
            if change != 0.0 and C > 0.0:  # NaN if an infinite C does not count
                if settings.pooled:
                    add(rounds, row, change, state.shared)
                else:
                    task_add(rounds, row, change, rounds.task[row], state.own)
                state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


PARAMETERS = {
    "variant": one_of(VARIANTS),
    "C": positive(infinite=True),
    "relation": one_of(("independent", "pooled")),
    "dtype": WEIGHTS_TYPE,
}


def settings(p: Params) -> Settings:
    return Settings(p.variant, p.C, getattr(p, "epsilon", -1.0), p.relation == "pooled")


def allocate(setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    pooled, dtype = setup.settings.pooled, setup.params.dtype
    own = task_weights.allocate(n_tasks, 0 if pooled else n_features, dtype, task_weights.dense_limit(False))
    return State(np.zeros(n_features * pooled, dtype), own, np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


ALGORITHM = with_task_weights(
    Algorithm[State](
        parameters=PARAMETERS,
        settings=settings,
        allocate=allocate,
        learn=learn,
        decide=decide,
        exchange=Exchange(mean=("shared",), local=("counters",)),
        no_weights="",
    )
)


@from_keywords
class _PassiveAggressive(WeightedLearner):
    """The base of the classifier and the regressor."""

    variant: str = "PA-I"
    C: float = 1.0
    relation: str = "independent"
    dtype: Any = "float64"

    def baselines(self) -> dict[str, Learner]:
        parameters = self.get_params(deep=False)
        return {name: type(self)(**{**parameters, "relation": name}) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights; equal rows if pooled."""
        state, n_tasks, d = self._state("coef_"), len(self.tasks_), self.n_features_in_
        if len(state.shared):
            return np.tile(state.shared[:d].astype(np.float64), (n_tasks, 1))
        return as_matrix(state.own, n_tasks, d)


@from_keywords
class PassiveAggressive(_PassiveAggressive, Classifier):
    """Passive-Aggressive classification, one model per task or one for all.

    On a row with hinge loss l > 0, ``w <- w + tau y x`` with tau = l/||x||² ("PA"), min(C, l/||x||²) ("PA-I")
    or l/(||x||² + 1/(2C)) ("PA-II"); a zero row changes nothing. Cost O(nnz) an example.

    Parameters
    ----------
    variant : {"PA", "PA-I", "PA-II"}
        How far a row may pull: PA repairs its loss entirely, the others trade it against the step.
    C : float > 0
        Aggressiveness of PA-I and PA-II.
    relation : {"independent", "pooled"}
        One model per task (PA-ITL, PA-Unique), or one for all tasks (PA-ONE, PA-Global).
    dtype : {"float64", "float32"}
        Type of the stored weights. float32 takes half the memory; sums are float64 in both.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    Nothing is shared between independent tasks: an unseen one is answered with margin 0, the larger label. A
    pooled model answers unseen tasks like all others.

    A row of `sample_weight` h has h times the price of its loss, C h in place of C. For PA-I that equals h rows one
    after the other, for PA nothing but 0 makes a difference; PA-II, whose repeated steps would shrink the loss
    geometrically, makes the one step l/(||x||² + 1/(2 C h)).

    Odd rows: one wrong label moves the weights by at most C x ("PA": until the row is right); a value of 1e6 costs next
    to nothing, because steps are divided by ||x||².

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. JMLR 7, 2006: figure 1.

    Examples
    --------
    >>> from shoal import PassiveAggressive
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for relation in ("independent", "pooled"):
    ...     learner = PassiveAggressive(relation=relation)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{relation:12} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    independent  error 0.253
    pooled       error 0.143
    """

    classes: Any = None

    algorithm = ALGORITHM


@from_keywords
class PassiveAggressiveRegressor(_PassiveAggressive, Regressor):
    """Passive-Aggressive regression, one model per task or one for all.

    On a row with loss l = [|y - f| - epsilon]_+ > 0, ``w <- w + tau sign(y - f) x``, tau as in
    `PassiveAggressive`. Cost O(nnz) an example.

    Parameters
    ----------
    variant : {"PA", "PA-I", "PA-II"}
        How far a row may pull.
    C : float > 0
        Aggressiveness of PA-I and PA-II.
    epsilon : float >= 0
        Errors up to this cost nothing.
    relation : {"independent", "pooled"}
        One model per task, or one for all tasks.
    dtype : {"float64", "float32"}
        Type of the stored weights. float32 takes half the memory; sums are float64 in both.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    relation_ : None
    tasks_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    An unseen task is answered with 0 if tasks are independent, by the one model if they are pooled. A row of
    `sample_weight` h has C h in place of C, as in `PassiveAggressive`.

    Odd rows: a target of 1e6 deviations moves the weights by at most C x, but with "PA" until it is answered; a value
    of 1e6 costs little, because steps are divided by ||x||².

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. JMLR 7, 2006: section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import PassiveAggressiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), rng.integers(10, size=3000)
    >>> y = np.einsum("ij,ij->i", X, rng.normal(size=(10, 5))[task])
    >>> for relation in ("independent", "pooled"):
    ...     predictions = PassiveAggressiveRegressor(relation=relation).test_then_train(X, y, task)
    ...     print(f"{relation:12} RMSE {np.sqrt(np.mean((predictions - y) ** 2)):.2f}")
    independent  RMSE 0.32
    pooled       RMSE 2.92
    """

    epsilon: float = 0.1

    algorithm = ALGORITHM._replace(parameters=PARAMETERS | {"epsilon": non_negative(infinite=True)})
