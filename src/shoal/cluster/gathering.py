"""What shards counted, as one service has it: sums, means over rows, and series in the order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.serve.statistics import MOST_POINTS, added

MEANS = ("error", "loss", "calibration")  # gauges that are means over rows; of others, sums


def gauges_of_all(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sums over shards, and means over rows of what is a mean; ages are of the oldest."""
    gauges: dict[str, float] = {}
    for name in dict.fromkeys(name for one in found for name in one):
        there = [one for one in found if name in one]
        values = np.array([one[name] for one in there], np.float64)
        if name == "error_of_worst_task" or name.endswith("_seconds"):
            gauges[name] = float(values.max())
        elif name.startswith(MEANS):
            rows = np.array([one["rows_judged"] for one in there], np.float64)
            gauges[name] = float(values @ rows / max(rows.sum(), 1.0))
        else:
            gauges[name] = float(values.sum())
    return gauges


def overview_of_all(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the page shows; who predicts, and what, is the same in all shards."""
    rows = np.array([one["rows"] for one in found], np.float64)
    weights = rows / max(rows.sum(), 1.0)
    means = {name: (weights @ np.array([one[name] for one in found])).tolist() for name in ("errors", "losses")}
    sums = {name: sum(one[name] for one in found) for name in ("rows", "rows_a_second", "tasks")}
    calibration = np.sum([one["calibration"] for one in found], axis=0).tolist()
    points = sorted((point for one in found for point in one["points"]), key=lambda point: point[1])
    while len(points) > MOST_POINTS:
        points = [added(*points[i : i + 2]) if i + 1 < len(points) else points[i] for i in range(0, len(points), 2)]
    gauges = gauges_of_all([one["gauges"] for one in found])
    return {**found[0], **sums, **means, "calibration": calibration, "points": points, "gauges": gauges}
