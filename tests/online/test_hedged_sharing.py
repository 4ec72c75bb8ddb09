"""HedgedSharing equals its twin, is calibrated, shares where sharing pays, and needs memory only for what occurs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from tests.streams import assert_close, core_of, draw, drawn_weights, roughened
from tests.twins import hedged_sharing as twin

from shoal import HedgedSharing, HedgedSharingRegressor, MultitaskPerceptron, MultitaskRegressor, load
from shoal.datasets import make_related_tasks
from shoal.engine.task_weights import record_table
from shoal.model.algorithm import Size
from shoal.model.state import leaves
from shoal.online.hedged_sharing import algorithm, mixing, row
from shoal.online.hedged_sharing.crossing import SERIAL
from shoal.online.hedged_sharing.dense import BROKEN
from shoal.online.hedged_sharing.experts import N_INPUTS
from shoal.online.hedged_sharing.mixing import TURN
from shoal.parallel import cores, pipeline


def assert_bits(one: Any, other: Any) -> None:
    for array, expected in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_array_equal(array, expected)


def coef_of(theirs: Any, k: int) -> np.ndarray:
    """The twin's weights of the experts on the row itself."""
    plain = [
        there * ((sharing != "own") * s + (sharing != "pooled") * v[k])
        for (_, sharing, _, _), s, v, there in zip(
            theirs.plain.experts, theirs.plain.s, theirs.plain.v, theirs.part, strict=False
        )
    ]
    pooled, own = theirs.dense.pooled, theirs.dense.matrices[k]
    return np.array([*plain, theirs.awake[14] * pooled.w, theirs.awake[15] * own.w])


@pytest.mark.parametrize("interactions", [False, True])
@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize("protocol", ["one", "some", "growing"])
@pytest.mark.parametrize("kind", [HedgedSharing, HedgedSharingRegressor])
def test_equals_the_twin(kind: type[Any], protocol: str, density: float, interactions: bool) -> None:
    """With weights, where the stream has rounds of several rows; with values that repeat, and may be the edges of bins,
    where it has none; with too many features for matrices in one case."""
    regression, d = kind is HedgedSharingRegressor, 33 if density == 1.0 and not interactions else 9
    stream = draw(3, n_rows=300, d=d, K=6, protocol=protocol, density=density, scale=3.0, regression=regression)
    if protocol == "one":
        stream = roughened(stream)
    rounds, K = None if protocol == "one" else stream.rounds, int(stream.task.max()) + 1
    weight = None
    if protocol == "some":
        weight = drawn_weights(len(stream.y))
        weight[np.unique(stream.task, return_index=True)[1]] = 0.5  # all tasks begin with their first rows
        weight[::50] = 300.0
    # The regressions' forecasts are equal to 1e-13; the third mixing takes their likelihoods to the power 300.
    bound = 1e-11 if protocol == "some" and not regression else 1e-12
    model = twin.RegressionTwin if regression else twin.Twin
    expected, theirs = twin.learn(stream.X, stream.y, stream.task, rounds, K, model, weight, interactions)
    for X in (stream.X, stream.sparse):
        learner = kind(interactions=interactions, effort="fast", dtype="float64")
        answers = learner.test_then_train(X, stream.y, stream.task, rounds=rounds, sample_weight=weight)
        assert_close(answers, expected, bound)
        assert_close(learner.weights_, theirs.pi_k, bound)
        mine = learner.expert_weights(2)
        assert [*mine.values()] == sorted(mine.values(), reverse=True)
        row = learner.weights_[learner.tasks_.index(2)]
        assert mine == dict(zip(learner.experts_, row.tolist(), strict=True))
        assert_close(learner.experts_coef(2), coef_of(theirs, 2), bound)
        assert_close(learner.experts_coef_[learner.tasks_.index(2)], coef_of(theirs, 2), bound)


@pytest.mark.parametrize("kind", [HedgedSharing, HedgedSharingRegressor])
def test_equals_the_twin_on_rows_that_are_narrow_then_wide_and_narrow_again(kind: type[Any]) -> None:
    """Crossed rows sleep in between, and full matrices from the first wide rows on."""
    regression, rng = kind is HedgedSharingRegressor, np.random.default_rng(0)
    stream = draw(5, n_rows=340, d=300, K=3, regression=regression)
    wide = (np.arange(340) >= 60) & (np.arange(340) < 100)
    X = stream.X * np.where(wide[:, None], rng.random((340, 300)) < 0.5, np.arange(300) < 6)
    model = twin.RegressionTwin if regression else twin.Twin
    expected, theirs = twin.learn(X, stream.y, stream.task, None, 3, model, None, "auto")
    assert theirs.crosses
    assert theirs.phase == "asleep"
    learner = kind(effort="fast", dtype="float64")
    assert_close(learner.test_then_train(X, stream.y, stream.task), expected)
    assert_close(learner.weights_, theirs.pi_k)


