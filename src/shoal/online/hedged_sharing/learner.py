"""HedgedSharing, the default: nothing to tune, many ways of learning and sharing mixed row by row."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.learner import Classifier, Learner, Regressor, WeightedLearner
from shoal.model.core import CoreLike
from shoal.model.parameters import Reader, read
from shoal.online.common.residual_quantiles import QuantileCore
from shoal.online.hedged_sharing.algorithm import LABELS, NUMBERS_TO_PREDICT, PARAMETERS, settings_of
from shoal.online.hedged_sharing.experts import EXPERTS, LINEAR, OWN, POOLED, TOGETHER
from shoal.online.hedged_sharing.explaining import contributions, linear_weights
from shoal.online.hedged_sharing.state import State

WAYS = {
    POOLED: "one model for all tasks",
    TOGETHER: "a common model and the task's difference from it",
    OWN: "the task's own model",
}


def by_sharing(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of experts by the way in which these share, in words; the heaviest first."""
    found = dict.fromkeys(WAYS.values(), 0.0)
    for expert in EXPERTS:
        found[WAYS[expert.sharing]] += weights.get(expert.name, 0.0)
    return dict(sorted(found.items(), key=lambda one: -one[1]))


class _Hedged(WeightedLearner):
    """The base of the two forms."""

    relation: str

    def baselines(self) -> dict[str, Learner]:
        """The experts of own weights alone, and the pooled ones alone."""
        parameters = self.get_params(deep=False)
        return {name: type(self)(**{**parameters, "relation": name}) for name in ("independent", "pooled")}

    @property
    def experts_(self) -> list[str]:
        """Rule and sharing of each expert."""
        return [expert.name for expert in EXPERTS]

    @property
    def weights_(self) -> FloatArray:
        """(n_tasks, n_experts) Bayes weights of the experts in each task."""
        state: State = self._state("weights_")
        n = len(self.tasks_)
        seen = state.task_rows[:n, None] > 0
        return np.where(seen, state.task_weights[:n], state.weights)

    def expert_weights(self, task: Any) -> dict[str, float]:
        """Bayes weight of each expert in a task, the largest first: a row of `weights_`, without the others."""
        state: State = self._state("expert_weights")
        column = self._fitted_model().tasks.column
        if task not in column:
            raise ValueError(f"no task {task!r} in this model")
        k = column[task]
        weights = state.task_weights[k] if state.task_rows[k] > 0 else state.weights
        found = zip(self.experts_, weights.tolist(), strict=True)
        return dict(sorted(found, key=lambda one: -one[1]))

    @property
    def linear_experts_(self) -> list[str]:
        """The experts on the row itself, whose weights `experts_coef` gives."""
        return [EXPERTS[e].name for e in LINEAR]

    def experts_coef(self, task: Any) -> FloatArray:
        """(14, 1 + n_features) weights of `linear_experts_` on a task's scaled row; the first column is the constant's.

        The weights of crossed experts lie in tables by hashes of bins and pairs; `explain_one` reads them.
        """
        state: State = self._state("experts_coef")
        if task not in self.tasks_:
            raise ValueError(f"no task {task!r} in this model")
        k, slots = self.tasks_.index(task), np.arange(1 + self.n_features_in_)
        settings = settings_of(read(PARAMETERS, self.get_params(deep=False)), regression=isinstance(self, Regressor))
        weights = linear_weights(settings, state, k, slots)
        return (weights.shared + weights.own)[LINEAR]

    @property
    def experts_coef_(self) -> FloatArray:
        """(n_tasks, 14, 1 + n_features) `experts_coef` of every task: dense, so for models that are not too large."""
        self._state("experts_coef_")
        return np.array([self.experts_coef(task) for task in self.tasks_])


