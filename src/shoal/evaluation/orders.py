"""Learners over several orders of the same rows: is a difference more than the luck of the order?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import shuffle

from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import Chunk
from shoal.evaluation.comparison import critical_difference, holm, signed_rank_p
from shoal.evaluation.learner_ranks import LEVEL, conclusion_of, mean_ranks
from shoal.evaluation.progressive import progressive_validate
from shoal.evaluation.result import Evaluation, higher_is_better, label, main_metric, number
from shoal.evaluation.stream import as_chunks
from shoal.extras import named_extra
from shoal.html_tables import html_table
from shoal.model.slicing import joined, len_of
from shoal.parallel.jobs import results
from shoal.progress import shown

if TYPE_CHECKING:
    import polars as pl

TITLES = ("learner", "mean", "deviation", "mean rank", "behind", "p")


class Place(NamedTuple):
    """One learner among several, over orders; the best has the first."""

    name: str
    mean: float  # of the score that ranks
    deviation: float  # of it, over orders
    mean_rank: float  # 1 is best; equal ones share the mean of their ranks
    behind: float  # the best, in the mean; positive whichever way the metric points
    p_value: float  # Wilcoxon's signed rank test against the best, over orders, two-sided, after Holm's correction

    @property
    def is_clear(self) -> bool:
        """Whether the best is ahead of it beyond the luck of the order (5 %)."""
        return self.p_value < LEVEL


@dataclass(frozen=True)
class Orders:
    """The result of `compare_orders`; `str()` gives the table, `to_frame()` a polars data frame.

    Orders of the same rows are no independent data: p-values and the critical difference say how much of a difference
    is the luck of the order, and not what other data would say.
    """

    metric: str  # that ranks, by its mean over tasks
    seeds: list[int]
    evaluations: dict[str, list[Evaluation]]  # by learner, one an order; without the models and the scores of tasks

    def scores(self, metric: str | None = None, *, macro: bool = True) -> dict[str, FloatArray]:
        """The scores of each learner, one an order; by default those that rank."""
        name = metric or self.metric
        return {
            learner: np.array([(one.macro if macro else one.overall)[name] for one in found])
            for learner, found in self.evaluations.items()
        }

    @property
    def places(self) -> list[Place]:
        """The learners, the best mean first; one without a score in some order comes last, without a rank."""
        sign = 1.0 if higher_is_better(self.metric) else -1.0
        scores = self.scores()
        whole = {name: sign * values for name, values in scores.items() if np.isfinite(values).all()}
        order = sorted(whole, key=lambda name: -float(whole[name].mean()))
        table = np.array([whole[name] for name in order])
        ranks = mean_ranks(table) if order else np.zeros(0)
        p_values = [1.0, *holm([min(1.0, 2.0 * signed_rank_p(table[0] - other)) for other in table[1:]])]
        found = [
            Place(name, sign * float(own.mean()), _deviation(own), float(rank), float((table[0] - own).mean()), p)
            for name, own, rank, p in zip(order, table, ranks, p_values, strict=False)
        ]
        nan = float("nan")
        return found + [Place(name, nan, nan, nan, nan, nan) for name in scores if name not in whole]

    @property
    def critical_difference(self) -> float:
        """Nemenyi's: mean ranks that differ by less are alike (5 %). Demsar, JMLR 7, 2006; NaN with fewer than two."""
        k = sum(not np.isnan(place.mean_rank) for place in self.places)
        return critical_difference(k, len(self.seeds)) if k > 1 and len(self.seeds) > 1 else float("nan")

    @property
    def conclusion(self) -> str:
        """A sentence that names the best learner and those that it may have beaten by chance."""
        ranked = [(one.name, one.is_clear) for one in self.places if not np.isnan(one.mean_rank)]
        return conclusion_of(ranked, len(self.seeds), "orders")

    def to_frame(self, of: str = "learners") -> pl.DataFrame:
        """The numbers as a polars data frame.

        Parameters
        ----------
        of : "learners", "orders" or "history"
            One row a learner (the mean and deviation over orders of every score, and its place), a learner and order
            (all scores), or a learner, order and checkpoint.
        """
        with named_extra("to_frame"):
            import polars as pl

        if of == "learners":
            return pl.DataFrame(
                [one._asdict() | self._means(one.name) for one in self.places], infer_schema_length=None
            )
        if of not in ("orders", "history"):
            raise ValueError(f'of must be "learners", "orders" or "history", got {of!r}')
        records: list[dict[str, Any]] = []
        for name, found in self.evaluations.items():
            for seed, one in zip(self.seeds, found, strict=True):
                own: dict[str, Any] = {"learner": name, "seed": seed}
                macro = {f"macro_{metric}": value for metric, value in one.macro.items()}
                if of == "history":
                    records += [own | record for record in one.to_frame("history").to_dicts()]
                else:
                    records.append(own | one.overall | macro | {"seconds": one.wall_seconds})
        return pl.DataFrame(records, infer_schema_length=None)

    def _means(self, name: str) -> dict[str, float]:
        means: dict[str, float] = {}
        for macro, prefix in ((False, ""), (True, "macro_")):
            for metric in self.evaluations[name][0].overall:
                values = self.scores(metric, macro=macro)[name]
                means |= {f"{prefix}{metric}": float(values.mean()), f"{prefix}{metric}_deviation": _deviation(values)}
        return means

    def table(self) -> list[tuple[str, ...]]:
        """Titles and rows in words that fit a cell."""
        titles = (TITLES[0], f"macro-{label(self.metric)}", "±", *TITLES[3:])
        rows = [
            (
                one.name,
                number(one.mean),
                number(one.deviation),
                f"{one.mean_rank:.2f}",
                number(one.behind),
                f"{one.p_value:.2g}",
            )
            for one in self.places
        ]
        return [titles, *((*row[:4], "", "") if i == 0 else row for i, row in enumerate(rows))]

    def __str__(self) -> str:
        table = self.table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]).rstrip() for cells in table
        ]
        return "\n".join([*lines, *self.sentences()])

    def sentences(self) -> list[str]:
        """The conclusion, and how to read the ranks."""
        if np.isnan(self.critical_difference):
            return [self.conclusion]
        return [
            self.conclusion,
            f"Mean ranks that differ by less than {self.critical_difference:.2f} are alike (Nemenyi, 5 %).",
        ]

    def __repr__(self) -> str:
        return f"Orders({len(self.seeds)} orders of {len(self.evaluations)} learners: {self.conclusion})"

    def _repr_html_(self) -> str:
        titles, *rows = self.table()
        return html_table(titles, rows) + "".join(f"<p>{escape(text)}</p>" for text in self.sentences())


