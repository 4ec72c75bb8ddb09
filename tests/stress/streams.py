"""Streams that have what every real stream has: an entry says what happens, and what is allowed after it.

A new one is an entry of `LABELS` or `TARGETS`: it is run for every learner that claims to stand them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from benchmarks.odd_rows import Rows, draw, one_label, scaled_target, with_x, with_y, wrong_labels

Measure = Callable[[Rows, np.ndarray], float]  # of rows and the values that they were answered with


class Stream(NamedTuple):
    """Rows, how they are judged, and how bad each part of them may be: (first, last, bound)."""

    rows: Callable[[], Rows]
    bounds: list[tuple[int, int, float]]
    what: str
    why: str  # the bound
    n_learned: int | None = None  # rows after so many are answered only
    measure: Measure | None = None  # None: the error of labels, the root mean squared error of targets in their unit


def error(rows: Rows, f: np.ndarray) -> float:
    """The share of wrong labels."""
    return float(np.mean((f >= 0) != (rows.truth > 0)))


def deviation(rows: Rows, f: np.ndarray) -> float:
    """The root mean squared error, in units of the noise."""
    return float(np.sqrt(np.mean(((f - rows.truth) / rows.unit) ** 2)))


def loss_to_base_rate(rows: Rows, f: np.ndarray) -> float:
    """Log-loss beside that of the share of ones among the rows before."""
    n = np.arange(len(rows.y))
    p = (np.cumsum(rows.y) - rows.y + 0.5) / (n + 1)
    base = -np.mean(rows.y * np.log(p) + (1 - rows.y) * np.log(1 - p))
    return float(np.mean(np.logaddexp(0.0, np.where(rows.y > 0, -f, f))) / base)


def short_of_half(rows: Rows, f: np.ndarray) -> float:
    """How far below 0.5 the mean answer of the rare rows is, those whose first feature is not 0."""
    return float(0.5 - f[rows.X[:, 0] != 0].mean())


# ---- what happens ----------------------------------------------------------------------------------------------


def labels(n_rows: int, seed: int = 0) -> Rows:
    """Labels of a line."""
    return draw(seed, n_rows, regression=False, spread=0.0)


def targets(n_rows: int, seed: int = 0) -> Rows:
    """Targets of a line, with noise."""
    return draw(seed, n_rows, regression=True, spread=0.0)


def without_constant(rows: Rows) -> Rows:
    """Without the feature that is always 1."""
    return rows._replace(X=np.ascontiguousarray(rows.X[:, :-1]))


def tossed(rows: Rows, rate: float) -> Rows:
    """Labels that have nothing to do with the features."""
    y = (np.random.default_rng(1).random(len(rows.y)) < rate).astype(float)
    return rows._replace(y=y, truth=y)


def flipped(rows: Rows, share: float) -> Rows:
    """Some labels are the other ones."""
    return with_y(rows, slice(None), np.abs(rows.y - (np.random.default_rng(1).random(len(rows.y)) < share)))


def turned(rows: Rows, at: int) -> Rows:
    """The opposite is right from a row on."""
    y = np.where(np.arange(len(rows.y)) < at, rows.y, 1 - rows.y)
    return rows._replace(y=y, truth=y)


def unit_of_x(rows: Rows, at: int, before: float, after: float, columns: slice) -> Rows:
    """Features in another unit from a row on."""
    X = rows.X.copy()
    X[:at, columns] *= before
    X[at:, columns] *= after
    return rows._replace(X=X)


def constant_target(rows: Rows, until: int) -> Rows:
    """Targets are 5 at first."""
    y = rows.y.copy()
    y[:until] = 5.0
    return rows._replace(y=y, truth=y)


def constant_feature(rows: Rows, until: int) -> Rows:
    """A feature is 5 at first, whatever the target is."""
    return with_x(rows, (slice(0, until), 1), 5.0)


def one_target(size: float) -> Rows:
    """One target is something else."""
    return with_y(targets(6_000), 1_000, size)


def lifted(rows: Rows, at: int, step: float) -> Rows:
    """Targets are larger from a row on."""
    y = rows.y + np.where(np.arange(len(rows.y)) < at, 0.0, step)
    return rows._replace(y=y, truth=y)


def rare_ones(n_rows: int) -> Rows:
    """One row in 100 has something; the target of half of these is 1, of all others 0."""
    rng, rows = np.random.default_rng(1), targets(n_rows)
    rare = rng.random(n_rows) < 0.01
    y = (rare & (rng.random(n_rows) < 0.5)).astype(float)
    return with_x(rows, (slice(None), 0), rare.astype(float))._replace(y=y, truth=y)


def heavy_noise(rows: Rows) -> Rows:
    """Noise of Student's t with 1.5 degrees of freedom, on top."""
    return with_y(rows, slice(None), rows.y + 0.1 * np.random.default_rng(1).standard_t(1.5, len(rows.y)))


