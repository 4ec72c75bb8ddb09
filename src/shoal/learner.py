"""The base of all online learners: scikit-learn's verbs and a stream's, over a model.

A learner is hyper-parameters and the model that learned with them. It gives its `algorithm` (a value, see
`shoal.model.algorithm`) or, if it holds other learners, a core.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import metaestimators
from sklearn.utils.validation import has_fit_parameter

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.losses import LARGEST_LOG
from shoal.engine.rounds import NO_WEIGHT
from shoal.model import persistence
from shoal.model.algorithm import Algorithm, Setup, Size
from shoal.model.core import NO_OUT, Core, CoreLike
from shoal.model.explanations import Explanation, SimilarTask, explain, most_alike
from shoal.model.importances import Importances, importances
from shoal.model.model import Model
from shoal.model.parameters import alike, for_users, hyper_parameters
from shoal.model.state import named_leaves
from shoal.model.targets import RealTargets, Targets, TwoLabels

Method = TypeVar("Method", bound=Callable[..., Any])

# Attributes that other parts of the library use, and a user does not.
INTERNAL = (
    "algorithm algorithms answers_by_exp answers_several decide_sparse deciding_cores declared_labels estimator_names "
    "default is_probabilistic learn_sparse new_core number_of_task plain quantiles simultaneous targets"
)


class Learner(BaseEstimator):  # type: ignore[misc]
    """An online multi-task learner: scikit-learn estimator and stream learner at once.

    Any number of threads may predict with one learner at once. Learning, `add_*`, `forget_task` and `set_params` need
    that no other thread uses the learner meanwhile.
    """

    estimator_names: ClassVar[tuple[str, ...]] = ()  # hyper-parameters that are learners themselves

    @property
    def algorithm(self) -> Algorithm[Any]:
        """The algorithm: most kinds set it as an attribute of the class."""
        raise AttributeError(f"a {type(self).__name__} has no algorithm of its own; it holds other learners")

    @property
    def targets(self) -> Targets:
        """The kind of targets: an attribute of the class, likewise."""
        raise AttributeError(f"a {type(self).__name__} has no kind of targets")

    @property
    def answers_several(self) -> bool:
        """Does a row have several answers, such as quantiles?"""
        return False

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The levels of the quantiles that are answered; none: the answer is no quantile."""
        return ()

    @property
    def declared_labels(self) -> Any:
        """Labels that may come, of the hyper-parameter `classes`; None: none is declared."""
        return getattr(self, "classes", None)

    _model: Model | None = None
    _read_from: tuple[Any, ...] = ()  # the hyper-parameters that the model has

    def new_core(self) -> CoreLike:
        """A core with the current hyper-parameters that has learned nothing.

        Raises
        ------
        ValueError
            If a hyper-parameter is out of its range.
        """
        return Core(self.algorithm, self.get_params(deep=False))

    @property
    def simultaneous(self) -> bool:
        """Does `rounds=None` mean that rows of different tasks form a round?"""
        return self.algorithm.chunks.simultaneous

    def baselines(self) -> dict[str, Learner]:
        """The same learner without sharing ("independent") and with one model for all ("pooled")."""
        raise NotImplementedError("define baselines(): {'independent': a learner, 'pooled': a learner}")

    def __dir__(self) -> list[str]:
        return for_users(super().__dir__(), INTERNAL)

    # ---- array verbs -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, task: Any = None, *, rounds: Any = None) -> Self:
        """Forget everything, declare all tasks of the data, then learn the rows in one pass, in order."""
        return self._fit(X, y, task, rounds, None)

    def _fit(self, X: Any, y: Any, task: Any, rounds: Any, weight: Any) -> Self:
        model = self._new_model()
        model.learn(X, y, task, rounds, None, weight, declare=True)
        self._model = None
        self._keep(model)
        return self

    def partial_fit(self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None) -> Self:
        """Learn the rows in order.

        Parameters
        ----------
        X : (n, d) array, SciPy CSR matrix or data frame
        y : (n,) two labels of any kind, or real targets for a regressor
        task : (n,) task ids, any hashables; None: all rows belong to one task
        rounds : (n,) integers, optional
            Rows with equal consecutive values form a round, at most one row per task. None: each row is a
            round, or in the simultaneous protocol a maximal run of rows in which no task repeats; it ends with the
            call at the latest, so in that protocol other chunks are other rounds.
        classes : two labels, optional
            Needed while only one label has been seen and it is not one of -1, 0, 1, False, True.

        Raises
        ------
        ValueError
            On bad input; a row is named and the model stays as it was.
        """
        self._learn(X, y, task, rounds, classes, None)
        return self

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the (n,) decision values given *before* learning each round."""
        return self._learn(X, y, task, rounds, classes, None, out=True)

    def _learn(
        self, X: Any, y: Any, task: Any, rounds: Any, classes: Any, weight: Any, *, out: bool = False
    ) -> FloatArray:
        model = self._begun()
        decisions = model.learn(X, y, task, rounds, classes, weight, out=out)
        self._keep(model)
        return decisions

    def _values(self, X: Any, task: Any) -> FloatArray:
        return self._fitted_model().decide(X, task)

    # ---- one-example and round verbs ---------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, task: Hashable = None) -> None:
        """Learn one example: `x` a dict of named features (new names get columns) or a 1-d array."""
        self._learn_one(x, y, task, 1.0)

    def _learn_one(self, x: Any, y: Any, task: Hashable, weight: float) -> None:
        model = self._begun()
        weights = NO_WEIGHT if weight == 1.0 else model.weight_of_one(weight)
        rounds = model.known_row(x, task, y, weights)
        if rounds is None or model.core.may_fail:
            model.learn_round({task: (x, y)}, weights if len(weights) else None)
            self._keep(model)
        else:
            model.core.learn(rounds, NO_OUT)

    def learn_round(self, examples: Mapping[Any, Any]) -> None:
        """Learn the examples that arrived together: `{task: (x, y), ...}`; one with a weight is `(x, y, weight)`."""
        model = self._begun()
        model.learn_round(examples)
        self._keep(model)

    def _value_one(self, x: Any, task: Hashable) -> FloatArray:
        model = self._fitted_model()
        decision = model.core.new_out(1)
        model.core.decide(model.row_to_decide(x, task), decision)
        return decision

    def learn_sparse(self, row: tuple[IndexArray, FloatArray], y: Any, task: Hashable) -> bool:
        """Learn a sparse row, for callers that have validated it; False if it is not learned, for what is new."""
        model = self._begun()
        rounds = model.known_sparse_row(row, task, y)
        if rounds is None or model.core.may_fail:
            return False
        model.core.learn(rounds, NO_OUT)
        return True

    def decide_sparse(self, rows: Sequence[tuple[IndexArray, FloatArray]], tasks: Sequence[Hashable]) -> FloatArray:
        """The decision values of sparse rows, for callers that have validated them: columns in increasing order, finite
        values. Features that the model does not know are left out."""
        model = self._fitted_model()
        decisions = model.core.new_out(len(rows))
        model.core.decide(model.sparse_rows(rows, tasks), decisions)
        return decisions

    # ---- explaining --------------------------------------------------------------------------------------

    def deciding_cores(self) -> dict[Any, CoreLike]:
        """The cores by the label that large decision values speak for; None for numbers."""
        labels = getattr(self, "classes_", None)
        return {None if labels is None else labels.tolist()[-1]: self._fitted_model().core}

    def explain_one(self, x: Any, task: Hashable = None, *, label: Any = None) -> Explanation:
        """The features that move the decision on one example most: ``f(x) = intercept + Σ_j (shared_j + own_j)``.

        Parameters
        ----------
        x : dict or 1-d array
        task : hashable
            One that the model has not seen is answered, and explained, by what all tasks share.
        label : label, optional
            With more than two classes the one whose margin is explained. [default: the predicted one]

        Returns
        -------
        Explanation
            Contributions (feature, value, shared, own), the largest first; they add up to `decision_one(x, task)`, of
            a regressor `predict_one`, to rounding. `str()` gives a table.

        Raises
        ------
        ValueError
            If the learner compares whole rows (kernels, second order, mapped features), if the example is not one that
            `predict_one` takes, or if there is no such label.

        Examples
        --------
        >>> from shoal import MultitaskPerceptron
        >>> learner = MultitaskPerceptron(relation="pairwise")
        >>> for task, x, y in ("ann", {"sale": 1, "hi": 1}, 1), ("bob", {"sale": 2}, 0), ("ann", {"hi": 3}, 0):
        ...     learner.learn_one(x, y, task)
        >>> print(learner.explain_one({"sale": 1.0, "hi": 1.0}, "ann"))
                       value      shared         own       total
        hi                 1          -1          -1          -2
        sale               1     -0.6667           0     -0.6667
        decision                                          -2.667
        """
        return explain(self._fitted_model(), self.deciding_cores(), x, task, label, lambda: self.predict_one(x, task))

    def importances(self, X: Any, task: Any = None, *, columns: Sequence[Any] | None = None) -> Importances:
        """Which features move the decisions on these rows most, over all rows and in each task.

        Parameters
        ----------
        X, task : rows, as for `predict`
            Of more than 1,000 rows, 1,000 are drawn at random.
        columns : (n_features,) names, optional
            Features of one name are one column, such as the values of a category; those of None are left out.
            [default: each feature is a column]

        Returns
        -------
        Importances
            `overall` and `by_task`, the most important column first: its `share` of what all columns add, and how much
            it is: the mean absolute contribution to the probability or the number; of learners without probabilities,
            to the margin. With several labels, to that of the predicted one.

        Raises
        ------
        ValueError
            If the learner compares whole rows (kernels, second order, mapped features), or the rows are none that
            `predict` takes.

        Examples
        --------
        >>> import numpy as np
        >>> from shoal import PassiveAggressive
        >>> X, task = np.array([[1, 0], [1, 1], [-1, 0]]), ["ann", "bob", "cid"]
        >>> found = PassiveAggressive().fit(X, [1, 1, 0], task).importances(X, task)
        >>> for one in found.overall:
        ...     print(f"feature {one.column}: {one.share:.0%}")
        feature 0: 83%
        feature 1: 17%
        """
        model = self._fitted_model()

        def slopes(base: FloatArray, decision: FloatArray, rows: IntArray) -> FloatArray:
            chance = self.predict_proba(X, task).max(axis=1)[rows] if of_several else None
            return forecast_slopes(self, base, decision, chance)

        cores = self.deciding_cores()
        of_several = len(cores) > 1 and hasattr(self, "predict_proba")
        return importances(model, cores, X, task, lambda: self.predict(X, task), columns, slopes)

    def similar_tasks(self, task: Hashable, n: int = 5) -> list[SimilarTask]:
        """The tasks most like one, with a similarity: ``[(task, similarity), ...]``, the most alike first.

        By the learned relation where there is one: of `OSMTL` the attention ``P_kj``, of `OMTRL` and
        `SchattenPerceptron` the relation as a correlation ``R_kj / √(R_kk R_jj)``. Of all others the cosine
        ``<v_k, v_j> / (|v_k| |v_j|)`` of own weights, what tasks have beyond what they share, on the features
        or, of more than 1,000, on the 1,000 that weigh most in this task; tasks without own weights are left out.
        Of more than 256 tasks, 256 are drawn at random and compared, for a task always the same: with probability
        0.95 the first that is found is among the 1.2 % most alike of all. Cost O(those tasks x those features).

        Parameters
        ----------
        task : hashable
        n : int >= 1
            How many at most.

        Raises
        ------
        ValueError
            If the model does not know the task, or its decisions are no sums over features (kernels).

        Examples
        --------
        >>> import numpy as np
        >>> from shoal import PassiveAggressive
        >>> learner = PassiveAggressive().fit(np.array([[1, 0], [1, 1], [-1, 0]]), [1, 1, 1], ["ann", "bob", "cid"])
        >>> for other, similarity in learner.similar_tasks("ann"):
        ...     print(other, f"{similarity:.2f}")
        bob 0.71
        cid -1.00
        """
        model = self._fitted_model()
        return most_alike([*self.deciding_cores().values()], model.tasks.column, task, model.features.count, n)

    # ---- tasks and features ------------------------------------------------------------------------------

    def add_tasks(self, ids: Iterable[Hashable]) -> Self:
        """Declare tasks before their first row."""
        model = self._begun()
        model.add_tasks(ids)
        self._keep(model)
        return self

    def forget_task(self, task: Hashable) -> Self:
        """Remove a task and its own state; others keep what they learned from it.

        Where the relation between tasks depends on how many there are, it becomes that of the tasks that are left, and
        their decisions move.
        """
        self._fitted_model().forget_task(task)
        return self

    def add_features(self, more: Iterable[Hashable] | int) -> Self:
        """Let rows have more features from now on: names, as dict rows have them, or how many more columns."""
        model = self._begun()
        model.add_features(more)
        self._keep(model)
        return self

    # ---- learned attributes ------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None and self._model.is_fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def tasks_(self) -> list[Any]:
        """Task ids in the order of their columns."""
        if self._model is None:
            raise AttributeError(f"{type(self).__name__} has no tasks_ before it has learned a row")
        return self._model.tasks.ids

    def knows_task(self, task: Hashable) -> bool:
        """Has a row of this task been learned, or was it declared?"""
        return self._model is not None and task in self._model.tasks.column

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._known("n_features_in_").features.count

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names, where the rows came with names."""
        names = None if self._model is None else self._model.features.names
        if names is None:
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_: its rows came without names")
        return np.fromiter(names, object, len(names))

    @property
    def relation_(self) -> FloatArray | None:
        """(n_tasks, n_tasks) task relationship in force, or None."""
        return None

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) examples of each task that were used in updates of its own model."""
        return self._known("task_updates_").updates()

    @property
    def n_updates_(self) -> int:
        """Examples used in updates so far: the papers' nSV."""
        return int(self.task_updates_.sum())

    # ---- persistence -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file (safetensors with a JSON header), whole or not at all; `shoal.load` reads it.

        Raises
        ------
        ValueError
            If a hyper-parameter or a task id has no plain form (a function, an object of your own).
        """
        persistence.write(path, *self._content())

    def _content(self) -> tuple[dict[str, Any], persistence.Arrays]:
        """Header and arrays of the file."""
        model = self._fitted_model()
        known = persistence.Known(model.tasks, model.features, self.targets.to_header(model.labels))
        packed = model.core.pack(Size(len(model.tasks), model.features.count))
        return persistence.content(self, known, named_leaves(packed))

    def _restore(self, known: persistence.Known, arrays: persistence.Arrays) -> None:
        """Take what `save` wrote. Raises ValueError if no such learner could have written it."""
        model = self._new_model()
        if model.core.named_tasks and model.core.named_tasks != known.tasks.ids:
            raise ValueError("its tasks are not those of its relation")
        model.tasks, model.features = known.tasks, known.features
        model.labels = self.targets.from_header(known.labels)
        model.core.expect_labels(model.labels)
        if model.core.groups is not None:
            model.core.groups.name(0, known.tasks.ids)
        persistence.take(model.core, arrays, Size(len(known.tasks), known.features.count))
        self._keep(model)

    # ---- the model ---------------------------------------------------------------------------------------

    def _new_model(self) -> Model:
        return Model(self.new_core(), self.targets, type(self).__name__, self.declared_labels)

    def _begun(self) -> Model:
        """The current model with up-to-date hyper-parameters, or a new one that the caller must store with `_keep`."""
        values = hyper_parameters(self)
        if self._model is None:
            return self._new_model()
        if not alike(values, self._read_from):
            self._model.core.adopt(self.new_core())
            self._model.targets, self._read_from = self.targets, values
        return self._model

    def _keep(self, model: Model) -> None:
        if model is not self._model:
            self._model, self._read_from = model, hyper_parameters(self)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if self._model is not None:
            self._model.core.attach(self.new_core())

    def _fitted_model(self) -> Model:
        if self._model is None or not self._model.is_fitted:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' or 'partial_fit' with appropriate "
                "arguments before using this estimator."
            )
        return self._begun()

    def _known(self, attribute: str) -> Model:
        """The model, for an attribute that there is once it has learned a row."""
        if self._model is None or not self._model.is_fitted:
            raise AttributeError(f"{type(self).__name__} has no {attribute} before it has learned a row")
        return self._model

    def _state(self, attribute: str) -> Any:
        return self._known(attribute).core.state

    def _setup(self) -> Setup:
        """The current hyper-parameters, as the algorithm takes them."""
        return self._begun().core_as(Core).setup


class WeightedLearner(Learner):
    """A learner whose mathematics has a meaning for the weights of rows.

    A row of weight h is learned as if it had come h times in a row; the learner's notes say what a fraction means. A
    row of weight 0 is answered and changes nothing: no weights, no counts, and a task that has no other row stays
    unknown. Only its label and its columns are known from then on.
    """

    def fit(self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything, declare all tasks of the data, then learn the rows in one pass, in order."""
        return self._fit(X, y, task, rounds, sample_weight)

    def partial_fit(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn the rows in order, as `Learner.partial_fit` says.

        Parameters
        ----------
        sample_weight : (n,) numbers from 0 to 1e6, optional
            How often each row counts. [default: each counts once]

        Raises
        ------
        ValueError
            On bad input; a row is named and the model stays as it was.
        """
        self._learn(X, y, task, rounds, classes, sample_weight)
        return self

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the (n,) decision values given *before* learning each round."""
        return self._learn(X, y, task, rounds, classes, sample_weight, out=True)

    def learn_one(self, x: Any, y: Any, task: Hashable = None, sample_weight: float = 1.0) -> None:
        """Learn one example, as `Learner.learn_one` says; `sample_weight` is how often it counts."""
        self._learn_one(x, y, task, sample_weight)


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """scikit-learn's decorator of methods that not every object has; a method keeps its type."""
    return metaestimators.available_if(check)  # type: ignore[no-any-return]


def is_probabilistic_kind(learner: Any) -> bool:
    """Has it probabilities?"""
    return bool(learner.is_probabilistic)


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]
    """A learner of two labels."""

    targets: Targets = TwoLabels()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def is_probabilistic(self) -> bool:
        """Are decision values logits, so that there are probabilities?"""
        return False

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, the larger one is +1."""
        return np.asarray(self._known("classes_").labels.classes)

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins <w_task, x>."""
        return self._values(X, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels; a margin of 0 predicts the larger label."""
        positive = (self._values(X, task) >= 0.0).astype(np.int64)
        return np.asarray(self.classes_[positive])

    @available_if(is_probabilistic_kind)
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels, in the order of `classes_`."""
        return probabilities(self._values(X, task))

    @available_if(is_probabilistic_kind)
    def predict_log_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) logarithms of the probabilities, finite where a probability is rounded to 0 or 1."""
        return log_probabilities(self._values(X, task))

    @available_if(is_probabilistic_kind)
    def predict_proba_one(self, x: Any, task: Hashable = None) -> dict[Any, float]:
        """Probability of each label for one example (dict or 1-d array)."""
        return dict(zip(self.classes_.tolist(), probabilities(self._value_one(x, task))[0].tolist(), strict=True))

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, task), sample_weight=sample_weight))

    def decision_one(self, x: Any, task: Hashable = None) -> float:
        """The margin of one example (dict or 1-d array)."""
        return float(self._value_one(x, task)[0])

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The label of one example (dict or 1-d array)."""
        positive = self._value_one(x, task)[0] >= 0.0
        return self.classes_.tolist()[int(positive)]

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, Any]:
        """`{task: x, ...}` to `{task: label, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}


def logistic(logits: FloatArray) -> FloatArray:
    """The probabilities that the logits stand for."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -700.0, 700.0))))