@pytest.mark.parametrize("kind", [HedgedSharing, HedgedSharingRegressor])
def test_equals_the_twin_on_a_stream_that_is_wide_for_good(kind: type[Any]) -> None:
    """After 1,000 wide rows narrow ones wake no expert."""
    regression, rng = kind is HedgedSharingRegressor, np.random.default_rng(1)
    stream = draw(6, n_rows=1300, d=270, K=2, regression=regression)
    at = np.arange(len(stream.X))
    wide = (at >= 20) & (at < 520)
    X = stream.X * np.where(wide[:, None], rng.random(stream.X.shape) < 0.25, np.arange(270) < 3)
    entries = np.count_nonzero(X, axis=1)
    assert entries[:1000].mean() > 32 > entries.mean()
    model = twin.RegressionTwin if regression else twin.Twin
    expected, theirs = twin.learn(X, stream.y, stream.task, None, 2, model, None, "auto")
    assert not theirs.crosses
    learner = kind(effort="fast", dtype="float64")
    assert_close(learner.test_then_train(X, stream.y, stream.task), expected)
    assert_close(learner.weights_, theirs.pi_k)


@pytest.mark.parametrize("kind", [HedgedSharing, HedgedSharingRegressor])
def test_equals_the_twin_on_wide_dense_rows(kind: type[Any]) -> None:
    """The low-rank filters fold several times; weights and rounds; features that come late; then sparse rows end it."""
    regression, rng = kind is HedgedSharingRegressor, np.random.default_rng(2)
    stream = draw(9, n_rows=190, d=310, K=2, protocol="some", regression=regression)
    X, weight = stream.X + 0.3 * stream.X[:, :1], drawn_weights(len(stream.y))
    weight[np.unique(stream.task, return_index=True)[1]] = 0.5
    X[:60, 300:] = 0.0
    model = twin.RegressionTwin if regression else twin.Twin
    for ends in (False, True):
        if ends:
            X[150:] *= rng.random(X[150:].shape) < 0.1
        expected, theirs = twin.learn(X, stream.y, stream.task, stream.rounds, 2, model, weight, "auto")
        assert theirs.phase == ("asleep" if ends else "wide")
        assert min(len(low.B) for low in (theirs.dense.wide, *theirs.dense.own_wide)) >= 8
        for rows in (X, sp.csr_matrix(X)):
            learner = kind(effort="fast", dtype="float64")
            answers = learner.test_then_train(rows, stream.y, stream.task, rounds=stream.rounds, sample_weight=weight)
            assert_close(answers, expected, 1e-9)
            assert_close(learner.weights_, theirs.pi_k, 1e-9)
            if not ends:
                of_low = theirs.dense.wide, theirs.dense.own_wide[1]
                assert_close(learner.experts_coef(1)[-2:], [low.w for low in of_low], 1e-9)


@pytest.mark.parametrize(("m", "drift", "rank"), [(60, 0.05, 40), (8, 0.0, 7)])
def test_a_low_rank_filter_is_the_full_one_where_it_has_room(m: int, drift: float, rank: int) -> None:
    """For all rows; or, without drift, for the dimensions that rows and the constant span."""
    rng = np.random.default_rng(0)
    low, full = twin.LowRank(40, drift, m), twin.Kalman(40, drift)
    X = np.column_stack([np.full(120, 0.3), rng.normal(size=(120, rank)) @ rng.normal(size=(rank, 40)) / 20.0])
    for z, y in zip(X, (rng.random(120) < 0.5).astype(float), strict=True):
        assert_close(low.w @ z, full.w @ z, 1e-9)
        for one in (low, full):
            one.learn(z, one.w @ z, twin.Now(y, 1.0, 0.0, 0.0, 1.0, 0.0, False))
    assert_close(low.P(), full.P, 1e-9)


