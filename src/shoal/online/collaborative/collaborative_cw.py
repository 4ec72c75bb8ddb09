"""Collaborative online multi-task learning, confidence-weighted, CW-COL (Li, Hoi, Chang, Liu, Jain, TKDE 2014).

A global Gaussian N(g, Sg) and one per task N(u_k, S_k), covariances diagonal. A row moves the global one by a step of
soft confidence-weighted learning (SCW-I); then its task makes the same step from the geometric mean of the two,
the minimiser over q of (1 - alpha) KL(q || task) + alpha KL(q || global):

    Sp^-1 = (1 - alpha) S_k^-1 + alpha Sg^-1,   Sp^-1 mp = (1 - alpha) S_k^-1 u_k + alpha Sg^-1 g

So the pull is linear in the precisions and in precision x mean, and those are what is kept (precisions less the 1
that all begin with, so that what has learned nothing is zero).
"""

import math
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import feature_at, open_round, row_bounds
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import Algorithm, Exchange, Storage
from shoal.model.parameters import Params, between, from_keywords, positive, strictly_between
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

PRECISION, SHIFT = 0, 1  # the parts of a Gaussian: 1/variance - 1, and mean/variance


class Settings(NamedTuple):
    """Hyper-parameters."""

    C: float
    phi: float  # the normal quantile of the confidence
    pooled: bool  # only the global model learns and answers
    powers: FloatArray  # (1 - alpha)^n


@kernel(entry="too")
def margin(rounds: Rounds, row: int, settings: Settings, state: State) -> float:
    """<u_k, x>; an unseen task has the global mean."""
    first, last = row_bounds(rounds, row)
    k = -1 if settings.pooled else rounds.task[row]
    powers, common = settings.powers, state.common
    total = 0.0
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        if k >= 0:
            excess = part_at(PRECISION, j, k, powers, state)
            shift = part_at(SHIFT, j, k, powers, state)
        else:
            excess, shift = common[PRECISION, j], common[SHIFT, j]
        total += rounds.values[p] * shift / (1.0 + excess)
    return total


@kernel(entry="too")
def scw_size(
    rounds: Rounds, row: int, excess: FloatArray, shift: FloatArray, settings: Settings
) -> tuple[float, float]:
    """al sqrt(v) and sqrt(v), v = x' S x, of the least step that makes y <u, x> >= phi sqrt(v), as far as C allows.

    Zero for no step. The row is taken as divided by sqrt(v), so that no value of x overflows.
    """
    first, last = row_bounds(rounds, row)
    m, v = 0.0, 0.0
    for p in range(first, last):
        j, x = feature_at(rounds, row, p), rounds.values[p]
        m += x * shift[j] / (1.0 + excess[j])
        v += x * x / (1.0 + excess[j])
    if v == 0.0:
        return 0.0, 0.0
    root = math.sqrt(v)
    m *= rounds.y[row] / root
    if m >= settings.phi * (1.0 - ROUNDING):
        return 0.0, root
    square = settings.phi * settings.phi
    xi = 1.0 + square
    size = (settings.phi * math.sqrt(0.25 * m * m * square + xi) - m * (1.0 + 0.5 * square)) / xi
    return max(0.0, min(size, settings.C * root)), root


@kernel(entry="too")
def scw_move(
    rounds: Rounds, row: int, size: float, root: float, excess: FloatArray, shift: FloatArray, phi: float
) -> None:
    """u <- u + al y S x,  S <- S - be (S x)^2 on the diagonal."""
    first, last = row_bounds(rounds, row)
    size_phi = size * phi
    u = 2.0 / (size_phi + math.sqrt(size_phi * size_phi + 4.0))  # sqrt(u / v), without its cancellation
    for p in range(first, last):
        j, x = feature_at(rounds, row, p), rounds.values[p] / root
        precision = 1.0 + excess[j]
        mean = (shift[j] + size * rounds.y[row] * x) / precision
        share = min(x * x / precision, 1.0)  # x_j^2 S_j / v
        excess[j] += precision * size_phi * share / (u + size_phi * (1.0 - share))
        shift[j] = (1.0 + excess[j]) * mean


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, settings, state)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    powers, common, own = settings.powers, state.common, state.own
    pending = may_be_pending(rounds, powers, state.pulls)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, settings, state)
        for row in range(first, last):
            k = rounds.task[row]
            excess, shift = common[PRECISION], common[SHIFT]
            size, root = scw_size(rounds, row, excess, shift, settings)
            if size > 0.0:
                if pending:
                    apply_pending(rounds, row, powers, state)
                scw_move(rounds, row, size, root, excess, shift, settings.phi)
            if not settings.pooled:
                pull(rounds, row, k, powers, state)
                own_excess, own_shift = own[PRECISION, :, k], own[SHIFT, :, k]
                size, root = scw_size(rounds, row, own_excess, own_shift, settings)
                if size > 0.0:
                    scw_move(rounds, row, size, root, own_excess, own_shift, settings.phi)
            if size > 0.0:
                state.updates[k] += 1
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    return Settings(p.C, NormalDist().inv_cdf(p.confidence), False, powers_of(1.0 - p.pull))


