"""Multitask Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 3, figure 1).

On a mistake on (x, y) of task i, every task j moves by its rate:  w_j <- w_j + y B[j, i] x,  B = A^-1.
The mistake is one case of a gradient step, w_j <- w_j - eta l'(f, y) B[j, i] x, which gives the other losses.

Constant matrices (eqs. 4 and 5, B = a I + (1 - a)/K 11^T) need no matrix: with v_i the sum of task i's own
steps and s the sum of all,  w_i = a v_i + (1 - a)/K s,  so an example costs O(nnz) whatever K is. A given matrix or
task graph keeps W itself; columns of B come from the matrix, or for large sparse graphs from the factors of A by two
triangular solves.
"""

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from shoal import relations
from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import call, kernel
from shoal.engine.intrinsics import on_stack
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, add, add_to_all, dot, open_weighted
from shoal.engine.task_weights import weights as task_weights
from shoal.engine.task_weights.lookahead import Lookahead, nothing_ahead
from shoal.engine.task_weights.weights import (
    TaskWeights,
    as_matrix,
    has_capacity,
    task_add,
    task_dot,
    task_dot_and,
)
from shoal.learner import Classifier, Regressor, WeightedLearner
from shoal.model.algorithm import Algorithm, Exchange, Explain, Setup, Size, Tasks
from shoal.model.explanations import Parts, parts_of_linear
from shoal.model.parameters import (
    WEIGHTS_TYPE,
    Params,
    Reader,
    from_keywords,
    non_negative,
    one_of,
    positive,
    strictly_between,
)
from shoal.model.targets import AMOUNTS, COUNTS, Targets
from shoal.online import bayes_multitask
from shoal.online.common.relation_rates import RELATION, Related, named_tasks
from shoal.online.common.task_weights import with_task_weights
from shoal.relations import Factors, rates_column

# ---- constant relations ------------------------------------------------------------------------------------


class Settings(NamedTuple):
    """Hyper-parameters of the constant relations."""

    loss: int
    eta: float
    sqrt_step: bool  # divide eta by sqrt(t)
    epsilon: float
    b: float
    b_is_n_tasks: bool


class State(NamedTuple):
    """Sums of steps; rows of tasks are contiguous."""

    shared: Annotated[FloatArray, FEATURE]  # s, or empty if tasks are independent
    own: TaskWeights  # (tasks, features) v, or (tasks, 0) if tasks are pooled
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(entry="too")
def shares(settings: Settings, n_tasks: int) -> tuple[float, float]:
    """The weights of v_i and of s in w_i: B as printed, or B / max_i B_ii for gradient steps."""
    a = 1.0 / (1.0 + (n_tasks if settings.b_is_n_tasks else settings.b))
    own, shared = a, (1.0 - a) / n_tasks  # eq. 5
    if settings.loss == losses.PERCEPTRON:
        return own, shared
    return own / (own + shared), shared / (own + shared)


@kernel
def margin(rounds: Rounds, row: int, own: float, shared: float, state: State, ahead: Lookahead) -> float:
    """<w_i, x> with w_i = own v_i + shared s; an unseen task has v_i = 0."""
    if own > 0.0 and shared > 0.0 and rounds.task[row] >= 0:
        v, s = task_dot_and(rounds, row, rounds.task[row], state.own, ahead, state.shared)
        return own * v + shared * s
    f = 0.0
    if own > 0.0 and rounds.task[row] >= 0:
        f += own * task_dot(rounds, row, rounds.task[row], state.own, ahead)
    if shared > 0.0:
        f += shared * dot(rounds, row, state.shared)
    return f


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    own, shared = shares(settings, max(state.counters[TASKS], 1))
    ahead = on_stack()
    nothing_ahead(ahead)
    for row in range(len(decisions)):
        decisions[row] = losses.answered(settings.loss, margin(rounds, row, own, shared, state, ahead))