@pytest.mark.parametrize("kind", [HedgedSharing, HedgedSharingRegressor])
def test_low_rank_filters_are_saved_explained_and_forgotten(kind: type[Any], tmp_path: Path) -> None:
    """Columns come late, memory is for two tasks, in float64 for one, and one row at a time gives the same bits."""
    rng, n_filters = np.random.default_rng(4), 2 if kind is HedgedSharing else 1
    X, task, y = rng.normal(size=(200, 290)), rng.integers(4, size=200), np.resize([1.0, -1.0, 1.0], 200)
    X[:100, 270:] = 0.0
    learner, again = kind(memory=0.06), kind(memory=0.06)
    learner.partial_fit(X[:150], y[:150], task[:150]).save(tmp_path / "model.shoal")
    for x, target, k in zip(X[:150], y[:150], task[:150], strict=True):
        again.learn_one(x, target, k)
    loaded = load(tmp_path / "model.shoal")
    for other in (again, loaded):
        assert_bits(core_of(other).pack(Size(4, 290)), core_of(learner).pack(Size(4, 290)))
    loaded.partial_fit(X[150:], y[150:], task[150:])
    low = core_of(learner.partial_fit(X[150:], y[150:], task[150:])).state.dense.columns.low
    assert_bits(core_of(loaded).pack(Size(4, 290)), core_of(learner).pack(Size(4, 290)))
    assert sorted(low.slot[low.slot > 0]) == [*range(1, 1 + n_filters)]
    exact = kind(memory=0.06, dtype="float64").partial_fit(X, y, task)  # float32 rounds a sum by its order
    for k in (0, 3, "nobody"):
        decision = (exact.decision_function if kind is HedgedSharing else exact.predict)(X[:1], [k])[0]
        assert_close(exact.explain_one(X[0], k).decision, decision, 1e-12)
    P = np.diag(low.pooled[1, :291].astype(float)) - low.pooled[2:, :291].astype(float).T @ low.pooled[2:, :291]
    assert np.linalg.eigvalsh(P).min() > 0.0
    last = learner.tasks_[int(np.argmax(low.slot[:4]))]  # its filter takes the place of that of the task that leaves
    first = learner.tasks_[int(np.argmax(low.slot[:4] == 1))]
    before = learner.experts_coef(last)
    learner.forget_task(first)
    low = core_of(learner).state.dense.columns.low
    assert low.counters[0] == low.slot[:3].max() == n_filters - 1
    if last != first:
        np.testing.assert_array_equal(learner.experts_coef(last), before)


def test_rows_of_few_and_of_many_features_are_answered_together() -> None:
    """Of which nothing is learned, so that each is answered as if it came next."""
    rng = np.random.default_rng(6)
    X, wide = rng.normal(size=(60, 300)), np.arange(60) % 3 == 1
    X[:, 250:][~wide] = 0.0
    learner = HedgedSharing().partial_fit(X[~wide], X[~wide, 0] > 0.0, np.zeros(40, np.int64))
    alone = [learner.decision_function(X[i : i + 1], [0])[0] for i in range(60)]
    np.testing.assert_array_equal(learner.decision_function(X, np.zeros(60, np.int64)), alone)


def test_equals_the_twin_on_a_stream_that_is_long_and_rough() -> None:
    """The bins' samples are full, task effects have swept several times, and the scale has settled."""
    stream = roughened(draw(8, n_rows=2_000, d=5, K=6, scale=3.0))
    expected, theirs = twin.learn(stream.X, stream.y, stream.task, None, 6, twin.Twin, None, True)
    learner = HedgedSharing(interactions=True, effort="fast", dtype="float64")
    assert_close(learner.test_then_train(stream.X, stream.y, stream.task), expected)
    assert_close(learner.weights_, theirs.pi_k)


@pytest.mark.parametrize("kind", [HedgedSharing, HedgedSharingRegressor])
def test_equals_the_twin_with_trees(kind: type[Any]) -> None:
    """The twin of trees is slow: as many rows as bring the second forest."""
    regression = kind is HedgedSharingRegressor
    stream = draw(3, n_rows=140, d=5, K=3, density=0.7, regression=regression)
    model, K = twin.RegressionTwin if regression else twin.Twin, int(stream.task.max()) + 1
    expected, theirs = twin.learn(stream.X, stream.y, stream.task, None, K, model, trees=True)
    assert theirs.awake[18:22].all()
    learner = kind(dtype="float64")
    assert_close(learner.test_then_train(stream.X, stream.y, stream.task), expected, 1e-10)
    assert_close(learner.weights_, theirs.pi_k, 1e-10)


