"""LocalGlobalGaussian against its twin in every option; its covariances and its doubt."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import Stream, assert_close, core_of, draw
from tests.twins import local_global_gaussian as twin

from shoal import LocalGlobalGaussian

OPTIONS: list[dict[str, Any]] = [
    {"loss": loss, "covariance": covariance, "update": update}
    for loss, covariance, update in product(["squared_hinge", "hinge"], ["full", "diagonal"], ["mistaken", "all"])
]
LOW_RANK: list[dict[str, Any]] = [
    {"loss": "squared_hinge", "covariance": 1, "update": "all"}, {"loss": "hinge", "covariance": 4, "update": "all"},
    {"loss": "hinge", "covariance": 3, "update": "mistaken"}, {"loss": "hinge", "covariance": 9, "update": "all"},
]  # fmt: skip
RFF = {"map": "rff", "gamma": 0.05, "size": 40}
NYSTROM = {"map": "nystrom", "gamma": 0.05, "size": 25}
MAPS: dict[str, Any] = {"linear": "linear", "rff": RFF, "nystrom": NYSTROM}


def compare(
    learner: LocalGlobalGaussian, stream: Stream, phi: np.ndarray, *, sparse: bool, tolerance: float = 1e-12
) -> None:
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    p = learner.get_params()
    expected, model, _, updates = twin.learn(
        phi, stream.y, stream.task, stream.rows_of_rounds, lam=p["lam"], eps=p["eps"], loss=p["loss"],
        covariance=p["covariance"], update=p["update"],
    )  # fmt: skip
    S = model.S0 + model.S
    shown = np.diagonal(S, axis1=1, axis2=2) if p["covariance"] == "diagonal" else S
    assert_close(decisions, expected, tolerance)
    assert_close(learner.coef_shared_, model.mu0, tolerance)
    assert_close(learner.coef_task_, model.mu, tolerance)
    assert_close(learner.covariance_, shown, tolerance)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("options", OPTIONS + LOW_RANK, ids=lambda o: "-".join(map(str, o.values())))
def test_equals_twin_in_every_option(options: dict[str, Any], protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.4 if sparse else 1.0)  # sparse: has empty rows
    compare(LocalGlobalGaussian(lam=0.7, eps=0.6, **options), stream, stream.X, sparse=sparse)


@given(
    seed=st.integers(0, 10**6), lam=st.floats(0.05, 20), eps=st.floats(0.05, 20),
    options=st.sampled_from(OPTIONS + LOW_RANK), protocol=st.sampled_from(["one", "some", "all", "growing"]),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, lam: float, eps: float, options: dict[str, Any], protocol: str
) -> None:
    stream = draw(seed, K=4, n_rows=40, protocol=protocol)
    learner = LocalGlobalGaussian(lam=lam, eps=eps, **options)
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    _, model, _, _ = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, lam=lam, eps=eps, **options)
    assert_close(learner.coef_, model.mu0 + model.mu)


# ---- the Gaussians -------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), options=st.sampled_from(OPTIONS + LOW_RANK))
def test_covariances_decrease_and_stay_positive_definite(seed: int, options: dict[str, Any]) -> None:
    """Spec 8.8, round by round; of low rank it is the diagonal of the precision that grows, exactly."""
    stream = draw(seed, n_rows=60)
    learner = LocalGlobalGaussian(lam=0.2, **options).add_tasks(range(5))
    before = None
    for rows in stream.rows_of_rounds:
        learner.partial_fit(stream.X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
        now = learner.covariance_
        if isinstance(learner.covariance, int):
            assert (np.linalg.eigvalsh(now) > 0).all()
            now = -np.diag(np.linalg.inv(learner.covariance_shared_))
            assert before is None or (before - now > -1e-9 * np.abs(now)).all()
        elif learner.covariance == "full":
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


def test_low_rank_is_full_while_there_is_room() -> None:
    """Rank d or more, or no more rows than the rank; and of wide rows too many the precision's diagonal is exact."""
    for rank, d, n_rows in ((7, 7, 150), (12, 7, 150), (50, 90, 40)):
        stream = draw(20, d=d, n_rows=n_rows, density=0.8)
        full, low = (
            LocalGlobalGaussian(lam=0.3, update="all", covariance=covariance).fit(
                stream.sparse, stream.y, stream.task, rounds=stream.rounds
            )
            for covariance in ("full", rank)
        )
        assert_close(low.coef_, full.coef_)
        assert_close(low.covariance_, full.covariance_)
    stream = draw(21, d=60, n_rows=400, density=0.3)
    for rank in (1, 2, 5, 30):
        learner = LocalGlobalGaussian(lam=0.3, update="all", covariance=rank)
        learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
        diagonal = 1.0 + (stream.X**2).sum(axis=0) / 0.3
        assert_close(np.diag(np.linalg.inv(learner.covariance_shared_)), diagonal)
        assert core_of(learner).state.shared_directions[0] <= rank


