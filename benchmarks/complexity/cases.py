"""Every public online learner, and how its docstring says that the cost of an example grows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import shoal


class Size(NamedTuple):
    """What the cost of an example may depend on, beside the rows seen."""

    nnz: int
    tasks: int
    features: int


class Growth(NamedTuple):
    """A class of costs: its name, and the largest exponents that it allows."""

    name: str
    nnz: int
    tasks: int
    features: int


class Case(NamedTuple):
    """A learner, the cost that its docstring names, and the size from which one thing at a time varies."""

    make: Callable[[], Any]
    growth: Growth
    note: str = ""  # to the cost
    n_labels: int = 2
    base: Size = Size(nnz=30, tasks=10, features=1_000)


FLAT = Growth("O(nnz)", 1, 0, 0)
KEPT = Growth("O(s nnz)", 1, 0, 0)
ALL_TASKS = Growth("O(nnz K)", 1, 1, 0)
RELATION = Growth("O(nnz K + K²)", 1, 2, 0)
COVARIANCE = Growth("O(nnz + d²)", 1, 0, 2)

CASES = {
    "MultitaskPerceptron": Case(shoal.MultitaskPerceptron, FLAT),
    "MultitaskRegressor": Case(shoal.MultitaskRegressor, FLAT),
    "PassiveAggressive": Case(shoal.PassiveAggressive, FLAT),
    "PassiveAggressiveRegressor": Case(shoal.PassiveAggressiveRegressor, FLAT),
    "HedgedSharing": Case(shoal.HedgedSharing, FLAT),
    "HedgedSharingRegressor": Case(shoal.HedgedSharingRegressor, FLAT),
    "SharedLoss": Case(shoal.SharedLoss, FLAT, "and sorting, log K"),
    "LocalGlobalGaussian diagonal": Case(lambda: shoal.LocalGlobalGaussian(covariance="diagonal"), FLAT),
    "Conformal": Case(lambda: shoal.Conformal(shoal.PassiveAggressiveRegressor()), FLAT),
    "OutsideForecast": Case(lambda: shoal.OutsideForecast(shoal.MultitaskPerceptron(), columns=[0]), FLAT),
    "Hierarchy": Case(lambda: shoal.Hierarchy(shoal.MultitaskPerceptron()), FLAT, "twice"),
    "Guarded": Case(lambda: shoal.Guarded(shoal.MultitaskPerceptron()), FLAT, "twice"),
    "LabelQuery": Case(
        lambda: shoal.LabelQuery(shoal.PassiveAggressive(), b=1.0, random_state=0), FLAT, "and 10 to 20 us a round"
    ),
    "MultiClass": Case(lambda: shoal.MultiClass(shoal.PassiveAggressive()), FLAT, "times 3 + 1 classes", n_labels=3),
    "KernelPerceptron": Case(lambda: shoal.KernelPerceptron(budget=100), KEPT, "s = 100"),
    "SecondOrderPerceptron": Case(lambda: shoal.SecondOrderPerceptron(budget=100), KEPT, "and s², s = 100"),
    "CollaborativePA": Case(shoal.CollaborativePA, ALL_TASKS),
    "CollaborativeCW": Case(shoal.CollaborativeCW, ALL_TASKS),
    "PNormPerceptron": Case(shoal.PNormPerceptron, ALL_TASKS),
    "OSMTL": Case(shoal.OSMTL, ALL_TASKS),
    "OSMTLRegressor": Case(shoal.OSMTLRegressor, ALL_TASKS),
    "OMTRL": Case(shoal.OMTRL, RELATION),
    "SchattenPerceptron": Case(shoal.SchattenPerceptron, RELATION, "times p, ln K"),
    "ROMCO": Case(shoal.ROMCO, RELATION, "K³ a round of K rows"),
    "LocalGlobalGaussian": Case(shoal.LocalGlobalGaussian, COVARIANCE, base=Size(nnz=30, tasks=10, features=100)),
}
# Public online learner -> why its cost is not measured.
FEW = "it takes at most 511 features, and curves have up to 10,000,000"
EXCLUDED = {
    "Periodic": "it trains a batch learner anew, whose cost depends on its solver",
    "MixedEffects": FEW,
    "MixedEffectsRegressor": FEW,
    "TaskLevels": FEW,
    "TaskLevelsRegressor": FEW,
}


def learner_of(case: str) -> str:
    """The class that a case measures: what follows the name says which settings."""
    return case.split()[0]


def audit(public: set[str]) -> list[str]:
    """What is wrong with the lists above, a sentence each."""
    measured = {learner_of(case) for case in CASES}
    missing = "is neither measured nor excluded with a reason: add it to CASES in benchmarks/complexity/cases.py"
    said = [f"{name} {missing}" for name in sorted(public - measured - {*EXCLUDED})]
    said += [f"{name} is no public online learner" for name in sorted((measured | {*EXCLUDED}) - public)]
    return said + [f"{name} is measured and excluded" for name in sorted(measured & {*EXCLUDED})]
