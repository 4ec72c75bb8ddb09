"""Batch learners against their twins, or the conditions of their optimum, on rows that are rough.

Values and whole rows repeat, one column is constant, one is always missing, one is there in the last rows alone; there
are many more columns than rows; all labels are one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC
from tests.batch.test_proximal_gradient import LOSSES
from tests.batch.test_reg_mtl import multitask_kernel
from tests.batch.test_trace_norm import smooth
from tests.streams import Stream, assert_close, draw, roughened
from tests.twins import batch as twin
from tests.twins import sparse_mtl

import shoal

K = 4
EXACT, SOLVED = 1e-10, 1e-3  # closed forms; solvers that stop near the optimum, as on smooth rows


def rows_of(shape: str, *, regression: bool) -> Stream:
    """Some more rows than columns, fewer, or those of one label (of equal targets)."""
    size = {"n_rows": 48, "d": 203, "density": 0.6} if shape == "wide" else {"n_rows": 100, "d": 9}
    rows = roughened(draw(31, K=K, protocol="all", regression=regression, **size))
    return rows._replace(y=np.ones(len(rows.y))) if shape == "one label" else rows


def machine(rows: Stream, own: np.ndarray) -> np.ndarray:
    """The linear support vector machine of some rows."""
    return twin.weighted_svm(rows.X[own], rows.y[own], np.full(own.sum(), 1 / own.sum()), 0.5)


def independent(rows: Stream) -> None:
    learner = shoal.IndependentTasks(mu=0.5).fit(rows.X, rows.y, rows.task)
    assert_close(learner.coef_, [machine(rows, rows.task == k) for k in range(K)], SOLVED)


def pooled(rows: Stream) -> None:
    learner = shoal.PooledTasks(mu=0.5).fit(rows.X, rows.y, rows.task)
    assert_close(learner.coef_, [machine(rows, rows.task >= 0)] * K, SOLVED)


def shamo(rows: Stream) -> None:
    learner = shoal.SHAMO(n_hypotheses=2, mu=0.5, random_state=0).fit(rows.X, rows.y, rows.task)
    for hypothesis, chosen in enumerate(learner.hypotheses_):
        members = learner.assignment_[rows.task] == hypothesis
        assert_close(chosen, machine(rows, members), SOLVED)
    losses = [
        [twin.mean_hinge(rows.X[rows.task == k], rows.y[rows.task == k], h) for h in learner.hypotheses_]
        for k in range(K)
    ]
    assert_close(np.take_along_axis(np.array(losses), learner.assignment_[:, None], 1)[:, 0], np.min(losses, axis=1))


def smtl(rows: Stream) -> None:
    learner = shoal.SMTL(alpha=0.4, lam=0.3, mu=0.5, max_iter=2, tol=1e-12).fit(rows.X, rows.y, rows.task)
    W, P = twin.smtl(rows.X, rows.y, rows.task, 0.4, 0.3, 0.5, "exponential", rounds=learner.n_iter_)
    assert_close(learner.coef_, W, SOLVED)
    assert_close(learner.attention_, P, SOLVED)


def smtl_regressor(rows: Stream) -> None:
    learner = shoal.SMTLRegressor(alpha=0.4, lam=0.3, mu=0.5, max_iter=4, tol=1e-15).fit(rows.X, rows.y, rows.task)
    W, P = twin.smtl(rows.X, rows.y, rows.task, 0.4, 0.3, 0.5, "exponential", rounds=learner.n_iter_, squared=True)
    assert_close(learner.coef_, W, EXACT)
    assert_close(learner.attention_, P, EXACT)


def reg_mtl(rows: Stream) -> None:
    """libsvm without its bias: (phi, y) and (-phi, -y) are one example to it, and both are there."""
    learner = shoal.RegMTL(mu=0.5, C=0.3, tol=1e-9).fit(rows.X, rows.y, rows.task)
    G = multitask_kernel(rows.X @ rows.X.T, rows.task, 0.5)
    mirrored = SVC(kernel="precomputed", C=0.15, tol=1e-9)
    mirrored.fit(np.block([[G, -G], [-G, G]]), np.concatenate([rows.y, -rows.y]))
    expected = mirrored.decision_function(np.block([G, -G]))
    assert_close(learner.decision_function(rows.X, rows.task), expected, 1e-6)


def reg_mtl_regressor(rows: Stream) -> None:
    """Kernel ridge regression."""
    learner = shoal.RegMTLRegressor(mu=0.5, C=0.7, loss="squared").fit(rows.X, rows.y, rows.task)
    G = multitask_kernel(rows.X @ rows.X.T, rows.task, 0.5)
    assert_close(learner.predict(rows.X, rows.task), G @ np.linalg.solve(G + np.eye(len(G)) / 0.7, rows.y), EXACT)


def sparse(make: Any) -> Callable[[Stream], None]:
    def compare(rows: Stream) -> None:
        """Coefficients of the rows that it chose: of rows that are alike, any may be."""
        learner = make(gamma=0.3, lam=0.5, sigma=3.0, n_common=12, n_task=4, inner_tol=1e-14, random_state=0)
        learner.fit(rows.X, rows.y, rows.task)
        own = {t: s.tolist() for t, s in learner.support_task_.items()}
        common, is_hinge = learner.support_common_.tolist(), make is shoal.SparseMTL
        model = sparse_mtl.SparseMTL(rows.X, rows.y, rows.task, 0.3, 0.5, 3.0, is_hinge, common, own)
        a = np.concatenate([learner.dual_coef_common_, *learner.dual_coef_task_.values()])
        found = (learner.decision_function if is_hinge else learner.predict)(rows.X, rows.task)
        assert_close(found, model.design() @ a, EXACT)
        assert_close(found, model.design() @ model.minimum(), 1e-5)
        assert len(np.unique(rows.X[common], axis=0)) == len(common) > 0

    return compare


def trace_norm(rows: Stream) -> None:
    """0 is in G + rho ∂||W||_*."""
    learner = shoal.TraceNorm(rho=0.1, loss="squared", tol=1e-13, max_iter=20_000).fit(rows.X, rows.y, rows.task)
    value, G = smooth(rows, "squared", learner.coef_, 1 / np.bincount(rows.task))
    norm = np.linalg.norm(learner.coef_, "nuc")
    assert np.linalg.norm(G, 2) <= 0.1 * (1 + 1e-4)
    assert (G * learner.coef_).sum() == pytest.approx(-0.1 * norm, rel=1e-4)
    assert learner.objective_[-1] == pytest.approx(value + 0.1 * norm, rel=1e-12)


def mtfl(loss: str) -> Callable[[Stream], None]:
    def compare(rows: Stream) -> None:
        """0 is in G + 2 gamma ||W||_* ∂||W||_*."""
        assert loss in LOSSES
        learner = shoal.MTFL(gamma=0.3, loss=loss, tol=1e-13, max_iter=20_000).fit(rows.X, rows.y, rows.task)
        value, G = smooth(rows, loss, learner.coef_, np.ones(K))
        norm = np.linalg.norm(learner.coef_, "nuc")
        assert np.linalg.norm(G, 2) <= 0.6 * norm * (1 + 1e-4)
        assert (G * learner.coef_).sum() == pytest.approx(-0.6 * norm**2, rel=1e-4)
        assert learner.objective_[-1] == pytest.approx(value + 0.3 * norm**2, rel=1e-12)

    return compare


CLASSIFIERS = {
    "IndependentTasks": independent,
    "PooledTasks": pooled,
    "SHAMO": shamo,
    "SMTL": smtl,
    "RegMTL": reg_mtl,
    "SparseMTL": sparse(shoal.SparseMTL),
    "MTFL": mtfl("logistic"),
}
REGRESSORS = {
    "SMTLRegressor": smtl_regressor,
    "RegMTLRegressor": reg_mtl_regressor,
    "TraceNorm": trace_norm,
    "SparseMTLRegressor": sparse(shoal.SparseMTLRegressor),
    "MTFL-squared": mtfl("squared"),
}


@pytest.mark.parametrize("shape", ["long", "wide", "one label"])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
@pytest.mark.filterwarnings("ignore:SMTL(Regressor)? did not converge")
def test_rough_rows(name: str, shape: str) -> None:
    (CLASSIFIERS | REGRESSORS)[name](rows_of(shape, regression=name in REGRESSORS))


def test_every_batch_learner_is_here() -> None:
    from tests.batch.cases import BATCH

    assert {type(make()).__name__ for make in BATCH.values()} == {*CLASSIFIERS, *REGRESSORS} - {"MTFL-squared"}
