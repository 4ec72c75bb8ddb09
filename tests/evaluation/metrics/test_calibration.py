"""Calibration: bins and error by hand, the same bits however rows are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.evaluation.metrics.calibration import N_BINS, add_forecasts, calibration_error


def filled(forecast: np.ndarray, happened: np.ndarray, *cuts: int) -> np.ndarray:
    bins = np.zeros((3, N_BINS))
    for f, h in zip(np.split(forecast, cuts), np.split(happened, cuts), strict=True):
        add_forecasts(bins, f, h)
    return bins


@pytest.mark.parametrize(
    ("forecast", "place"), [(0.0, 0), (0.049, 0), (0.051, 1), (0.5, 10), (0.949, 18), (0.951, 19), (1.0, 19)]
)
def test_twenty_bins_of_equal_width(forecast: float, place: int) -> None:
    bins = filled(np.array([forecast]), np.array([1.0]))
    assert N_BINS == 20
    assert bins[:, place].tolist() == [1.0, forecast, 1.0]
    assert bins.sum() == 2.0 + forecast


@pytest.mark.parametrize(
    ("forecast", "happened", "error"),
    [
        ([0.25, 0.25, 0.25, 0.25], [1, 0, 0, 0], 0.0),
        ([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0], (0.8 + 0.2) / 4),
        ([0.9, 0.9, 0.2], [0, 0, 1], (1.8 + 0.8) / 3),
        ([0.62, 0.64], [0, 1], 0.26 / 2),  # of one bin: they make up for each other
        ([1.0, 0.0], [0, 1], 1.0),
        ([], [], math.nan),
    ],
)
def test_the_error_by_hand(forecast: list[float], happened: list[int], error: float) -> None:
    bins = filled(np.array(forecast), np.array(happened, float))
    assert calibration_error(bins) == pytest.approx(error, nan_ok=True)


def test_the_sums_do_not_depend_on_the_cuts() -> None:
    rng = np.random.default_rng(0)
    forecast, happened = rng.random(3_000), (rng.random(3_000) < 0.3).astype(float)
    whole = filled(forecast, happened)
    for cuts in ((1,), (17, 900, 901), range(1, 3_000)):
        assert np.array_equal(filled(forecast, happened, *cuts), whole)
