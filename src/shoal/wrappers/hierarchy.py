"""Tasks within groups, such as shops within countries: beside the learner one like it, whose tasks are the groups.

A row belongs to task k, and k to group g. With f the forecast of the learner for k, and f' that of the second learner,
which has the same hyper-parameters and learns the same rows, for g,

    q = the mixture of f and f'                                  the answer, as `outside_forecast` has it with g_1 = f'

and after the label both learners and the mixture learn the row: f' is made before its row, as f is. In a round that has
several rows of a group all are answered before any is learned, and then they are learned one after the other. A new
task is answered by f, the learner's forecast for unseen tasks, and by f', which its group has learned. The twin in
plain NumPy is tests/twins/hierarchy.py.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds, cut
from shoal.learner import Learner, logistic
from shoal.model.algorithm import Size
from shoal.model.core import NO_OUT, CoreLike
from shoal.model.core_around import CoreAround, with_room, without_task
from shoal.model.explanations import Parts, bare, between, decisions_of
from shoal.model.groups import Groups
from shoal.model.growth import stepping_aside
from shoal.model.parameters import from_keywords
from shoal.online.hedged_sharing.learner import HedgedSharing
from shoal.wrappers.conformal import Conformal
from shoal.wrappers.inner import Mixed, mean_core, of_numbers, seen_through
from shoal.wrappers.label_query import LabelQuery
from shoal.wrappers.multi_class import MultiClass
from shoal.wrappers.outside_forecast import (
    Stacking,
    check_stacking,
    decide_rows,
    learn_rows,
    new_scratch,
    new_stacking,
)

BOTH = 2  # forecasts: the learner's and the group's


@kernel(entry=True, allocates=True)
def cut_at_repeats(group: IntArray, starts: IntArray, n_groups: int) -> IntArray:
    """Row offsets of the rounds, cut where a group comes again."""
    found = np.empty(len(group) + 1, np.int64)
    seen_in = np.full(n_groups, -1, np.int64)  # the last round in which the group was seen
    n = -1
    for r in range(len(starts) - 1):
        for row in range(starts[r], starts[r + 1]):
            g = group[row]
            if row == starts[r] or (g >= 0 and seen_in[g] == n):
                n += 1
                found[n] = row
            if g >= 0:
                seen_in[g] = n
    found[n + 1] = starts[-1]
    return found[: n + 2]


@cache
def _packed_kind(tasks: Any, groups: Any) -> Any:
    """The saved arrays, with those of both cores."""
    group: Any = Annotated[IntArray, TASK]
    fields = [("estimator", tasks), ("group_estimator", groups), ("group", group), ("stacking", Stacking)]
    return NamedTuple("Packed", fields)


class HierarchyCore(CoreAround):
    """A core of the tasks, one of their groups, and the mixing of their answers."""

    groups: Groups

    def __init__(self, inner: Any, of_groups: Any, *, regression: bool) -> None:
        super().__init__(inner)
        self.of_groups, self.regression = of_groups, regression
        self.groups = Groups()
        self.n_entered = 0  # groups that a row or a declaration has brought
        self.learned = new_stacking(BOTH, 0)

    def _rows(self, rounds: Rounds) -> tuple[Rounds, Rounds]:
        """The rows as those of tasks, and as those of groups; -1 where either is unknown."""
        task = rounds.task
        by_group = rounds._replace(task=self.groups.of_rows(task))
        return (rounds._replace(task=np.maximum(task, -1)) if (task < -1).any() else rounds), by_group

    def _learn_groups(self, rounds: Rounds) -> FloatArray:
        """Learn rounds of groups; the forecasts before each."""
        group, starts, forecasts = rounds.task, rounds.starts, np.empty(len(rounds.task))
        finer = cut_at_repeats(group, starts, len(self.groups))
        place, first = np.searchsorted(finer, starts), 0
        for r in np.flatnonzero(np.diff(place) > 1).tolist():
            begin, end = int(starts[r]), int(starts[r + 1])
            self._learn_piece(rounds, first, begin, forecasts)
            self._enter_groups(int(group[begin:end].max()) + 1)
            piece = cut(rounds, begin, end)
            self.of_groups.decide(piece, forecasts[begin:end])
            self.of_groups.learn(piece._replace(starts=finer[place[r] : place[r + 1] + 1] - begin), NO_OUT)
            first = end
        self._learn_piece(rounds, first, len(group), forecasts)
        self.n_entered = max(self.n_entered, int(group.max(initial=-1)) + 1)
        return forecasts

    def _learn_piece(self, rounds: Rounds, first: int, last: int, forecasts: FloatArray) -> None:
        if last > first:
            self.of_groups.learn(cut(rounds, first, last), forecasts[first:last])

    def _enter_groups(self, n_groups: int) -> None:
        """The first `n_groups` groups exist."""
        if n_groups > self.n_entered:
            self.of_groups.enter(n_groups)
            self.n_entered = n_groups

    def _without_groups_to_come(self, rounds: Rounds, by_group: Rounds) -> Rounds:
        """Rows that count nothing do not bring a group: before its first row that counts it is unknown."""
        task, group = rounds.task, by_group.task
        if len(rounds.weight) == 0 or (task >= 0).all():
            return by_group
        newest = np.maximum.accumulate(np.append(self.n_entered - 1, np.where(task >= 0, group, -1)))[:-1]
        return by_group._replace(task=np.where((task < 0) & (group > newest), -1, group))

    def _outside(self, forecasts: FloatArray) -> FloatArray:
        """(n, 1) the forecasts of groups, as the mixing takes those from outside."""
        return (forecasts if self.regression else logistic(forecasts))[:, None]

    # ---- the interface of a core ---------------------------------------------------------------------------

    def reserve(self, n_tasks: int, n_features: int) -> None:
        super().reserve(n_tasks, n_features)
        self.of_groups.reserve(len(self.groups), n_features)
        self.learned = self.learned._replace(own=with_room(self.learned.own, n_tasks))

    def enter(self, n_tasks: int) -> None:
        self.inner.enter(n_tasks)
        self._enter_groups(int(self.groups.of[:n_tasks].max(initial=-1)) + 1)

    def leave(self, k: int, n_tasks: int) -> None:
        """The task goes; its group, too, if it was the last one in it."""
        with stepping_aside(nullcontext):  # one core would have the task, the other its group
            self.inner.leave(k, n_tasks)
            n_groups, empty = len(self.groups), self.groups.forget(k)
            if empty is not None:
                self.of_groups.leave(empty, n_groups)
                self.n_entered -= 1
        self.learned = self.learned._replace(own=without_task(self.learned.own, k))

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        n = len(rounds.task)
        f, answers = np.empty(n), out if len(out) > 0 else np.empty(n)
        by_task, by_group = self._rows(rounds)
        outside = self._outside(self._learn_groups(self._without_groups_to_come(rounds, by_group)))
        self.inner.learn(by_task, f)
        learn_rows(f, outside, by_task, self.regression, self.learned, new_scratch(BOTH), answers)

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        by_task, by_group = self._rows(rounds)
        if (to_come := by_group.task >= self.n_entered).any():  # while both cores grow, predictions run
            by_group = by_group._replace(task=np.where(to_come, -1, by_group.task))
        f, f_group = np.empty((2, len(rounds.task)))
        self.inner.decide(by_task, f)
        self.of_groups.decide(by_group, f_group)
        self._mix(f, f_group, by_task.task, out)

    def _mix(self, f: FloatArray, f_group: FloatArray, task: IntArray, out: FloatArray) -> None:
        decide_rows(f, self._outside(f_group), task, self.regression, self.learned, new_scratch(BOTH), out)

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """Contributions: u times those of the learner, and 1 - u times those of the group's, which tasks share.

        The answer a lies between their forecasts f and f', so u = (a - f')/(f - f'); where it does not, the intercept
        has the rest. Without `values`, u is the weight of the task's own forecast.
        """
        known = np.maximum(tasks, -1)
        own = bare(self.inner).contributions(known, features, values)
        found = bare(self.of_groups).contributions(self.groups.of_rows(tasks), features, values)
        of_group = found._replace(
            shared=found.shared + found.own,
            own=np.zeros_like(found.own),
            pairs_shared=found.pairs_shared + found.pairs_own,
            pairs_own=np.zeros_like(found.pairs_own),
        )
        if values is None:
            return between(self.weights(known)[:, 0], own, of_group)
        f, f_group, answers = decisions_of(own), decisions_of(of_group), np.empty(len(tasks))
        self._mix(f, f_group, known, answers)
        apart, u = f != f_group, np.ones(len(tasks))
        u[apart] = np.clip((answers - f_group)[apart] / (f - f_group)[apart], 0.0, 1.0)
        parts = between(u, own, of_group)
        parts.shared[:, 0] += answers - decisions_of(parts)
        return parts

    def weights(self, task: IntArray) -> FloatArray:
        """(n, 2) Bayes weights of both forecasts for rows of these tasks, -1 for an unseen one."""
        own = self.learned.own[task]
        known = (task >= 0) & (own[:, 0] > 0.0)
        return np.asarray(np.where(known[:, None], own[:, 1:], self.learned.weights))

    def adopt(self, other: Any) -> None:
        super().adopt(other)
        self.of_groups.adopt(other.of_groups)

    def attach(self, other: Any) -> None:
        super().attach(other)
        self.of_groups.attach(other.of_groups)

    def snapshot(self) -> Callable[[], None]:
        rollbacks = [self.inner.snapshot(), self.of_groups.snapshot()]
        kept, n_tasks, n_entered = Stacking(*(a.copy() for a in self.learned)), len(self.groups.of), self.n_entered

        def go_back() -> None:
            for rollback in rollbacks:
                rollback()
            self.groups.keep_first(n_tasks)
            self.learned, self.n_entered = kept, n_entered

        return go_back

    def nbytes(self) -> int:
        return super().nbytes() + int(self.of_groups.nbytes()) + self.learned.own.nbytes

    # ---- files -----------------------------------------------------------------------------------------------

    def _size_of_groups(self, size: Size) -> Size:
        return size._replace(tasks=min(size.tasks, len(self.groups)))

    def _packed(self, tasks: Any, groups: Any, group: IntArray, learned: Stacking) -> Any:
        kinds: Any = type(tasks), type(groups)
        return _packed_kind(*kinds)(tasks, groups, group, learned)

    def pack(self, size: Size) -> Any:
        both = self.inner.pack(size), self.of_groups.pack(self._size_of_groups(size))
        learned = self.learned._replace(own=self.learned.own[: size.tasks])
        return self._packed(*both, self.groups.of, learned)

    def blank(self, size: Size) -> Any:
        both = self.inner.blank(size), self.of_groups.blank(self._size_of_groups(size))
        return self._packed(*both, np.zeros(size.tasks, np.int64), new_stacking(BOTH, size.tasks))

    def expect_labels(self, labels: Any) -> None:
        super().expect_labels(labels)
        self.of_groups.expect_labels(labels)

    def unpack(self, packed: Any, size: Size) -> None:
        check_stacking(packed.stacking)
        self.groups.reorder(packed.group)
        self.inner.unpack(packed.estimator, size)
        self.of_groups.unpack(packed.group_estimator, self._size_of_groups(size))
        self.learned, self.n_entered = packed.stacking, len(self.groups)


def with_hierarchy(learner: Any) -> Any:
    """The learner within a hierarchy, where tables have the columns of an id as levels.

    Raises
    ------
    ValueError
        If it is no learner of this library, or is for more than two labels.
    """
    if isinstance(learner, MultiClass) or not isinstance(learner, Learner):
        raise ValueError("a hierarchy is for learners of shoal with two labels or numbers")
    found = Hierarchy(learner)
    found.new_core()  # raises now if it cannot go around the learner
    return found


@from_keywords
class Hierarchy(Mixed):
    """Any learner with tasks in groups, as shops in countries: a new shop begins with what its country has learned.

    The id of a task names its group: ``("France", "shop 7")``, or "France,shop 7" as tables join columns; the last part
    is the task's own. A second learner like the estimator has the groups as its tasks and learns the same rows. The
    answer is ``q = u b + (1 - u) r``, b the mixture of both forecasts by the Bayes weights of the task, r a regression
    on them, which begins as the estimator's own: see `OutsideForecast`. Cost: two learners; three numbers a task.

    Parameters
    ----------
    estimator : classifier of two labels, or regressor; None: `HedgedSharing()`
        It stays as it is; its trained copies are `estimator_` and `group_estimator_`.

    Attributes
    ----------
    estimator_, group_estimator_ : the trained learners of tasks and of groups
    groups_ : list of group ids, "France" of ("France", "shop 7"); the tasks of `group_estimator_`
    weights_ : (n_tasks, 2) Bayes weights of its own forecast and of its group's in each task
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or an estimator for more than two labels or with a relation that names tasks.

    Notes
    -----
    Of ids with more parts, ``("EU", "France", "shop 7")``, all but the last name one group. Tasks whose ids have one
    part are in one group, None. A group stays as long as it has a task, with all that it learned, also from forgotten
    tasks. Where groups are alike, or tasks have many rows each, it changes little:
    ``python -m benchmarks.hierarchies`` prints by how much on five streams.

    References
    ----------
    Herbster, Warmuth. Tracking the Best Expert. Machine Learning 32, 1998: Bayes weights with a share. Breiman. Stacked
    Regressions. Machine Learning 24, 1996. That the group is one more forecast is this library's.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import Hierarchy, HedgedSharing
    >>> rng = np.random.default_rng(0)
    >>> X, shop = rng.normal(size=(4000, 6)), rng.integers(200, size=4000)
    >>> w = 2.0 * rng.normal(size=(5, 6))  # five countries
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-np.einsum("nd,nd->n", X, w[shop % 5])))
    >>> task = [(f"country {k % 5}", f"shop {k}") for k in shop.tolist()]
    >>> for learner in HedgedSharing(), Hierarchy(HedgedSharing()):
    ...     f = learner.test_then_train(X, y, task)
    ...     print(f"{type(learner).__name__:13} log-loss {np.logaddexp(0.0, np.where(y, -f, f)).mean():.3f}")
    HedgedSharing log-loss 0.449
    Hierarchy     log-loss 0.293
    """

    estimator: Learner | None = field(default=None, kw_only=False)

    default = HedgedSharing
    estimator_names = ("estimator",)

    def new_core(self) -> CoreLike:
        """The mixing around a core of the estimator for tasks, and one for groups."""
        estimator = self.plain
        inner, of_groups = mean_core(estimator, "Hierarchy"), mean_core(estimator, "Hierarchy")
        if isinstance(estimator, Conformal | Hierarchy | LabelQuery | MultiClass):
            raise ValueError(f"Hierarchy goes around the learner itself, got a {type(estimator).__name__}")
        if inner.named_tasks:
            raise ValueError("Hierarchy needs a learner of any tasks, and the relation of this one names them")
        return HierarchyCore(inner, of_groups, regression=of_numbers(estimator))

    def baselines(self) -> dict[str, Learner]:
        """The estimator's, which know no groups."""
        return self.plain.baselines()

    # ---- learned attributes --------------------------------------------------------------------------------

    def _core(self, attribute: str) -> HierarchyCore:
        return self._known(attribute).core_as(HierarchyCore)

    @property
    def estimator_(self) -> Any:
        """The trained learner of tasks, as it is now."""
        return seen_through(self.plain, self._known("estimator_"), self._core("estimator_").inner)

    @property
    def group_estimator_(self) -> Any:
        """The trained learner of groups, as it is now."""
        core = self._core("group_estimator_")
        return seen_through(self.plain, self._known("group_estimator_"), core.of_groups, tasks=core.groups.index)

    @property
    def groups_(self) -> list[Any]:
        """The ids of groups in the order in which they came."""
        return self._core("groups_").groups.index.ids

    @property
    def weights_(self) -> FloatArray:
        """(n_tasks, 2) Bayes weights of a task's own forecast and of its group's."""
        return self._core("weights_").weights(np.arange(len(self.tasks_)))

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) the estimator's task relationship, or None."""
        return self.estimator_.relation_ if self.__sklearn_is_fitted__() else None
