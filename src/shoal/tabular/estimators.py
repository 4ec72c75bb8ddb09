"""`TabularClassifier`, `TabularRegressor`: tables in, forecasts out; a learner and the reader of its rows as one."""

import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError

from shoal.engine.arrays import FloatArray
from shoal.files.ids import id_of, typed
from shoal.files.labels import MANY, Target, cost_of
from shoal.files.messages import unknown_name
from shoal.files.options import ReadOptions
from shoal.files.tables.encode_one import Row, Unread
from shoal.files.tables.frames import as_frame, as_series, as_table
from shoal.files.tables.reader import KINDS
from shoal.learner import Learner, Method, available_if, probabilities, weights_for
from shoal.model.sample_weight import read_weights
from shoal.model.slicing import as_wide
from shoal.model_file import Reading, load_model
from shoal.online.hedged_sharing.learner import HedgedSharing, HedgedSharingRegressor
from shoal.tabular.explained import Explained
from shoal.tabular.table_model import OPTIONS, TableModel
from shoal.wrappers.hierarchy import with_hierarchy
from shoal.wrappers.multi_class import MultiClass
from shoal.wrappers.outside_forecast import with_forecasts

T = TypeVar("T")
NAMES = ("label", "target", "y")  # of a label that has none: the first that is no column
IN_PYTHON = {
    "kind='multiclass' takes more labels, kind='regression' any number": (
        "classes=[...] of partial_fit names all that come, and more than two"
    ),
    "kind='multiclass' takes them": "estimator=MultiClass(...) takes them",
    " (sort= sorts them first)": "",
}
"""Advice of the readers' messages, in the words of Python."""


class Known(NamedTuple):
    """The learned state of an estimator."""

    table: TableModel
    columns: list[str]  # of X as it came first
    n_first: int  # columns of features among them


