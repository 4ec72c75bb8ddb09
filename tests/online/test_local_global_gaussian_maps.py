"""LocalGlobalGaussian on features of a map: random Fourier, Nystrom or a transformer's."""

from __future__ import annotations

from functools import partial
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
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel
from sklearn.preprocessing import PolynomialFeatures
from tests.cases import saved
from tests.online.test_local_global_gaussian import MAPS, NYSTROM, RFF, compare
from tests.streams import Stream, assert_close, core_of, draw, own_parameters
from tests.twins import local_global_gaussian as twin

import shoal
from shoal import LocalGlobalGaussian
from shoal.model.state import leaves
from shoal.model.table import read_table


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "growing"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", 6])
def test_mapped_learners_equal_the_twin(covariance: str | int, protocol: str, sparse: bool) -> None:
    stream = draw(10, protocol=protocol, density=0.5 if sparse else 1.0)
    for features in (RFF, NYSTROM):
        learner = LocalGlobalGaussian(features=features, covariance=covariance, random_state=2)
        learner.fit(stream.X[:2], stream.y[:2], stream.task[:2])
        seed, state = int(core_of(learner).state.random[0]), core_of(learner).state
        if features is RFF:
            phi = twin.fourier(stream.X, state.points, state.offsets)
        else:
            kernel = partial(twin.gaussian_kernel, gamma=0.05)
            phi, D = twin.nystrom(stream.X, kernel=kernel, size=25, ridge=0.1, seed=seed)
            assert len(D) == 25 or sparse
        fresh = LocalGlobalGaussian(**own_parameters(learner))
        compare(fresh, stream, phi, sparse=sparse)
        with pytest.raises(AttributeError, match="see coef_shared_"):
            _ = fresh.coef_


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("kernel", "function"),
    [("linear", linear_kernel), (linear_kernel,) * 2, (laplacian_kernel,) * 2, (polynomial_kernel,) * 2],
)
def test_any_kernel_equals_the_twin(kernel: Any, function: Any, sparse: bool) -> None:
    stream = draw(18, n_rows=90, protocol="growing", density=0.5 if sparse else 1.0)
    X, features = stream.sparse if sparse else stream.X, {"map": "nystrom", "kernel": kernel, "size": 12, "ridge": 0.5}
    learner = LocalGlobalGaussian(features=features, random_state=2)
    seed = core_of(clone(learner).fit(stream.X[:2], stream.y[:2])).state.random[0]
    phi, D = twin.nystrom(stream.X, kernel=function, size=12, ridge=0.5, seed=int(seed))
    compare(learner, stream, phi, sparse=sparse)
    assert core_of(learner).state.used[0] == len(D) == (7 if function is linear_kernel else 12)
    chunked = clone(learner)  # a function is asked round by round: chunks do not matter
    for rows in stream.rows_of_rounds:
        chunked.partial_fit(X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
    np.testing.assert_array_equal(chunked.coef_task_, learner.coef_task_)


def test_a_kernel_function_may_fail_and_cannot_be_saved(tmp_path: Path) -> None:
    """Nothing of the chunk is learned then, and the dictionary is what it was."""
    stream = draw(19)
    broken = False

    def kernel(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.full((len(X), len(Z)), np.nan) if broken and len(X) > 8 else linear_kernel(X, Z) + 1.0

    features = {"map": "nystrom", "kernel": kernel, "size": 60, "ridge": 1e-9}
    learner = LocalGlobalGaussian(features=features, random_state=0).fit(stream.X[:4], stream.y[:4])
    before, broken = saved_state(learner), True
    with pytest.raises(ValueError, match="the kernel function must return finite numbers"):
        learner.partial_fit(stream.X, stream.y, stream.task + 9)
    assert saved_state(learner) == before
    with pytest.raises(ValueError, match=r"cannot save parameter.features"):
        learner.save(tmp_path / "model")
    indefinite = {**features, "kernel": lambda X, Z: np.sin(1e3 * X @ Z.T) - 0.5}  # not a kernel: no reason to break
    learner = LocalGlobalGaussian(features=indefinite, random_state=0).fit(stream.X, stream.y, stream.task)
    assert np.isfinite(learner.coef_task_).all()


def saved_state(learner: LocalGlobalGaussian) -> list[bytes]:
    return [array.tobytes() for array in leaves(core_of(learner).state)]


def mapped(learner: Any, stream: Stream, *, grow: bool) -> Any:
    """The features of a stream's rows."""
    core = core_of(learner)
    columns = np.zeros(len(stream.y), np.int64)
    rounds = read_table(stream.X).rounds(columns, stream.y, np.arange(len(stream.y) + 1))
    pieces = core.algorithm.chunks.pieces(core.setup, core.state, rounds, grow)
    return np.concatenate([piece.rounds.values.reshape(-1, piece.rounds.width) for piece in pieces])


@given(seed=st.integers(0, 10**6), gamma=st.floats(0.01, 1.0), sparse=st.booleans())
def test_nystrom_features_are_the_kernel_on_the_dictionary(seed: int, gamma: float, sparse: bool) -> None:
    """phi(x).phi(z) = k_D(x)ᵀ K_DD⁻¹ k_D(z), which is k itself where one of the two is in the dictionary."""
    stream = draw(seed, n_rows=40, density=0.5 if sparse else 1.0)
    learner = LocalGlobalGaussian(features={"map": "nystrom", "gamma": gamma, "size": 30}, random_state=seed)
    learner.fit(stream.X, stream.y, stream.task)
    n = int(core_of(learner).state.used[0])
    Z = core_of(learner).state.points[:, :n].T
    for row in Z:
        assert (np.abs(stream.X - row).sum(axis=1) == 0).any()
    before = core_of(learner).state.used.copy()
    phi = mapped(learner, stream, grow=False)
    np.testing.assert_array_equal(core_of(learner).state.used, before)
    k = twin.gaussian_kernel(Z, stream.X, gamma)
    expected = k.T @ np.linalg.solve(twin.gaussian_kernel(Z, Z, gamma), k)
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-6)
    assert (np.linalg.norm(phi, axis=1) <= 1 + 1e-12).all()
    assert (phi[:, n:] == 0).all()


def test_growing_the_dictionary_leaves_features_as_they_were() -> None:
    """Appending a point appends a coordinate: decisions of the model do not change, bit for bit."""
    stream = draw(11, n_rows=60)
    learner = LocalGlobalGaussian(features=NYSTROM, random_state=0).fit(stream.X[:20], stream.y[:20], stream.task[:20])
    before, n = learner.decision_function(stream.X, stream.task), int(core_of(learner).state.used[0])
    mapped(learner, stream, grow=True)
    assert core_of(learner).state.used[0] > n
    np.testing.assert_array_equal(learner.decision_function(stream.X, stream.task), before)


def test_random_fourier_features_approach_the_kernel() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    learner = LocalGlobalGaussian(features={"map": "rff", "gamma": 0.3, "size": 20_000}, covariance="diagonal",
                                  random_state=0).fit(X, np.arange(30) % 2)  # fmt: skip
    phi = twin.fourier(X, core_of(learner).state.points, core_of(learner).state.offsets)
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

    def make() -> LocalGlobalGaussian:
        return LocalGlobalGaussian(features=features, random_state=0)

    whole = make().partial_fit(X, stream.y, stream.task, rounds=stream.rounds)
    chunked = make()
    for rows in np.array_split(np.arange(len(stream.y)), 5):
        first, last = np.searchsorted(stream.rounds, stream.rounds[rows[[0, -1]]])
        last = len(stream.y) if rows[-1] == len(stream.y) - 1 else last
        piece = slice(first, last)
        chunked.partial_fit(X[piece], stream.y[piece], stream.task[piece], rounds=stream.rounds[piece])
    np.testing.assert_array_equal(chunked.coef_task_, whole.coef_task_)
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
def test_maps_widen_with_named_features(features: dict[str, Any]) -> None:
    stream = draw(13, d=12, density=0.3, n_rows=80)
    learner = LocalGlobalGaussian(features=features, random_state=0)
    for x, y, task in zip(stream.X, stream.y, stream.task, strict=True):
        learner.learn_one({f"f{j}": v for j, v in enumerate(x) if v}, y, int(task))
    order = [int(name[1:]) for name in learner.feature_names_in_]
    wide = LocalGlobalGaussian(features=features, random_state=0)
    wide.partial_fit(sp.csr_matrix(stream.X[:, order]), stream.y, stream.task, rounds=np.arange(len(stream.y)))
    assert_close(learner.coef_shared_, wide.coef_shared_)


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
