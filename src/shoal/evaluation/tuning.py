"""Choosing hyper-parameters: every combination of a grid, or random ones, each judged on rows it has not learned.

`GRIDS` are the values that are tried where the user names none: those of the papers. Rows are judged in order of time,
each before it is learned, or in two ways of the papers: progressive errors on one shuffle of the stream that is used
for nothing else (Yang, Zhao, Gao, 2017), or k folds within every task (Murugesan and others, 2016); or by any `cv`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.metric import mean_over_tasks
from shoal.evaluation.metrics.registry import choose
from shoal.evaluation.result import higher_is_better, label
from shoal.extras import named_extra
from shoal.html_tables import html_table
from shoal.learner import weights_for
from shoal.model.labels import encode, real_targets
from shoal.model.sample_weight import read_weights
from shoal.model.table import Table, read_table
from shoal.model.tasks import TaskIndex
from shoal.parallel.jobs import results
from shoal.progress import shown

if TYPE_CHECKING:
    import polars as pl

C: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
B: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
RATES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TENTHS: Final = tuple(round(0.1 * i, 1) for i in range(11))
DECADES: Final = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
SMALL: Final = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SMOOTHED: Final = {"alpha": (0.1, 0.3, 0.5, 0.7, 0.9), "lam": (0.1, 1.0, 10.0), "mu": SMALL}
KERNEL_SVM: Final = {"mu": DECADES, "C": DECADES}
SPARSE: Final = {"gamma": DECADES[1:], "lam": DECADES[1:], "sigma": (0.3, 1.0, 3.0, 10.0)}

GRIDS: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    "CollaborativeCW": {"pull": TENTHS, "confidence": (0.6, 0.7, 0.8, 0.9, 0.95)},
    "CollaborativePA": {"pull": TENTHS, "C": C},
    "IndependentTasks": {"mu": SMALL},
    "KernelPerceptron": {"relation": B, "gamma": RATES},
    "LocalGlobalGaussian": {"lam": (0.1, 0.3, 1.0, 3.0, 10.0), "eps": (0.1, 0.3, 1.0, 3.0, 10.0)},
    "MTFL": {"gamma": DECADES},
    "MultitaskPerceptron": {"relation": B, "loss": ("perceptron", "logistic"), "eta": RATES},
    "MultitaskRegressor": {"relation": B, "eta": (0.0001, 0.001, 0.003, *RATES[:4])},
    "OMTRL": {"divergence": ("logdet", "batch"), "eta_A": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)},
    "OSMTL": {"alpha": TENTHS, "C": (0.01, 0.1, 1.0), "lam": (0.1, 1.0, 10.0), "trigger": ("mistake", "margin")},
    "OSMTLRegressor": {
        "alpha": TENTHS,
        "C": (0.003, 0.01, 0.03, 0.1, 0.3),
        "lam": (0.1, 1.0, 10.0),
        "epsilon": (0.01, 0.1, 1.0),
    },
    "PNormPerceptron": {"relation": B, "p": (2.0, 3.0, 4.0, "auto")},
    "PassiveAggressive": {"relation": ("independent", "pooled"), "C": C},
    "PassiveAggressiveRegressor": {"relation": ("independent", "pooled"), "C": C, "epsilon": (0.01, 0.1, 1.0)},
    "PooledTasks": {"mu": SMALL},
    "ROMCO": {"eta": RATES[2:], "rho": RATES[2:], "lambda1": (1e-5, 1e-4, 1e-3), "lambda2": (1e-5, 1e-4, 1e-3)},
    "RegMTL": KERNEL_SVM,
    "RegMTLRegressor": KERNEL_SVM,
    "SHAMO": {"n_hypotheses": (1, 2, 3, 5), "mu": SMALL},
    "SMTL": SMOOTHED,
    "SMTLRegressor": SMOOTHED,
    "SchattenPerceptron": {"p": (1, 1.5, 2, 3, 4, 5)},
    "SecondOrderPerceptron": {"relation": B, "a": (0.1, 1.0, 10.0)},
    "SharedLoss": {"norm": ("l2", "linf"), "C": C},
    "SparseMTL": SPARSE,
    "SparseMTLRegressor": SPARSE,
    "TraceNorm": {"rho": DECADES[:4]},
}


class Trial(NamedTuple):
    """One combination of hyper-parameters and how it did."""

    parameters: dict[str, Any]
    scores: tuple[float, ...]  # one a fold
    seconds: float
    error: str = ""  # why it could not be tried

    @property
    def score(self) -> float:
        """Mean over the folds; NaN if it could not be tried."""
        return float(np.mean(self.scores)) if self.scores else float("nan")


@dataclass(frozen=True)
class SearchResult:
    """The trials, best first; `str()` gives the table, `table` a polars data frame."""

    metric: str
    validation: str
    trials: list[Trial]
    best_learner: Any  # trained on all rows, in their order

    @property
    def best_params(self) -> dict[str, Any]:
        """Hyper-parameters of the best trial."""
        return self.trials[0].parameters

    @property
    def best_score(self) -> float:
        """Its score."""
        return self.trials[0].score

    @property
    def table(self) -> pl.DataFrame:
        """A row per trial, best first: hyper-parameters, mean score, its deviation over folds, seconds, failure."""
        with named_extra("table"):
            import polars as pl

        names = list(self.trials[0].parameters)
        return pl.DataFrame(
            {name: _column([trial.parameters[name] for trial in self.trials]) for name in names}
            | {
                self.metric: [trial.score for trial in self.trials],
                "deviation": [_deviation(trial.scores) for trial in self.trials],
                "seconds": [trial.seconds for trial in self.trials],
                "failure": [trial.error for trial in self.trials],
            },
            strict=False,
        )

    def __str__(self) -> str:
        titles, rows = self._table()
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        lines = ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in (titles, *rows)]
        return "\n".join([*lines, *self._failures()])

    def __repr__(self) -> str:
        best = f"{label(self.metric)} {self.best_score:.4f} with {self.best_params}"
        return f"SearchResult({len(self.trials)} trials, best {best})"

    def _repr_html_(self) -> str:
        return html_table(*self._table()) + "".join(f"<p>{escape(text)}</p>" for text in self._failures())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        titles = [*self.trials[0].parameters, label(self.metric), "deviation", "seconds"]
        return titles, [
            [*map(_shown, t.parameters.values()), f"{t.score:.4f}", f"{_deviation(t.scores):.4f}", f"{t.seconds:.2f}"]
            for t in self.trials
        ]

    def _failures(self) -> list[str]:
        failures = [t.error for t in self.trials if t.error]
        return [f"{len(failures)} not tried: {text}" for text in failures[:1]]


def search(
    learner: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    n_draws: int | None = None,
    validation: str = "order",
    cv: Any = None,
    n_folds: int = 5,
    metric: str | None = None,
    macro: bool = False,
    n_jobs: int | None = None,
    random_state: int | None = None,
    progress: bool = False,
    on_trial: Callable[[Trial], object] | None = None,
) -> SearchResult:
    """Try hyper-parameters of a learner, online or batch, and train the best on all rows.

    Parameters
    ----------
    learner : learner
        Stays as it is; copies are trained.
    X, y, task : as for `fit`
    parameters : dict of name -> sequence of values, optional
        All combinations are tried. Names as in `set_params`, so `estimator__gamma` works. With `n_draws` a value
        may also be a distribution, such as `scipy.stats.loguniform(1e-3, 1e3)`. By default the grid of `GRIDS`.
    sample_weight : (n,) array, optional
        How often each row counts in learning, as for `fit`; scores count each row once, as those of
        `progressive_validate` do.
    n_draws : int, optional
        Try this many random combinations instead.
    validation : {"order", "folds", "shuffle"}
        "order": an online learner answers the rows in their order, each before it learns it; a batch learner answers
        the next part after it was trained on all before, `n_folds` times (scikit-learn's `TimeSeriesSplit`).
        "folds": the rows of each task are dealt to `n_folds` folds; in turn one is predicted by a learner of the
        others, which learns them in order. "shuffle": the rows are shuffled once; an online learner answers each before
        it learns it (a learner of the simultaneous protocol gets one row of every task at a time), and a batch
        learner is judged on the first fold.
    cv : splitter of scikit-learn, int, or iterable of (learned, judged) rows, optional
        Instead of `validation`, as for scikit-learn's tools. The groups of the splitter are the tasks.
    n_folds : int >= 2
    metric : str, optional
        One of `shoal.evaluation.METRICS`; default "error", or "rmse" for regression.
    macro : bool
        The mean over tasks instead of the value over all rows; of the AUC, over tasks with 100 judged rows or more.
    n_jobs : int, optional
        Processes, by joblib; its backends (`joblib.parallel_config`, `shoal.cluster.jobs_on`) serve for clusters.
    random_state : int, optional
        Draws combinations, folds and the shuffle. All combinations see the same rows.
    progress : bool
        Show a bar on stderr, or in a notebook; needs rich, which `pip install "shoal[cli]"` brings.
    on_trial : function of a `Trial`
        Called after each.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If the input or an option is not as described, or no combination could be tried. One that the learner refuses
        is listed with its error.

    References
    ----------
    Yang, Zhao, Gao. Robust Online Multi-Task Learning with Correlative and Personalized Structures. TKDE 29, 2017:
    section 5 (held-out shuffle). Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS
    2016: section 4 (5 folds).

    Examples
    --------
    >>> from shoal import MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> from shoal.evaluation import search
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> grid = {"relation": [0.0, 1.0, 4.0, 16.0], "loss": ["perceptron", "logistic"]}
    >>> found = search(MultitaskPerceptron(), data.X, data.y, data.task, parameters=grid, random_state=0)
    >>> print(found.best_params, f"error {found.best_score:.3f}")
    {'loss': 'logistic', 'relation': 16.0} error 0.119
    """
    rows = _checked(learner, X, y, task, sample_weight)
    folds = _folds(learner, rows.code, validation, n_folds, random_state) if cv is None else _splits(cv, rows)
    scorer = _Scorer(rows.kind, metric, macro)
    combinations = list(_combinations(_grid(learner) if parameters is None else parameters, n_draws, random_state))
    if not combinations:
        raise ValueError("parameters leave nothing to try: expected at least one value for each name")
    done = results(_try, [(learner, rows, folds, scorer, chosen) for chosen in combinations], n_jobs)
    trials = []
    for trial in shown(done, len(combinations), "tries", when=progress):
        trials.append(trial)
        if on_trial is not None:
            on_trial(trial)
    sign = -1.0 if higher_is_better(scorer.metric) else 1.0
    trials.sort(key=lambda t: sign * t.score if np.isfinite(t.score) else np.inf)
    if not np.isfinite(trials[0].score):
        raise ValueError(f"no combination gave a score; the first: {trials[0].error or 'the metric is undefined'}")
    best = clone(learner).set_params(**trials[0].parameters).fit(X, y, task, **rows.weights())
    return SearchResult(scorer.metric, validation if cv is None else "cv", trials, best)


def _grid(learner: Any) -> Mapping[str, Sequence[Any]]:
    name = type(learner).__name__
    if name not in GRIDS or getattr(learner, "estimator", None) is not None:  # whose parameters are those to choose
        raise ValueError(
            f"parameters= is missing: {name} has no grid of its own, so name the values to try, such as "
            f"parameters={{'C': [0.1, 1.0]}}; its parameters are {', '.join(learner.get_params())}"
        )
    return GRIDS[name]


class _Rows(NamedTuple):
    """Checked rows."""

    X: Any
    y: FloatArray
    ids: Any  # (n,) task ids, or None
    code: IntArray  # (n,) their numbers
    kind: str
    weight: Any  # (n,) weights, or None

    def weights(self, chosen: Any = slice(None)) -> dict[str, Any]:
        """Weights of some rows as the argument of a learner; empty without weights, as not every learner takes them."""
        return {} if self.weight is None else {"sample_weight": self.weight[chosen]}


def _checked(learner: Any, X: Any, y: Any, task: Any, weight: Any) -> _Rows:
    table = read_table(X, learner)
    kind = "binary" if is_classifier(learner) else "regression"
    truth = encode(y, table.n_rows, None)[0] if kind == "binary" else real_targets(y, table.n_rows)
    tasks = TaskIndex()
    code, fresh = tasks.encode(task, table.n_rows)
    ids = None
    if task is not None:
        names = np.empty(len(fresh), object)
        names[:] = fresh
        ids = names[code]
    weights_for(learner, weight)
    weight = read_weights(weight, table.n_rows)
    return _Rows(_as_matrix(table), truth, ids, code, kind, weight if len(weight) else None)


def _as_matrix(table: Table) -> Any:
    """Validated rows as an (n, d) array or CSR matrix."""
    if table.width:
        return table.values.reshape(table.n_rows, table.width)
    return csr_matrix((table.values, table.indices, table.indptr), shape=(table.n_rows, table.n_features))


class _Fold(NamedTuple):
    """Rows to learn, in order, and rows to predict; none to learn: each is predicted before it is learned."""

    learned: IntArray
    judged: IntArray


def _folds(learner: Any, code: IntArray, validation: str, n_folds: int, random_state: int | None) -> list[_Fold]:
    if validation not in ("order", "folds", "shuffle"):
        raise ValueError(f"validation must be 'order', 'folds' or 'shuffle', got {validation!r}")
    if validation == "order" and hasattr(learner, "test_then_train"):
        return [_Fold(np.arange(0), np.arange(len(code)))]
    random = np.random.default_rng(random_state)
    shuffled = random.permutation(len(code))
    by_task = shuffled[np.argsort(code[shuffled], kind="stable")]
    if validation == "shuffle" and hasattr(learner, "test_then_train"):
        if getattr(learner, "simultaneous", False):
            shuffled = by_task[np.argsort(_turn(code[by_task]), kind="stable")]
        return [_Fold(shuffled[:0], shuffled)]
    if not 2 <= n_folds <= len(code):
        raise ValueError(f"n_folds must be at least 2 and at most the number of rows, {len(code)}, got {n_folds}")
    if validation == "order":
        from sklearn.model_selection import TimeSeriesSplit

        return [_Fold(*parts) for parts in TimeSeriesSplit(n_folds).split(code)]
    fold = np.empty(len(code), np.int64)
    fold[by_task] = np.arange(len(code)) % n_folds  # dealt task by task, so every task meets every fold
    first = [_Fold(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
    return first[:1] if validation == "shuffle" else first


def _splits(cv: Any, rows: _Rows) -> list[_Fold]:
    """The folds of a splitter, or of pairs of rows."""
    from sklearn.model_selection import check_cv

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        pairs = list(check_cv(cv, rows.y, classifier=rows.kind == "binary").split(rows.X, rows.y, rows.code))
    folds = [_Fold(np.asarray(learned), np.asarray(judged)) for learned, judged in pairs]
    if not folds or not all(len(fold.learned) and len(fold.judged) for fold in folds):
        raise ValueError(f"cv={cv!r} gives no rows to learn or to judge, expected some of both in each fold")
    return folds


def _turn(code: IntArray) -> IntArray:
    """k for the k-th row of its task; the rows stand task by task."""
    sizes = np.bincount(code)
    first: IntArray = np.cumsum(sizes) - sizes
    return np.arange(len(code)) - first[code]


def _combinations(parameters: Mapping[str, Any], n_draws: int | None, random_state: int | None) -> Iterator[Any]:
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if n_draws is None:
        for name, values in parameters.items():
            if hasattr(values, "rvs"):
                raise ValueError(f"the values of {name!r} are a distribution; say n_draws=, how many to draw")
        return iter(ParameterGrid(dict(parameters)))
    if not (isinstance(n_draws, int) and n_draws >= 1):
        raise ValueError(f"n_draws must be an integer >= 1 or None, got {n_draws!r}")
    finite = [] if any(hasattr(v, "rvs") for v in parameters.values()) else ParameterGrid(dict(parameters))
    n = min(n_draws, len(finite)) if finite else n_draws
    return iter(ParameterSampler(dict(parameters), n, random_state=random_state))


class _Scorer:
    """One number from answers."""

    def __init__(self, kind: str, metric: str | None, macro: bool) -> None:
        self.metric = metric or ("error" if kind == "binary" else "rmse")
        self.macro = macro
        choose([self.metric], kind)  # raises where it does not exist
        self.kind = kind

    def __call__(self, code: IntArray, truth: FloatArray, answers: FloatArray) -> float:
        [make], _ = choose([self.metric], self.kind)
        sums, n_tasks = make(), int(code.max()) + 1
        sums.update(code, truth, answers, n_tasks)
        values = sums.values(n_tasks)[self.metric]
        if not self.macro:
            return values.overall
        return mean_over_tasks(self.metric, values.per_task, np.bincount(code))


def _try(learner: Any, rows: _Rows, folds: list[_Fold], scorer: _Scorer, parameters: dict[str, Any]) -> Trial:
    start = time.perf_counter()
    scores = []
    try:
        for fold in folds:
            candidate = clone(learner).set_params(**parameters)
            answers = _answers(candidate, rows, fold)
            scores.append(scorer(rows.code[fold.judged], rows.y[fold.judged], answers))
    except ValueError as error:
        return Trial(parameters, (), time.perf_counter() - start, str(error))
    return Trial(parameters, tuple(scores), time.perf_counter() - start)


def _answers(learner: Any, rows: _Rows, fold: _Fold) -> FloatArray:
    X, y, ids, learned, judged = *rows[:3], *fold
    task, asked = (None, None) if ids is None else (ids[learned], ids[judged])
    if not len(learned):
        return np.asarray(learner.test_then_train(X[judged], y[judged], asked, **rows.weights(judged)), np.float64)
    learner.fit(X[learned], y[learned], task, **rows.weights(learned))
    decide = learner.decision_function if rows.kind == "binary" else learner.predict
    return np.asarray(decide(X[judged], asked), np.float64)


def _deviation(scores: tuple[float, ...]) -> float:
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan")


def _column(values: list[Any]) -> list[Any]:
    """The values as they are if they are of one kind, else as text."""
    kinds = {type(value) for value in values if value is not None}
    return values if kinds <= {int, float} or kinds in ({str}, {bool}) else list(map(str, values))


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
