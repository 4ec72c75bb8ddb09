"""Selective sampling around any classifier: labels are asked for where the margin says that they may teach something.

A row with margin f is asked for with probability b/(b + |f|), b the budget (Cesa-Bianchi, Gentile, Zaniboni, JMLR
2006, where it trades labels for mistakes in the bound of the selective sampling Perceptron). The learner sees the rows
that were asked for and no others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from operator import is_
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal import storage
from shoal.features import Columns, Table
from shoal.labels import Labels
from shoal.learner import Classifier, Learner
from shoal.online._random import QUERIES, uniform
from shoal.online.multitask_perceptron import MultitaskPerceptron
from shoal.ops import TASKS
from shoal.rounds import FloatArray, IntArray, Rounds
from shoal.tasks import TaskIndex

RULES = ("margin", "fixed", "own")


class State(NamedTuple):
    """What is saved."""

    learner: Any  # the learner's state
    random: NDArray[np.uint64]  # (3,) see `_random`
    asked: IntArray  # (tasks,)
    granted: IntArray  # (tasks,)


class LabelQuery(Classifier):
    """Any classifier of this library, shown only the labels that a query rule asks for.

    In every round all rows are answered, then a row with margin f is asked for with probability budget/(budget + |f|)
    ("margin"), and the learner learns the asked rows of the round. Cost: the learner's, and some 10 us a round.

    Parameters
    ----------
    learner : classifier of this library; None: `MultitaskPerceptron()`
        It stays as it is; its trained copy is `learner_`.
    rule : {"margin", "fixed", "own"}
        "margin": sure rows are seldom asked for. "fixed": every row is asked for with the same probability, the
        control that a rule has to beat. "own": the learner's own rule, if it has `query_one`; it sees all rows and
        asks by itself.
    budget : float > 0
        With "margin" the margin at which every second label is asked for (inf: all), with "fixed" the share of labels,
        at most 1. "own" has its budget in the learner.
    random_state : int, RandomState or None
        Of the queries. The generator is part of the model.

    Attributes
    ----------
    learner_ : the trained learner; its `coef_` and `relation_` are here too
    n_queries_ : labels asked for
    task_queries_ : (n_tasks,) labels asked for, by task
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a learner that is no classifier or has no rule of its own.

    Notes
    -----
    Unseen tasks are answered as the learner answers them. A task exists from its first row, asked for or not.

    References
    ----------
    Cesa-Bianchi, Gentile, Zaniboni. Worst-Case Analysis of Selective Sampling for Linear Classification. JMLR 7, 2006.

    Examples
    --------
    >>> from shoal import LabelQuery, MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for rule, budget in (("fixed", 1.0), ("margin", 10.0), ("fixed", 0.55)):
    ...     learner = LabelQuery(MultitaskPerceptron(), rule=rule, budget=budget, random_state=0)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     error = ((decisions >= 0) != (data.y > 0)).mean()
    ...     print(f"{rule:6} {learner.n_queries_} labels, error {error:.3f}")
    """

    learner_: Learner
    _asked: Counter[Hashable]
    _granted: Counter[Hashable]
    _random: NDArray[np.uint64]
    _synced: tuple[Any, ...]  # the hyper-parameters last seen

    def __init__(
        self, learner: Learner | None = None, *, rule: str = "margin", budget: float = 1.0, random_state: Any = None
    ) -> None:
        self.learner = learner
        self.rule = rule
        self.budget = budget
        self.random_state = random_state

    # ---- the query -----------------------------------------------------------------------------------------

    def query_one(self, x: Any, task: Hashable = None) -> bool:
        """Should the label of this example be asked for?

        True is a promise: the next example of the task given to a learn verb is learnt without asking again, so
        ``if learner.query_one(x, task): learner.learn_one(x, label(), task)`` over a stream of one-row rounds learns
        what `partial_fit` does. For that the question is counted, its random number is used up, and a task that was
        not known enters.

        Parameters
        ----------
        x : dict or 1-d array
        task : hashable

        Raises
        ------
        ValueError
            If the example is not one that `predict_one` takes.
        """
        inner = self._begun()
        if self.rule == "own":
            return bool(inner.query_one(x, task))
        if not self._wants(inner._one_value(x, task) if inner._state is not None else 0.0):
            return False
        inner.add_tasks([] if task is None or task in inner._known_tasks().column else [task])
        self._asked[task] += 1
        self._granted[task] += 1
        return True

    def _wants(self, f: float) -> bool:
        """One draw a row, whatever the margin."""
        p = self.budget if self.rule == "fixed" else 1.0 / (1.0 + abs(f) / self.budget)
        return bool(uniform(self._random, QUERIES) < p)

    def _asks(self, task: Hashable, f: float) -> bool:
        """Is the row's label asked for, or has it been?"""
        if self._granted[task] > 0:
            self._granted[task] -= 1
            return True
        wanted = self._wants(f)
        self._asked[task] += wanted
        return wanted

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> Any:
        inner = self._begun()
        if loop == 1 or self.rule == "own":
            return inner._call(loop, rounds, decisions)
        ids = inner.tasks_
        answers = np.empty(len(rounds.task)) if len(decisions) == 0 else decisions
        for first, last in zip(rounds.starts[:-1].tolist(), rounds.starts[1:].tolist(), strict=True):
            columns = rounds.task[first:last].tolist()
            if max(columns) >= inner._state.clock[TASKS]:
                inner._enter(inner._state, max(columns) + 1)
            inner._call(1, _rows(rounds, [*range(first, last)]), answers[first:last])
            wanted = [first + i for i, k in enumerate(columns) if self._asks(ids[k], float(answers[first + i]))]
            if wanted:
                inner._call(0, _rows(rounds, wanted), np.zeros(0))
        return None

    # ---- the learner's, seen through -----------------------------------------------------------------------

    def _settings(self) -> Any:
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {RULES}, got {self.rule!r}")
        if not self.budget > 0 or (self.rule == "fixed" and self.budget > 1):
            raise ValueError(f"budget must be a number > 0, and with rule='fixed' a share <= 1, got {self.budget}")
        check_random_state(self.random_state)
        learner = self._plain()
        if not isinstance(learner, Classifier):
            raise ValueError(f"LabelQuery needs a classifier of this library, got {type(learner).__name__}")
        if self.rule == "own" and not hasattr(learner, "query_one"):
            raise ValueError(f"{type(learner).__name__} has no query rule of its own; use rule='margin'")
        return learner._settings()

    def _plain(self) -> Learner:
        return MultitaskPerceptron() if self.learner is None else self.learner

    def _begun(self) -> Learner:
        """`learner_`, with the hyper-parameters that `learner` has now; there need not be a row yet."""
        plain = self._plain()
        values = (*self._hyper_parameters(), *plain._hyper_parameters())
        if not hasattr(self, "learner_"):
            self._settings()
            self._start(clone(plain))
        elif len(values) != len(self._synced) or not all(map(is_, values, self._synced)):
            self._settings()
            if type(plain) is not type(self.learner_):
                raise ValueError("learner can only be replaced by another kind before fit")
            self.learner_.set_params(**plain.get_params(deep=False))
            self._synced = values
        return self.learner_

    def _start(self, learner: Learner) -> None:
        self.learner_, self._asked, self._granted = learner, Counter(), Counter()
        self._synced = ()
        draws = (
            self.rule != "own" and self.budget < math.inf
        )  # a model that draws nothing has seed 0, so that equal models are equal
        seed = check_random_state(self.random_state).randint(2**31 - 1) if draws else 0
        self._random = np.array([seed, 0, 0], np.uint64)

    def _admit(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, *, fresh: bool, columns: Columns | None
    ) -> Rounds:
        self._settings()
        is_new = fresh or not hasattr(self, "learner_")
        inner = clone(self._plain()) if is_new else self._begun()
        admitted: Rounds = inner._admit(table, y, task, rounds, classes, fresh=fresh, columns=columns)
        if is_new:
            self._start(inner)
        return admitted

    @property
    def simultaneous(self) -> bool:  # type: ignore[override]
        """The learner's protocol."""
        return self._plain().simultaneous

    @property
    def _state(self) -> Any:
        return self.learner_._state if hasattr(self, "learner_") else None

    @property
    def _tasks(self) -> TaskIndex | None:  # type: ignore[override]
        return self.learner_._tasks if hasattr(self, "learner_") else None

    @property
    def _columns(self) -> Columns:  # type: ignore[override]
        return self.learner_._columns if hasattr(self, "learner_") else Columns()

    @property
    def _labels(self) -> Labels | None:  # type: ignore[override]
        return self.learner_._labels if hasattr(self, "learner_") else None

    @property
    def _one(self) -> Any:  # type: ignore[override]
        return self.learner_._one

    def _set_columns(self, columns: Columns) -> None:
        self._begun()._set_columns(columns)

    def _initial_tasks(self) -> list[Any]:
        return self._plain()._initial_tasks()

    def add_tasks(self, ids: Iterable[Hashable]) -> Self:
        """Declare tasks before their first row."""
        self._begun().add_tasks(ids)
        return self

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and what only it holds; what others learnt from it stays with them."""
        check_is_fitted(self)
        self.learner_.forget_task(task)
        del self._asked[task], self._granted[task]
        return self

    def baselines(self) -> dict[str, Learner]:
        options = self.get_params(deep=False)
        return {name: LabelQuery(**{**options, "learner": b}) for name, b in self._plain().baselines().items()}

    # ---- what can be seen ----------------------------------------------------------------------------------

    @property
    def task_queries_(self) -> IntArray:
        """(n_tasks,) labels asked for, by task."""
        self._fitted("task_queries_")
        if self.rule == "own":
            return np.array(self.learner_.task_queries_)
        return np.array([self._asked[task] for task in self.tasks_], np.int64)

    @property
    def n_queries_(self) -> int:
        """Labels asked for."""
        self._fitted("n_queries_")
        return int(self.learner_.n_queries_ if self.rule == "own" else self.task_queries_.sum())

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) examples of each task that were used in updates of its own model."""
        self._fitted("task_updates_")
        return self.learner_.task_updates_

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights, if the learner's are linear."""
        self._fitted("coef_")
        return np.asarray(self.learner_.coef_)

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) the learner's task relationship, or None."""
        return self.learner_.relation_ if hasattr(self, "learner_") else None

    # ---- persistence ---------------------------------------------------------------------------------------

    def _trimmed(self) -> State:
        granted = np.array([self._granted[task] for task in self.tasks_], np.int64)
        asked = np.array([self._asked[task] for task in self.tasks_], np.int64)
        return State(self.learner_._trimmed(), self._random, asked, granted)

    def _restore(self, header: dict[str, Any], arrays: storage.Arrays) -> None:
        inner = clone(self._plain())
        inner._restore(header, {name.replace("state.learner.", "state.", 1): a for name, a in arrays.items()})
        self._start(inner)
        self._random = np.array(arrays["state.random"])
        for counter, name in ((self._asked, "asked"), (self._granted, "granted")):
            counter.update(dict(zip(inner.tasks_, arrays[f"state.{name}"].tolist(), strict=True)))


def _rows(rounds: Rounds, rows: list[int]) -> Rounds:
    """Some rows, one after the other, as one round."""
    first, last, n = rows[0], rows[-1] + 1, len(rows)
    where: Any = slice(first, last) if last - first == n else rows  # mostly all: views
    task, y, starts = rounds.task[where], rounds.y[where], np.array([0, n])
    if rounds.width > 0:
        values = rounds.values.reshape(-1, rounds.width)[where].ravel()
        return rounds._replace(values=values, task=task, y=y, starts=starts)
    if isinstance(where, slice):
        return rounds._replace(indptr=rounds.indptr[first : last + 1], task=task, y=y, starts=starts)
    pieces = [slice(rounds.indptr[row], rounds.indptr[row + 1]) for row in rows]
    indptr = np.cumsum([0, *(piece.stop - piece.start for piece in pieces)])
    indices, values = (np.concatenate([array[piece] for piece in pieces]) for array in (rounds.indices, rounds.values))
    return Rounds(0, indptr, indices, values, task, y, starts)
