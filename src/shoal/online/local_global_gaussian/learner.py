"""Local and global Gaussians (Yang, Li, WWW 2020): a Gaussian of all tasks, one of each task, and
how sure the model is of either.

Weights of task k are N(mu_0 + mu_k, S_0 + S_k). On a mistaken row x of task k, all right-hand sides before the round,

    S_k <- (S_k⁻¹ + x xᵀ/lambda)⁻¹      mu_k <- mu_k + g y S_k x,   g = l/(eps + xᵀ S_k x)  (squared hinge)
    S_0 <- (S_0⁻¹ + sum_k x xᵀ/lambda)⁻¹   mu_0 <- mu_0 + 1/(2 eps) S_0 sum_k y x

(eqs. 2 to 5; S on the right of the means is the new one). `confidence` is |f| - xᵀ(S_0 + S_k) x/(4 eps), by which
`shoal.LabelQuery` asks for labels: always where the margin is within the model's doubt (proof of Theorem 2).
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.random import SEED
from shoal.engine.rounds import Rounds
from shoal.engine.rows import dot, open_round
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import Algorithm, Chunks, Explain, Setup, Size, Storage, as_needed, doubled
from shoal.model.parameters import SEEDED, Params, Reader, from_keywords, one_of, positive, whole
from shoal.model.state import in_capacity
from shoal.online.local_global_gaussian import feature_maps as maps
from shoal.online.local_global_gaussian.covariance import (
    DIAGONAL,
    FULL,
    Covariance,
    condition,
    covariance,
    prior,
    prior_variance,
    pull,
    variance,
)

LARGEST_STEP = 1e300  # of g: finite whatever the margin, so that 0 times it is 0


class Settings(NamedTuple):
    """Hyper-parameters."""

    lam: float
    eps: float
    hinge: bool
    form: int  # of covariances: FULL, DIAGONAL or a rank
    takes_all: bool  # covariances take in every row, not only mistaken ones
    shared: bool  # is there a global Gaussian
    personal: bool  # and local ones (the baselines lack one of them)


class State(NamedTuple):
    """Means and factors of covariances, and the feature map. D features after the map."""

    shared_mean: FloatArray  # (D,) mu_0
    mean: Annotated[FloatArray, TASK, OTHER]  # (tasks, D) mu_k
    shared_factor: FloatArray  # S_0, see `Covariance`
    shared_inner: FloatArray
    shared_directions: IntArray
    factor: Annotated[FloatArray, TASK, OTHER, OTHER]  # S_k
    inner: Annotated[FloatArray, TASK, OTHER, OTHER]
    directions: Annotated[IntArray, TASK]
    points: FloatArray  # the feature map's, see `MapState`
    offsets: FloatArray
    cholesky: FloatArray
    ridge_cholesky: FloatArray
    used: IntArray
    random: NDArray[np.uint64]  # (3,) see `shoal.engine.random`
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(allocates=True)
def of_all(state: State) -> Covariance:
    """S_0."""
    return Covariance(state.shared_factor, state.shared_inner, state.shared_directions)


@kernel(allocates=True)
def of_task(state: State, k: int) -> Covariance:
    """S_k."""
    return Covariance(state.factor[k], state.inner[k], state.directions[k : k + 1])


@kernel
def margin(rounds: Rounds, row: int, state: State) -> float:
    """<mu_0 + mu_k, x>; an unseen task has mu_k = 0."""
    f, k = dot(rounds, row, state.shared_mean), rounds.task[row]
    return f + dot(rounds, row, state.mean[k]) if k >= 0 else f


@kernel
def doubt(rounds: Rounds, row: int, settings: Settings, state: State, work: FloatArray) -> float:
    """xᵀ (S_0 + S_k) x, the covariances as they will be after the row; an unseen task has S_k = I."""
    k, lam, form, v = rounds.task[row], settings.lam, settings.form, 0.0
    if settings.shared:
        v += variance(rounds, row, of_all(state), lam, form, work)
    if settings.personal and k >= 0:
        v += variance(rounds, row, of_task(state, k), lam, form, work)
    elif settings.personal:
        v += prior_variance(rounds, row, lam, form)
    return v


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, state)


@kernel(entry=True, allocates=True)
def confidence(rounds: Rounds, settings: Settings, state: State, out: FloatArray) -> None:
    """How sure the model is of each row beyond its doubt: |f| - xᵀ (S_0 + S_k) x/(4 eps)."""
    work = np.empty(len(state.shared_mean))
    for row in range(len(out)):
        v = doubt(rounds, row, settings, state, work)
        out[row] = abs(margin(rounds, row, state)) - v / (4.0 * settings.eps)


@kernel
def step(y: float, f: float, v: float, settings: Settings) -> float:
    """g y of eq. 3, v = xᵀ S_k x with the new S_k."""
    loss = max(0.0, 1.0 - y * f)
    g = min(0.5 / settings.eps, loss / v) if settings.hinge else min(loss / (settings.eps + v), LARGEST_STEP)
    return y * g


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    lam, form, work, S_0 = settings.lam, settings.form, np.empty(len(state.shared_mean)), of_all(state)
    mistaken = np.empty(len(state.updates), np.bool_)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        for row in range(first, last):  # a task's own Gaussian: nothing that the round's other rows look at
            k, y, f = rounds.task[row], rounds.y[row], margin(rounds, row, state)
            if len(decisions) > 0:
                decisions[row] = f
            mistaken[row - first] = is_mistake(f, y)
            if not (mistaken[row - first] or settings.takes_all):
                continue
            if settings.personal:
                S_k = of_task(state, k)
                v = condition(rounds, row, S_k, lam, form, work)  # eq. 2
                if mistaken[row - first]:
                    pull(rounds, row, S_k, step(y, f, v, settings), form, work, state.mean[k])  # eq. 3
            else:
                v = variance(rounds, row, S_0, lam, form, work)
            state.updates[k] += mistaken[row - first] and v > 0.0
        if not settings.shared:
            continue
        for row in range(first, last):  # eq. 4: Woodbury's formula is these steps one after the other
            if mistaken[row - first] or settings.takes_all:
                condition(rounds, row, S_0, lam, form, work)
        for row in range(first, last):  # eq. 5
            if mistaken[row - first]:
                scale = rounds.y[row] / (2.0 * settings.eps)
                pull(rounds, row, S_0, scale, form, work, state.shared_mean)
    return len(rounds.starts) - 1


def settings_for(shared: bool, personal: bool) -> Callable[[Params], Settings]:
    """With the global Gaussian, the local ones, or both."""

    def settings(p: Params) -> Settings:
        return Settings(p.lam, p.eps, p.loss == "hinge", p.covariance, p.update == "all", shared, personal)

    return settings


def seed_of(p: Params) -> int:
    """The feature map's seed; a learner that draws nothing has seed 0, so that equal models are equal."""
    draws = p.features.kind in (maps.RFF, maps.NYSTROM)
    return p.random_state.seed if draws or p.random_state.given else 0


