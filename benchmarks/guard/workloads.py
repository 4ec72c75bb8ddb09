"""One workload for every public learner: which learner, which rows, what is measured.

An error is a share of rows (or, of real targets, the root of the mean square); a loss is logistic (or absolute). Online
learners answer each row before they learn it; batch learners learn the first half and answer the second.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

import shoal
from shoal.batch.base import BatchLearner
from shoal.learner import Learner

N_ROWS, N_TASKS, N_FEATURES = 600, 8, 30
ROUNDING = 1e-9  # an answer that is zero but for rounding is one of zero on every processor

ONLINE: dict[str, Callable[[], Learner]] = {
    "CollaborativeCW": shoal.CollaborativeCW,
    "CollaborativePA": shoal.CollaborativePA,
    "Conformal": lambda: shoal.Conformal(shoal.MultitaskRegressor(eta=0.02)),
    "OutsideForecast": lambda: shoal.OutsideForecast(shoal.MultitaskPerceptron(loss="logistic"), columns=[0]),
    "Hierarchy": lambda: shoal.Hierarchy(shoal.MultitaskPerceptron(loss="logistic")),
    "Guarded": lambda: shoal.Guarded(shoal.MultitaskPerceptron(loss="logistic")),
    "HedgedSharing": shoal.HedgedSharing,
    "HedgedSharingRegressor": shoal.HedgedSharingRegressor,
    "KernelPerceptron": lambda: shoal.KernelPerceptron(gamma=0.1),
    "LabelQuery": lambda: shoal.LabelQuery(shoal.PassiveAggressive(), b=1.0, random_state=0),
    "LocalGlobalGaussian": shoal.LocalGlobalGaussian,
    "MixedEffects": shoal.MixedEffects,
    "MixedEffectsRegressor": shoal.MixedEffectsRegressor,
    "MultiClass": lambda: shoal.MultiClass(shoal.PassiveAggressive()),
    "MultitaskPerceptron": shoal.MultitaskPerceptron,
    "MultitaskRegressor": lambda: shoal.MultitaskRegressor(eta=0.02),
    "OMTRL": shoal.OMTRL,
    "OSMTL": shoal.OSMTL,
    "OSMTLRegressor": shoal.OSMTLRegressor,
    "PNormPerceptron": shoal.PNormPerceptron,
    "PassiveAggressive": shoal.PassiveAggressive,
    "PassiveAggressiveRegressor": shoal.PassiveAggressiveRegressor,
    "ROMCO": shoal.ROMCO,
    "SchattenPerceptron": shoal.SchattenPerceptron,
    "SecondOrderPerceptron": shoal.SecondOrderPerceptron,
    "SharedLoss": shoal.SharedLoss,
    "TaskLevels": shoal.TaskLevels,
    "TaskLevelsRegressor": shoal.TaskLevelsRegressor,
}
BATCH: dict[str, Callable[[], BatchLearner]] = {
    "IndependentTasks": shoal.IndependentTasks,
    "MTFL": shoal.MTFL,
    "PooledTasks": shoal.PooledTasks,
    "RegMTL": shoal.RegMTL,
    "RegMTLRegressor": shoal.RegMTLRegressor,
    "SHAMO": lambda: shoal.SHAMO(random_state=0),
    "SMTL": shoal.SMTL,
    "SMTLRegressor": shoal.SMTLRegressor,
    "SparseMTL": lambda: shoal.SparseMTL(sigma=8.0, random_state=0),
    "SparseMTLRegressor": lambda: shoal.SparseMTLRegressor(sigma=8.0, gamma=0.1, random_state=0),
    "TraceNorm": shoal.TraceNorm,
}
# Public learner -> why it has no workload.
EXCLUDED = {
    "Periodic": "what it costs and answers is its batch learner's, which has a workload",
}


class Rows(NamedTuple):
    """A stream of related linear tasks, rounds of all tasks; a third of the entries are not zero."""

    X: sp.csr_matrix
    y: Any
    task: Any


def rows(*, regression: bool) -> Rows:
    """The same for every learner."""
    rng = np.random.default_rng(0)
    task = np.resize(np.arange(N_TASKS), N_ROWS)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 1 / 3)
    w = rng.normal(size=N_FEATURES) + 0.5 * rng.normal(size=(N_TASKS, N_FEATURES))
    target = np.einsum("ij,ij->i", X, w[task]) + 0.3 * rng.normal(size=N_ROWS)
    return Rows(sp.csr_matrix(X), target if regression else np.where(target >= 0, 1.0, -1.0), task)


def numbers(name: str) -> dict[str, float]:
    """Error and loss of a learner on its workload."""
    learner: Any = (ONLINE | BATCH)[name]()
    X, y, task = rows(regression=not is_classifier(learner))
    if name in BATCH:
        half = N_ROWS // 2
        learner.fit(X[:half], y[:half], task[:half])
        answer = learner.decision_function if is_classifier(learner) else learner.predict
        answers, y = np.asarray(answer(X[half:], task[half:]), float), y[half:]
    else:
        answers = np.asarray(learner.test_then_train(X, y, task), float)
    if is_classifier(learner):
        return {
            "error": float(np.mean((answers >= -ROUNDING) != (y > 0))),
            "loss": float(np.mean(np.logaddexp(0.0, -y * answers))),
        }
    return {"error": float(np.sqrt(np.mean((answers - y) ** 2))), "loss": float(np.mean(np.abs(answers - y)))}
