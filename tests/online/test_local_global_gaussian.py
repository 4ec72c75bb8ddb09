"""LocalGlobalGaussian against its twin in every option; its covariances, feature maps and label queries."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import PolynomialFeatures
from tests.cases import saved
from tests.streams import Stream, assert_close, draw, own_parameters
from tests.twins import local_global_gaussian as twin

import shoal
from shoal import LocalGlobalGaussian
from shoal.model.table import read_table

OPTIONS = [
    {"loss": loss, "covariance": covariance, "update": update}
    for loss, covariance, update in product(["squared_hinge", "hinge"], ["full", "diagonal"], ["mistaken", "all"])
]
RFF = {"map": "rff", "gamma": 0.05, "size": 40}
NYSTROM = {"map": "nystrom", "gamma": 0.05, "size": 25}
MAPS: dict[str, Any] = {"linear": "linear", "rff": RFF, "nystrom": NYSTROM}


def compare(learner: LocalGlobalGaussian, stream: Stream, phi: np.ndarray, *, sparse: bool, tolerance: float) -> None:
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    p = learner.get_params()
    expected, model, queried, updates = twin.learn(
        phi, stream.y, stream.task, stream.rows_of_rounds, lam=p["lam"], eps=p["eps"], h=p["h"], loss=p["loss"],
        covariance=p["covariance"], update=p["update"], theta_rule=p["theta"],
        seed=int(learner._model.core.state.random[0]),
    )  # fmt: skip
    S = model.S0 + model.S
    shown = np.diagonal(S, axis1=1, axis2=2) if p["covariance"] == "diagonal" else S
    assert_close(decisions, expected, tolerance)
    assert_close(learner.coef_shared_, model.mu0, tolerance)
    assert_close(learner.coef_task_, model.mu, tolerance)
    assert_close(learner.covariance_, shown, tolerance)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_queries_ == queried.sum()
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o.values()))
def test_equals_twin_in_every_option(options: dict, protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.4 if sparse else 1.0)  # sparse: has empty rows
    compare(LocalGlobalGaussian(lam=0.7, eps=0.6, **options), stream, stream.X, sparse=sparse, tolerance=1e-12)


@pytest.mark.parametrize("protocol", ["one", "all", "growing"])
@pytest.mark.parametrize("theta", ["post", "pre"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_queries_equal_the_twin(covariance: str, theta: str, protocol: str) -> None:
    stream = draw(2, n_rows=300, protocol=protocol)
    learner = LocalGlobalGaussian(h=0.2, theta=theta, covariance=covariance, random_state=3)
    compare(learner, stream, stream.X, sparse=False, tolerance=1e-12)
    assert 0.2 * len(stream.y) < learner.n_queries_ < 0.95 * len(stream.y)


@given(
    seed=st.integers(0, 10**6), lam=st.floats(0.05, 20), eps=st.floats(0.05, 20), h=st.floats(0.01, 10),
    options=st.sampled_from(OPTIONS), protocol=st.sampled_from(["one", "some", "all", "growing"]),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(seed, lam, eps, h, options, protocol) -> None:
    stream = draw(seed, K=4, n_rows=40, protocol=protocol)
    learner = LocalGlobalGaussian(lam=lam, eps=eps, h=h, random_state=seed, **options)
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    _, model, queried, _ = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, lam=lam, eps=eps, h=h, **options,

        seed=int(learner._model.core.state.random[0]),
    )  # fmt: skip
    assert_close(learner.coef_, model.mu0 + model.mu, 1e-10)
    assert learner.n_queries_ == queried.sum()


# ---- the Gaussians -------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), options=st.sampled_from(OPTIONS))
def test_covariances_decrease_and_stay_positive_definite(seed: int, options: dict) -> None:
    """Spec 8.8, round by round."""
    stream = draw(seed, n_rows=60)
    learner = LocalGlobalGaussian(lam=0.2, **options).add_tasks(range(5))
    before = None
    for rows in stream.rows_of_rounds:
        learner.partial_fit(stream.X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
        now = learner.covariance_
        if learner.covariance == "full":
            assert (np.linalg.eigvalsh(now) > 0).all()
            assert before is None or (np.linalg.eigvalsh(before - now) > -1e-13).all()
        else:
            assert (now > 0).all()
            assert before is None or (before >= now).all()
        before = now


def test_positive_definite_after_many_rounds() -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(100_000, 6)) * 10.0 ** np.arange(-3, 3), rng.integers(3, size=100_000)
    y = np.where(rng.random(100_000) < 0.5, 1, -1)
    learner = LocalGlobalGaussian(lam=0.01, update="all").fit(X, y, task)
    precision = np.eye(6) + X.T @ X / 0.01
    S, expected = learner.covariance_shared_, np.linalg.inv(precision)
    scale = np.sqrt(np.diag(expected))
    assert np.linalg.eigvalsh(S / np.outer(scale, scale)).min() > 0
    np.testing.assert_allclose(S / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-6)


VALUES = st.one_of(
    st.just(0.0), st.floats(-10, 10).filter(lambda v: v == 0 or abs(v) > 1e-150),
    st.builds(lambda sign, e: sign * 10.0**e, st.sampled_from([-1, 1]), st.floats(-150, 150)),
)  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
@given(
    X=st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=30), options=st.sampled_from(OPTIONS),
    lam=st.sampled_from([1e-12, 0.01, 1.0, 1e12]), eps=st.sampled_from([1e-12, 1.0, 1e12]), data=st.data(),
)  # fmt: skip
def test_every_finite_stream_leaves_everything_finite(name, X, options, lam, eps, data) -> None:
    n = len(X)
    y = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    rounds = np.arange(n) // data.draw(st.integers(1, 4))
    task = np.arange(n) - np.concatenate([[0], np.flatnonzero(np.diff(rounds)) + 1])[rounds]
    learner = LocalGlobalGaussian(lam=lam, eps=eps, h=1.0, features=MAPS[name], random_state=0, **options)
    decisions = learner.test_then_train(X, y, task, rounds=rounds)
    assert np.isfinite(decisions).all()
    assert np.isfinite(learner.decision_function(X, task)).all()
    assert all(np.isfinite(array).all() for array in learner._model.core.state if array.dtype == np.float64)
    assert np.isfinite(learner.covariance_).all()


def test_many_tasks_constant_rows_one_label() -> None:
    learner = LocalGlobalGaussian().fit(np.ones((1000, 3)), np.ones(1000), np.arange(1000) % 500)
    assert (learner.coef_ == 0).all()  # a margin of 0 predicts +1
    learner = LocalGlobalGaussian().fit(np.ones((1000, 3)), -np.ones(1000), np.arange(1000) % 500)
    assert (learner.predict(np.ones((1, 3)), [7]) == -1).all()


def test_full_covariances_of_very_wide_rows_are_refused() -> None:
    X = sp.csr_matrix(([1.0, 2.0], ([0, 1], [5, 2_999_999])), shape=(2, 3_000_000))  # 72 TB
    with pytest.raises(ValueError, match=r"no memory for the covariances .* use covariance='diagonal'"):
        LocalGlobalGaussian().fit(X, [0, 1])
    learner = LocalGlobalGaussian(covariance="diagonal").fit(X, [0, 1])
    assert learner.coef_[0, 5] < 0


def test_baselines_lack_one_of_the_gaussians() -> None:
    stream = draw(3, protocol="all")
    both = LocalGlobalGaussian().baselines()
    own = both["independent"].fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    pooled = both["pooled"].fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert (own.coef_shared_ == 0).all()
    assert (pooled.coef_ == pooled.coef_[0]).all()
    for k in own.tasks_:
        rows = stream.task == k
        assert_close(own.coef_[k], LocalGlobalGaussian().baselines()["independent"]
                     .fit(stream.X[rows], stream.y[rows]).coef_[0])  # fmt: skip
    nobody = np.full(len(stream.y), "nobody")
    assert_close(pooled.decision_function(stream.X, nobody), pooled.decision_function(stream.X, stream.task))


def test_unseen_tasks_are_answered_by_the_global_gaussian() -> None:
    stream = draw(4)
    learner = LocalGlobalGaussian().fit(stream.X, stream.y, stream.task)
    nobody = np.full(len(stream.y), "nobody")
    assert_close(learner.decision_function(stream.X, nobody), stream.X @ learner.coef_shared_)


@given(seed=st.integers(0, 10**6), options=st.sampled_from([o for o in OPTIONS if o["covariance"] == "full"]))
def test_rotation_changes_nothing(seed: int, options: dict) -> None:
    """Full covariances know no axes."""
    stream = draw(seed, n_rows=40)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(7, 7)))
    plain = LocalGlobalGaussian(**options).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    turned = LocalGlobalGaussian(**options).fit(stream.X @ Q, stream.y, stream.task, rounds=stream.rounds)
    assert_close(turned.coef_ @ Q.T, plain.coef_, 1e-9)


# ---- label queries -------------------------------------------------------------------------------------------


def test_infinite_h_asks_for_everything_and_is_supervised() -> None:
    """Spec 8.8; a huge h asks for everything too."""
    stream = draw(5)
    learner = LocalGlobalGaussian().fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert learner.n_queries_ == len(stream.y)
    assert learner.query_one(stream.X[0], 0)
    huge = LocalGlobalGaussian(h=1e300, random_state=0).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert huge.n_queries_ == len(stream.y)
    np.testing.assert_array_equal(huge.coef_, learner.coef_)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_asking_one_by_one_is_partial_fit(name: str, covariance: str) -> None:
    """The answer True is a promise, and costs the random number that `partial_fit` would have drawn."""
    stream = draw(6, n_rows=300, protocol="one")
    start, rest = slice(0, 40), range(40, len(stream.y))
    options = {"h": 0.3, "covariance": covariance, "features": MAPS[name], "random_state": 1}
    asking, fitting = (
        LocalGlobalGaussian(**options).partial_fit(stream.X[start], stream.y[start], stream.task[start])
        for _ in range(2)
    )
    if name == "nystrom":  # rows without a label enter only through `partial_fit`: compare with a full dictionary
        for learner in (asking, fitting):
            learner.partial_fit(draw(9, n_rows=400).X, draw(9, n_rows=400).y, draw(9, n_rows=400).task)
            assert learner._model.core.state.used[0] == 25
    asked = 0
    for row in rest:
        if asking.query_one(stream.X[row], stream.task[row]):
            asking.learn_one(stream.X[row], stream.y[row], stream.task[row])
            asked += 1
        fitting.learn_one(stream.X[row], stream.y[row], stream.task[row])
    assert 0 < asked < len(rest)
    assert asking.n_queries_ == fitting.n_queries_
    for name, a, b in zip(
        asking._model.core.state._fields, asking._model.core.state, fitting._model.core.state, strict=True
    ):
        if name != "counters":  # rounds without a label are not counted there
            np.testing.assert_array_equal(a, b, err_msg=name)


def test_labels_may_come_late() -> None:
    """What was asked for is learnt, however sure the model has become."""
    stream = draw(7, n_rows=200, protocol="one")
    learner = LocalGlobalGaussian(h=1e-9, random_state=0).fit(stream.X, stream.y, stream.task)
    x, other = np.zeros(7), stream.X[1] * 1e3  # a zero row is never beyond the doubt, a large one is
    assert learner.query_one(x, 0)
    before = learner.n_queries_
    assert not learner.query_one(other, 0)
    coef = learner.coef_
    learner.learn_one(other, -learner.predict_one(other, 0), 0)
    assert learner.n_queries_ == before
    assert (learner._model.core.state.granted == 0).all()
    assert (learner.coef_ != coef).any()
    coef = learner.coef_
    learner.learn_one(other, -learner.predict_one(other, 0), 0)
    np.testing.assert_array_equal(learner.coef_, coef)  # not asked for, not learnt


def test_questions_of_new_tasks_and_new_learners() -> None:
    learner = LocalGlobalGaussian(h=0.1, random_state=0)
    assert learner.query_one([1.0, 0.0], "a")
    with pytest.raises(ValueError, match="not fitted"):
        learner.predict_one([1.0, 0.0], "a")
    learner.learn_one([1.0, 0.0], 0, "a")
    assert learner.n_queries_ == 1
    assert learner.query_one([0.0, 1.0], "b")
    assert learner.tasks_ == ["a", "b"]
    with pytest.raises(ValueError, match="found NaN"):
        learner.query_one([0.0, np.nan], "c")
    assert learner.tasks_ == ["a", "b"]


@pytest.mark.parametrize("theta", ["post", "pre"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_unseen_tasks_are_asked_for_like_tasks_without_rows(covariance: str, theta: str) -> None:
    stream = draw(17, n_rows=200)
    learner = LocalGlobalGaussian(h=0.2, covariance=covariance, theta=theta, random_state=0)
    learner.fit(stream.X, stream.y, stream.task).add_tasks(["declared"])
    for x in stream.X[:20] * 2:
        values = []
        for task in ("declared", "nobody"):
            theta = np.empty(1)
            learner._model.core.confidence(learner._model.row_to_decide(x, task), theta)
            values.append(theta[0])
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def test_rate_of_questions_is_that_of_the_rule() -> None:
    """On one row, asked again and again: h/(h + theta), theta by hand."""
    stream = draw(8, n_rows=100)
    learner = LocalGlobalGaussian(h=0.5, random_state=4).fit(stream.X, stream.y, stream.task)
    x, k = stream.X[3] * 3, learner.tasks_[0]
    S0, S = learner.covariance_shared_, learner.covariance_[0] - learner.covariance_shared_
    v = sum(c / (1 + c) for c in (x @ S0 @ x, x @ S @ x))
    theta = abs(learner.coef_[0] @ x) - v / 4
    assert theta > 0.1
    rate = np.mean([learner.query_one(x, k) for _ in range(4000)])
    p = 0.5 / (0.5 + theta)
    assert abs(rate - p) < 4 * np.sqrt(p * (1 - p) / 4000)


def test_smaller_h_asks_less_and_pre_asks_more() -> None:
    stream = draw(9, n_rows=2000)
    asked = [
        LocalGlobalGaussian(h=h, theta=theta, random_state=0).fit(stream.X, stream.y, stream.task).n_queries_
        for h, theta in [(0.01, "post"), (0.1, "post"), (1.0, "post"), (1.0, "pre")]
    ]
    assert asked == sorted(asked)
    assert asked[0] < 0.7 * asked[2]


# ---- feature maps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "growing"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_mapped_learners_equal_the_twin(covariance: str, protocol: str, sparse: bool) -> None:
    stream = draw(10, protocol=protocol, density=0.5 if sparse else 1.0)
    for features in (RFF, NYSTROM):
        learner = LocalGlobalGaussian(features=features, covariance=covariance, h=0.5, random_state=2)
        learner.fit(stream.X[:2], stream.y[:2], stream.task[:2])
        seed, state = int(learner._model.core.state.random[0]), learner._model.core.state
        if features is RFF:
            phi = twin.fourier(stream.X, state.points, state.offsets)
        else:
            phi, D = twin.nystrom(stream.X, gamma=0.05, size=25, ridge=0.1, seed=seed)
            assert len(D) == 25 or sparse
        fresh = LocalGlobalGaussian(**own_parameters(learner))
        compare(fresh, stream, phi, sparse=sparse, tolerance=1e-9)
        with pytest.raises(AttributeError, match="see coef_shared_"):
            _ = fresh.coef_


def mapped(learner, stream, *, grow):
    """The features of a stream's rows."""
    core = learner._model.core
    columns = np.zeros(len(stream.y), np.int64)
    rounds = read_table(stream.X).rounds(columns, stream.y, np.arange(len(stream.y) + 1))
    pieces = core.algorithm.pieces(core.setup, core.state, rounds, grow)
    return np.concatenate([piece.rounds.values.reshape(-1, piece.rounds.width) for piece in pieces])