def allocate(setup: Setup, size: Size) -> State:
    return with_seed(setup, size, seed_of(setup.params))


def with_seed(setup: Setup, size: Size, seed: int) -> State:
    n_tasks, form = size.tasks, setup.settings.form
    D = maps.n_mapped(setup.params.features, size.features)
    try:
        S_0, S = prior(None, D, form), prior(n_tasks, D, form)
        return State(
            np.zeros(D),
            np.zeros((n_tasks, D)),
            S_0.factor,
            S_0.inner,
            S_0.used,
            S.factor,
            S.inner,
            S.used,
            *maps.allocate(setup.params.features, size.features, seed),
            np.array([seed, 0, 0], np.uint64),
            np.zeros(n_tasks, np.int64),
            np.zeros(3, np.int64),
        )
    except MemoryError:
        raise ValueError(
            f"no memory for the covariances of {n_tasks} tasks over {D} features; use covariance='diagonal' or a rank"
        ) from None


def grow(setup: Setup, state: State, size: Size) -> State:
    grown: State = in_capacity(state, with_seed(setup, size, int(state.random[SEED])))
    return grown


def capacity(setup: Setup, have: Size, need: Size) -> Size:
    """A transformer takes the features that it was fitted on."""
    expected = getattr(setup.params.features.transformer, "n_features_in_", need.features)
    if need.features != expected:
        raise ValueError(f"X has {need.features} features, but the transformer is expecting {expected} features")
    return (doubled if setup.params.features.transformer is None else as_needed)(setup, have, need)


def check(setup: Setup, state: State, size: Size) -> None:
    if not 0 <= state.used[0] <= len(state.offsets):
        raise ValueError("the number of its dictionary's rows is out of range")
    directions = np.append(state.directions, state.shared_directions)
    if not ((directions >= 0) & (directions <= len(state.shared_inner))).all():
        raise ValueError("the number of its covariances' directions is out of range")


def retune(before: Setup, after: Setup, state: State) -> None:
    old, new = before.params.features, after.params.features
    if (old.kernel, old.gamma, old.ridge) != (new.kernel, new.gamma, new.ridge):
        raise ValueError("this hyper-parameter shapes the state: it can only change before fit")


NAMED = one_of({"full": FULL, "diagonal": DIAGONAL})
RANK = whole(1, "a rank")
FORM = Reader(f"{NAMED.text} or {RANK.text}", lambda value: (NAMED if isinstance(value, str) else RANK).convert(value))
PARAMETERS = {
    "lam": positive(),
    "eps": positive(),
    "loss": one_of(("squared_hinge", "hinge")),
    "covariance": FORM,
    "features": maps.FEATURE_MAP,
    "update": one_of(("mistaken", "all")),
    "random_state": SEEDED,
}


