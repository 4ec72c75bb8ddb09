"""Similarity of our table to the paper's by correlations, where only the shape over data sets can be compared."""

import math
from typing import NamedTuple

from shoal.papers.outcome import Outcome, Row


class Shape(NamedTuple):
    """Correlations of the paper's numbers with ours."""

    blocks: list[tuple[str, float]]  # the numbers compared with one mean, and Spearman's rank correlation
    n: int
    correlation: float  # Pearson's, of all n numbers


def shape(outcome: Outcome) -> Shape | None:
    """Compare the numbers that are judged relative to the mean of a block of three or more; None without any."""
    of = outcome.experiment.reference
    blocks: dict[tuple[object, ...], list[Row]] = {}
    for row in outcome.rows():
        known = row.paper is not None and not math.isnan(row.ours)
        keys = tuple(of(row.entrant, row.data, row.metric.name)) if known and of is not None else ()
        if len(keys) >= 3:
            blocks.setdefault(keys, []).append(row)
    whole = [rows for keys, rows in blocks.items() if len(rows) == len(keys)]
    if not whole:
        return None
    from scipy.stats import pearsonr, spearmanr

    correlations = [(_name(rows), float(spearmanr(*_both(rows)).statistic)) for rows in whole]
    every = _both([row for rows in whole for row in rows])
    return Shape(correlations, len(every[0]), float(pearsonr(*every).statistic))


def alike(outcome: Outcome) -> list[str]:
    """The sentence on the shape of a table, if that is what is compared."""
    found = shape(outcome)
    if found is None:
        return []
    ranks = "; ".join(f"{name}: {rank:.2f}" for name, rank in found.blocks)
    return [
        f"Shape against the paper's: r of all {found.n} numbers is {found.correlation:.3f}; Spearman's rank "
        f"correlation of {ranks}."
    ]


def _name(rows: list[Row]) -> str:
    return f"{rows[0].data} to {rows[-1].data}, {rows[0].metric.title}"


def _both(rows: list[Row]) -> tuple[list[float], list[float]]:
    return [float(row.paper or 0.0) for row in rows], [row.ours for row in rows]
