"""Learners against their twins on streams that are long, wide and rough: what random numbers never show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.online.test_kernel_perceptron import compare as compare_kernels
from tests.online.test_local_global_gaussian import compare as compare_gaussians
from tests.online.test_romco import compare as compare_romco
from tests.streams import Stream, assert_close, draw, own_parameters, roughened
from tests.twins import (
    collaborative,
    multitask_perceptron,
    omtrl,
    osmtl,
    p_norm_perceptron,
    passive_aggressive,
    schatten_perceptron,
    second_order,
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


def long(protocol: str, n_rows: int = 5_000) -> Stream:
    return roughened(draw(11, n_rows=n_rows, K=6, d=9, protocol=protocol))


def wide(protocol: str, d: int = 1_103) -> Stream:
    """More columns than any block, buffer or group of the kernels has, and no multiple of theirs."""
    return roughened(draw(12, n_rows=60, K=6, d=d, protocol=protocol, density=0.6))


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
    assert_close(said, expected)
    assert_close(learner.coef_, W if W.shape == learner.coef_.shape else W.T)
    assert np.unique(np.sign(said)).size > 1


@pytest.mark.parametrize("make", [long, wide])
@pytest.mark.parametrize("penalty", ["nuclear", "logdet"])
def test_romco(penalty: str, make: Callable[[str], Stream]) -> None:
    compare_romco(shoal.ROMCO(penalty=penalty, lambda1=0.05), make("some"), sparse=make is wide)


@pytest.mark.parametrize(("covariance", "n_rows"), [("diagonal", 5_000), ("full", 600), (3, 600)])
def test_local_global_gaussian(covariance: str | int, n_rows: int) -> None:
    """To 1e-11 for low rank: of many columns, the twin inverts a precision in each round."""
    for stream, sparse in ((long("some", n_rows), False), (wide("some", 203), True)):
        learner = shoal.LocalGlobalGaussian(covariance=covariance)
        compare_gaussians(learner, stream, stream.X, sparse=sparse, tolerance=1e-11 if covariance == 3 else 1e-12)


@pytest.mark.parametrize("make", [shoal.KernelPerceptron, shoal.SecondOrderPerceptron])
def test_kernels(make: Any) -> None:
    for stream, sparse in ((long("some", 1_000), False), (wide("some"), True)):
        learner = make(kernel="rbf", gamma=0.3, budget=35)
        compare_kernels(learner, stream, BOUND["B"], second_order.rbf(0.3), sparse=sparse)


def test_second_order() -> None:
    stream = long("one", 2_000)
    expected = second_order.primal(stream.X, stream.y, stream.task, A=multitask_perceptron.pairwise(6), a=0.5)
    for form in ("primal", "dual"):
        learner = shoal.SecondOrderPerceptron(a=0.5, form=form).add_tasks(range(6))
        assert_close(learner.test_then_train(stream.X, stream.y, stream.task), expected)