def only_global(p: Params) -> Settings:
    return settings(p)._replace(pooled=True)


ALGORITHM = Algorithm[State](
    parameters={"pull": between(0, 1), "C": positive(infinite=True), "confidence": strictly_between(0.5, 1)},
    settings=settings,
    allocate=partial(allocate, 2),
    learn=learn,
    decide=decide,
    exchange=Exchange(mean=("common",), local=("counters",), settle=settle),
    no_weights="a step makes it as sure of a row as `confidence` says, and its paper weighs no row",
    retune=retune,
    storage=Storage(check=check),
)


@from_keywords
class CollaborativeCW(Classifier):
    """CW-COL: a Gaussian over the weights of each task, begun anew at every row between its own past and a global one.

    On every row the global Gaussian N(g, Sg) makes a step of SCW-I, then the row's task makes one from the prior
    ``Sp⁻¹ = (1 - pull) S_k⁻¹ + pull Sg⁻¹``, ``mp = Sp ((1 - pull) S_k⁻¹ u_k + pull Sg⁻¹ g)``:
    ``u = mp + al y Sp x``, ``S = Sp - be (Sp x)²``, al ≤ C. All covariances are diagonal and begin with 1. Cost O(nnz)
    to predict; to learn, O(d) for a dense row (nnz = d) and O(nnz K) for a sparse one whatever d is.

    Parameters
    ----------
    pull : float in [0, 1]
        Pull to the global model, e2/(e1 + e2); 0 is SCW-I per task.
    C : float > 0
        Bound on the step al; infinity is confidence-weighted learning without softness.
    confidence : float, 0.5 < confidence < 1
        Probability with which a row is to be on its right side after the step.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights, the means u_k
    coef_shared_ : (n_features,) the global mean g
    covariance_ : (n_tasks, n_features) the diagonals of S_k
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (steps of the tasks' own models), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    A task begins with N(0, I); an unseen one is answered by the global mean.

    Odd rows: one wrong label moves the means as far as their variance allows, which is little after some hundred rows;
    a value of 1e6 takes the variance from its feature, whose weight hardly moves from then on.

    References
    ----------
    Li, Hoi, Chang, Liu, Jain. Collaborative Online Multitask Learning. IEEE TKDE 26(8), 2014. Wang, Zhao, Hoi. Exact
    Soft Confidence-Weighted Learning. ICML 2012: Proposition 1.

    Examples
    --------
    >>> from shoal import CollaborativeCW
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for pull in (0.0, 0.5):
    ...     learner = CollaborativeCW(pull=pull)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"pull {pull} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    pull 0.0 error 0.254
    pull 0.5 error 0.133
    """

    pull: float = 0.5
    C: float = 1.0
    confidence: float = 0.9
    classes: Any = None

    algorithm = ALGORITHM

    def baselines(self) -> dict[str, Learner]:
        alone = CollaborativeCW(pull=0.0, C=self.C, confidence=self.confidence)
        return {"independent": alone, "pooled": _GlobalCW(C=self.C, confidence=self.confidence)}

    def _gaussians(self, name: str) -> FloatArray:
        """(2, n_tasks, n_features) natural parameters of the tasks that exist."""
        state, settings = self._state(name), self._setup().settings
        parts = with_pulls(settings.powers, state)[:, : self.n_features_in_, : len(self.tasks_)]
        if settings.pooled:
            parts = np.broadcast_to(state.common[:, : self.n_features_in_, None], parts.shape)
        return np.ascontiguousarray(parts.transpose(0, 2, 1))

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) the means u_k."""
        excess, shift = self._gaussians("coef_")
        return np.asarray(shift / (1.0 + excess))

    @property
    def covariance_(self) -> FloatArray:
        """(n_tasks, n_features) the diagonals of S_k: how unsure each weight is."""
        return np.asarray(1.0 / (1.0 + self._gaussians("covariance_")[PRECISION]))

    @property
    def coef_shared_(self) -> FloatArray:
        """(n_features,) the global mean g."""
        excess, shift = self._state("coef_shared_").common[:, : self.n_features_in_]
        return np.asarray(shift / (1.0 + excess))


class _GlobalCW(CollaborativeCW):
    """The global Gaussian alone, as the pooled baseline."""

    algorithm = ALGORITHM._replace(settings=only_global)
