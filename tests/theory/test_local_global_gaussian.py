"""No stream and no comparator breaks Theorem 1 of the local and global Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import Stream, draw

from shoal import LocalGlobalGaussian
from shoal.theory import gaussian_regret_bound
from shoal.theory.local_global_gaussian import log_determinant

K = 4


def regret(stream: Stream, W: np.ndarray, lam: float, eps: float, X: Any = None) -> float:
    learner = LocalGlobalGaussian(loss="hinge", lam=lam, eps=eps).add_tasks(range(K))
    X = stream.X if X is None else X
    f = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    own = np.maximum(0, 1 - stream.y * f)
    theirs = np.maximum(0, 1 - stream.y * np.einsum("ij,ij->i", W[stream.task], stream.X))
    return float((own - theirs)[(f >= 0) != (stream.y > 0)].sum())


@given(
    seed=st.integers(0, 10**6), lam=st.floats(0.01, 10), ratio=st.floats(0.5, 50), scale=st.floats(0, 10),
    protocol=st.sampled_from(["one", "some", "all"]), kind=st.sampled_from(["learned", "random", "equal"]),
    sparse=st.booleans(), split=st.sampled_from(["best", "zero", "random"]),
)  # fmt: skip
def test_no_stream_and_no_comparator_breaks_the_bound(
    seed: int, lam: float, ratio: float, scale: float, protocol: str, kind: str, sparse: bool, split: str
) -> None:
    rng = np.random.default_rng(seed)
    stream = draw(seed, n_rows=80, K=K, d=3, protocol=protocol, density=0.6 if sparse else 1.0)
    eps, d = lam * ratio, stream.X.shape[1]
    W = scale * rng.normal(size=(K, d)) if kind == "random" else np.tile(scale * rng.normal(size=d), (K, 1))
    if kind == "learned":
        W = LocalGlobalGaussian(lam=0.1).fit(stream.X, stream.y, stream.task).coef_[:K] * scale
        W = W if len(W) == K else np.zeros((K, d))
    shared = {"best": None, "zero": np.zeros(d), "random": rng.normal(size=d)}[split]
    X = stream.sparse if sparse else stream.X
    bound = gaussian_regret_bound(
        W, X, stream.y, stream.task, lam=lam, eps=eps, shared=shared, rounds=stream.rounds, tasks=range(K)
    )
    found = regret(stream, W, lam, eps, X)
    assert found <= bound * (1 + 1e-9) + 1e-9


@given(seed=st.integers(0, 10**6), lam=st.floats(0.05, 5), ratio=st.floats(0.5, 5))
def test_the_identity_of_the_proof(seed: int, lam: float, ratio: float) -> None:
    """Eq. 6 with both Gaussians as one: what every further inequality of the proof starts from, exactly."""
    eps, d = lam * ratio, 3
    stream = draw(seed, n_rows=50, K=K, d=d, protocol="some")
    U = np.random.default_rng(seed).normal(size=(K + 1, d))
    learner = LocalGlobalGaussian(loss="hinge", lam=lam, eps=eps).add_tasks(range(K))
    mu, linear, right = np.zeros((K + 1, d)), 0.0, 0.0
    for rows in stream.rows_of_rounds:
        f = learner.test_then_train(stream.X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
        wrong = rows[(f >= 0) != (stream.y[rows] > 0)]
        S0 = learner.covariance_shared_
        S = np.concatenate([S0[None], learner.covariance_ - S0])
        G = np.zeros((K + 1, d))  # minus the gradient of the round's losses
        for r in wrong:
            G[[0, stream.task[r] + 1]] += stream.y[r] * stream.X[r]
        new = np.vstack([learner.coef_shared_, learner.coef_task_])
        linear += np.sum(G * (U - mu))
        for k in range(K + 1):
            before, after = mu[k] - U[k], new[k] - U[k]
            right += eps * (before @ np.linalg.solve(S[k], before) - after @ np.linalg.solve(S[k], after))
            right += G[k] @ S[k] @ G[k] / (4 * eps)
        mu = new
    np.testing.assert_allclose(linear, right, rtol=1e-7, atol=1e-7 * (1 + abs(linear)))


def test_the_bound_says_something() -> None:
    """It is within a factor of ten of what is lost, where steps are small against the stream."""
    stream = draw(3, n_rows=400, K=K, d=5, protocol="all")
    W = LocalGlobalGaussian(lam=0.1).fit(stream.X, stream.y, stream.task).coef_
    bound = gaussian_regret_bound(
        W, stream.X, stream.y, stream.task, lam=10.0, eps=20.0, rounds=stream.rounds, tasks=range(K)
    )
    assert 1.0 < regret(stream, W, 10.0, 20.0) < bound < 10 * regret(stream, W, 10.0, 20.0)


def test_the_printed_determinant_is_too_small() -> None:
    """T orthogonal rows: ln det = T ln(1 + 1/lambda), not at most ln(1 + T)."""
    for T in (5, 20):
        assert log_determinant(np.eye(T), 1.0) == pytest.approx(T * np.log(2))
        assert log_determinant(np.eye(T), 1.0) > np.log(1 + T)
        assert log_determinant(np.ones((T, 1)), 1.0) == pytest.approx(np.log(1 + T))


def test_nothing_wrong_is_no_regret() -> None:
    assert gaussian_regret_bound(np.ones((1, 2)), np.eye(2), [1, 1], lam=1.0, eps=1.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lam": 2.1, "eps": 1.0}, "lam <= 2 eps"), ({"lam": 0.0, "eps": 1.0}, "lam must be"),
        ({"shared": np.ones(3)}, "the comparator's 2 features"), ({"comparator": np.ones((2, 2))}, "one row per task"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good = {"comparator": np.ones((1, 2)), "X": np.eye(2), "y": [1, -1], "lam": 1.0, "eps": 1.0}
    with pytest.raises(ValueError, match=message):
        gaussian_regret_bound(**{**good, **arguments})
