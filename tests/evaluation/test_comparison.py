"""Comparisons by hand; Wilcoxon's test by its printed table, SciPy, and counting all signs out where there are ties."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from shoal.evaluation import Evaluation
from shoal.evaluation.comparison import EXACT, compare_by, signed_rank_p


def counted_out(differences: np.ndarray) -> float:
    """Every choice of signs, one by one."""
    differences = differences[differences != 0]
    ranks = rankdata(np.abs(differences))
    observed = ranks[differences > 0].sum()
    sums = [ranks @ signs for signs in itertools.product([0, 1], repeat=len(ranks))]
    return float(np.mean(np.array(sums) >= observed))


# Wilcoxon's table of critical values, two-sided 5 %: the largest sum of the ranks of one sign that is significant.
PRINTED = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34, 18: 40, 19: 46,
           20: 52, 21: 58, 22: 65, 23: 73, 24: 81, 25: 89}  # fmt: skip


def ranks_against(n: int, total: int) -> np.ndarray:
    """Differences of sizes 1 to n of which the negative ones have this sum of ranks."""
    differences = np.arange(1.0, n + 1)
    for rank in range(n, 0, -1):
        if rank <= total:
            differences[rank - 1], total = -rank, total - rank
    return differences


@pytest.mark.parametrize(("n", "critical"), PRINTED.items())
def test_the_printed_table(n: int, critical: int) -> None:
    assert 2 * signed_rank_p(ranks_against(n, critical)) <= 0.05
    assert 2 * signed_rank_p(ranks_against(n, critical + 1)) > 0.05


@pytest.mark.parametrize(("macro", "error"), [(True, 0.1 / 3**0.5), (False, (1.5 * 2 * 0.025**2) ** 0.5)])
@pytest.mark.parametrize(("metric", "sign"), [("f1_positive", 1), ("error", -1)])
def test_means_and_their_errors_by_hand(metric: str, sign: int, macro: bool, error: float) -> None:
    """The better one is ahead by 0.1, 0.3 and 0.2 in tasks of 100, 100 and 200 rows: by 0.2 in the mean, either way."""
    rows, best, other = (100, 100, 200), (0.8, 0.9, 0.7), (0.7, 0.6, 0.5)

    def evaluation(values: tuple[float, ...]) -> Evaluation:
        return Evaluation("binary", 4, {}, {}, {k: {"rows": rows[k], metric: sign * values[k]} for k in range(3)})

    evaluations = {"learner": evaluation(other), "pooled": evaluation(best)}
    found = compare_by(evaluations, metric, macro=macro, scope="all tasks", tasks=range(3))
    assert (found.best, found.runner_up, found.outcome, found.tasks) == ("pooled", "learner", "share fully", 3)
    assert found.scores["pooled"] == pytest.approx(sign * (0.8 if macro else 3.1 / 4))
    assert found.gains["pooled"].mean == pytest.approx(-0.2)
    assert found.differences["learner"].mean == pytest.approx(0.2)
    assert found.differences["learner"].standard_error == pytest.approx(error)
    assert not found.is_clear


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
