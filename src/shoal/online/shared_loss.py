"""Shared loss (Dekel, Long, Singer, JMLR 2007): tasks keep their own weights, and a round costs a norm of their losses.

With l_k = [1 - y_k <w_k, x_k>]_+ over the tasks of the round,  w_k <- w_k + tau_k y_k x_k,  where the steps tau lie in
the dual ball ||tau||_* <= C and so compete: L2 favours tasks with large losses, Linf moves the worst one only, and Lp
is between L1 and Linf. The multi-task papers' OMTL and OSGL.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import add, dot, open_round, squared_norm
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import Algorithm, Chunks, Exchange, Setup, Size
from shoal.model.parameters import Params, from_keywords, one_of, positive
from shoal.model.persistence import learner_class
from shoal.online.common.shared_loss_steps import Norm, finite_steps, implicit_steps, norm_code, shared_loss, spread

FINITE, IMPLICIT, CAPPED = 0, 1, 2
RULES = {"finite": FINITE, "implicit": IMPLICIT, "capped": CAPPED}


class Settings(NamedTuple):
    """Hyper-parameters."""

    norm: Norm
    C: float
    rule: int


class State(NamedTuple):
    """One row of weights a task."""

    weights: Annotated[FloatArray, TASK, FEATURE]
    updates: Annotated[IntArray, TASK]  # own steps that were not zero
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(entry="too")
def margin(rounds: Rounds, row: int, state: State) -> float:
    """<w, x>; tasks share no weights, so an unseen one has w = 0."""
    return dot(rounds, row, state.weights[rounds.task[row]]) if rounds.task[row] >= 0 else 0.0


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, state)


@kernel(entry="too", allocates=True)
def steps(losses: FloatArray, norms: FloatArray, settings: Settings, tau: FloatArray) -> None:
    """tau of the round, by the rule."""
    if settings.rule == IMPLICIT:
        implicit_steps(losses, norms, settings.norm, settings.C, tau)
        return
    C, largest = settings.C, norms.max()
    if settings.rule == CAPPED and largest > 0.0:  # the C with the most progress: C ||l|| - C^2 rho^2 R^2 / 2
        C = min(C, shared_loss(losses, settings.norm) / largest / spread(len(losses), settings.norm))
    finite_steps(losses, settings.norm, C, tau)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    n_tasks = len(state.weights)
    all_losses, all_norms, all_tau = np.empty(n_tasks), np.empty(n_tasks), np.empty(n_tasks)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        n, suffers = last - first, False
        losses, norms, tau = all_losses[:n], all_norms[:n], all_tau[:n]
        for row in range(first, last):
            f = margin(rounds, row, state)
            if len(decisions) > 0:
                decisions[row] = f
            losses[row - first] = max(0.0, 1.0 - rounds.y[row] * f)
            suffers |= losses[row - first] > 0.0
        if not suffers:
            continue
        for row in range(first, last):
            norms[row - first] = squared_norm(rounds, row)
        steps(losses, norms, settings, tau)
        for row in range(first, last):
            if tau[row - first] > 0.0 and norms[row - first] > 0.0:
                add(rounds, row, tau[row - first] * rounds.y[row], state.weights[rounds.task[row]])
                state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    return Settings(norm_code(p.norm, p.r), p.C, p.rule)


def allocate(setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    return State(np.zeros((n_tasks, n_features)), np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


ALGORITHM = Algorithm[State](
    parameters={"C": positive(), "rule": one_of(RULES)},
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange=Exchange(local=("counters",)),
    no_weights="a round has one loss, the norm of its tasks' losses, in which its paper weighs no row",
    chunks=Chunks(simultaneous=True),
)


@from_keywords
class SharedLoss(Classifier):
    """Tasks with weights of their own that learn under one shared loss, a norm of the round's losses.

    Every task of the round steps ``w_k <- w_k + tau_k y_k x_k`` with tau from the ball ||tau||_* <= C of the dual
    norm. Cost O(nnz) an example, O(n log n) more for a round of n tasks if they have to be sorted.

    Parameters
    ----------
    norm : {"l2", "l1", "linf", "rmax"} or float in [1, inf]
        The loss of a round, for losses l_k = [1 - y_k <w_k, x_k>]_+: their Euclidean norm, sum, maximum, or the
        sum of the `r` largest. A number p is Lp, (Σ l_k^p)^(1/p): 1, 2 and inf are "l1", "l2" and "linf".
    C : float > 0
        Size of the ball: the largest step of a task (for "l2" of all tasks together). The ball of Lp is that of Lq,
        1/p + 1/q = 1.
    rule : {"finite", "implicit", "capped"}
        "finite" steps as far as the ball lets it, tau = argmax Σ tau_k l_k, the rule of Dekel et al. for a known
        horizon; for Lp, tau_k = C (l_k/‖l‖)^(p-1). "implicit" minimises ½‖W - W_t‖² + C‖l(W)‖, which no row can
        overshoot; with "l1" this is Passive-Aggressive I on each task. "capped" is the finite rule with
        C_t = min(C, ‖l‖/(R²ρ²)), R the longest row of the round and ρ² = n, 1, 1, min(r, n), n^max(0, 2/p - 1) for
        l1, l2, linf, rmax and Lp in a round of n tasks. Every norm has all three.
    r : int >= 1
        For "rmax" only.
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
    A task that is absent from a round has no loss in it and stays. No weights are shared: an unseen task is answered
    with margin 0, the larger label. With one row a round there is nothing to weigh up, and every norm is the same.
    Regret: `shoal.theory.shared_loss_bound`. A round ends where a call ends, so other chunks are other rounds unless
    `rounds=` names them.

    Odd rows: one wrong label moves its task by at most C x; a value of 1e6 in a row that is misjudged moves its weight
    by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Dekel, Long, Singer. Online Learning of Multiple Tasks with a Shared Loss. JMLR 8, 2007.

    Examples
    --------
    >>> from shoal import SharedLoss
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> data = data.interleaved(seed=0)
    >>> for norm in ("l1", 1.5, "l2", "linf"):
    ...     decisions = SharedLoss(norm=norm, rule="implicit").test_then_train(data.X, data.y, data.task)
    ...     print(f"{norm!s:>4} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
      l1 error 0.259
     1.5 error 0.266
      l2 error 0.269
    linf error 0.269
    """

    norm: str | float = "l2"
    C: float = 1.0
    rule: str = "finite"
    r: int = 1
    classes: Any = None

    algorithm = ALGORITHM

    def baselines(self) -> dict[str, Learner]:
        """The rule for a single task: steps of C under "finite", else Passive-Aggressive I."""
        if self.rule == "finite":
            kind, options = learner_class("MultitaskPerceptron"), {"loss": "hinge", "eta": self.C}
        else:
            kind, options = learner_class("PassiveAggressive"), {"C": self.C}
        return {name: kind(relation=name, **options) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights."""
        weights = self._state("coef_").weights
        return np.asarray(weights[: len(self.tasks_), : self.n_features_in_].copy())