class Tabular(Explained, BaseEstimator):  # type: ignore[misc]
    """The base of the classifier and the regressor."""

    _known: Known | None = None
    _one_row: Any = None  # reads single rows, until the next row is learned

    def __init__(
        self,
        task: str | int | Sequence[str] | None = None,
        estimator: Any = None,
        *,
        hierarchy: bool = False,
        label: str | None = None,
        weight: str | None = None,
        time: str | None = None,
        text: Sequence[str] = (),
        category: Sequence[str] = (),
        numeric: Sequence[str] = (),
        date: Sequence[str] = (),
        forecast: Sequence[str] = (),
        ignore: Sequence[str] = (),
        date_format: str | None = None,
        decimal: str | None = None,
        missing: Sequence[str] = (),
        hash_bits: int = 18,
        keep_names: bool = False,
        strict: bool = False,
        new_columns: int = 0,
    ) -> None:
        self.task = task
        self.estimator = estimator
        self.hierarchy = hierarchy
        self.label = label
        self.weight = weight
        self.time = time
        self.text = text
        self.category = category
        self.numeric = numeric
        self.date = date
        self.forecast = forecast
        self.ignore = ignore
        self.date_format = date_format
        self.decimal = decimal
        self.missing = missing
        self.hash_bits = hash_bits
        self.keep_names = keep_names
        self.strict = strict
        self.new_columns = new_columns

    # ---- learning ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Forget everything, declare all tasks of the rows, then learn them in one pass, in order.

        Parameters
        ----------
        X : data frame (pandas, polars, Arrow), list of dicts, or (n, d) array, whose columns are called "0", "1", ...
        y : (n,) labels or targets; None: the column `label` of X
        sample_weight : (n,) how often each row counts; None: the column `weight` of X, or each once

        Raises
        ------
        ValueError
            If a row cannot be read, by its number; then nothing changes.
        """
        self._learn("fit", None, X, y, None, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in order; of a new model the first ones decide the kinds of the columns.

        `classes` names the labels that may come, where the first rows do not have them all.
        """
        self._learn("partial_fit", self._known, X, y, classes, sample_weight)
        return self

    def test_then_train(self, X: Any, y: Any = None, *, classes: Any = None, sample_weight: Any = None) -> FloatArray:
        """Learn like `partial_fit`; return the decision values given *before* learning each row (or round)."""
        return np.asarray(self._learn("test_then_train", self._known, X, y, classes, sample_weight))

    def learn_one(
        self, x: Mapping[str, Any], y: Any = None, *, classes: Any = None, sample_weight: float = 1.0
    ) -> None:
        """Learn one row, a dict of its values by column; `y` None: the label is among them.

        `classes` of a new model are the labels that may come.
        """
        known = self._known
        if known is not None and sample_weight == 1.0 and isinstance(learner := known.table.learner, Learner):
            rows = known.table.rows
            rows.encoder.unmatched.strict = self.strict
            try:
                row, label, task = rows.learn_one(x, x.get(str(rows.roles.label)) if y is None else y)
            except Unread:
                pass
            else:
                self._one_row = None
                rows.encoder.unmatched.warn()
                self._learn_row(learner, row, label, task)
                return
        weight = None if sample_weight == 1.0 else [sample_weight]
        self._learn("partial_fit", self._known, [x], None if y is None else [y], classes, weight)

    def _learn_row(self, learner: Learner, row: Row, label: Any, task: str | None) -> None:
        """Learn one row of features, which may be new."""
        if (wider := len(self._fitted().table.encoder.feature_names) - learner.n_features_in_) > 0:
            learner.add_features(wider)
        if not learner.learn_sparse(row, label, task):
            X = csr_matrix((row.values, row.indices, [0, len(row.indices)]), shape=(1, learner.n_features_in_))
            learner.partial_fit(X, [label], None if task is None else [task])

    def _learn(self, verb: str, known: Known | None, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
        frame = self._frame(X, known)
        if frame.height == 0:
            raise ValueError("Found array with 0 sample(s): X has no rows, expected at least one")
        label, floats = self._label(frame, y, None if known is None else str(known.table.roles.label))
        read_weights(sample_weight, frame.height)
        known = known or self._begun(frame, label, classes, floats)
        table = known.table
        learner, weight = table.learner, table.roles.weight
        if not hasattr(learner, verb):
            raise ValueError(f"{type(learner).__name__} learns all rows at once: use fit, or an online learner")
        frame = frame.with_columns(label)
        if weight is not None and (sample_weight is not None or weight not in frame.columns):
            frame = frame.with_columns(
                as_series(weight, np.ones(len(label)) if sample_weight is None else sample_weight)
            )
        arguments = weights_for(learner, sample_weight)
        table.rows.most_columns = known.n_first + self.new_columns
        try:
            chunk = self._read(table.to_learn, known, frame)
        except ValueError as error:
            message = str(error)
            for advice, own in IN_PYTHON.items():
                message = message.replace(advice, own)
            raise ValueError(message) from None
        if chunk.weight is not None and (chunk.weight != 1.0).any():
            arguments = weights_for(learner, chunk.weight)
        if verb != "fit" and table.labels.given and table.labels.kind == "binary":
            arguments["classes"] = table.labels.classes
        self._one_row = None
        if self._known is known and (wider := chunk.X.shape[1] - learner.n_features_in_) > 0:
            learner.add_features(wider)
        found = getattr(learner, verb)(chunk.X, chunk.y, chunk.task, **arguments)
        if self._known is not known:
            self._remember(known)
        return found

    def _remember(self, known: Known) -> None:
        self._known = known
        self.feature_names_in_, self.n_features_in_ = np.array(known.columns, np.object_), len(known.columns)

    def _begun(self, frame: pl.DataFrame, label: pl.Series, classes: Any, floats: bool) -> Known:
        """A new model, whose columns and labels the first rows decide."""
        tasks = [self.task] if isinstance(self.task, str | int) else list(self.task or ())
        for name in KINDS:
            for column in getattr(self, name):
                if column not in frame.columns:
                    raise ValueError(unknown_name("X has no column", column, frame.columns))
        learner, kind, labels = _new_learner(self.estimator, label, classes, numbers=not is_classifier(self))
        if self.hierarchy:
            if len(tasks) < 2:
                raise ValueError("hierarchy=True needs two task columns or more, as in task=['country', 'shop']")
            learner = with_hierarchy(learner)
        if self.forecast:
            learner = with_forecasts(learner, len(self.forecast))
        options = ReadOptions(
            task=[str(name) for name in tasks],
            label=label.name,
            kind=kind,
            labels=labels,
            **{name: getattr(self, name) for name in OPTIONS},
        )
        self._check_tasks(options.tasks, frame)
        columns = [name for name in frame.columns if name != label.name]
        table = TableModel.begun(learner, options, frame.with_columns(label), floats=floats)
        table.labels.asked = labels is not None or isinstance(self.estimator, MultiClass)
        if getattr(learner, "classes", None) is not None:
            learner.set_params(classes=table.labels.classes)
        return Known(table, columns, len(table.encoder.column_names))

    def _label(self, frame: pl.DataFrame, y: Any, name: str | None) -> tuple[pl.Series, bool]:
        """The labels by the name of their column, and whether whole numbers came as floats."""
        if name is None:
            name = self.label or getattr(y, "name", None)
            if not isinstance(name, str) or not name:
                name = next(one for one in (*NAMES, "label of the row") if one not in frame.columns)
        if y is not None:
            column = as_series(name, y)
            if len(column) != frame.height:
                raise ValueError(f"y must hold one value per row: expected {frame.height} values, got {len(column)}")
        elif name in frame.columns:
            column = frame[name]
        else:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if not is_classifier(self) or not column.dtype.is_float():
            return column, False
        whole = column.fill_nan(None).cast(pl.Int64, strict=False)
        odd = (whole.cast(pl.Float64) != column.fill_nan(None)).arg_true().to_list()
        if odd:
            raise ValueError(f"Unknown label type: continuous. Row {odd[0]}: expected a label, got {column[odd[0]]}")
        return whole, True

    def _truth(self, X: Any, y: Any) -> Any:
        """The labels to hold forecasts against."""
        if y is not None:
            return y
        known = self._fitted()
        return self._label(self._frame(X, known), None, str(known.table.roles.label))[0].to_list()

    # ---- reading -------------------------------------------------------------------------------------------

    def _frame(self, X: Any, known: Known | None) -> pl.DataFrame:
        """The table, whatever it is; columns of an array have the names of the first table, or their numbers."""
        return as_table(X, () if known is None else known.columns)

    def _read(self, read: Callable[[pl.DataFrame], T], known: Known, frame: pl.DataFrame) -> T:
        """The rows as features; columns that do not fit are named once, each in a warning."""
        self._check_tasks(known.table.roles.tasks, frame)
        unmatched = known.table.encoder.unmatched
        unmatched.strict = self.strict
        found = read(frame)
        unmatched.warn()
        return found

    def _check_tasks(self, tasks: Sequence[str], frame: pl.DataFrame) -> None:
        for name in tasks:
            if name not in frame.columns:
                raise ValueError(unknown_name("X has no column", name, frame.columns))

    def _to_predict(self, X: Any) -> tuple[Any, Any]:
        """The rows as features that the learner knows, and their tasks."""
        known = self._fitted()
        chunk = self._read(known.table.to_predict, known, self._frame(X, known))
        return as_wide(chunk.X, known.table.learner.n_features_in_), chunk.task

    def _one(self, x: Mapping[str, Any]) -> tuple[Row, str | None]:
        """One row as features, and its task."""
        known = self._fitted()
        if self._one_row is None:
            self._one_row = known.table.rows.one_row()
        unmatched = known.table.encoder.unmatched
        unmatched.strict = self.strict
        try:
            task, row = known.table.rows.task_of(x), self._one_row.read(x)
            unmatched.warn()
            return row, task
        except Unread:
            chunk = self._read(known.table.to_predict, known, as_frame([x]))
            return Row(chunk.X.indices, chunk.X.data), None if chunk.task is None else chunk.task[0]

    def _one_as_table(self, x: Mapping[str, Any]) -> tuple[Any, list[str] | None]:
        (indices, data), task = self._one(x)
        n = self.estimator_.n_features_in_
        inside = indices < n
        X = csr_matrix((data[inside], indices[inside], [0, int(inside.sum())]), shape=(1, n))
        return X, None if task is None else [task]

    # ---- columns and tasks -----------------------------------------------------------------------------------

    def drop_columns(self, names: Sequence[str]) -> Self:
        """Use these columns no more, neither to learn nor to predict. Raises ValueError if one is not known."""
        known = self._fitted()
        known.table.drop_columns([names] if isinstance(names, str) else list(names))
        self._one_row = None
        return self

    def knows_task(self, task: Hashable) -> bool:
        """Has a row of this task been learned?"""
        return self._known is not None and bool(self.estimator_.knows_task(id_of(task)))

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and what only it holds."""
        self.estimator_.forget_task(id_of(task))
        return self

    # ---- what can be seen --------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The learner, which sees encoded rows; task ids and labels of text are its own."""
        return self._fitted().table.learner

    @property
    def tasks_(self) -> list[Any]:
        """Task ids in the type in which they came."""
        return [self._task(task) for task in self._seen("tasks_").table.learner.tasks_]

    @property
    def notes_(self) -> list[str]:
        """How each column became features, and which were absent or unknown in how many rows, a sentence each."""
        encoder = self._seen("notes_").table.encoder
        return encoder.notes() + encoder.unmatched.notes()

    def __sklearn_is_fitted__(self) -> bool:
        return self._known is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _fitted(self) -> Known:
        if self._known is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._known

    def _seen(self, attribute: str) -> Known:
        if self._known is None:
            raise AttributeError(f"{type(self).__name__} has no {attribute} before it has learned a row")
        return self._known

    def _task(self, task: Any) -> Any:
        return typed(task, self._fitted().table.rows.task_type) if isinstance(task, str) else task

    def _given(self, labels: list[Any]) -> list[Any]:
        """Labels of the learner in the type in which they came."""
        return self._fitted().table.as_given(labels)

    def _inner(self, label: Any) -> Any:
        """A label as the learner has it."""
        inner = self.estimator_.classes_.tolist()
        given = self._given(inner)
        if label not in given:
            raise ValueError(f"there is no label {label!r}, expected one of {given!r}")
        return inner[given.index(label)]

    # ---- files -----------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file; `shoal.load`, `shoal predict`, `shoal serve` and `shoal run --load` take it."""
        self._fitted().table.save(Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Self:
        """The model that a file holds, whether Python, the program or the service wrote it; `trusted` is as in
        `shoal.load`.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it is damaged, or holds another kind of model.
        """
        learner, reading = load_model(path, trusted)
        is_table = reading is not None and reading.state.get("family") == "table"
        if reading is None or not is_table or is_classifier(learner) != is_classifier(cls()):
            raise ValueError(
                f"{path} holds no {cls.__name__} but a {type(learner).__name__}: shoal.load reads any model"
            )
        found: Self = of_file(cls, learner, reading)
        return found


def _new_learner(
    estimator: Any, label: pl.Series, classes: Any, *, numbers: bool
) -> tuple[Any, Target, list[Any] | None]:
    """The learner, the kind of its labels, and the labels that may come, if they are known."""
    if numbers:
        if classes is not None:
            raise ValueError("classes= is for classifiers; this learner predicts real targets")
        return HedgedSharingRegressor() if estimator is None else clone(estimator), "regression", None
    learner = HedgedSharing() if estimator is None else clone(estimator)
    classes = getattr(learner, "classes", None) if classes is None else classes
    labels = None if classes is None else np.asarray(classes).tolist()
    n = label.drop_nulls().n_unique() if labels is None else len(labels)
    if n > MANY and labels is None and not isinstance(learner, MultiClass):
        raise ValueError(
            f"{label.name} has {n} labels, {cost_of(n)}. estimator=MultiClass(...) learns them all, TabularRegressor "
            "predicts numbers"
        )
    several = n > 2
    if several and isinstance(learner, Learner) and not isinstance(learner, MultiClass):
        learner = MultiClass(learner)
    return learner, "multiclass" if several or isinstance(learner, MultiClass) else "binary", labels


def _has(verb: str) -> Callable[[Method], Method]:
    """Does the learner have the verb?"""

    def check(estimator: Any) -> bool:
        if estimator._known is not None:
            return hasattr(estimator.estimator_, verb)
        return estimator.estimator is None or hasattr(estimator.estimator, verb)

    return available_if(check)


class TabularClassifier(ClassifierMixin, Tabular):  # type: ignore[misc]
    """Any table and a classifier in one: fit, predict, learn row by row, save; the task is a column.

    Text becomes words, dates their weekday, month and hour, categories a feature a value, numbers are scaled, and NaN,
    None and absent columns are missing values: all as `shoal run` reads files. The model file is the program's, too:
    `shoal predict`, `shoal serve` and `shoal run --load` take what `save` writes, and `shoal.load` what they write.

    Parameters
    ----------
    task : str, int or sequence of str, optional
        The column of the task ids (of an array its number), or several, which together are the id. Without it all
        rows belong to one task.
    estimator : learner, optional
        It learns the encoded rows, as a copy; `HedgedSharing()` by default, `MultiClass(estimator)` if the
        first rows have more than two labels.
    hierarchy : bool
        The task columns are levels, the widest first: `task=["country", "shop"]`, and a new shop begins with what its
        country has learned: see `Hierarchy`.
    label : str, optional
        The column of the labels in tables that have it, such as files. By default the name of `y`, or "label".
    weight : str, optional
        The column that says how often a row counts.
    time : str, optional
        The column of the rows' times, numbers or dates: a row to learn must not be earlier than those before it.
    text, category, numeric, date : sequences of str
        Columns to read as words, as values of their own, as numbers or as dates; the first rows decide for others.
    forecast : sequence of str
        Columns with forecasts of other models, each an input of the answer as far as it is good: see `OutsideForecast`.
    ignore : sequence of str
        Columns that are no features.
    date_format : str, optional
        How dates are written where they are text. [default: found where day and month cannot be mistaken]
    decimal : {".", ","}, optional
        The decimal mark of the columns `numeric` where they are text. [default: what each column has]
    missing : sequence of str
        Words for missing values in text, beside None and NaN.
    hash_bits : int
        The words of a column share 2**hash_bits features.
    keep_names : bool
        Features of words are called `column=word` instead of `column#number`.
    strict : bool
        Refuse rows whose columns are not those of the first ones. By default an absent column is missing values and
        an unknown one is not used; a warning names each once, and `notes_` counts their rows.
    new_columns : int
        Learn so many columns that come later.

    Attributes
    ----------
    estimator_ : the learner; its task ids and labels are those of files
    tasks_ : list of task ids
    classes_ : (n_classes,) labels, in the type in which they came
    feature_names_in_, n_features_in_ : columns of the first table
    notes_ : list of str
        How each column became features.

    Raises
    ------
    ValueError
        On rows that cannot be read or options that contradict each other; the row is named and nothing changes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from shoal import TabularClassifier
    >>> rng = np.random.default_rng(0)
    >>> sales = pd.DataFrame({"shop": rng.integers(20, size=3000), "price": rng.normal(5.0, 2.0, 3000).round(2),
    ...                       "offer": rng.choice(["none", "coupon", "flyer"], 3000)})
    >>> sold_out = sales["price"] + (sales["offer"] == "flyer") * (sales["shop"] % 4) < 5.0
    >>> model = TabularClassifier(task="shop").fit(sales[:2000], sold_out[:2000])
    >>> model.predict_one({"shop": 3, "price": 9.5, "offer": None})
    False
    >>> print(f"accuracy {model.score(sales[2000:], sold_out[2000:]):.2f}")
    accuracy 0.98
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the type in which they came."""
        return np.asarray(self._given(self._seen("classes_").table.learner.classes_.tolist()))

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,) labels."""
        found = self.estimator_.predict(*self._to_predict(X))
        inner = self.estimator_.classes_
        order = np.argsort(inner)
        return np.asarray(self.classes_[order[np.searchsorted(inner, found, sorter=order)]])

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """(n, n_classes) probabilities of the labels, in the order of `classes_`."""
        return np.asarray(self.estimator_.predict_proba(*self._to_predict(X)))

    @_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, n_classes) logarithms of the probabilities, finite where a probability is rounded to 0 or 1."""
        return np.asarray(self.estimator_.predict_log_proba(*self._to_predict(X)))

    @_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """(n,) margins, positive for the second label; of more labels (n, n_classes)."""
        return np.asarray(self.estimator_.decision_function(*self._to_predict(X)))

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """The label of one row, a dict of its values by column."""
        learner = self.estimator_
        if self._is_plain(learner):
            row, task = self._one(x)
            positive = learner.decide_sparse([row], [task])[0] >= 0.0
            return self._given(learner.classes_.tolist())[int(positive)]
        return self._given(learner.predict(*self._one_as_table(x)).tolist())[0]

    @_has("predict_proba")
    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Probability of each label for one row."""
        learner = self.estimator_
        if self._is_plain(learner):
            row, task = self._one(x)
            found = probabilities(learner.decide_sparse([row], [task]))
        else:
            found = learner.predict_proba(*self._one_as_table(x))
        return dict(zip(self._given(learner.classes_.tolist()), found[0].tolist(), strict=True))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; `y` None: the labels are a column of X."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(self._truth(X, y), self.predict(X), sample_weight=sample_weight))

    def _is_plain(self, learner: Any) -> bool:
        return isinstance(learner, Learner) and not isinstance(learner, MultiClass)


class TabularRegressor(RegressorMixin, Tabular):  # type: ignore[misc]
    """Any table and a regressor in one: fit, predict, learn row by row, save; the task is a column.

    Text becomes words, dates their weekday, month and hour, categories a feature a value, numbers are scaled, and NaN,
    None and absent columns are missing values: all as `shoal run` reads files. The model file is the program's, too:
    `shoal predict`, `shoal serve` and `shoal run --load` take what `save` writes, and `shoal.load` what they write.

    Parameters
    ----------
    task : str, int or sequence of str, optional
        The column of the task ids (of an array its number), or several, which together are the id. Without it all
        rows belong to one task.
    estimator : learner, optional
        It learns the encoded rows, as a copy; `HedgedSharingRegressor()` by default.
    hierarchy : bool
        The task columns are levels, the widest first: `task=["country", "shop"]`, and a new shop begins with what its
        country has learned: see `Hierarchy`.
    label : str, optional
        The column of the labels in tables that have it, such as files. By default the name of `y`, or "label".
    weight : str, optional
        The column that says how often a row counts.
    time : str, optional
        The column of the rows' times, numbers or dates: a row to learn must not be earlier than those before it.
    text, category, numeric, date : sequences of str
        Columns to read as words, as values of their own, as numbers or as dates; the first rows decide for others.
    forecast : sequence of str
        Columns with forecasts of other models, each an input of the answer as far as it is good: see `OutsideForecast`.
    ignore : sequence of str
        Columns that are no features.
    date_format : str, optional
        How dates are written where they are text. [default: found where day and month cannot be mistaken]
    decimal : {".", ","}, optional
        The decimal mark of the columns `numeric` where they are text. [default: what each column has]
    missing : sequence of str
        Words for missing values in text, beside None and NaN.
    hash_bits : int
        The words of a column share 2**hash_bits features.
    keep_names : bool
        Features of words are called `column=word` instead of `column#number`.
    strict : bool
        Refuse rows whose columns are not those of the first ones. By default an absent column is missing values and
        an unknown one is not used; a warning names each once, and `notes_` counts their rows.
    new_columns : int
        Learn so many columns that come later.

    Attributes
    ----------
    estimator_ : the learner; its task ids and labels are those of files
    tasks_ : list of task ids
    feature_names_in_, n_features_in_ : columns of the first table
    notes_ : list of str
        How each column became features.

    Raises
    ------
    ValueError
        On rows that cannot be read or options that contradict each other; the row is named and nothing changes.

    Examples
    --------
    >>> from shoal import TabularRegressor
    >>> rows = [{"shop": shop, "weekday": day % 7, "units": 3.0 * (day % 7) + 5.0 * (shop == "b")}
    ...         for day in range(200) for shop in "ab"]
    >>> model = TabularRegressor(task="shop", label="units").fit(rows[:300])
    >>> print(f"R^2 {model.score(rows[300:]):.2f}")
    R^2 1.00
    """

    def predict(self, X: Any) -> FloatArray:
        """(n,) forecasts."""
        return np.asarray(self.estimator_.predict(*self._to_predict(X)))

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """The forecast of one row, a dict of its values by column."""
        if isinstance(self.estimator_, Learner):
            row, task = self._one(x)
            return float(self.estimator_.decide_sparse([row], [task])[0])
        return float(self.estimator_.predict(*self._one_as_table(x))[0])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R^2; `y` None: the targets are a column of X."""
        from sklearn.metrics import r2_score

        return float(r2_score(self._truth(X, y), self.predict(X), sample_weight=sample_weight))


def of_file(kind: type[Tabular], learner: Any, reading: Reading) -> Any:
    """The estimator of a learner, and of how the rows of its tables are read."""
    table = TableModel.loaded(learner, reading)
    saved, tasks = reading.options, table.roles.tasks
    made = kind(
        tasks[0] if len(tasks) == 1 else tasks or None,
        clone(learner),
        label=table.roles.label,
        **{name: saved[name] for name in OPTIONS if name in saved},
    )
    columns = table.encoder.column_names
    made._remember(Known(table, [*tasks, *columns], len(columns)))
    return made
