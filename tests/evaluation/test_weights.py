"""Weights of a stream's chunks reach the learners; scores count rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.streams import Stream, draw, drawn_weights

from shoal import OSMTL, Chunk, HedgedSharing, MultitaskPerceptron
from shoal.evaluation import progressive_validate
from shoal.files import open_stream

ROWS = draw(0, n_rows=300, protocol="one")
WEIGHT = drawn_weights(len(ROWS.y))


def chunks(rows: Stream, weight: Any, *edges: int) -> list[Chunk]:
    """The stream, cut at these rows."""
    parts = np.split(np.arange(len(rows.y)), edges)
    return [Chunk(rows.X[i], rows.y[i], rows.task[i], None, weight[i]) for i in parts]


@pytest.mark.parametrize("edges", [(), (7, 100, 250)])
@pytest.mark.parametrize("together", [False, True])
def test_learners_learn_with_weights_and_scores_count_rows(edges: tuple[int, ...], together: bool) -> None:
    learner, expected = MultitaskPerceptron(loss="hinge"), MultitaskPerceptron(loss="hinge")
    stream = chunks(ROWS, WEIGHT, *edges)
    rounds = None
    if together:  # those that continue over a chunk's end are put together
        pairs = np.arange(len(ROWS.y)) // 2
        rounds = np.cumsum(np.append(1, np.diff(pairs) | (np.diff(ROWS.task) == 0)))
        stream = [c._replace(rounds=r) for c, r in zip(stream, np.split(rounds, edges), strict=True)]
    found = progressive_validate(learner, stream, checkpoints=None)
    decisions = expected.test_then_train(ROWS.X, ROWS.y, ROWS.task, rounds=rounds, sample_weight=WEIGHT)
    np.testing.assert_array_equal(learner.coef_, expected.coef_)
    assert found.rows == len(ROWS.y)
    assert found.overall["error"] == np.mean((decisions >= 0) != (ROWS.y > 0))


def test_a_learner_that_takes_no_weights_refuses_them() -> None:
    with pytest.raises(ValueError, match="OSMTL takes no sample_weight"):
        progressive_validate(OSMTL(), chunks(ROWS, WEIGHT, 100))


def test_chunks_without_weights_beside_those_with_them_count_once() -> None:
    first, then = chunks(ROWS, WEIGHT, 100)
    for stream in ([first._replace(weight=None), then], [first, then._replace(weight=None)]):
        learner, expected = HedgedSharing(), HedgedSharing()
        progressive_validate(learner, stream)
        for chunk in stream:
            expected.partial_fit(*chunk[:3], sample_weight=chunk.weight)
        np.testing.assert_array_equal(learner.weights_, expected.weights_)


def test_a_task_without_weight_is_scored_and_not_learned() -> None:
    weight = np.where(ROWS.task == 2, 0.0, 1.0)
    learner = MultitaskPerceptron()
    found = progressive_validate(learner, chunks(ROWS, weight))
    assert set(found.per_task) == {0, 1, 2, 3, 4}
    assert found.per_task[2]["rows"] == (ROWS.task == 2).sum()
    assert found.per_task[2]["updates"] == 0
    assert learner.tasks_ == [k for k in dict.fromkeys(ROWS.task.tolist()) if k != 2]


@pytest.mark.parametrize("delay", [0, 5])
def test_late_labels_keep_their_weights(delay: int) -> None:
    learner, expected = MultitaskPerceptron(loss="hinge"), MultitaskPerceptron(loss="hinge")
    progressive_validate(learner, chunks(ROWS, WEIGHT, 50), delay=delay)
    expected.partial_fit(ROWS.X, ROWS.y, ROWS.task, sample_weight=WEIGHT)
    np.testing.assert_allclose(learner.coef_, expected.coef_, rtol=1e-12)


def test_the_weights_of_a_file_reach_the_learner(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    lines = [
        f"{k},{y:.0f},{h},{','.join(map(repr, x))}"
        for k, y, h, x in zip(ROWS.task, ROWS.y, WEIGHT, ROWS.X.tolist(), strict=True)
    ]
    path.write_text("\n".join(["user,label,h,a,b,c,d,e,f,g", *lines]) + "\n", encoding="utf-8")
    learner, expected = MultitaskPerceptron(loss="hinge"), MultitaskPerceptron(loss="hinge")
    with open_stream(str(path), task="user", label="label", weight="h") as stream:
        found = progressive_validate(learner, stream)
    assert found.rows == len(ROWS.y)
    for chunk in open_stream(str(path), task="user", label="label", weight="h"):
        expected.partial_fit(*chunk[:3], sample_weight=chunk.weight)
    np.testing.assert_array_equal(learner.coef_, expected.coef_)
    plain = MultitaskPerceptron(loss="hinge")
    progressive_validate(plain, open_stream(str(path), task="user", label="label", ignore=["h"]))
    assert not np.allclose(plain.coef_, learner.coef_)