def test_equals_the_twin_on_positive_targets() -> None:
    """Whose logarithms have levels, too, until a target is not positive; one is far off."""
    stream = draw(7, n_rows=160, d=4, K=5, regression=True)
    y = np.exp(1.0 + 0.5 * stream.y)
    y[60], weight = 1e4, drawn_weights(len(y))
    weight[np.unique(stream.task, return_index=True)[1]] = 0.5
    for last in (1.0, 0.0):
        y[120] = last
        expected, _ = twin.learn(stream.X, y, stream.task, None, 5, twin.RegressionTwin, weight, False)
        learner = HedgedSharingRegressor(interactions=False, effort="fast", dtype="float64")
        assert_close(learner.test_then_train(stream.X, y, stream.task, sample_weight=weight), expected, 1e-9)
        state: Any = learner._model
        assert state.core.state.dense.logs[BROKEN] == (last == 0.0)


@pytest.mark.parametrize("kind", ["counts", "amounts"])
def test_counts_and_amounts_are_answered_within_their_bounds(kind: str) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(300, 2)), rng.integers(3, size=300)
    y = {"counts": rng.poisson(np.exp(X[:, 0])).astype(float), "amounts": np.exp(2.0 * X[:, 0])}[kind]
    learner = HedgedSharingRegressor(interactions=False)
    answers, least = learner.test_then_train(X, y, task), 0.5 * np.minimum.accumulate(y)
    expected, _ = twin.learn(X, y, task, None, 3, twin.RegressionTwin, None, False)
    assert_close(answers, expected, 1e-9)
    assert (answers[10:] >= least[9:-1]).all()
    assert (answers[10:] == least[9:-1]).any()
    rows, several = np.column_stack([np.linspace(-9.0, 0.0, 50), np.zeros(50)]), np.repeat([0, 7], 25)
    found = learner.predict(rows, several)
    assert found.min() == least[-1]
    assert learner.predict_one(rows[0], 0) == pytest.approx(learner.explain_one(rows[0], 0).decision)
    again = HedgedSharingRegressor(interactions=False)
    for first in range(0, 300, 7):
        again.partial_fit(X[first : first + 7], y[first : first + 7], task[first : first + 7])
    np.testing.assert_array_equal(again.predict(rows, several), found)
    assert learner.partial_fit(X[:1], [-1.0], task[:1]).predict(rows, several).min() < 0.0


def test_the_best_of_an_expert_with_a_weight_has_the_likelihood_1() -> None:
    """However far all forecasts lie from the target, and however unlikely all are."""
    sharpen: Any = getattr(mixing.sharpen, "py_func", mixing.sharpen)
    gaussian: Any = getattr(mixing.gaussian, "py_func", mixing.gaussian)
    likelihood = np.array([1e-9, 0.5e-9, 1.0, 1.0, 0.25e-9])
    sharpen(likelihood, np.array([0.5, 0.5, 0.0, 0.3, 0.2]), np.array([1.0, 1.0, 1.0, 0.0, 1.0]), 2.0)
    assert_close(likelihood, [1.0, 0.25, 1.0, 1.0, 0.0625])
    nothing = np.zeros(2)
    sharpen(nothing, np.ones(2), np.ones(2), 3.0)
    assert nothing.tolist() == [1.0, 1.0]
    forecasts = np.array([-100.0, -101.0, 0.0])
    gaussian(forecasts, np.array([1.0, 1.0, 0.0]), 0.0, 100.0)
    assert_close(forecasts, [1.0, np.exp(-2.01 / 2), 1.0])


def test_a_heavy_mistake_does_not_shoot_over() -> None:
    """After many rows of one label, one of the other that counts 1,000 times turns the experts, not by 1,000 steps."""
    x, learner = np.ones(3), HedgedSharing()
    for _ in range(300):
        learner.learn_one(x, 1, "a")
    margins = learner.experts_coef("a") @ [0.3, *x / np.sqrt(3)]
    assert (margins > 2.0).all()
    learner.learn_one(x, 0, "a", sample_weight=1000.0)
    margins = learner.experts_coef("a") @ [0.3, *x / np.sqrt(3)]
    slow = np.array(learner.linear_experts_) == "adagrad-pooled-slow"  # its steps are a tenth of those of the others
    assert (margins[~slow] < -2.0).all(), margins
    assert (margins[slow] < 0.0).all(), margins
    assert (margins > -10.0).all()