class HedgedSharing(_Hedged, Classifier):
    """The default: many ways of learning and sharing, mixed row by row. Nothing to tune.

    Linear experts learn by several rules (diagonal second order, AdaGrad, constant steps) and share in several ways
    (one model for all; shared plus own, both stepping; one model per task): with e = y - p, y in {0, 1}, they step by
    ``w <- w + r x e / (1 + p (1 - p) Σ r x²)``, r the rule's step for each feature. Twelve work on the row itself. Four
    work on the crossed row, which has bins of numeric features and products of pairs as well, where rows are narrow.
    While few features have come, there are two Kalman filters with full matrices, `MixedEffects` by moments and by
    implicit steps, `TaskLevels`, and gradient-boosted trees on the last 16,384 rows. Forecasts are mixed three times:
    by Bayes weights with a fixed share, ``a_k <- 0.995 a_k P_k(y) / Σ_j a_j P_j(y) + 0.005 prior_k``, per task and for
    all tasks; by two online logistic regressions on the experts' logits, one of which moves cautiously; and these two
    and a slow mixture by Bayes weights again. In a task of few rows the answer shrinks to the mixture of all tasks.
    Rows may come on any scale: features are brought near the overall r.m.s. and rows to usual length by running
    statistics.

    Cost O(non-zeros) an example whatever the number of tasks; on narrow rows O(pairs of non-zeros), at most some 400
    entries, and O(features²) while there are full matrices. Memory: 16 numbers a feature and 8 per (task, feature)
    pair that has occurred; tables of at most 10 MB for crossed rows; full matrices of at most `memory`.

    Parameters
    ----------
    relation : {"learned", "independent", "pooled"}
        "learned": the mixture finds out how much to share. "independent" and "pooled" are the same learner without
        sharing, to compare with: the experts of own weights alone (common to all tasks are only the running scales of
        features and the second mixing), or the pooled experts alone.
    interactions : "auto", True or False
        Bins and pairs of features: where the first 1,000 rows, or those so far, have at most 32 entries on average or
        at most 256 features have come, always, or never. True with wide rows takes time and may overfill the tables.
        Full matrices are there while at most 255 features have come, with False at most 31. Unless it is False,
        they go on where more have come and nine tenths of the entries are there, as in embeddings: with P diagonal plus
        rank 8, up to 4,096 features.
    memory : float > 0
        Megabytes that full matrices may take: 4 n² bytes a task of n features, and 72 n beyond 255. Tasks that
        come when all is taken have none. Tables of crossed rows become smaller where `memory` is less than 170.
    effort : {"auto", "fast", "full"}
        How long mixed effects and levels stay, and how often trees are trained anew. "full": for ever, and whenever
        rows have grown by 15 %. "auto": while rows times columns² are at most 5e7, and the same while trainings have
        cost less than 6e8 additions to a histogram, some nanoseconds each, and 500 for each row. "fast": without
        trees.
    dtype : {"float64", "float32"}
        What weights are stored in, and their steps computed in. float32 takes half the memory and less time; margins
        and mixtures are float64 all the same.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    weights_ : (n_tasks, n_experts) Bayes weights of the experts `experts_`: which way of sharing won in each task
    experts_ : names of the experts: row, rule and way of sharing, which is "own" (the task's own model), "pooled" (one
        model for all) or "together", also of those that do not say it (a common model and the task's difference from
        it); docs/hedged-sharing.md has a line on each. "levels-log" is for real targets and sleeps
    linear_experts_ : names of the fourteen with weights for the row itself
    experts_coef_ : (n_tasks, 14, 1 + n_features) their weights; `experts_coef(task)` for one task
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input.

    Notes
    -----
    The mixture is not linear in x, so there is no `coef_`; `experts_coef_` holds the linear models on the scaled
    row. The decision value is the logit of the probability of the larger label. An unseen task is answered by
    the shared parts of the experts, mixed by the weights of all tasks together. The first mixing loses at most
    ln 26 + T ln(1/(1 - 0.005)) to its best expert in T rows, over the rows in which that one is awake:
    `shoal.theory.fixed_share_regret_bound`. Entries of crossed rows have places in tables by a hash, so that two may
    share a record; `forget_task` empties the records that the task moved last.

    One odd row undoes nothing. With S surprises among n rows, a label says nothing about its row with chance
    eps = min((S + 1/2)/(n + 2), 1/2): the answer is (1 - eps) p + eps/2, likelihoods are (1 - eps) P + eps/2, and the
    second mixing learns by the share (1 - eps) q/((1 - eps) q + eps/2), q what it gave to what happened. A label is a
    surprise if the answer gave it less than 1/(n + 2). A value beyond 10 times the r.m.s. of its feature is clipped;
    that r.m.s. is of all values, in narrow streams within a factor of 6 of that of the last 30.

    A row of `sample_weight` h has h times the loss, for the experts and for both mixings: curvatures h c x² and squared
    gradients h g² x² in the rates, likelihoods p^h, and h times the row in the scales of features. An expert's step is
    r x sum_i h_i e_i / (1 + tau h_i c_i) over parts h_i = 1, 1, 2, 4, ... of h, each judged by the margin that those
    before left, with the rates r of the row. That is near to the row h times, but not equal: rates do not shrink in
    between. How far a task is trusted depends on the number of its rows, not on their weights.

    References
    ----------
    The step without overshoot: Karampatziakis, Langford, Online importance weight aware updates, UAI 2011. Fixed
    share: Herbster, Warmuth, Tracking the best expert, Machine Learning 32, 1998. AdaGrad: Duchi, Hazan, Singer,
    Adaptive subgradient methods for online learning and stochastic optimization, JMLR 12, 2011. Full matrices: Kalman,
    A new approach to linear filtering and prediction problems, Journal of Basic Engineering 82, 1960; of low rank:
    Chang, Durán-Martín, Shestopaloff, Jones, Murphy, Low-rank extended Kalman filtering, CoLLAs 2023. Experts that
    sleep: Freund, Schapire, Singer, Warmuth, Using and combining predictors that specialize, STOC 1997. Hashed pairs:
    Weinberger, Dasgupta, Langford, Smola, Attenberg, Feature hashing for large scale multitask learning, ICML 2009.
    "Dynamically adapting b" is the open problem that Cavallanti et al. (JMLR 11, 2010) end with.

    Examples
    --------
    >>> from shoal import HedgedSharing, MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for learner in (HedgedSharing(), MultitaskPerceptron()):
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{type(learner).__name__:20} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    HedgedSharing        error 0.108
    MultitaskPerceptron  error 0.162
    """

    algorithm = LABELS._replace(explain=LABELS.explain._replace(contributions=contributions))

    def __init__(
        self,
        *,
        relation: str = "learned",
        interactions: bool | str = "auto",
        memory: float = 256.0,
        effort: str = "auto",
        dtype: Any = "float32",
        classes: Any = None,
    ) -> None:
        self.relation = relation
        self.interactions = interactions
        self.memory = memory
        self.effort = effort
        self.dtype = dtype
        self.classes = classes

    @property
    def is_probabilistic(self) -> bool:
        """Decision values are logits."""
        return True


