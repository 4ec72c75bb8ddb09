"""What to try for each learner's hyper-parameters, where a user has said nothing: those that its paper tunes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

C: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
B: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
RATES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TENTHS: Final = tuple(round(0.1 * i, 1) for i in range(11))

GRIDS: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    "CollaborativeCW": {"pull": TENTHS, "confidence": (0.6, 0.7, 0.8, 0.9, 0.95)},
    "CollaborativePA": {"pull": TENTHS, "C": C},
    "KernelPerceptron": {"relation": B, "gamma": RATES},
    "LocalGlobalGaussian": {"lam": (0.1, 0.3, 1.0, 3.0, 10.0), "eps": (0.1, 0.3, 1.0, 3.0, 10.0)},
    "MultitaskPerceptron": {"relation": B, "loss": ("perceptron", "logistic"), "eta": RATES},
    "MultitaskRegressor": {"relation": B, "eta": (0.0001, 0.001, 0.003, *RATES[:4])},
    "OMTRL": {"divergence": ("logdet", "batch"), "eta_A": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)},
    "OSMTL": {"alpha": TENTHS, "C": (0.01, 0.1, 1.0), "lam": (0.1, 1.0, 10.0), "trigger": ("mistake", "margin")},
    "OSMTLRegressor": {
        "alpha": TENTHS,
        "C": (0.003, 0.01, 0.03, 0.1, 0.3),
        "lam": (0.1, 1.0, 10.0),
        "epsilon": (0.01, 0.1, 1.0),
    },
    "PNormPerceptron": {"relation": B, "p": (2.0, 3.0, 4.0, "auto")},
    "PassiveAggressive": {"relation": ("independent", "pooled"), "C": C},
    "PassiveAggressiveRegressor": {"relation": ("independent", "pooled"), "C": C, "epsilon": (0.01, 0.1, 1.0)},
    "ROMCO": {"eta": RATES[2:], "rho": RATES[2:], "lambda1": (1e-5, 1e-4, 1e-3), "lambda2": (1e-5, 1e-4, 1e-3)},
    "SchattenPerceptron": {"p": (1, 1.5, 2, 3, 4, 5)},
    "SecondOrderPerceptron": {"relation": B, "a": (0.1, 1.0, 10.0)},
    "SharedLoss": {"norm": ("l2", "linf"), "C": C},
}
