"""More than two classes around any classifier: a copy of the learner a class, that class against the rest.

Copy c learns +1 on the rows of class c and -1 on all others; the class whose copy has the largest margin is the answer.
One copy more learns -1 on every row: it is what the copy of any class would be that has not come yet, so a new class
begins as a copy of it, and the model is the one that had known the class from the first row.

scikit-learn's `OneVsRestClassifier` does not serve: its metadata routing brings `task` to `fit` and `partial_fit`, but
its `predict` and `decision_function` take `X` alone, and its `partial_fit` refuses a class not named in the first call.
"""

import copy
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.learner import (
    Classifier,
    Learner,
    WeightedLearner,
    available_if,
    is_probabilistic_kind,
    log_probabilities,
    probabilities,
)
from shoal.model import labels as label_codes
from shoal.model.algorithm import Size
from shoal.model.core import NO_OUT, CoreLike
from shoal.model.groups import Groups
from shoal.model.growth import stepping_aside
from shoal.model.parameters import from_keywords
from shoal.model.targets import Classes, ManyLabels
from shoal.online.hedged_sharing.learner import HedgedSharing
from shoal.wrappers.inner import inner_core, seen_through
from shoal.wrappers.label_query import LabelQuery

SIGNS = label_codes.declared([-1.0, 1.0])


class OneAgainstRest:
    """A core a class, in the order in which classes came, and one that has learned -1 on every row."""

    groups: Groups | None = None

    def __init__(self, rest: CoreLike) -> None:
        self.rest = rest
        self.classes: list[CoreLike] = []
        self.named_tasks, self.simultaneous, self.may_fail = rest.named_tasks, rest.simultaneous, rest.may_fail
        self.no_weights = rest.no_weights

    @property
    def cores(self) -> list[CoreLike]:
        """All of them, the rest first."""
        return [self.rest, *self.classes]

    def of(self, code: int | None) -> CoreLike:
        """The core of a class; for one that has not come, the core with which it would begin."""
        return self.rest if code is None or code >= len(self.classes) else self.classes[code]

    # ---- the interface of a core ---------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        return self.rest.state

    @property
    def learns_in_blocks(self) -> bool:
        return False

    def reserve(self, n_tasks: int, n_features: int) -> None:
        for core in self.cores:
            core.reserve(n_tasks, n_features)

    def enter(self, n_tasks: int) -> None:
        for core in self.cores:
            core.enter(n_tasks)

    def leave(self, k: int, n_tasks: int) -> None:
        with stepping_aside(nullcontext):
            for core in self.cores:
                core.leave(k, n_tasks)

    def new_out(self, n_rows: int) -> FloatArray:
        """A column a class, as many as there are when it is filled: the list grows with the classes."""
        return np.empty((n_rows, 0))

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        self.learn_all(rounds, keep=False)

    def learn_all(self, rounds: Rounds, *, keep: bool) -> list[FloatArray]:
        """Learn rounds whose targets are codes; the decisions of the rest and of each class, if they are kept."""
        n_codes = int(rounds.y.max(initial=-1.0)) + 1
        while len(self.classes) < n_codes:
            self.classes.append(copy.deepcopy(self.rest))
        decisions = []
        with stepping_aside(nullcontext):
            for code, core in enumerate(self.cores, -1):
                out = core.new_out(len(rounds.y)) if keep else NO_OUT
                core.learn(rounds._replace(y=np.where(rounds.y == code, 1.0, -1.0)), out)
                decisions.append(out)
        return decisions

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        raise NotImplementedError("classes are decided by `decide_all`")

    def decide_all(self, rounds: Rounds) -> list[FloatArray]:
        """The decisions of the rest and of each class."""
        decisions = []
        for core in self.cores:
            out = core.new_out(len(rounds.task))
            core.decide(rounds, out)
            decisions.append(out)
        return decisions

    def updates(self, n_tasks: int) -> IntArray:
        """Updates of all classes."""
        if len(self.classes) <= 2:
            return self.of(len(self.classes) - 1 if self.classes else None).updates(n_tasks)
        return np.asarray(sum(core.updates(n_tasks) for core in self.classes))

    def adopt(self, other: Any) -> None:
        for core in self.cores:
            core.adopt(other.rest)
        self.named_tasks, self.simultaneous, self.may_fail = other.named_tasks, other.simultaneous, other.may_fail

    def attach(self, other: Any) -> None:
        for core in self.cores:
            core.attach(other.rest)

    def snapshot(self) -> Callable[[], None]:
        n_classes, rollbacks = len(self.classes), [core.snapshot() for core in self.cores]

        def go_back() -> None:
            del self.classes[n_classes:]
            for rollback in rollbacks:
                rollback()

        return go_back

    def nbytes(self) -> int:
        return sum(core.nbytes() for core in self.cores)

    # ---- files -----------------------------------------------------------------------------------------------

    def _packed(self, parts: list[Any]) -> Any:
        names = ["rest", *(f"class{code}" for code in range(len(parts) - 1))]
        kind = NamedTuple("Packed", [(name, type(part)) for name, part in zip(names, parts, strict=True)])  # type: ignore[misc]
        return kind(*parts)

    def pack(self, size: Size) -> Any:
        return self._packed([core.pack(size) for core in self.cores])

    def expect_labels(self, labels: Classes) -> None:
        self.classes = [copy.deepcopy(self.rest) for _ in labels.met]

    def blank(self, size: Size) -> Any:
        return self._packed([core.blank(size) for core in self.cores])

    def unpack(self, packed: Any, size: Size) -> None:
        for core, part in zip(self.cores, packed, strict=True):
            core.unpack(part, size)


