"""Losses' derivatives against finite differences of the losses, written down here once more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.compiled import from_python

from shoal.engine import losses
from shoal.engine.losses import CLASSIFICATION, LARGEST_STEP, REGRESSION, is_mistake
from shoal.engine.rounds import Rounds

EPSILON = 0.3
LOSSES: dict[str, Callable[[float, float], float]] = {
    "hinge": lambda f, y: max(0.0, 1 - y * f),
    "squared_hinge": lambda f, y: max(0.0, 1 - y * f) ** 2,
    "logistic": lambda f, y: float(np.logaddexp(0.0, -y * f)),
    "squared": lambda f, y: (f - y) ** 2 / 2,
    "epsilon_insensitive": lambda f, y: max(0.0, abs(f - y) - EPSILON),
    "huber": lambda f, y: (f - y) ** 2 / 2 if abs(f - y) <= EPSILON else EPSILON * (abs(f - y) - EPSILON / 2),
    "absolute": lambda f, y: abs(f - y),
    "quantile": lambda f, y: max(EPSILON * (y - f), (1 - EPSILON) * (f - y)),
    "poisson": lambda f, y: float(np.exp(f) - y * f),
    "gamma": lambda f, y: float(f + y * np.exp(-f)),
}
IMPLICIT = ("huber", "absolute", "quantile", "poisson", "gamma")
STEEP = ("squared", "squared_hinge", "huber", "poisson", "gamma")
derivative, step_along, weighted_step = map(from_python, (losses.derivative, losses.step_along, losses.weighted_step))
CODES = CLASSIFICATION | REGRESSION


@pytest.mark.parametrize("name", LOSSES)
@given(f=st.floats(-5, 5), y=st.sampled_from([-1.0, 1.0]))
def test_derivatives(name: str, f: float, y: float) -> None:
    h = 1e-6
    y = abs(y) if name in ("poisson", "gamma") else y
    kinks = [1 / y, y, y - EPSILON, y + EPSILON]
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


def test_where_losses_have_their_kinks() -> None:
    """A margin of 1 is no loss; an error of epsilon is none."""
    assert [derivative(CODES["hinge"], f, 1.0, 0.0) for f in (np.nextafter(1.0, 0.0), 1.0)] == [-1.0, 0.0]
    assert [derivative(CODES["hinge"], f, -1.0, 0.0) for f in (np.nextafter(-1.0, 0.0), -1.0)] == [1.0, 0.0]
    insensitive = CODES["epsilon_insensitive"]
    errors = (-0.25, np.nextafter(-0.25, -1.0), 0.25, np.nextafter(0.25, 1.0))
    assert [derivative(insensitive, error, 0.0, 0.25) for error in errors] == [0.0, -1.0, 0.0, 1.0]
    assert derivative(CODES["logistic"], 699.0, 1.0, 0.0) == pytest.approx(-np.exp(-699.0), rel=1e-12)
    assert derivative(CODES["logistic"], 700.0, 1.0, 0.0) == 0.0


def row_of(x: list[float], weight: float = 1.0) -> Rounds:
    """The second of two rows, dense; the first is larger."""
    values = np.array([*(9.0 + abs(value) for value in x), *x])
    none = np.zeros(0, np.int64)
    return Rounds(
        len(x), none, none.astype(np.int32), values, np.zeros(2, np.int64), np.ones(2), np.arange(3), np.full(2, weight)
    )


@pytest.mark.parametrize("name", CODES)
def test_steps_end_where_weights_would_be_no_numbers(name: str) -> None:
    """The largest value moves its weight by at most 1e140 where slopes have no bound."""
    for x, largest in (([0.5, -1e150, 3.0], 1e150), ([2.0, 1.0, -0.25], 2.0)):
        most = LARGEST_STEP / largest
        for step in (0.75 * most, most, -most, 2.0 * most, -2.0 * most, 1e300):
            expected = float(np.clip(step, -most, most)) if name in STEEP else step
            assert step_along(CODES[name], step, row_of(x), 1) == pytest.approx(expected, rel=1e-15)
    assert step_along(CODES[name], 3e139, row_of([0.0, 0.0]), 1) == 3e139
    assert step_along(CODES["squared"], 1e300, row_of([0.0, 0.0]), 1) == 1e300  # moves nothing


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 2.0, 2.5, 7.0])
def test_a_row_that_counts_several_times_takes_a_step_after_the_other(name: str, weight: float) -> None:
    code, x, rate, step = CODES[name], [1.5, -0.5, 1.0], 0.6, 0.4
    gain = rate * 3.5  # ||x||^2 = 3.5
    for f, y in ((0.2, -1.0), (-3.0, 1.0), (1.5, 1.0), (-0.1, 1.0)):
        y, total, left = abs(y) if name in ("poisson", "gamma") else y, 0.0, weight
        while left > 0.0:
            part, margin = step * min(left, 1.0), f + gain * total
            move = -part * derivative(code, margin, y, EPSILON)
            if name in IMPLICIT:  # m = -eta l'(f + gain m, y) by bisection: m + eta l' rises with m
                low, high = min(move, 0.0), max(move, 0.0)
                for _ in range(200):
                    move = (low + high) / 2
                    below = move + part * derivative(code, margin + gain * move, y, EPSILON) < 0
                    low, high = (move, high) if below else (low, move)
            total += move
            left -= 1.0
        found = weighted_step(code, step, f, y, EPSILON, rate, row_of(x, weight), 1)
        assert found == pytest.approx(total, rel=1e-12, abs=1e-15)


def test_weighted_steps_stay_numbers_and_end_where_the_loss_does() -> None:
    assert weighted_step(CODES["squared"], 1.0, -1e200, 1.0, 0.0, 1.0, row_of([1e10], 1.0), 1) == 1e130
    assert weighted_step(CODES["squared_hinge"], 1.0, -1e200, 1.0, 0.0, 1.0, row_of([-1e10], 1.0), 1) == 1e130
    assert weighted_step(CODES["hinge"], 1e200, -1.0, 1.0, 0.0, 1.0, row_of([1e10], 1.0), 1) == 1e200
    assert weighted_step(CODES["squared"], 1.0, 5.0, 1.0, 0.0, 1.0, row_of([0.0], 1.0), 1) == -4.0
    assert weighted_step(CODES["hinge"], 0.5, 0.0, 1.0, 0.0, 1.0, row_of([1.0], 1e6), 1) == 1.0  # two steps, then none
