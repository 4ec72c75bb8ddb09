"""Losses' derivatives against finite differences of the losses, written down here once more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal.engine import losses
from shoal.engine.losses import CLASSIFICATION, REGRESSION, is_mistake

EPSILON = 0.3
LOSSES: dict[str, Callable[[float, float], float]] = {
    "hinge": lambda f, y: max(0.0, 1 - y * f),
    "squared_hinge": lambda f, y: max(0.0, 1 - y * f) ** 2,
    "logistic": lambda f, y: float(np.logaddexp(0.0, -y * f)),
    "squared": lambda f, y: (f - y) ** 2 / 2,
    "epsilon_insensitive": lambda f, y: max(0.0, abs(f - y) - EPSILON),
}
derivative = from_python(losses.derivative)
CODES = CLASSIFICATION | REGRESSION


@pytest.mark.parametrize("name", LOSSES)
@given(f=st.floats(-5, 5), y=st.sampled_from([-1.0, 1.0]))
def test_derivatives(name: str, f: float, y: float) -> None:
    h = 1e-6
    kinks = [1 / y, y - EPSILON, y + EPSILON]
    assume(min(abs(f - kink) for kink in kinks) > 2 * h)
    slope = (LOSSES[name](f + h, y) - LOSSES[name](f - h, y)) / (2 * h)
    np.testing.assert_allclose(derivative(CODES[name], f, y, EPSILON), slope, rtol=1e-5, atol=1e-8)


def test_perceptron_moves_on_mistakes_only_and_zero_predicts_plus() -> None:
    code = CODES["perceptron"]
    assert [derivative(code, f, 1.0, 0.0) for f in (-2.0, -1e-300, 0.0, 2.0)] == [-1.0, -1.0, 0.0, 0.0]
    assert [derivative(code, f, -1.0, 0.0) for f in (-2.0, 0.0, -0.0, 2.0)] == [0.0, 1.0, 1.0, 1.0]
    assert is_mistake(0.0, -1.0)
    assert not is_mistake(-0.0, 1.0)


@pytest.mark.parametrize("f", [1e4, 1e300, -1e4, -1e300])
def test_logistic_does_not_overflow(f: float) -> None:
    for y in (-1.0, 1.0):
        assert derivative(CODES["logistic"], f, y, 0.0) == (-y if y * f < 0 else 0.0)


def test_every_loss_is_tested() -> None:
    assert set(CODES) == {*LOSSES, "perceptron"}
    assert len(set(CODES.values())) == len(CODES)