def test_class_weights_serve_a_rare_label_no_worse_than_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=5000) > 6.0
    repeats = np.where(y, 20, 1)
    rows = np.repeat(np.arange(5000), repeats)
    weighted = HedgedSharing().test_then_train(X, y, sample_weight=repeats)
    repeated = HedgedSharing().test_then_train(X[rows], y[rows])[np.append(True, np.diff(rows) != 0)]
    losses = [np.average(np.logaddexp(0, np.where(y, -f, f)), weights=repeats) for f in (weighted, repeated)]
    assert losses[0] < losses[1]


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-9), (1e6, 1.0), (-3.0, 1e6)])
def test_scale_and_offset_of_real_targets_do_not_matter(offset: float, scale: float) -> None:
    stream = draw(5, n_rows=2000, K=5, regression=True)
    plain, moved = HedgedSharingRegressor(), HedgedSharingRegressor()
    expected = plain.test_then_train(stream.X, stream.y, stream.task)
    found = (moved.test_then_train(stream.X, offset + scale * stream.y, stream.task) - offset) / scale
    late = slice(1000, None)
    assert np.sqrt(np.mean((found - stream.y)[late] ** 2)) < 1.1 * np.sqrt(np.mean((expected - stream.y)[late] ** 2))


@pytest.mark.parametrize(
    ("relatedness", "right", "wrong"), [(1.0, "pooled", "independent"), (0.0, "independent", "pooled")]
)
def test_the_regressor_shares_where_sharing_pays(relatedness: float, right: str, wrong: str) -> None:
    """Beats the baseline that is wrong for the stream, and comes close to or beats the one that is right."""
    rng = np.random.default_rng(7)
    W = np.sqrt(relatedness) * rng.normal(size=8) + np.sqrt(1 - relatedness) * rng.normal(size=(12, 8))
    X, task = rng.normal(size=(3000, 8)), rng.integers(12, size=3000)
    y = np.einsum("ij,ij->i", X, W[task]) + 0.5 * rng.normal(size=3000)
    learners = {r: MultitaskRegressor(relation=r, eta=0.05) for r in (right, wrong)} | {
        "hedged": HedgedSharingRegressor()
    }
    mse = {name: np.mean((learner.test_then_train(X, y, task) - y) ** 2) for name, learner in learners.items()}
    assert mse["hedged"] < min(mse[wrong], 1.1 * mse[right])


def test_the_regressor_stays_finite_on_any_values() -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (300, 6)) * 10.0 ** rng.integers(-150, 151, (300, 6))
    for y in (10.0 ** rng.integers(-150, 151, 300), np.zeros(300), np.full(300, 1e150)):
        learner = HedgedSharingRegressor()
        assert np.isfinite(learner.test_then_train(X, y, rng.integers(4, size=300))).all()
        assert np.isfinite(learner.predict(X, rng.integers(6, size=300))).all()


def test_one_probability_a_label() -> None:
    stream = draw(6, n_rows=100, K=3, protocol="one")
    learner = HedgedSharing().partial_fit(stream.X, stream.y, stream.task)
    for x, k in zip(stream.X[:5], stream.task[:5], strict=True):
        expected = learner.predict_proba(x[None], [k])[0]
        found = learner.predict_proba_one(x, k)
        assert_type(found, dict[Any, float])  # for mypy: it was Any
        assert list(found) == [-1.0, 1.0]
        np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12)


def test_wild_scales_do_not_hurt() -> None:
    data = make_related_tasks(n_tasks=8, n_features=12, n_rows=3000, relatedness=0.8, noise=0.0, seed=2)
    scales = 10.0 ** np.arange(-6, 6)
    plain, wild = HedgedSharing(), HedgedSharing()
    errors = [
        float(((learner.test_then_train(X, data.y, data.task) >= 0) != (data.y > 0)).mean())
        for learner, X in ((plain, data.X), (wild, data.X * scales))
    ]
    assert errors[1] < errors[0] + 0.1


def test_values_of_any_size_stay_finite() -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (300, 6)) * 10.0 ** rng.integers(-150, 151, (300, 6))
    X[::7] = 0.0
    learner = HedgedSharing()
    assert np.isfinite(learner.test_then_train(X, np.resize([1.0, -1.0, -1.0], 300), rng.integers(4, size=300))).all()
    assert np.isfinite(learner.decision_function(X, rng.integers(6, size=300))).all()


