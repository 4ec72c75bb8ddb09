"""As it should be done: all online learners on all data sets, rows alike, the same budget for choosing parameters.

Words are log(1 + count), rows have unit norm; one pass, every row answered before it is learnt, macro-AUC. Each learner
may try 10 settings, drawn from its grid, on a held-out shuffle; one that has nothing to tune tries none.
"""

from __future__ import annotations

from shoal.papers import material, pictures
from shoal.papers.experiment import Data, Entrant, Experiment, Metric, Tuning
from shoal.papers.protocols import progressive

DATA = (
    Data("landmine", material.landmine, {"treatment": "unit", "constant": True}, "landmine"),
    Data("spam", material.spam, {"treatment": "log-unit"}, "ecml2006_spam"),
    Data("Enron", material.enron, {"treatment": "log-unit"}, "enron_spam"),
    Data("MHC-I", material.mhc, {"treatment": "unit", "encoding": "one-hot"}, "mhc1_binding"),
    Data("sentiment", material.sentiment, {"treatment": "log-unit"}, "sentiment16_fdu_mtl", quick={"pairs": False}),
    Data("jokes", material.jester, {"treatment": "unit"}, "jester5k"),
)

C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
B = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TENTHS = tuple(round(0.1 * i, 1) for i in range(11))
VW_RULES = (
    *(f"-l {rate}{power}" for power in ("", " --power_t 0") for rate in (0.1, 0.5, 2, 8)), "--coin", "--ftrl",
)  # fmt: skip

ENTRANTS = (
    Entrant("HedgedSharing", "HedgedSharing"),
    Entrant("Vowpal Wabbit", "VW", {}, {"setting": VW_RULES, "crossed": (False, True)}),
    Entrant("MultitaskPerceptron, logistic", "MultitaskPerceptron", {"loss": "logistic"},
            {"relation": B, "eta": RATES, "step": ("constant", "sqrt")}),
    Entrant("MultitaskPerceptron", "MultitaskPerceptron", {}, {"relation": B}),
    Entrant("PNormPerceptron", "PNormPerceptron", {}, {"relation": B, "p": (2.0, 3.0, 4.0, "auto")}),
    Entrant("SchattenPerceptron", "SchattenPerceptron", {}, {"p": (1, 1.5, 2, 3, 4, 5)}),
    Entrant("PassiveAggressive", "PassiveAggressive", {}, {"relation": ("independent", "pooled"), "C": C}),
    Entrant("SharedLoss", "SharedLoss", {"rule": "implicit"}, {"norm": ("l2", "linf"), "C": C}),
    Entrant("OMTRL", "OMTRL", {}, {"divergence": ("logdet", "batch"), "eta_A": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}),
    Entrant("CollaborativePA", "CollaborativePA", {}, {"pull": TENTHS, "C": C}),
    Entrant("CollaborativeCW", "CollaborativeCW", {}, {"pull": TENTHS, "confidence": (0.6, 0.7, 0.8, 0.9, 0.95)}),
    Entrant("OSMTL", "OSMTL", {}, {"alpha": TENTHS, "C": (0.01, 0.1, 1.0), "lam": (0.1, 1.0, 10.0),
                                   "trigger": ("mistake", "margin")}),
    Entrant("ROMCO", "ROMCO", {}, {"eta": RATES[2:], "rho": RATES[2:], "lambda1": (1e-5, 1e-4, 1e-3),
                                   "lambda2": (1e-5, 1e-4, 1e-3)}),
    Entrant("LocalGlobalGaussian", "LocalGlobalGaussian", {"covariance": "diagonal"},
            {"lam": (0.1, 0.3, 1.0, 3.0, 10.0), "eps": (0.1, 0.3, 1.0, 3.0, 10.0)}),
)  # fmt: skip

BOARD = Experiment(
    id="leaderboard/online",
    title="Online learners on six data sets, one pass",
    source="the library's own protocol; no paper",
    protocol="as it should be done",
    data=DATA,
    entrants=ENTRANTS,
    metrics=(
        Metric("auc", "macro-AUC", +1), Metric("error", "error %", -1, ".2f", scale=100),
        Metric("seconds", "time (s)", -1, ".2f"),
    ),
    measure=progressive,
    seeds=5,
    seconds=780,
    tuning=Tuning(progressive, "auc", +1, budget=10),
    champion="HedgedSharing",
    figure=pictures.beside,
    notes=(
        "Left out: KernelPerceptron and SecondOrderPerceptron, whose cost a row grows with the rows learnt.",
        "Vowpal Wabbit's time includes writing and parsing text.",
    ),
)  # fmt: skip

EXPERIMENTS = (BOARD,)
