"""OSMTL against its twin in every option, and the special cases of the paper."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import ATTENTION, saved
from tests.streams import Stream, assert_close, core_of, draw
from tests.twins import osmtl as twin

import shoal
from shoal import OSMTL, OSMTLRegressor, relations

OPTIONS = [
    {"attention": attention, "memory": memory, "trigger": trigger, "absent": absent}
    for (attention, memory), trigger, absent in product(
        [("exponential", False), ("threshold", False), ("threshold", True)], ["mistake", "margin"], ["stay", "follow"]
    )
]


def paper_parameters(learner: Any) -> dict[str, Any]:
    """All but what the weights are stored in."""
    return {name: value for name, value in learner.get_params().items() if name not in ("dtype", "classes")}


def compare(learner: Any, stream: Stream, *, sparse: bool = False, n_declared: int = 0) -> None:
    if n_declared:
        learner.add_tasks(range(n_declared))
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W, P, updates = twin.learn(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, n_declared=n_declared, **paper_parameters(learner)
    )
    assert_close(decisions, expected)
    assert_close(learner.coef_, W.T)
    assert_close(learner.attention_, P)
    np.testing.assert_array_equal(learner.task_updates_, updates)
    assert learner.n_updates_ > 0
    answer = learner.predict if isinstance(learner, OSMTLRegressor) else learner.decision_function
    assert_close(answer(X, np.full(len(stream.y), "nobody")), stream.X @ W.mean(axis=1))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_equals_twin_in_every_option(options: dict[str, Any], protocol: str, sparse: bool) -> None:
    stream = draw(1, K=5, protocol=protocol, density=0.5 if sparse else 1.0)
    compare(OSMTL(alpha=0.4, C=0.3, lam=1.5, **options), stream, sparse=sparse)


@pytest.mark.parametrize("K", [1, 2, 15, 16, 17, 35])
@pytest.mark.parametrize("absent", ["stay", "follow"])
def test_equals_twin_for_any_number_of_tasks(K: int, absent: str) -> None:
    """Tasks are padded to blocks: numbers below, at and above a whole block; more declared than seen."""
    compare(OSMTL(lam=2.0, absent=absent), draw(2, K=K, protocol="some"))
    compare(OSMTL(lam=2.0, absent=absent), draw(3, K=K, protocol="growing"), n_declared=K + 3)


@pytest.mark.parametrize(("alpha", "C"), [("auto", "auto"), ("auto", 0.5), (0.3, "auto"), (0.0, 1.0), (1.0, 1.0)])
@pytest.mark.parametrize("trigger", ["mistake", "margin"])
def test_equals_twin_with_the_schedule(alpha: float | str, C: float | str, trigger: str) -> None:
    compare(OSMTL(alpha=alpha, C=C, trigger=trigger), draw(4, K=4, n_rows=300, protocol="some"))


@pytest.mark.parametrize("options", OPTIONS[:4], ids=lambda o: f"{o['trigger']}-{o['absent']}")
@pytest.mark.parametrize(("alpha", "protocol"), [(0.0, "all"), (0.4, "some")])
def test_a_given_attention_equals_the_twin_and_stays(alpha: float, protocol: str, options: dict[str, Any]) -> None:
    """Eq. 3 with a fixed P, not symmetric and with zeros; alpha = 0 is domain adaptation (section 2.3)."""
    for density in (1.0, 0.5):
        learner = OSMTL(**{**options, "alpha": alpha, "C": 0.3, "attention": ATTENTION})
        compare(learner, draw(12, protocol=protocol, density=density), sparse=density < 1)
        np.testing.assert_array_equal(learner.attention_, ATTENTION)
    uniform = np.full((5, 5), 0.2)
    frozen, same = (OSMTL(**{**options, "C": 0.3, **more}) for more in ({"lam": np.inf}, {"attention": uniform}))
    stream = draw(13, protocol=protocol)
    for each in (frozen, same):
        each.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert_close(same.coef_, frozen.coef_)


def test_a_given_attention_names_its_tasks(tmp_path: Path) -> None:
    stream, names = draw(14), np.array(["e", "d", "c", "b", "a"])
    learner = OSMTL(alpha=0.0, attention=relations.attention(ATTENTION, tasks=names.tolist()))
    half = int(np.flatnonzero(np.diff(stream.rounds))[30]) + 1
    learner.partial_fit(stream.X[:half], stream.y[:half], names[stream.task[:half]], rounds=stream.rounds[:half])
    learner.save(tmp_path / "model")
    loaded = shoal.load(tmp_path / "model")
    for each in (learner, loaded):
        each.partial_fit(stream.X[half:], stream.y[half:], names[stream.task[half:]], rounds=stream.rounds[half:])
    assert saved(loaded) == saved(learner)
    assert loaded.attention_.tobytes() == ATTENTION.tobytes()
    assert learner.tasks_ == names.tolist()
    plain = OSMTL(alpha=0.0, attention=ATTENTION.tolist())
    plain.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_array_equal(plain.coef_, learner.coef_)
    before = saved(learner)
    with pytest.raises(ValueError, match="task 'z' is not one of the tasks that the relation names"):
        learner.partial_fit(stream.X[:1], stream.y[:1], ["z"])
    with pytest.raises(ValueError, match="none can be forgotten"):
        learner.forget_task("a")
    assert saved(learner) == before
    learner.set_params(attention=relations.attention(np.eye(5), tasks=names.tolist()))  # a new P of the same tasks
    np.testing.assert_array_equal(learner.attention_, np.eye(5))
    with pytest.raises(ValueError, match="names other tasks"):
        learner.set_params(attention="exponential").predict(stream.X, names[stream.task])


OF_REAL = [{k: v for k, v in o.items() if k != "trigger"} for o in OPTIONS if o["trigger"] == "margin"]


@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("options", OF_REAL, ids=lambda o: f"{o['attention']}-{o['memory']}-{o['absent']}")
def test_the_regressor_equals_the_twin(options: dict[str, Any], protocol: str) -> None:
    for density in (1.0, 0.5):
        stream = draw(15, protocol=protocol, density=density, regression=True)
        compare(OSMTLRegressor(alpha=0.4, C=0.3, lam=1.5, epsilon=0.2, **options), stream, sparse=density < 1)
    given = OSMTLRegressor(alpha="auto", C="auto", **{**options, "attention": ATTENTION})
    compare(given, draw(16, protocol=protocol, regression=True))


def test_the_regressor_with_one_task_is_a_step_along_the_sign_of_the_error() -> None:
    """Alone and with epsilon = 0, w <- w + C sign(y - f) x; within epsilon nothing changes; scales go together."""
    stream = draw(17, K=1, regression=True)
    w = np.zeros(7)
    for x, y in zip(stream.X, stream.y, strict=True):
        w += 0.2 * np.sign(y - w @ x) * x
    assert_close(OSMTLRegressor(C=0.2, epsilon=0.0).fit(stream.X, stream.y).coef_, [w])
    assert OSMTLRegressor(epsilon=np.inf).fit(stream.X, stream.y).n_updates_ == 0
    stream = draw(18, protocol="all", regression=True)
    small, large = (
        OSMTLRegressor(C=0.2 * s, lam=0.5 * s**2, epsilon=0.1 * s).fit(stream.X, s * stream.y, stream.task)
        for s in (1.0, 8.0)
    )
    assert_close(large.coef_, 8 * small.coef_)  # C l / lam is the same, so attention moves alike
    assert_close(large.attention_, small.attention_)


@given(
    seed=st.integers(0, 10**6), alpha=st.floats(0, 1), C=st.floats(0.01, 3), lam=st.floats(0.05, 50),
    options=st.sampled_from(OPTIONS), protocol=st.sampled_from(["one", "some", "all", "growing"]),
)  # fmt: skip
def test_equals_twin_wherever_hypothesis_looks(
    seed: int, alpha: float, C: float, lam: float, options: dict[str, Any], protocol: str
) -> None:
    stream = draw(seed, K=4, n_rows=40, protocol=protocol)
    learner = OSMTL(alpha=alpha, C=C, lam=lam, **options)
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    _, W, P, _ = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **paper_parameters(learner))
    assert_close(learner.coef_, W.T)
    assert_close(learner.attention_, P)


@pytest.mark.parametrize("lam", [0.1, 1.0, 1e5])
def test_raw_counts_neither_overflow_nor_underflow(lam: float) -> None:
    """With counts up to 1e5 losses reach 1e10, where exp(-loss) is 0 for every task: only log P survives."""
    stream = draw(5, K=5, n_rows=300, protocol="all", scale=1.0)
    counts = np.floor(np.abs(stream.X) ** 9 * 100).clip(0, 1e5)
    assert counts.max() == 1e5
    learner = OSMTL(lam=lam).fit(counts, stream.y, stream.task, rounds=stream.rounds)
    W, log_P = twin.learn_log_attention(counts, stream.y, stream.task, stream.rows_of_rounds, alpha=0.5, C=1.0, lam=lam)
    assert_close(learner.coef_, W.T)
    np.testing.assert_allclose(learner.attention_.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(learner.attention_, np.exp(log_P), rtol=1e-9, atol=1e-12)
    _, _, plain, _ = twin.learn(counts, stream.y, stream.task, stream.rows_of_rounds, **paper_parameters(learner))
    if lam == 0.1:  # the test is worth something: plain probabilities do break here
        assert not np.allclose(plain, np.exp(log_P), rtol=1e-3)


@given(seed=st.integers(0, 10**6), lam=st.floats(0.05, 50), options=st.sampled_from(OPTIONS))
def test_rows_of_attention_sum_to_one(seed: int, lam: float, options: dict[str, Any]) -> None:
    stream = draw(seed, K=6, n_rows=60, protocol="growing")
    learner = OSMTL(lam=lam, **options).partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    K = len(learner.tasks_)
    mass = np.exp(core_of(learner).state.log_attention[:K, :K]).sum(axis=1)  # as kept, before `attention_` normalises
    np.testing.assert_allclose(mass, 1.0, rtol=1e-12)
    np.testing.assert_allclose(learner.attention_.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(learner.relation_, 0.5 * np.eye(K) + 0.5 * learner.attention_, rtol=1e-14)


@given(seed=st.integers(0, 10**6))
def test_absent_tasks_gain_and_lose_no_attention(seed: int) -> None:
    """Spec 2.3: attention moves on the present tasks only and they keep their mass."""
    before = draw(seed, K=5, n_rows=30, protocol="all")
    learner = OSMTL(C=0.5).fit(before.X, before.y, before.task, rounds=before.rounds)
    P = learner.attention_
    present = learner.tasks_[:3]
    learner.learn_round({k: (x, y) for k, x, y in zip(present, before.X, -before.y, strict=False)})
    changed = learner.attention_
    np.testing.assert_allclose(changed[:, 3:], P[:, 3:], rtol=1e-12)
    np.testing.assert_array_equal(changed[3:], P[3:])


def test_alpha_one_is_independent_learning() -> None:
    stream = draw(6, K=4, protocol="all")
    learner = OSMTL(alpha=1.0, C=0.3).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    for k in learner.tasks_:
        w = np.zeros(stream.X.shape[1])
        for x, y in zip(stream.X[stream.task == k], stream.y[stream.task == k], strict=True):
            if (w @ x >= 0) != (y > 0):
                w += 0.3 * y * x
        assert_close(learner.coef_[k], w)
    np.testing.assert_allclose(learner.attention_, 1 / 4, rtol=1e-14)


@pytest.mark.parametrize("protocol", ["some", "all"])
@pytest.mark.parametrize("attention", ["exponential", "threshold"])
def test_infinite_lam_freezes_attention(protocol: str, attention: str) -> None:
    stream = draw(7, K=4, protocol=protocol)
    learner = OSMTL(lam=np.inf, attention=attention).add_tasks(range(4))
    decisions = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_allclose(learner.attention_, 1 / 4, rtol=1e-14)
    assert np.isfinite(decisions).all()


def test_frozen_attention_is_foml() -> None:
    """Spec 6.5: alpha = 1/(K+1), P = 1/K gives R = (I + 11^T)/(K+1)."""
    K = 4
    stream = draw(8, K=K, protocol="all")
    learner = OSMTL(alpha=1 / (K + 1), lam=np.inf).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    W, R = np.zeros((K, stream.X.shape[1])), (np.eye(K) + 1) / (K + 1)
    for rows in stream.rows_of_rounds:
        F, tasks = W @ stream.X[rows].T, stream.task[rows]
        for i, k in enumerate(tasks):
            if (F[k, i] >= 0) != (stream.y[rows[i]] > 0):
                active = stream.y[rows] * F[k] < 1
                W[k] += (R[k, tasks] * active * stream.y[rows]) @ stream.X[rows]
    assert_close(learner.coef_, W)
    assert_close(learner.relation_, R)


def test_one_row_a_round_as_the_docstring_says() -> None:
    """ "stay" is then independent learning with step C (alpha + (1 - alpha)/K), and attention never moves."""
    K = 4
    stream = draw(9, K=K, protocol="one")
    learner = OSMTL(alpha=0.4, C=0.5).fit(stream.X, stream.y, stream.task, rounds=np.arange(len(stream.y)))
    step = 0.5 * (0.4 + 0.6 / K)
    independent = OSMTL(alpha=1.0, C=step).fit(stream.X, stream.y, stream.task, rounds=np.arange(len(stream.y)))
    assert_close(learner.coef_, independent.coef_)
    np.testing.assert_allclose(learner.attention_, 1 / K, rtol=1e-12)
    follow = OSMTL(alpha=0.4, C=0.5, absent="follow")
    follow.fit(stream.X, stream.y, stream.task, rounds=np.arange(len(stream.y)))
    np.testing.assert_allclose(follow.attention_, 1 / K, rtol=1e-12)
    assert (np.abs(follow.coef_ - learner.coef_).sum(axis=1) > 0).all()


@given(seed=st.integers(0, 10**6), options=st.sampled_from([o for o in OPTIONS if o["trigger"] == "margin"]))
def test_flipping_all_labels_flips_all_weights(seed: int, options: dict[str, Any]) -> None:
    stream = draw(seed, n_rows=60)
    learner = OSMTL(lam=2.0, **options)
    weights = learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds).coef_
    flipped = learner.fit(stream.X, -stream.y, stream.task, rounds=stream.rounds).coef_
    np.testing.assert_array_equal(flipped, -weights)


def test_threshold_ends_attention_at_lam() -> None:
    """OSMTL-t gives no attention to a task whose loss reaches lam; exponential attention never ends."""
    stream = draw(10, K=6, n_rows=300, protocol="all")
    threshold = OSMTL(attention="threshold", lam=1.2).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert (threshold.attention_ == 0).any()
    exponential = OSMTL(lam=1.2).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert (exponential.attention_ > 0).all()


def test_threshold_below_one_keeps_the_start() -> None:
    """With lam <= 1 every row is zero at W = 0 and stays as it was (spec 2.4)."""
    stream = draw(11, K=3, n_rows=3, protocol="all")
    learner = OSMTL(attention="threshold", lam=1.0, trigger="margin")
    learner.fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    np.testing.assert_allclose(learner.attention_, 1 / 3, rtol=1e-14)


def test_attention_finds_the_task_with_the_same_weights() -> None:
    """Tasks 0 and 1 are one task, task 2 the opposite: attention between 0 and 1 outgrows that to 2."""
    rng = np.random.default_rng(0)
    w, n = rng.normal(size=6), 200
    X = rng.normal(size=(3 * n, 6))
    task = np.tile([0, 1, 2], n)
    y = np.where(X @ w >= 0, 1, -1) * np.where(task == 2, -1, 1)
    P = OSMTL().fit(X, y, task).attention_
    assert P[0, 1] > 100 * P[0, 2]
    assert P[1, 0] > 100 * P[1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.1}, "alpha must be a number in"), ({"alpha": -0.1}, "alpha must be a number in"),
        ({"alpha": float("nan")}, "alpha"),
        ({"alpha": "many"}, "alpha must be a number in"), ({"C": 0.0}, "C must be"),
        ({"C": np.inf}, "C must be"),
        ({"C": -1.0}, "C must be"), ({"lam": 0.0}, "lam must be"), ({"lam": float("nan")}, "lam must be"),
        ({"attention": "soft"}, "attention must be one of"),
        ({"attention": None}, "attention must be one of .* or a matrix"),
        ({"attention": np.ones((2, 2))}, "attention P must sum to 1"), ({"attention": 0.5}, "must be a square matrix"),
        ({"trigger": "often"}, "trigger must be one of"),
        ({"absent": "leave"}, "absent must be one of"), ({"epsilon": -0.1}, "epsilon must be a number >= 0"),
    ],
)  # fmt: skip
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        (OSMTLRegressor if "epsilon" in options else OSMTL)(**options).partial_fit([[1.0]], [1])


@pytest.mark.parametrize("trigger", ["mistake", "margin"])
def test_the_pooled_baseline_takes_the_same_steps(trigger: str) -> None:
    """Of length C, or with C = "auto" of length 1/sqrt(t)."""
    for C, eta, step in (("auto", 1.0, "sqrt"), (0.3, 0.3, "constant")):
        found = OSMTL(C=C, trigger=trigger).baselines()["pooled"].get_params()
        loss = "hinge" if trigger == "margin" else "perceptron"
        assert [found[name] for name in ("relation", "loss", "eta", "step")] == ["pooled", loss, eta, step]
