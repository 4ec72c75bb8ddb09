"""The rates B[i, j] of given tasks, for loops that touch single entries: constant relations, matrices and graphs."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal import relations
from shoal.engine.arrays import FloatArray, IntArray, for_kernels
from shoal.engine.compile import kernel
from shoal.learner import Learner
from shoal.model.parameters import Params, Reader
from shoal.relations import Constant, Factors, Given, rates_column

UNSEEN = -1  # a row's task that the model does not know; forgotten tasks have numbers below

_NONE = np.zeros(0, np.int64)
_NO_FACTORS = Factors(np.zeros((0, 0)), _NONE, _NONE, np.zeros(0), np.zeros(0), _NONE, 1.0)


class Rates(NamedTuple):
    """B for any number of tasks: (I + (b/K) 11^T)/(1 + b) (eq. 5), or that of the named tasks."""

    b: float
    b_is_n_tasks: bool
    factors: Factors
    mean: FloatArray  # (K,) B 1/K, how the named tasks' mean answers an unseen task; empty for constants


def rates_of(relation: relations.Relation) -> Rates:
    """A relation for the jitted loops."""
    if isinstance(relation, Constant):
        return Rates(relation.b, relation.b_is_n_tasks, _NO_FACTORS, np.zeros(0))
    n_tasks = len(relation.tasks)
    factors = relation.factors(unit_own_rate=False)
    if len(factors.dense):
        mean = factors.dense.mean(axis=0)
    else:
        from scipy.sparse.linalg import spsolve

        mean = spsolve(sp.csc_matrix(relation.interaction), np.full(n_tasks, 1.0 / n_tasks))
    return Rates(0.0, False, factors, for_kernels(mean))


@kernel
def shares(rates: Rates, n_tasks: int) -> tuple[float, float]:
    """a and (1 - a)/K of B = a I + (1 - a)/K 11^T."""
    n_tasks = max(n_tasks, 1)
    return constant_shares(n_tasks if rates.b_is_n_tasks else rates.b, n_tasks)


@kernel
def constant_shares(b: float, n_tasks: int) -> tuple[float, float]:
    """The same for a number b."""
    a = 1.0 / (1.0 + b)
    return a, (1.0 - a) / n_tasks


@kernel(allocates=True, inline=False)
def rates_with(rates: Rates, n_tasks: int, task: int, others: IntArray, n: int, out: FloatArray) -> float:
    """out[s] <- B[others[s], task] for the first n; the task's own rate is returned.

    An unseen task is under a constant relation one more task, with the rates to all others that they have among
    each other; under a given one it is the mean of all tasks.
    """
    if len(rates.mean) == 0:
        own, shared = shares(rates, n_tasks)
        for s in range(n):
            out[s] = own + shared if others[s] == task else shared
        return own + shared
    if task == UNSEEN:
        for s in range(n):
            out[s] = rates.mean[others[s]]
        return float(rates.mean.mean())
    if len(rates.factors.dense) > 0:
        for s in range(n):
            out[s] = rates.factors.dense[task, others[s]]
        return float(rates.factors.dense[task, task])
    column = np.empty(len(rates.mean))
    rates_column(rates.factors, task, column)
    for s in range(n):
        out[s] = column[others[s]]
    return float(column[task])


RELATION = Reader("'independent', 'pairwise', 'pooled', a number b >= 0, a graph or a matrix", relations.resolve)


def named_tasks(p: Params) -> list[Any]:
    """The tasks that a given relation names."""
    return list(p.relation.tasks) if isinstance(p.relation, Given) else []


class Related(Learner):
    """The learned attributes of a relation between tasks."""

    relation: Any

    def baselines(self) -> dict[str, Learner]:
        parameters = self.get_params(deep=False)
        return {name: type(self)(**{**parameters, "relation": name}) for name in ("independent", "pooled")}

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) the rates B = A^-1: on a mistake of task i, task j moves by B[j, i]."""
        n_tasks = len(self._known("relation_").tasks)
        relation: relations.Relation = self._setup().params.relation
        return relation.rates(max(n_tasks, 1))[:n_tasks, :n_tasks]