def _levels(target: Any) -> tuple[float, ...] | None:
    """None for the mean."""
    if isinstance(target, str):
        if target not in ("mean", "median"):
            raise ValueError(TARGET_TEXT.format(target))
        return None if target == "mean" else (0.5,)
    given = [target] if isinstance(target, numbers.Real) else target
    try:
        levels = tuple(float(level) for level in given)
    except (TypeError, ValueError):
        raise ValueError(TARGET_TEXT.format(repr(target))) from None
    if not levels or not all(0.0 < level < 1.0 for level in levels) or sorted(set(levels)) != list(levels):
        raise ValueError(TARGET_TEXT.format(repr(target)))
    return levels


TARGET_TEXT = "target must be 'mean', 'median', a level between 0 and 1, or several such in rising order, got {}"
TARGET = Reader("'mean', 'median' or levels", _levels)


OF_MEANS = NUMBERS_TO_PREDICT._replace(explain=NUMBERS_TO_PREDICT.explain._replace(contributions=contributions))


class HedgedSharingRegressor(_Hedged, Regressor):
    """The default for real targets: the experts of `HedgedSharing` with squared loss. Nothing to tune.

    Linear experts step by ``w <- w + r x (y - f) / (1 + Σ r x²)``, those with full matrices are Kalman filters. Tasks'
    levels are learned twice, of targets and, while all have been positive, of their logarithms. Bayes weights go by
    Gaussian likelihoods whose variance is the mixture's mean squared error over some 300 rows; the second mixing is two
    ridge regressions on the forecasts by recursive least squares. Targets are centered on their running mean
    and measured in their running deviation, so their scale and offset do not matter. Cost and memory are those of
    `HedgedSharing`.

    Parameters
    ----------
    relation, interactions, memory, effort : as in `HedgedSharing`
    target : "mean", "median", a level between 0 and 1, or several such in rising order
        What is answered. A level p is the quantile below which the share p of a row's targets lies; of several, a row
        has as many answers, which do not cross.
    dtype : {"float64", "float32"}
        What weights are stored in, and their steps computed in. float32 takes half the memory and less time; margins
        and mixtures are float64 all the same. Weights are as large as targets are, which may be more than float32
        holds.

    Attributes
    ----------
    weights_ : (n_tasks, n_experts) Bayes weights of the experts `experts_`: which way of sharing won in each task
    experts_ : names of the experts, as `HedgedSharing` explains them; "newton-pooled-undivided" and "effects-implicit",
        which for real targets would equal others, sleep
    linear_experts_ : names of the fourteen with weights for the row itself
    experts_coef_ : (n_tasks, 14, 1 + n_features) their weights; `experts_coef(task)` for one task
    tasks_, n_features_in_, feature_names_in_, n_updates_ (every row is an update), task_updates_

    Raises
    ------
    ValueError
        On bad input.

    Notes
    -----
    `experts_coef_` holds the linear models on the scaled row, for targets less their mean. An unseen task
    is answered by the shared parts of the experts.

    One odd row undoes nothing, and a change of scale is followed. A target beyond 10 deviations is clipped, and so is
    an error of the mixture beyond 7 deviations of the noise and that of the targets; with c clipped rows more than one
    in a thousand, both limits are (1 + c)^(1/4) times as far, so that large values which keep coming are learned. After
    1,000 rows the mean moves by at most a thousandth of the usual step between targets. Forecasts further than 10
    deviations of the noise from that of the heaviest expert are pulled there before they are mixed.

    Counts and amounts are noticed. While none of ten targets or more has been negative, no answer is, while all have
    been positive none is below half the least (of quantiles from the first target on); what is learned stays the same.

    Quantiles are the forecast of the mean plus offsets, learned from how far targets were from forecasts: by shared and
    own integrators as in `Conformal`, by the error's size in this row, and by linear models, mixed by their pinball
    losses (`online.common.residual_quantiles`). While all targets have been whole numbers quantiles are whole.
    `python -m benchmarks.quantiles` prints pinball losses beside LightGBM's and Vowpal Wabbit's. `explain_one` explains
    one quantile, whose offset is part of the intercept. A row's weight h is h rows one after the other, at most 100.

    `sample_weight` as in `HedgedSharing`, with steps
    r x h e / (1 + tau h); the mean, deviation and squared errors of targets count h times too.

    References
    ----------
    As `HedgedSharing`; the mixing by squared error: Vovk, Competitive on-line statistics, International Statistical
    Review 69, 2001. Quantiles: Koenker, Bassett, Regression quantiles, Econometrica 46, 1978; in order: Chernozhukov,
    Fernández-Val, Galichon, Quantile and probability curves without crossing, Econometrica 78, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import HedgedSharingRegressor, MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), rng.integers(10, size=3000)
    >>> weights = rng.normal(size=5) + 0.3 * rng.normal(size=(10, 5))
    >>> y = np.einsum("ij,ij->i", X, weights[task]) + rng.normal(size=3000)
    >>> for learner in (HedgedSharingRegressor(), MultitaskRegressor()):
    ...     predictions = learner.test_then_train(X, y, task)
    ...     print(f"{type(learner).__name__:22} mean squared error {((predictions - y) ** 2)[1000:].mean():.3f}")
    HedgedSharingRegressor mean squared error 1.000
    MultitaskRegressor     mean squared error 1.290
    >>> from sklearn.metrics import mean_pinball_loss
    >>> y += rng.normal(size=3000) * task  # tasks differ in spread
    >>> answers = HedgedSharingRegressor(target=[0.1, 0.9]).test_then_train(X, y, task)
    >>> for p, q in zip((0.1, 0.9), answers.T):
    ...     loss, constant = (mean_pinball_loss(y, f, alpha=p) for f in (q, np.full(3000, np.quantile(y, p))))
    ...     print(f"{np.mean(y <= q):.2f} below; pinball loss {loss:.2f}, of the best constant {constant:.2f}")
    0.10 below; pinball loss 0.90, of the best constant 1.08
    0.89 below; pinball loss 0.88, of the best constant 1.08
    """

    algorithms = (OF_MEANS, OF_MEANS._replace(exchange="copies of what quantiles are made of do not merge"))

    def __init__(
        self,
        *,
        relation: str = "learned",
        interactions: bool | str = "auto",
        memory: float = 256.0,
        effort: str = "auto",
        target: Any = "mean",
        dtype: Any = "float64",
    ) -> None:
        self.relation = relation
        self.interactions = interactions
        self.memory = memory
        self.effort = effort
        self.target = target
        self.dtype = dtype

    @property
    def algorithm(self) -> Any:
        """That of the mean; copies of quantiles do not merge."""
        return self.algorithms[self.target != "mean"]

    @property
    def answers_several(self) -> bool:
        """Several quantiles are wanted."""
        return not isinstance(self.target, str | numbers.Real)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The levels of `target`; none for the mean."""
        return read({"target": TARGET}, {"target": self.target}).target or ()

    def new_core(self) -> CoreLike:
        """The core of the mean, and around it that of quantiles if these are wanted."""
        core, levels = super().new_core(), self.quantiles
        if not levels:
            return core
        return QuantileCore(core, levels, several=self.answers_several, pooled=self.relation == "pooled")

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The prediction for one example (dict or 1-d array); of several quantiles, a list."""
        if not self.answers_several:
            return super().predict_one(x, task)
        return self._value_one(x, task)[0].tolist()

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """R^2; of quantiles D^2, the share of the best constant's pinball loss that is saved, their mean."""
        levels = self.quantiles
        if not levels:
            return super().score(X, y, task, sample_weight)
        from sklearn.metrics import d2_pinball_score

        answers = self.predict(X, task).reshape(-1, len(levels)).T
        scores = [
            d2_pinball_score(y, f, sample_weight=sample_weight, alpha=p) for p, f in zip(levels, answers, strict=True)
        ]
        return float(np.mean(scores))
