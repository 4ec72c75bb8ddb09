"""Which columns matter: their contributions to the decisions on some rows, in the mean over all and in each task.

`explanations` takes one decision apart; these are the means of its parts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.html_tables import html_table
from shoal.model.explanations import Parts, bare, names_of

MOST_ROWS = 1_000  # drawn at random, if there are more
SHOWN = 10  # columns
TITLES = ("share", "added", "shared", "own")
CHANGE_TITLES = ("change", "before", "since", "share before", "share since")


class Importance(NamedTuple):
    """The importance of a column: the size of its contribution, in the mean over rows."""

    column: Any
    share: float  # of what all columns add, from 0 to 1
    added: float  # to the forecast: of a probability, of the number, or of the margin
    shared: float  # by what all tasks share
    own: float  # by what the row's task has of its own


class Importances(NamedTuple):
    """The contribution of each column to decisions, the largest first; `str()` gives a table of ten columns.

    A column's contribution to the decision on a row is that of its features in `explain_one`, of a pair of columns half
    to each; times the slope of the forecast (`learner.forecast_slopes`) it is what it adds to the probability or the
    number. `added` is the mean of its absolute value, `share` its part of the sum over all columns.
    """

    rows: int
    overall: list[Importance]
    by_task: dict[Any, list[Importance]]  # over the rows of each task; empty if the rows have no tasks

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = SHOWN) -> str:
        """A line for each of the first columns."""
        lines = _lines(self.overall, most)
        width = max((len(name) for name, *_ in lines), default=0)
        table = [("", *TITLES), *lines]
        return "\n".join(
            f"{name:<{width}}" + "".join(f"{cell:>12}" for cell in cells if cell) for name, *cells in table
        )

    def _repr_html_(self) -> str:
        return html_table(("", *TITLES), _lines(self.overall, SHOWN))


class ImportanceChange(NamedTuple):
    """How much more, or less, a column adds in one part of a stream than in another."""

    column: Any
    change: float  # of what it adds
    before: float  # added to the forecast, in the mean over the rows before
    since: float
    share_before: float  # of what all columns add
    share_since: float


class ImportanceChanges(NamedTuple):
    """Contributions of columns before and since a row or a time, the largest change first; `str()` gives ten."""

    since: Any
    rows: tuple[int, int]  # that were looked at, before and since
    overall: list[ImportanceChange]
    by_task: dict[Any, list[ImportanceChange]]  # of tasks that have rows in both parts

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = SHOWN) -> str:
        """A line for each of the first columns."""
        lines = _changed(self.overall, most)
        width = max((len(name) for name, *_ in lines), default=0)
        table = [("", *CHANGE_TITLES), *lines]
        return "\n".join(
            f"{name:<{width}}"
            + "".join(f"{cell:>{max(12, len(title) + 2)}}" for cell, title in zip(cells, CHANGE_TITLES, strict=True))
            for name, *cells in table
        )

    def _repr_html_(self) -> str:
        return html_table(("", *CHANGE_TITLES), _changed(self.overall, SHOWN))


def changes(before: Importances, since: Importances, at: Any) -> ImportanceChanges:
    """The changes between the importances of two parts of a stream."""
    both = [task for task in before.by_task if task in since.by_task]
    by_task = {task: _change(before.by_task[task], since.by_task[task]) for task in both}
    return ImportanceChanges(at, (before.rows, since.rows), _change(before.overall, since.overall), by_task)


def _change(before: Sequence[Importance], since: Sequence[Importance]) -> list[ImportanceChange]:
    nothing = Importance(None, 0.0, 0.0, 0.0, 0.0)
    first, second = ({one.column: one for one in part} for part in (before, since))
    found = []
    for column in first | second:
        a, b = first.get(column, nothing), second.get(column, nothing)
        found.append(ImportanceChange(column, b.added - a.added, a.added, b.added, a.share, b.share))
    return sorted(found, key=lambda one: -abs(one.change))


def _changed(found: Sequence[ImportanceChange], most: int) -> list[tuple[str, ...]]:
    return [
        (
            _name(one.column),
            f"{one.change:+.4g}",
            *(f"{value:.4g}" for value in (one.before, one.since)),
            *(f"{value:.1%}" for value in (one.share_before, one.share_since)),
        )
        for one in found[:most]
    ]


def _lines(found: Sequence[Importance], most: int) -> list[tuple[str, ...]]:
    lines = [(_name(one.column), f"{one.share:.1%}", *(f"{value:.4g}" for value in one[2:])) for one in found[:most]]
    rest = found[most:]
    if rest:
        lines.append((f"({len(rest):,} more)", f"{sum(one.share for one in rest):.1%}", "", "", ""))
    return lines


def _name(column: Any) -> str:
    return f"column {column}" if isinstance(column, int) else str(column)


def importances(
    model: Any,
    cores: dict[Any, Any],
    X: Any,
    task: Any,
    predict: Callable[[], Any],
    columns: Sequence[Any] | None,
    slopes: Callable[[FloatArray, FloatArray, IntArray], FloatArray],
) -> Importances:
    """Contributions of columns to the forecasts of a table's rows, by the core of each row's predicted label.

    Parameters
    ----------
    slopes : function of decisions without any column, decisions, and the numbers of the rows: the forecasts' slopes
    columns : the column of each feature; None: of none. Default: each feature is a column.

    Raises
    ------
    ValueError
        If the decisions are no sums over features, the rows are none that `predict` takes, or there are no rows.
    """
    rounds = model.rows_to_decide(X, task)
    n = len(rounds.task)
    if columns is None:
        columns = [*map(names_of(model.features), range(model.features.count))]
    if len(columns) != model.features.count:
        raise ValueError(f"columns must name the column of each of {model.features.count} features, got {len(columns)}")
    rows = drawn(n)
    labels = predict().tolist() if len(cores) > 1 else [*cores] * n
    number: dict[Any, int] = {}
    column = np.array([-1 if name is None else number.setdefault(name, len(number)) for name in columns], np.int64)
    added, ends = zip(*(_added(bare(cores[labels[i]]), rounds, i, column) for i in rows.tolist()), strict=True)
    lengths, table, names = [len(one) for one in added], np.concatenate(added), list(number)
    base, decision = np.array(ends).T
    table[:, 1:] *= np.repeat(slopes(base, decision, rows), lengths)[:, None]
    of_row = np.split(table, np.cumsum(lengths)[:-1])
    ids = [] if task is None else [*task]
    of_task: dict[Any, list[int]] = {}
    for k, i in enumerate(rows.tolist() if ids else []):
        of_task.setdefault(ids[i].item() if isinstance(ids[i], np.generic) else ids[i], []).append(k)
    by_task = {
        one: _means(np.concatenate([of_row[k] for k in some]), len(some), names) for one, some in of_task.items()
    }
    return Importances(len(rows), _means(table, len(rows), names), by_task)


def drawn(n: int) -> IntArray:
    """The numbers of n rows; of more than 1,000, those of 1,000 drawn at random."""
    return np.arange(n) if n <= MOST_ROWS else np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))


def _added(core: Any, rounds: Rounds, i: int, column: Any) -> tuple[FloatArray, tuple[float, float]]:
    """(columns of the row, 4): number of the column, and what it adds to the decision: in all, shared, own.

    And the decision without any column, and the whole.
    """
    features, values = _entries(rounds, i)
    parts: Parts = core.contributions(rounds.task[i : i + 1], features, values)
    of = [column[features]]
    both = [np.column_stack([parts.shared[0, 1:], parts.own[0, 1:]])]
    if len(parts.pairs):
        halves = np.column_stack([parts.pairs_shared, parts.pairs_own]) / 2.0
        for side in range(2):
            of.append(column[np.array([pair[side].feature for pair in parts.pairs], np.int64)])
            both.append(halves)
    found, place = np.unique(np.concatenate(of), return_inverse=True)
    sums = np.zeros((len(found), 2))
    np.add.at(sums, place.reshape(-1), np.concatenate(both))
    table = np.column_stack([found, np.abs(sums.sum(axis=1)), np.abs(sums)])
    base = float(parts.shared[0, 0] + parts.own[0, 0] + sums[found < 0].sum())
    return np.asarray(table[found >= 0]), (base, base + float(sums[found >= 0].sum()))


def _entries(rounds: Rounds, i: int) -> tuple[IndexArray, FloatArray]:
    """Columns and values of the features of a row that are not 0."""
    if rounds.width:
        values = rounds.values[i * rounds.width : (i + 1) * rounds.width]
        indices = np.arange(rounds.width, dtype=np.int32)
    else:
        own = slice(int(rounds.indptr[i]), int(rounds.indptr[i + 1]))
        indices, values = rounds.indices[own], rounds.values[own]
    return indices[values != 0.0], values[values != 0.0]


def _means(table: FloatArray, n_rows: int, names: Sequence[Any]) -> list[Importance]:
    """The importance of each column that adds something, the largest first."""
    sums = np.zeros((len(names), 3))
    np.add.at(sums, table[:, 0].astype(np.int64), table[:, 1:])
    means, total = sums / n_rows, float(sums[:, 0].sum()) / n_rows
    order = np.argsort(-means[:, 0], kind="stable")
    return [
        Importance(names[j], float(means[j, 0]) / total, *means[j].tolist())
        for j in order.tolist()
        if means[j].any() and total
    ]
