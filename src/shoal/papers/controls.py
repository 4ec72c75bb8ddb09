"""What the papers did not run, and a reader asks for: each gain beside the same learner without its cause."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.related_tasks import make_related_tasks
from shoal.papers import cavallanti, osmtl, pictures, protocols, romco, sparse_mtl, yang_li
from shoal.papers.batch_protocols import simulated
from shoal.papers.defaults import OF_LABELS, OF_NUMBERS
from shoal.papers.experiment import Data, Entrant, Experiment, Metric, Tuning
from shoal.papers.grids import QUARTERS, TENTHS, decades

SMALL = (0.001, 0.01)  # C, so small that every step of Passive-Aggressive is C: a classifier by class means

# ---- Murugesan et al.: attention that does not learn, Passive-Aggressive with small C, plain SGD ---------------------

_PA = {"PA-ONE": "pooled", "PA-ITL": "independent"}
OSMTL = Experiment(
    id="osmtl/controls",
    title="Controls of Table 1: attention that stays uniform, PA with a small C, SGD",
    source=f"controls of {osmtl.PAPER}, Table 1",
    protocol="as published",
    data=osmtl.ONLINE.data[:3],
    entrants=(
        *(entrant for entrant in osmtl.ENTRANTS if entrant.name.startswith("OSMTL")),
        Entrant("uniform attention", "OSMTL", {"lam": math.inf}, {"alpha": TENTHS, "C": QUARTERS}),
        *(
            Entrant(f"{name}, C = {C:g}", "PassiveAggressive", {"relation": relation, "C": C},
                    untuned="its C is what is shown")
            for name, relation in _PA.items()
            for C in SMALL
        ),
        Entrant("FOML, margin trigger, C = 1", "OSMTL", {"lam": math.inf, "trigger": "margin", "C": 1.0}, {},
                osmtl.FIXED, untuned="its C is what is shown"),
        *(
            Entrant(f"{relation}, hinge SGD", "MultitaskPerceptron", {"relation": relation, "loss": "hinge"},
                    {"eta": QUARTERS})
            for relation in ("independent", "pooled")
        ),
        *OF_LABELS,
    ),
    metrics=osmtl.METRICS[:2],
    measure=protocols.held_out,
    seeds=30,
    seconds=200,
    quick=osmtl.ONLINE.quick,
    tuning=osmtl.ONLINE.tuning,
    notes=(
        "Uniform attention is OSMTL with lambda = infinity: alpha and C are tuned like OSMTL's, only the learning of "
        "the attention is taken away. FOML has the same attention with alpha fixed at 1/(K + 1).",
    ),
)  # fmt: skip

# ---- Yang, Zhao, Gao: steps and C tuned alike ------------------------------------------------------------------------

RATES = decades(1e-4, 100.0, 8)
SPREADS = (0.0, 0.5, *(2.0**i for i in range(9)))  # b of Cavallanti et al.
_ROMCO = tuple(entrant for entrant in romco.ENTRANTS if entrant.name.startswith("ROMCO"))
_DATA = (romco.SPAM, romco.MHC, romco.MOVIES)
ROMCO = replace(
    romco.TABLE_2,
    id="romco/controls",
    title="Controls of Tables II, IV and V: one weight matrix, its step tuned",
    source=f"controls of {romco.PAPER}, Tables II, IV and V",
    data=_DATA,
    entrants=(
        *_ROMCO,
        Entrant("PA-Unique, C tuned", "PassiveAggressive", {"relation": "independent"}, {"C": QUARTERS}),
        Entrant("PA-Global, C tuned", "PassiveAggressive", {"relation": "pooled"}, {"C": QUARTERS}),
        Entrant("OMTL, C tuned", "SharedLoss", {"norm": "l2", "rule": "implicit"}, {"C": QUARTERS}),
        Entrant("independent, hinge SGD", "MultitaskPerceptron", {"relation": "independent", "loss": "hinge"},
                {"eta": RATES}),
        Entrant("pooled, hinge SGD", "MultitaskPerceptron", {"relation": "pooled", "loss": "hinge"}, {"eta": RATES}),
        Entrant("b, hinge SGD", "MultitaskPerceptron", {"loss": "hinge"}, {"relation": SPREADS, "eta": RATES}),
        *OF_LABELS,
    ),
    metrics=(romco.ERROR,),
    published={},
    champion="",
    seconds=260,
    notes=(
        "Hinge SGD has ROMCO's loss and its trigger, and one weight matrix in place of two; b is the interaction of "
        "Cavallanti et al. Table II has PA with C = 1, as its paper.",
    ),
)  # fmt: skip


def ranks(data: Dataset, learner: Any, seed: int) -> dict[str, Any]:
    """After one pass: the rank of the common part, in per cent of the most it could be, and the personal tasks."""
    numbers = protocols.progressive(data, learner, seed)
    common, own = np.asarray(learner.coef_low_rank_), np.asarray(learner.coef_task_)
    most = min(common.shape)
    return {
        "rank": 100.0 * float(np.linalg.matrix_rank(common)) / most if common.any() else 0.0,
        "personal": 100.0 * float(np.mean(np.abs(own).max(axis=1) > 0)), "error": numbers["error"],
    }  # fmt: skip


STRUCTURE = replace(
    ROMCO,
    id="romco/structure",
    title="The structure that ROMCO finds: rank of the common part, tasks with a personal part",
    source=f"controls of {romco.PAPER}, section 6",
    entrants=_ROMCO,
    metrics=(
        Metric("rank", "rank of U, % of full", 0, ".0f"),
        Metric("personal", "tasks with a personal part %", 0, ".0f"),
        romco.ERROR,
    ),
    measure=ranks,
    options={},
    seeds=5,
    seconds=20,
    shuffles=False,
    figure=None,
    notes=("At the settings chosen for the tables.",),
)

# ---- Srijith, Shevade: sizes found by the stop rule, and error against size ------------------------------------------

FOUND = replace(
    sparse_mtl.CLASSIFICATION,
    id="sparse_mtl/found",
    title="How many vectors the stop rule of SparseMTL finds",
    source=f"controls of {sparse_mtl.PAPER}, Table 1",
    entrants=(
        Entrant("SparseMTL, sizes found", "SparseMTL",
                {"sigma": 4.0, "gamma": 0.1, "lam": 0.1, "tol": 3e-4, "n_common": 96, "n_task": 96}),
    ),
    metrics=(Metric("error", "error %", -1, ".2f", scale=100), Metric("common", "common vectors", 0, ".1f"),
             Metric("own", "own vectors a task", 0, ".1f"), Metric("kept", "vectors in all", 0, ".0f")),
    published={
        ("SparseMTL, sizes found", data, name): (float(size), None)
        for data, sizes in sparse_mtl.SIZES.items()
        for name, size in zip(("common", "own"), sizes, strict=True)
    },
    tuning=None,
    figure=None,
    champion="",
    seeds=15,
    seconds=60,
    shuffles=False,
    notes=("The relative decrease at which the stop rule stops is not printed; here 3e-4.",),
)  # fmt: skip

STEPS = ((2, 2), (4, 4), (9, 5), (18, 10), (18, 42))  # common, and of a task's own
CURVE = replace(
    FOUND,
    id="sparse_mtl/sizes",
    title="Error against the number of basis vectors, per prediction and kept",
    entrants=tuple(
        Entrant(f"{common} + {own}", "SparseMTL",
                {"sigma": 4.0, "gamma": 0.01, "lam": 0.03, "tol": 0.0, "n_common": common, "n_task": own})
        for common, own in STEPS
    ),
    metrics=(*FOUND.metrics[:1], Metric("vectors", "vectors a prediction", -1, ".0f"), FOUND.metrics[-1]),
    published={},
    measure=simulated,
    seeds=5,
    seconds=90,
    notes=("Sizes are given: so many common vectors and so many of each task's own.",),
)  # fmt: skip

ONE_PASS = replace(
    sparse_mtl.REGRESSION,
    id="sparse_mtl/one-pass",
    title="One pass over School: the default, independent and pooled SGD with the squared loss",
    source=f"controls of {sparse_mtl.PAPER}, Table 2",
    entrants=(
        *(
            Entrant(f"{relation}, squared SGD", "MultitaskRegressor", {"relation": relation},
                    {"eta": decades(1e-5, 1.0, 4)})
            for relation in ("independent", "pooled")
        ),
        *OF_NUMBERS,
    ),
    metrics=sparse_mtl.REGRESSION.metrics[:2],
    published={},
    champion="",
    figure=None,
    seconds=60,
    notes=("Each learns the training rows once, in order; the batch learners of Table 2 solve for their minimum.",),
)  # fmt: skip

# ---- Cavallanti et al.: one model for all, and the default ----------------------------------------------------------

_PERCEPTRONS = (
    *map(cavallanti.by_b, (0, 8)), cavallanti.by_p(4),
    Entrant("pooled", "MultitaskPerceptron", {"relation": "pooled"}),
)  # fmt: skip
D1_TO_D8 = replace(
    cavallanti.FIGURE_5,
    id="cavallanti/controls",
    title="Controls of Figures 5 and 6: one Perceptron for all tasks, and the default",
    source=f"controls of {cavallanti.PAPER}, Figures 5 and 6",
    data=tuple(data for data in cavallanti.ONE_AT_A_TIME if data.name.endswith("random")),
    entrants=(*_PERCEPTRONS, *OF_LABELS),
    figure=None,
    seconds=120,
    notes=("b = 0 is an independent Perceptron for each task. The task is chosen at random.",),
)
SPAM = replace(
    cavallanti.TABLE_3,
    id="cavallanti/controls-spam",
    title="Controls of Table 3: one Perceptron for all inboxes, and the default",
    source=f"controls of {cavallanti.PAPER}, Table 3",
    data=(cavallanti.INBOXES,),
    entrants=(*_PERCEPTRONS, *OF_LABELS),
    published={},
    champion="",
    figure=None,
    seeds=5,
    seconds=120,
    notes=("b = 0 is an independent Perceptron for each inbox, p = 4 the paper's best.",),
)

# ---- Yang, Li: all labels, with the loss of the Gaussians ------------------------------------------------------------

VARIANCES = decades(0.01, 100.0, 2)
LABELLED = replace(
    yang_li.QUERIES,
    id="yang_li/controls",
    title="All labels: the Gaussians tuned, SGD with their loss, and the default",
    source=f"controls of {yang_li.PAPER}",
    entrants=(
        Entrant("Gaussians", "LocalGlobalGaussian", yang_li.GAUSSIAN, {"lam": VARIANCES, "eps": VARIANCES}),
        Entrant("Gaussians, linear", "LocalGlobalGaussian", {"loss": "squared_hinge", "covariance": "diagonal"},
                {"lam": VARIANCES, "eps": VARIANCES}),
        *(
            Entrant(f"{relation}, squared hinge SGD", "MultitaskPerceptron",
                    {"relation": relation, "loss": "squared_hinge"}, {"eta": RATES})
            for relation in ("independent", "pooled")
        ),
        *OF_LABELS,
    ),
    metrics=(yang_li.QUERIES.metrics[0], yang_li.QUERIES.metrics[2]),
    tuning=Tuning(yang_li.asked, "auc", +1, budget=50),
    figure=None,
    seconds=200,
    notes=(
        "Nystrom features on 200 rows, as in the queries, or the rows themselves with diagonal covariances. Chosen by "
        "the AUC, since never answering \"mine\" errs least on landmine.",
    ),
)  # fmt: skip

# ---- Cavallanti et al.: K tasks that are the same --------------------------------------------------------------------

COUNTS = (4, 16, 64)


def same_tasks(n_tasks: int, n_rounds: int = 150) -> Dataset:
    """One linear rule with a margin, asked K times: separable, no noise, rows of unit norm."""
    drawn = make_related_tasks(
        n_tasks=n_tasks, n_features=30, n_rows=3 * n_tasks * n_rounds, relatedness=1.0, noise=0.0, seed=5
    )
    rows = drawn.interleaved().subset(slice(n_tasks * n_rounds))
    return replace(rows, X=rows.X / np.linalg.norm(rows.X, axis=1, keepdims=True))


EQUAL = Experiment(
    id="cavallanti/equal",
    title="Mistakes on K tasks that are the same, against independent Perceptrons",
    source=f"controls of {cavallanti.PAPER}, Corollary 3 and Remark 10 (the paper has no such experiment)",
    protocol="as it should be done",
    data=tuple(Data(f"{K} tasks", same_tasks, {"n_tasks": K}) for K in COUNTS),
    entrants=(
        Entrant("independent", "MultitaskPerceptron", {"relation": "independent"}),
        Entrant("pairwise", "MultitaskPerceptron", {"relation": "pairwise"}),
        Entrant("2p-norm matrix", "SchattenPerceptron"),
    ),
    metrics=(Metric("error", "error", -1),),
    measure=cavallanti.one_pass,
    seeds=10,
    seconds=30,
    figure=pictures.beside,
    notes=("The bounds allow a gain of up to K where tasks are the same and separable.",),
)

EXPERIMENTS = (OSMTL, ROMCO, STRUCTURE, FOUND, CURVE, ONE_PASS, D1_TO_D8, SPAM, EQUAL, LABELLED)
