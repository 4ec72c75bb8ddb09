"""Mean ranks over shuffles or data sets, signed ranks against one method, and Friedman's and Nemenyi's tests.

Shuffles of one data set are not independent data sets. Signed ranks say whether a difference is more than the luck of
the order. Friedman's test with Nemenyi's critical difference is for data sets (Demsar, JMLR 7, 2006), and is used there
only.
"""

from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.evaluation.comparison import critical_difference, holm
from shoal.papers.errors import LEVEL
from shoal.papers.experiment import Metric
from shoal.papers.outcome import Outcome


class Ranking(NamedTuple):
    """Mean ranks (1 is best) of the entrants on one data set."""

    data: str
    names: list[str]
    ranks: FloatArray
    n: int
    of: str  # ranked in "shuffles" or "data sets"
    p_value: float  # Friedman: that all are alike; NaN over shuffles
    critical_difference: float  # Nemenyi: mean ranks that differ by more do so beyond chance; NaN over shuffles
    champion: str
    against: dict[str, float]  # the champion against each other: Wilcoxon's p, after Holm's correction
    agreement: float  # Kendall's tau between the order of the paper's values and of ours, NaN if fewer than three


def rankings(outcome: Outcome) -> list[Ranking]:
    """Rank by the decisive metric: on each data set of three entrants or more, and over three data sets or more."""
    metric = outcome.experiment.decisive
    if not outcome.experiment.shuffles or metric.better == 0:
        return []
    found = [_over_shuffles(outcome, data.name, metric) for data in outcome.main_data()]
    return [ranking for ranking in (*found, _over_data(outcome, metric)) if ranking is not None]


def _over_data(outcome: Outcome, metric: Metric) -> Ranking | None:
    """Ranks of the means, as Demsar has it."""
    data = [data.name for data in outcome.main_data()]
    means = {
        entrant.name: [_mean(outcome.values(entrant.name, name, metric)) for name in data]
        for entrant in outcome.main_entrants()
        if entrant.is_there
    }
    whole = {name: values for name, values in means.items() if not np.isnan(values).any()}
    if len(whole) < 3 or len(data) < 3:
        return None
    table = metric.better * np.array(list(whole.values()))
    return _ranked("all data sets", list(whole), table, "data sets", outcome, float("nan"))


def _over_shuffles(outcome: Outcome, data: str, metric: Metric) -> Ranking | None:
    names, columns = [], []
    for entrant in outcome.main_entrants():
        values = outcome.values(entrant.name, data, metric)
        if len(values) > 1 and not np.isnan(values).any():
            names.append(entrant.name)
            columns.append(metric.better * values)
    n = min(map(len, columns), default=0)
    if len(names) < 3 or n < 2:
        return None
    table = np.array([column[:n] for column in columns])
    return _ranked(data, names, table, "shuffles", outcome, _agreement(outcome, data, metric, names, table))


def _ranked(data: str, names: list[str], table: FloatArray, of: str, outcome: Outcome, agreement: float) -> Ranking:
    """Rank (entrants, samples) values; more is better."""
    from scipy.stats import friedmanchisquare, rankdata

    n = table.shape[1]
    ranks = rankdata(-table, axis=0).mean(axis=1)
    p_value = difference = float("nan")
    if of == "data sets":
        p_value = 1.0 if np.ptp(table, axis=0).max() == 0 else float(friedmanchisquare(*table).pvalue)
        difference = critical_difference(len(names), n)
    champion = outcome.experiment.champion
    can_tell = 2.0 ** (1 - n) * (len(names) - 1) <= LEVEL  # the smallest p that so few samples can give, corrected
    against = _signed_ranks(names, table, champion) if champion in names and can_tell else {}
    return Ranking(data, names, ranks, n, of, p_value, difference, champion, against, agreement)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _signed_ranks(names: list[str], table: FloatArray, champion: str) -> dict[str, float]:
    from scipy.stats import wilcoxon

    best = table[names.index(champion)]
    raw = {}
    for name, scores in zip(names, table, strict=True):
        if name != champion:
            raw[name] = 1.0 if (best == scores).all() else float(wilcoxon(best, scores).pvalue)
    return dict(zip(raw, holm(list(raw.values())), strict=True))


def _agreement(outcome: Outcome, data: str, metric: Metric, names: list[str], table: FloatArray) -> float:
    from scipy.stats import kendalltau

    published = outcome.experiment.published
    both = [i for i, name in enumerate(names) if (name, data, metric.name) in published]
    if len(both) < 3:
        return float("nan")
    paper = [metric.better * published[names[i], data, metric.name][0] for i in both]
    return float(kendalltau(paper, table[both].mean(axis=1)).statistic)