def forecast_slopes(
    learner: Any, base: FloatArray, decision: FloatArray, chance: FloatArray | None = None
) -> FloatArray:
    """The mean slopes of forecasts on the straight way from one decision to another (Aumann, Shapley 1974).

    A part c of the decision is c times the slope of the forecast, and all parts add up. Without probabilities it is 1.

    Parameters
    ----------
    base, decision : (n,)
    chance : (n,) probabilities, if they are not those of the decisions alone: several labels share what is certain
    """
    if getattr(learner, "answers_by_exp", False):
        low, high = (np.exp(np.minimum(part, LARGEST_LOG)) for part in (base, decision))
        derivative = high
    elif is_classifier(learner) and hasattr(learner, "predict_proba"):
        low, high = logistic(base), logistic(decision)
        derivative = high * (1.0 - high)
    else:
        return np.ones(len(base))
    step = decision - base
    moves = np.abs(step) > 1e-9
    slopes = np.where(moves, (high - low) / np.where(moves, step, 1.0), derivative)
    return np.asarray(slopes if chance is None else slopes * chance / np.where(high > 0.0, high, 1.0))


def probabilities(logits: FloatArray) -> FloatArray:
    """(n, 2) probabilities of the smaller and the larger label."""
    positive = logistic(logits)
    return np.column_stack([1.0 - positive, positive])


