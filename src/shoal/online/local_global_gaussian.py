"""Local and global Gaussians with label queries (Yang, Li, WWW 2020): what all tasks share, what is a task's own, and
how sure the model is of either.

Weights of task k are N(mu_0 + mu_k, S_0 + S_k). On a mistaken row x of task k, all right-hand sides before the round,

    S_k <- (S_k⁻¹ + x xᵀ/lambda)⁻¹      mu_k <- mu_k + g y S_k x,   g = l/(eps + xᵀ S_k x)  (squared hinge)
    S_0 <- (S_0⁻¹ + sum_k x xᵀ/lambda)⁻¹   mu_0 <- mu_0 + 1/(2 eps) S_0 sum_k y x

(eqs. 2 to 5; S on the right of the means is the new one). A label is asked for with probability h/(h + theta),
theta = [|f| - xᵀ(S_0 + S_k) x/(4 eps)]_+: always where the margin is within the model's doubt (proof of Theorem 2).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from shoal.classifier import Classifier
from shoal.engine.arrays import FloatArray
from shoal.learner import Learner
from shoal.model.algorithm import Algorithm, Setup
from shoal.online import _feature_maps as maps
from shoal.online._gaussian import Covariance, covariance
from shoal.online._local_global import Settings, State, algorithm_for, wants_label


class LocalGlobalGaussian(Classifier):
    """A global and a local Gaussian per task: second-order multi-task learning that asks for the labels it needs.

    Weights of task k are N(mu_0 + mu_k, S_0 + S_k). In a round, every queried row that is predicted wrongly makes
    ``S_k <- (S_k⁻¹ + x xᵀ/lam)⁻¹``, ``mu_k <- mu_k + g y S_k x`` with g = l/(eps + xᵀ S_k x), l = 1 - y f; together
    they make ``S_0 <- (S_0⁻¹ + Σ x xᵀ/lam)⁻¹``, ``mu_0 <- mu_0 + 1/(2 eps) S_0 Σ y x``.

    Cost with D features (after the map): O(nnz) a prediction, O(D²) a mistake, (K + 1) D² numbers of memory;
    O(nnz) and (K + 1) D with ``covariance="diagonal"``; O(D m + m²) and (K + 1) (D m + m²) with rank m. A query costs
    O(nnz D) more, or O(nnz), or O(D m). The map adds
    O(nnz D) for "rff", O(nnz D + D²) for "nystrom", whose functions are called with D + n rows for a round of n.

    Parameters
    ----------
    lam : float > 0
        How slowly covariances shrink: a row counts as x xᵀ/lam.
    eps : float > 0
        How little a row pulls the means.
    h : float > 0 (inf allowed)
        How many labels to ask for: a row whose margin exceeds the model's doubt by theta is asked for with
        probability h/(h + theta). inf asks for all. With h < inf the array verbs too learn only rows that the rule
        asks for.
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
        What the Gaussians are over. "linear": the row. "rff": random Fourier features of the Gaussian kernel
        exp(-gamma ||x - z||²). "nystrom": Nyström features of any kernel on one dictionary of rows for all tasks,
        entered with their ridge leverage score as the stream runs, labelled or not. A dict sets what a map needs:
        ``{"map": "rff", "gamma": 1.0, "size": 200}``, ``{"map": "nystrom", "kernel": "rbf", "gamma": 1.0,
        "size": 200, "ridge": 0.1}`` (the defaults); it is read before the first row. A kernel is "rbf", "linear" or a
        function, as in `KernelPerceptron`: it should be positive definite, `ridge` is measured against its k(x, x),
        and a function cannot be saved. A transformer of scikit-learn is used as it is; in
        `sklearn.frozen.FrozenEstimator` it survives `clone`, and no transformer can be saved.
    update : {"mistaken", "all"}
        Rows that covariances take in: mistaken ones, or all queried ones. Means move on mistakes only.
    theta : {"post", "pre"}
        Doubt with the covariances as they will be after the row, or as they are, which asks for more labels.
    random_state : int, RandomState or None
        Of the queries and of "rff" and "nystrom". The generator is part of the model.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) means mu_0 + mu_k; with "linear" only
    coef_shared_ : (D,) mu_0, over the map's features
    coef_task_ : (n_tasks, D) mu_k
    covariance_ : (n_tasks, D, D) S_0 + S_k, of low rank too; (n_tasks, D) variances if diagonal
    covariance_shared_ : (D, D) S_0; (D,) if diagonal
    n_queries_ : labels asked for
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (mistakes learned), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or if there is no memory for full covariances.

    Notes
    -----
    An unseen task is answered by the global Gaussian. Regret: `shoal.theory.gaussian_regret_bound`, of full
    covariances. Only the supplement of the paper is public; its objective and feature map are reconstructed. Of low
    rank, the doubt after a row is lam v/(lam + v) with v the doubt before, as if there were room for the row. A round
    ends where a call ends, so other chunks are other rounds unless `rounds=` names them.

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
    >>> from shoal import LocalGlobalGaussian
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> data = data.interleaved(seed=0)
    >>> for h in (float("inf"), 0.05):
    ...     learner = LocalGlobalGaussian(h=h, random_state=0)
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

    algorithms: ClassVar[tuple[Algorithm[State], Algorithm[State]]] = (
        algorithm_for(True, True, mapped=False), algorithm_for(True, True, mapped=True)
    )  # fmt: skip

    def __init__(
        self, *, lam: float = 1.0, eps: float = 1.0, h: float = float("inf"), loss: str = "squared_hinge",
        covariance: str | int = "full", features: Any = "linear", update: str = "mistaken", theta: str = "post",
        random_state: Any = None, classes: Any = None,
    ) -> None:  # fmt: skip
        self.lam = lam
        self.eps = eps
        self.h = h
        self.loss = loss
        self.covariance = covariance
        self.features = features
        self.update = update
        self.theta = theta
        self.random_state = random_state
        self.classes = classes

    @property
    def algorithm(self) -> Algorithm[State]:
        return self.algorithms[not (isinstance(self.features, str) and self.features == "linear")]

    # ---- label queries -----------------------------------------------------------------------------------

    def query_one(self, x: Any, task: Hashable = None) -> bool:
        """Should the label of this example be asked for?

        Yes where the margin is within the model's doubt, else with probability h/(h + theta); always if h is inf or
        nothing has been learned. True is a promise: the next example of the task given to a learn verb is learned
        without asking again, so ``if learner.query_one(x, task): learner.learn_one(x, label(), task)`` over a
        stream of one-row rounds is `partial_fit`. For that the question is counted, its random number is used up,
        and a task that was not known enters.

        Parameters
        ----------
        x : dict or 1-d array
        task : hashable

        Raises
        ------
        ValueError
            If the example is not one that `predict_one` takes.
        """
        if self.h == math.inf or not self.__sklearn_is_fitted__():
            return True
        model, theta = self._begun(), np.empty(1)
        core: Any = model.core
        core.confidence(model.row_to_decide(x, task), theta)
        if not wants_label(float(theta[0]), float(self.h), model.core.state.random):
            return False
        if task not in model.tasks.column:
            model.add_tasks([task])
        k = model.tasks.column[task]
        model.core.state.queries[k] += 1
        model.core.state.granted[k] += 1
        return True

    # ---- what can be seen --------------------------------------------------------------------------------

    def baselines(self) -> dict[str, Learner]:
        parameters = self.get_params(deep=False)
        return {"independent": _LocalGaussians(**parameters), "pooled": _GlobalGaussian(**parameters)}

    @property
    def n_queries_(self) -> int:
        """Labels asked for so far."""
        return int(self._state("n_queries_").queries[: len(self.tasks_)].sum())

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

    algorithms = algorithm_for(False, True, mapped=False), algorithm_for(False, True, mapped=True)


class _GlobalGaussian(LocalGlobalGaussian):
    """Without local Gaussians: one model for all."""

    algorithms = algorithm_for(True, False, mapped=False), algorithm_for(True, False, mapped=True)
