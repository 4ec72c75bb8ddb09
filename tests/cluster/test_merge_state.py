"""Merging copies: the definition, entry by entry, in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.cases import LEARNERS, REGRESSORS, taught
from tests.streams import core_of, draw

from shoal import load
from shoal.cluster.merge_state import merged, shared_part, take_shared
from shoal.model.algorithm import Exchange
from shoal.model.state import named_leaves

KINDS = Exchange(mean=("weights", "records"), sum=("counts", "sums"), sums_within=(("records", (-1, -3)),))
NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e-3, 3e5])  # few, so that copies often leave entries as they were


@st.composite
def copies(draw: Any) -> list[dict[str, np.ndarray]]:
    """A base and up to four copies of it, each moved in places."""
    n = draw(st.integers(2, 5))
    return [
        {
            "weights": draw(arrays(np.float64, 4, elements=NUMBERS)),
            "records": draw(arrays(np.float32, (3, 5), elements=NUMBERS.map(lambda v: float(np.float32(v))))),
            "counts": draw(arrays(np.int64, 3, elements=st.integers(0, 3))),
            "sums": draw(arrays(np.float64, (2, 2), elements=NUMBERS)),
        }
        for _ in range(n)
    ]


def by_definition(base: float, values: list[float], *, is_sum: bool) -> float:
    moved = [value for value in values if value != base]
    if len(moved) < 2:
        return moved[0] if moved else base
    return base + sum(value - base for value in values) if is_sum else sum(moved) / len(moved)


@given(copies())
def test_every_entry_is_merged_as_its_array_says(all_copies: list[dict[str, np.ndarray]]) -> None:
    base, *others = all_copies
    found = merged(KINDS, base, others)
    for name, array in found.items():
        assert (array.dtype, array.shape) == (base[name].dtype, base[name].shape)
        for at in np.ndindex(array.shape):
            is_sum = name in KINDS.sum or (name == "records" and at[-1] in (4, 2))
            expected = by_definition(float(base[name][at]), [float(c[name][at]) for c in others], is_sum=is_sum)
            np.testing.assert_allclose(array[at], expected, rtol=1e-6 if name == "records" else 1e-12, atol=1e-9)


def exchanges(name: str) -> bool:
    """Has it copies that merge? Wrappers have no algorithm of their own."""
    algorithm = getattr(LEARNERS[name](), "algorithm", None)
    return algorithm is not None and isinstance(algorithm.exchange, Exchange)


@pytest.mark.parametrize("name", [name for name in LEARNERS if exchanges(name)])
def test_copies_of_a_learner_merge(name: str) -> None:
    """A copy that alone moved is taken to the bit; what is not shared stays, but for pulls that tasks owe."""
    learner, idle = taught(name), taught(name)
    core, other, exchange = core_of(learner), core_of(idle), core_of(learner).algorithm.exchange
    base = shared_part(exchange, core.state)
    more = draw(5, K=3, n_rows=40, regression=name in REGRESSORS)
    learner.partial_fit(more.X, more.y, more.task, rounds=more.rounds)
    moved = shared_part(exchange, core.state)
    found = merged(exchange, base, [base, moved, base])
    own = {key: array.copy() for key, array in named_leaves(other.state).items() if key not in found}
    take_shared(exchange, other.setup, other.state, found)
    after = named_leaves(other.state)
    assert all(np.array_equal(after[key], moved[key]) for key in moved)
    if exchange.settle is None:
        assert all(np.array_equal(after[key], own[key]) for key in own)
    else:
        assert not other.state.pulls.any()


@pytest.mark.parametrize("name", [name for name in LEARNERS if exchanges(name)])
def test_copies_that_saw_other_features_go_on_from_what_they_share(name: str, tmp_path: Path) -> None:
    """What is counted beside the shared arrays has to fit them: a model that came from a file is checked for that, and
    one that goes on learning relies on it."""
    rows = draw(6, K=3, n_rows=60, d=12, regression=name in REGRESSORS)
    X, half = np.asarray(rows.X), np.arange(12) < 6
    seen = [np.where(half, X, 0.0), np.where(half, 0.0, X)]
    named = [np.array([f"{side}{task}" for task in rows.task], object) for side in "ab"]
    one_each = np.arange(len(X))  # rounds
    learners: list[Any] = [LEARNERS[name](), LEARNERS[name]()]
    base: Any = None
    for _ in range(3):
        for learner, part, task in zip(learners, seen, named, strict=True):
            learner.partial_fit(part, rows.y, task, rounds=one_each)
        cores = [core_of(learner) for learner in learners]
        exchange = cores[0].algorithm.exchange
        copies = [shared_part(exchange, core.state) for core in cores]
        base = {key: np.zeros_like(array) for key, array in copies[0].items()} if base is None else base
        base = merged(exchange, base, copies)
        for core in cores:
            take_shared(exchange, core.setup, core.state, base)
            counted = {key: array.copy() for key, array in named_leaves(core.state).items()}
            if exchange.recount is not None:
                exchange.recount(core.setup, core.state)
            assert all(np.array_equal(array, counted[key]) for key, array in named_leaves(core.state).items())
        seen.reverse()
    for learner, task in zip(learners, named, strict=True):
        learner.save(tmp_path / "model")
        again = load(tmp_path / "model")
        for one in (learner, again):
            one.partial_fit(X, rows.y, task, rounds=one_each)
        mine, its = (np.asarray(one.predict(X, task)) for one in (learner, again))
        assert np.array_equal(mine, its)
        assert name in REGRESSORS or np.isfinite(learner.decision_function(X, task)).all()


@pytest.mark.parametrize("name", ["CollaborativePA", "CollaborativeCW"])
def test_the_common_model_becomes_the_mean_of_the_copies(name: str) -> None:
    """Each copy moved all of it; what tasks have of their own, and the counts of rounds, stay each copy's."""
    learners, rows = [LEARNERS[name]() for _ in range(2)], draw(7, K=2, n_rows=30, d=4)
    for learner, task in zip(learners, (0, 1), strict=True):
        of_task = rows.task == task
        learner.partial_fit(rows.X[of_task], rows.y[of_task], rows.task[of_task])
    exchange, own = core_of(learners[0]).algorithm.exchange, [learner.coef_ for learner in learners]
    copies = [shared_part(exchange, core_of(learner).state) for learner in learners]
    expected = sum(core_of(learner).state.common for learner in learners) / 2.0
    counted = [core_of(learner).state.counters.copy() for learner in learners]
    found = merged(exchange, {key: np.zeros_like(array) for key, array in copies[0].items()}, copies)
    for learner, before, counts in zip(learners, own, counted, strict=True):
        core = core_of(learner)
        take_shared(exchange, core.setup, core.state, found)
        np.testing.assert_allclose(core.state.common, expected, rtol=1e-14)
        np.testing.assert_array_equal(core.state.counters, counts)
        np.testing.assert_allclose(learner.coef_, before, rtol=1e-14)


def test_copies_of_other_features_are_refused() -> None:
    base = {"weights": np.zeros(3)}
    with pytest.raises(ValueError, match="copies of weights have shapes"):
        merged(Exchange(mean=("weights",)), base, [base, {"weights": np.zeros(4)}])
