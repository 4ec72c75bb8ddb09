"""Every public learner in several settings: the table on which the generic suite runs.

A new learner enters here; `test_contract.py::test_every_public_learner_is_in_the_table` fails until it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import settings
from tests.streams import Stream, draw

from shoal import (
    OMTRL,
    OSMTL,
    ROMCO,
    CollaborativeCW,
    CollaborativePA,
    Conformal,
    Guarded,
    HedgedSharing,
    HedgedSharingRegressor,
    Hierarchy,
    KernelPerceptron,
    LabelQuery,
    Learner,
    LocalGlobalGaussian,
    MixedEffects,
    MixedEffectsRegressor,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    OSMTLRegressor,
    OutsideForecast,
    PassiveAggressive,
    PassiveAggressiveRegressor,
    PNormPerceptron,
    SchattenPerceptron,
    SecondOrderPerceptron,
    SharedLoss,
    TaskLevels,
    TaskLevelsRegressor,
)
from shoal.model import persistence
from shoal.model.algorithm import Size
from shoal.model.state import named_leaves

K = 5
EDGES = [(0, 1), (1, 2), (0, 3), (3, 4)]
MATRIX = 2.0 * np.eye(K) - 0.2
ATTENTION = np.where(np.arange(K) <= np.arange(K)[:, None], 1.0, 0.0) / np.arange(1, K + 1)[:, None]  # to those before

LEARNERS: dict[str, Callable[[], Learner]] = {
    "CollaborativeCW": CollaborativeCW,
    "CollaborativeCW-hard": lambda: CollaborativeCW(pull=0.2, C=float("inf"), confidence=0.7),
    "CollaborativePA": CollaborativePA,
    "CollaborativePA-passive": lambda: CollaborativePA(pull=0.8, C=0.3, passive=True),
    "CollaborativePA-mix": lambda: CollaborativePA(variant="mix"),
    "Conformal": lambda: Conformal(PassiveAggressiveRegressor()),
    "Conformal-labels": lambda: Conformal(
        MultitaskPerceptron(relation="independent", loss="logistic"), coverage=0.8, least_step=0.02
    ),
    "Guarded": lambda: Guarded(MultitaskPerceptron(relation="pooled", loss="hinge")),
    "Guarded-numbers": lambda: Guarded(PassiveAggressiveRegressor(relation="pooled"), prior=0.3, share=0.01),
    "HedgedSharing": HedgedSharing,
    "HedgedSharing-independent": lambda: HedgedSharing(relation="independent", interactions=False, dtype="float64"),
    "HedgedSharing-pooled": lambda: HedgedSharing(relation="pooled"),
    "HedgedSharingRegressor": HedgedSharingRegressor,
    "HedgedSharingRegressor-median": lambda: HedgedSharingRegressor(target="median", interactions=False),
    "Hierarchy": lambda: Hierarchy(MultitaskPerceptron(loss="logistic")),
    "Hierarchy-rounds": lambda: Hierarchy(OSMTL(trigger="margin")),
    "Hierarchy-numbers": lambda: Hierarchy(PassiveAggressiveRegressor()),
    "KernelPerceptron": KernelPerceptron,
    "KernelPerceptron-linear-budget": lambda: KernelPerceptron(kernel="linear", relation=2.0, budget=7),
    "KernelPerceptron-independent": lambda: KernelPerceptron(relation="independent", gamma=0.1),
    "KernelPerceptron-graph": lambda: KernelPerceptron(relation=EDGES),
    "LabelQuery": lambda: LabelQuery(PassiveAggressive(), budget=0.5, random_state=0),
    "LabelQuery-fixed": lambda: LabelQuery(OSMTL(), rule="fixed", budget=0.7, random_state=0),
    "LabelQuery-peers": lambda: LabelQuery(OSMTL(), rule="peers", budget=0.6, budget_of="task", random_state=0),
    "LabelQuery-variance": lambda: LabelQuery(LocalGlobalGaussian(), rule="variance", b=1.0, random_state=0),
    "LocalGlobalGaussian": LocalGlobalGaussian,
    "LocalGlobalGaussian-diagonal": lambda: LocalGlobalGaussian(loss="hinge", covariance="diagonal"),
    "LocalGlobalGaussian-rank": lambda: LocalGlobalGaussian(covariance=3, update="all"),
    "MixedEffects": MixedEffects,
    "MixedEffects-fixed": lambda: MixedEffects(covariance=0.5, memory=0.005),
    "MixedEffects-pooled": lambda: MixedEffects(covariance=0.0),
    "MixedEffectsRegressor": MixedEffectsRegressor,
    "MixedEffectsRegressor-independent": lambda: MixedEffectsRegressor(covariance=float("inf")),
    "MultiClass": lambda: MultiClass(PassiveAggressive()),
    "MultiClass-OSMTL": lambda: MultiClass(OSMTL()),
    "MultitaskPerceptron": MultitaskPerceptron,
    "MultitaskPerceptron-independent": lambda: MultitaskPerceptron(relation="independent"),
    "MultitaskPerceptron-pooled-hinge": lambda: MultitaskPerceptron(relation="pooled", loss="hinge"),
    "MultitaskPerceptron-b-logistic": lambda: MultitaskPerceptron(relation=3.0, loss="logistic", step="sqrt"),
    "MultitaskPerceptron-squared-hinge": lambda: MultitaskPerceptron(loss="squared_hinge", eta=0.05),
    "MultitaskPerceptron-graph": lambda: MultitaskPerceptron(relation=EDGES),
    "MultitaskPerceptron-matrix": lambda: MultitaskPerceptron(relation=MATRIX, loss="logistic"),
    "MultitaskPerceptron-auto": lambda: MultitaskPerceptron(relation="auto", eta="auto", loss="logistic"),
    "MultitaskRegressor": lambda: MultitaskRegressor(eta=0.05),
    "MultitaskRegressor-epsilon": lambda: MultitaskRegressor(relation=2, loss="epsilon_insensitive", step="sqrt"),
    "MultitaskRegressor-graph": lambda: MultitaskRegressor(relation=EDGES, eta=0.05),
    "MultitaskRegressor-auto": lambda: MultitaskRegressor(relation="auto", step="sqrt"),
    "MultitaskRegressor-quantile": lambda: MultitaskRegressor(relation=2, loss="quantile", quantile=0.7),
    "OMTRL": OMTRL,
    "OMTRL-von-neumann": lambda: OMTRL(divergence="von-neumann", eta_A=1e-4, warmup=10),
    "OMTRL-covariance": lambda: OMTRL(divergence="covariance", warmup=10),
    "OMTRL-batch": lambda: OMTRL(divergence="batch"),
    "OMTRL-batch-literal": lambda: OMTRL(divergence="batch", normalize=None, warmup=10),
    "OSMTL": OSMTL,
    "OSMTL-margin-follow": lambda: OSMTL(trigger="margin", absent="follow", C=0.3),
    "OSMTL-threshold": lambda: OSMTL(attention="threshold", lam=1.5, memory=True),
    "OSMTL-auto": lambda: OSMTL(alpha="auto", C="auto"),
    "OSMTL-given": lambda: OSMTL(alpha=0.2, attention=ATTENTION),
    "OSMTL-frozen": lambda: OSMTL(alpha=0.2, lam=float("inf")),
    "OSMTLRegressor": OSMTLRegressor,
    "OSMTLRegressor-follow": lambda: OSMTLRegressor(attention="threshold", lam=3.0, absent="follow", epsilon=0.3),
    "PNormPerceptron": PNormPerceptron,
    "PNormPerceptron-b-sqrt": lambda: PNormPerceptron(relation=2.0, p=3, variant="sqrt"),
    "PNormPerceptron-graph": lambda: PNormPerceptron(relation=EDGES, p=4),
    "PassiveAggressive": PassiveAggressive,
    "PassiveAggressive-PA": lambda: PassiveAggressive(variant="PA"),
    "PassiveAggressive-pooled": lambda: PassiveAggressive(variant="PA-II", relation="pooled"),
    "PassiveAggressiveRegressor": PassiveAggressiveRegressor,
    "PassiveAggressiveRegressor-pooled": lambda: PassiveAggressiveRegressor(variant="PA", relation="pooled"),
    "ROMCO": ROMCO,
    "ROMCO-low-rank": lambda: ROMCO(eta=0.3, lambda1=0.5, lambda2=0.5),
    "ROMCO-logdet-sqrt": lambda: ROMCO(penalty="logdet", eta=1.0, trigger="mistake", step="sqrt"),
    "SecondOrderPerceptron": SecondOrderPerceptron,
    "SecondOrderPerceptron-rbf-budget": lambda: SecondOrderPerceptron(kernel="rbf", gamma=0.2, a=0.5, budget=7),
    "SecondOrderPerceptron-independent": lambda: SecondOrderPerceptron(relation="independent"),
    "SecondOrderPerceptron-matrix": lambda: SecondOrderPerceptron(relation=MATRIX),
    "SecondOrderPerceptron-primal": lambda: SecondOrderPerceptron(form="primal", a=2.0),
    "SecondOrderPerceptron-primal-graph": lambda: SecondOrderPerceptron(form="primal", relation=EDGES),
    "SecondOrderPerceptron-primal-pooled": lambda: SecondOrderPerceptron(form="primal", relation="pooled"),
    "SchattenPerceptron": SchattenPerceptron,
    "SchattenPerceptron-rbf": lambda: SchattenPerceptron(p=3, kernel="rbf", gamma=0.2),
    "SchattenPerceptron-shared": lambda: SchattenPerceptron(p=2.5, shared_loss=3.0, C=0.5),
    "OutsideForecast": lambda: OutsideForecast(MultitaskPerceptron(loss="logistic"), columns=[1]),
    "OutsideForecast-numbers": lambda: OutsideForecast(PassiveAggressiveRegressor(), columns=[2, 0]),
    "SharedLoss": SharedLoss,
    "SharedLoss-linf-implicit": lambda: SharedLoss(norm="linf", rule="implicit"),
    "SharedLoss-rmax-capped": lambda: SharedLoss(norm="rmax", r=2, rule="capped"),
    "TaskLevels": TaskLevels,
    "TaskLevelsRegressor": TaskLevelsRegressor,
}


# The relation names tasks 0..4: no other can come.
NAME_THEIR_TASKS = {
    "KernelPerceptron-graph",
    "MultitaskPerceptron-graph",
    "MultitaskPerceptron-matrix",
    "MultitaskRegressor-graph",
    "OSMTL-given",
    "PNormPerceptron-graph",
    "SecondOrderPerceptron-matrix",
    "SecondOrderPerceptron-primal-graph",
}
REGRESSORS = {
    "Conformal",
    "Guarded-numbers",
    "HedgedSharingRegressor",
    "HedgedSharingRegressor-median",
    "Hierarchy-numbers",
    "MixedEffectsRegressor",
    "MixedEffectsRegressor-independent",
    "MultitaskRegressor",
    "MultitaskRegressor-epsilon",
    "MultitaskRegressor-graph",
    "MultitaskRegressor-quantile",
    "MultitaskRegressor-auto",
    "OSMTLRegressor",
    "OSMTLRegressor-follow",
    "OutsideForecast-numbers",
    "PassiveAggressiveRegressor",
    "PassiveAggressiveRegressor-pooled",
    "TaskLevelsRegressor",
}
OPEN = [name for name in LEARNERS if name not in NAME_THEIR_TASKS]
CLASSIFIERS = [name for name in LEARNERS if name not in REGRESSORS]

# Of each of a learner's settings, three or so, Hypothesis draws a third as many examples as elsewhere.
FEWER_EXAMPLES = settings(max_examples=settings().max_examples // 3)

# The most tasks of a stream, where 500 are too many: the primal form holds (K d)^2 numbers.
MOST_TASKS = {
    **dict.fromkeys(NAME_THEIR_TASKS, K),
    "SecondOrderPerceptron-primal": 50,
    "SecondOrderPerceptron-primal-pooled": 50,
}


def stream_for(name: str, seed: int = 0, **options: Any) -> Stream:
    """A stream whose targets fit the learner."""
    return draw(seed, **{"K": K, "n_rows": 60, "regression": name in REGRESSORS, **options})


def taught(name: str, seed: int = 0, **options: Any) -> Learner:
    """A learner that has seen a stream."""
    stream = stream_for(name, seed, **options)
    return LEARNERS[name]().partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)


def refuses_weights(learner: Any) -> bool:
    """Has it no meaning for `sample_weight`? Batch learners say so themselves."""
    return bool((learner.new_core() if isinstance(learner, Learner) else learner).no_weights)


def as_dict(x: np.ndarray) -> dict[str, float]:
    """A row as a dict of its features that are not 0."""
    return {f"f{j}": float(v) for j, v in enumerate(x) if v}


def saved(learner: Learner) -> bytes:
    """What `save` writes, everything a model is: two models are equal, bit for bit, if these are."""
    return persistence.as_bytes(*learner._content())


def learned(learner: Learner) -> dict[str, bytes]:
    """What was learned, whatever the columns and tasks are called."""
    model: Any = learner._model
    packed = model.core.pack(Size(len(model.tasks), model.features.count))
    return {name: array.tobytes() for name, array in named_leaves(packed).items()}


def values(learner: Learner, X: Any, task: Any) -> np.ndarray:
    """Decision values, or a regressor's predictions."""
    return np.asarray(
        (learner.decision_function if hasattr(learner, "decision_function") else learner.predict)(X, task)
    )


def value_one(learner: Learner, x: Any, task: Any) -> Any:
    """The decision value of one row, several for several classes; or a regressor's prediction."""
    return (learner.decision_one if hasattr(learner, "decision_one") else learner.predict_one)(x, task)


def weights(learner: Learner) -> np.ndarray:
    """(n_tasks, n_features) `coef_`, or for learners that are not linear their answers to the unit vectors."""
    if hasattr(learner, "coef_"):
        coef: np.ndarray = learner.coef_
        return coef
    units = np.eye(learner.n_features_in_)
    answers = []
    for task in learner.tasks_:
        ids = np.empty(len(units), object)
        ids[:] = [task] * len(units)
        answers.append(values(learner, units, None if task is None else ids))
    return np.array(answers).reshape(len(learner.tasks_), len(units))