def algorithm_for(shared: bool, personal: bool, *, mapped: bool) -> Algorithm[State]:
    """On rows as they come, or on their features."""
    return Algorithm[State](
        parameters=PARAMETERS,
        settings=settings_for(shared, personal),
        allocate=allocate,
        learn=learn,
        decide=decide,
        exchange="covariances of different rows multiply: neither a mean nor a sum of copies is that of all rows",
        no_weights="its posterior takes each row in once, and its paper weighs no row",
        retune=retune,
        storage=Storage(capacity=capacity, grow=grow, check=check),
        chunks=Chunks(
            simultaneous=True,
            pieces=maps.pieces if mapped else None,
            may_fail=lambda p: p.features.transformer is not None or callable(p.features.kernel),
        ),
        explain=Explain(linear=not mapped, confidence=confidence),
    )


def algorithms_for(*, shared: bool, personal: bool) -> tuple[Algorithm[State], Algorithm[State]]:
    """On rows as they come, and on their features."""
    return algorithm_for(shared, personal, mapped=False), algorithm_for(shared, personal, mapped=True)


@from_keywords
class LocalGlobalGaussian(Classifier):
    """A global and a local Gaussian per task: second-order multi-task learning that knows its doubt.

    Weights of task k are N(mu_0 + mu_k, S_0 + S_k). In a round, every row that is predicted wrongly makes
    ``S_k <- (S_k⁻¹ + x xᵀ/lam)⁻¹``, ``mu_k <- mu_k + g y S_k x`` with g = l/(eps + xᵀ S_k x), l = 1 - y f; together
    they make ``S_0 <- (S_0⁻¹ + Σ x xᵀ/lam)⁻¹``, ``mu_0 <- mu_0 + 1/(2 eps) S_0 Σ y x``.

    Cost with D features (after the map): O(nnz) a prediction, O(D²) a mistake, (K + 1) D² numbers of memory;
    O(nnz) and (K + 1) D with ``covariance="diagonal"``; O(D m + m²) and (K + 1) (D m + m²) with rank m. The map adds
    O(nnz D) for "rff", O(nnz D + D²) for "nystrom", whose functions are called with D + n rows for a round of n.

    Parameters
    ----------
    lam : float > 0
        How slowly covariances shrink: a row counts as x xᵀ/lam.
    eps : float > 0
        How little a row pulls the means.
    loss : {"squared_hinge", "hinge"}
        "hinge": g = min(1/(2 eps), l/xᵀ S_k x).
    covariance : {"full", "diagonal"} or int >= 1
        "diagonal" keeps variances only, the diagonal Gaussians that minimise the same objective. A rank m is between
        the two, for many features: precisions ``S⁻¹ = diag(d) + V Vᵀ`` with V (D, m). A row is a new column x/√lam.
        Where there is no room for it, V keeps the m/2 directions of most gain over d, and of each direction v that
        goes the diagonal stays, ``d <- d + v²``. So the diagonal of S⁻¹ is always exact, and all of it while rows
        span m dimensions at most: m = D is "full" to rounding. No public text of the paper says how; this form
        is that of Chang et al., who drop the shortest direction at every row. Half of them at once make a row O(D m).
    features : {"linear", "rff", "nystrom"}, dict, or fitted transformer
        Features of the Gaussians. "linear": the row. "rff": random Fourier features of the Gaussian kernel
        exp(-gamma ||x - z||²). "nystrom": Nyström features of any kernel on one dictionary of rows for all tasks,
        entered with their ridge leverage score as the stream runs. A dict sets what a map needs:
        ``{"map": "rff", "gamma": 1.0, "size": 200}``, ``{"map": "nystrom", "kernel": "rbf", "gamma": 1.0,
        "size": 200, "ridge": 0.1}`` (the defaults); it is read before the first row. A kernel is "rbf", "linear" or a
        function, as in `KernelPerceptron`: it should be positive definite, `ridge` is measured against its k(x, x),
        and a function cannot be saved. A transformer of scikit-learn is used as it is; in
        `sklearn.frozen.FrozenEstimator` it survives `clone`, and no transformer can be saved.
    update : {"mistaken", "all"}
        Rows that covariances take in: mistaken ones, or all. Means move on mistakes only.
    random_state : int, RandomState or None
        Of "rff" and "nystrom". The generator is part of the model.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) means mu_0 + mu_k; with "linear" only
    coef_shared_ : (D,) mu_0, over the map's features
    coef_task_ : (n_tasks, D) mu_k
    covariance_ : (n_tasks, D, D) S_0 + S_k, of low rank too; (n_tasks, D) variances if diagonal
    covariance_shared_ : (D, D) S_0; (D,) if diagonal
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (mistakes learned), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or if there is no memory for full covariances.

    Notes
    -----
    An unseen task is answered by the global Gaussian. `shoal.LabelQuery` with ``rule="variance"`` is the paper's
    label query: a row is asked for with probability b/(b + theta), theta = [|f| - xᵀ(S_0 + S_k) x/(4 eps)]_+. Regret:
    `shoal.theory.gaussian_regret_bound`, of full covariances. Only the supplement of the paper is public; its
    objective and feature map are reconstructed. Of low rank, the doubt after a row is lam v/(lam + v) with v the
    doubt before, as if there were room for the row. A round ends where a call ends, so other chunks are other rounds
    unless `rounds=` names them.

    Odd rows: one wrong label costs little once there is little doubt; a value of 1e6 takes the doubt from its feature,
    whose weight hardly moves from then on.

    References
    ----------
    Yang, Li. Efficient Online Multi-Task Learning via Adaptive Kernel Selection. WWW 2020: supplement, eqs. 2-5,
    Theorem 1, proof of Theorem 2.
    Chang, Durán-Martín, Shestopaloff, Jones, Murphy. Low-rank extended Kalman filtering for online learning of neural
    networks from streaming data. CoLLAs 2023.

    Examples
    --------
    >>> from shoal import LabelQuery, LocalGlobalGaussian
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> data = data.interleaved(seed=0)
    >>> for b in (float("inf"), 0.05):
    ...     learner = LabelQuery(LocalGlobalGaussian(), rule="variance", b=b, random_state=0)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     error = ((decisions >= 0) != (data.y > 0)).mean()
    ...     print(f"{learner.n_queries_} labels, error {error:.3f}")
    2000 labels, error 0.157
    1004 labels, error 0.163
    >>> for covariance in ("diagonal", 4, 30, "full"):
    ...     decisions = LocalGlobalGaussian(covariance=covariance).test_then_train(data.X, data.y, data.task)
    ...     print(f"{covariance!s:8} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    diagonal error 0.169
    4        error 0.172
    30       error 0.157
    full     error 0.157
    """

    lam: float = 1.0
    eps: float = 1.0
    loss: str = "squared_hinge"
    covariance: str | int = "full"
    features: Any = "linear"
    update: str = "mistaken"
    random_state: Any = None
    classes: Any = None

    algorithms: ClassVar[tuple[Algorithm[State], Algorithm[State]]] = algorithms_for(shared=True, personal=True)

    @property
    def algorithm(self) -> Algorithm[State]:
        return self.algorithms[not (isinstance(self.features, str) and self.features == "linear")]

    # ---- learned attributes ------------------------------------------------------------------------------

    def baselines(self) -> dict[str, Learner]:
        parameters = self.get_params(deep=False)
        return {"independent": _LocalGaussians(**parameters), "pooled": _GlobalGaussian(**parameters)}

    def _size(self) -> int:
        setup: Setup = self._setup()
        return maps.n_mapped(setup.params.features, self.n_features_in_)

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) mu_0 + mu_k, with linear features."""
        self._state("coef_")
        if self.features != "linear":
            raise AttributeError("weights of mapped features are no coef_; see coef_shared_ and coef_task_")
        return np.asarray(self.coef_shared_ + self.coef_task_)

    @property
    def coef_shared_(self) -> FloatArray:
        """(D,) mu_0, over the map's features."""
        return np.array(self._state("coef_shared_").shared_mean[: self._size()])

    @property
    def coef_task_(self) -> FloatArray:
        """(n_tasks, D) mu_k, over the map's features."""
        return np.array(self._state("coef_task_").mean[: len(self.tasks_), : self._size()])

    @property
    def covariance_shared_(self) -> FloatArray:
        """(D, D) S_0, or (D,) variances."""
        state, settings = self._state("covariance_shared_"), self._setup().settings
        S = Covariance(state.shared_factor, state.shared_inner, state.shared_directions)
        return covariance(S, self._size(), settings.form)

    @property
    def covariance_(self) -> FloatArray:
        """(n_tasks, D, D) S_0 + S_k, or (n_tasks, D) variances."""
        state, n = self._state("covariance_"), len(self.tasks_)
        settings: Settings = self._setup().settings
        own = covariance(
            Covariance(state.factor[:n], state.inner[:n], state.directions[:n]), self._size(), settings.form
        )
        return np.asarray(settings.shared * self.covariance_shared_ + settings.personal * own)


class _LocalGaussians(LocalGlobalGaussian):
    """Without the global Gaussian: tasks on their own."""

    algorithms = algorithms_for(shared=False, personal=True)


class _GlobalGaussian(LocalGlobalGaussian):
    """Without local Gaussians: one model for all."""

    algorithms = algorithms_for(shared=True, personal=False)
