"""Passive-Aggressive (Crammer et al., JMLR 2006): the smallest step that repairs the loss of the row.

With l = [1 - y <w, x>]_+ (regression: l = [|y - <w, x>| - epsilon]_+),  w <- w + tau y x  where
PA tau = l/||x||^2,  PA-I tau = min(C, l/||x||^2),  PA-II tau = l/(||x||^2 + 1/(2C)).

One model per task is the multi-task papers' PA-ITL or PA-Unique, one for all tasks their PA-ONE or PA-Global.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import on_stack
from shoal.engine.rounds import Rounds
from shoal.engine.rows import open_round, squared_norm
from shoal.engine.task_weights.lookahead import Ahead, nothing_ahead
from shoal.engine.task_weights.weights import Own, OwnWeights, as_matrix, fits, new_own, own_add, own_dot
from shoal.learner import Classifier, Learner, Regressor
from shoal.model.validation import BAD, good_until

VARIANTS = {"PA": 0, "PA-I": 1, "PA-II": 2}


class Settings(NamedTuple):
    """Hyper-parameters."""

    variant: int
    C: float
    epsilon: float  # regression's zone without loss; negative: classification
    pooled: bool


class State(NamedTuple):
    """One row of weights a model."""

    own: Own  # (tasks, features) w, or (1, features) if pooled
    updates: IntArray  # (tasks,)
    clock: IntArray  # (2,) tasks, rounds


@kernel
def margin(rounds: Rounds, row: int, settings: Settings, state: State, ahead: Ahead) -> float:
    """<w, x>; an unseen task has w = 0 if tasks are independent."""
    model = 0 if settings.pooled else rounds.task[row]
    return own_dot(rounds, row, model, state.own, ahead) if model >= 0 else 0.0


@kernel
def step(f: float, y: float, norm: float, settings: Settings) -> float:
    """tau times the direction: y, or in regression the sign of y - f."""
    if settings.epsilon < 0.0:
        loss, direction = max(0.0, 1.0 - y * f), y
    else:
        loss, direction = max(0.0, abs(y - f) - settings.epsilon), math.copysign(1.0, y - f)
    if loss == 0.0 or norm == 0.0:
        return 0.0
    if settings.variant == 2:
        return direction * loss / (norm + 0.5 / settings.C)
    tau = loss / norm
    return direction * (min(settings.C, tau) if settings.variant == 1 else tau)


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    ahead = on_stack()
    nothing_ahead(ahead)
    good = 0
    for row in range(len(decisions)):
        good = good_until(rounds, good, row + 1)
        if good == BAD:
            return BAD
        decisions[row] = margin(rounds, row, settings, state, ahead)
    return len(decisions)


@kernel(entry=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    ahead = on_stack()
    nothing_ahead(ahead)
    good = rounds.starts[0]
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        good = good_until(rounds, good, last)
        if good == BAD:
            return BAD
        if not fits(rounds, first, last, state.own):
            return r
        open_round(rounds, r, state.clock)
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, settings, state, ahead)
        for row in range(first, last):
            f = margin(rounds, row, settings, state, ahead)
            change = step(f, rounds.y[row], squared_norm(rounds, row), settings)
            if change != 0.0:
                own_add(rounds, row, change, 0 if settings.pooled else rounds.task[row], state.own)
                state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


class _PassiveAggressive(OwnWeights):
    """What the classifier and the regressor share."""

    variant: str
    C: float
    sharing: str
    _zone: ClassVar[float] = -1.0
    _checks_rows = True

    def _settings(self) -> Settings:
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {sorted(VARIANTS)}, got {self.variant!r}")
        if not self.C > 0:
            raise ValueError(f"C must be a number > 0, got {self.C}")
        if self.sharing not in ("independent", "pooled"):
            raise ValueError(f"sharing must be 'independent' or 'pooled', got {self.sharing!r}")
        epsilon = self._zone if self._zone < 0 else self.epsilon
        if self._zone >= 0 and not epsilon >= 0:
            raise ValueError(f"epsilon must be a number >= 0, got {epsilon}")
        return Settings(VARIANTS[self.variant], float(self.C), float(epsilon), self.sharing == "pooled")

    def _allocate(self, n_tasks: int, n_features: int) -> State:
        own = (
            new_own(1, n_features, self._weights_type())
            if self.sharing == "pooled"
            else self._new_own(n_tasks, n_features)
        )
        return State(own, np.zeros(n_tasks, np.int64), np.zeros(2, np.int64))

    def _loops(self) -> tuple[Any, Any]:
        return learn, decide

    def baselines(self) -> dict[str, Learner]:
        parameters = self.get_params(deep=False)
        return {name: type(self)(**{**parameters, "sharing": name}) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights; equal rows if pooled."""
        own, n_tasks, d = self._fitted("coef_").own, len(self.tasks_), self.n_features_in_
        return as_matrix(own, 1, d).repeat(n_tasks, axis=0) if self.sharing == "pooled" else as_matrix(own, n_tasks, d)


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
    sharing : {"independent", "pooled"}
        One model per task (PA-ITL, PA-Unique), or one for all tasks (PA-ONE, PA-Global).
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.

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

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. JMLR 7, 2006: figure 1.

    Examples
    --------
    >>> from shoal import PassiveAggressive
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for sharing in ("independent", "pooled"):
    ...     learner = PassiveAggressive(sharing=sharing)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{sharing:12} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    independent  error 0.253
    pooled       error 0.143
    """

    def __init__(
        self, *, variant: str = "PA-I", C: float = 1.0, sharing: str = "independent", dtype: Any = "float64"
    ) -> None:
        self.dtype = dtype
        self.variant = variant
        self.C = C
        self.sharing = sharing


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
    sharing : {"independent", "pooled"}
        One model per task, or one for all tasks.
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.

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
    An unseen task is answered with 0 if tasks are independent, by the one model if they are pooled.

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
    >>> for sharing in ("independent", "pooled"):
    ...     predictions = PassiveAggressiveRegressor(sharing=sharing).test_then_train(X, y, task)
    ...     print(f"{sharing:12} RMSE {np.sqrt(np.mean((predictions - y) ** 2)):.2f}")
    independent  RMSE 0.32
    pooled       RMSE 2.92
    """

    _zone = 0.0

    def __init__(
        self, *, variant: str = "PA-I", C: float = 1.0, epsilon: float = 0.1, sharing: str = "independent",
        dtype: Any = "float64",
    ) -> None:  # fmt: skip
        self.dtype = dtype
        self.variant = variant
        self.C = C
        self.epsilon = epsilon
        self.sharing = sharing
