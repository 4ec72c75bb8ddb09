"""Learners against their twins on streams that are long, wide and rough: what random numbers never show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.streams import Stream, assert_close, draw, own_parameters, roughened
from tests.twins import (
    collaborative,
    multitask_perceptron,
    omtrl,
    osmtl,
    p_norm_perceptron,
    passive_aggressive,
    schatten_perceptron,
    shared_loss,
)

import shoal

BOUND = {"B": multitask_perceptron.inverse_of(multitask_perceptron.pairwise)}
TWINS: dict[str, tuple[Any, Callable[..., Any], dict[str, Any] | None]] = {  # options; None: the learner's own
    "PassiveAggressive": (shoal.PassiveAggressive(), passive_aggressive.learn, {"variant": "PA-I", "C": 1.0}),
    "MultitaskPerceptron": (
        shoal.MultitaskPerceptron(), multitask_perceptron.learn,
        BOUND | {"loss": "perceptron", "eta": 1.0, "sqrt_step": False, "epsilon": 0.0},
    ),
    "PNormPerceptron": (shoal.PNormPerceptron(p=3.0), p_norm_perceptron.learn, BOUND | {"p": 3.0}),
    "CollaborativePA": (shoal.CollaborativePA(), collaborative.learn_pa, None),
    "CollaborativeCW": (shoal.CollaborativeCW(), collaborative.learn_cw, None),
    "SharedLoss": (shoal.SharedLoss(), shared_loss.learn, None),
    "OSMTL": (shoal.OSMTL(), osmtl.learn, None),
    "OMTRL": (shoal.OMTRL(), omtrl.learn, None),
    "SchattenPerceptron": (shoal.SchattenPerceptron(p=4), schatten_perceptron.learn, {"p": 4}),
}  # fmt: skip


def long(protocol: str) -> Stream:
    return roughened(draw(11, n_rows=5_000, K=6, d=9, protocol=protocol))


def wide(protocol: str) -> Stream:
    """More columns than any block, buffer or group of the kernels has, and no multiple of theirs."""
    return roughened(draw(12, n_rows=60, K=6, d=1_103, protocol=protocol, density=0.6))


@pytest.mark.parametrize("make", [long, wide])
@pytest.mark.parametrize("name", TWINS)
def test_rough_streams(name: str, make: Callable[[str], Stream]) -> None:
    learner, learn, options = TWINS[name]
    learner = learner.__class__(**learner.get_params())
    stream = make("some")
    options = own_parameters(learner) if options is None else options
    said = learner.test_then_train(
        stream.sparse if make is wide else stream.X, stream.y, stream.task, rounds=stream.rounds
    )
    expected, W, *_ = learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **options)
    assert_close(said, expected, 1e-9)
    assert_close(learner.coef_, W if W.shape == learner.coef_.shape else W.T, 1e-9)
    assert np.unique(np.sign(said)).size > 1
