"""No forecasts and no labels break the regret bound of the first mixing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal import HedgedSharing
from shoal.online.hedged_sharing import mixing
from shoal.online.hedged_sharing.mixing import N_EXPERTS, SHARE
from shoal.theory import fixed_share_regret_bound

bayes, mixture = from_python(mixing.bayes), from_python(mixing.mixture)


@given(st.integers(1, 9), st.integers(1, 60), st.integers(0, 2**32 - 1), st.floats(0.1, 15.0))
def test_regret_against_the_best_expert(n_experts: int, n_rows: int, seed: int, sharpness: float) -> None:
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-np.clip(sharpness * rng.normal(size=(n_rows, N_EXPERTS)), -15, 15)))
    y = rng.random(n_rows) < p[:, rng.integers(n_experts)]
    prior = np.where(np.arange(N_EXPERTS) < n_experts, 1 / n_experts, 0.0)
    weights, loss = prior.copy(), 0.0
    for forecasts, happened in zip(p, y, strict=True):
        q = mixture(weights, forecasts)
        loss -= np.log(q if happened else 1 - q)
        bayes(weights, forecasts if happened else 1 - forecasts, prior)
    best = -np.log(np.where(y[:, None], p, 1 - p))[:, :n_experts].sum(axis=0).min()
    assert loss <= best + fixed_share_regret_bound(n_experts, n_rows, share=SHARE) + 1e-9


def test_the_bound_is_that_of_the_nine_experts() -> None:
    assert fixed_share_regret_bound(len(HedgedSharing().experts_), 0) == pytest.approx(np.log(9))


def test_arguments_out_of_range() -> None:
    with pytest.raises(ValueError, match="share"):
        fixed_share_regret_bound(9, 10, share=1.0)
