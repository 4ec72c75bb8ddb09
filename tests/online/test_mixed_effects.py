"""MixedEffects against its twin and against the posterior of all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.streams import Stream, assert_close, draw, drawn_weights, roughened
from tests.twins.mixed_effects import Twin, learn

from shoal import MixedEffects, MixedEffectsRegressor
from shoal.model.algorithm import Size
from shoal.online.mixed_effects import effects
from shoal.online.mixed_effects.effects import COLUMNS, OMEGA, SLOTS
from shoal.online.mixed_effects.learner import LABELS, Settings, settings_of


def implicit(params: Any) -> Settings:
    settings = settings_of(params, regression=False)
    return settings._replace(rule=settings.rule._replace(match=False))


class _Implicit(MixedEffects):
    algorithm = LABELS._replace(settings=implicit)


def compare(learner: Any, stream: Stream, twin: Twin, *, sparse: bool, weight: np.ndarray | None = None) -> None:
    y = stream.y if twin.regression else (stream.y > 0).astype(float)
    rows = np.flatnonzero(weight if weight is not None else np.ones(len(y)))
    X = stream.sparse if sparse else stream.X
    said = learner.test_then_train(X, stream.y, stream.task, sample_weight=weight)
    expected = learn(stream.X[rows], y[rows], stream.task[rows], twin, None if weight is None else weight[rows])
    assert_close(said[rows], expected, 1e-9)
    state = learner._model.core.state.effects
    d = state.counters[COLUMNS]
    assert_close(state.spread[OMEGA, :d, :d], twin.Omega, 1e-9)
    assert_close(state.mean[:d], twin.mu, 1e-9)
    for k, task in twin.tasks.items():
        assert_close(state.own[state.slot[k] - 1, :d, :d], task.P(), 1e-9)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("regression", [False, True], ids=["labels", "targets"])
def test_the_twin(regression: bool, sparse: bool) -> None:
    """Through two sweeps; a feature comes late. Dense rows have values that repeat, and one that is constant."""
    stream = draw(3, n_rows=700, K=30, d=9, protocol="growing", density=0.3 if sparse else 1.0, regression=regression)
    stream = stream if sparse else roughened(stream)
    stream.X[:100, 4] = 0.0
    learner: Any = MixedEffectsRegressor() if regression else MixedEffects()
    compare(
        learner, stream._replace(y=3.0 + 20.0 * stream.y if regression else stream.y), Twin(regression), sparse=sparse
    )


@pytest.mark.parametrize("regression", [False, True], ids=["labels", "targets"])
def test_weights_and_the_twin(regression: bool) -> None:
    stream = draw(4, n_rows=150, d=8, regression=regression)  # with the constant one more than a whole turn
    learner: Any = MixedEffectsRegressor() if regression else MixedEffects()
    compare(learner, stream, Twin(regression), sparse=False, weight=drawn_weights(len(stream.y)))


def test_the_implicit_step_and_the_twin() -> None:
    compare(_Implicit(), draw(5, n_rows=300), Twin(False, match=False), sparse=False)


def test_odd_targets_are_clipped_as_in_the_twin() -> None:
    stream = draw(6, n_rows=200, regression=True)
    stream.y[[50, 51, 120]] = [1e6, -1e5, 3e3]
    stream.X[150, 2] = 1e4
    learner = MixedEffectsRegressor()
    compare(learner, stream, Twin(True), sparse=False)
    assert np.abs(learner.predict(stream.X[:150], stream.task[:150])).max() < 50.0


def test_the_posterior_of_all_rows() -> None:
    """Signs as features have the r.m.s. 1, so that rows stay; the constant's prior mean is the first target."""
    rng, K, d, variance = np.random.default_rng(0), 6, 5, 0.7
    X, task = np.sign(rng.normal(size=(300, d))), rng.integers(K, size=300)
    w = rng.normal(size=d + 1) + 0.5 * rng.normal(size=(K, d + 1))
    x = np.column_stack([np.ones(300), X])
    y = 50.0 + 3.0 * np.einsum("ij,ij->i", x, w[task]) + rng.normal(size=300)
    learner = MixedEffectsRegressor(covariance=variance).partial_fit(X, y, task)
    center, unit = y[:10].mean(), y[:10].std()
    columns = np.hstack([x, *(x * (task == k)[:, None] for k in learner.tasks_)])
    prior = np.concatenate([np.full(d + 1, 1 / effects.PRIOR), np.full(K * (d + 1), 1 / variance)])
    mean = np.zeros(len(prior))
    mean[0] = (y[0] - center) / unit
    cov = np.linalg.inv(np.diag(prior) + columns.T @ columns)
    mode = cov @ (prior * mean + columns.T @ ((y - center) / unit))
    assert_close(learner.intercept_shared_, center + unit * mode[0], 1e-9)
    assert_close(learner.coef_shared_, unit * mode[1 : d + 1], 1e-9)
    own = mode[d + 1 :].reshape(K, d + 1)
    assert_close(learner.intercept_task_, unit * own[:, 0], 1e-9)
    assert_close(learner.coef_task_, unit * own[:, 1:], 1e-9)
    state: Any = learner._model
    assert_close(state.core.state.effects.covariance[: d + 1, : d + 1], cov[: d + 1, : d + 1], 1e-9)
    new = np.sign(rng.normal(size=(K, d)))
    w = np.column_stack(
        [learner.intercept_shared_ + learner.intercept_task_, learner.coef_shared_ + learner.coef_task_]
    )
    expected = np.einsum("ij,ij->i", np.column_stack([np.ones(K), new]), w)
    assert_close(learner.predict(new, learner.tasks_), expected, 1e-12)


