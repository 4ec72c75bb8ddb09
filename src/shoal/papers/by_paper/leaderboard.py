"""Our own protocol: all online learners on all data sets, the same rows, the same budget for choosing parameters.

Words are log(1 + count), rows have unit norm; one pass, every row predicted before it is learned, macro-AUC. Each
learner may try 30 settings, drawn from its grid, on a held-out shuffle; one that has nothing to tune tries none.
"""

from shoal.papers import data_sets, pictures
from shoal.papers.experiment import CONFIDENCE, OF_LABELS, TENTHS, Data, Entrant, Experiment, Metric, Tuning, decades
from shoal.papers.protocols import progressive

QUICK = 300  # rows of a quick run, which runs fourteen learners on each of them
DATA = (
    Data("landmine", data_sets.landmine, {"treatment": "unit", "constant": True}, "landmine", quick_rows=QUICK),
    Data("spam", data_sets.spam, {"treatment": "log-unit"}, "ecml2006_spam", quick_rows=QUICK),
    Data("Enron", data_sets.enron, {"treatment": "log-unit"}, "enron_spam", quick_rows=QUICK),
    Data("MHC-I", data_sets.mhc, {"treatment": "unit", "encoding": "one-hot"}, "mhc1_binding", quick_rows=QUICK),
    Data(
        "sentiment",
        data_sets.sentiment,
        {"treatment": "log-unit"},
        "sentiment16_fdu_mtl",
        quick={"pairs": False},
        quick_rows=QUICK,
    ),
    Data("jokes", data_sets.jester, {"treatment": "unit"}, "jester5k", quick_rows=QUICK),
)

VW_RULES = (*(f"-l {rate}{power}" for power in ("", " --power_t 0") for rate in (0.1, 0.5, 2, 8)), "--coin", "--ftrl")

B = (0.0, 0.5, *(2.0**i for i in range(11)))  # of Cavallanti et al.: from independent tasks to nearly one model
RATES, COSTS = decades(1e-3, 100.0, 2), decades(1e-3, 100.0, 2)  # steps, and the C of a loss
NORMS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0)
STRENGTHS, VARIANCES = decades(1e-7, 10.0, 2), decades(0.01, 100.0, 2)

ENTRANTS = (
    *OF_LABELS,
    Entrant("Vowpal Wabbit", "VW", {}, {"setting": VW_RULES, "crossed": (False, True)}),
    Entrant("MultitaskPerceptron, logistic", "MultitaskPerceptron", {"loss": "logistic"},
            {"relation": B, "eta": RATES, "step": ("constant", "sqrt")}),
    Entrant("MultitaskPerceptron", "MultitaskPerceptron", {}, {"relation": B}),
    Entrant("PNormPerceptron", "PNormPerceptron", {}, {"relation": B, "p": (*NORMS[3:10], "auto")}),
    Entrant("SchattenPerceptron", "SchattenPerceptron", {}, {"p": NORMS}),
    Entrant("PassiveAggressive", "PassiveAggressive", {}, {"relation": ("independent", "pooled"), "C": COSTS}),
    Entrant("SharedLoss", "SharedLoss", {"rule": "implicit"}, {"norm": ("l2", "linf"), "C": COSTS}),
    Entrant("OMTRL", "OMTRL", {}, {"divergence": ("logdet", "batch"), "eta_A": decades(1e-7, 100.0, 2)}),
    Entrant("CollaborativePA", "CollaborativePA", {}, {"pull": TENTHS, "C": COSTS}),
    Entrant("CollaborativeCW", "CollaborativeCW", {}, {"pull": TENTHS, "confidence": CONFIDENCE}),
    Entrant("OSMTL", "OSMTL", {},
            {"alpha": TENTHS, "C": COSTS, "lam": decades(1e-3, 1e3, 2), "trigger": ("mistake", "margin")}),
    Entrant("ROMCO", "ROMCO", {}, {"eta": RATES, "rho": RATES, "lambda1": STRENGTHS, "lambda2": STRENGTHS}),
    Entrant("LocalGlobalGaussian", "LocalGlobalGaussian", {"covariance": "diagonal"},
            {"lam": VARIANCES, "eps": VARIANCES}),
)  # fmt: skip

BOARD = Experiment(
    id="leaderboard/online",
    title="Online learners on six data sets, one pass",
    source="the library's own protocol; no paper",
    protocol="as it should be done",
    data=DATA,
    entrants=ENTRANTS,
    metrics=(
        Metric("auc", "macro-AUC", +1),
        Metric("error", "error %", -1, ".2f", scale=100),
        Metric("seconds", "time (s)", -1, ".2f"),
    ),
    measure=progressive,
    seeds=5,
    seconds=1400,
    tuning=Tuning(progressive, "auc", +1, budget=30),
    champion="HedgedSharing",
    figure=pictures.beside,
    notes=(
        "Left out: KernelPerceptron and SecondOrderPerceptron, whose cost a row grows with the rows learned.",
        "Vowpal Wabbit's time includes writing and parsing text.",
    ),
)

EXPERIMENTS = (BOARD,)
