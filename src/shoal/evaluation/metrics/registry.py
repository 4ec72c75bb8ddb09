"""The metrics by name, and the choice among them."""

from collections.abc import Callable, Sequence

from shoal.evaluation.metrics.auc import Ranking
from shoal.evaluation.metrics.binary import Confusion, Forecasts
from shoal.evaluation.metrics.metric import Metric
from shoal.evaluation.metrics.multiclass import ClassErrors
from shoal.evaluation.metrics.regression import Residuals

PROBABILITIES = ("log_loss", "brier", "calibration_error")  # of learners with `predict_proba`
METRICS = {
    "binary": ("error", "auc", "f1_positive", "f1_negative", *PROBABILITIES),
    "multiclass": ("error", "log_loss"),
    "regression": ("mae", "rmse", "explained_variance"),
}

_FAMILIES: dict[str, tuple[Callable[[], Metric], ...]] = {
    "binary": (Confusion, Ranking, Forecasts),
    "multiclass": (ClassErrors,),
    "regression": (Residuals,),
}


def choose(
    metrics: Sequence[str | Callable[[], Metric]] | None, kind: str, *, has_probabilities: bool = True
) -> tuple[list[Callable[[], Metric]], list[str]]:
    """Makers of the metrics asked for (default: all of the kind's), and the names of their values.

    Parameters
    ----------
    has_probabilities : bool
        Whether the learner gives probabilities; if not, metrics of probabilities are left out.

    Raises
    ------
    ValueError
        If a name is unknown or belongs to another kind of target.
    """
    known = {name: family for family in _FAMILIES[kind] for name in family().names}
    makers: list[Callable[[], Metric]] = []
    names: list[str] = []
    for metric in METRICS[kind] if metrics is None else [metrics] if isinstance(metrics, str) else metrics:
        if callable(metric):
            makers.append(metric)
            names.extend(metric().names)
        elif metric not in METRICS[kind]:
            raise ValueError(f"metric {metric!r} is not defined for {kind} targets; expected one of {METRICS[kind]}")
        elif has_probabilities or metric not in PROBABILITIES:
            names.append(metric)
            makers.append(known[metric])
    return list(dict.fromkeys(makers)), list(dict.fromkeys(names))
