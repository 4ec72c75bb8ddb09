"""Metrics of scikit-learn over the rows of a stream: a scorer, a function of `sklearn.metrics`, or the name of one.

A learner's answers stand in for the features, and an estimator that only reads them off stands in for the model: so
every scorer takes them as it takes a model, and the numbers are scikit-learn's. Rows are kept, 24 bytes each. A task
has a value from 100 rows on, because a call takes longer than a task of few rows deserves.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.metric import LEAST_ROWS, Values, stacked
from shoal.evaluation.metrics.multiclass import SMALLEST, UNKNOWN
from shoal.learner import probabilities

Scorer = Callable[[Any, Any, Any], float]  # of an estimator, X and y

SHORT_OF_LABELS, SHORT_OF_NUMBERS = ("balanced_error", "matthews"), ("mape", "pinball", "poisson_deviance")
SHORT = SHORT_OF_LABELS + SHORT_OF_NUMBERS
OF_PROBABILITIES = ("log_loss", "d2_log_loss_score")  # though their argument is called y_pred
RESPONSES = {"y_proba": "predict_proba", "y_score": ("decision_function", "predict_proba")}  # by an argument's name
TRUTH = ("y_true", "y1")
LEAST = LEAST_ROWS["auc"]


class _Numbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Reads a prediction off."""

    def fit(self) -> None: ...

    def predict(self, answers: FloatArray) -> FloatArray:
        return answers


class _Margins(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Reads a margin of two labels, 0 and 1, off."""

    classes_ = np.arange(2)

    def fit(self) -> None: ...

    def predict(self, answers: FloatArray) -> IntArray:
        return (answers >= 0.0).astype(np.int64)

    def decision_function(self, answers: FloatArray) -> FloatArray:
        return answers


class _Logits(_Margins):
    """A margin that is the log-odds of label 1."""

    def predict_proba(self, answers: FloatArray) -> FloatArray:
        return probabilities(answers)


class _Classes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Reads the number of a class off, and the probability of each; see `multiclass.ClassIndex.judged`."""

    def __init__(self, n_classes: int = 3) -> None:
        self.classes_ = np.arange(n_classes)

    def fit(self) -> None: ...

    def predict(self, answers: FloatArray) -> IntArray:
        return answers[:, 0].astype(np.int64)

    def predict_proba(self, answers: FloatArray) -> FloatArray:
        chances = np.zeros((len(answers), len(self.classes_)))
        chances[:, : answers.shape[1] - 2] = answers[:, 2:]
        chances[chances.sum(axis=1) == 0.0] = 1.0  # before any class was known
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))


