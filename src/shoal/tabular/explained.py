"""Explanations of a table's estimator: reasons for single forecasts, importances of columns, partial dependence.

Partial dependence: with x_C a column and x_R the rest of a row, the dependence on a value v is the mean forecast over
rows whose column is set to it (Friedman 2001, section 8.2),

    PD(v) = 1/n sum_i f(v, x_R,i)

and of a task the same over its rows. Names are those of `sklearn.inspection.partial_dependence`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier

from shoal.engine.arrays import FloatArray
from shoal.files.ids import id_of
from shoal.files.messages import plural
from shoal.files.tables.frames import as_frame
from shoal.files.tables.meanings import Setting
from shoal.html_tables import Listed, html_table
from shoal.model.explanations import SimilarTask
from shoal.model.importances import ImportanceChanges, Importances, changes, drawn
from shoal.tabular.reasons import Reasons
from shoal.tabular.since import Since, column_of_times

SHOWN_TASKS = 4
WIDEST = 16  # characters of a task's name


class PartialDependence(NamedTuple):
    """Mean forecasts over rows in which a column is set to each of its values.

    `str()` gives a table with the tasks of most rows, `to_frame()` all as a data frame, and `shoal.report.export` files
    of both and of the picture.
    """

    column: str
    unit: str  # of the forecasts: "probability of yes", "units"
    rows: int
    grid_values: list[Any]  # numbers, or words
    average: list[float]  # forecast for each value
    by_task: dict[Any, list[float]]  # the same of each task, those of most rows first; empty if rows have no tasks

    def __str__(self) -> str:
        return self.text()

    def text(self, tasks: int = SHOWN_TASKS) -> str:
        """A line for each value: the mean forecast over all rows, and in the tasks of most rows."""
        titles, *lines = self._table(tasks)
        first = max(len(cells[0]) for cells in (titles, *lines))
        table = [
            cells[0].ljust(first)
            + "".join(f"{cell:>{max(11, len(title) + 2)}}" for cell, title in zip(cells[1:], titles[1:], strict=True))
            for cells in (titles, *lines)
        ]
        return "\n".join([self._head(), *table])

    def to_frame(self) -> pl.DataFrame:
        """A polars data frame with a row for each task and value: task (null: over all rows), value, forecast."""
        plain = all(isinstance(task, str | int) for task in self.by_task) and len({*map(type, self.by_task)}) < 2
        of = [(None, self.average), *((task if plain else str(task), found) for task, found in self.by_task.items())]
        columns = {
            "task": [task for task, found in of for _ in found],
            self.column if self.column not in ("task", "forecast") else "value": self.grid_values * len(of),
            "forecast": [forecast for _, found in of for forecast in found],
        }
        return pl.DataFrame(columns, strict=False)

    def _repr_html_(self) -> str:
        titles, *lines = self._table(SHOWN_TASKS)
        return f"<p>{self._head()}</p>" + html_table(titles, lines)

    def _head(self) -> str:
        return f"mean {self.unit} over {plural(self.rows, 'row')} if {self.column} were"

    def _table(self, tasks: int) -> list[tuple[str, ...]]:
        some = list(self.by_task)[:tasks] if len(self.by_task) > 1 else []
        titles = (self.column, "all rows", *(_short(task) for task in some))
        columns = [self.average, *(self.by_task[task] for task in some)]
        lines = zip(*columns, strict=True)
        return [
            titles,
            *((_written(v), *(f"{one:.4g}" for one in line)) for v, line in zip(self.grid_values, lines, strict=True)),
        ]


def _short(task: Any) -> str:
    text = str(task)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 3]}..."


def _written(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def dependence_of(
    learner: Any, settings: Sequence[Setting], X: csr_matrix, task: Sequence[Any] | None, label: Any = None
) -> tuple[list[float], dict[Any, list[float]], Any]:
    """Mean forecasts of rows for each setting, over all and by task, and the label that they are about.

    Parameters
    ----------
    X : (n, n_features) rows
    task : (n,) their tasks
    label : of more than two labels, the one whose probability it is. [default: the most probable over these rows]
    """
    tasks = None if task is None else list(task)
    if is_classifier(learner) and label is None:
        classes = learner.classes_.tolist()
        label = classes[-1] if len(classes) == 2 else classes[int(_of_classes(learner, X, tasks).mean(axis=0).argmax())]
    found = np.stack([_forecasts(learner, _with(X, one), tasks, label) for one in settings])
    order: dict[Any, list[int]] = {}
    for i, one in enumerate(tasks or ()):
        order.setdefault(one, []).append(i)
    largest = sorted(order.items(), key=lambda pair: -len(pair[1]))
    return found.mean(axis=1).tolist(), {one: found[:, rows].mean(axis=1).tolist() for one, rows in largest}, label


def _with(X: csr_matrix, one: Setting) -> csr_matrix:
    """The rows with a column set to a value."""
    n, width = X.shape
    kept = X.copy()
    kept.data[np.isin(kept.indices, one.replaced)] = 0.0
    kept.eliminate_zeros()
    inside = one.features < width
    features, values = one.features[inside], one.values[inside]
    added = (np.tile(values, n), np.tile(features, n), np.arange(n + 1) * len(features))
    return csr_matrix(kept + csr_matrix(added, shape=X.shape))


def _forecasts(learner: Any, X: csr_matrix, task: Any, label: Any) -> FloatArray:
    if not is_classifier(learner):
        return np.asarray(learner.predict(X, task))
    return np.asarray(_of_classes(learner, X, task)[:, learner.classes_.tolist().index(label)])


def _of_classes(learner: Any, X: csr_matrix, task: Any) -> FloatArray:
    """(n, n_classes) probabilities, or margins."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X, task))
    margins = np.asarray(learner.decision_function(X, task))
    return np.column_stack([-margins, margins]) if margins.ndim == 1 else margins


