"""Peers that learn from a table: trained anew at every twentieth of the stream on all rows so far, for the next one.

Where a training fails, the answer is the mean of the rows so far, or the base rate.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import boosting
from benchmarks.boosting import base_rates, means
from benchmarks.peers.by_row import crossed
from benchmarks.peers.panels import Panel
from benchmarks.peers.stored import Peer

Rows = Any  # numbers of rows
Predict = Callable[[Rows], Any]
_FEW_LEAVES = {"num_leaves": 15, "learning_rate": 0.05, "num_iterations": 100}
_LIGHTGBM: dict[str, dict[str, Any]] = {
    "default": {},
    "7 leaves, rate 0.05, 60 trees": {"num_leaves": 7, "learning_rate": 0.05, "num_iterations": 60},
    "7 leaves, rate 0.1, 60 trees": {"num_leaves": 7, "learning_rate": 0.1, "num_iterations": 60},
    "15 leaves, rate 0.05, 100 trees": _FEW_LEAVES,
    "15 leaves, rate 0.05, 100 trees, cat_smooth 30, cat_l2 10": _FEW_LEAVES | {"cat_smooth": 30, "cat_l2": 10},
}
_MEDIAN = {"15 leaves, rate 0.05, 100 trees, L1": _FEW_LEAVES | {"objective": "l1"}}


def easy_adapt() -> Peer:
    """Daumé, Frustratingly easy domain adaptation, ACL 2007."""
    settings = {f"C {C}, own {own}": (C, own) for C in (0.1, 1.0) for own in (0.3, 1.0)}
    return Peer("EasyAdapt", "scikit-learn", settings, _easy_adapt)


def others(*, classification: bool) -> list[Peer]:
    """From cheap to dear."""
    lightgbm = _LIGHTGBM if classification else _LIGHTGBM | _MEDIAN
    nearest = {f"k {k}, task {apart}": (k, apart) for k in (15, 50) for apart in (0.5, 2.0)}
    mixed = [] if classification else [Peer("MixedLM", "statsmodels", {"random intercept": None}, _mixed_lm)]
    return [
        Peer("k-NN", "scikit-learn", nearest, _nearest),
        Peer("LightGBM", "lightgbm", lightgbm, _lightgbm),
        *mixed,
        Peer("GPBoost", "gpboost", {"linear mixed model": _gp_linear, "trees, random intercept": _gp_trees}, _gpboost),
    ]


def _answers(panel: Panel, train: Callable[[int], Predict]) -> Any:
    """(n,) `train` gets how many rows it may see, and gives what answers rows by their numbers."""
    positive = panel.y > 0
    before = base_rates(positive) if panel.classification else means(panel.y)

    def train_or_mean(seen: Any, _: Any) -> Predict:
        n_rows = len(seen)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predict = train(n_rows)
                predict(np.arange(n_rows)[-1:])
        except Exception as error:  # each package has errors of its own
            print(f"{panel.name}, {n_rows} rows: {error!r}", file=sys.stderr)
            return lambda rows: np.full(len(rows), before[n_rows])
        return predict

    return boosting.retrained(np.arange(len(panel.y)), panel.y, train_or_mean, before)


def _easy_adapt(panel: Panel, setting: tuple[float, float]) -> Any:
    """Ridge or logistic regression of the columns and `own` times the same in a block of the task."""
    from sklearn.linear_model import LogisticRegression, Ridge

    C, own = setting
    X = crossed(panel.X, panel.task, own)

    def train(n_rows: int) -> Predict:
        model = LogisticRegression(C=C, max_iter=300) if panel.classification else Ridge(alpha=1.0 / C)
        model.fit(X[:n_rows], panel.y[:n_rows])
        answer = model.decision_function if panel.classification else model.predict
        return lambda rows: answer(X[rows])

    return _answers(panel, train)


def _nearest(panel: Panel, setting: tuple[int, float]) -> Any:
    """The mean of the k nearest rows; another task is so far apart. Labels: with one row of either label added."""
    from sklearn.metrics import pairwise_distances

    (k, apart), X = setting, panel.X.toarray()

    def train(n_rows: int) -> Predict:
        def predict(rows: Any) -> Any:
            far = pairwise_distances(X[rows], X[:n_rows], metric="sqeuclidean")
            far += apart**2 * (panel.task[rows][:, None] != panel.task[:n_rows])
            near = min(k, n_rows)
            found = panel.y[np.argpartition(far, near - 1, axis=1)[:, :near]]
            if not panel.classification:
                return found.mean(axis=1)
            positive = (found > 0).sum(axis=1)
            return np.log(positive + 1.0) - np.log(near - positive + 1.0)

        return predict

    return _answers(panel, train)


def _lightgbm(panel: Panel, settings: dict[str, Any]) -> Any:
    """On the table, the task among its categories."""
    import lightgbm

    objective = "binary" if panel.classification else "regression"
    y = (panel.y > 0).astype(np.float64) if panel.classification else panel.y

    def train(n_rows: int) -> Predict:
        rows = lightgbm.Dataset(panel.table[:n_rows], y[:n_rows], categorical_feature=panel.categories)
        model = lightgbm.train({"objective": objective, "verbosity": -1, "num_threads": 1, **settings}, rows)
        return lambda rows: model.predict(panel.table[rows], raw_score=True)

    return _answers(panel, train)


def _mixed_lm(panel: Panel, _: None) -> Any:
    """statsmodels' linear mixed model; a new task has the mean intercept."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    X = panel.X.toarray()

    def train(n_rows: int) -> Predict:
        columns = _independent(X[:n_rows])
        found = MixedLM(panel.y[:n_rows], X[:n_rows][:, columns], groups=panel.task[:n_rows]).fit()
        own = np.zeros(int(panel.task.max()) + 1)
        for task, effect in found.random_effects.items():
            own[task] = float(np.asarray(effect).ravel()[0])
        return lambda rows: X[rows][:, columns] @ found.fe_params + own[panel.task[rows]]

    return _answers(panel, train)