@from_keywords
class MultiClass(WeightedLearner, Classifier):
    """Any classifier of this library for any number of classes, new ones included, one against the rest.

    Each class has a copy of the learner, which learns its rows as +1 and all others as -1; the largest margin is the
    answer (of equal ones the smaller label's). A class that first comes in mid-stream is in no worse place than one
    declared: the two models are equal, bit for bit. With two classes the answers are those of the learner itself.
    Cost and memory: the learner's, times the number of classes plus one.

    Parameters
    ----------
    estimator : classifier of this library; None: `HedgedSharing(memory=32)`, for each class has its own
        It stays as it is; its trained copies are `estimators_`.
    classes : labels, optional
        Labels that may come; the others are found in the stream.

    Attributes
    ----------
    estimators_ : dict of label -> the learner of that class against the rest, for the labels met
    classes_ : (n_classes,) labels met or declared by `classes=`, sorted
    task_updates_ : (n_tasks,) updates; with more than two classes the sum over the copies
    tasks_, n_features_in_, feature_names_in_, n_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a learner that is no classifier of two labels or asks for labels.

    Notes
    -----
    `decision_function` and `test_then_train` give (n, n_classes) margins, in the order of `classes_`; with two classes
    (n,), positive for the larger label. While only one label is known, -1, 0, 1, False and True tell the other one.
    Weights and relations are those of `estimators_`; `sample_weight` goes to every copy. Margins are not calibrated
    against each other.

    References
    ----------
    Rifkin, Klautau. In Defense of One-Vs-All Classification. JMLR 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MultiClass, MultitaskPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 10)), rng.integers(20, size=3000)
    >>> w = rng.normal(size=(4, 10)) + 0.3 * rng.normal(size=(20, 4, 10))
    >>> y = np.array(["ash", "elm", "fir", "oak"])[np.einsum("nkd,nd->nk", w[task], X).argmax(axis=1)]
    >>> for relation in ("independent", "pairwise"):
    ...     learner = MultiClass(MultitaskPerceptron(relation=relation))
    ...     margins = learner.test_then_train(X, y, task)
    ...     print(f"{relation:12} error {(learner.classes_[margins.argmax(axis=1)] != y).mean():.3f}")
    independent  error 0.396
    pairwise     error 0.356
    """

    estimator: Learner | None = field(default=None, kw_only=False)
    classes: Any = None

    targets = ManyLabels()
    estimator_names = ("estimator",)

    def _plain(self) -> Learner:
        return HedgedSharing(memory=32.0) if self.estimator is None else self.estimator

    def new_core(self) -> CoreLike:
        """One core of the estimator, to be copied for each class."""
        estimator = self._plain()
        if not isinstance(estimator, Classifier) or isinstance(estimator, MultiClass):
            raise ValueError(f"MultiClass needs a classifier of two labels, got {type(estimator).__name__}")
        if isinstance(estimator, LabelQuery):
            raise ValueError("all classes learn from a label that one asks for: put MultiClass around its estimator")
        return OneAgainstRest(inner_core(estimator, Classifier, "MultiClass"))

    @property
    def simultaneous(self) -> bool:
        """The estimator's protocol."""
        return self._plain().simultaneous

    @property
    def is_probabilistic(self) -> bool:
        """Are the estimator's decision values logits?"""
        return bool(getattr(self._plain(), "is_probabilistic", False))

    # ---- verbs ---------------------------------------------------------------------------------------------

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Learn like `partial_fit`; return the margins given *before* learning each round, (n, n_classes) or (n,)."""
        model, decisions = self._begun(), []
        core = model.core_as(OneAgainstRest)

        def learn(rounds: Rounds, out: FloatArray) -> None:
            decisions.extend(core.learn_all(rounds, keep=True))

        model.learn(X, y, task, rounds, classes, sample_weight, learn=learn)
        self._keep(model)
        return self._side_by_side(decisions)

    def _decided(self, rounds: Rounds) -> FloatArray:
        return self._side_by_side(self._fitted_model().core_as(OneAgainstRest).decide_all(rounds))

    def _side_by_side(self, decisions: list[FloatArray]) -> FloatArray:
        """The margins of the rest and of classes in order of appearance, in the order of `classes_`."""
        codes = self._known("classes_").labels.codes
        columns = [decisions[codes.get(label, -1) + 1] for label in self.classes_.tolist()]
        return np.stack(columns, axis=1) if len(columns) > 2 else columns[-1]

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """The margins (n, n_classes), in the order of `classes_`; with two classes (n,), those of the larger label."""
        return self._decided(self._fitted_model().rows_to_decide(X, task))

    def decision_one(self, x: Any, task: Hashable = None) -> Any:
        """The margins (n_classes,) of one example (dict or 1-d array); with two classes a number."""
        values = self._decided(self._fitted_model().row_to_decide(x, task))[0]
        return values if values.ndim else float(values)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels."""
        places = self._places(self.decision_function(X, task))
        return np.asarray(self.classes_[places])

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The label of one example (dict or 1-d array)."""
        place = self._places(np.array([self.decision_one(x, task)]))[0]
        return self.classes_.tolist()[place]

    @available_if(is_probabilistic_kind)
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, n_classes) probabilities of the labels, in the order of `classes_`: each against the rest, normalised."""
        return self._normalised(self.decision_function(X, task))

    @available_if(is_probabilistic_kind)
    def predict_log_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, n_classes) logarithms of the probabilities, finite where a probability is rounded to 0 or 1."""
        values = self.decision_function(X, task)
        if values.ndim == 1:
            return log_probabilities(values) if len(self.classes_) == 2 else np.zeros((len(values), 1))
        each = -np.logaddexp(0.0, -values)
        return np.asarray(each - np.logaddexp.reduce(each, axis=1, keepdims=True))

    @available_if(is_probabilistic_kind)
    def predict_proba_one(self, x: Any, task: Hashable = None) -> dict[Any, float]:
        """Probability of each label for one example (dict or 1-d array)."""
        row = self._normalised(np.array([self.decision_one(x, task)]))[0]
        return dict(zip(self.classes_.tolist(), row.tolist(), strict=True))

    def _places(self, values: FloatArray) -> IntArray:
        """Positions of the answers in `classes_`."""
        n_classes = len(self.classes_)
        places = values.argmax(axis=1) if n_classes > 2 else (values >= 0.0) & (n_classes == 2)
        return np.asarray(places, np.int64)

    def _normalised(self, values: FloatArray) -> FloatArray:
        if values.ndim == 1:
            return probabilities(values) if len(self.classes_) == 2 else np.ones((len(values), 1))
        each = probabilities(values.ravel())[:, 1].reshape(values.shape)
        return np.asarray(each / each.sum(axis=1, keepdims=True))

    def baselines(self) -> dict[str, Learner]:
        return {
            name: MultiClass(baseline, classes=self.classes) for name, baseline in self._plain().baselines().items()
        }

    # ---- learned attributes --------------------------------------------------------------------------------

    def deciding_cores(self) -> dict[Any, CoreLike]:
        """A core a label, or with two labels that of the larger."""
        model, labels = self._fitted_model(), self.classes_.tolist()
        core = model.core_as(OneAgainstRest)
        codes = model.labels.codes
        return {label: core.of(codes.get(label)) for label in (labels if len(labels) > 2 else labels[-1:])}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags

    @property
    def estimators_(self) -> dict[Any, Learner]:
        """The learner of each label met against the rest, as it is now."""
        model = self._known("estimators_")
        cores = model.core_as(OneAgainstRest).classes
        labels: Classes = model.labels
        return {
            label: seen_through(self._plain(), model, core, SIGNS)
            for label, core in zip(labels.met, cores, strict=True)
        }

    @property
    def classes_(self) -> NDArray[Any]:
        """(n_classes,) the labels, sorted."""
        known: NDArray[Any] = self._known("classes_").labels.known
        if len(known) == 1:
            try:
                return label_codes.encode(known, 1, None)[1].classes
            except ValueError:  # text: it does not tell the other
                return known
        return known

    @property
    def task_updates_(self) -> IntArray:
        """(n_tasks,) updates of each task's own models: of the one that answers, or summed over the classes."""
        model = self._known("task_updates_")
        core = model.core_as(OneAgainstRest)
        labels, codes = self.classes_.tolist(), model.labels.codes
        cores = [core.of(codes.get(labels[-1]))] if len(labels) <= 2 else core.classes
        return np.asarray(sum(each.updates(len(model.tasks)) for each in cores))