def log_probabilities(logits: FloatArray) -> FloatArray:
    """(n, 2) logarithms of the probabilities of the smaller and the larger label, -ln(1 + e^m) and -ln(1 + e^-m)."""
    return np.column_stack([-np.logaddexp(0.0, logits), -np.logaddexp(0.0, -logits)])


class Regressor(RegressorMixin, Learner):  # type: ignore[misc]
    """A learner of real targets."""

    @property
    def targets(self) -> Targets:
        """Real numbers."""
        return RealTargets()

    @property
    def answers_by_exp(self) -> bool:
        """Are the answers exp of sums over features?"""
        return False

    def predict(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) predictions <w_task, x>."""
        return self._values(X, task)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R^2."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, task), sample_weight=sample_weight))

    def predict_one(self, x: Any, task: Hashable = None) -> float:
        """The prediction for one example (dict or 1-d array)."""
        return float(self._value_one(x, task)[0])

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, float]:
        """`{task: x, ...}` to `{task: prediction, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}


def weights_for(learner: Any, weight: Any) -> dict[str, Any]:
    """The weights of rows as an argument of the learner's verbs; no argument if there are none.

    Raises
    ------
    ValueError
        If there are weights, and the learner has no meaning for them.
    """
    if weight is None:
        return {}
    if hasattr(learner, "fit") and not has_fit_parameter(learner, "sample_weight"):
        if isinstance(learner, Learner):
            raise ValueError(learner._new_model().refusal_of_weights())
        why = getattr(learner, "no_weights", "its fit has no such argument")
        raise ValueError(f"{type(learner).__name__} takes no sample_weight: {why}")
    return {"sample_weight": weight}


def view(estimator: Learner, model: Model) -> Learner:
    """A learner like the estimator over a model that learned elsewhere."""
    learner = type(estimator)(**estimator.get_params(deep=False))
    learner._keep(model)
    return learner


def model_of(learner: Learner) -> Model:
    """The model of a learner, to be continued elsewhere. Raises NotFittedError before its first row."""
    return learner._fitted_model()
