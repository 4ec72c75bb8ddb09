"""The metrics by name, and the choice among them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from shoal.evaluation.metrics.auc import Ranking
from shoal.evaluation.metrics.binary import Confusion, Forecasts
from shoal.evaluation.metrics.from_rows import SHORT, FromRows, Scorer, is_maker, scorer_of
from shoal.evaluation.metrics.metric import Metric
from shoal.evaluation.metrics.multiclass import ClassErrors
from shoal.evaluation.metrics.regression import QuantileLoss, Residuals

PROBABILITIES = ("log_loss", "brier", "calibration_error")  # of learners with `predict_proba`
METRICS = {
    "binary": ("error", "auc", "f1_positive", "f1_negative", *PROBABILITIES),
    "multiclass": ("error", "log_loss"),
    "regression": ("mae", "rmse", "explained_variance"),
}
OF_QUANTILES = ("pinball", "mae")

_FAMILIES: dict[str, tuple[Callable[[], Metric], ...]] = {
    "binary": (Confusion, Ranking, Forecasts),
    "multiclass": (ClassErrors,),
    "regression": (Residuals,),
}


def choose(
    metrics: Sequence[Any] | Any | None, kind: str, *, has_probabilities: bool = True, levels: Sequence[float] = ()
) -> tuple[list[Callable[[], Metric]], list[str]]:
    """Makers of the metrics asked for (default: all of the kind's), and the names of their values.

    Parameters
    ----------
    metrics : name, scorer, function or maker of a `Metric`, or several of them
        Names are those of `METRICS` and what `from_rows.scorer_of` knows.
    has_probabilities : bool
        Whether the learner gives probabilities; if not, metrics of probabilities are left out.
    levels : sequence of float
        Of the quantiles that are answered: "pinball" is the mean loss at them, "crps" the score of the distribution
        that they stand for, and these judge alone if the levels are several.

    Raises
    ------
    ValueError
        If a name is unknown or belongs to another kind of target, judges one answer where there are several, or if
        nothing is left.
    """
    known = {name: family for family in _FAMILIES[kind] for name in family().names}
    makers: list[Callable[[], Metric]] = []
    names: list[str] = []
    scorers: dict[str, Scorer] = {}
    of_levels = partial(QuantileLoss, levels)  # one, whether one of its names is asked for or both
    usual = METRICS[kind] if not levels else OF_QUANTILES[:1] if len(levels) > 1 else OF_QUANTILES
    chosen = usual if metrics is None else metrics if isinstance(metrics, list | tuple) else [metrics]
    for metric in chosen:
        if levels and metric in QuantileLoss.names:
            makers.append(of_levels)
            names.append(metric)
        elif len(levels) > 1:
            raise ValueError(
                f"metric {metric!r} judges one answer a row: several quantiles are judged by pinball and crps"
            )
        elif callable(metric) and is_maker(metric):
            makers.append(metric)
            names.extend(metric().names)
        elif isinstance(metric, str) and metric in METRICS[kind]:
            if has_probabilities or metric not in PROBABILITIES:
                names.append(metric)
                makers.append(known[metric])
        else:
            found = _scorer(metric, kind, has_probabilities=has_probabilities)
            if found is not None:
                names.append(found[0])
                scorers[found[0]] = found[1]
    if not names:
        raise ValueError(f"metrics={metrics!r} leaves nothing: the learner gives no probabilities")
    if scorers:
        makers.append(partial(FromRows, scorers, kind, has_probabilities))
    return list(dict.fromkeys(makers)), list(dict.fromkeys(names))


def _scorer(metric: Any, kind: str, *, has_probabilities: bool) -> tuple[str, Scorer] | None:
    try:
        return scorer_of(metric, kind, has_probabilities=has_probabilities)
    except KeyError:
        raise ValueError(
            f"metric {metric!r} is not defined for {kind} targets; expected one of {METRICS[kind]}, of {SHORT}, or a "
            "scorer or function of sklearn.metrics"
        ) from None