@given(seed=st.integers(0, 10**6), gamma=st.floats(0.01, 1.0), sparse=st.booleans())
def test_nystrom_features_are_the_kernel_on_the_dictionary(seed: int, gamma: float, sparse: bool) -> None:
    """phi(x).phi(z) = k_D(x)ᵀ K_DD⁻¹ k_D(z), which is k itself where one of the two is in the dictionary."""
    stream = draw(seed, n_rows=40, density=0.5 if sparse else 1.0)
    learner = LocalGlobalGaussian(features={"map": "nystrom", "gamma": gamma, "size": 30}, random_state=seed)
    learner.fit(stream.X, stream.y, stream.task)
    n = int(learner._model.core.state.used[0])
    Z = learner._model.core.state.points[:, :n].T
    for row in Z:
        assert (np.abs(stream.X - row).sum(axis=1) == 0).any()
    before = learner._model.core.state.used.copy()
    phi = mapped(learner, stream, grow=False)
    np.testing.assert_array_equal(learner._model.core.state.used, before)
    k = twin.gaussian_kernel(Z, stream.X, gamma)
    expected = k.T @ np.linalg.solve(twin.gaussian_kernel(Z, Z, gamma), k)
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-6)
    assert (np.linalg.norm(phi, axis=1) <= 1 + 1e-12).all()
    assert (phi[:, n:] == 0).all()