LABELS: dict[str, Stream] = {
    "wrong label, last": Stream(
        lambda: wrong_labels(labels(1_501), 1_000), [(1_001, 1_501, 0.05)],
        "one wrong label, and no row after it is learned", "a row in 1,000 may cost a few forecasts near the line",
        n_learned=1_001,
    ),
    "20 wrong labels": Stream(
        lambda: wrong_labels(labels(3_000), 1_500, 20), [(1_520, 2_520, 0.04)], "a burst of wrong labels",
        "20 rows against are unlearned within some tens of rows for",
    ),
    "5 % wrong labels": Stream(
        lambda: flipped(labels(3_000), 0.05), [(1_000, 3_000, 0.05)], "labels are wrong all the time",
        "below the share of wrong labels: the line is found, not the noise",
    ),
    "turn": Stream(
        lambda: turned(labels(3_000), 1_000), [(2_500, 3_000, 0.05)], "the opposite is right from the middle on",
        "what is no odd row but a change is followed",
    ),
    "label once": Stream(
        lambda: with_y(one_label(labels(2_001)), 1_000, 0), [(1_001, 2_001, 0.002)], "one label is 0, all others are 1",
        "two forecasts of 1,000 may follow a single row",
    ),
    "rare events": Stream(
        lambda: tossed(labels(10_000), 1 / 2_000), [(0, 10_000, 1.3)], "one label in 2,000 is 1, for no reason",
        "the running share of ones loses least; twelve experts that look for reasons may lose a little more",
        measure=loss_to_base_rate,
    ),
    "one value of 1e6": Stream(
        lambda: with_x(labels(3_000), (1_000, 0), 1e6), [(1_001, 2_001, 0.03)], "one value of a feature is 1e6",
        "as without it, but for the one row",
    ),
    "one value of -1e12": Stream(
        lambda: with_x(labels(3_000), (1_000, 0), -1e12), [(1_001, 2_001, 0.03)], "one value of a feature is -1e12",
        "as without it: a larger value must not cost more",
    ),
    "a unit x 1e6": Stream(
        lambda: unit_of_x(labels(5_001), 1_000, 1.0, 1e6, slice(0, 1)), [(4_000, 5_001, 0.05)],
        "a feature is 1e6 times as large from a row on", "another unit is learned within 3,000 rows",
    ),
    "a unit / 1e6": Stream(
        lambda: unit_of_x(labels(5_001), 1_000, 1e6, 1.0, slice(0, 1)), [(4_000, 5_001, 0.1)],
        "a feature is 1e6 times as small from a row on",
        "most of the way back within 3,000 rows: weights that were tiny have to grow",
    ),
    "all units / 1e6": Stream(
        lambda: unit_of_x(labels(5_001), 1_000, 1e6, 1.0, slice(0, 4)), [(4_000, 5_001, 0.1)],
        "all features are 1e6 times as small from a row on", "as for one of them",
    ),
}  # fmt: skip
BACK = [(1_101, 2_000, 1.3), (5_000, 6_000, 1.1)]
TARGETS: dict[str, Stream] = {
    **{
        f"one target of {size:g}": Stream(
            partial(one_target, size), BACK, "one target is odd",
            "back near the noise within 100 rows, at it after 4,000; the size does not matter",
        )
        for size in (1e3, 99_999.0, 1e12, -1e30)
    },
    "one value of 1e6": Stream(
        lambda: with_x(targets(6_000), (1_000, 0), 1e6), BACK, "one value of a feature is 1e6", "as one odd target"
    ),
    "one value of -1e12": Stream(
        lambda: with_x(targets(6_000), (1_000, 0), -1e12), BACK, "one value of a feature is -1e12", "as one odd target"
    ),
    "20 targets of 99999": Stream(
        lambda: with_y(targets(6_000), slice(1_000, 1_020), 99_999.0), [(2_020, 3_020, 2.0), (5_000, 6_000, 1.5)],
        "a burst of odd targets", "might be a new scale, so it may take a thousand rows to find that it was none",
    ),
    "heavy tails": Stream(
        lambda: heavy_noise(targets(4_000)), [(1_000, 4_000, 1.4)], "noise that has no variance",
        "what is right has noise of 1 itself: the line is found to within as much",
    ),
    "targets x 1e6": Stream(
        lambda: scaled_target(targets(5_001), 1_000, 1e6), [(4_000, 5_001, 5.0)],
        "targets are 1e6 times as large from a row on", "another unit is learned within 3,000 rows",
    ),
    "targets / 1e6": Stream(
        lambda: scaled_target(without_constant(targets(5_001)), 1_000, 1e-6), [(4_000, 5_001, 5.0)],
        "targets are 1e6 times as small from a row on", "another unit is learned within 3,000 rows",
    ),
    "targets / 1e6, a constant feature": Stream(
        lambda: scaled_target(targets(5_001), 1_000, 1e-6), [(4_000, 5_001, 5.0)],
        "targets are 1e6 times as small from a row on", "another unit is learned within 3,000 rows",
    ),
    **{
        f"units {before:g} to {after:g}": Stream(
            partial(unit_of_x, targets(5_001), 1_000, before, after, slice(0, 4)),
            [(4_000, 5_001, 5.0)], "all features are in another unit from a row on", "as targets in another unit",
        )
        for before, after in ((1.0, 1e6), (1e6, 1.0))
    },
    "a step of 20": Stream(
        lambda: lifted(targets(5_001), 2_000, 20.0), [(3_000, 5_000, 2.0)], "targets are 20 larger from a row on",
        "a new level is no odd row",
    ),
    "constant, then not": Stream(
        lambda: constant_target(targets(7_000), 5_000), [(6_000, 7_000, 2.0)],
        "the target does not move for 5,000 rows", "what is clipped while the deviation is 0 widens it",
    ),
    "a feature constant, then not": Stream(
        lambda: constant_feature(targets(7_000), 5_000), [(6_000, 7_000, 2.0)],
        "a feature does not move for 5,000 rows", "what is clipped while the deviation is 0 widens it",
    ),
    "rare ones": Stream(
        lambda: rare_ones(20_000), [(10_000, 20_000, 0.2)],
        "targets are 0 but for half of the rows that have something rare",
        "what is far from most targets is no odd target if a feature says it", measure=short_of_half,
    ),
}  # fmt: skip
