"""The contract of all learners about numbers: any size of them, any kind of array or frame that holds them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import (
    CLASSIFIERS,
    FEWER_EXAMPLES,
    LEARNERS,
    MOST_TASKS,
    NAME_THEIR_TASKS,
    as_dict,
    learned,
    stream_for,
    taught,
    values,
    weights,
)
from tests.exclusions import each_of
from tests.streams import assert_close

each_learner = each_of(LEARNERS)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@each_learner
def test_huge_and_tiny_values_stay_finite(name: str, scale: float) -> None:
    stream = stream_for(name)
    X, y = stream.X * scale, stream.y
    learner = LEARNERS[name]()
    decisions = learner.test_then_train(X, y, stream.task, rounds=stream.rounds)
    assert np.isfinite(decisions).all()
    assert np.isfinite(weights(learner)).all()
    assert learner.relation_ is None or np.isfinite(learner.relation_).all()


@each_learner
@FEWER_EXAMPLES
@given(
    seed=st.integers(0, 10**6),
    sizes=st.sampled_from(["mixed", "mixed by column", "constant", "zero"]),
    n_tasks=st.sampled_from([1, 3, 500]),
    labels=st.sampled_from(["any", "all equal"]),
)
def test_every_finite_stream_leaves_everything_finite(
    name: str, seed: int, sizes: str, n_tasks: int, labels: str
) -> None:  # fmt: skip
    """Values from 1e-150 to 1e150 side by side, rows of zeros, constant rows, one task or 500, one label or two."""
    rng, n, d = np.random.default_rng(seed), 40, 5
    learner = LEARNERS[name]()
    K = min(n_tasks, MOST_TASKS.get(name, 500))
    powers = rng.integers(-150, 151, size=d if sizes == "mixed by column" else (n, d))
    X = rng.choice([-1.0, 1.0], (n, d)) * 10.0**powers
    if sizes in ("constant", "zero"):
        X[:] = float(sizes == "constant")
    X[::9] = 0.0
    y = np.ones(n) if labels == "all equal" else np.resize([1.0, -1.0, -1.0], n)
    task = rng.integers(K, size=n)
    options = {} if name not in CLASSIFIERS else {"classes": [-1.0, 1.0]}
    decisions = learner.add_tasks(range(K)).test_then_train(X, y, task, **options)
    assert np.isfinite(decisions).all()
    assert np.isfinite(weights(learner)).all()


@each_learner
def test_logarithms_of_probabilities_are_theirs_and_finite_where_these_are_0(name: str) -> None:
    learner, stream = taught(name), stream_for(name)
    assert hasattr(learner, "predict_log_proba") == hasattr(learner, "predict_proba")
    if hasattr(learner, "predict_proba"):
        for X in (stream.X, stream.X * 1e4):
            found, chances = learner.predict_log_proba(X, stream.task), learner.predict_proba(X, stream.task)
            np.testing.assert_allclose(np.exp(found), chances, rtol=1e-9, atol=1e-15)
            assert np.isfinite(found).all()
            assert found.shape == (len(X), len(learner.classes_))


@each_learner
def test_kinds_of_arrays(name: str) -> None:
    """float32, whole numbers, C and F order, views, read-only, int64 indices: one result for the same numbers."""
    stream = stream_for(name)
    X = np.round(4 * stream.X)
    wide = np.zeros((len(X), 14))
    wide[:, ::2] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    y, task, rounds = (array.copy() for array in (stream.y, stream.task, stream.rounds))
    for array in (y, task, rounds):
        array.flags.writeable = False
    expected = learned(LEARNERS[name]().partial_fit(X, stream.y, stream.task, rounds=stream.rounds))
    for same in (X.astype(np.float32), X.astype(int), np.asfortranarray(X), wide[:, ::2], read_only, X.tolist()):
        assert learned(LEARNERS[name]().partial_fit(same, y, task, rounds=rounds)) == expected
    csr = sp.csr_matrix(X)
    expected = learned(LEARNERS[name]().partial_fit(csr, y, task, rounds=rounds))
    long = csr.copy()
    long.indices, long.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    frozen = csr.copy()
    frozen.data.flags.writeable = frozen.indices.flags.writeable = False
    doubled = sp.csr_matrix((np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), shape=csr.shape)
    for same in (long, frozen, doubled, csr.tocsc(), csr.tocoo(), sp.csr_array(csr), csr.astype(np.float32)):
        assert learned(LEARNERS[name]().partial_fit(same, y, task, rounds=rounds)) == expected
    assert doubled.nnz == 2 * csr.nnz  # the caller's matrix is left alone


@each_learner
def test_data_frames(name: str) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    stream = stream_for(name)
    columns = {f"f{j}": stream.X[:, j] for j in range(stream.X.shape[1])}
    from_array = LEARNERS[name]().partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    for frame, y, task in (
        (pd.DataFrame(columns), pd.Series(stream.y), pd.Series(stream.task)),
        (pl.DataFrame(columns), pl.Series(stream.y), pl.Series(stream.task)),
        (pa.table(columns), pa.array(stream.y), pa.array(stream.task)),
    ):
        learner = LEARNERS[name]().partial_fit(frame, y, task, rounds=stream.rounds)
        assert learned(learner) == learned(from_array)
        assert learner.tasks_ == from_array.tasks_
        assert list(learner.feature_names_in_) == list(columns)
        assert_close(values(learner, frame, task), values(from_array, stream.X, stream.task))
        learner.learn_one(as_dict(stream.X[0]), float(stream.y[0]), 0)
        with pytest.raises(ValueError, match="'colour' is not a column"):
            learner.learn_one({"colour": 1.0}, float(stream.y[0]), 0)
        assert name in NAME_THEIR_TASKS or learner.forget_task(0).tasks_ == [1, 2, 3, 4]