def _independent(X: Any) -> Any:
    """Columns of full rank, the constant among them if there is one: those of largest norm in turn."""
    from scipy.linalg import qr

    _, R, order = qr(X, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return np.sort(order[: (size > 1e-8 * size[0]).sum()])


def _gpboost(panel: Panel, train: Callable[[Panel, int], Predict]) -> Any:
    """A random intercept of the task beside linear effects, or beside boosted trees."""
    return _answers(panel, partial(train, panel))


def _gp_model(panel: Panel, n_rows: int) -> Any:
    import gpboost

    likelihood = "bernoulli_logit" if panel.classification else "gaussian"
    return gpboost.GPModel(group_data=panel.task[:n_rows], likelihood=likelihood, num_parallel_threads=1)


def _gp_targets(panel: Panel, n_rows: int) -> Any:
    return (panel.y[:n_rows] > 0).astype(np.float64) if panel.classification else panel.y[:n_rows]


def _gp_linear(panel: Panel, n_rows: int) -> Predict:
    X = panel.X.toarray()
    columns = _independent(X[:n_rows])
    model = _gp_model(panel, n_rows)
    model.fit(y=_gp_targets(panel, n_rows), X=X[:n_rows][:, columns])

    def predict(rows: Any) -> Any:
        found = model.predict(
            X_pred=X[rows][:, columns], group_data_pred=panel.task[rows], predict_response=panel.classification
        )["mu"]
        return _logit(found) if panel.classification else found

    return predict


def _gp_trees(panel: Panel, n_rows: int) -> Predict:
    import gpboost

    columns = [*range(panel.table.shape[1] - 1)]  # the task is the random intercept alone
    rows = gpboost.Dataset(
        panel.table[:n_rows, columns],
        _gp_targets(panel, n_rows),
        categorical_feature=[column for column in panel.categories if column in columns],
    )
    settings = {"num_leaves": 15, "learning_rate": 0.05, "verbose": -1, "num_threads": 1}
    model = gpboost.train(settings, rows, num_boost_round=100, gp_model=_gp_model(panel, n_rows))

    def predict(rows: Any) -> Any:
        found = model.predict(
            data=panel.table[rows][:, columns], group_data_pred=panel.task[rows], pred_latent=not panel.classification
        )
        if panel.classification:
            return _logit(found["response_mean"])
        return found["fixed_effect"] + found["random_effect_mean"]

    return predict


def _logit(p: Any) -> Any:
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return np.log(p) - np.log1p(-p)