VALUES = st.one_of(
    st.just(0.0), st.floats(-10, 10).filter(lambda v: v == 0 or abs(v) > 1e-150),
    st.builds(lambda sign, e: sign * 10.0**e, st.sampled_from([-1, 1]), st.floats(-150, 150)),
)  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
@given(
    X=st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=30),
    options=st.sampled_from(OPTIONS + LOW_RANK[:2]),
    lam=st.sampled_from([1e-12, 0.01, 1.0, 1e12]), eps=st.sampled_from([1e-12, 1.0, 1e12]), data=st.data(),
)  # fmt: skip
def test_every_finite_stream_leaves_everything_finite(
    name: str, X: list[tuple[float, float, float]], options: dict[str, Any], lam: float, eps: float, data: st.DataObject
) -> None:
    n = len(X)
    y = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))
    rounds = np.arange(n) // data.draw(st.integers(1, 4))
    task = np.arange(n) - np.concatenate([[0], np.flatnonzero(np.diff(rounds)) + 1])[rounds]
    learner = LocalGlobalGaussian(lam=lam, eps=eps, features=MAPS[name], random_state=0, **options)
    decisions = learner.test_then_train(X, y, task, rounds=rounds)
    assert np.isfinite(decisions).all()
    assert np.isfinite(learner.decision_function(X, task)).all()
    assert all(np.isfinite(array).all() for array in core_of(learner).state if array.dtype == np.float64)
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
    for covariance in ("diagonal", 2):
        assert LocalGlobalGaussian(covariance=covariance).fit(X, [0, 1]).coef_[0, 5] < 0


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
def test_rotation_changes_nothing(seed: int, options: dict[str, Any]) -> None:
    """Full covariances know no axes."""
    stream = draw(seed, n_rows=40)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(7, 7)))
    plain = LocalGlobalGaussian(**options).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    turned = LocalGlobalGaussian(**options).fit(stream.X @ Q, stream.y, stream.task, rounds=stream.rounds)
    assert_close(turned.coef_ @ Q.T, plain.coef_)


# ---- the doubt that label queries ask for ----------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal", 3])
def test_tasks_without_rows_are_as_sure_as_unseen_ones(covariance: str | int) -> None:
    stream = draw(17, n_rows=200)
    learner = LocalGlobalGaussian(covariance=covariance).fit(stream.X, stream.y, stream.task)
    learner.add_tasks(["declared"])
    seen: Any = learner._model
    for x in stream.X[:20] * 2:
        values = np.empty((2, 1))
        for out, task in zip(values, ("declared", "nobody"), strict=True):
            core_of(learner).confidence(seen.row_to_decide(x, task), out)
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


# ---- parameters ----------------------------------------------------------------------------------------------


def test_random_state() -> None:
    stream = draw(15)

    def fit(state: Any) -> LocalGlobalGaussian:
        return LocalGlobalGaussian(features=RFF, random_state=state).fit(stream.X, stream.y, stream.task)

    for state in (0, 5):
        coefs = [fit(np.random.RandomState(state)).coef_shared_ for _ in range(2)]
        np.testing.assert_array_equal(coefs[0], coefs[1])
        assert (coefs[0] != fit(1).coef_shared_).any()
    assert core_of(fit(None)).state.random[0] != core_of(fit(None)).state.random[0]
    assert core_of(LocalGlobalGaussian().fit(stream.X, stream.y)).state.random[0] == 0


def test_what_shapes_the_state_cannot_change_on_the_way() -> None:
    stream = draw(16)
    learner = LocalGlobalGaussian(features=RFF, random_state=0).fit(stream.X, stream.y)
    for options in ({"features": "linear"}, {"features": {**RFF, "gamma": 1.0}}, {"covariance": "diagonal"}):
        with pytest.raises(ValueError, match="it can only change before fit"):
            learner.set_params(**options).partial_fit(stream.X, stream.y)
        learner.set_params(features=RFF, covariance="full")
    learner.set_params(eps=0.1).partial_fit(stream.X, stream.y)
    learner.set_params(features={**RFF, "gamma": 1.0}).fit(stream.X, stream.y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 0.0}, "lam must be"), ({"lam": np.inf}, "lam must be"), ({"lam": float("nan")}, "lam must be"),
        ({"eps": -1.0}, "eps must be"), ({"loss": "log"}, "loss must be one of"),
        ({"covariance": "low"}, "covariance must be one of"),
        ({"covariance": 0}, "or a rank >= 1, got 0"), ({"covariance": 2.5}, "or a rank >= 1"),
        ({"update": "none"}, "update must be one of"),
        ({"features": "poly"}, "features must be one of"), ({"features": 3}, "features must be one of"),
        ({"features": {"gamma": 1.0}}, "features must be one of"),
        ({"features": {"map": "rff", "ridge": 1.0}}, "has no option 'ridge'"),
        ({"features": {"map": "linear", "gamma": 1.0}}, "has no option 'gamma'"),
        ({"features": {"map": "rff", "gamma": 0.0}}, "gamma and ridge"),
        ({"features": {"map": "rff", "size": 0}}, "size of features"),
        ({"features": {"map": "rff", "kernel": "rbf"}}, "has no option 'kernel'"),
        ({"features": {"map": "nystrom", "kernel": "cubic"}}, "kernel must be 'linear', 'rbf' or a function"),
        ({"features": {"map": "nystrom", "size": 2.5}}, "size of features"),
        ({"random_state": "x"}, "cannot be used to seed"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalGlobalGaussian(**options).partial_fit([[1.0]], [1])
