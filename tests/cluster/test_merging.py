"""Merging copies: the definition, entry by entry, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.cases import LEARNERS, REGRESSORS, taught
from tests.streams import core_of, draw

from shoal.cluster.merging import merged, shared_part, take_shared
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
    try:
        return isinstance(LEARNERS[name]().algorithm.exchange, Exchange)
    except NotImplementedError:
        return False


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


def test_copies_of_other_features_are_refused() -> None:
    base = {"weights": np.zeros(3)}
    with pytest.raises(ValueError, match="copies of weights have shapes"):
        merged(Exchange(mean=("weights",)), base, [base, {"weights": np.zeros(4)}])
