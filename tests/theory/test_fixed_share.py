"""No forecasts and no labels break the regret bound of the first mixing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal import HedgedSharing
from shoal.online.hedged_sharing import mixing
from shoal.online.hedged_sharing.experts import N_EXPERTS
from shoal.online.hedged_sharing.mixing import SHARE
from shoal.theory import fixed_share_regret_bound

bayes, mixture = from_python(mixing.bayes), from_python(mixing.mixture)


@given(st.integers(1, N_EXPERTS), st.integers(1, 60), st.integers(0, 2**32 - 1), st.floats(0.1, 15.0), st.booleans())
def test_regret_against_the_best_expert(n_experts: int, n_rows: int, seed: int, sharpness: float, sleep: bool) -> None:
    """Over the rows in which the expert is awake."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-np.clip(sharpness * rng.normal(size=(n_rows, N_EXPERTS)), -15, 15)))
    y = rng.random(n_rows) < p[:, rng.integers(n_experts)]
    awake = np.where(rng.random((n_rows, N_EXPERTS)) < 0.5, 0.0, 1.0) if sleep else np.ones((n_rows, N_EXPERTS))
    awake[:, rng.integers(n_experts)] = 1.0  # somebody is
    prior = np.where(np.arange(N_EXPERTS) < n_experts, 1 / n_experts, 0.0)
    weights, losses = prior.copy(), np.zeros(n_rows)
    for t in range(n_rows):
        q = mixture(weights, p[t], awake[t])
        losses[t] = -np.log(q if y[t] else 1 - q)
        bayes(weights, p[t] if y[t] else 1 - p[t], awake[t], prior, SHARE)
    of_experts = -np.log(np.where(y[:, None], p, 1 - p))
    regret = ((losses[:, None] - of_experts) * awake).sum(axis=0)[:n_experts]
    assert regret.max() <= fixed_share_regret_bound(n_experts, n_rows, share=SHARE) + 1e-9


def test_the_bound_is_that_of_all_experts() -> None:
    assert fixed_share_regret_bound(len(HedgedSharing().experts_), 0) == pytest.approx(np.log(N_EXPERTS))


def test_without_shares_it_is_the_bound_of_bayes() -> None:
    assert fixed_share_regret_bound(8, 1_000, share=0.0) == np.log(8)


def test_arguments_out_of_range() -> None:
    with pytest.raises(ValueError, match="share"):
        fixed_share_regret_bound(9, 10, share=1.0)