def test_regressions_stay_positive_definite() -> None:
    rng = np.random.default_rng(1)
    n = 100_000
    X, y = sp.random_array((n, 20), density=0.2, format="csr", rng=rng), rng.choice([-1.0, 1.0], n)
    learner = HedgedSharing().partial_fit(X, y, rng.integers(3, size=n))
    for covariance in core_of(learner).state.covariances.reshape(-1, N_INPUTS, TURN)[:, :, :N_INPUTS]:
        assert np.allclose(covariance, covariance.T, rtol=1e-6)
        assert np.linalg.eigvalsh((covariance + covariance.T) / 2).min() > 0


def test_forecasts_are_calibrated() -> None:
    rng = np.random.default_rng(2)
    n = 20_000
    X, task = rng.normal(size=(n, 5)), rng.integers(10, size=n)
    w = rng.normal(size=5) + 0.5 * rng.normal(size=(10, 5))
    p = 1 / (1 + np.exp(-np.einsum("ij,ij->i", X, w[task])))
    y = np.where(rng.random(n) < p, 1, 0)
    learner = HedgedSharing()
    forecast = 1 / (1 + np.exp(-learner.test_then_train(X, y, task)))[n // 2 :]
    for low in np.arange(0.1, 0.9, 0.1):
        inside = (forecast >= low) & (forecast < low + 0.1)
        error = y[n // 2 :][inside].mean() - forecast[inside].mean()
        assert abs(error) < 4 * 0.5 / np.sqrt(inside.sum())  # four standard errors
    proba = learner.predict_proba(X[:50], task[:50])
    assert_close(proba.sum(axis=1), np.ones(50))
    assert ((proba[:, 1] >= 0.5) == (learner.predict(X[:50], task[:50]) == 1)).all()


@pytest.mark.parametrize(("relatedness", "winner"), [(1.0, "independent"), (0.0, "pooled")])
def test_it_shares_where_sharing_pays(relatedness: float, winner: str) -> None:
    """Beats the baseline that is wrong for the stream by far, and comes close to the one that is right."""
    data = make_related_tasks(n_tasks=10, n_features=15, n_rows=6000, relatedness=relatedness, noise=0.0, seed=4)
    right = "pooled" if winner == "independent" else "independent"
    learners = {r: MultitaskPerceptron(relation=r, loss="logistic", eta=0.5) for r in (winner, right)}
    learners["hedged"] = HedgedSharing()
    errors = {
        name: float(((learner.test_then_train(data.X, data.y, data.task) >= 0) != (data.y > 0)).mean())
        for name, learner in learners.items()
    }
    assert errors["hedged"] < errors[winner]
    assert errors["hedged"] < errors[right] + 0.02


def test_memory_goes_by_the_pairs_that_occur() -> None:
    """100,000 tasks x 1,000,000 features: dense weights would need 6 TB."""
    rng = np.random.default_rng(5)
    n, d = 100_000, 1_000_000
    indices = (rng.integers(d // 2, size=(n, 2)) + np.array([0, d // 2])).ravel()
    X = sp.csr_matrix((np.ones(2 * n), indices, np.arange(0, 2 * n + 1, 2)), shape=(n, d))
    learner = HedgedSharing().partial_fit(X, rng.choice([-1.0, 1.0], n), np.arange(n))
    assert len(learner.tasks_) == n
    assert sum(array.nbytes for array in leaves(core_of(learner).state)) < 3e8


@pytest.mark.parametrize("is_sparse", [True, False])
def test_room_for_all_rows_is_made_at_once(is_sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as it is missed, and not for more pairs than there are tasks times features."""
    asked = []
    with_capacity = record_table.with_capacity

    def noted(own: Any, n: int) -> Any:
        asked.append((int(own.used[0]), n))
        return with_capacity(own, n)

    monkeypatch.setattr(record_table, "with_capacity", noted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 40)) * (rng.random((2_000, 40)) < 0.5)
    y, task = rng.choice([-1.0, 1.0], 2_000), np.arange(2_000) % 50
    learner = HedgedSharing().partial_fit(sp.csr_matrix(X) if is_sparse else X, y, task)
    assert core_of(learner).state.own.used[0] == 1 + 50 * 41
    assert asked == [(used, 50 * 41 - used) for used, _ in asked]
    assert len(asked) == 1
    asked.clear()
    few = HedgedSharing().partial_fit(sp.csr_matrix(X[:60]), y[:60], np.arange(60))
    assert len(asked) == 1
    assert core_of(few).state.own.used[0] == 1 + np.count_nonzero(X[:60]) + 60
    assert sum(asked[0]) <= 1 + np.count_nonzero(X[:60]) + 60


@pytest.mark.parametrize(
    ("n_features", "interactions", "there"), [(31, False, True), (32, False, False), (32, "auto", True)]
)
def test_there_are_matrices_while_few_features_have_come(n_features: int, interactions: Any, there: bool) -> None:
    stream = draw(1, n_rows=40, d=n_features, K=2, protocol="one")
    learner = HedgedSharing(interactions=interactions).partial_fit(stream.X, stream.y, stream.task)
    pooled, own = learner.experts_coef(learner.tasks_[0])[-2:]
    assert pooled.any() == own.any() == there


def test_a_forgotten_task_leaves_the_others_as_they_were() -> None:
    stream = draw(6, n_rows=300, K=4, protocol="one")
    learner = HedgedSharing(interactions=False).partial_fit(stream.X, stream.y, stream.task)
    before = learner.decision_function(stream.X[:20], np.full(20, 3))
    learner.forget_task(1)
    assert learner.tasks_ == [0, 2, 3]
    assert_close(learner.decision_function(stream.X[:20], np.full(20, 3)), before)


def test_of_a_forgotten_task_no_record_is_left() -> None:
    stream = draw(6, n_rows=300, K=4, protocol="one")
    learner = HedgedSharing().partial_fit(stream.X, stream.y, stream.task)
    crossed = core_of(learner).state.crossed
    serial, k = crossed.own[:, SERIAL], learner.tasks_.index(1)
    mine = crossed.serial[k]
    assert 100 < (serial == mine).sum() < (serial > 0).sum()
    before = learner.decision_function(stream.X[:100], np.full(100, 3))
    learner.forget_task(1)
    state = core_of(learner).state
    assert not (state.crossed.own[:, SERIAL] == mine).any()
    assert state.dense.columns.full.counters[1] == 3
    after = learner.decision_function(stream.X[:100], np.full(100, 3))  # few of its records were also the others'
    assert np.median(np.abs(after - before)) < 1e-12


@pytest.mark.parametrize(
    ("kind", "is_sparse", "width"),
    [
        (HedgedSharing, True, 70),
        (HedgedSharing, False, 5),
        (HedgedSharingRegressor, True, 5),
        (HedgedSharingRegressor, False, 70),
        (HedgedSharing, False, 300),
    ],
)
def test_two_threads_learn_the_same_bits_as_one(
    monkeypatch: pytest.MonkeyPatch, kind: type[Any], is_sparse: bool, width: int
) -> None:
    """Answers and model, whatever the blocks and pieces, and though the tables get too full on the way."""
    rng = np.random.default_rng(3)
    X = sp.random(900, width, 0.6, "csr", random_state=rng) if is_sparse else rng.normal(size=(900, width))
    y, task = rng.normal(size=900), rng.integers(30, size=900)
    y = np.sign(y) if kind is HedgedSharing else y
    in_threads = []
    monkeypatch.setattr(cores, "n_cores", lambda: 2)
    monkeypatch.setattr(pipeline, "START", 100)
    variants = [(2**30, 0, 0, 2**12), (0, 64, 2**17, 2**12), (0, 2**16, 300, 130), (0, 2**16, 2**17, 450)]
    for fewest, places, crossed, piece in variants:
        monkeypatch.setattr(pipeline, "FEWEST", fewest)
        monkeypatch.setattr(row, "PLACES", places)
        monkeypatch.setattr(row, "CROSSED_PLACES", crossed)
        monkeypatch.setattr(algorithm, "PIECE", piece)
        learner = kind()
        with patch.object(pipeline, "learn_in_blocks", wraps=pipeline.learn_in_blocks) as spy:
            answers = learner.test_then_train(X, y, task)
            learner.partial_fit(X, -y, task, sample_weight=drawn_weights(900))
        in_threads.append((spy.call_count, answers, leaves(core_of(learner).pack(Size(30, width)))))
    (none, answers, state), *others = in_threads
    assert none == 0
    for count, found, arrays in others:
        assert count > 1  # tables get too full
        np.testing.assert_array_equal(found, answers)
        for one, other in zip(state, arrays, strict=True):
            np.testing.assert_array_equal(one, other)
