"""More than two classes around any classifier: a copy of the learner a class, that class against the rest.

Copy c learns +1 on the rows of class c and -1 on all others; the class whose copy has the largest margin is the answer.
One copy more learns -1 on every row: it is what the copy of any class would be that has not come yet, so a new class
begins as a copy of it, and the model is the one that had known the class from the first row.

scikit-learn's `OneVsRestClassifier` does not serve: its metadata routing brings `task` to `fit` and `partial_fit`, but
its `predict` and `decision_function` take `X` alone, and its `partial_fit` refuses a class not named in the first call.
"""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.learner import NO_DECISIONS, ONE_ROUND, Classifier, Learner, _as_rounds, alike
from shoal.model import labels as label_codes
from shoal.model import persistence as storage
from shoal.model.features import Columns, Table, read_table
from shoal.model.tasks import TaskIndex
from shoal.online.hedged_sharing import HedgedSharing
from shoal.wrappers.label_query import LabelQuery
from shoal.wrappers.within import restored, untaught

LEARN, DECIDE = 0, 1  # a learner's loops
SIGNS = [-1.0, 1.0]


class Labels(NamedTuple):
    """Labels declared or met, sorted, and those met."""

    classes: NDArray[Any]
    seen: list[Any]
    settled: bool = True


class MultiClass(Classifier):
    """Any classifier of this library for any number of classes, new ones included, one against the rest.

    Each class has a copy of the learner, which learns its rows as +1 and all others as -1; the largest margin is the
    answer (of equal ones the smaller label's). A class that first comes in mid-stream is in no worse place than one
    declared: the two models are equal, bit for bit. With two classes the answers are those of the learner itself.
    Cost and memory: the learner's, times the number of classes plus one.

    Parameters
    ----------
    learner : classifier of this library; None: `HedgedSharing()`
        It stays as it is; its trained copies are `learners_`.

    Attributes
    ----------
    learners_ : dict of label -> the learner of that class against the rest, for the labels met
    classes_ : (n_classes,) labels met or declared by `classes=`, sorted
    task_updates_ : (n_tasks,) updates; with more than two classes the sum over the copies
    tasks_, n_features_in_, feature_names_in_, n_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a learner that is no classifier of two labels or asks for labels.

    Notes
    -----
    `decision_function` and `test_then_train` give (n, n_classes) margins, in the order of `classes_`; with two classes
    (n,), positive for the larger label. While only one label is known, -1, 0, 1, False and True tell the other one.
    Weights and relations are those of `learners_`. Margins are not calibrated against each other.

    References
    ----------
    Rifkin, Klautau. In Defense of One-Vs-All Classification. JMLR 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MultiClass, MultitaskPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 10)), rng.integers(20, size=3000)
    >>> w = rng.normal(size=(4, 10)) + 0.3 * rng.normal(size=(20, 4, 10))
    >>> y = np.array(["ash", "elm", "fir", "oak"])[np.einsum("nkd,nd->nk", w[task], X).argmax(axis=1)]
    >>> for relation in ("independent", "pairwise"):
    ...     learner = MultiClass(MultitaskPerceptron(relation=relation))
    ...     margins = learner.test_then_train(X, y, task)
    ...     print(f"{relation:12} error {(learner.classes_[margins.argmax(axis=1)] != y).mean():.3f}")
    independent  error 0.396
    pairwise     error 0.356
    """

    _rest: Learner  # has learnt -1 on every row
    _known: NDArray[Any]  # labels declared or met, sorted
    _synced: tuple[Any, ...]  # the hyper-parameters last seen
    learners_: dict[Any, Learner]

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    # ---- learning ------------------------------------------------------------------------------------------

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the margins given *before* learning each round, (n, n_classes) or (n,)."""
        table = read_table(X, self)
        given: dict[Any, FloatArray] = {}
        self._advance(table, y, task, rounds, classes, np.empty(table.n_rows), given=given)
        return self._side_by_side(given)

    def _advance(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, decisions: FloatArray,
        *, fresh: bool = False, columns: Columns | None = None, given: dict[Any, FloatArray] | None = None,
    ) -> None:  # fmt: skip
        labels, known = self._labels_of(y, table.n_rows, classes, fresh=fresh)
        is_new = fresh or not hasattr(self, "_rest")
        if is_new:
            self._settings()
        rest = untaught(self._plain()) if is_new else self._begun()
        signs = np.full(table.n_rows, -1.0)
        admitted = rest._admit(table, signs, task, rounds, SIGNS, fresh=fresh, columns=columns)
        if is_new:
            self._start(rest)
        self._known = known
        targets: dict[Any, FloatArray] = {None: signs}
        for label in dict.fromkeys([*self.learners_, *np.unique(labels).tolist()]):
            targets[label] = np.where(labels == label, 1.0, -1.0)
            if label in self.learners_:
                model = self.learners_[label]
                model._admit(table, targets[label], task, rounds, SIGNS, fresh=False, columns=columns)
            else:
                self.learners_[label] = copy.deepcopy(rest)
        for label, y_of_class in targets.items():
            answers = NO_DECISIONS if given is None else np.empty_like(decisions)
            self._model(label)._call(LEARN, admitted._replace(y=y_of_class), answers)
            if given is not None:
                given[label] = answers

    def _labels_of(self, y: Any, n_rows: int, classes: Any, *, fresh: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        """Labels of the rows, and all that are known with them."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = label_codes.checked(y, n_rows)
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            row = int(np.flatnonzero(y != np.floor(y))[0])
            raise ValueError(f"Unknown label type: continuous. Row {row}: expected a class label, got {y[row]}")
        known = np.unique(y)
        others = [] if classes is None else [np.asarray(classes)]
        for labels in others if fresh or not hasattr(self, "_known") else [*others, self._known]:
            if (labels.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
                raise ValueError(
                    f"row 0: the label {y.tolist()[0]!r} is not of the kind of {labels.tolist()[0]!r}; "
                    "expected all labels to be numbers, or all text"
                )
            known = np.union1d(known, labels)
        return y, known

    # ---- answering -----------------------------------------------------------------------------------------

    def _side_by_side(self, values: dict[Any, FloatArray]) -> FloatArray:
        """Margins by label (None: of any label not met) as one array."""
        columns = [values[label if label in values else None] for label in self.classes_.tolist()]
        return np.stack(columns, axis=1) if len(columns) > 2 else columns[-1]

    def _answers(self, rounds: Rounds) -> FloatArray:
        if len(self.classes_) > 2:
            models: dict[Any, Learner] = {None: self._rest, **self.learners_}
        else:
            models = {label: self._model(label) for label in self.classes_.tolist()[-1:]}
        values = {label: np.empty(len(rounds.task)) for label in models}
        for label, model in models.items():
            model._call(DECIDE, rounds, values[label])
        return self._side_by_side({None: NO_DECISIONS, **values})

    def _model(self, label: Any) -> Learner:
        """The learner of a label; None and labels not met have that of no class."""
        return self.learners_.get(label, self._rest)

    def _values(self, X: Any, task: Any) -> FloatArray:
        check_is_fitted(self)
        self._begun()
        table = read_table(X, self)
        self._columns.admit(table, type(self).__name__)
        columns = self._known_tasks().look_up(task, table.n_rows)
        return self._answers(_as_rounds(table, columns, np.empty(table.n_rows), ONE_ROUND))

    def _one_value(self, x: Any, task: Hashable) -> Any:
        check_is_fitted(self)
        self._begun()
        values = self._answers(self._row_to_answer(x, task))[0]
        return values if values.ndim else float(values)

    def decision_one(self, x: Any, task: Hashable = None) -> Any:
        """The margins (n_classes,) of one example (dict or 1-d array); with two classes a number."""
        return self._one_value(x, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels."""
        places = self._places(self._values(X, task))
        return np.asarray(self.classes_[places])

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The label of one example (dict or 1-d array)."""
        place = self._places(np.asarray([self._one_value(x, task)]))[0]
        return self.classes_.tolist()[place]

    def _places(self, values: FloatArray) -> IntArray:
        """Positions of the answers in `classes_`."""
        n_classes = len(self.classes_)
        places = values.argmax(axis=1) if n_classes > 2 else (values >= 0.0) & (n_classes == 2)
        return np.asarray(places, np.int64)

    # ---- the copies, seen as one ---------------------------------------------------------------------------

    def _settings(self) -> Any:
        learner = self._plain()
        if not isinstance(learner, Classifier) or isinstance(learner, MultiClass):
            raise ValueError(f"MultiClass needs a classifier of two labels, got {type(learner).__name__}")
        if isinstance(learner, LabelQuery):
            raise ValueError("a label that one copy asks for is known to all; put MultiClass around the learner itself")
        return learner._settings()

    def _plain(self) -> Learner:
        return HedgedSharing() if self.learner is None else self.learner

    def _models(self) -> list[Learner]:
        return [self._rest, *self.learners_.values()]

    def _begun(self) -> Learner:
        """`_rest`; the copies have the hyper-parameters that `learner` has now. There need not be a row yet."""
        plain = self._plain()
        values = plain._hyper_parameters()
        if not hasattr(self, "_rest"):
            self._settings()
            self._start(untaught(plain))
        elif not alike(values, self._synced):
            self._settings()
            if type(plain) is not type(self._rest):
                raise ValueError("learner can only be replaced by another kind before fit")
            for model in self._models():
                model.set_params(**plain.get_params(deep=False))
            self._synced = values
        return self._rest

    def _start(self, rest: Learner) -> None:
        self._rest, self.learners_ = rest, {}
        self._synced = self._plain()._hyper_parameters()

    @property
    def simultaneous(self) -> bool:  # type: ignore[override]
        """The learner's protocol."""
        return self._plain().simultaneous

    @property
    def _state(self) -> Any:
        return self._rest._state if hasattr(self, "_rest") else None

    @property
    def _tasks(self) -> TaskIndex | None:  # type: ignore[override]
        return self._rest._tasks if hasattr(self, "_rest") else None

    @property
    def _columns(self) -> Columns:  # type: ignore[override]
        return self._rest._columns if hasattr(self, "_rest") else Columns()

    @property
    def _labels(self) -> Any:  # type: ignore[override]
        return Labels(self._known, sorted(self.learners_))

    @property
    def _one(self) -> Any:  # type: ignore[override]
        return self._rest._one

    def _known_target(self, y: Any) -> float | None:
        return None  # a label may be new: the careful way

    def _set_columns(self, columns: Columns) -> None:
        self._begun()
        for model in self._models():
            model._set_columns(columns)

    def _initial_tasks(self) -> list[Any]:
        return self._plain()._initial_tasks()

    def add_tasks(self, ids: Iterable[Hashable]) -> Self:
        """Declare tasks before their first row."""
        ids = list(ids)
        self._begun()
        for model in self._models():
            model.add_tasks(ids)
        return self

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and what only it holds; what others learnt from it stays with them."""
        check_is_fitted(self)
        for model in self._models():
            model.forget_task(task)
        return self

    def baselines(self) -> dict[str, Learner]:
        return {name: MultiClass(baseline) for name, baseline in self._plain().baselines().items()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    @property
    def classes_(self) -> NDArray[Any]:
        """(n_classes,) the labels, sorted."""
        self._fitted("classes_")
        if len(self._known) == 1:
            try:
                return label_codes.encode(self._known, 1, None)[1].classes
            except ValueError:  # text: it does not tell the other
                return self._known
        return self._known

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) updates of each task's own models: of the one that answers, or summed over the classes."""
        self._fitted("task_updates_")
        labels = self.classes_.tolist()
        models = [self._model(labels[-1])] if len(labels) <= 2 else list(self.learners_.values())
        return np.asarray(sum(model.task_updates_ for model in models))

    # ---- persistence ---------------------------------------------------------------------------------------

    def _trimmed(self) -> Any:
        parts = [self._rest, *(self.learners_[label] for label in self._labels.seen)]
        kind = namedtuple("State", ["rest", *(f"class{c}" for c in range(len(parts) - 1))])  # type: ignore[misc]
        return kind(*(part._trimmed() for part in parts))

    def _restore(self, header: dict[str, Any], arrays: storage.Arrays) -> None:
        saved, plain = header["labels"], self._plain()
        self._known = np.array(storage.from_json(saved["classes"], arrays), dtype=saved["kind"])
        two = {"classes": storage.to_json(SIGNS, {}, "label"), "kind": "<f8", "settled": True, "seen": None}
        header = {**header, "labels": two}
        self._start(restored(plain, header, arrays, "rest"))
        for c, label in enumerate(storage.from_json(saved["seen"], arrays)):
            self.learners_[label] = restored(plain, header, arrays, f"class{c}")