def test_the_covariance_and_the_noise_are_found() -> None:
    """To 15 % of deviations, of which 400 tasks of 20 rows tell 4 % themselves."""
    rng, K = np.random.default_rng(1), 400
    X, task = rng.normal(size=(20 * K, 2)), rng.permutation(np.repeat(np.arange(K), 20))
    L = np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.0], [0.0, -0.6, 0.2]])
    w = np.array([2.0, 1.0, -1.0]) + rng.normal(size=(K, 3)) @ L.T
    y = w[task, 0] + np.einsum("ij,ij->i", X, w[task, 1:]) + 0.5 * rng.normal(size=20 * K)
    learner = MixedEffectsRegressor().partial_fit(X, y, task)
    deviations = np.sqrt(np.diag(learner.covariance_))
    np.testing.assert_allclose(deviations, np.sqrt(np.diag(L @ L.T)), rtol=0.15)
    assert learner.covariance_[1, 2] / (deviations[1] * deviations[2]) < -0.75
    np.testing.assert_allclose(learner.noise_, 0.25, rtol=0.1)
    errors = {name: np.square(other.test_then_train(X, y, task) - y)[4000:].mean() for name, other in
              {"learned": MixedEffectsRegressor(), **learner.baselines()}.items()}  # fmt: skip
    assert errors["learned"] < 0.96 * min(errors["independent"], errors["pooled"])


def test_one_pass_is_near_to_maximum_likelihood() -> None:
    """Common weights within three standard errors of statsmodels' mixed model, tasks' deviations within 0.06."""
    mixed_linear_model = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    rng, K = np.random.default_rng(2), 60
    X, task = rng.normal(size=(25 * K, 2)), rng.permutation(np.repeat(np.arange(K), 25))
    w = np.array([5.0, 1.0, -1.0]) + [1.0, 0.5, 0.2] * rng.normal(size=(K, 3))
    x = np.column_stack([np.ones(len(task)), X])
    y = np.einsum("ij,ij->i", x, w[task]) + 0.7 * rng.normal(size=len(task))
    batch = mixed_linear_model.MixedLM(y, x, groups=task, exog_re=x).fit()
    learner = MixedEffectsRegressor().partial_fit(X, y, task)
    common = np.concatenate([[learner.intercept_shared_], learner.coef_shared_])
    assert (np.abs(common - batch.fe_params) < 3 * batch.bse_fe).all()
    deviations, expected = (np.sqrt(np.diag(found)) for found in (learner.covariance_, batch.cov_re))
    np.testing.assert_allclose(deviations, expected, atol=0.06)
    np.testing.assert_allclose(learner.noise_, batch.scale, rtol=0.15)


