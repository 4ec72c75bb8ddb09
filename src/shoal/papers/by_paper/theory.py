"""Theory beside practice: mistakes or regret along a stream against the papers' bounds.

Every bound holds for every comparator, so the best one in hindsight gives the tightest value. Comparators are batch
solutions on the whole stream: multitask support vector machines (Evgeniou, Pontil 2004; linear, on the features
[s x, x in the block of the task]) from independent (s = 0) to nearly pooled, at several strengths; at each point of the
stream the one with the smallest bound is taken.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from shoal import theory
from shoal.datasets.dataset import Dataset
from shoal.datasets.related_tasks import make_related_tasks
from shoal.engine.arrays import FloatArray
from shoal.online.common.shared_loss_steps import norm_code
from shoal.papers import data_sets, pictures
from shoal.papers.experiment import Data, Entrant, Experiment, Metric
from shoal.papers.outcome import Outcome
from shoal.report.figure import Figure
from shoal.theory.shared_loss import cumulative_shared_loss
from shoal.theory.stream import hinge

POINTS = 12
SHARING, STRENGTHS = (0.0, 1.0, 4.0), (0.01, 0.1, 1.0, 10.0, 100.0)


def even(n_tasks: int, n_rounds: int) -> Dataset:
    """Related linear tasks with equally many rows, 2 % of the labels flipped."""
    drawn = make_related_tasks(
        n_tasks=n_tasks, n_features=20, n_rows=2 * n_tasks * n_rounds, relatedness=0.9, noise=0.02, seed=3
    )
    return drawn.interleaved().subset(slice(n_tasks * n_rounds))


MADE = Data("made", even, {"n_tasks": 10, "n_rounds": 400})
SPAM = Data("spam", data_sets.spam, {"treatment": "unit"}, "ecml2006_spam")


def comparators(rows: Dataset, sharing: tuple[float, ...], strengths: tuple[float, ...]) -> Iterator[tuple[Any, Any]]:
    """(common weights, personal weights) of the multitask machines; w_k = common + personal_k, tasks by appearance."""
    from sklearn.svm import LinearSVC

    K, d = rows.n_tasks, rows.X.shape[1]
    X, task = csr_matrix(rows.X), np.arange(len(rows)) % K
    indices = X.indices + d * np.repeat(task, np.diff(X.indptr))
    own = csr_matrix((X.data, indices, X.indptr), shape=(len(rows), K * d))
    for s in sharing:
        features = hstack([s * X, own], format="csr")
        for C in strengths:
            # Any comparator will do: one that has not quite converged costs no more than some of the bound's tightness.
            machine = LinearSVC(C=C, loss="hinge", fit_intercept=False, max_iter=100, random_state=0)
            w = machine.fit(features, rows.y).coef_[0]
            yield s * w[:d], w[d:].reshape(K, d)


def against_bound(
    data: Dataset,
    learner: Any,
    seed: int,
    *,
    sharing: tuple[float, ...] = SHARING,
    strengths: tuple[float, ...] = STRENGTHS,
) -> dict[str, Any]:
    """The learner's quantity (mistakes, or regret) and its bound after each twelfth of the rounds."""
    rows = data_sets.occurring(data.interleaved(seed))  # on the others the comparators' weights are 0
    K = rows.n_tasks
    learner.add_tasks(rows.task[:K].tolist())
    decisions = learner.test_then_train(rows.X, rows.y, rows.task, classes=[-1.0, 1.0])
    bound_of = _shared if getattr(learner, "shared_loss", None) else BOUNDS[type(learner).__name__]
    stops = [K * (i + 1) * (len(rows) // K) // POINTS // K * K for i in range(POINTS)]
    best: list[tuple[float, float]] = [(math.nan, math.inf)] * POINTS
    for common, personal in comparators(rows, tuple(sharing), tuple(strengths)):
        for i, stop in enumerate(stops):
            part = rows.subset(slice(stop))
            found = bound_of(learner, part, decisions[:stop], common, personal)
            # Regret depends on the comparator too, so the bound is read as the loss that it allows the learner.
            best[i] = min(best[i], found, key=lambda pair: pair[1])
    values, bounds = (list(column) for column in zip(*best, strict=True))
    return {
        "value": values[-1],
        "bound": bounds[-1],
        "share": 100 * values[-1] / bounds[-1],
        "values": values,
        "bounds": bounds,
        "rows": [float(stop) for stop in stops],
        "broken": float(np.sum(np.array(values) > np.array(bounds))),
    }


# ---- what each bound is about: (learner, rows, decisions, common, personal) -> (value, bound) ------------------------


def _mistakes(bound: Callable[..., float], *settings: str) -> Callable[..., tuple[float, float]]:
    """Mistakes, and the most that a bound with these settings of the learner allows."""

    def both(learner: Any, rows: Dataset, decisions: FloatArray, common: Any, personal: Any) -> tuple[float, float]:
        wrong = (decisions >= 0) != (rows.y > 0)
        given = {name: getattr(learner, name) for name in settings}
        return float(wrong.sum()), bound(common + personal, rows.X, rows.y, rows.task, mistaken=wrong, **given)

    return both


def _shared(learner: Any, rows: Dataset, decisions: FloatArray, common: Any, personal: Any) -> tuple[float, float]:
    """Remark 12, as corrected: the norms of the rounds' losses."""
    norm, starts = norm_code(learner.shared_loss), np.arange(0, len(rows) + 1, rows.n_tasks)
    bound = theory.schatten_loss_bound(
        common + personal,
        rows.X,
        rows.y,
        rows.task,
        p=learner.p,
        norm=learner.shared_loss,
        C=learner.C,
        decisions=decisions,
    )
    return cumulative_shared_loss(hinge(rows.y, decisions), starts, norm), bound


def _losses(rows: Dataset, decisions: FloatArray, U: Any) -> tuple[FloatArray, FloatArray]:
    """Hinge losses of the learner and of the comparator."""
    K = rows.n_tasks
    margins = np.asarray(rows.X @ U.T)[np.arange(len(rows)), np.arange(len(rows)) % K]
    return hinge(rows.y, decisions), hinge(rows.y, margins)


def _osmtl(learner: Any, rows: Dataset, decisions: FloatArray, common: Any, personal: Any) -> tuple[float, float]:
    """Theorem 1, summed over tasks: cumulative loss, and the comparator's loss with the regret that is allowed."""
    U = common + personal
    losses, comparator = _losses(rows, decisions, U)
    regret = theory.osmtl_regret_bound(U, rows.X, rows.y, rows.task, alpha=learner.alpha, C=learner.C).sum()
    return float(losses.sum()), float(comparator.sum() + regret)


def _romco(learner: Any, rows: Dataset, decisions: FloatArray, common: Any, personal: Any) -> tuple[float, float]:
    """Theorem 3: cumulative loss; U* is the common weights of every task, V* the personal ones."""
    losses, comparator = _losses(rows, decisions, common + personal)
    settings = {name: getattr(learner, name) for name in ("eta", "rho", "lambda1", "lambda2", "C")}
    regret = theory.romco_regret_bound(
        np.tile(common, (len(personal), 1)), personal, rows.X, rows.y, rows.task, **settings
    )
    return float(losses.sum()), float(comparator.sum() + regret / learner.C)


def _gaussian(learner: Any, rows: Dataset, decisions: FloatArray, common: Any, personal: Any) -> tuple[float, float]:
    """Theorem 1: loss over mistaken rows."""
    U = common + personal
    losses, comparator = _losses(rows, decisions, U)
    wrong = (decisions >= 0) != (rows.y > 0)
    regret = theory.gaussian_regret_bound(U, rows.X, rows.y, rows.task, lam=learner.lam, eps=learner.eps, shared=common)
    return float(losses[wrong].sum()), float(comparator[wrong].sum() + regret)


BOUNDS: dict[str, Callable[..., tuple[float, float]]] = {
    "MultitaskPerceptron": _mistakes(theory.perceptron_mistake_bound, "relation"),  # Theorem 1
    "PNormPerceptron": _mistakes(theory.p_norm_mistake_bound, "relation", "p", "variant"),  # Theorem 6
    "SecondOrderPerceptron": _mistakes(theory.second_order_mistake_bound, "relation", "a"),  # Theorem 8
    "SchattenPerceptron": _mistakes(theory.schatten_mistake_bound, "p"),  # Theorem 9; with a shared loss, `_shared`
    "OSMTL": _osmtl,
    "ROMCO": _romco,
    "LocalGlobalGaussian": _gaussian,
}


def _draw(outcome: Outcome) -> Figure | None:
    panels, axes = {}, {}
    for data in outcome.main_data():
        for entrant in outcome.main_entrants():
            values = outcome.lists(entrant.name, data.name, "values")
            if values.size:
                name = f"{data.name}: {entrant.name}"
                bounds = outcome.lists(entrant.name, data.name, "bounds").mean(axis=0)
                panels[name] = {"bound": bounds, "observed": values.mean(axis=0)}
                axes[name] = outcome.lists(entrant.name, data.name, "rows")[0].tolist()
    return pictures.curves(
        outcome,
        panels,
        axes,
        pictures.Titles(
            title="What was observed, and the most that the bound allows",
            caption="Mean over shuffles; at each point the bound of the best comparator in hindsight.",
            x="rows",
            y=outcome.experiment.metrics[1].title,
        ),
    )


def _experiment(
    paper: str,
    name: str,
    whose: str,
    source: str,
    entrants: tuple[Entrant, ...],
    data: tuple[Data, ...],
    seconds: float,
) -> Experiment:
    return Experiment(
        id=f"theory/{paper}",
        title=f"{name.capitalize()} against the bound: {whose}",
        source=source,
        protocol="as it should be done",
        data=data,
        entrants=entrants,
        metrics=(
            Metric("share", "observed, % of the bound", 0, ".1f"),
            Metric("value", name, 0, ".0f"),
            Metric("bound", "bound", 0, ".0f"),
            Metric("broken", "points above the bound", -1, ".0f"),
        ),
        measure=against_bound,
        options={"sharing": SHARING, "strengths": STRENGTHS},
        quick={"sharing": (1.0,), "strengths": (1.0,)},
        seeds=3,
        seconds=seconds,
        shuffles=False,
        figure=_draw,
    )


CAVALLANTI = _experiment(
    "cavallanti",
    "mistakes",
    "multitask Perceptrons",
    "Cavallanti et al., JMLR 2010, Theorems 1, 6, 8 and 9",
    (
        Entrant("independent", "MultitaskPerceptron", {"relation": "independent"}),
        Entrant("pairwise", "MultitaskPerceptron", {"relation": "pairwise"}),
        Entrant("pooled in part, b = 16", "MultitaskPerceptron", {"relation": 16.0}),
        Entrant("p-norm, pairwise", "PNormPerceptron", {"relation": "pairwise"}),
        Entrant("second order, pairwise", "SecondOrderPerceptron", {"relation": "pairwise"}),
        Entrant("2p-norm, p = 2", "SchattenPerceptron", {"p": 2}),
    ),
    (MADE, SPAM),
    400,
)
T = 400
SHARED = _experiment(
    "cavallanti-shared",
    "cumulative shared loss",
    "2p-norm matrix Perceptron",
    "Cavallanti et al., JMLR 2010, Remark 12 as corrected in shoal.theory, with C = 1/sqrt(T), T = 400",
    tuple(
        Entrant(f"2p-norm, p = 2, {norm}", "SchattenPerceptron", {"p": 2, "shared_loss": norm, "C": T**-0.5})
        for norm in ("l1", "l2", "linf")
    ),
    (MADE, SPAM),
    300,
)
OSMTL = _experiment(
    "osmtl",
    "cumulative loss",
    "OSMTL",
    "Murugesan et al., NIPS 2016, Theorem 1, with the alpha and C of Corollary 2 (T = 400)",
    tuple(
        Entrant(
            f"attention {attention}",
            "OSMTL",
            {
                "attention": attention,
                "alpha": T**0.5 / (1 + T**0.5),
                "C": (1 + T**0.5) / T,
                "trigger": "margin",
                "lam": 2.0,
            },
        )
        for attention in ("exponential", "threshold")
    ),
    (MADE, SPAM),
    200,
)
ROMCO = _experiment(
    "romco",
    "cumulative loss",
    "ROMCO",
    "Yang, Zhao, Gao, 2017, Theorem 3; steps 1/sqrt(T), strengths 0.01/sqrt(T), T = 400",
    (
        Entrant(
            "ROMCO-NuCl",
            "ROMCO",
            {"eta": T**-0.5, "rho": T**-0.5, "lambda1": 0.01 * T**-0.5, "lambda2": 0.01 * T**-0.5},
        ),
    ),
    (MADE, SPAM),
    200,
)
YANG_LI = _experiment(
    "yang_li",
    "loss on mistaken rows",
    "local-global Gaussians",
    "Yang, Li, WWW 2020, supplement, Theorem 1 as corrected in shoal.theory",
    (Entrant("hinge", "LocalGlobalGaussian", {"loss": "hinge", "lam": 1.0, "eps": 1.0}),),
    (MADE,),
    60,
)

EXPERIMENTS = (CAVALLANTI, SHARED, OSMTL, ROMCO, YANG_LI)
