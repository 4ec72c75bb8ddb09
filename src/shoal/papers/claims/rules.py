"""Cases that many claims have in common."""

import math
from collections.abc import Iterable, Iterator

from shoal.papers.claims.claim import Case, Number, shown
from shoal.papers.claims.evidence import Evidence

NEVER = "a bound is broken by a single shuffle, so that no mean is compared"
AN_ORDER = "it asks for an order, not for how far apart its numbers are"
EQUAL = {"error": 0.5, "auc": 0.01}  # equal within these limits, set before the runs: per cent of error, and AUC


def nothing(_: Evidence) -> Iterator[Case]:
    """The rule of a claim that cannot be tested."""
    return iter(())


def beats(
    e: Evidence, experiment: str, data: str, metric: str, who: Iterable[str], others: Iterable[str], where: str = ""
) -> Case:
    """The best of `who` is better than the best of `others`, beyond chance."""
    best, rival = (e.best(experiment, names, data, metric) for names in (who, others))
    numbers = (number(e, experiment, name, data, metric) for name in (best, rival))
    return shown(where or data, e.gain(experiment, best, rival, data, metric), *numbers)


def beats_each(
    e: Evidence, experiment: str, data: str, metric: str, who: Iterable[str], others: Iterable[str]
) -> Iterator[Case]:
    """The best of `who` against each of `others`."""
    names = list(who)
    for other in others:
        yield beats(e, experiment, data, metric, names, [other], f"{data}, {other}")


def no_worse(
    e: Evidence, experiment: str, data: str, metric: str, learner: str, other: str, margin: float, where: str = ""
) -> Case:
    """`learner` loses less than a margin against `other`, beyond chance: the interval ends below the margin."""
    gain = e.gain(experiment, learner, other, data, metric)
    names = (number(e, experiment, name, data, metric) for name in (learner, other))
    return shown(where or data, gain.less(-margin), *names)


def ratio(
    e: Evidence,
    experiment: str,
    data: str,
    metric: str,
    more: str,
    less: str,
    *,
    least: float | None = None,
    most: float | None = None,
    where: str = "",
) -> Case:
    """`more` over `less` is above `least`, or below `most`, beyond chance; by the logarithms of the ratios."""
    sign, factor, bound = (1, least, "least") if least is not None else (-1, most, "most")
    assert factor is not None
    found = e.log_ratio(experiment, more, less, data, metric)
    quotient = e.ratio(experiment, more, less, data, metric)
    first = Number(f"{more} over {less}", quotient, ".3g" if quotient < 1000 else ",.0f")
    difference = found._replace(mean=sign * (found.mean - math.log(factor)))
    return shown(where or f"{data}, {more}/{less}", difference, first, Number(f"asked: at {bound}", factor, "g"))


def unbroken(e: Evidence, experiment: str, entrant: str, data: str) -> Case:
    """The observed value never exceeds its bound."""
    broken = e.values(experiment, entrant, data, "broken").max()
    value, bound = (e.mean(experiment, entrant, data, name) for name in ("value", "bound"))
    numbers = Number("observed", value, ".0f"), Number("bound", bound, ".0f")
    return Case(f"{data}, {entrant}", bool(broken == 0), *numbers, near=value / bound)


def trend(where: str, xs: Iterable[float], ys: Iterable[float], most: float) -> Case:
    """Values fall along an axis: Spearman's rank correlation is at most that."""
    from scipy.stats import spearmanr

    a, b = list(xs), list(ys)
    found = float(spearmanr(a, b).statistic) if len(set(b)) > 1 else 0.0
    return Case(where, found <= most, Number("Spearman", found, ".2f"), Number("asked: at most", most, ".2f"))


def same_order(e: Evidence, experiment: str, data: str, metric: str, names: Iterable[str], least: float) -> Case:
    """Learners come in the paper's order: Kendall's tau of our means with its numbers."""
    from scipy.stats import kendalltau

    learners = list(names)
    ours = [e.mean(experiment, name, data, metric) for name in learners]
    paper = [e.published(experiment, name, data, metric)[0] for name in learners]
    tau = float(kendalltau(ours, paper).statistic) if len(set(ours)) > 1 else 0.0
    return Case(data, tau >= least, Number("Kendall's tau", tau, ".2f"), Number("asked: at least", least, ".2f"))


def mains(e: Evidence, experiment: str, without: Iterable[str] = ()) -> list[str]:
    """The entrants of an experiment that are no variants."""
    left_out = set(without)
    return [n.name for n in e.experiment(experiment).entrants if not n.variant_of and n.name not in left_out]


def number(e: Evidence, experiment: str, entrant: str, data: str, metric: str) -> Number:
    """A learner's mean, in the form of its metric."""
    return Number(entrant, e.mean(experiment, entrant, data, metric), e.metric(experiment, metric).form)
