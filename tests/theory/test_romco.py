"""No stream and no comparator breaks ROMCO's regret bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import draw
from tests.theory import comparators

from shoal import ROMCO
from shoal.theory import romco_regret_bound

K = 4


@given(
    seed=st.integers(0, 10**6), protocol=st.sampled_from(["one", "some", "all"]), share=st.floats(0, 1),
    eta=st.floats(0.01, 2), rho=st.floats(0.01, 2), lambda1=st.floats(0, 2), lambda2=st.floats(0, 2),
    C=st.floats(0.1, 3), kind=comparators.kinds, scale=comparators.scales,
)  # fmt: skip
def test_regret(
    seed: int,
    protocol: str,
    share: float,
    eta: float,
    rho: float,
    lambda1: float,
    lambda2: float,
    C: float,
    kind: str,
    scale: float,
) -> None:
    stream = draw(seed, K=K, n_rows=60, protocol=protocol)
    if len(np.unique(stream.task)) < K:
        return
    options: dict[str, Any] = {"eta": eta, "rho": rho, "lambda1": lambda1, "lambda2": lambda2, "C": C}
    W = comparators.comparator_for(stream, kind, scale, seed, K)
    f = ROMCO(**options).test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    best = np.einsum("ij,ij->i", W[stream.task], stream.X)
    regret = C * (np.maximum(0, 1 - stream.y * f) - np.maximum(0, 1 - stream.y * best)).sum()
    bound = romco_regret_bound(
        share * W, (1 - share) * W, stream.X, stream.y, stream.task, rounds=stream.rounds, **options
    )
    assert regret <= bound * (1 + 1e-9) + 1e-9


def test_every_term_by_hand() -> None:
    U, V = np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([[0.0, 2.0], [0.0, 0.0]])
    X, y, task = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), [1, -1, 1], [0, 1, 0]  # two rounds
    bound = romco_regret_bound(U, V, X, y, task, eta=0.5, rho=0.25, lambda1=0.1, lambda2=0.3, C=2.0)
    assert bound == pytest.approx(25 + 8 + 0.375 * 4 * 7 + 2 * 0.1 * 7 + 0.3 * 2 * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eta": 0.0}, "eta must be"), ({"rho": -1.0}, "rho must be"), ({"C": np.inf}, "C must be"),
        ({"lambda1": -0.1}, "lambda1 must be"), ({"lambda2": np.nan}, "lambda2 must be"),
        ({"personal": np.ones((2, 3))}, "must have one shape"),
    ],
)  # fmt: skip
def test_arguments_out_of_range(options: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "common": np.ones((2, 2)),
        "personal": np.ones((2, 2)),
        "eta": 1.0,
        "rho": 1.0,
        "lambda1": 0.0,
    }
    with pytest.raises(ValueError, match=message):
        romco_regret_bound(X=np.eye(2), y=[1, -1], task=[0, 1], lambda2=options.pop("lambda2", 0.0), **good | options)
