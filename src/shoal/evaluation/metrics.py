"""The metrics by name, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.evaluation.protocol import Metric
from shoal.evaluation.ranking import Ranking
from shoal.evaluation.sums import Confusion, Residuals

METRICS = {
    "binary": ("error", "auc", "f1_positive", "f1_negative"),
    "regression": ("mae", "rmse", "explained_variance"),
}

_FAMILIES: tuple[type[Confusion] | type[Ranking] | type[Residuals], ...] = (Confusion, Ranking, Residuals)
_MAKERS: dict[str, Callable[[], Metric]] = {name: family for family in _FAMILIES for name in family.names}


def choose(
    metrics: Sequence[str | Callable[[], Metric]] | None, kind: str
) -> tuple[list[Callable[[], Metric]], list[str]]:
    """Makers of the metrics asked for (default: all of the kind's), and the names of their values.

    Raises
    ------
    ValueError
        If a name is unknown or belongs to the other kind of target.
    """
    makers: list[Callable[[], Metric]] = []
    names: list[str] = []
    for metric in METRICS[kind] if metrics is None else [metrics] if isinstance(metrics, str) else metrics:
        if callable(metric):
            makers.append(metric)
            names.extend(metric().names)
        elif metric not in METRICS[kind]:
            raise ValueError(f"metric {metric!r} is not defined for {kind} targets; expected one of {METRICS[kind]}")
        else:
            names.append(metric)
            makers.append(_MAKERS[metric])
    return list(dict.fromkeys(makers)), list(dict.fromkeys(names))
