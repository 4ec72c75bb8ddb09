"""SparseMTL against its plain twin: the sets it chooses, the coefficients, and that nothing near them is better."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiled import from_python
from tests.streams import Stream, assert_close, draw
from tests.twins import sparse_mtl as twin

from shoal import SparseMTL, SparseMTLRegressor
from shoal.batch.base import Rows
from shoal.batch.sparse_mtl import coefficients
from shoal.batch.sparse_mtl.learner import Limits, Selection, distinct_rows
from shoal.datasets import load_school, make_conjoint

refactor = from_python(coefficients.refactor)
ROWS, REAL = draw(0, n_rows=60), draw(0, n_rows=60, regression=True)
KINDS = {"hinge": (SparseMTL, ROWS), "squares": (SparseMTLRegressor, REAL)}
SETTINGS: dict[str, Any] = {
    "gamma": 0.3, "lam": 0.5, "sigma": 2.0, "n_common": 12, "n_task": 4, "n_candidates": 100, "inner_tol": 1e-14,
}  # fmt: skip
# "rbf" is the twin's own.
KERNELS: dict[Any, Any] = {"rbf": None, "linear": twin.linear, twin.squared: twin.squared}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_sharing = pytest.mark.parametrize("sharing", ["both", "common", "task"])


def fit(kind: str, rows: Stream | None = None, **settings: Any) -> Any:
    make, default = KINDS[kind]
    rows = rows or default
    return make(**SETTINGS | {"random_state": 0, **settings}).fit(rows.X, rows.y, rows.task)


def plain(learner: Any, rows: Stream, kind: str) -> tuple[twin.SparseMTL, np.ndarray]:
    """The twin with the learner's sets, and the learner's coefficients."""
    own = {t: s.tolist() for t, s in learner.support_task_.items()}
    model = twin.SparseMTL(rows.X, rows.y, rows.task, learner.gamma, learner.lam, learner.sigma, kind == "hinge",
                           learner.support_common_.tolist(), own, KERNELS[learner.kernel])  # fmt: skip
    return model, np.concatenate([learner.dual_coef_common_, *learner.dual_coef_task_.values()])


@pytest.mark.parametrize(
    ("kernel", "sharing"), [("rbf", "both"), ("rbf", "common"), ("linear", "both"), (twin.squared, "task")]
)
@each_kind
def test_every_choice_is_the_plain_twins(kind: str, kernel: Any, sharing: str) -> None:
    rows = KINDS[kind][1]
    learner = fit(kind, sharing=sharing, tol=0.01, kernel=kernel)
    model = twin.SparseMTL(rows.X, rows.y, rows.task, 0.3, 0.5, 2.0, kind == "hinge", kernel=KERNELS[kernel])
    if sharing != "task":
        model.grow(None, 12, 0.01)
    if sharing != "common":
        for t in range(5):
            model.grow(t, 4, 0.01)
    assert learner.support_common_.tolist() == model.common
    assert {t: s.tolist() for t, s in learner.support_task_.items()} == model.own
    assert learner.n_basis_common_ == len(model.common) == (0 if sharing == "task" else len(model.common))
    assert learner.n_basis_task_ == sum(map(len, model.own.values()))
    assert_close(model.design() @ plain(learner, rows, kind)[1], model.design() @ model.minimum(), 1e-5)


@each_kind
def test_the_objective_is_eq_2(kind: str) -> None:
    rows = KINDS[kind][1]
    learner = fit(kind, tol=0.0)
    assert learner.objective_.shape == (learner.n_basis_common_ + learner.n_basis_task_ + 1,)
    assert learner.objective_[0] == pytest.approx(0.5 * (rows.y**2).sum())
    model, a = plain(learner, rows, kind)
    assert learner.objective_[-1] == pytest.approx(model.objective(a), rel=1e-10)
    assert (np.diff(learner.objective_) <= 0).all()
    found = (learner.decision_function if kind == "hinge" else learner.predict)(rows.X, rows.task)
    assert_close(found, model.design() @ a, 1e-10)


@given(
    seed=st.integers(0, 10**6), log_gamma=st.floats(-3, 2), log_lam=st.floats(-3, 2), sigma=st.floats(0.5, 6.0),
    sharing=st.sampled_from(["both", "common", "task"]), kind=st.sampled_from(list(KINDS)),
)  # fmt: skip
def test_the_coefficients_are_optimal_for_the_basis(
    seed: int, log_gamma: float, log_lam: float, sigma: float, sharing: str, kind: str
) -> None:
    """First-order conditions, measured by what a Newton step along the gradient could still gain."""
    rows = draw(seed, n_rows=50, K=3, regression=kind == "squares")
    options = {"gamma": 10**log_gamma, "lam": 10**log_lam, "sigma": sigma, "sharing": sharing}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.batch.sparse_mtl.learner.MOST_SWEEPS", 100_000)  # alternating converges linearly
        learner = fit(kind, rows, **options)
    model, a = plain(learner, rows, kind)
    D = model.design()
    inside = model.in_loss(D @ a)
    step = np.linalg.lstsq(model.regulariser() + D[inside].T @ D[inside], -model.gradient(a), rcond=None)[0]
    assert -0.5 * step @ model.gradient(a) <= 1e-6 * model.objective(a)
    assert model.objective(a) <= model.objective(model.minimum()) * (1 + 1e-6)


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {kind: fit(kind) for kind in KINDS}


@given(seed=st.integers(0, 10**6), size=st.floats(1e-6, 3.0), one=st.booleans())
def test_no_perturbation_of_the_coefficients_is_better(fitted: Any, seed: int, size: float, one: bool) -> None:
    rng = np.random.default_rng(seed)
    for kind, learner in fitted.items():
        model, a = plain(learner, KINDS[kind][1], kind)
        moved = size * rng.normal(size=len(a))
        if one:
            moved *= np.arange(len(a)) == rng.integers(len(a))
        assert model.objective(a + moved) >= model.objective(a) * (1 - 1e-9)


def selection(kind: str, rows: Stream, n_candidates: int = 100) -> Selection:
    table = Rows(rows.X, rows.y, rows.task, int(rows.task.max()) + 1)
    limits = Limits(n_candidates, 0.0, 1e-10)
    kernel = partial(twin.gaussian, sigma=2.0)
    return Selection(table, kind == "hinge", 0.3, 0.5, kernel, limits, np.random.RandomState(0))


@pytest.mark.parametrize("t", [None, 2])
@each_kind
def test_the_best_of_the_candidates_drawn_is_taken(kind: str, t: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By trying each: g²/(2P) is what the objective falls by while I stays, and the largest is chosen."""
    rows = draw(1, n_rows=200, regression=kind == "squares")
    chosen = selection(kind, rows, n_candidates=7)
    chosen.grow(False, 0, 5)
    drawn: list[np.ndarray] = []

    def noted(self: Selection, free: Any) -> np.ndarray:
        drawn.append(REAL_DRAW(self, free))
        return drawn[-1]

    monkeypatch.setattr(Selection, "_draw", noted)
    model = twin.SparseMTL(rows.X, rows.y, rows.task, 0.3, 0.5, 2.0, kind == "hinge",
                           chosen.order[chosen.support[False, 0]].tolist())  # fmt: skip
    common = list(model.common)
    if t is None:
        # Grow once more from scratch, and look at the last choice.
        chosen = selection(kind, rows, n_candidates=7)
        chosen.grow(False, 0, 6)
        assert chosen.order[chosen.support[False, 0]].tolist()[:5] == common
        candidates = chosen.order[drawn[5]].tolist()
        taken = int(chosen.order[chosen.support[False, 0][5]])
    else:
        chosen.grow(True, t, 1)
        candidates = np.flatnonzero(rows.task == t)[drawn[0]].tolist()
        taken = int(chosen.order[chosen.support[True, t][0]])
    a = model.minimum()
    gains = {c: model.decrease(a, c, t) for c in candidates}
    assert len(candidates) == len(set(candidates)) == 7
    assert taken == max(gains, key=gains.__getitem__)
    # The gain itself, by moving the one coefficient with I frozen.
    inside = model.in_loss(model.design() @ a) & (True if t is None else rows.task == t)
    (model.common if t is None else model.own[t]).append(taken)
    at = len(common) if t is None else len(a)
    start, unit = np.insert(a, at, 0.0), np.insert(np.zeros(len(a)), at, 1.0)
    D, Q = model.design(), model.regulariser()

    def frozen(s: float) -> float:
        b = start + s * unit
        return float(0.5 * b @ Q @ b + 0.5 * ((rows.y - D @ b)[inside] ** 2).sum())

    grid = np.linspace(-3, 3, 3)
    best = np.polyfit(grid, [frozen(s) for s in grid], 2)
    assert frozen(0.0) - (best[2] - best[1] ** 2 / (4 * best[0])) == pytest.approx(gains[taken], rel=1e-6)