def test_growing_the_dictionary_leaves_features_as_they_were() -> None:
    """Appending a point appends a coordinate: decisions of the model do not change, bit for bit."""
    stream = draw(11, n_rows=60)
    learner = LocalGlobalGaussian(features=NYSTROM, random_state=0).fit(stream.X[:20], stream.y[:20], stream.task[:20])
    before, n = learner.decision_function(stream.X, stream.task), int(learner._model.core.state.used[0])
    mapped(learner, stream, grow=True)
    assert learner._model.core.state.used[0] > n
    np.testing.assert_array_equal(learner.decision_function(stream.X, stream.task), before)


def test_random_fourier_features_approach_the_kernel() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    learner = LocalGlobalGaussian(features={"map": "rff", "gamma": 0.3, "size": 20_000}, covariance="diagonal",
                                  random_state=0).fit(X, np.arange(30) % 2)  # fmt: skip
    phi = twin.fourier(X, learner._model.core.state.points, learner._model.core.state.offsets)
    np.testing.assert_allclose(phi @ phi.T, twin.gaussian_kernel(X, X, 0.3), atol=0.04)


def test_kernels_learn_what_lines_cannot() -> None:
    """Two rings: chance for a linear model."""
    rng = np.random.default_rng(1)
    angle, y = rng.uniform(0, 2 * np.pi, 1500), np.where(rng.random(1500) < 0.5, 1, -1)
    X = (np.where(y > 0, 1.0, 2.0) + 0.1 * rng.normal(size=1500))[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    error = {
        name: ((LocalGlobalGaussian(features=name, random_state=0).test_then_train(X, y) >= 0) != (y > 0)).mean()
        for name in MAPS
    }
    assert error["linear"] > 0.4
    assert max(error["rff"], error["nystrom"]) < 0.06


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["rff", "nystrom", "transformer"])
def test_mapped_learners_keep_the_contract(kind: str, sparse: bool, tmp_path: Path) -> None:
    """Chunks, single rows, save and load, forgetting: what the generic suite asks of learners with `coef_`."""
    stream = draw(12, n_rows=1500, protocol="growing", density=0.5)
    X = stream.sparse if sparse else stream.X
    transformer = FrozenEstimator(PolynomialFeatures(2).fit(np.zeros((1, 7))))
    features = transformer if kind == "transformer" else MAPS[kind]
    make = lambda: LocalGlobalGaussian(features=features, h=1.0, random_state=0)  # noqa: E731
    whole = make().partial_fit(X, stream.y, stream.task, rounds=stream.rounds)
    chunked = make()
    for rows in np.array_split(np.arange(len(stream.y)), 5):
        first, last = np.searchsorted(stream.rounds, stream.rounds[rows[[0, -1]]])
        last = len(stream.y) if rows[-1] == len(stream.y) - 1 else last
        piece = slice(first, last)
        chunked.partial_fit(X[piece], stream.y[piece], stream.task[piece], rounds=stream.rounds[piece])
    np.testing.assert_array_equal(chunked.coef_task_, whole.coef_task_)
    assert chunked.n_queries_ == whole.n_queries_ < len(stream.y)
    one, decisions = whole.decision_one(stream.X[5], 0), whole.decision_function(X, np.zeros(len(stream.y), int))
    np.testing.assert_allclose(one, decisions[5], rtol=1e-10)
    if kind == "transformer":
        with pytest.raises(ValueError, match=r"cannot save parameter.features"):
            whole.save(tmp_path / "model")
        np.testing.assert_array_equal(clone(whole).fit(X, stream.y).coef_shared_, make().fit(X, stream.y).coef_shared_)
        return
    whole.forget_task(0)
    whole.save(tmp_path / "model")
    other = shoal.load(tmp_path / "model")
    for learner in (whole, other):
        learner.partial_fit(X, stream.y, stream.task, rounds=stream.rounds).learn_one(stream.X[0], 1.0, 3)
    assert saved(other) == saved(whole)