class FromRows:
    """Scorers over kept rows.

    Parameters
    ----------
    scorers : dict of name -> scorer
    kind : "binary", "multiclass" or "regression"
    has_probabilities : bool
    """

    def __init__(self, scorers: Mapping[str, Scorer], kind: str, has_probabilities: bool) -> None:
        self.scorers, self.kind, self.has_probabilities = scorers, kind, has_probabilities
        self._pieces: list[tuple[IntArray, FloatArray, FloatArray]] = []
        self._why: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scorers."""
        return tuple(self.scorers)

    def update(self, code: IntArray, truth: FloatArray, score: FloatArray, n_tasks: int) -> None:
        """Keep the rows."""
        self._pieces.append((code, truth, score))

    def absorb(self, later: FromRows, n_tasks: int) -> None:
        """Keep the rows of `later`."""
        self._pieces += later._pieces

    def values(self, n_tasks: int) -> dict[str, Values]:
        """The values so far; undefined where scikit-learn refuses the rows or says so."""
        if not self._pieces:
            return {name: Values(np.nan, np.full(n_tasks, np.nan)) for name in self.names}
        code, truth, score = (stacked(column) for column in zip(*self._pieces, strict=True))
        self._pieces = [(code, truth, score)]
        truth, model = self._read(truth, score)
        order = np.argsort(code, kind="stable")
        rows = np.bincount(code, minlength=n_tasks)
        ends = np.cumsum(rows)
        large = [(k, order[ends[k] - rows[k] : ends[k]]) for k in np.flatnonzero(rows >= LEAST).tolist()]
        found = {}
        for name, scorer in self.scorers.items():
            per_task = np.full(n_tasks, np.nan)
            for k, of_task in large:
                per_task[k], _ = self._call(scorer, model, score[of_task], truth[of_task])
            overall, self._why[name] = self._call(scorer, model, score, truth)
            found[name] = Values(overall, per_task)
        return found

    def _read(self, truth: FloatArray, score: FloatArray) -> tuple[Any, Any]:
        """The truth as scikit-learn has it, and the model that reads answers off."""
        if self.kind == "regression":
            return truth, _Numbers()
        if self.kind == "binary":
            return (truth > 0).astype(np.int64), _Logits() if self.has_probabilities else _Margins()
        n_classes = 1 + int(max(truth.max(), score[:, 0].max()))
        unknown = score[:, 0] == UNKNOWN
        score[unknown, 0] = (truth[unknown] + 1) % n_classes  # no answer is a wrong answer
        return truth.astype(np.int64), _Classes(n_classes)

    def _call(self, scorer: Scorer, model: Any, score: FloatArray, truth: Any) -> tuple[float, str]:
        """The value, NaN where it is undefined, and why it is."""
        from sklearn.exceptions import UndefinedMetricWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.kind == "binary":  # of several classes, one that is never predicted counts as 0
                warnings.simplefilter("error", UndefinedMetricWarning)
                warnings.filterwarnings("error", "No positive class")
            try:
                return float(scorer(model, score, truth)), ""
            except (ValueError, TypeError, UserWarning) as error:
                return float("nan"), " ".join(str(error).split())

    def notes(self) -> list[str]:
        """Why a value is undefined."""
        return [f"{name} is undefined: {why}" for name, why in self._why.items() if why]


def scorer_of(metric: Any, kind: str, *, has_probabilities: bool) -> tuple[str, Scorer] | None:
    """A name and a scorer; None if it needs probabilities and there are none.

    Parameters
    ----------
    metric : str or callable
        `balanced_error`, `matthews`, `mape`, `pinball`, `pinball:0.9`, `poisson_deviance`; the name of a scorer
        (`sklearn.metrics.get_scorer_names()`) or a function (`cohen_kappa_score`); or a scorer or a function itself.

    Raises
    ------
    ValueError
        If there is no such metric, or it is not one of this kind of target.
    """
    name, scorer = _named(metric) if isinstance(metric, str) else (_name(metric), _as_scorer(metric))
    rows = FromRows({name: scorer}, kind, has_probabilities=True)
    answers, truth = _few_rows(kind)
    truth, model = rows._read(truth, answers)
    other = _kind(name, scorer) not in (None, "numbers" if kind == "regression" else "labels")
    why = f"it is one of {_kind(name, scorer)}" if other else rows._call(scorer, model, answers, truth)[1]
    if why:
        raise ValueError(f"metric {name!r} is not defined for {kind} targets: {why}")
    if kind == "binary" and not has_probabilities:
        try:
            scorer(_Margins(), answers, truth)
        except AttributeError:
            return None
    return name, scorer


def _kind(name: str, scorer: Scorer) -> str | None:
    """The kind of its targets, "numbers" or "labels"; None if that is not known."""
    short, module = name.partition(":")[0], getattr(getattr(scorer, "_score_func", None), "__module__", "")
    if short in SHORT_OF_NUMBERS or module == "sklearn.metrics._regression":
        return "numbers"
    return "labels" if short in SHORT_OF_LABELS or module.startswith("sklearn.metrics.") else None


def _few_rows(kind: str) -> tuple[FloatArray, FloatArray]:
    """Answers and truth, as metrics see them, on which the metrics of the kind are defined."""
    if kind == "regression":
        return np.array([1.5, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    if kind == "binary":
        return np.array([-1.0, 1.0, 0.5, -0.5]), np.array([-1.0, 1.0, -1.0, 1.0])
    guess = np.array([0.0, 1.0, 2.0, 1.0, 2.0, 0.0])
    return np.column_stack([guess, np.full((6, 4), 1.0 / 3.0)]), np.arange(6.0) % 3.0


def _named(name: str) -> tuple[str, Scorer]:
    from sklearn import metrics

    if name in metrics.get_scorer_names():
        return name, metrics.get_scorer(name)
    short, _, level = name.partition(":")
    if short in SHORT:
        return name, _short(short, float(level or 0.5))
    if name in metrics.__all__ and _first_argument(getattr(metrics, name)) in TRUTH:
        return name, _as_scorer(getattr(metrics, name))
    raise KeyError(name)


def _short(name: str, level: float) -> Scorer:
    from sklearn import metrics

    functions: dict[str, Callable[[Any, Any], float]] = {
        "balanced_error": lambda truth, guess: 1.0 - metrics.balanced_accuracy_score(truth, guess),
        "matthews": metrics.matthews_corrcoef,
        "mape": metrics.mean_absolute_percentage_error,
        "pinball": lambda truth, guess: metrics.mean_pinball_loss(truth, guess, alpha=level),
        "poisson_deviance": lambda truth, guess: metrics.mean_poisson_deviance(truth, np.maximum(guess, SMALLEST)),
    }
    scorer: Scorer = metrics.make_scorer(functions[name])
    return scorer


def _first_argument(metric: Any) -> str:
    return next(iter(inspect.signature(metric).parameters), "")


def _name(metric: Any) -> str:
    function = getattr(metric, "_score_func", metric)  # of a scorer
    return str(getattr(function, "__name__", type(metric).__name__))


def _as_scorer(metric: Any) -> Scorer:
    """A function of truth and prediction as a scorer; a scorer as it is."""
    from sklearn.metrics import make_scorer

    if _first_argument(metric) not in TRUTH:
        scorer: Scorer = metric
        return scorer
    of = "predict_proba" if _name(metric) in OF_PROBABILITIES else "predict"
    takes = [RESPONSES[name] for name in inspect.signature(metric).parameters if name in RESPONSES]
    return make_scorer(metric, response_method=takes[0] if takes else of)  # type: ignore[no-any-return]


def is_maker(metric: Any) -> bool:
    """Whether it makes a metric when it is called, rather than being one."""
    takes = inspect.signature(metric).parameters.values()
    return not any(
        one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in takes
    )
