"""No stream and no comparator breaks Theorem 9 or the corrected Remark 12."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard
from tests.streams import draw
from tests.theory.comparators import comparator_for, kinds, scales
from tests.theory.test_shared_loss import NORMS, suffered

from shoal import SchattenPerceptron
from shoal.theory import schatten_loss_bound, schatten_mistake_bound

K = 4
streams = {
    "seed": st.integers(0, 10**6), "kind": kinds, "scale": scales, "length": st.sampled_from([0.1, 1.0, 30.0]),
    "p": st.sampled_from([1, 2, 3, 6, 1.5]), "protocol": st.sampled_from(["one", "some", "all"]),
}  # fmt: skip


@given(**streams)
def test_no_stream_breaks_the_mistake_bound(
    seed: int, kind: str, scale: float, length: float, p: float, protocol: str
) -> None:
    stream = draw(seed, K=K, d=4, n_rows=60, protocol=protocol, scale=length)
    learner = SchattenPerceptron(p=p).add_tasks(range(K))
    f = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    mistaken = (f >= 0) != (stream.y > 0)
    assert learner.n_updates_ == mistaken.sum()
    U = comparator_for(stream, kind, scale / length, seed, K)
    options: dict[str, Any] = {"p": p, "mistaken": mistaken, "rounds": stream.rounds, "tasks": range(K)}
    for X in (stream.X, stream.sparse):
        assert mistaken.sum() <= schatten_mistake_bound(U, X, stream.y, stream.task, **options) * (1 + 1e-9)


@given(**streams, which=st.sampled_from(NORMS), C=st.floats(0.001, 3.0))
def test_no_stream_breaks_the_loss_bound(
    seed: int, kind: str, scale: float, length: float, p: float, protocol: str, which: tuple[Any, int], C: float
) -> None:
    norm, r = which
    stream = draw(seed, K=K, d=4, n_rows=60, protocol=protocol, scale=length)
    learner = SchattenPerceptron(p=p, shared_loss=norm, C=C, r=r).add_tasks(range(K))
    f = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    U = comparator_for(stream, kind, scale / length, seed, K)
    options: dict[str, Any] = {"p": p, "norm": norm, "C": C, "r": r, "decisions": f}
    for X in (stream.X, stream.sparse):
        bound = schatten_loss_bound(U, X, stream.y, stream.task, **options, rounds=stream.rounds, tasks=range(K))
        assert suffered(stream, f, norm, r) <= bound * (1 + 1e-9)


def schatten(M: np.ndarray, order: float) -> float:
    return float(np.sum(np.linalg.svd(M, compute_uv=False) ** order) ** (1 / order))


@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_the_bounds_by_hand(p: float) -> None:
    rng = np.random.default_rng(0)
    U, X, y = rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), np.array([1.0, -1.0, 1.0, 1.0])
    task, mistaken = np.array([0, 1, 1, 0]), np.array([True, True, False, True])
    losses = np.maximum(0.0, 1 - y * np.einsum("ij,ij->i", X, U[task]))
    M = max(schatten(y[:2, None] * X[:2], 2 * p) / math.sqrt(2), float(np.linalg.norm(X[3])))
    size = schatten(U, 2 * p / (2 * p - 1))
    L = losses[mistaken].sum()
    expected = L + (2 * p - 1) * (M * size) ** 2 + M * size * math.sqrt((2 * p - 1) * L)
    assert schatten_mistake_bound(U, X, y, task, p=p, mistaken=mistaken) == pytest.approx(expected, rel=1e-10)
    assert schatten_mistake_bound(U, X, y, task, p=p, mistaken=mistaken & False) == 0.0
    C, f = 0.5, np.array([0.0, 0.0, 2.0, 2.0])  # l2: tau = C (1, 1)/√2, then no loss
    M = schatten(y[:2, None] * X[:2] * C / math.sqrt(2), 2 * p) / math.sqrt(C)
    shared = np.linalg.norm(losses[:2]) + np.linalg.norm(losses[2:])
    expected = shared + size**2 / (2 * C) + (2 * p - 1) * M**2 / 2
    bound = schatten_loss_bound(U, X, y, task, p=p, norm="l2", C=C, decisions=f)
    assert bound == pytest.approx(expected, rel=1e-10)


def test_the_mistake_bound_rewards_a_common_direction() -> None:
    """Remark 10: tasks with the same weights, rounds of orthogonal rows: fewer mistakes by K^(1 - 1/p)/(2p - 1)."""
    rng = np.random.default_rng(0)
    K, T = 64, 40
    flat = hadamard(K) / math.sqrt(K)
    X = np.concatenate([flat[rng.permutation(K)] * rng.choice([-1, 1], K)[:, None] for _ in range(T)])
    task, y = np.tile(np.arange(K), T), np.where(X[:, 0] > 0, 1, -1)
    U = np.tile(math.sqrt(K) * np.eye(K)[0], (K, 1))  # y <u, x> = 1: no loss
    for p in (1, 2, 4):
        all_mistaken = schatten_mistake_bound(U, X, y, task, p=p, mistaken=np.ones(len(y), bool))
        assert all_mistaken == pytest.approx((2 * p - 1) * K ** (1 + 1 / p), rel=1e-6)
        mistaken = (SchattenPerceptron(p=p).test_then_train(X, y, task) >= 0) != (y > 0)
        assert 0 < mistaken.sum() <= schatten_mistake_bound(U, X, y, task, p=p, mistaken=mistaken)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 0.5}, "p must be a finite number >= 1"), ({"C": 0.0}, "C must be a finite number > 0"),
        ({"norm": "l9"}, "norm must be one of"), ({"decisions": [0.0]}, "decisions must hold one number per row"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good = {"p": 2, "norm": "l2", "C": 1.0, "decisions": [0.0, 0.0]}
    with pytest.raises(ValueError, match=message):
        schatten_loss_bound(np.ones((2, 2)), np.eye(2), [1, -1], [0, 1], **{**good, **arguments})
