"""No stream and no comparator breaks the bound of Dekel, Long and Singer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import Stream, draw
from tests.theory.comparators import comparator_for, kinds, scales
from tests.twins.shared_loss import norm_of

from shoal import SharedLoss
from shoal.theory import shared_loss_bound

K = 4
NORMS: list[tuple[str | float, int]] = [
    ("l1", 1), ("l2", 1), ("linf", 1), ("rmax", 2), ("rmax", 7), (1.5, 1), (4.0, 1),
]  # fmt: skip


def suffered(stream: Stream, f: np.ndarray, norm: str | float, r: int) -> float:
    losses = np.maximum(0, 1 - stream.y * f)
    return sum(norm_of(losses[rows], norm, r) for rows in stream.rows_of_rounds)


@given(
    seed=st.integers(0, 10**6), kind=kinds, scale=scales, length=st.sampled_from([0.1, 1.0, 30.0]),
    which=st.sampled_from(NORMS), rule=st.sampled_from(["finite", "implicit"]), C=st.floats(0.001, 3.0),
    protocol=st.sampled_from(["one", "some", "all"]),
)  # fmt: skip
def test_no_stream_breaks_the_bound(
    seed: int, kind: str, scale: float, length: float, which: tuple[Any, int], rule: str, C: float, protocol: str
) -> None:
    stream = draw(seed, K=K, d=4, n_rows=60, protocol=protocol, scale=length)
    norm, r = which
    learner = SharedLoss(norm=norm, r=r, C=C, rule=rule)
    loss = suffered(stream, learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds), norm, r)
    U = comparator_for(stream, kind, scale / length, seed, K)
    for X in (stream.X, stream.sparse):
        bound = shared_loss_bound(
            U, X, stream.y, stream.task, norm=norm, r=r, C=C, rounds=stream.rounds, tasks=range(K)
        )
        assert loss <= bound * (1 + 1e-9)


def test_the_bound_by_hand() -> None:
    U = np.array([[1.0, 0.0], [0.0, 2.0]])
    X = np.array([[0.5, 0.0], [0.0, 1.0], [0.0, 3.0], [-1.0, 0.0]])  # rounds (a, b), (b, a)
    y, task = np.array([1, -1, 1, 1]), ["a", "b", "b", "a"]
    losses = [np.array([0.5, 3.0]), np.array([0.0, 2.0])]
    size, R2, C, T = 5.0, 9.0, 0.5, 2
    for (norm, r), rho2 in zip(NORMS, [2.0, 1.0, 1.0, 2.0, 2.0, 2 ** (1 / 3), 1.0], strict=True):
        expected = sum(norm_of(l_t, norm, r) for l_t in losses) + size / (2 * C) + T * C * R2 * rho2 / 2
        bound = shared_loss_bound(U, X, y, task, norm=norm, r=r, C=C)
        assert bound == pytest.approx(expected, rel=1e-12)
        named = shared_loss_bound(U[::-1], X, y, task, norm=norm, r=r, C=C, tasks=["b", "a"], rounds=[0, 0, 1, 1])
        assert named == pytest.approx(expected, rel=1e-12)


def test_the_bound_is_not_vacuous() -> None:
    """At the bound's own best C, it is below what W = 0 loses, and within a factor of the truth."""
    rng = np.random.default_rng(0)
    w = np.array([1.0, -1.0, 0.5])
    X = rng.normal(size=(8000, 3))
    X = X[(np.abs(X @ w) > 0.5) & (np.linalg.norm(X, axis=1) < 3)]
    X = X[: len(X) // K * K]
    y, task, T = np.sign(X @ w), np.tile(np.arange(K), len(X) // K), len(X) // K
    U = np.tile(2 * w, (K, 1))
    C = np.linalg.norm(U) / (math.sqrt(T) * np.linalg.norm(X, axis=1).max())
    f = SharedLoss(C=C).test_then_train(X, y, task)
    loss = np.sqrt((np.maximum(0, 1 - y * f) ** 2).reshape(T, K).sum(axis=1)).sum()
    bound = shared_loss_bound(U, X, y, task, C=C)
    assert loss < bound < 12 * loss
    assert bound < T * math.sqrt(K)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"C": -1.0}, "C must be a finite"), ({"norm": "l7"}, "norm must be one of"), ({"r": 0}, "r must be a whole")],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shared_loss_bound(np.ones((1, 2)), np.eye(2), [1, -1], **{"C": 1.0, **arguments})
