"""What all online learners share: the verbs, tasks and features that appear on the way, checks, save and load.

An algorithm gives three things: `_settings` (hyper-parameters as a named tuple of numbers), `_allocate` (its state
as a named tuple of arrays), and its jitted `_loops` over `Rounds`, one that learns and one that decides. Bad input
leaves a model bit for bit as it was: everything is checked before anything changes, or, where the checks would take as
long as learning, each row when its turn comes, and the model goes back to what it was before a bad one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from shoal.engine.arrays import LANES, FloatArray, IntArray
from shoal.engine.compile import call
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds, form_rounds
from shoal.model import labels as label_codes
from shoal.model import persistence as storage
from shoal.model.features import Columns, Table, read_table, refuse_not_numbers, stack_rows, unchecked
from shoal.model.labels import Labels
from shoal.model.tasks import TaskIndex
from shoal.model.validation import BAD, first_not_finite

FLOAT = np.dtype(np.float64)  # what np.float64 would be made into at each comparison
NO_DECISIONS = np.zeros(0)
ONE_ROUND = np.array([0, 1])
SMALL = 8  # of a model that is copied before it learns: the table is so many times as large
NO_TARGET = object()  # what a row to predict has for y


class NotGood(ValueError):
    """A row whose turn came is not finite or not canonical."""


class Learner(BaseEstimator):  # type: ignore[misc]
    """An online multi-task learner: scikit-learn estimator and stream learner at once."""

    simultaneous: ClassVar[bool] = False  # the protocol that `rounds=None` stands for

    _checks_rows: ClassVar[bool] = (
        False  # do the loops stop at a row to be checked that is bad, and return which it is?
    )

    dtype: Any = "float64"  # what weights are stored in; some learners have it as a hyper-parameter
    _state: Any = None
    _tasks: TaskIndex | None = None
    _columns: Columns = Columns()
    _labels: Labels | None = None
    _capacity: tuple[int, int] = (0, 0)
    _settings_read: Any = None
    _settings_from: tuple[Any, ...] = ()
    _seconds_beside: float = 0.0  # of processors in threads that learnt for this learner
    _code: tuple[Any, ...]  # the jitted loops of these settings
    _one: tuple[IntArray, FloatArray, FloatArray]  # task, target and decision of the one-example verbs

    # ---- what an algorithm gives -------------------------------------------------------------------------

    def _settings(self) -> Any:
        """Hyper-parameters, checked, as a named tuple for the jitted loops."""
        raise NotImplementedError

    def _allocate(self, n_tasks: int, n_features: int) -> Any:
        """The state of a learner that has seen nothing: a named tuple of arrays, its last the `clock`."""
        raise NotImplementedError

    def _loops(self) -> tuple[Any, ...]:
        """The jitted loops (rounds, settings, state, decisions): `learn`, in order, filling `decisions` with the
        values given before each round unless it is empty; `decide` (a task of -1 has not been seen); then others
        that only the algorithm itself calls."""
        raise NotImplementedError

    def _targets(self, y: Any, n_rows: int, classes: Any, known: Labels | None) -> tuple[FloatArray, Labels | None]:
        raise NotImplementedError

    def _enter(self, state: Any, n_tasks: int) -> None:
        """Let tasks in before their first row (declared ones); the loops do the same at a task's first row."""
        state.clock[0] = n_tasks

    def _leave(self, state: Any, k: int, n_tasks: int) -> None:
        """Make the others independent of task k before its rows and columns are removed."""

    def _more_room(self, rounds: Rounds) -> None:
        """Make room for what a loop could not fit; these rounds are left."""
        raise NotImplementedError

    def _initial_tasks(self) -> list[Any]:
        """Tasks that the hyper-parameters name; if any, no others may come."""
        return []

    def baselines(self) -> dict[str, Learner]:
        """The same learner without sharing ("independent") and with one model for all ("pooled")."""
        raise NotImplementedError

    def _weights_type(self) -> np.dtype[Any]:
        """`dtype`, checked."""
        kinds: list[np.dtype[Any]] = [np.dtype(np.float64), np.dtype(np.float32)]
        for kind in kinds:
            if self.dtype in (kind.name, kind.type, kind):
                return kind
        raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r}")

    # ---- array verbs -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, task: Any = None, *, rounds: Any = None) -> Self:
        """Forget everything, declare all tasks of the data, then learn the rows in one pass, in order."""
        self._take(X, y, task, rounds, None, fresh=True)
        return self

    def partial_fit(self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None) -> Self:
        """Learn the rows in order.

        Parameters
        ----------
        X : (n, d) array, SciPy CSR matrix or data frame
        y : (n,) two labels of any kind, or real targets for a regressor
        task : (n,) task ids, any hashables; None: all rows belong to one task
        rounds : (n,) integers, optional
            Rows with equal consecutive values form a round, at most one row per task. None: each row is a
            round, or in the simultaneous protocol a maximal run of rows in which no task repeats.
        classes : two labels, optional
            Needed while only one label has been seen and it is not one of -1, 0, 1, False, True.

        Raises
        ------
        ValueError
            On bad input; the row is named and the model stays as it was.
        """
        self._take(X, y, task, rounds, classes)
        return self

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the (n,) decision values given *before* learning each round."""
        return self._take(X, y, task, rounds, classes, answers=True)

    def _values(self, X: Any, task: Any) -> FloatArray:
        check_is_fitted(self)
        table = unchecked(X) if self._checks_rows else None
        if table is not None:
            try:
                return self._decide(table, task, n_columns=table.n_features)
            except ValueError:
                pass  # is said below, what is wrong with X first
        return self._decide(read_table(X, self), task)

    def _decide(self, table: Table, task: Any, n_columns: int = 0) -> FloatArray:
        self._columns.admit(table, type(self).__name__)
        decisions = np.empty(table.n_rows)
        columns = self._known_tasks().look_up(task, table.n_rows)
        self._call(1, _as_rounds(table, columns, decisions, ONE_ROUND, n_columns), decisions)
        return decisions

    # ---- one-example and round verbs ---------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, task: Hashable = None) -> None:
        """Learn one example: `x` a dict of named features (new names get columns) or a 1-d array."""
        rounds = self._one_row(x, task, y)
        if rounds is None:
            self.learn_round({task: (x, y)})
        else:
            self._call(0, rounds, NO_DECISIONS)

    def learn_round(self, examples: Mapping[Any, tuple[Any, Any]]) -> None:
        """Learn the examples that arrived together: `{task: (x, y), ...}`."""
        if not examples:
            raise ValueError("an empty round: expected {task: (x, y), ...} with at least one task")
        table, columns = stack_rows([x for x, _ in examples.values()], self._columns)
        tasks = None if list(examples) == [None] else list(examples)
        y = [y for _, y in examples.values()]
        self._advance(table, y, tasks, np.zeros(len(y), np.int64), None, NO_DECISIONS, columns=columns)

    def _one_value(self, x: Any, task: Hashable) -> float:
        rounds = self._row_to_answer(x, task)
        decision = self._one[2]
        self._call(1, rounds, decision)
        return float(decision[0])

    def _row_to_answer(self, x: Any, task: Hashable) -> Rounds:
        """An example without its label, checked."""
        rounds = self._one_row(x, task, NO_TARGET)
        if rounds is not None:
            return rounds
        check_is_fitted(self)
        if isinstance(x, Mapping):
            refuse_not_numbers(x, 0)
            self._columns.refuse_dicts()
            table = self._columns.row(x)
        else:
            table = stack_rows([x], self._columns)[0]
        column = np.array([self._known_tasks().column.get(task, -1)])
        return _as_rounds(table, column, np.zeros(1), ONE_ROUND)

    def _one_row(self, x: Any, task: Hashable, y: Any) -> Rounds | None:
        """The row as rounds, if nothing about it is new; None sends it the careful way."""
        if self._state is None:
            return None
        column = self._tasks.column.get(task)  # type: ignore[union-attr]
        target = 0.0 if y is NO_TARGET else self._known_target(y)
        if column is None or target is None:
            return None
        if type(x) is np.ndarray:
            width = self._columns.count
            if x.dtype != FLOAT or x.shape != (width,) or not x.flags.carray:
                return None
            indptr, indices, values = NO_INDPTR, NO_INDICES, x
        else:
            width = 0
            if self._columns.names is None:
                return None
            try:
                indptr, indices = self._columns.places(x)
                values = np.fromiter(x.values(), np.float64, len(x))
            except (KeyError, TypeError, ValueError, AttributeError):
                return None
        if first_not_finite(values) >= 0:
            return None
        task_column, y_sign, _ = self._one
        task_column[0], y_sign[0] = column, target
        return Rounds(width, indptr, indices, values, task_column, y_sign, ONE_ROUND)

    def _known_target(self, y: Any) -> float | None:
        raise NotImplementedError

    # ---- tasks and features ------------------------------------------------------------------------------

    def add_tasks(self, ids: Iterable[Hashable]) -> Self:
        """Declare tasks before their first row."""
        ids = list(ids)
        self._tasks = self._known_tasks()
        _, new = self._tasks.encode(ids, len(ids))
        self._refuse_unnamed(new)
        if self._state is not None:
            self._reserve(len(self._tasks) + len(new), self._columns.count)
        self._tasks.add(new)
        if self._state is not None:
            self._enter(self._state, len(self._tasks))
        return self

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and what only it holds; what others learnt from it stays with them."""
        check_is_fitted(self)
        if self._initial_tasks():
            raise ValueError("the tasks of this model are those of its relation; none can be forgotten")
        tasks = self._known_tasks()
        if task not in tasks.column:
            raise ValueError(f"no task {task!r} in this model")
        k = tasks.column[task]
        self._leave(self._state, k, len(tasks))
        # Axes that count tasks are those on which these two differ (tasks may be padded to blocks).
        small, large = self._allocate(1, 1), self._allocate(1 + LANES, 1)
        state = self._allocate(*self._capacity)
        for old, new, a, b in zip(*map(leaves, (self._state, state, small, large)), strict=True):
            if new is old:
                continue
            kept = old
            for axis in range(old.ndim):
                if a.shape[axis] != b.shape[axis]:
                    kept = np.delete(kept, k, axis)
            new[tuple(slice(n) for n in kept.shape)] = kept
        self._state = state
        self._state.clock[0] -= 1
        self._tasks = TaskIndex(other for other in tasks.ids if other != task)
        return self

    def add_features(self, names: Iterable[str]) -> Self:
        """Give each new feature name a column, as dict rows do; for models without named columns, see `widen`."""
        columns = self._columns
        if columns.count and columns.names is None:
            raise ValueError("this model learnt from arrays without column names; use widen(n_features)")
        known = columns.names or {}
        fresh = [name for name in dict.fromkeys(names) if name not in known]
        names_now = known | {name: len(known) + i for i, name in enumerate(fresh)}
        self._set_columns(Columns(len(names_now), names_now, is_open=True))
        return self

    def widen(self, n_features: int) -> Self:
        """Let rows have more columns from now on; those before count as zero there."""
        if n_features < self._columns.count:
            raise ValueError(f"the model has {self._columns.count} features; it cannot shrink to {n_features}")
        if self._columns.names is not None and n_features > self._columns.count:
            raise ValueError("the model's columns have names; use add_features(names)")
        self._set_columns(Columns(n_features, self._columns.names, is_open=self._columns.is_open))
        return self

    def _set_columns(self, columns: Columns) -> None:
        if self._state is not None:
            self._reserve(len(self._known_tasks()), columns.count)
        self._columns = columns

    def _known_tasks(self) -> TaskIndex:
        return TaskIndex(self._initial_tasks()) if self._tasks is None else self._tasks

    def _refuse_unnamed(self, new_tasks: list[Any]) -> None:
        if new_tasks and self._initial_tasks():
            raise ValueError(f"task {new_tasks[0]!r} is not one of the tasks that the relation names")

    # ---- from input to learning --------------------------------------------------------------------------

    def _take(
        self, X: Any, y: Any, task: Any, rounds: Any, classes: Any, *, fresh: bool = False, answers: bool = False
    ) -> FloatArray:
        """Check and learn; return the decisions if these answers are wanted."""
        table = unchecked(X) if self._checks_rows else None
        state = () if fresh or self._state is None else self._state  # a fresh one is another
        if table is not None and SMALL * sum(array.nbytes for array in leaves(state)) <= table.values.nbytes:
            way_back = self._way_back(leaves(state))
            decisions = np.empty(table.n_rows if answers else 0)
            try:
                self._learn_as_checked(table, y, task, rounds, classes, decisions, fresh=fresh)
                return decisions
            except ValueError:
                way_back()  # and say below what is wrong, with X first
            except BaseException:
                way_back()
                raise
        table = read_table(X, self)
        decisions = np.empty(table.n_rows if answers else 0)
        self._advance(table, y, task, rounds, classes, decisions, fresh=fresh)
        return decisions

    def _way_back(self, changes: list[NDArray[Any]]) -> Callable[[], None]:
        """A function that makes the model what it is now; of its arrays these may change until then."""
        before, n_tasks = dict(self.__dict__), len(self._tasks or ())
        kept = [array.copy() for array in changes]

        def go() -> None:
            self.__dict__.clear()
            self.__dict__.update(before)
            if self._tasks is not None:
                self._tasks = TaskIndex(self._tasks.ids[:n_tasks])  # new ones come last
            for array, was in zip(changes, kept, strict=True):
                array[...] = was

        return go

    def _learn_as_checked(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, decisions: FloatArray, *, fresh: bool
    ) -> None:
        """Learn rows, each checked when its turn comes; raises if one is not good."""
        admitted = self._admit(table, y, task, rounds, classes, fresh=fresh, columns=None)
        self._call(0, admitted._replace(n_columns=table.n_features), decisions)

    def _advance(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, decisions: FloatArray,
        *, fresh: bool = False, columns: Columns | None = None,
    ) -> None:  # fmt: skip
        self._call(0, self._admit(table, y, task, rounds, classes, fresh=fresh, columns=columns), decisions)

    def _admit(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, *, fresh: bool, columns: Columns | None
    ) -> Rounds:
        """Check the input; then its tasks, features and labels are known, and its rows, returned, yet to be learnt."""
        settings = self._settings() if fresh else self._current()
        tasks = TaskIndex(self._initial_tasks()) if fresh else self._known_tasks()
        before = Columns() if fresh else self._columns
        columns = before.admit(table, type(self).__name__) if columns is None else columns
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        targets, labels = self._targets(y, table.n_rows, classes, None if fresh else self._labels)
        task_columns, new = tasks.encode(task, table.n_rows)
        self._refuse_unnamed(new)
        starts = form_rounds(task_columns, len(tasks) + len(new), rounds, simultaneous=self.simultaneous)
        # All is well: only from here on does the model change.
        if fresh:
            self._state, self._capacity = None, (0, 0)
        n_declared = len(tasks) + (len(new) if fresh else 0)
        is_new = self._state is None
        self._reserve(len(tasks) + len(new), columns.count)
        tasks.add(new)
        self._tasks, self._columns, self._labels = tasks, columns, labels
        if is_new:
            self._one = (np.zeros(1, np.int64), np.zeros(1), np.zeros(1))
            self._keep(settings)
            if n_declared:
                self._enter(self._state, n_declared)
        return _as_rounds(table, task_columns, targets, starts)

    def _reserve(self, n_tasks: int, n_features: int) -> None:
        """Room for this many tasks and features; at least doubled when it grows, so that growth is amortised."""
        room = self._capacity
        if self._state is not None and n_tasks <= room[0] and n_features <= room[1]:
            return
        wanted = (n_tasks, n_features)
        self._enlarge(*(have if need <= have else max(need, 2 * have) for have, need in zip(room, wanted, strict=True)))

    def _enlarge(self, n_tasks: int, n_features: int) -> None:
        """Move into a larger state: what is known is the leading block of each array."""
        state = self._allocate(n_tasks, n_features)
        if self._state is not None:
            for old, new in zip(leaves(self._state), leaves(state), strict=True):
                if new is not old:
                    new[tuple(slice(n) for n in old.shape)] = old
        self._state, self._capacity = state, (n_tasks, n_features)

    def _hyper_parameters(self) -> tuple[Any, ...]:
        kind: Any = type(self)
        values: tuple[Any, ...] = _getter(kind)(self)
        return values

    def _current(self) -> Any:
        """The settings, read again only when a hyper-parameter was set since."""
        if self._settings_read is not None and alike(self._hyper_parameters(), self._settings_from):
            return self._settings_read
        self._weights_type()
        settings = self._settings()
        if self._state is not None:
            fits = self._allocate(*self._capacity)
            shapes, wanted = ([(a.shape, a.dtype) for a in leaves(state)] for state in (self._state, fits))
            if type(fits) is not type(self._state) or shapes != wanted:
                raise ValueError("this hyper-parameter shapes the state: it can only change before fit")
            if self._initial_tasks() and self._initial_tasks() != self.tasks_:
                raise ValueError("the new relation names other tasks or another order: it can only change before fit")
            self._keep(settings)
        return settings

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> Any:
        """Learn (0) or decide (1); a loop that may have to stop and ask for room returns how many rounds it did."""
        settings = self._current()
        done = self._run(loop, rounds, settings, decisions)
        while loop == 0 and done is not None and 0 <= done < len(rounds.starts) - 1:
            rounds = rounds._replace(starts=rounds.starts[done:])
            self._more_room(rounds)
            done = self._run(loop, rounds, settings, decisions)
        if rounds.n_columns > 0 and done == BAD:
            raise NotGood
        return done

    def _run(self, loop: int, rounds: Rounds, settings: Any, decisions: FloatArray) -> Any:
        return call(self._code[loop], rounds, settings, self._state, decisions, self.dtype)

    def _keep(self, settings: Any) -> None:
        self._settings_read, self._settings_from, self._code = (
            settings,
            self._hyper_parameters(),
            self._loops(),
        )

    # ---- what can be seen --------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fitted(self, name: str) -> Any:
        if self._state is None:
            raise AttributeError(f"{type(self).__name__} has no {name} before it has learnt a row")
        return self._state

    @property
    def tasks_(self) -> list[Any]:
        """Task ids in the order of their columns."""
        if self._tasks is None:
            self._fitted("tasks_")
        return self._known_tasks().ids

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        self._fitted("n_features_in_")
        return self._columns.count

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names, where the rows came with names."""
        if self._columns.names is None:
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_: its rows came without names")
        return np.fromiter(self._columns.names, object, len(self._columns.names))

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) task relationship in force, or None."""
        return None

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) examples of each task that were used in updates of its own model."""
        counts: IntArray = self._fitted("task_updates_").updates[: len(self._known_tasks())]
        return counts.copy()

    @property
    def n_updates_(self) -> int:
        """Examples used in updates so far: the papers' nSV."""
        return int(self.task_updates_.sum())

    # ---- persistence -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, companion: Any = None) -> None:
        """Write the model to one file (safetensors with a JSON header), whole or not at all.

        Parameters
        ----------
        path : path of the file
        companion : JSON value, optional
            What belongs to the model, such as how a file's columns became its features; `load_with_companion`
            gives it back.

        Raises
        ------
        ValueError
            If a hyper-parameter or a task id has no plain form (a function, an object of your own).
        """
        check_is_fitted(self)
        arrays: storage.Arrays = {}
        labels = self._labels
        names = None if self._columns.names is None else list(self._columns.names)
        header = {
            "class": type(self).__name__,
            "companion": companion,
            "parameters": storage.to_json(self.get_params(deep=False), arrays, "parameter"),
            "tasks": storage.to_json(self.tasks_, arrays, "task id"),
            "features": {
                "count": self._columns.count,
                "names": storage.to_json(names, arrays, "feature name"),
            },
            "open": self._columns.is_open,
            "labels": labels
            and {
                "classes": storage.to_json(labels.classes.tolist(), arrays, "label"),
                "kind": labels.classes.dtype.str,
                "settled": labels.settled,
                "seen": storage.to_json(labels.seen, arrays, "label"),
            },
        }
        trimmed = self._trimmed()
        arrays |= zip(leaf_names(trimmed), leaves(trimmed), strict=True)
        storage.write(path, header, arrays)

    def _trimmed(self) -> Any:
        """The state without spare room, as it is saved: equal models have equal ones."""
        room = self._allocate(len(self.tasks_), self._columns.count)
        pairs = zip(leaves(self._state), leaves(room), strict=True)
        return rebuilt(
            room, iter([np.ascontiguousarray(old[tuple(slice(n) for n in new.shape)]) for old, new in pairs])
        )

    def _restore(self, header: dict[str, Any], arrays: storage.Arrays) -> None:
        self._tasks = TaskIndex(storage.from_json(header["tasks"], arrays))
        names = storage.from_json(header["features"]["names"], arrays)
        index = None if names is None else {name: j for j, name in enumerate(names)}
        self._columns = Columns(header["features"]["count"], index, is_open=header["open"])
        if header["labels"]:
            saved = header["labels"]
            classes = np.array(storage.from_json(saved["classes"], arrays), dtype=saved["kind"])
            seen = None if saved["settled"] else classes.dtype.type(storage.from_json(saved["seen"], arrays))
            self._labels = Labels(classes, saved["settled"], seen)
        settings = self._settings()
        self._capacity = (len(self._tasks), self._columns.count)
        empty = self._allocate(*self._capacity)
        saved_leaves = iter([np.require(arrays[name], None, ["C", "W"]) for name in leaf_names(empty)])
        self._state = rebuilt(empty, saved_leaves)
        self._one = (np.zeros(1, np.int64), np.zeros(1), np.zeros(1))
        self._keep(settings)


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]
    """A learner of two labels."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, the larger one is +1."""
        self._fitted("classes_")
        assert self._labels is not None
        return self._labels.classes

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins <w_task, x>."""
        return self._values(X, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels; a margin of 0 predicts the larger label."""
        positive = (self._values(X, task) >= 0.0).astype(np.int64)
        return np.asarray(self.classes_[positive])

    def score(self, X: Any, y: Any, task: Any = None) -> float:
        """Accuracy."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, task)))

    def decision_one(self, x: Any, task: Hashable = None) -> float:
        """The margin of one example (dict or 1-d array)."""
        return self._one_value(x, task)

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The label of one example (dict or 1-d array)."""
        positive = self._one_value(x, task) >= 0.0
        return self.classes_.tolist()[positive]

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, Any]:
        """`{task: x, ...}` to `{task: label, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}

    def _targets(self, y: Any, n_rows: int, classes: Any, known: Labels | None) -> tuple[FloatArray, Labels | None]:
        return label_codes.encode(y, n_rows, known, classes)

    def _known_target(self, y: Any) -> float | None:
        try:
            return self._labels.signs.get(y)  # type: ignore[union-attr]
        except TypeError:
            return None


class Regressor(RegressorMixin, Learner):  # type: ignore[misc]
    """A learner of real targets."""

    def predict(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) predictions <w_task, x>."""
        return self._values(X, task)

    def score(self, X: Any, y: Any, task: Any = None) -> float:
        """Coefficient of determination R^2."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, task)))

    def predict_one(self, x: Any, task: Hashable = None) -> float:
        """The prediction for one example (dict or 1-d array)."""
        return self._one_value(x, task)

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, float]:
        """`{task: x, ...}` to `{task: prediction, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}

    def _targets(self, y: Any, n_rows: int, classes: Any, known: Labels | None) -> tuple[FloatArray, Labels | None]:
        if classes is not None:
            raise ValueError("classes= is for classifiers; this learner predicts real targets")
        return label_codes.real_targets(y, n_rows), None

    def _known_target(self, y: Any) -> float | None:
        return y if type(y) is float and np.isfinite(y) else None


@cache
def _getter(kind: Any) -> Callable[[Learner], tuple[Any, ...]]:
    """Reads all hyper-parameters of a kind of learner (scikit-learn's way costs 30 us a call)."""
    names = kind._get_param_names()
    return attrgetter(*names) if len(names) > 1 else lambda learner: tuple(getattr(learner, n) for n in names)


def alike(values: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Are they equal? The same object is, without a look at it."""
    try:
        return values == others
    except (TypeError, ValueError):  # arrays and data frames do not say so
        return False


def leaves(state: Any) -> list[NDArray[Any]]:
    """The arrays of a state, whose fields are arrays or named tuples of arrays."""
    return [leaf for part in state for leaf in (leaves(part) if isinstance(part, tuple) else [part])]


def leaf_names(state: Any, prefix: str = "state") -> list[str]:
    """Their names: "state.weights", "state.own.keys"."""
    names = []
    for field, part in zip(state._fields, state, strict=True):
        name = f"{prefix}.{field}"
        names += leaf_names(part, name) if isinstance(part, tuple) else [name]
    return names


def rebuilt(state: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    """A state of the same kind from its arrays in order."""
    parts = [rebuilt(part, arrays) if isinstance(part, tuple) else next(arrays) for part in state]
    return type(state)(*parts)


def _as_rounds(table: Table, task: IntArray, y: FloatArray, starts: IntArray, n_columns: int = 0) -> Rounds:
    return Rounds(table.width, table.indptr, table.indices, table.values, task, y, starts, n_columns)


def load(path: str | os.PathLike[str]) -> Learner:
    """The model that `learner.save(path)` wrote; learning on from it equals never having stopped, bit for bit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a shoal model, or is truncated or damaged.
    """
    return load_with_companion(path)[0]


def load_with_companion(path: str | os.PathLike[str]) -> tuple[Learner, Any]:
    """The model, and what was saved beside it (None if nothing was)."""
    import shoal

    header, arrays = storage.read(path)
    kind: Any = getattr(shoal, header["class"], None)
    if not hasattr(kind, "_restore"):  # online and batch learners have it
        raise ValueError(f"{path} holds a {header['class']}, which this shoal does not know")
    learner = kind(**storage.from_json(header["parameters"], arrays))
    learner._restore(header, arrays)
    return learner, header["companion"]
