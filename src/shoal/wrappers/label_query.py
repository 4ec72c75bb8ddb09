"""Selective sampling around any classifier: ask for the label of a row if its margin is small.

A row is asked for with probability b/(b + theta), theta how sure the learner is of it: the margin |f| (Cesa-Bianchi,
Gentile, Zaniboni, JMLR 2006, where b trades labels for mistakes in the bound of the selective sampling Perceptron), or
what the margin has beyond the learner's doubt, [|f| - xᵀ S x/(4 eps)]_+ (Yang, Li, WWW 2020). Where peers are asked,
too, their margin g (what all tasks share says of the row) has to be small as well: the probability is
b/(b + |f|) b/(b + |g|) (Murugesan, Carbonell, NIPS 2017, who then learn the label that peers would give; no label is
learned here but true ones). The learner sees the rows that were asked for and no others. Given a budget, b is not a
constant: after every row of the stream, or of the task,

    ln b <- ln b + GAIN (budget - q),  q = 1 if the row was asked for, else 0.

The sum over n rows is  n budget - (labels asked for) = (ln b now - ln b at first)/GAIN:  whatever the scale of theta
is, and however it changes, the labels miss the budget by a number that does not grow with n. With a b for each task
that holds for its rows alone. It holds between any two rows, "at first" being the earlier one: so the share is kept in
each hour, too. There is no clock here, and learning knows no times: labels an hour are a share of the hour's rows.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import field
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import TASK
from shoal.engine.random import QUERIES, uniform
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS
from shoal.learner import Classifier, Learner, WeightedLearner
from shoal.model.algorithm import Size
from shoal.model.core import NO_OUT, Core, CoreLike
from shoal.model.core_around import CoreAround
from shoal.model.explanations import UNSEEN
from shoal.model.parameters import SEEDED, from_keywords, one_of, optional, positive, read, share
from shoal.online.hedged_sharing.learner import HedgedSharing
from shoal.wrappers.inner import inner_core, seen_through

# How fast ln b follows. A scale of theta 1,000 times larger or smaller costs ln(1000)/GAIN = 14 labels, once. A larger
# gain spaces the labels evenly, which leaves the margin less to say; with 0.05 the same change would cost 138 labels.
GAIN = 0.5
LARGEST_LOG_B = 300.0  # of log b, up or down: exp of it is still a number
LEAST = 1e-9  # theta, given a budget: rows that are not sure at all would be asked for whatever b is
PARAMETERS = {
    "rule": one_of(("margin", "variance", "peers", "fixed")),
    "budget": share(),
    "budget_of": one_of(("stream", "task")),
    "b": optional(positive(infinite=True)),
    "random_state": SEEDED,
}


def ask_within(budget: float, theta: float, log_b: float, draw: Callable[[float], bool]) -> tuple[bool, float]:
    """Ask for a label or not, and let b follow the budget: the rule of this module, also that of the service.

    Parameters
    ----------
    budget : float
        The share of labels to ask for.
    theta : float
        How sure the learner is of the row.
    log_b : float
    draw : function
        True with the given probability.

    Returns
    -------
    wanted : bool
    log_b : float
        For the next row.

    Examples
    --------
    >>> ask_within(0.1, 2.0, 0.0, lambda p: p > 0.3)  # p = 1/(1 + 2)
    (True, -0.45)
    """
    wanted = draw(1.0 / (1.0 + max(theta, LEAST) / math.exp(log_b)))
    return wanted, min(max(log_b + GAIN * (budget - wanted), -LARGEST_LOG_B), LARGEST_LOG_B)


def both(own: float, peers: float, b: float) -> float:
    """The theta with b/(b + theta) = b/(b + own) b/(b + peers)."""
    return own + peers + own * peers / b


STREAM = -1  # in place of a task: the budget of all rows


@cache
def _packed_kind(inner: Any) -> Any:
    """The saved arrays around those of the inner core."""
    fields: list[tuple[str, Any]] = [
        ("estimator", inner),
        ("random", NDArray[np.uint64]),  # see `shoal.engine.random`
        ("log_b", FloatArray),
        ("task_log_b", Annotated[FloatArray, TASK]),
        ("asked", Annotated[IntArray, TASK]),
        ("granted", Annotated[IntArray, TASK]),
    ]
    return NamedTuple("Packed", fields)


class QueryCore(CoreAround):
    """A core that learns only the rows whose labels a rule asks for."""

    def __init__(self, inner: CoreLike, values: dict[str, Any]) -> None:
        super().__init__(inner)
        params = read(PARAMETERS, values)
        self.rule = params.rule
        self.budget, self.b = params.budget, params.b
        self.asked: Counter[int] = Counter()  # labels asked for, by task index
        self.granted: Counter[int] = Counter()  # those that `query_one` asked for and that have not come yet
        if self.rule == "fixed" and self.b is not None and self.b < math.inf:
            raise ValueError(f"rule='fixed' takes budget=, not b= (but for inf: all labels), got b={self.b}")
        always = self.b == math.inf or (self.b is None and self.budget == 1.0)
        seed = 0 if always and not params.random_state.given else params.random_state.seed
        self.random = np.array([seed, 0, 0], np.uint64)  # a model that draws nothing has seed 0: equal ones are equal
        self.by_task = params.budget_of == "task"
        self.log_b: dict[int, float] = {}  # by task index, or of the STREAM; 0 if it is not there
        if self.by_task and (self.rule == "fixed" or self.b is not None):
            raise ValueError("budget_of='task' adapts b to budget=, so it takes neither b= nor rule='fixed'")

    # ---- the query -----------------------------------------------------------------------------------------

    def thetas(self, rounds: Rounds, decisions: FloatArray) -> tuple[list[float], list[float]]:
        """How sure the learner, and its peers if they are asked, are of each row; `decisions` become its margins."""
        self.inner.decide(rounds, decisions)
        if self.rule == "variance":
            own = np.empty(len(decisions))
            self.inner.confidence(rounds, own)
            return np.maximum(own, 0.0).tolist(), [0.0] * len(own)
        if self.rule != "peers":
            return np.abs(decisions).tolist(), [0.0] * len(decisions)
        peers = np.empty(len(decisions))
        self.inner.decide(rounds._replace(task=np.full(len(peers), UNSEEN)), peers)
        return np.abs(decisions).tolist(), np.abs(peers).tolist()

    def wants(self, k: int, own: float, peers: float) -> bool:
        """Draw, unless the answer is certain; b follows the budget."""
        if self.b is not None:
            return self._draw(1.0 / (1.0 + both(own, peers, self.b) / self.b))
        if self.rule == "fixed" or self.budget == 1.0:
            return self._draw(self.budget)
        whose = k if self.by_task else STREAM
        log_b = self.log_b.get(whose, 0.0)
        theta = both(own, peers, math.exp(log_b)) if peers > 0.0 else own
        wanted, self.log_b[whose] = ask_within(self.budget, theta, log_b, self._draw)
        return wanted

    def _draw(self, p: float) -> bool:
        return bool(p >= 1.0 or uniform(self.random, QUERIES) < p)

    def asks(self, k: int, own: float, peers: float) -> bool:
        """Is the label of a row of task k asked for, or has it been?"""
        if self.granted[k] > 0:
            self.granted[k] -= 1
            return True
        wanted = self.wants(k, own, peers)
        self.asked[k] += wanted
        return wanted

    def grants(self, k: int, own: float, peers: float) -> bool:
        """Ask now for the label of a row to come."""
        wanted = self.wants(k, own, peers)
        self.asked[k] += wanted
        self.granted[k] += wanted
        return wanted

    # ---- the interface of a core ---------------------------------------------------------------------------

    def leave(self, k: int, n_tasks: int) -> None:
        self.inner.leave(k, n_tasks)
        of_tasks: tuple[dict[int, Any], ...] = (self.asked, self.granted, self.log_b)
        for numbers in of_tasks:
            kept = {j - (j > k): n for j, n in numbers.items() if j != k}
            numbers.clear()
            numbers.update(kept)

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        decisions, weighted = out if len(out) > 0 else np.empty(len(rounds.task)), len(rounds.weight) > 0
        for first, last in zip(rounds.starts[:-1].tolist(), rounds.starts[1:].tolist(), strict=True):
            rows, tasks = rows_of(rounds, [*range(first, last)]), rounds.task[first:last].tolist()
            if max(tasks) >= self.inner.state.counters[TASKS]:
                self.inner.enter(max(tasks) + 1)
            own, peers = self.thetas(rows, decisions[first:last])
            counts = rounds.weight[first:last].tolist() if weighted else tasks
            wanted = [
                first + i for i, k in enumerate(tasks) if (counts[i] or not weighted) and self.asks(k, own[i], peers[i])
            ]
            if wanted:
                self.inner.learn(rows if len(wanted) == len(tasks) else rows_of(rounds, wanted), NO_OUT)

    def adopt(self, other: Any) -> None:
        super().adopt(other)
        self.rule, self.budget, self.b, self.by_task = other.rule, other.budget, other.b, other.by_task
        if not self.random.any():  # all labels so far: from now on there may be draws
            self.random = other.random

    def snapshot(self) -> Callable[[], None]:
        rollback, kept = self.inner.snapshot(), (self.random.copy(), dict(self.log_b))
        counters = Counter(self.asked), Counter(self.granted)

        def go_back() -> None:
            rollback()
            (self.random, self.log_b), (self.asked, self.granted) = kept, counters

        return go_back

    # ---- files -----------------------------------------------------------------------------------------------

    def _packed(self, inner: Any, *by_task: Any) -> Any:
        kind: Any = type(inner)
        return _packed_kind(kind)(inner, self.random, np.array([self.log_b.get(STREAM, 0.0)]), *by_task)

    def pack(self, size: Size) -> Any:
        log_b = np.array([self.log_b.get(k, 0.0) for k in range(size.tasks)])
        counts = (np.array([c[k] for k in range(size.tasks)], np.int64) for c in (self.asked, self.granted))
        return self._packed(self.inner.pack(size), log_b, *counts)

    def blank(self, size: Size) -> Any:
        return self._packed(self.inner.blank(size), np.zeros(size.tasks), *np.zeros((2, size.tasks), np.int64))

    def unpack(self, packed: Any, size: Size) -> None:
        if (packed.asked < 0).any() or (packed.granted < 0).any():
            raise ValueError("its numbers of labels are negative")
        log_b = np.concatenate([packed.task_log_b, packed.log_b])
        if not (np.abs(log_b) <= LARGEST_LOG_B).all():
            raise ValueError("the scale of its margins is out of range")
        self.inner.unpack(packed.estimator, size)
        self.random, self.log_b = packed.random, dict(enumerate(log_b.tolist()))
        self.log_b[STREAM] = self.log_b.pop(size.tasks)
        self.asked = Counter(dict(enumerate(packed.asked.tolist())))
        self.granted = Counter(dict(enumerate(packed.granted.tolist())))


@from_keywords
class LabelQuery(WeightedLearner, Classifier):
    """Any classifier of this library, shown only the labels that a query rule asks for.

    In every round all rows are answered, then each is asked for with probability ``b/(b + theta)``, and the learner
    learns the asked rows of the round. Cost: the learner's, and 10 to 20 us a round in Python.

    Parameters
    ----------
    estimator : classifier of this library; None: `HedgedSharing()`
        It stays as it is; its trained copy is `estimator_`.
    rule : {"margin", "variance", "peers", "fixed"}
        "margin": theta = abs(f), f the margin. "variance": theta = [abs(f) - xᵀ S x/(4 eps)]_+, the rule of Yang and
        Li, for a `LocalGlobalGaussian`, S its covariances after the row: 0 where the margin is within the doubt.
        "peers": asks if neither the learner nor its peers are sure, theta = abs(f) + abs(g) + abs(f g)/b, g the margin
        of a task that was never seen.
        "fixed": every row with the same probability `budget`, the control that a rule has to beat.
    budget : float, 0 < budget <= 1
        The share of labels to ask for. b follows the stream: it rises while too few labels were asked for and falls
        while too many were, so that the share of all rows is within a point of the budget after 3,000 rows. It may
        change at any time: ``set_params(budget=60 / rows_of_this_hour)`` asks for 60 labels in the hour to come.
    budget_of : {"stream", "task"}
        "task": each task has a b of its own, so that the share holds for each, for rare tasks and for easy ones.
    b : float > 0, optional
        The papers' constant instead of a budget: the theta at which every second label is asked for (inf: all).
    random_state : int, RandomState or None
        Of the queries. The generator is part of the model.

    Attributes
    ----------
    estimator_ : the trained learner; its `coef_` and `relation_` are here too
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
    The labels of n consecutive rows miss n budget by |ln b at the end - ln b at the start|/0.5: the share holds in each
    hour as in all. Labels an hour need a clock, which rows do not have; set a new share when an hour begins.

    Unseen tasks are answered as the learner answers them. A task exists from its first row, asked for or not. Rows keep
    their `sample_weight`; no label of weight 0 is asked for.
    `shoal.evaluation.progressive_validate` reports the labels asked for, and the error over all rows.

    Peers help little: over three orders of landmine, of which a twentieth of the labels is asked for, the default's AUC
    is 0.679 with "peers" and 0.676 with "margin", on MHC-I 0.730 and 0.740. Labels that peers would give are not
    learned: a learner that feeds on its own labels ends at an AUC of 0.47 on MHC-I.

    References
    ----------
    Cesa-Bianchi, Gentile, Zaniboni. Worst-Case Analysis of Selective Sampling for Linear Classification. JMLR 7, 2006:
    figure 1. Yang, Li. Efficient Online Multi-Task Learning via Adaptive Kernel Selection. WWW 2020. Murugesan,
    Carbonell. Active Learning from Peers. NIPS 2017.

    Examples
    --------
    >>> from shoal import LabelQuery, MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for rule, budget in (("fixed", 1.0), ("margin", 0.1), ("fixed", 0.1)):
    ...     learner = LabelQuery(MultitaskPerceptron(loss="hinge", eta=0.3), rule=rule, budget=budget, random_state=0)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     error = ((decisions >= 0) != (data.y > 0)).mean()
    ...     print(f"{rule:6} {learner.n_queries_} labels, error {error:.3f}")
    fixed  2000 labels, error 0.124
    margin 208 labels, error 0.189
    fixed  203 labels, error 0.240
    """

    estimator: Learner | None = field(default=None, kw_only=False)
    rule: str = "margin"
    budget: float = 0.1
    budget_of: str = "stream"
    b: float | None = None
    random_state: Any = None
    classes: Any = None

    estimator_names = ("estimator",)

    def _plain(self) -> Learner:
        return HedgedSharing() if self.estimator is None else self.estimator

    def new_core(self) -> CoreLike:
        """The query around a core of the estimator."""
        estimator = self._plain()
        inner = inner_core(estimator, Classifier, "LabelQuery")
        if isinstance(estimator, LabelQuery):
            raise ValueError("the estimator asks for labels itself; expected one that takes them all")
        has_variance = isinstance(inner, Core) and inner.algorithm.explain.confidence is not None
        if self.rule == "variance" and not has_variance:
            raise ValueError(
                f"rule='variance' needs a LocalGlobalGaussian; a {type(estimator).__name__} has no variance"
            )
        return QueryCore(inner, self.get_params(deep=False))

    @property
    def simultaneous(self) -> bool:
        """The estimator's protocol."""
        return self._plain().simultaneous

    @property
    def is_probabilistic(self) -> bool:
        """Are the estimator's decision values logits?"""
        return bool(getattr(self._plain(), "is_probabilistic", False))

    def query_one(self, x: Any, task: Hashable = None) -> bool:
        """Should the label of this example be asked for?

        True is a promise: the next example of the task given to a learn verb is learned without asking again, so
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
        model = self._begun()
        core, own, peers = model.core_as(QueryCore), 0.0, 0.0  # before the first row nothing is sure
        if model.is_fitted:
            model.row_to_decide(x, task)  # refused before its task enters
        if task is None and not len(model.tasks):
            model.tasks.add([None])
        elif task is not None and task not in model.tasks.column:
            model.add_tasks([task])
        if model.is_fitted:
            (own,), (peers,) = core.thetas(model.row_to_decide(x, task), np.empty(1))
        self._keep(model)
        return bool(core.grants(model.tasks.column[task], own, peers))

    def baselines(self) -> dict[str, Learner]:
        options = self.get_params(deep=False)
        return {name: LabelQuery(**{**options, "estimator": b}) for name, b in self._plain().baselines().items()}

    # ---- learned attributes --------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Learner:
        """The trained learner, as it is now."""
        model = self._known("estimator_")
        return seen_through(self._plain(), model, model.core_as(QueryCore).inner)

    @property
    def task_queries_(self) -> IntArray:
        """(n_tasks,) labels asked for, by task."""
        model = self._known("task_queries_")
        asked = model.core_as(QueryCore).asked
        return np.array([asked[k] for k in range(len(model.tasks))], np.int64)

    @property
    def n_queries_(self) -> int:
        """Labels asked for."""
        return int(self.task_queries_.sum())

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights, if the estimator's are linear."""
        return np.asarray(self.estimator_.coef_)

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) the estimator's task relationship, or None."""
        return self.estimator_.relation_ if self.__sklearn_is_fitted__() else None


def rows_of(rounds: Rounds, rows: list[int]) -> Rounds:
    """Some rows as one round."""
    first, last, n = rows[0], rows[-1] + 1, len(rows)
    width, indptr, indices, values, _, _, _, weight = rounds
    starts, weight = np.array([0, n]), weight[rows] if len(weight) else weight
    if last - first == n:  # mostly all of a round: views
        task, y = rounds.task[first:last], rounds.y[first:last]
        if width > 0:
            return Rounds(width, indptr, indices, values[first * width : last * width], task, y, starts, weight)
        a, b = indptr[first], indptr[last]
        return Rounds(0, indptr[first : last + 1] - a, indices[a:b], values[a:b], task, y, starts, weight)
    task, y = rounds.task[rows], rounds.y[rows]
    if width > 0:
        return Rounds(width, indptr, indices, values.reshape(-1, width)[rows].ravel(), task, y, starts, weight)
    entries = [np.arange(indptr[row], indptr[row + 1]) for row in rows]
    where = np.concatenate(entries)
    sizes = np.cumsum([0, *map(len, entries)])
    return Rounds(0, sizes, indices[where], values[where], task, y, starts, weight)
