"""The AUC of a stream: exact up to a limit, then within its stated bound, however the stream is cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.evaluation.metrics import auc
from shoal.evaluation.metrics.auc import FEW, MANTISSA, Ranking, ScoreSketch, aucs


def stream(n: int = 20_000, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return np.zeros(n, np.int64), truth, truth + rng.normal(size=n)


@pytest.mark.parametrize(
    ("positive", "negative", "share"),
    [
        ([2.0, 3.0], [0.0, 1.0], 1.0),
        ([0.0, 1.0], [2.0, 3.0], 0.0),
        ([1.0, 1.0], [1.0, 1.0, 1.0], 0.5),
        ([3.0, 1.0], [2.0, 0.0], 3 / 4),
        ([1.0, 2.0], [1.0, 0.0, 3.0], (1.5 + 2.0) / 6),
        ([0.0], [-0.0], 0.5),
        ([np.inf, -1.0], [-np.inf, 0.0], 3 / 4),
        ([1.0], [], np.nan),
    ],
)
@pytest.mark.parametrize("times", [1, 40])  # of 40 rows scores are sorted in another way
def test_shares_of_pairs_won_by_hand(positive: list[float], negative: list[float], share: float, times: int) -> None:
    score = np.array((positive + negative) * times)
    label = np.array(([True] * len(positive) + [False] * len(negative)) * times)
    overall, per_task = aucs(np.ones(len(score), np.int64), label, score, 2)
    assert (overall, per_task[1]) == pytest.approx((share, share), rel=1e-15, nan_ok=True)
    assert np.isnan(per_task[0])


@pytest.mark.parametrize(
    ("step", "auc", "bound"),
    [
        (2.0**-11, 2.5 / 4, 0.5 / 4),  # below the ten bits that are kept: one of four pairs is tied, though it was won
        (2.0**-10, 3 / 4, 0.0),
    ],
)
def test_the_sketch_states_its_error(step: float, auc: float, bound: float) -> None:
    score, positive = np.array([1.0 + step, 3.0, 1.0, 2.0]), np.array([True, True, False, False])
    assert aucs(np.zeros(4, np.int64), positive, score, 1)[0] == 3 / 4
    sketch = ScoreSketch()
    sketch.update(positive.astype(np.int32), score)
    found = sketch.auc(1)
    assert (found.overall, found.overall_bound) == (auc, bound)
    assert (found.per_task.tolist(), found.per_task_bound.tolist()) == ([auc], [bound])


@pytest.mark.parametrize("looks", [[], [900], [1, 2, 10_000, 10_700, 19_999]])
def test_looking_at_it_on_the_way_changes_nothing(looks: list[int]) -> None:
    _, truth, score = stream()
    code, score = np.arange(len(truth)) % 7, score.round(1)  # with ties
    metric = Ranking()
    for first, last in pairwise([0, *looks, len(code)]):
        metric.update(code[first:last], truth[first:last], score[first:last], 7)
        found = metric.values(7)["auc"]
        overall, per_task = aucs(code[:last], truth[:last] > 0, score[:last], 7)
        assert np.array_equal(found.overall, overall, equal_nan=True)
        assert np.array_equal(found.per_task, per_task, equal_nan=True)


@pytest.mark.parametrize("n_tasks", [1, 300])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e200])
def test_beyond_the_limit_the_error_is_within_the_stated_bound(n_tasks: int, scale: float) -> None:
    _, truth, score = stream(60_000)
    score = scale * score
    code = np.random.default_rng(2).integers(n_tasks, size=len(truth))
    metric = Ranking(max_rows=5_000)
    for first in range(0, len(code), 700):
        piece = slice(first, first + 700)
        metric.update(code[piece], truth[piece], score[piece], n_tasks)
    found = metric.values(n_tasks)["auc"]
    overall, per_task = aucs(code, truth > 0, score, n_tasks)
    assert metric._sketch is not None
    bounds = metric._sketch.auc(n_tasks)
    assert abs(found.overall - overall) <= bounds.overall_bound < 2e-4
    assert (np.abs(found.per_task - per_task) <= bounds.per_task_bound + 1e-15).all()
    assert bounds.per_task_bound.max() < 0.01
    worst = f"{bounds.per_task_bound.max():.1g}"
    assert metric.notes() == [
        f"AUC of more than 5,000 rows is that of rounded scores: within {bounds.overall_bound:.1g} of the exact one, "
        f"and within {worst} in every task"
    ]


def test_up_to_the_limit_nothing_is_said() -> None:
    metric = Ranking(max_rows=20_000)
    metric.update(*stream(), 1)
    assert metric.notes() == []


@pytest.mark.parametrize("parts", [(3_000,), (1_500, 3_500), (12_000,), (5_000, 5_100)])
@pytest.mark.parametrize("look", [True, False])
def test_parts_that_were_seen_apart_give_the_same_bits(parts: tuple[int, ...], look: bool) -> None:
    code, truth, score = stream()
    code = np.arange(len(code)) % 5
    whole, total = Ranking(max_rows=2_000), Ranking(max_rows=2_000)
    whole.update(code, truth, score, 5)
    for first, last in pairwise((0, *parts, len(code))):
        part = Ranking(max_rows=2_000)
        part.update(code[first:last], truth[first:last], score[first:last], 5)
        if look:
            part.values(5)
        total.absorb(part, 5)
    total.absorb(Ranking(max_rows=2_000), 5)  # which has seen nothing
    expected, found = whole.values(5)["auc"], total.values(5)["auc"]
    assert (found.overall, found.per_task.tolist()) == (expected.overall, expected.per_task.tolist())


def test_memory_does_not_grow_with_the_rows() -> None:
    """Cells are at most as many as asked for; fewer of them make the bound wider, never wrong."""
    sketch, everything = ScoreSketch(max_cells=2_000), []
    for seed in range(5):
        code, truth, score = stream(10_000, seed)
        everything.append((truth, score))
        sketch.update((2 * code + (truth > 0)).astype(np.int32), score)
        found = sketch.auc(1)
        assert len(sketch._keys) <= 2_000
        assert not sketch._pending
    truth, score = map(np.concatenate, zip(*everything, strict=True))
    exact = aucs(np.zeros(len(truth), np.int64), truth > 0, score, 1)[0]
    assert 1e-5 < found.overall_bound < 0.01
    assert abs(found.overall - exact) <= found.overall_bound


@given(st.lists(st.tuples(st.booleans(), st.floats(-1e300, 1e300)), min_size=1, max_size=60))
def test_the_bound_holds_for_any_scores(rows: list[tuple[bool, float]]) -> None:
    positive, score = np.array([label for label, _ in rows]), np.array([value for _, value in rows])
    code = np.zeros(len(rows), np.int64)
    exact = aucs(code, positive, score, 1)[0]
    sketch = ScoreSketch(max_cells=10)
    sketch.update(positive.astype(np.int32), score)
    found = sketch.auc(1)
    if np.isnan(exact):
        assert np.isnan(found.overall)
    else:
        assert abs(found.overall - exact) <= found.overall_bound + 1e-12


@pytest.mark.parametrize("n", [0, 1, 2, FEW - 1, FEW, FEW + 1])
def test_tasks_of_few_rows_and_more_are_sorted_alike(n: int) -> None:
    """`n` rows of each label, sorted by insertion up to a limit; against all pairs."""
    rng = np.random.default_rng(n)
    score, positive = rng.normal(size=(2, 2 * n)).round(1), np.arange(2 * n) % 2 == 0
    expected = [(np.sign(mine[positive][:, None] - mine[~positive]).mean() + 1) / 2 if n else np.nan for mine in score]
    code = np.repeat([0, 1], 2 * n)
    _, found = aucs(code, np.tile(positive, 2), score.ravel(), 2)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("n", [9, 10, 11])
@pytest.mark.parametrize("ways", ["one", "two", "absorbed"])
def test_the_limit_of_rows_is_one_that_is_kept(n: int, ways: str) -> None:
    code, truth, score = stream(n)
    metric = Ranking(max_rows=10)
    metric.update(code[:4], truth[:4], score[:4], 1)
    if ways == "absorbed":
        other = Ranking(max_rows=10)
        other.update(code[4:], truth[4:], score[4:], 1)
        metric.absorb(other, 1)
    else:
        cut = 4 if ways == "one" else 7
        for piece in (slice(4, cut), slice(cut, n)):
            metric.update(code[piece], truth[piece], score[piece], 1)
    assert metric.seen == n
    assert (metric.notes() == []) == (n <= 10)
    exact = aucs(code, truth > 0, score, 1)[0]
    assert metric.values(1)["auc"].overall == pytest.approx(exact, abs=0.0 if n <= 10 else 1e-3)


@pytest.mark.parametrize("n", [9, 10, 11])
def test_cells_at_their_limit(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many scores as cells lose nothing; rows wait until there are as many as may."""
    monkeypatch.setattr(auc, "PENDING", 10)
    sketch, score = ScoreSketch(max_cells=10), 1.0 + np.arange(n) / 2**MANTISSA
    sketch.update((np.arange(n) % 2).astype(np.int32), score)
    assert sketch._n_pending == (n if n < 10 else 0)
    assert (sketch._dropped == 0) == (n <= 10)
    assert (sketch.auc(1).overall_bound == 0.0) == (n <= 10)
    assert sketch.rows == n


def test_a_sketch_knows_the_largest_number_of_a_task() -> None:
    sketch = ScoreSketch()
    assert sketch.largest_task == -1
    for task, most in ((0, 0), (5, 5), (3, 5)):
        sketch.update(np.array([2 * task], np.int32), np.array([-1e300]))
        assert sketch.largest_task == most
