"""As it should be done: all online learners on all data sets, rows alike, the same budget for choosing parameters.

Words are log(1 + count), rows have unit norm; one pass, every row predicted before it is learned, macro-AUC. Each
learner may try 10 settings, drawn from its grid, on a held-out shuffle; one that has nothing to tune tries none.
"""

from __future__ import annotations

from shoal.evaluation.grids import GRIDS, RATES, B
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

VW_RULES = (
    *(f"-l {rate}{power}" for power in ("", " --power_t 0") for rate in (0.1, 0.5, 2, 8)), "--coin", "--ftrl",
)  # fmt: skip

ENTRANTS = (
    Entrant("HedgedSharing", "HedgedSharing"),
    Entrant("Vowpal Wabbit", "VW", {}, {"setting": VW_RULES, "crossed": (False, True)}),
    Entrant("MultitaskPerceptron, logistic", "MultitaskPerceptron", {"loss": "logistic"},
            {"relation": B, "eta": RATES, "step": ("constant", "sqrt")}),
    Entrant("MultitaskPerceptron", "MultitaskPerceptron", {}, {"relation": B}),
    Entrant("PNormPerceptron", "PNormPerceptron", {}, GRIDS["PNormPerceptron"]),
    Entrant("SchattenPerceptron", "SchattenPerceptron", {}, GRIDS["SchattenPerceptron"]),
    Entrant("PassiveAggressive", "PassiveAggressive", {}, GRIDS["PassiveAggressive"]),
    Entrant("SharedLoss", "SharedLoss", {"rule": "implicit"}, GRIDS["SharedLoss"]),
    Entrant("OMTRL", "OMTRL", {}, GRIDS["OMTRL"]),
    Entrant("CollaborativePA", "CollaborativePA", {}, GRIDS["CollaborativePA"]),
    Entrant("CollaborativeCW", "CollaborativeCW", {}, GRIDS["CollaborativeCW"]),
    Entrant("OSMTL", "OSMTL", {}, GRIDS["OSMTL"]),
    Entrant("ROMCO", "ROMCO", {}, GRIDS["ROMCO"]),
    Entrant("LocalGlobalGaussian", "LocalGlobalGaussian", {"covariance": "diagonal"},
            GRIDS["LocalGlobalGaussian"]),
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
        "Left out: KernelPerceptron and SecondOrderPerceptron, whose cost a row grows with the rows learned.",
        "Vowpal Wabbit's time includes writing and parsing text.",
    ),
)  # fmt: skip

EXPERIMENTS = (BOARD,)
