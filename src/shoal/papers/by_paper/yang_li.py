"""Yang, Li: Efficient Online Multi-Task Learning via Adaptive Kernel Selection (WWW 2020).

Only the supplement is public: proofs, no tables. These experiments test the promises of its title, its rule and its
theorem: the error against the share of labels asked for, and the time against the number of features D.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.evaluation.metrics.auc import aucs
from shoal.papers import data_sets, pictures, protocols
from shoal.papers.experiment import OF_LABELS, Data, Entrant, Experiment, Metric, Tuning, decades
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome
from shoal.report.figure import Figure

PAPER = "Yang, Li, WWW 2020"

LANDMINE = Data("landmine", data_sets.landmine, {"treatment": "unit"}, "landmine", quick_rows=400)
MHC = Data("MHC-I", data_sets.mhc, {"treatment": "unit", "encoding": "one-hot"}, "mhc1_binding", quick_rows=400)
SPAM = Data("spam", data_sets.spam, {"treatment": "log-unit"}, "ecml2006_spam", quick_rows=400)


def asked(data: Dataset, learner: Any, seed: int) -> dict[str, Any]:
    """Per cent of labels asked for, and of rows answered wrongly, whether they were asked for or not."""
    rows = data.interleaved(seed)
    decisions, seconds = protocols.answered(rows, learner)
    wrong = (decisions >= 0) != (rows.y > 0)
    per_task = [wrong[rows.task == k].mean() for k in np.unique(rows.task)]
    _, codes = np.unique(rows.task, return_inverse=True)
    _, auc = aucs(codes.astype(np.int64), rows.y > 0, decisions, codes.max() + 1)
    n = int(getattr(learner, "n_queries_", len(rows)))
    return {
        "error": 100 * float(np.mean(per_task)),
        "asked": 100 * n / len(rows),
        "auc": float(np.nanmean(auc)),
        "seconds": seconds,
    }


# ---- error against labels asked for ----------------------------------------------------------------------------------

GAUSSIAN = {"features": {"map": "nystrom", "gamma": 1.0, "size": 200}, "loss": "squared_hinge"}
LEARNER = Spec("LocalGlobalGaussian", GAUSSIAN)
H, RATES = (0.001, 0.01, 0.1, 1.0, 10.0), (0.05, 0.1, 0.2, 0.4, 0.7)
THE_RULE, BY_MARGIN, AT_RANDOM, ALL = "the rule", "by margin alone", "at random", "all labels"
LINES = {
    THE_RULE: [f"rule, h = {h:g}" for h in H],
    BY_MARGIN: [f"margin, {rate:.0%}" for rate in RATES],
    AT_RANDOM: [f"random, {rate:.0%}" for rate in RATES],
    ALL: [ALL],
}
ENTRANTS = (
    *(Entrant(f"rule, h = {h:g}", "LabelQuery", {"estimator": LEARNER, "rule": "variance", "b": h}) for h in H),
    *(
        Entrant(
            f"{name}, {rate:.0%}",
            "LabelQuery",
            {"estimator": LEARNER, "rule": rule, "budget": rate},
        )
        for name, rule in (("random", "fixed"), ("margin", "margin"))
        for rate in RATES
    ),
    Entrant(ALL, "LocalGlobalGaussian", GAUSSIAN),
)


def _draw_asked(outcome: Outcome) -> Figure | None:
    error, share, auc = outcome.experiment.metrics
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for data in outcome.main_data():
        metric = auc if data is LANDMINE else error  # to answer always "negative" would err least
        for line, names in LINES.items():
            points = [
                (outcome.values(name, data.name, share).mean(), outcome.values(name, data.name, metric).mean())
                for name in names
                if (name, data.name) in outcome.runs
            ]
            panels.setdefault(f"{data.name}, {metric.title}", {})[line] = sorted(points)
    return pictures.scatter(
        outcome,
        panels,
        pictures.Titles(
            title="Error, or AUC where positives are rare, against the share of labels asked for",
            caption="A point is a budget, mean over shuffles; all rows count, asked for or not.",
            x="labels asked for, %",
            y="",
        ),
    )


QUERIES = Experiment(
    id="yang_li/queries",
    title="Error against the share of labels asked for: the rule, margins alone, random asking, all labels",
    source=f"{PAPER}; its main text is not available, so there is nothing to compare with",
    protocol="as it should be done",
    data=(LANDMINE, MHC, SPAM),
    entrants=ENTRANTS,
    metrics=(
        Metric("error", "error %", -1, ".2f"),
        Metric("asked", "labels asked %", 0, ".1f"),
        Metric("auc", "AUC", +1),
    ),
    measure=asked,
    seeds=10,
    seconds=360,
    shuffles=False,
    figure=_draw_asked,
    notes=(
        "lam = eps = 1 for all; Nystrom features on a shared dictionary of 200 rows at most, gamma = 1. Asking "
        "at random and by the margin alone run the same learner.",
        'On landmine, 6 % of the labels are positive: never answering "mine" errs on 6 %, so read the AUC there.',
    ),
)

# ---- time against D --------------------------------------------------------------------------------------------------

SIZES = (25, 50, 100, 200, 400)
FORMS = {"full covariance": "full", "diagonal covariance": "diagonal"}


def _draw_times(outcome: Outcome) -> Figure | None:
    seconds = outcome.experiment.metrics[0]
    panels = {
        data.name: {
            form: [
                (float(size), outcome.values(f"{form}, D = {size}", data.name, seconds).mean())
                for size in SIZES
                if (f"{form}, D = {size}", data.name) in outcome.runs
            ]
            for form in FORMS
        }
        for data in outcome.main_data()
    }
    return pictures.scatter(
        outcome,
        panels,
        pictures.Titles(
            title="Time against the number of features",
            caption="Random Fourier features; the cost of a mistake grows with D^2 with full covariances, "
            "with D without.",
            x="features D",
            y="CPU seconds of one pass",
        ),
    )


TIMES = Experiment(
    id="yang_li/time",
    title="Time against the number of features D",
    source=f"{PAPER}; its main text is not available, so there is nothing to compare with",
    protocol="as it should be done",
    data=(MHC,),
    entrants=tuple(
        Entrant(
            f"{form}, D = {size}",
            "LocalGlobalGaussian",
            {"features": {"map": "rff", "gamma": 1.0, "size": size}, "covariance": covariance},
        )
        for form, covariance in FORMS.items()
        for size in SIZES
    ),
    metrics=(Metric("seconds", "time (s)", 0, ".2f"), Metric("error", "error %", -1, ".2f")),
    measure=asked,
    seeds=5,
    seconds=85,
    shuffles=False,
    figure=_draw_times,
)

# ---- controls: all labels, with the loss of the Gaussians -----------------------------------------------------------

VARIANCES, SGD_RATES = decades(0.01, 100.0, 2), decades(1e-4, 100.0, 8)
LABELLED = replace(
    QUERIES,
    id="yang_li/controls",
    title="All labels: the Gaussians tuned, SGD with their loss, and the default",
    source=f"controls of {PAPER}",
    entrants=(
        Entrant("Gaussians", "LocalGlobalGaussian", GAUSSIAN, {"lam": VARIANCES, "eps": VARIANCES}),
        Entrant(
            "Gaussians, linear",
            "LocalGlobalGaussian",
            {"loss": "squared_hinge", "covariance": "diagonal"},
            {"lam": VARIANCES, "eps": VARIANCES},
        ),
        *(
            Entrant(
                f"{relation}, squared hinge SGD",
                "MultitaskPerceptron",
                {"relation": relation, "loss": "squared_hinge"},
                {"eta": SGD_RATES},
            )
            for relation in ("independent", "pooled")
        ),
        *OF_LABELS,
    ),
    metrics=(QUERIES.metrics[0], QUERIES.metrics[2]),
    tuning=Tuning(asked, "auc", +1, budget=50),
    seeds=5,
    figure=None,
    seconds=200,
    notes=(
        "Nystrom features on 200 rows, as in the queries, or the rows themselves with diagonal covariances. Chosen by "
        'the AUC, since never answering "mine" errs least on landmine.',
    ),
)

EXPERIMENTS = (QUERIES, TIMES, LABELLED)