REAL_DRAW = Selection._draw


@each_kind
def test_the_kept_factors_equal_recomputed_ones(kind: str) -> None:
    rows = draw(2, n_rows=300, regression=kind == "squares")
    grown = selection(kind, rows, n_candidates=20)
    grown.limits = grown.limits._replace(tol=0.01)  # some vectors are taken back
    grown.grow(False, 0, 25)
    for k in range(5):
        grown.grow(True, k, 5)
    assert grown.common.size[0] < 25
    held = 0
    for sets in (grown.common, grown.own):
        for k in range(len(sets.size)):
            block, size = slice(sets.starts[k], sets.starts[k + 1]), sets.size[k]
            inside = sets.held[block]
            K, G, R = sets.K[block, :size][inside], sets.G[k, :size, :size], sets.R[k, :size, :size]
            P = sets.reg * G + K.T @ K
            np.testing.assert_allclose(R.T @ R, P, rtol=0, atol=1e-8 * P.max(initial=0.0))
            assert not np.tril(R, -1).any()
            held += inside.sum()
    assert held < 600 if kind == "hinge" else held == 600  # rows did leave I


def test_a_spoilt_factor_is_computed_anew() -> None:
    grown = selection("hinge", draw(2, n_rows=100))
    grown.grow(False, 0, 8)
    sets, before = grown.common, grown.common.R.copy()
    sets.R[:] = -1.0
    refactor(sets, 0, np.zeros(50))
    size = sets.size[0]
    np.testing.assert_allclose(sets.R[0, :size, :size], before[0, :size, :size], rtol=1e-5, atol=1e-7)


