"""A model: the tasks, features and labels that it knows, and the core that learns. Valid input in, state changed.

Input is validated before anything changes; large tables in blocks while they are learned, inside a transaction.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from shoal.engine.arrays import FLOAT64, FloatArray, IndexArray, IntArray
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, NO_WEIGHT, Rounds, cut, form_rounds
from shoal.model.core import NO_OUT, CoreLike
from shoal.model.features import Features
from shoal.model.growth import aside
from shoal.model.sample_weight import read_weights, refuse_all_zero, without_weightless
from shoal.model.table import Table, read_table, refuse_not_numbers, validated
from shoal.model.targets import Targets
from shoal.model.tasks import TaskIndex
from shoal.model.validation import are_valid, blocks, first_out_of_range

AnyCore = TypeVar("AnyCore", bound=CoreLike)

ONE_ROUND = np.array([0, 1])
COPY_PAYS = 8  # a model is copied for a rollback if the input is at least this many times as large
INSTEAD = "give rows several times, or use HedgedSharing, MultitaskPerceptron or PassiveAggressive, which take weights"
NO_TARGET = object()  # the y of a row to predict
ZERO = np.zeros(1)  # the number that kernels get for it


class Admitted(NamedTuple):
    """Input that fits the model, which has not changed yet."""

    rounds: Rounds
    new_tasks: list[Any]
    features: Features
    labels: Any


class Model:
    """The learned part of a learner. Learning needs one writer; any number of threads may predict."""

    def __init__(self, core: CoreLike, targets: Targets, name: str, classes: Any = None) -> None:
        self.core = core
        self.targets = targets
        self.name = name  # of the learner, for messages
        self.tasks = TaskIndex(core.named_tasks)
        self.features = Features()
        self.labels = targets.declared(classes)

    @property
    def is_fitted(self) -> bool:
        """Has it learned a row?"""
        return self.core.state is not None

    def core_as(self, kind: type[AnyCore]) -> AnyCore:
        """The core, for a caller that knows its kind."""
        assert isinstance(self.core, kind)
        return self.core

    # ---- admission: input to valid rounds ----------------------------------------------------------------

    def admit(
        self,
        table: Table,
        y: Any,
        task: Any,
        rounds: Any,
        classes: Any,
        weight: Any = None,
        features: Features | None = None,
    ) -> Admitted:
        """Input as valid rounds; nothing changes. Raises ValueError if it does not fit; a row is named."""
        weights = read_weights(weight, table.n_rows, self.refusal_of_weights())
        features = self.features.admit(table, self.name) if features is None else features
        if y is None:
            raise ValueError(f"{self.name} requires y to be passed, but the target y is None.")
        targets, labels = self.targets.encode(y, table.n_rows, self.labels, classes)
        self._refuse_no_task(task)
        columns, new = self.tasks.encode(task, table.n_rows)
        self._refuse_unnamed(new)
        starts = form_rounds(columns, len(self.tasks) + len(new), rounds, simultaneous=self.core.simultaneous)
        learned, entering = without_weightless(columns, new, len(self.tasks), weights)
        self._tell_groups(learned, columns, new, entering)
        return Admitted(table.rounds(learned, targets, starts, weights), entering, features, labels)

    def refusal_of_weights(self) -> str:
        """Why rows cannot have weights, and what else to do, or ""."""
        why = self.core.no_weights
        return why and f"{self.name} takes no sample_weight: {why}; {INSTEAD}"

    def _refuse_no_task(self, task: Any) -> None:
        if task is None and len(self.tasks) > 0 and None not in self.tasks.column:
            some = ", ".join(repr(known) for known in self.tasks.ids[:3])
            raise ValueError(
                f"this model has {len(self.tasks)} tasks ({some}{', ...' * (len(self.tasks) > 3)}); say which task the "
                "rows belong to: task=... (an unseen id is answered from what tasks share). A tool "
                "that gives rows only, such as scikit-learn's, takes the task as a column of them: "
                "shoal.TaskColumn(learner, 'COLUMN')"
            )

    def _refuse_unnamed(self, new_tasks: list[Any]) -> None:
        if new_tasks and self.core.named_tasks:
            raise ValueError(f"task {new_tasks[0]!r} is not one of the tasks that the relation names")

    def commit(self, admitted: Admitted, *, declare: bool = False) -> None:
        """Know the input's tasks, features and labels; `declare`: its tasks exist before its first row."""
        n_before, is_new = len(self.tasks), self.core.state is None
        n_tasks = n_before + len(admitted.new_tasks)
        self._name_groups(admitted.new_tasks)
        self.core.reserve(n_tasks, admitted.features.count)
        self.know(admitted)
        n_declared = n_tasks if declare else n_before if is_new else 0
        if n_declared:
            self.core.enter(n_declared)

    def know(self, admitted: Admitted) -> None:
        """The same without a state: rows that are learned elsewhere."""
        self.tasks.add(admitted.new_tasks)
        self.features, self.labels = admitted.features, admitted.labels

    def weight_of_one(self, sample_weight: Any) -> FloatArray:
        """The weight of an example that counts other than once. Raises ValueError as `read_weights` does."""
        return read_weights([sample_weight], 1, self.refusal_of_weights())

    # ---- learning ----------------------------------------------------------------------------------------

    def learn(
        self,
        X: Any,
        y: Any,
        task: Any,
        rounds: Any,
        classes: Any,
        weight: Any = None,
        *,
        declare: bool = False,
        out: bool = False,
        learn: Callable[[Rounds, FloatArray], None] | None = None,
    ) -> FloatArray:
        """Learn a chunk in order; return the decisions given before each round, if they are wanted (`out`).

        `learn` takes the place of the core's verb.
        """
        learn = self.core.learn if learn is None else learn
        table = read_table(X)
        if not table.validated and not self._in_blocks(table):
            table = validated(table)
        try:
            admitted = self.admit(table, y, task, rounds, classes, weight)
            if declare:  # a fit
                refuse_all_zero(admitted.rounds.weight)
        except ValueError:
            validated(table)  # a problem of the rows themselves comes first
            raise
        decisions = self.core.new_out(table.n_rows if out else 0)
        if not table.validated:
            with self.transaction() as rollback:
                self.commit(admitted, declare=declare)
                if self._learned_in_blocks(admitted.rounds, table.n_features, learn, decisions):
                    return decisions
                rollback()
            admitted = admitted._replace(rounds=validated(table).with_rows_of(admitted.rounds))
        with self.transaction() if self.core.may_fail else nullcontext():
            self.commit(admitted, declare=declare)
            learn(admitted.rounds, decisions)
        return decisions

    def _in_blocks(self, table: Table) -> bool:
        size = self.core.nbytes()
        return self.core.learns_in_blocks and size * COPY_PAYS <= table.values.nbytes

    def _learned_in_blocks(self, chunk: Rounds, n_features: int, learn: Any, decisions: FloatArray) -> bool:
        """Learn each block after it was validated; False as soon as one is not valid."""
        for first, last in pairwise(blocks(chunk)):
            starts = chunk.starts[first : last + 1]
            if not are_valid(chunk, n_features, starts[0], starts[-1]):
                return False
            learn(chunk._replace(starts=starts), decisions)
        return True

    def learn_round(self, examples: Mapping[Any, Any], weight: Any = None) -> None:
        """Learn the examples that arrived together: `{task: (x, y), ...}`, or `(x, y, weight)` where one counts
        other than once."""
        if not examples:
            raise ValueError("an empty round: expected {task: (x, y), ...} with at least one task")
        table, features = self.features.stack([x for x, *_ in examples.values()])
        task = None if list(examples) == [None] else list(examples)
        y = [y for _, y, *_ in examples.values()]
        if weight is None and any(len(example) > 2 for example in examples.values()):
            weight = [(*example, 1.0)[2] for example in examples.values()]
        admitted = self.admit(table, y, task, np.zeros(len(y), np.int64), None, weight, features)
        with self.transaction() if self.core.may_fail else nullcontext():
            self.commit(admitted)
            self.core.learn(admitted.rounds, self.core.new_out(0))

    @contextmanager
    def transaction(self) -> Iterator[Callable[[], None]]:
        """The model is what it was before, bit for bit, if the body raises or calls the function that it is given."""
        features, labels, n_tasks, restore = self.features, self.labels, len(self.tasks), self.core.snapshot()

        def rollback() -> None:
            self.features, self.labels = features, labels
            self.tasks.keep_first(n_tasks)
            restore()

        try:
            yield rollback
        except BaseException:
            rollback()
            raise

    # ---- deciding ----------------------------------------------------------------------------------------

    def decide(self, X: Any, task: Any) -> FloatArray:
        """Decisions of the rows of a table."""
        table = read_table(X)
        if not table.validated and not self.core.learns_in_blocks:
            table = validated(table)
        try:
            rounds = self._rows(table, task)
        except ValueError:
            validated(table)  # as in `learn`
            raise
        decisions = self.core.new_out(table.n_rows)
        if not table.validated:
            if self._decided_in_blocks(rounds, table.n_features, decisions):
                return decisions
            rounds = validated(table).with_rows_of(rounds)
        self.core.decide(rounds, decisions)
        return decisions

    def _decided_in_blocks(self, rounds: Rounds, n_features: int, decisions: FloatArray) -> bool:
        for first, last in pairwise(blocks(rounds)):
            if not are_valid(rounds, n_features, first, last):
                return False
            self.core.decide(cut(rounds, first, last), decisions[first:last])
        return True

    def rows_to_decide(self, X: Any, task: Any) -> Rounds:
        """The rows of a table, validated."""
        return self._rows(validated(read_table(X)), task)

    def _rows(self, table: Table, task: Any) -> Rounds:
        self.features.admit(table, self.name)
        self._refuse_no_task(task)
        columns, unseen = self.tasks.encode(task, table.n_rows)
        if unseen:
            given = columns.copy()
            columns[columns >= len(self.tasks)] = -1
            self._tell_groups(columns, given, unseen)
        return table.rounds(columns, NO_OUT, np.arange(table.n_rows + 1) if not table.validated else ONE_ROUND)

    # ---- one example -------------------------------------------------------------------------------------

    def known_row(self, x: Any, task: Hashable, y: Any, weight: FloatArray = NO_WEIGHT) -> Rounds | None:
        """The example as rounds if nothing about it is new, else None: then it needs full validation.

        Nothing is written to: several threads may ask at once.
        """
        column = self.tasks.one(task)
        target = ZERO if y is NO_TARGET else self.targets.encode_one(y, self.labels)
        if column is None or target is None or self.core.state is None:
            return None
        if type(x) is np.ndarray:
            width = self.features.count
            if x.dtype != FLOAT64 or x.shape != (width,) or not x.flags.carray:
                return None
            indptr, indices, values = NO_INDPTR, NO_INDICES, x
        else:
            width = 0
            if self.features.names is None:
                return None
            try:
                indptr, indices = self.features.columns_of(x)
                values = np.fromiter(x.values(), np.float64, len(x))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                return None
        if first_out_of_range(values) >= 0:
            return None
        return Rounds(width, indptr, indices, values, column, target, ONE_ROUND, weight)

    def known_sparse_row(self, row: tuple[IndexArray, FloatArray], task: Hashable, y: Any) -> Rounds | None:
        """A valid sparse row, columns in increasing order, if neither its task nor its label is new."""
        column, target = self.tasks.one(task), self.targets.encode_one(y, self.labels)
        if column is None or target is None or self.core.state is None:
            return None
        return Rounds(0, np.array([0, len(row[0])]), *row, column, target, ONE_ROUND, NO_WEIGHT)

    def row_to_decide(self, x: Any, task: Hashable) -> Rounds:
        """An example without its label, validated; its task may be unseen."""
        rounds = self.known_row(x, task, NO_TARGET)
        if rounds is not None:
            return rounds
        if isinstance(x, Mapping):
            refuse_not_numbers(x, 0)
            self.features.refuse_dicts()
            table = self.features.row(x)
        else:
            table = self.features.stack([x])[0]
        self._refuse_no_task(task)
        return table.rounds(self._columns_of([task]), np.zeros(1), ONE_ROUND)

    def sparse_rows(self, rows: Sequence[tuple[IndexArray, FloatArray]], tasks: Sequence[Hashable]) -> Rounds:
        """Valid rows to decide, columns in increasing order; those that the model does not know are left out."""
        n, count = len(rows), self.features.count
        indices, values = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum([len(row[0]) for row in rows], out=indptr[1:])
        if len(indices) and int(indices.max()) >= count:
            known = indices < count
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            indices, values = indices[known], values[known]
        return Rounds(0, indptr, indices, values, self._columns_of(tasks), np.zeros(n), np.arange(n + 1), NO_WEIGHT)

    # ---- tasks and features ------------------------------------------------------------------------------

    def add_tasks(self, ids: Iterable[Hashable]) -> None:
        """Declare tasks before their first row."""
        ids = list(ids)
        _, new = self.tasks.encode(ids, len(ids))
        self._refuse_unnamed(new)
        self._name_groups(new)
        if self.is_fitted:
            self.core.reserve(len(self.tasks) + len(new), self.features.count)
        self.tasks.add(new)
        if self.is_fitted:
            self.core.enter(len(self.tasks))

    def forget_task(self, task: Hashable) -> None:
        """Remove a task and all that belongs to it alone."""
        if self.core.named_tasks:
            raise ValueError("the tasks of this model are those of its relation; none can be forgotten")
        if task not in self.tasks.column:
            raise ValueError(f"no task {task!r} in this model")
        with aside():
            k, ids = self.tasks.column[task], self.tasks.ids
            left = TaskIndex(ids[:k] + ids[k + 1 :])
        old = self.core.state  # given back when readers have had their turn
        self.core.leave(k, len(ids))
        self.tasks = left
        with aside():
            del old

    def _columns_of(self, tasks: Sequence[Hashable]) -> IntArray:
        """(n,) the columns of rows' tasks; of unseen ones -1, or what tells their group."""
        columns = np.array([self.tasks.column.get(task, -1) for task in tasks])
        if self.core.groups is not None:
            left = np.flatnonzero(columns < 0)
            columns[left] = self.core.groups.unseen([tasks[row] for row in left.tolist()])
        return columns

    def _tell_groups(self, columns: IntArray, given: IntArray, new: list[Any], entering: Sequence[Any] = ()) -> None:
        """Rows of new tasks whose column is -1 tell their group, where the core learns by group.

        Parameters
        ----------
        columns : (n,) to be changed
        given : (n,) columns as `TaskIndex.encode` gives them
        entering : those of the new tasks that will be known next
        """
        if self.core.groups is not None and new:
            left = columns < 0
            columns[left] = self.core.groups.unseen(new, entering)[given[left] - len(self.tasks)]

    def _name_groups(self, new: list[Any]) -> None:
        """Tell the ids of new tasks to a core that learns by group."""
        if self.core.groups is not None and new:
            self.core.groups.name(len(self.tasks), new)

    def add_features(self, more: Iterable[Hashable] | int) -> None:
        """Let rows have more features from now on."""
        features = self.features.added(more)
        if self.is_fitted:
            self.core.reserve(len(self.tasks), features.count)
        self.features = features

    def updates(self) -> IntArray:
        """Updates of each task."""
        return self.core.updates(len(self.tasks))