@kernel(entry=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    ahead = on_stack()
    n_tasks, own, shared = 0, 0.0, 0.0
    nothing_ahead(ahead)
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if not has_capacity(rounds, first, last, state.own):
            return r
        open_weighted(rounds, r, state.counters)
        if state.counters[TASKS] != n_tasks:
            n_tasks = state.counters[TASKS]
            own, shared = shares(settings, n_tasks)
        step = settings.eta / math.sqrt(state.counters[ROUNDS]) if settings.sqrt_step else settings.eta
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = losses.answered(settings.loss, margin(rounds, row, own, shared, state, ahead))
        for row in range(first, last):
            f = margin(rounds, row, own, shared, state, ahead)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = losses.answered(settings.loss, f)
            y, rate = rounds.y[row], own + shared
            slope = losses.derivative(settings.loss, f, y, settings.epsilon)
            if slope == 0.0:
                continue
            move = losses.move_along(settings.loss, step, slope, f, y, settings.epsilon, rate, rounds, row)
            if move == 0.0:
                continue
            if shared > 0.0:
                add(rounds, row, move, state.shared)
            if own > 0.0:
                task_add(rounds, row, move, rounds.task[row], state.own)
            state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    return Settings(p.loss, p.eta, p.step == "sqrt", number_of(p), p.relation.b, p.relation.b_is_n_tasks)


def number_of(p: Params) -> float:
    """The number that the loss takes."""
    if p.loss == losses.QUANTILE:
        return float(p.quantile)
    return float(getattr(p, "epsilon", 0.0))


def allocate(setup: Setup, size: Size) -> State:
    (n_tasks, n_features), relation, dtype = size, setup.params.relation, setup.params.dtype
    pooled, independent = math.isinf(relation.b), relation.b == 0 and not relation.b_is_n_tasks
    shared = np.zeros(0 if independent else n_features, dtype)
    own = task_weights.allocate(
        n_tasks, 0 if pooled else n_features, dtype, task_weights.dense_limit(mistake_driven(setup.params))
    )
    return State(shared, own, np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


def contributions(setup: Setup, state: Any, tasks: IntArray, features: IndexArray, values: FloatArray | None) -> Parts:
    """Contributions of features to the margin: with "poisson" and "gamma" the logarithm of the answer."""
    answered_by_margin = min(setup.settings.loss, losses.POISSON - 1)  # itself, or any loss without exp
    settings = setup.settings._replace(loss=answered_by_margin)
    answer = decide if isinstance(state, State) else given_decide

    def margins(rounds: Rounds, out: FloatArray) -> None:
        call(answer, rounds, settings, state, out, setup.params.dtype)

    return parts_of_linear(margins, None, tasks, features, values)


def mistake_driven(p: Params) -> bool:
    return bool(p.loss == losses.PERCEPTRON)


# ---- matrices and graphs -----------------------------------------------------------------------------------


class GivenSettings(NamedTuple):
    """Hyper-parameters of matrices and graphs."""

    loss: int
    eta: float
    sqrt_step: bool
    epsilon: float
    factors: Factors


class GivenState(NamedTuple):
    """All tasks are known from the start. An update touches one contiguous row of all tasks for each non-zero."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # W
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel
def given_margin(rounds: Rounds, row: int, state: GivenState) -> float:
    """<w_i, x>; for an unseen task the mean over all tasks."""
    if rounds.task[row] >= 0:
        return dot(rounds, row, state.weights[:, rounds.task[row]])
    total = 0.0
    n_tasks = state.weights.shape[1]
    for k in range(n_tasks):
        total += dot(rounds, row, state.weights[:, k])
    return float(total / n_tasks)


@kernel(entry=True)
def given_decide(rounds: Rounds, settings: GivenSettings, state: GivenState, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = losses.answered(settings.loss, given_margin(rounds, row, state))


@kernel(entry=True, allocates=True)
def given_learn(rounds: Rounds, settings: GivenSettings, state: GivenState, decisions: FloatArray) -> int:
    column = np.empty(state.weights.shape[1])
    for r in range(len(rounds.starts) - 1):
        first, last = open_weighted(rounds, r, state.counters)
        step = settings.eta / math.sqrt(state.counters[ROUNDS]) if settings.sqrt_step else settings.eta
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = losses.answered(settings.loss, given_margin(rounds, row, state))
        for row in range(first, last):
            f, y = given_margin(rounds, row, state), rounds.y[row]
            slope = losses.derivative(settings.loss, f, y, settings.epsilon)
            if slope != 0.0 and (len(rounds.weight) == 0 or rounds.weight[row] > 0.0):
                rates_column(settings.factors, rounds.task[row], column)
                rate = column[rounds.task[row]]
                column *= losses.move_along(settings.loss, step, slope, f, y, settings.epsilon, rate, rounds, row)
                add_to_all(rounds, row, column, state.weights)
                state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


def given_settings(p: Params) -> GivenSettings:
    factors = p.relation.factors(unit_own_rate=p.loss != losses.PERCEPTRON)
    return GivenSettings(p.loss, p.eta, p.step == "sqrt", number_of(p), factors)


def given_allocate(setup: Setup, size: Size) -> GivenState:
    n_tasks, n_features = size
    weights = np.zeros((n_features, n_tasks), setup.params.dtype)
    return GivenState(weights, np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


# ---- the learners ------------------------------------------------------------------------------------------


def parameters(allowed: dict[str, int]) -> dict[str, Reader]:
    return {
        "relation": RELATION,
        "loss": one_of(allowed),
        "eta": positive(),
        "step": one_of(("constant", "sqrt")),
        "epsilon": non_negative(infinite=True),
        "quantile": strictly_between(0.0, 1.0),
        "dtype": WEIGHTS_TYPE,
    }


def _squared(loss: Any) -> int:
    if loss != "squared":
        raise ValueError(f"relation='auto' and eta='auto' need loss='squared', got {loss!r}")
    return losses.SQUARED


SQUARED_ALONE = Reader("'squared'", _squared)


def constant(allowed: dict[str, int]) -> Algorithm[State]:
    """The algorithm for constant relations."""
    return with_task_weights(
        Algorithm[State](
            parameters=parameters(allowed),
            settings=settings,
            allocate=allocate,
            learn=learn,
            decide=decide,
            exchange=Exchange(sum=("shared",), local=("counters",)),
            no_weights="",
            explain=Explain(contributions=contributions),
        ),
        mistake_driven,
    )


def given(allowed: dict[str, int]) -> Algorithm[GivenState]:
    """The algorithm for matrices and graphs."""
    return Algorithm[GivenState](
        parameters=parameters(allowed),
        settings=given_settings,
        allocate=given_allocate,
        learn=given_learn,
        decide=given_decide,
        exchange="every step moves the weights of all tasks that the relation ties to the row's",
        no_weights="",
        tasks=Tasks(named=named_tasks),
        explain=Explain(contributions=contributions),
    )


@from_keywords
class _Multitask(WeightedLearner, Related):
    """The base of the classifier and the regressor."""

    relation: Any = "pairwise"
    step: str = "constant"
    dtype: Any = "float64"

    eta: Any
    loss: str

    # for constant relations, for matrices and graphs, and for several b and steps at once
    algorithms: ClassVar[tuple[Algorithm[State], Algorithm[GivenState], Algorithm[bayes_multitask.State]]]

    @property
    def algorithm(self) -> Algorithm[Any]:
        if self._is_mixture:
            return self.algorithms[2]
        return self.algorithms[isinstance(relations.resolve(self.relation), relations.Given)]

    @property
    def _is_mixture(self) -> bool:
        return bayes_multitask.is_mixture(self.relation, self.eta)

    @property
    def shares_(self) -> dict[tuple[float, float], float]:
        """With "auto" the Bayes weight of each pair (b, eta), the largest first; b of "pairwise" is that of now."""
        if not self._is_mixture:
            raise AttributeError("shares_ needs relation='auto' or eta='auto'")
        state, setup = self._state("shares_"), self._setup()
        b = np.full_like(setup.settings.b, len(self.tasks_)) if setup.settings.b_is_n_tasks else setup.settings.b
        pairs = zip(b.tolist(), setup.settings.eta.tolist(), strict=True)
        found = zip(pairs, bayes_multitask.mixture_weights(setup.settings.loss, state).tolist(), strict=True)
        return dict(sorted(found, key=lambda one: -one[1]))

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) the rates B = A^-1: on a mistake of task i, task j moves by B[j, i].

        With "auto" their mean by `shares_`.
        """
        if not self._is_mixture:
            return super().relation_
        n_tasks = max(len(self._known("relation_").tasks), 1)
        mean = sum(share * relations.Constant(b).rates(n_tasks) for (b, _), share in self.shares_.items())
        return np.asarray(mean)[: len(self.tasks_), : len(self.tasks_)]

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) the weights w_i."""
        if self._is_mixture:
            raise AttributeError("a mixture of several models, with relation='auto' or eta='auto', has no single coef_")
        state, settings = self._state("coef_"), self._setup().settings
        n_tasks, d = len(self.tasks_), self.n_features_in_
        if isinstance(state, GivenState):
            return np.ascontiguousarray(state.weights[:d, :n_tasks].T, np.float64)
        own, shared = shares(settings, max(n_tasks, 1))
        weights = np.zeros((n_tasks, d))
        if own > 0:
            weights += own * as_matrix(state.own, n_tasks, d)
        if shared > 0:
            weights += shared * state.shared[:d]
        return weights


@from_keywords
class MultitaskPerceptron(_Multitask, Classifier):
    """Perceptrons that learn from each other's mistakes through an interaction matrix.

    On a mistake of task i (ŷ ≠ y) every task j makes the step ``w_j <- w_j + eta y B[j, i] x`` with B = A^-1;
    with another `loss`, each example makes ``w_j <- w_j - eta l'(f, y) B[j, i] x / max_k B[k, k]``, so that
    `eta` is the step of a task on its own example whatever B is. Cost O(nnz) an example for the constant
    relations whatever the number of tasks K; for matrices and graphs O(nnz) to predict, O(K nnz) to update.

    Parameters
    ----------
    relation : {"pairwise", "independent", "pooled", "auto"}, float, graph, matrix or object of `shoal.relations`
        "pairwise" is eq. 4 (the own task moves twice as far as the others), a number b >= 0 eq. 5 (b = 0
        independent, b = K pairwise, b -> infinity pooled). A task graph (edge list, networkx graph, adjacency
        matrix, dense or sparse) stands for A = I + Laplacian (section 3.3); a matrix with a non-zero diagonal
        is A itself, positive definite. Graphs and matrices name all their tasks. Tasks within groups:
        `shoal.relations.hierarchy`. "auto": models with b in {0, 1, 4, 16, 64, infinity}, mixed by Bayes weights.
    loss : {"perceptron", "hinge", "squared_hinge", "logistic"}
        "perceptron" is the paper's mistake-driven rule.
    eta : float > 0 or "auto"
        Step size. With the Perceptron loss and a constant step it changes no prediction. "auto": models with eta in
        {0.3, 1, 3, 10}, mixed likewise, for constant relations.
    step : {"constant", "sqrt"}
        "sqrt" divides eta by the square root of the number of rounds so far.
    dtype : {"float64", "float32"}
        Type of the stored weights. float32 takes half the memory; sums are float64 in both.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights; not with "auto"
    relation_ : (n_tasks, n_tasks) the rates B; with "auto" their mean by the weights of models
    shares_ : with "auto" the Bayes weight of each pair (b, eta), the largest first
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given graph or matrix does not name.

    Notes
    -----
    Rates that depend on K use the tasks that exist at the row. An unseen task is answered from the shared
    sum, ``(1 - a)/K s``; under a given graph or matrix, where every task is known, by the mean of all tasks.
    Mistakes are bounded by Theorem 1: `shoal.theory.perceptron_mistake_bound`. Over rounds of all tasks "pairwise" is
    the papers' FOML, read as fixed weights with which a task's mistake moves all (for the other reading, in which a
    task that errs moves by all rows of the round, see `OSMTL`). Squared losses answer long rows by
    longer weights; no step of theirs changes a weight by more than 1e140, so that all numbers stay finite.

    "auto" answers the open problem with which the paper ends, how to adapt b while rows come: with b and eta left to
    the data, the log-loss of all rows, margins read as logits, is at most that of the best of 24 pairs (b, eta) plus
    ln 24 = 3.2 nats in all, for every stream: `shoal.theory.bayes_regret_bound`. So it has the regret of the best b.
    Any loss may drive the steps; the weights go by the log-loss, and decision values are logits. It costs 24 models,
    or 6 with a number eta, at one look into the tables. On landmine and MHC-I it comes within 0.0003 of the best pair
    in hindsight, and `HedgedSharing` forecasts better: `python -m benchmarks.relations`.

    A row of `sample_weight` h makes floor(h) steps one after the other, each judged by the margin that the one before
    left, and one of the part that remains: whole weights equal repeated rows (with step="sqrt", of one round). All
    of them go along x, so only the margin is followed: O(nnz + h), and it ends where the loss does.

    Odd rows: one wrong label moves the weights by one step, however sure the forecast was; a value of 1e6 in a row that
    is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010:
    figure 1, Theorem 1, eqs. 4-6. With convex losses: Cesa-Bianchi, Laforgue, Paudice, Pontil, Multitask Online Mirror
    Descent, TMLR 2022. Bayes weights: Vovk, Competitive on-line statistics, International Statistical Review 69, 2001.
    Weights of rows: Karampatziakis, Langford, Online importance weight aware updates, UAI 2011.

    Examples
    --------
    >>> from shoal import MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for relation in ("independent", "pairwise", "pooled"):
    ...     learner = MultitaskPerceptron(relation=relation)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{relation:12} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    independent  error 0.305
    pairwise     error 0.162
    pooled       error 0.166
    >>> learner = MultitaskPerceptron(relation="auto", eta="auto", loss="logistic")
    >>> decisions = learner.test_then_train(data.X, data.y, data.task)
    >>> (b, eta), share = next(iter(learner.shares_.items()))
    >>> print(f"error {((decisions >= 0) != (data.y > 0)).mean():.3f}; b = {b:g} and eta = {eta:g} weigh {share:.2f}")
    error 0.128; b = 16 and eta = 3 weigh 1.00
    """

    loss: str = "perceptron"
    eta: Any = 1.0
    classes: Any = None

    algorithms = (
        constant(losses.CLASSIFICATION),
        given(losses.CLASSIFICATION),
        bayes_multitask.mixture(parameters(losses.CLASSIFICATION), bayes_multitask.ETAS),
    )

    @property
    def is_probabilistic(self) -> bool:
        """With the logistic loss, and of mixtures, decision values are logits."""
        return self.loss == "logistic" or self._is_mixture


@from_keywords
class MultitaskRegressor(_Multitask, Regressor):
    """Gradient steps for real targets, shared through an interaction matrix like `MultitaskPerceptron`'s.

    Every example of task i makes ``w_j <- w_j - eta l'(f, y) B[j, i] x / max_k B[k, k]`` for every task j. With
    "squared" and "epsilon_insensitive" f is the margin ``<w_i, x>`` before the step, with the other losses the margin
    after it: an implicit step, which never goes beyond what the row asks for, whatever eta is.
    Cost, answers for unseen tasks, `sample_weight` and the bound on a step as in `MultitaskPerceptron`.

    ======================  ==================================================  ===================  ==================
    loss                    l(f, y)                                             it answers           targets
    ======================  ==================================================  ===================  ==================
    "squared"               (f - y)^2 / 2                                       the mean: f          real
    "epsilon_insensitive"   [abs(f - y) - epsilon]_+                            about the median: f  real
    "huber"                 (f - y)^2 / 2, from epsilon on                      between the two: f   real
                            epsilon abs(f - y) - epsilon^2 / 2
    "absolute"              abs(f - y)                                          the median: f        real
    "quantile"              quantile [y - f]_+ + (1 - quantile) [f - y]_+       the quantile: f      real
    "poisson"               exp(f) - y f                                        the mean: exp(f)     counts, y >= 0
    "gamma"                 f + y exp(-f)                                       the mean: exp(f)     amounts, y > 0
    ======================  ==================================================  ===================  ==================

    Parameters
    ----------
    relation : as in `MultitaskPerceptron`
    loss : {"squared", "epsilon_insensitive", "huber", "absolute", "quantile", "poisson", "gamma"}
        See the table.
    eta : float > 0 or "auto"
        Step size. With the squared loss it should stay below 1 / ||x||^2. "auto": models with eta in
        {0.01, 0.03, 0.1, 0.3}, mixed as those of relation="auto".
    epsilon : float >= 0
        Half-width of the zone without loss of "epsilon_insensitive"; where "huber" goes over to the absolute error.
    quantile : float in (0, 1)
        The level of "quantile": the share of targets below the answer.
    step : {"constant", "sqrt"}
        "sqrt" divides eta by the square root of the number of rounds so far.
    dtype : {"float64", "float32"}
        Type of the stored weights. float32 takes half the memory; sums are float64 in both.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights; not with "auto"
    relation_ : (n_tasks, n_tasks) the rates B; with "auto" their mean by the weights of models
    shares_ : with "auto" the Bayes weight of each pair (b, eta), the largest first
    tasks_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, a target that the loss does not take, or a task that a given graph or matrix
        does not name.

    Notes
    -----
    The loss of all rows is at most that of any comparator plus `shoal.theory.gradient_regret_bound`, for all of these
    losses, since each is convex in f. With "poisson" and "gamma" the parts of an explanation add up to the logarithm.

    With relation="auto" or eta="auto", for the squared loss alone, models are mixed
    by exp(-L/D^2), with L the half squared error of forecasts and targets that are clipped to the range of the targets
    before and 0, and D its width: `shoal.theory.bayes_regret_bound`.

    Odd rows: with the squared loss a target of 1e6 deviations moves the weights by a step of that size, with "poisson"
    by one that makes the answer as large; with "epsilon_insensitive", "huber", "absolute" and "quantile" no target
    moves them by more than eta x (times epsilon for "huber"). A value of 1e6 in a row makes the squared loss's steps
    too long, and the weights grow without end; implicit steps stand it.

    References
    ----------
    The multitask kernel of Cavallanti et al. (JMLR 11, 2010, eq. 3) with the gradient of a regression loss. Implicit
    steps: Kulis, Bartlett. Implicit Online Learning. ICML 2010. Quantiles: Koenker, Bassett. Regression Quantiles.
    Econometrica 46, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), rng.integers(30, size=3000)
    >>> w = rng.normal(size=5) + 0.3 * rng.normal(size=(30, 5))
    >>> y = np.einsum("ij,ij->i", X, w[task])
    >>> for relation in ("independent", "pairwise"):
    ...     predictions = MultitaskRegressor(relation=relation, eta=0.05).test_then_train(X, y, task)
    ...     print(f"{relation:12} RMSE {np.sqrt(np.mean((predictions - y) ** 2)):.2f}")
    independent  RMSE 0.76
    pairwise     RMSE 0.40

    Counts, and the level below which nine tenths of the targets are:

    >>> from sklearn.metrics import mean_poisson_deviance
    >>> counts = rng.poisson(np.exp(0.3 * y))
    >>> for relation in ("independent", "pairwise"):
    ...     means = MultitaskRegressor(relation=relation, loss="poisson", eta=0.05).test_then_train(X, counts, task)
    ...     print(f"{relation:12} deviance {mean_poisson_deviance(counts, means):.2f}")
    independent  deviance 1.26
    pairwise     deviance 1.20
    >>> X1, noisy = np.c_[X, np.ones(3000)], y + rng.normal(size=3000)
    >>> above = MultitaskRegressor(loss="quantile", quantile=0.9, eta=0.1).test_then_train(X1, noisy, task)
    >>> print(f"{np.mean(noisy <= above):.2f}")
    0.86
    """

    loss: str = "squared"
    eta: Any = 0.1
    epsilon: float = 0.1
    quantile: float = 0.5

    algorithms = (
        constant(losses.REGRESSION),
        given(losses.REGRESSION),
        bayes_multitask.mixture(
            {**parameters(losses.REGRESSION), "loss": SQUARED_ALONE}, bayes_multitask.ETAS_OF_NUMBERS
        ),
    )

    @property
    def targets(self) -> Targets:
        """Real numbers that the loss is defined for."""
        return {"poisson": COUNTS, "gamma": AMOUNTS}.get(self.loss, super().targets)

    @property
    def answers_by_exp(self) -> bool:
        """With the losses of counts and amounts."""
        return losses.REGRESSION.get(self.loss, 0) >= losses.POISSON