@pytest.mark.parametrize("features", [RFF, NYSTROM])
def test_maps_widen_with_named_features(features: dict) -> None:
    stream = draw(13, d=12, density=0.3, n_rows=80)
    learner = LocalGlobalGaussian(features=features, random_state=0)
    for x, y, task in zip(stream.X, stream.y, stream.task, strict=True):
        learner.learn_one({f"f{j}": v for j, v in enumerate(x) if v}, y, int(task))
    order = [int(name[1:]) for name in learner.feature_names_in_]
    wide = LocalGlobalGaussian(features=features, random_state=0)
    wide.partial_fit(sp.csr_matrix(stream.X[:, order]), stream.y, stream.task, rounds=np.arange(len(stream.y)))
    assert_close(learner.coef_shared_, wide.coef_shared_, 1e-9)


def test_a_transformer_is_the_map() -> None:
    stream = draw(14)
    transformer = RBFSampler(n_components=10, random_state=0).fit(stream.X)
    learner = LocalGlobalGaussian(features=transformer).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    mapped = LocalGlobalGaussian().fit(transformer.transform(stream.X), stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_array_equal(learner.coef_shared_, mapped.coef_shared_)
    assert learner.n_features_in_ == 7
    before = learner.tasks_
    with pytest.raises(ValueError, match="X has 6 features"):
        learner.partial_fit(stream.X[:, :6], stream.y, stream.task + 100)
    assert learner.tasks_ == before
    fresh = LocalGlobalGaussian(features=transformer)
    with pytest.raises(ValueError, match="the transformer is expecting 7 features"):
        fresh.partial_fit(stream.X[:, :6], stream.y)
    assert not hasattr(fresh, "tasks_")
    with pytest.raises(NotFittedError):
        LocalGlobalGaussian(features=RBFSampler()).fit(stream.X, stream.y)


def test_random_state() -> None:
    stream = draw(15)
    fit = lambda state: LocalGlobalGaussian(h=0.1, random_state=state).fit(stream.X, stream.y, stream.task)  # noqa: E731
    np.testing.assert_array_equal(fit(0).coef_, fit(0).coef_)
    np.testing.assert_array_equal(fit(np.random.RandomState(5)).coef_, fit(np.random.RandomState(5)).coef_)
    assert len({fit(seed).n_queries_ for seed in range(20)}) > 3
    assert fit(None)._model.core.state.random[0] != fit(None)._model.core.state.random[0]
    assert LocalGlobalGaussian().fit(stream.X, stream.y)._model.core.state.random[0] == 0


def test_what_shapes_the_state_cannot_change_on_the_way() -> None:
    stream = draw(16)
    learner = LocalGlobalGaussian(features=RFF, random_state=0).fit(stream.X, stream.y)
    for options in ({"features": "linear"}, {"features": {**RFF, "gamma": 1.0}}, {"covariance": "diagonal"}):
        with pytest.raises(ValueError, match="it can only change before fit"):
            learner.set_params(**options).partial_fit(stream.X, stream.y)
        learner.set_params(features=RFF, covariance="full")
    learner.set_params(h=0.1).partial_fit(stream.X, stream.y)
    learner.set_params(features={**RFF, "gamma": 1.0}).fit(stream.X, stream.y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 0.0}, "lam must be"), ({"lam": np.inf}, "lam must be"), ({"lam": float("nan")}, "lam must be"),
        ({"eps": -1.0}, "eps must be"), ({"h": 0.0}, "h must be"), ({"h": float("nan")}, "h must be"),
        ({"loss": "log"}, "loss must be one of"), ({"covariance": "low"}, "covariance must be one of"),
        ({"update": "none"}, "update must be one of"), ({"theta": "now"}, "theta must be one of"),
        ({"features": "poly"}, "features must be one of"), ({"features": 3}, "features must be one of"),
        ({"features": {"gamma": 1.0}}, "features must be one of"),
        ({"features": {"map": "rff", "ridge": 1.0}}, "has no option 'ridge'"),
        ({"features": {"map": "linear", "gamma": 1.0}}, "has no option 'gamma'"),
        ({"features": {"map": "rff", "gamma": 0.0}}, "gamma and ridge"),
        ({"features": {"map": "rff", "size": 0}}, "size of features"),
        ({"features": {"map": "nystrom", "size": 2.5}}, "size of features"),
        ({"random_state": "x"}, "cannot be used to seed"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalGlobalGaussian(**options).partial_fit([[1.0]], [1])
