"""Wilcoxon's signed rank test: SciPy's is the twin, and counting all signs out where there are ties."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from shoal.evaluation.comparison import EXACT, signed_rank_p


def counted_out(differences: np.ndarray) -> float:
    """Every choice of signs, one by one."""
    differences = differences[differences != 0]
    ranks = rankdata(np.abs(differences))
    observed = ranks[differences > 0].sum()
    sums = [ranks @ signs for signs in itertools.product([0, 1], repeat=len(ranks))]
    return float(np.mean(np.array(sums) >= observed))


@pytest.mark.parametrize("n", [1, 2, 6, 20, EXACT, EXACT + 1, 400])
@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.3])
def test_it_is_scipys_test(n: int, shift: float) -> None:
    differences = np.random.default_rng(n).normal(shift, size=n)
    expected = wilcoxon(differences, alternative="greater", method="exact" if n <= EXACT else "asymptotic").pvalue
    assert signed_rank_p(differences) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n", [80, 1_000])
def test_it_is_scipys_test_with_ties_and_zeros(n: int) -> None:
    differences = np.random.default_rng(n).integers(-6, 8, size=n) / 8
    assert np.count_nonzero(differences) > EXACT
    expected = wilcoxon(differences, alternative="greater", method="asymptotic").pvalue
    assert signed_rank_p(differences) == pytest.approx(expected, rel=1e-10)


@given(st.lists(st.integers(-5, 5), max_size=12))
def test_all_signs_are_counted(whole: list[int]) -> None:
    differences = np.array(whole, float)
    assert signed_rank_p(differences) == counted_out(differences)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=80))
def test_both_sides_together_are_one_and_what_they_share(whole: list[int]) -> None:
    differences = np.array(whole, float)
    above, below = signed_rank_p(differences), signed_rank_p(-differences)
    assert 0.0 <= above <= 1.0
    assert above + below > 1.0 - 1e-12


def test_six_tasks_are_the_fewest_that_tell() -> None:
    assert signed_rank_p(np.ones(5)) == 2.0**-5 > 0.025
    assert signed_rank_p(np.ones(6)) == 2.0**-6 < 0.025


def test_no_difference() -> None:
    assert signed_rank_p(np.zeros(4)) == 1.0
