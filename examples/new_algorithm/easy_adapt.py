"""EasyAdapt (Daumé, ACL 2007): a Perceptron with two copies of each feature, one for all tasks and one for its own.

A row x of task k becomes (x, 0, ..., x, ..., 0), so the decision is  f = <g + u_k, x>.  On a mistake (ŷ ≠ y):
g <- g + eta y x,  u_k <- u_k + eta y x  (section 3, with the Perceptron as the base learner).
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import add, dot, open_round
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import ONE_STEP, Algorithm, Exchange, Setup, Size
from shoal.model.parameters import Params, from_keywords, positive
from shoal.model.persistence import learner_class


class Settings(NamedTuple):
    """Hyper-parameters."""

    eta: float


class State(NamedTuple):
    """Weights of all tasks, and of each."""

    shared: Annotated[FloatArray, FEATURE]  # g
    own: Annotated[FloatArray, TASK, FEATURE]  # u
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel
def margin(rounds: Rounds, row: int, state: State) -> float:
    """<g + u_k, x>; an unseen task has u_k = 0."""
    f, k = dot(rounds, row, state.shared), rounds.task[row]
    return f + dot(rounds, row, state.own[k]) if k >= 0 else f


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, state)


@kernel(entry=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        if len(decisions) > 0:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = margin(rounds, row, state)
        for row in range(first, last):
            k, y = rounds.task[row], rounds.y[row]
            if losses.is_mistake(margin(rounds, row, state), y):
                add(rounds, row, settings.eta * y, state.shared)
                add(rounds, row, settings.eta * y, state.own[k])
                state.updates[k] += 1
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    return Settings(p.eta)


def allocate(setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    own = np.zeros((n_tasks, n_features))
    return State(np.zeros(n_features), own, np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


ALGORITHM = Algorithm[State](
    parameters={"eta": positive()},
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange=Exchange(mean=("shared",), local=("counters",)),
    no_weights=ONE_STEP,
)


@from_keywords
class EasyAdapt(Classifier):
    """A Perceptron with weights that all tasks share and weights of each task; a mistake moves both. O(nnz) an example.

    Parameters
    ----------
    eta : float > 0
        Step.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    An unseen task is answered by the shared weights.

    References
    ----------
    Daumé III. Frustratingly Easy Domain Adaptation. ACL 2007.

    Examples
    --------
    >>> from shoal import EasyAdapt
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> decisions = EasyAdapt().test_then_train(data.X, data.y, data.task)
    >>> print(f"error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    error 0.162
    """

    eta: float = 1.0
    classes: Any = None

    algorithm = ALGORITHM

    def baselines(self) -> dict[str, Learner]:
        kind = learner_class("MultitaskPerceptron")
        return {name: kind(relation=name, eta=self.eta) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights g + u."""
        state = self._state("coef_")
        return np.asarray((state.shared + state.own)[: len(self.tasks_), : self.n_features_in_])
