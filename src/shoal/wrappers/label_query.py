"""Selective sampling around any classifier: labels are asked for where the margin says that they may teach something.

A row is asked for with probability b/(b + theta), b the budget and theta how sure the learner is of it: the margin |f|
(Cesa-Bianchi, Gentile, Zaniboni, JMLR 2006, where b trades labels for mistakes in the bound of the selective sampling
Perceptron), or what the margin has beyond the learner's doubt, [|f| - xᵀ S x/(4 eps)]_+ (Yang, Li, WWW 2020). The
learner sees the rows that were asked for and no others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.random import QUERIES, uniform
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS
from shoal.learner import NO_DECISIONS, Classifier, Learner, alike
from shoal.model import persistence as storage
from shoal.model.features import Columns, Table
from shoal.model.labels import Labels
from shoal.model.tasks import TaskIndex
from shoal.online.hedged_sharing import HedgedSharing
from shoal.online.local_global_gaussian import LocalGlobalGaussian
from shoal.wrappers.within import restored, untaught

RULES = ("margin", "variance", "fixed")
DECIDE, LEARN, THETAS = 1, 0, 2  # a learner's loops; the last is that of `LocalGlobalGaussian`


class State(NamedTuple):
    """What is saved."""

    learner: Any  # the learner's state
    random: NDArray[np.uint64]  # (3,) see `_random`
    asked: IntArray  # (tasks,)
    granted: IntArray  # (tasks,)


class LabelQuery(Classifier):
    """Any classifier of this library, shown only the labels that a query rule asks for.

    In every round all rows are answered, then each is asked for with probability ``budget/(budget + theta)``, and the
    learner learns the asked rows of the round. Cost: the learner's, and 10 to 20 us a round in Python.

    Parameters
    ----------
    learner : classifier of this library; None: `HedgedSharing()`
        It stays as it is; its trained copy is `learner_`.
    rule : {"margin", "variance", "fixed"}
        "margin": theta = abs(f), f the margin. "variance": theta = [abs(f) - xᵀ S x/(4 eps)]_+, the rule of Yang and
        Li, for a `LocalGlobalGaussian` (its own `h` stays inf): always asked for where the margin is within the doubt.
        "fixed": every row with the same probability, the control that a rule has to beat.
    budget : float > 0
        The theta at which every second label is asked for (inf: all); with "fixed" the share of labels, at most 1.
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
        On bad input or hyper-parameters, or a learner that is no classifier, asks for labels itself, or has no
        variance where the rule needs one.

    Notes
    -----
    Unseen tasks are answered as the learner answers them. A task exists from its first row, asked for or not.
    `shoal.evaluation.progressive_validate` reports the labels asked for, and the error over all rows.

    References
    ----------
    Cesa-Bianchi, Gentile, Zaniboni. Worst-Case Analysis of Selective Sampling for Linear Classification. JMLR 7, 2006:
    figure 1. Yang, Li. Efficient Online Multi-Task Learning via Adaptive Kernel Selection. WWW 2020.

    Examples
    --------
    >>> from shoal import LabelQuery, MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for rule, budget in (("fixed", 1.0), ("margin", 0.3), ("fixed", 0.39)):
    ...     learner = LabelQuery(MultitaskPerceptron(loss="hinge", eta=0.3), rule=rule, budget=budget, random_state=0)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     error = ((decisions >= 0) != (data.y > 0)).mean()
    ...     print(f"{rule:6} {learner.n_queries_} labels, error {error:.3f}")
    fixed  2000 labels, error 0.124
    margin 768 labels, error 0.135
    fixed  807 labels, error 0.149
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
            If the example is not one that `learn_one` takes.
        """
        inner = self._begun()
        theta = np.zeros(1)  # before the first row nothing is sure
        if inner._state is not None:
            inner._row_to_answer(x, task)  # refused before its task enters
        if task is not None and task not in inner._known_tasks().column:
            inner.add_tasks([task])
        if inner._state is not None:
            theta[0] = self._thetas(inner._row_to_answer(x, task), np.empty(1))[0]
        wanted = self._wants(theta[0])
        self._asked[task] += wanted
        self._granted[task] += wanted
        return wanted

    def _thetas(self, rounds: Rounds, answers: FloatArray) -> FloatArray:
        """How sure the learner is of each row; `answers` are filled with its margins."""
        inner = self.learner_
        inner._call(DECIDE, rounds, answers)
        if self.rule != "variance":
            return np.abs(answers)
        thetas = np.empty(len(answers))
        inner._call(THETAS, rounds, thetas)
        return np.maximum(thetas, 0.0)

    def _wants(self, theta: float) -> bool:
        """Draw, unless the answer is certain."""
        p = self.budget if self.rule == "fixed" else 1.0 / (1.0 + theta / self.budget)
        return bool(p >= 1.0 or uniform(self._random, QUERIES) < p)

    def _asks(self, task: Hashable, theta: float) -> bool:
        """Is the row's label asked for, or has it been?"""
        if self._granted[task] > 0:
            self._granted[task] -= 1
            return True
        wanted = self._wants(theta)
        self._asked[task] += wanted
        return wanted

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> Any:
        inner = self._begun()
        if loop != LEARN:
            return inner._call(loop, rounds, decisions)
        ids = inner.tasks_
        answers = decisions if len(decisions) > 0 else np.empty(len(rounds.task))
        for first, last in zip(rounds.starts[:-1].tolist(), rounds.starts[1:].tolist(), strict=True):
            rows, columns = _rows(rounds, [*range(first, last)]), rounds.task[first:last].tolist()
            if max(columns) >= inner._state.clock[TASKS]:
                inner._enter(inner._state, max(columns) + 1)
            thetas = self._thetas(rows, answers[first:last]).tolist()
            wanted = [first + i for i, k in enumerate(columns) if self._asks(ids[k], thetas[i])]
            if wanted:
                inner._call(LEARN, rows if len(wanted) == len(columns) else _rows(rounds, wanted), NO_DECISIONS)
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
        if isinstance(learner, LabelQuery) or getattr(learner, "h", math.inf) < math.inf:
            raise ValueError("the learner asks for labels itself; expected one that takes them all (h=inf)")
        if self.rule == "variance" and not isinstance(learner, LocalGlobalGaussian):
            raise ValueError(f"rule='variance' needs a LocalGlobalGaussian; a {type(learner).__name__} has no variance")
        return learner._settings()

    def _plain(self) -> Learner:
        return HedgedSharing() if self.learner is None else self.learner

    def _begun(self) -> Learner:
        """`learner_`, with the hyper-parameters that `learner` has now; there need not be a row yet."""
        plain = self._plain()
        values = (*self._hyper_parameters(), *plain._hyper_parameters())
        if not hasattr(self, "learner_"):
            self._settings()
            self._start(untaught(plain))
        elif not alike(values, self._synced):
            self._settings()
            if type(plain) is not type(self.learner_):
                raise ValueError("learner can only be replaced by another kind before fit")
            self.learner_.set_params(**plain.get_params(deep=False))
            self._synced = values
        return self.learner_

    def _start(self, learner: Learner) -> None:
        self.learner_, self._asked, self._granted = learner, Counter(), Counter()
        self._synced = (*self._hyper_parameters(), *self._plain()._hyper_parameters())
        draws = self.budget < (1.0 if self.rule == "fixed" else math.inf) or self.random_state is not None
        # A model that draws nothing has seed 0, so that equal models are equal.
        seed = check_random_state(self.random_state).randint(2**31 - 1) if draws else 0
        self._random = np.array([seed, 0, 0], np.uint64)

    def _admit(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, *, fresh: bool, columns: Columns | None
    ) -> Rounds:
        self._settings()
        is_new = fresh or not hasattr(self, "learner_")
        inner = untaught(self._plain()) if is_new else self._begun()
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
        return np.array([self._asked[task] for task in self.tasks_], np.int64)

    @property
    def n_queries_(self) -> int:
        """Labels asked for."""
        self._fitted("n_queries_")
        return int(self.task_queries_.sum())

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
        inner = restored(self._plain(), header, arrays, "learner")
        self._start(inner)
        self._random = np.array(arrays["state.random"])
        for counter, name in ((self._asked, "asked"), (self._granted, "granted")):
            counter.update(dict(zip(inner.tasks_, arrays[f"state.{name}"].tolist(), strict=True)))


def _rows(rounds: Rounds, rows: list[int]) -> Rounds:
    """Some rows as one round."""
    first, last, n = rows[0], rows[-1] + 1, len(rows)
    width, indptr, starts = rounds.width, rounds.indptr, np.array([0, n])
    if last - first == n:  # mostly all of a round: views
        task, y = rounds.task[first:last], rounds.y[first:last]
        if width > 0:
            values = rounds.values[first * width : last * width]
            return Rounds(width, indptr, rounds.indices, values, task, y, starts)
        a, b = indptr[first], indptr[last]
        return Rounds(0, indptr[first : last + 1] - a, rounds.indices[a:b], rounds.values[a:b], task, y, starts)
    task, y = rounds.task[rows], rounds.y[rows]
    if width > 0:
        return rounds._replace(values=rounds.values.reshape(-1, width)[rows].ravel(), task=task, y=y, starts=starts)
    entries = [np.arange(indptr[row], indptr[row + 1]) for row in rows]
    where = np.concatenate(entries)
    sizes = np.cumsum([0, *map(len, entries)])
    return Rounds(0, sizes, rounds.indices[where], rounds.values[where], task, y, starts)
