"""Cases that many claims have in common."""

from collections.abc import Iterable, Iterator

import numpy as np

from shoal.papers.claims.claim import Case, Number
from shoal.papers.claims.evidence import Evidence


def beats(
    e: Evidence, experiment: str, data: str, metric: str, who: Iterable[str], others: Iterable[str], where: str = ""
) -> Case:
    """The best of `who` is better than the best of `others`, by more than two standard errors."""
    mine, theirs = (e.best(experiment, names, data, metric) for names in (who, others))
    return Case(
        where or data,
        e.gain(experiment, mine, theirs, data, metric).above,
        _number(e, experiment, mine, data, metric),
        _number(e, experiment, theirs, data, metric),
    )


def beats_each(
    e: Evidence, experiment: str, data: str, metric: str, who: Iterable[str], others: Iterable[str]
) -> Iterator[Case]:
    """The best of `who` against each of `others`."""
    names = list(who)
    for other in others:
        yield beats(e, experiment, data, metric, names, [other], f"{data}, {other}")


def ratio(
    e: Evidence,
    experiment: str,
    data: str,
    metric: str,
    more: str,
    less: str,
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> Case:
    """`more` over `less` lies between two numbers."""
    quotient = e.ratio(experiment, more, less, data, metric)
    asked = "asked: at least" if np.isinf(most) else "asked: at most"
    return Case(
        f"{data}, {more}/{less}",
        least <= quotient <= most,
        Number(f"{more} over {less}", quotient, ".3g"),
        Number(asked, least if np.isinf(most) else most, "g"),
    )


def unbroken(e: Evidence, experiment: str, entrant: str, data: str) -> Case:
    """The observed value never exceeds its bound."""
    broken = e.values(experiment, entrant, data, "broken").max()
    return Case(
        f"{data}, {entrant}",
        broken == 0,
        Number("observed", e.mean(experiment, entrant, data, "value"), ".0f"),
        Number("bound", e.mean(experiment, entrant, data, "bound"), ".0f"),
    )


def trend(where: str, xs: Iterable[float], ys: Iterable[float], most: float) -> Case:
    """Values fall along an axis: Spearman's rank correlation is at most that."""
    from scipy.stats import spearmanr

    a, b = list(xs), list(ys)
    found = float(spearmanr(a, b).statistic) if len(set(b)) > 1 else 0.0
    return Case(where, found <= most, Number("Spearman", found, ".2f"), Number("asked: at most", most, ".2f"))


def same_order(e: Evidence, experiment: str, data: str, metric: str, names: Iterable[str], least: float) -> Case:
    """Learners come in the paper's order: Kendall's tau of our means with its numbers."""
    from scipy.stats import kendalltau

    who = list(names)
    ours = [e.mean(experiment, name, data, metric) for name in who]
    theirs = [e.published(experiment, name, data, metric)[0] for name in who]
    tau = float(kendalltau(ours, theirs).statistic) if len(set(ours)) > 1 else 0.0
    return Case(data, tau >= least, Number("Kendall's tau", tau, ".2f"), Number("asked: at least", least, ".2f"))


def mains(e: Evidence, experiment: str, without: Iterable[str] = ()) -> list[str]:
    """The entrants of an experiment that are no variants."""
    left_out = set(without)
    return [n.name for n in e.experiment(experiment).entrants if not n.variant_of and n.name not in left_out]


def _number(e: Evidence, experiment: str, entrant: str, data: str, metric: str) -> Number:
    return Number(entrant, e.mean(experiment, entrant, data, metric), e.metric(experiment, metric).form)
