"""Collaborative online multi-task learning, COML (Li, Hoi, Chang, Liu, Jain, TKDE 2014), passive-aggressive.

A global model g learns by PA-I from all rows; each task's model u_k is pulled to it by its own rows. With
alpha = e2/(e1 + e2),  ubar = (1 - alpha) u_k + alpha g  and  l = [1 - y <ubar, x>]_+,

    u_k <- ubar + tau y x,  tau = min(C, l/||x||^2),

the minimiser of (1 - alpha)/2 ||u - u_k||^2 + alpha/2 ||u - g||^2 + C [1 - y <u, x>]_+. g learns the row first.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import add, dot, feature_at, open_round, row_bounds, squared_norm
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import Algorithm, Exchange, Storage
from shoal.model.parameters import Params, between, from_keywords, one_of, positive, truth
from shoal.model.persistence import learner_class
from shoal.online.collaborative.lazy_pull import (
    ROUNDING,
    State,
    allocate,
    apply_pending,
    check,
    may_be_pending,
    part_at,
    powers_of,
    pull,
    retune,
    settle,
    with_pulls,
)
from shoal.online.passive_aggressive import VARIANTS, step
from shoal.online.passive_aggressive import Settings as StepSettings


class Settings(NamedTuple):
    """Hyper-parameters."""

    pull: float  # alpha
    pa: StepSettings  # PA-I with C, for the global model and the tasks'
    mix: bool
    passive: bool
    powers: FloatArray  # (1 - alpha)^n; all 1 for "mix", which pulls nothing


@kernel(entry="too")
def own_margin(rounds: Rounds, row: int, k: int, settings: Settings, state: State) -> float:
    """<u_k, x>."""
    if state.pulls[k] == 0:
        return dot(rounds, row, state.own[0, :, k])
    first, last = row_bounds(rounds, row)
    total = 0.0
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        u = part_at(0, j, k, settings.powers, state)
        total += rounds.values[p] * u
    return total


@kernel(entry="too")
def margin(rounds: Rounds, row: int, settings: Settings, state: State) -> float:
    """<u_k, x>, or the mixture of <g, x> and <v_k, x>; an unseen task has u_k = g, or v_k = 0."""
    k = rounds.task[row]
    if settings.mix:
        f = settings.pull * dot(rounds, row, state.common[0])
        return f + (1.0 - settings.pull) * own_margin(rounds, row, k, settings, state) if k >= 0 else f
    return own_margin(rounds, row, k, settings, state) if k >= 0 else dot(rounds, row, state.common[0])


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, settings, state)


@kernel(entry="too")
def learn_row(rounds: Rounds, row: int, pending: bool, settings: Settings, state: State) -> None:
    k, y, norm = rounds.task[row], rounds.y[row], squared_norm(rounds, row)
    powers, common = settings.powers, state.common
    change = step(dot(rounds, row, common[0]), y, norm, settings.pa.C, settings.pa)
    if change != 0.0:
        if pending:
            apply_pending(rounds, row, powers, state)
        add(rounds, row, change, common[0])
    f = own_margin(rounds, row, k, settings, state)
    if not settings.mix:
        f = (1.0 - settings.pull) * f + settings.pull * dot(rounds, row, common[0])  # <ubar, x>
        repaired = y * f >= 1.0 - ROUNDING
        if not (repaired and settings.passive):
            pull(rounds, row, k, powers, state)
        if repaired:
            return
    change = step(f, y, norm, settings.pa.C, settings.pa)
    if change != 0.0:
        add(rounds, row, change, state.own[0, :, k])
        state.updates[k] += 1


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    pending = may_be_pending(rounds, settings.powers, state.pulls)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, settings, state)
        for row in range(first, last):
            learn_row(rounds, row, pending, settings, state)
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    mix = p.variant == "mix"
    if mix and p.passive:
        raise ValueError("passive=True says when not to pull, and variant='mix' never pulls; drop one of the two")
    pa = StepSettings(VARIANTS["PA-I"], p.C, -1.0, False)
    return Settings(p.pull, pa, mix, p.passive, powers_of(1.0 if mix else 1.0 - p.pull))


ALGORITHM = Algorithm[State](
    parameters={
        "pull": between(0, 1),
        "C": positive(infinite=True),
        "variant": one_of(("collaborative", "mix")),
        "passive": truth(),
    },
    settings=settings,
    allocate=partial(allocate, 1),
    learn=learn,
    decide=decide,
    exchange=Exchange(mean=("common",), local=("counters",), settle=settle),
    no_weights="its paper ties the steps of the global and the task's model for a row that comes once",
    retune=retune,
    storage=Storage(check=check),
)


@from_keywords
class CollaborativePA(Classifier):
    """COML: a Passive-Aggressive model per task, pulled to a global one.

    On every row the global model g makes a PA-I step; then, with ``ū = (1 - pull) u_k + pull g``, the row's task
    makes ``u_k <- ū + min(C, [1 - y <ū, x>]₊/||x||²) y x``. Cost O(nnz) to predict; to learn, O(d) for a dense row
    (nnz = d) and O(nnz K) for a sparse one whatever d is, O(nnz) where g does not move.

    Parameters
    ----------
    pull : float in [0, 1]
        Pull to the global model, e2/(e1 + e2); 0 is PA-I per task.
    C : float > 0
        Aggressiveness: the longest step, in units of x.
    variant : {"collaborative", "mix"}
        "mix" pulls nothing: g and independent PA-I models v_k learn from their own losses, and the answer is
        ``pull <g, x> + (1 - pull) <v_k, x>``. O(nnz) a row.
    passive : bool
        Does a row without loss leave u_k as it is (True), or set ``u_k <- ū`` as the objective says (False)?
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    coef_shared_ : (n_features,) the global model g
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (steps of the tasks' own models), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    A task begins with zero weights; an unseen one is answered by the global model ("mix": by its share pull).

    Odd rows: one wrong label moves the global model and its task's by at most C x each; a value of 1e6 costs next to
    nothing, because steps are divided by ||x||².

    References
    ----------
    Li, Hoi, Chang, Liu, Jain. Collaborative Online Multitask Learning. IEEE TKDE 26(8), 2014. Crammer et al. Online
    Passive-Aggressive Algorithms. JMLR 7, 2006: PA-I.

    Examples
    --------
    >>> from shoal import CollaborativePA
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for pull in (0.0, 0.5):
    ...     learner = CollaborativePA(pull=pull)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"pull {pull} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    pull 0.0 error 0.253
    pull 0.5 error 0.136
    """

    pull: float = 0.5
    C: float = 1.0
    variant: str = "collaborative"
    passive: bool = False
    classes: Any = None

    algorithm = ALGORITHM

    def baselines(self) -> dict[str, Learner]:
        return {name: learner_class("PassiveAggressive")(C=self.C, relation=name) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights: u, or pull g + (1 - pull) v."""
        s, settings = self._state("coef_"), self._setup().settings
        u = with_pulls(settings.powers, s)[0]
        if settings.mix:
            u = settings.pull * s.common[0][:, None] + (1.0 - settings.pull) * u
        return np.ascontiguousarray(u[: self.n_features_in_, : len(self.tasks_)].T)

    @property
    def coef_shared_(self) -> FloatArray:
        """(n_features,) the global model g."""
        g: FloatArray = self._state("coef_shared_").common[0, : self.n_features_in_]
        return g.copy()