@each_kind
def test_without_a_common_set_tasks_are_learned_alone(kind: str) -> None:
    make, rows = KINDS[kind]
    together = fit(kind, sharing="task")
    for t in range(5):
        mine = np.flatnonzero(rows.task == t)
        alone = make(**SETTINGS, sharing="task").fit(rows.X[mine], rows.y[mine])
        assert mine[alone.support_].tolist() == together.support_task_[t].tolist()
        assert_close(together.dual_coef_task_[t], alone.dual_coef_, 1e-6)
        unseen = together._values(rows.X, ["new"] * len(rows.y))
    parts = [together._values(rows.X, [t] * len(rows.y)) for t in range(5)]
    assert_close(unseen, np.mean(parts, axis=0))


@each_kind
def test_one_model_for_all_does_not_see_tasks(kind: str) -> None:
    make, rows = KINDS[kind]
    common, pooled = fit(kind, sharing="common"), make(**SETTINGS, sharing="common").fit(rows.X, rows.y)
    assert common.n_basis_task_ == 0
    assert all(len(s) == 0 for s in common.support_task_.values())
    assert set(common.support_common_) == set(pooled.support_common_)
    assert_close(common._values(rows.X, rows.task), pooled._values(rows.X, None), 1e-6)
    assert_close(common._values(rows.X, ["new"] * len(rows.y)), pooled._values(rows.X, None), 1e-6)


@each_kind
def test_the_extremes_of_the_two_weights(kind: str) -> None:
    rows = KINDS[kind][1]
    values = {
        sharing: fit(kind, sharing=sharing, n_common=10, tol=0.0)._values(rows.X, rows.task)
        for sharing in ("common", "task")
    }
    dear_own = fit(kind, lam=1e9, n_common=10, tol=0.0)
    assert_close(dear_own._values(rows.X, rows.task), values["common"], 1e-4)
    dear_common = fit(kind, gamma=1e9, tol=0.0)
    assert_close(dear_common._values(rows.X, rows.task), values["task"], 1e-4)


@each_kind
def test_an_unseen_task_is_answered_by_the_common_part(kind: str) -> None:
    learner, rows = fit(kind), KINDS[kind][1]
    expected = twin.gaussian(rows.X, rows.X[learner.support_common_], 2.0) @ learner.dual_coef_common_
    assert_close(learner._values(rows.X, ["new"] * len(rows.y)), expected, 1e-10)
    assert_close(learner.basis_, rows.X[learner.support_])
    assert learner.support_common_.tolist() == learner.support_[: learner.n_basis_common_].tolist()