@pytest.mark.parametrize("regression", [False, True], ids=["labels", "targets"])
def test_contributions_sum_to_the_decision(regression: bool) -> None:
    """Also of a feature that came in no row before."""
    stream = draw(4, n_rows=150, d=4, regression=regression)
    stream.X[:, 2] = 0.0
    learner: Any = MixedEffectsRegressor() if regression else MixedEffects()
    learner.partial_fit(stream.X, 3.0 + 2.0 * stream.y if regression else stream.y, stream.task)
    for row in np.array([[1.0, -2.0, 0.0, 0.5], [1.0, 0.0, 7.0, 0.0], [0.0, 0.0, 0.0, 0.0]]):
        values = learner.predict([row], [1]) if regression else learner.decision_function([row], [1])
        found = learner.explain_one(row, 1)
        assert_close(sum(one.shared + one.own for one in found.contributions), values[0], 1e-9)


def test_tasks_beyond_memory_are_answered_by_common_weights() -> None:
    stream = draw(7, n_rows=200, K=8, regression=True)
    some = 3 * effects.slot_bytes(8) / 1e6
    learner = MixedEffectsRegressor(memory=some).partial_fit(*stream[:3])
    owners = np.abs(learner.coef_task_).max(axis=1) > 0
    assert owners.tolist() == [True] * 3 + [False] * 5
    others = stream.task >= 3
    unseen = learner.predict(stream.X[others], np.full(others.sum(), 99))
    assert_close(learner.predict(stream.X[others], stream.task[others]), unseen)
    wide = learner.add_features(9)  # larger matrices leave memory for fewer
    wide.partial_fit(np.random.default_rng(0).normal(size=(3, 16)), [0.0, 1.0, 2.0], [0, 1, 2])
    state: Any = wide._model
    assert state.core.state.effects.counters[SLOTS] == 0 < 3
    assert np.isfinite(wide.predict(np.ones((1, 16)), [0])).all()


def test_what_a_forgotten_task_added_to_the_covariance_goes() -> None:
    stream = draw(8, n_rows=200, K=6)
    learner = MixedEffects().partial_fit(*stream[:3])
    learner.forget_task(2)
    core: Any = learner._model
    state = core.core.state.effects
    n = state.counters[SLOTS]
    assert n == 5
    assert_close(state.spread[effects.SCATTER], state.own[:n].sum(axis=0), 1e-10)
    u = state.vectors[:n, effects.EFFECT]
    assert_close(state.spread[effects.OUTER], u.T @ u, 1e-10)


def test_many_features_are_refused() -> None:
    learner = MixedEffects()
    with pytest.raises(ValueError, match="X has 512 features, and full matrices take at most 511: use HedgedSharing"):
        learner.partial_fit(np.ones((2, 512)), [0, 1], [0, 1])
    assert not hasattr(learner, "coef_shared_")


def test_packing_keeps_what_is_in_use() -> None:
    learner = MixedEffectsRegressor().partial_fit(*draw(9, regression=True)[:3])
    model: Any = learner._model
    packed = model.core.pack(Size(5, 7))
    assert packed.effects.own.shape == (5, 8, 8)
    grown = effects.with_room(packed.effects, 16, 9)
    for name in ("mean", "covariance", "own", "vectors"):
        old, new = getattr(packed.effects, name), getattr(grown, name)
        np.testing.assert_array_equal(new[tuple(map(slice, old.shape))], old)
        assert np.count_nonzero(new) == np.count_nonzero(old)