def compare_orders(
    learners: Mapping[str, Any],
    data: Any,
    *,
    seeds: int | Sequence[int] = 30,
    n_jobs: int | None = None,
    progress: bool = False,
    **protocol: Any,
) -> Orders:
    """Run learners over several orders of the same rows, each row predicted before it is learned.

    Parameters
    ----------
    learners : dict of name -> learner
        They stay as they are: each order has copies, whose `random_state`, if they have one, is the order's seed.
    data : `(X, y, task)`, a data set, or what else `progressive_validate` takes
        Rows without rounds, which are held in memory.
    seeds : int or sequence of int
        One an order, which shuffles the rows; a number n stands for 0 to n - 1. A difference can be clear at 5 % from
        6 orders on, among k learners from 1 + log2((k - 1) / 0.05) on.
    n_jobs : int, optional
        Processes, by joblib.
    progress : bool
        Show how many orders are done.
    protocol :
        Of `progressive_validate`: metrics, window, delay, checkpoints, classes, class_weight.

    Raises
    ------
    ValueError
        If there are no learners, seeds or rows, or rows come in rounds.

    References
    ----------
    Demsar. Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006: ranks, Nemenyi's difference.

    Examples
    --------
    >>> from shoal import MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=10, n_features=20, n_rows=1000, relatedness=0.9, noise=0.0, seed=1)
    >>> learners = {f"b = {b}": MultitaskPerceptron(relation=b) for b in (0.0, 10.0)}
    >>> found = compare_orders(learners, data, seeds=6, metrics=["error"])
    >>> [(one.name, round(one.mean, 2)) for one in found.places]
    [('b = 10.0', 0.16), ('b = 0.0', 0.26)]
    """
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not learners or not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"expected learners and different seeds, got {len(learners)} learners and seeds {numbers}")
    rows = _all_rows(data)
    if "classes" not in protocol and all(is_classifier(one) for one in learners.values()):
        labels = np.unique(np.asarray(rows.y))
        protocol["classes"] = labels if len(labels) == 2 else None
    jobs = [(dict(learners), rows, seed, protocol) for seed in numbers]
    found = list(shown(results(_in_order, jobs, n_jobs), len(jobs), "orders", when=progress))
    evaluations = {name: [one[name] for one in found] for name in learners}
    return Orders(main_metric(found[0][next(iter(learners))]), numbers, _without_models(evaluations))


def _all_rows(data: Any) -> Chunk:
    rows: Chunk | None = None
    for chunk in as_chunks(data, {}):
        if chunk.rounds is not None:
            raise ValueError("rows that come in rounds have one order; compare_orders shuffles single rows")
        rows = chunk if rows is None else Chunk(*map(_joined, rows, chunk))
    if rows is None or len_of(rows.y) == 0:
        raise ValueError("the data has no rows")
    return rows


def _joined(first: Any, then: Any) -> Any:
    return None if then is None else joined(first, then)


def _in_order(
    learners: Mapping[str, Any], rows: Chunk, seed: int, protocol: Mapping[str, Any]
) -> dict[str, Evaluation]:
    """The evaluations of one order."""
    columns = {name: part for name, part in rows._asdict().items() if part is not None}
    shuffled = dict(zip(columns, shuffle(*columns.values(), random_state=seed), strict=True))
    fresh = {name: _seeded(learner, seed) for name, learner in learners.items()}
    found: dict[str, Evaluation] = progressive_validate(fresh, [rows._replace(**shuffled)], **protocol)
    return found


def _seeded(learner: Any, seed: int) -> Any:
    """A fresh copy with this seed."""
    copy = clone(learner, safe=False)
    if hasattr(copy, "get_params") and "random_state" in copy.get_params(deep=False):
        copy.set_params(random_state=seed)
    return copy


def _without_models(found: Mapping[str, Sequence[Evaluation]]) -> dict[str, list[Evaluation]]:
    return {
        name: [replace(one, learner=None, per_task={}, windowed_per_task={}, trends=None) for one in of]
        for name, of in found.items()
    }


def _deviation(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
