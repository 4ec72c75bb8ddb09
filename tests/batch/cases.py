"""Every public batch learner in several settings: the table on which the generic suite runs.

A new one enters here; `test_contract.py::test_every_public_estimator_is_in_the_table` fails until it does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier
from tests.streams import Stream, draw

from shoal import (
    MTFL,
    SHAMO,
    SMTL,
    IndependentTasks,
    PooledTasks,
    RegMTL,
    RegMTLRegressor,
    SMTLRegressor,
    SparseMTL,
    SparseMTLRegressor,
    TraceNorm,
)
from shoal.batch.base import BatchLearner
from shoal.model import persistence

BATCH: dict[str, Callable[[], BatchLearner]] = {
    "IndependentTasks": IndependentTasks,
    "IndependentTasks-logistic": lambda: IndependentTasks(estimator=LogisticRegression()),
    "IndependentTasks-tree": lambda: IndependentTasks(estimator=DecisionTreeClassifier(random_state=0)),
    "IndependentTasks-ridge": lambda: IndependentTasks(estimator=Ridge()),
    "MTFL": MTFL,
    "MTFL-squared": lambda: MTFL(loss="squared", gamma=0.1),
    "MTFL-l21": lambda: MTFL(penalty="l21", loss="squared_hinge"),
    "MTFL-alternating": lambda: MTFL(solver="alternating", tol=1e-4),
    "PooledTasks": PooledTasks,
    "PooledTasks-ridge": lambda: PooledTasks(estimator=Ridge()),
    "RegMTL": RegMTL,
    "RegMTL-rbf": lambda: RegMTL(kernel="rbf", gamma=0.1),
    "RegMTL-newton-rbf": lambda: RegMTL(kernel="rbf", gamma=0.1, loss="squared_hinge"),
    "RegMTLRegressor": RegMTLRegressor,
    "RegMTLRegressor-rbf-squared": lambda: RegMTLRegressor(kernel="rbf", gamma=0.1, loss="squared"),
    "SHAMO": lambda: SHAMO(random_state=0),
    "SMTL": SMTL,
    "SMTL-threshold": lambda: SMTL(attention="threshold"),
    "SMTLRegressor": SMTLRegressor,
    "SparseMTL": lambda: SparseMTL(sigma=3.0, n_candidates=100),
    "SparseMTL-few": lambda: SparseMTL(sigma=3.0, n_common=10, n_candidates=7, random_state=0),
    "SparseMTL-task": lambda: SparseMTL(sigma=3.0, gamma=0.1, sharing="task", n_candidates=100),
    "SparseMTLRegressor": lambda: SparseMTLRegressor(sigma=3.0, gamma=0.1, n_candidates=100),
    "SparseMTLRegressor-common": lambda: SparseMTLRegressor(sigma=3.0, sharing="common", n_candidates=100),
    "SparseMTLRegressor-few": lambda: SparseMTLRegressor(sigma=3.0, n_common=20, n_candidates=7, random_state=0),
    "TraceNorm": TraceNorm,
    "TraceNorm-squared": lambda: TraceNorm(loss="squared"),
}

REGRESSORS = [
    "IndependentTasks-ridge",
    "MTFL-squared",
    "PooledTasks-ridge",
    "RegMTLRegressor",
    "RegMTLRegressor-rbf-squared",
    "SMTLRegressor",
    "SparseMTLRegressor",
    "SparseMTLRegressor-common",
    "SparseMTLRegressor-few",
    "TraceNorm-squared",
]
CLASSIFIERS = [name for name in BATCH if name not in REGRESSORS]
# They hold an estimator, so they cannot be saved.
AROUND = ["IndependentTasks-logistic", "IndependentTasks-tree", "IndependentTasks-ridge", "PooledTasks-ridge"]
# What a learner scores at least on 100 rows after 200: R^2, or accuracy.
LEAST_SCORE = {
    **dict.fromkeys(CLASSIFIERS, 0.7),
    **dict.fromkeys(REGRESSORS, 0.4),
    "IndependentTasks-tree": 0.55,
}


def rows_for(name: str, seed: int = 0, **options: Any) -> Stream:
    """Rows whose targets fit the learner."""
    return draw(seed, **{"n_rows": 60, "regression": name in REGRESSORS, **options})


def fitted(name: str, seed: int = 0, **options: Any) -> BatchLearner:
    """A learner of one's own that is fitted; it is fitted once and copied."""
    return copy.deepcopy(_fitted(name, seed, **options))


@cache
def _fitted(name: str, seed: int, **options: Any) -> BatchLearner:
    rows = rows_for(name, seed, **options)
    return BATCH[name]().fit(rows.X, rows.y, rows.task)


def values(learner: BatchLearner, X: Any, task: Any) -> np.ndarray:
    """Decision values, or a regressor's predictions."""
    return (learner.decision_function if hasattr(learner, "decision_function") else learner.predict)(X, task)


def saved(learner: BatchLearner) -> bytes:
    """What `save` writes, everything a model is: two models are equal, bit for bit, if these are."""
    return persistence.as_bytes(*learner._content())