def unit_of(learner: Any, target: str, label: Any) -> str:
    """The unit of forecasts: "probability of yes", "margin for yes", or the name of the target."""
    if not is_classifier(learner):
        return target
    return f"{'probability of' if hasattr(learner, 'predict_proba') else 'margin for'} {label}"


class Explained:
    """The explaining verbs of `TabularClassifier` and `TabularRegressor`, which know the table and read rows."""

    _fitted: Any
    _frame: Any
    _read: Any
    _to_predict: Any
    _inner: Any
    _task: Any

    def explain_one(self, x: Mapping[str, Any], *, label: Any = None) -> Reasons:
        """Why the forecast of one row is what it is, in the words and units of the table.

        Parameters
        ----------
        x : a row, a dict of its values by column
        label : of more than two, the one whose probability is explained. [default: the predicted one]

        Returns
        -------
        Reasons
            The forecast, what is usual, and the reasons, the largest first: `what` it is, its `share` of the
            probability (of numbers, of the number), and its parts of the decision that is `shared` by all tasks and
            the task's `own`. `str()` gives at most ten lines; `shoal explain` and the service say the same.

        Raises
        ------
        ValueError
            As `predict_one`; if the learner compares whole rows (kernels), or there is no such label.

        Examples
        --------
        >>> from shoal import TabularRegressor
        >>> rows = [{"shop": shop, "day": f"2026-03-{day:02}", "price": 2.5 + day % 3, "units": 9 - day % 3}
        ...         for day in range(1, 29) for shop in "ab"]
        >>> model = TabularRegressor(task="shop", label="units").fit(rows)
        >>> found = model.explain_one({"shop": "a", "day": "2026-03-30", "price": 4.5})
        >>> print(f"{found.forecast:.0f} {found.unit}, mostly by {found.reasons[0].what}")
        7 units, mostly by price 4.50
        """
        known = self._fitted()
        read = partial(known.table.reasons, label=None if label is None else self._inner(label))
        found: Reasons = self._read(read, known, as_frame([x]))[0]
        return found

    def importances(self, X: Any) -> Importances:
        """Which columns move the forecasts of these rows most, over all rows and in each task.

        Parameters
        ----------
        X : a table, as for `predict`
            Of more than 1,000 rows, 1,000 are drawn at random.

        Returns
        -------
        Importances
            As `Learner.importances` says; columns are those of the table.

        Raises
        ------
        ValueError
            As `predict`; if the learner compares whole rows (kernels).

        Examples
        --------
        >>> from shoal import TabularRegressor
        >>> rows = [{"shop": shop, "day": f"2026-03-{day:02}", "price": 2.5 + day % 3, "units": 9 - day % 3}
        ...         for day in range(1, 29) for shop in "ab"]
        >>> found = TabularRegressor(task="shop", label="units").fit(rows).importances(rows)
        >>> found.overall[0].column, list(found.by_task)
        ('price', ['a', 'b'])
        """
        table, (rows, task) = self._fitted().table, self._to_predict(X)
        known = table.encoder.feature_columns[: rows.shape[1]]
        columns = [*known, *[None] * (rows.shape[1] - len(known))]
        found: Importances = table.learner.importances(rows, task, columns=columns)
        return found._replace(by_task={self._task(one): means for one, means in found.by_task.items()})

    def importance_changes(self, X: Any, since: Any, *, column: str | None = None) -> ImportanceChanges:
        """Which columns move the forecasts more, or less, since a day or a row: what changed in the rows of a stream.

        Parameters
        ----------
        X : a table, as for `predict`
            Of each part 1,000 rows are drawn at random, if it has more.
        since : int, or a date (text, date or datetime)
            The number of the first row of the second part, or the earliest time in it.
        column : str, optional
            The column of times. [default: `time`, else the first column of dates]

        Returns
        -------
        ImportanceChanges
            `overall` and `by_task`, the largest change first: the `change` of what a column adds to forecasts in the
            mean, as `importances` has it, `before` and `since`; all by the model as it is now.

        Raises
        ------
        ValueError
            As `importances`; if there is no column of dates, or a part has no rows.

        Examples
        --------
        >>> from shoal import TabularRegressor
        >>> rows = [{"shop": shop, "day": f"2026-{month:02}-{day:02}", "price": 3.0 + day % 3,
        ...          "offer": month > 2 and day % 2 == 0, "units": 9.0 - day % 3 + 4.0 * (month > 2 and day % 2 == 0)}
        ...         for month in (1, 2, 3, 4) for day in range(1, 29) for shop in "ab"]
        >>> model = TabularRegressor(task="shop", label="units", time="day", category=["offer"]).fit(rows)
        >>> for one in model.importance_changes(rows, since="2026-03-01").overall[:2]:
        ...     print(f"{one.column}: moved forecasts by {one.before:.2f} units, now by {one.since:.2f}")
        offer: moved forecasts by 1.64 units, now by 2.00
        day: moved forecasts by 0.43 units, now by 0.19
        >>> print(f"R^2 {model.score(rows):.2f}")
        R^2 0.98
        """
        known = self._fitted()
        table, frame = known.table, self._frame(X, known)
        by_row = isinstance(since, int) and not isinstance(since, bool)
        named = None if by_row else column_of_times(column or table.roles.time, table.encoder.column_kinds)
        cut = Since(since, named, frame, table.notation)
        after = cut.of(frame)
        cut.check(int((~after).sum()), int(after.sum()))
        first, second = (self.importances(frame.filter(pl.Series(mask))) for mask in (~after, after))
        return changes(first, second, since)

    def partial_dependence(
        self, X: Any, column: str, values: Sequence[Any] | None = None, *, label: Any = None
    ) -> PartialDependence:
        """How the forecasts of these rows change with one column, over all rows and in each task.

        Of each value v the mean forecast ``PD(v) = 1/n sum_i f(v, the rest of row i)`` over the rows with the column
        set to v; of a task, over its rows.

        Parameters
        ----------
        X : a table, as for `predict`
            Of more than 1,000 rows, 1,000 are drawn at random.
        column : str
            One that is a feature. The forecast follows it where the model has learned so; that is no cause.
        values : values of the column, optional
            [default: deciles of numbers, the ten most frequent categories, the weekdays, months and hours of dates]
        label : of more than two, the one whose probability it is. [default: the most probable one of these rows]

        Returns
        -------
        PartialDependence
            `grid_values`, their `average` forecasts, and `by_task` those of each task: probabilities of the larger of
            two labels, or numbers.

        Raises
        ------
        ValueError
            As `predict`; if the model has no such column, or it holds text and `values` is missing.

        References
        ----------
        Friedman. Greedy Function Approximation: A Gradient Boosting Machine. Annals of Statistics, 2001, section 8.2.

        Examples
        --------
        >>> import numpy as np
        >>> from shoal import TabularRegressor
        >>> rows = [{"shop": shop, "price": price, "units": 20.0 - (1 + (shop == "b")) * price}
        ...         for price in np.random.default_rng(0).uniform(2.0, 6.0, 300).round(2) for shop in "ab"]
        >>> found = TabularRegressor(task="shop", label="units").fit(rows).partial_dependence(rows, "price", [2.5, 5.0])
        >>> print(found)
        mean units over 600 rows if price were
        price   all rows          a          b
        2.5        16.25      17.49      15.01
        5           12.5      14.99         10
        >>> print(f"mean error {np.abs(np.array(found.average) - [16.25, 12.5]).mean():.2f}")
        mean error 0.00
        """
        table, (rows, task) = self._fitted().table, self._to_predict(X)
        some = drawn(rows.shape[0])
        tasks = None if task is None else [task[i] for i in some.tolist()]
        inner = None if label is None else self._inner(label)
        found: PartialDependence = table.dependence(column, csr_matrix(rows)[some], tasks, values, inner)
        return found._replace(by_task={self._task(one): means for one, means in found.by_task.items()})

    def similar_tasks(self, task: Hashable, n: int = 5) -> list[SimilarTask]:
        """The tasks most like one, as `Learner.similar_tasks` says."""
        found = self._fitted().table.learner.similar_tasks(id_of(task), n)
        return Listed(one._replace(task=self._task(one.task)) for one in found)