def test_tasks_that_share_their_rows() -> None:
    """Multi-label data: every row once for each of three labels. Equal rows enter a set once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    Y = np.where((X @ (rng.normal(size=(4, 1)) + 0.5 * rng.normal(size=(4, 3)))).T > 0, 1, -1)
    task = np.repeat(["a", "b", "c"], 80)
    learner = SparseMTL(gamma=0.1, sigma=2.0, n_common=20, n_task=8, random_state=0)
    learner.fit(np.tile(X, (3, 1)), Y.ravel(), task)
    assert learner.score(np.tile(X, (3, 1)), Y.ravel(), task) > 0.9
    for support in (learner.support_common_, *learner.support_task_.values()):
        assert len(set((support % 80).tolist())) == len(support)
    for t, name in enumerate("abc"):
        assert set((learner.support_task_[name] // 80).tolist()) == {t}


@pytest.mark.parametrize("sparse", [False, True])
def test_equal_rows_are_found(sparse: bool) -> None:
    stream = draw(0, n_rows=30, density=0.9)
    X = np.vstack([stream.X, stream.X[::-1], np.zeros((1, 7)), -np.zeros((1, 7))])
    n = len(stream.y)
    table = stream.sparse.__class__(X) if sparse else X
    firsts, copy_of = distinct_rows(table)
    assert firsts.tolist() == [*range(n), 2 * n]
    np.testing.assert_array_equal(X[firsts][copy_of], X)


def test_sets_stop_at_their_limits_or_when_little_is_gained() -> None:
    full = fit("hinge", tol=0.0)
    assert (full.n_basis_common_, full.n_basis_task_) == (12, 20)
    few = fit("hinge", tol=0.05, sharing="common")
    gains = -np.diff(full.objective_) / full.objective_[:-1]
    n = few.n_basis_common_
    assert 1 < n <= 9
    assert gains[n - 1] > 0.05 >= gains[n : n + 3].max()  # three weak ones in a row, which are not kept
    assert_close(few.objective_, full.objective_[: n + 1], 1e-10)
    nothing = fit("hinge", tol=0.99)
    assert len(nothing.support_) == 0
    assert not nothing.decision_function(ROWS.X, ROWS.task).any()
    every = fit("squares", sharing="task", n_task=1000, tol=0.0, sigma=1.0)
    assert every.n_basis_task_ == len(REAL.y)  # the paper's sparseSTL: each task's whole training set


def test_the_candidates_are_drawn_by_random_state() -> None:
    one, same, other = (fit("hinge", n_candidates=2, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.support_, same.support_)
    assert one.support_.tolist() != other.support_.tolist()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"tol": 1.0}, "tol must be a number >= 0 and < 1"), ({"inner_tol": -1e-9}, "inner_tol must be"),
        ({"sigma": 0.0}, r"sigma must be a number in \[1e-150, 1e\+150\]"),
        ({"sigma": 1e151}, "sigma must be a number in"), ({"n_common": 0}, "n_common must be an integer >= 1"),
        ({"sharing": "none"}, "sharing must be one of"), ({"kernel": "poly"}, "kernel must be 'linear', 'rbf' or a"),
    ],
)  # fmt: skip
def test_bad_settings(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit("hinge", **bad)


def test_sharing_pays_on_conjoint_data() -> None:
    train, test = make_conjoint("high", seed=0)
    errors = {}
    for sharing in ("both", "common", "task"):
        learner = SparseMTL(gamma=0.1, lam=0.3, sigma=6.0, n_common=20, sharing=sharing, random_state=0)
        learner.fit(train.X, train.y, train.task)
        errors[sharing] = 1 - learner.score(test.X, test.y, test.task)
    assert errors["both"] < errors["task"] < errors["common"]


def test_school() -> None:
    try:
        data = load_school()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    random = np.random.default_rng(0)
    train = random.random(len(data)) < 0.5
    mean = data.y[train].mean()
    learner = SparseMTLRegressor(gamma=0.1, lam=3.0, sigma=2.0, n_common=30, n_task=2, tol=0.0, random_state=0)
    learner.fit(data.X[train], data.y[train] - mean, data.task[train])
    assert learner.score(data.X[~train], data.y[~train] - mean, data.task[~train]) > 0.32
