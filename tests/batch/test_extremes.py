"""Every batch learner at the ends of its hyper-parameters, on data that lose rank, scale or a class.

Each ends in finite weights, answers and objectives. Where float64 itself ends (settings of 1e-300 and 1e300, features
of 1e100), one ValueError may say so instead. A setting, or a kind of data, is one line.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from tests.batch.cases import BATCH, values
from tests.twins import sparse_mtl as twin

from shoal import (
    MTFL,
    SHAMO,
    SMTL,
    IndependentTasks,
    PooledTasks,
    RegMTL,
    RegMTLRegressor,
    SMTLRegressor,
    SparseMTL,
    SparseMTLRegressor,
    TraceNorm,
)
from shoal.batch.base import BatchLearner

RNG = np.random.default_rng(0)
N = 24
X, TASK, WIDE = RNG.normal(size=(N, 3)), np.arange(N) % 3, RNG.normal(size=(N, 40))
REAL = X @ [1.0, -1.0, 0.5] + 0.4 * RNG.normal(size=N)
LABELS = np.where(REAL > 0, 1.0, -1.0)
TINY, HUGE = 1e-300, 1e300


class Data(NamedTuple):
    """Rows with labels and real targets; those without one of the two are not for all learners."""

    X: np.ndarray = X
    task: np.ndarray = TASK
    labels: np.ndarray | None = LABELS
    real: np.ndarray | None = REAL


DATA = {
    "plain": Data(),
    "rows equal": Data(np.ones((N, 3))),
    "rows twice": Data(np.repeat(X[:12], 2, axis=0)),
    "rows twice with both labels": Data(np.repeat(X[:12], 2, axis=0), labels=np.tile([1.0, -1.0], 12), real=None),
    "rank 1": Data(np.outer(X[:, 0], [1.0, 2.0, -1.0])),
    "a constant column": Data(np.column_stack([X, np.full(N, 1e6)])),
    "zeros": Data(np.zeros((N, 3))),
    "a column of 1e8": Data(X * [1e8, 1.0, 1.0]),
    "features of 1e100": Data(X * 1e100),
    "features of 1e150": Data(X * 1e150),
    "features of 1e-100": Data(X * 1e-100),
    "features of 1e-160": Data(X * 1e-160),
    "a task of one row": Data(task=np.where(np.arange(N) == 5, 3, TASK)),
    "a row a task": Data(task=np.arange(N)),
    "one task": Data(task=np.zeros(N, int)),
    "one feature": Data(X[:, :1]),
    "one row": Data(X[:1], TASK[:1], LABELS[:1], REAL[:1]),
    "more features than rows": Data(WIDE),
    "tasks of one class": Data(labels=np.where(TASK > 0, 1.0, -1.0), real=None),
    "one class": Data(labels=np.ones(N), real=None),
    "the other class": Data(labels=-np.ones(N), real=None),
    "targets of 1": Data(labels=None, real=np.ones(N)),
    "targets of 0": Data(labels=None, real=np.zeros(N)),
    "targets of 1e12": Data(labels=None, real=REAL * 1e12),
    "targets about 1e12": Data(labels=None, real=REAL + 1e12),
    "targets of 1e-150": Data(labels=None, real=REAL * 1e-150),
}
BEYOND_FLOATS = {"features of 1e100", "features of 1e150", "features of 1e-160"}

REGULARISED: list[dict[str, Any]] = [{}, {"mu": TINY}, {"mu": 1e-12}, {"mu": HUGE}]
SMOOTHED = [
    *REGULARISED, {"alpha": 0.0}, {"alpha": 1.0}, {"lam": TINY}, {"lam": HUGE}, {"tol": TINY, "max_iter": 5},
    {"tol": HUGE, "max_iter": 1}, {"attention": "threshold"}, {"attention": "threshold", "lam": TINY, "alpha": 0.0},
    {"attention": "threshold", "lam": HUGE},
]  # fmt: skip
PATHS: list[dict[str, Any]] = [{"max_iter": 100}, {"tol": TINY, "max_iter": 20}, {"tol": HUGE}, {"max_iter": 1}]
SMOOTH_LOSSES = ("logistic", "squared_hinge", "squared")
MACHINES: list[dict[str, Any]] = [
    {}, {"mu": TINY}, {"mu": 1e-9}, {"mu": HUGE}, {"C": TINY}, {"C": 1e9}, {"C": HUGE}, {"gamma": TINY},
    {"gamma": HUGE}, {"tol": TINY}, {"tol": HUGE}, {"max_iter": 1},
]  # fmt: skip
KERNELS = ("linear", "rbf")
FEW = {"n_common": 6, "n_task": 2}
SPARSE: list[dict[str, Any]] = [
    {"tol": 0.0, "n_common": 10**6, "n_task": 10**6, "n_candidates": 10**6},
    {"tol": 0.0, "inner_tol": 0.0, "kernel": "linear", "gamma": 0.3, "lam": 0.7, "n_common": 20, "n_task": 12},
    {"inner_tol": 0.0, "kernel": twin.squared},
    {"tol": 0.999, "inner_tol": 0.999},
    {"n_common": 1, "n_task": 1, "n_candidates": 1},
    {"gamma": TINY, "lam": TINY, "kernel": "linear", "tol": 0.0} | FEW,
    {"gamma": 1e-12, "lam": 1e-12, "inner_tol": 0.0} | FEW,
    {"gamma": 1e-9, "lam": 1e9, "kernel": "linear", "inner_tol": 0.0} | FEW,
    {"gamma": TINY, "lam": HUGE},
    {"gamma": HUGE, "lam": HUGE},
    {"sigma": 1e-150},
    {"sigma": 1e150},
    {"sigma": 1e6, "inner_tol": 0.0, "tol": 0.0} | FEW,
    {"sharing": "common", "kernel": "linear", "inner_tol": 0.0, "gamma": 1e-6},
    {"sharing": "task", "kernel": "linear", "inner_tol": 0.0, "lam": 1e-6, "n_task": 24},
]
SETTINGS: dict[type[BatchLearner], list[dict[str, Any]]] = {
    IndependentTasks: [*REGULARISED, {"estimator": Ridge(solver="svd")}, {"estimator": LogisticRegression()}],
    PooledTasks: [*REGULARISED, {"estimator": Ridge(solver="svd")}, {"estimator": LogisticRegression()}],
    SMTL: SMOOTHED,
    SMTLRegressor: SMOOTHED,
    SHAMO: [
        one | {"n_init": 2} for one in [*REGULARISED, {"n_hypotheses": 1}, {"n_hypotheses": 1000}, {"max_iter": 1}]
    ],
    MTFL: [
        *(one | {"loss": loss, "penalty": penalty}
          for one in [*PATHS, *({"gamma": gamma, "max_iter": 20} for gamma in (TINY, 1e-9, HUGE))]
          for loss in SMOOTH_LOSSES for penalty in ("squared-nuclear", "l21")),
        *({"gamma": gamma, "loss": loss, "solver": "alternating", "max_iter": 1, "tol": 1e-3}
          for gamma in (1e-9, 1.0, 1e9) for loss in SMOOTH_LOSSES),
    ],
    TraceNorm: [
        one | {"loss": loss}
        for one in [*PATHS, *({"rho": rho, "max_iter": 20} for rho in (TINY, 1e-9, HUGE))] for loss in SMOOTH_LOSSES
    ],
    RegMTL: [
        one | {"loss": loss, "kernel": kernel}
        for one, loss, kernel in product(MACHINES, ("hinge", "squared_hinge"), KERNELS)
    ],
    RegMTLRegressor: [
        one | {"loss": loss, "kernel": kernel}
        for one, loss, kernel in product(
            [*MACHINES, *({"epsilon": epsilon} for epsilon in (0.0, TINY, HUGE))],
            ("epsilon_insensitive", "squared"), KERNELS)
    ],
    SparseMTL: SPARSE,
    SparseMTLRegressor: SPARSE,
}  # fmt: skip
CASES = [(kind, options) for kind, several in SETTINGS.items() for options in several]


def test_every_learner_is_here() -> None:
    assert {type(make()) for make in BATCH.values()} == set(SETTINGS)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=[f"{kind.__name__}-{i}" for i, (kind, _) in enumerate(CASES)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ends_of_hyper_parameters(kind: type[BatchLearner], options: dict[str, Any], monkeypatch: Any) -> None:
    monkeypatch.setattr("shoal.batch.reg_mtl.MOST_STEPS", 1000)  # libsvm never ends on a column of 1e8
    faults = {}
    for name, data in DATA.items():
        learner = kind(**options)
        y = data.labels if learner.classifies() else data.real
        if y is not None and (fault := fault_of(learner, data, y, name)):
            faults[name] = fault
    assert not faults, options


def fault_of(learner: BatchLearner, data: Data, y: np.ndarray, name: str) -> str:
    """What is wrong with a fit, or ""."""
    if "random_state" in (settings := learner.get_params()):
        learner.set_params(random_state=0)
    beyond = name in BEYOND_FLOATS or TINY in settings.values() or HUGE in settings.values()
    try:
        learner.fit(data.X, y, data.task)
    except ValueError as error:
        told = "cannot be fitted: numbers became" in str(error) or "input data may contain large values" in str(error)
        return "" if beyond and told else f"refused: {error}"
    learned = {attribute: getattr(learner, attribute) for attribute in learner._learned}
    learned["own"] = values(learner, data.X, data.task)
    learned["unseen"] = values(learner, data.X, ["new"] * len(y))
    infinite = [k for k, v in learned.items() if isinstance(v, np.ndarray) and not np.isfinite(v).all()]
    if infinite:
        return f"not finite: {infinite}"
    objective = learned.get("objective_", np.zeros(1))
    if never_rises(learner) and (np.diff(objective) > 1e-9 * np.abs(objective[:-1])).any():
        return f"the objective rises: {objective}"
    return "the objective is below 0" if not isinstance(learner, SMTL | SMTLRegressor) and objective.min() < 0 else ""


def never_rises(learner: BatchLearner) -> bool:
    """Does its docstring say so?"""
    settings = learner.get_params()
    return (
        isinstance(learner, SparseMTL | SparseMTLRegressor | TraceNorm | RegMTL)
        or settings.get("solver") == "fista"
        # Without regularisation its machines do not converge on rows of low rank, which a warning tells.
        or (settings.get("attention") == "exponential" and settings["mu"] > TINY)
    )


@pytest.mark.parametrize("kernel", ["linear", twin.squared])
@pytest.mark.parametrize("make", [SparseMTL, SparseMTLRegressor])
def test_sparse_sets_of_a_kernel_of_low_rank_reach_the_minimum(make: Any, kernel: Any) -> None:
    """With inner_tol=0 the estimation went on until the rounding error of a vector that the set spans was all."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, task = rng.normal(size=(66, 3)), np.arange(66) % 3
        y = X @ [1.0, -1.0, 0.5] + 0.4 * rng.normal(size=66)
        y = np.where(y > 0, 1.0, -1.0) if make is SparseMTL else y
        learner = make(gamma=0.3, lam=0.7, kernel=kernel, n_common=20, n_task=12, tol=0.0, inner_tol=0.0)
        learner.set_params(random_state=seed).fit(X, y, task)
        rank = 3 if kernel == "linear" else 10  # of (a.b/4 + 1)²: 1, three features, six products
        assert learner.n_basis_common_ <= rank
        assert max(len(own) for own in learner.support_task_.values()) <= rank
        own = {t: s.tolist() for t, s in learner.support_task_.items()}
        plain = twin.SparseMTL(X, y, task, 0.3, 0.7, 1.0, make is SparseMTL, learner.support_common_.tolist(), own,
                               twin.linear if kernel == "linear" else kernel)  # fmt: skip
        assert learner.objective_[-1] == pytest.approx(plain.objective(plain.minimum()), rel=1e-6)


def test_answers_beyond_floats_are_refused() -> None:
    learner = PooledTasks(estimator=LinearRegression()).fit(X * 1e-100, REAL * 1e100)
    assert np.isfinite(learner.predict(X * 1e-100)).all()
    with pytest.raises(ValueError, match="Row 0: the answer is beyond float64; scale the features as for `fit`"):
        learner.predict(X * 1e150)
