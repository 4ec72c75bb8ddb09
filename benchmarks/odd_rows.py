"""What one odd row costs each online learner: `python -m benchmarks.odd_rows` (`--markdown` prints it for a page).

Three related tasks, four features and a constant; labels of a line without noise, or targets with noise of 0.1. The odd
row is row 1,000. A cell has the error with and without it, of targets the root mean squared error in units of the
noise: over the 1,000 rows after it, or from 2,000 rows later on where a unit changes. Means over three streams.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor

import shoal
from benchmarks.complexity.cases import CASES
from benchmarks.printing import print_head, print_row
from shoal.evaluation import Periodic

AT = 1_000  # the odd row
JUDGED = 1_000  # so many rows
N_STREAMS = 3
NOISE = 0.1
LARGE = 1e6


class Rows(NamedTuple):
    """A stream: what is learned from, what is right, and the size that an error of a target is counted in."""

    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    truth: np.ndarray
    unit: np.ndarray


class OddRow(NamedTuple):
    """What happens to a clean stream. `change` takes the stream and the row at which it happens."""

    change: Callable[[Rows, int], Rows]
    what: str
    clean: Callable[[Rows], Rows] = lambda rows: rows  # what the stream is without the odd row
    wait: int = 0  # rows between the odd row and those that are judged
    several: bool = False  # needs a learner of several classes


def draw(seed: int, n_rows: int, *, regression: bool, n_features: int = 4, spread: float = 0.3) -> Rows:
    """Related linear tasks, equal if nothing is spread: features, a constant, and labels 0 and 1 or targets."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n_rows, n_features)), np.ones(n_rows)])
    task = rng.integers(3, size=n_rows)
    w = rng.normal(size=n_features + 1) + spread * rng.normal(size=(3, n_features + 1))
    w[:, 0] += np.sign(w[:, 0])  # a feature that matters
    f = np.einsum("ij,ij->i", X, w[task])
    y = f + NOISE * rng.normal(size=n_rows) if regression else (f > 0).astype(float)
    return Rows(X, y, task, y, np.full(n_rows, NOISE))


def with_y(rows: Rows, where: Any, values: Any) -> Rows:
    """Other labels or targets to learn from; what is right stays."""
    y = rows.y.copy()
    y[where] = values
    return rows._replace(y=y)


def with_x(rows: Rows, where: Any, values: Any) -> Rows:
    """Other features."""
    X = rows.X.copy()
    X[where] = values
    return rows._replace(X=X)


def scaled_target(rows: Rows, at: int, factor: float) -> Rows:
    """Targets in another unit from a row on: that is right, and errors count in the new unit."""
    scale = np.where(np.arange(len(rows.y)) < at, 1.0, factor)
    return rows._replace(y=rows.y * scale, truth=rows.truth * scale, unit=rows.unit * scale)


def wrong_labels(rows: Rows, at: int, n: int = 1) -> Rows:
    """The other label, n times."""
    return with_y(rows, slice(at, at + n), 1 - rows.y[at : at + n])


def one_label(rows: Rows) -> Rows:
    """All labels are 1."""
    return rows._replace(y=np.ones(len(rows.y)), truth=np.ones(len(rows.y)))


def from_row(at: int) -> tuple[slice, int]:
    """The first feature from a row on."""
    return slice(at, None), 0


LABELS = {
    "wrong label": OddRow(wrong_labels, "one label is the other one"),
    "20 wrong": OddRow(lambda rows, at: wrong_labels(rows, at, 20), "20 labels in a row are the other ones"),
    "label once": OddRow(lambda rows, at: with_y(rows, at, 0), "all labels are 1, but one", one_label),
    "class once": OddRow(lambda rows, at: with_y(rows, at, 2), "one label is a third class", several=True),
    "value 1e6": OddRow(lambda rows, at: with_x(rows, (at, 0), LARGE), "one value of one feature is 1e6"),
    "unit x 1e6": OddRow(
        lambda rows, at: with_x(rows, from_row(at), rows.X[from_row(at)] * LARGE),
        "from there on a feature is 1e6 times as large",
        wait=2_000,
    ),
    "unit / 1e6": OddRow(
        lambda rows, at: with_x(rows, from_row(at), rows.X[from_row(at)] / LARGE),
        "from there on a feature is 1e6 times as small, after having been 1e6 times as large",
        clean=lambda rows: with_x(rows, from_row(0), rows.X[from_row(0)] * LARGE),
        wait=2_000,
    ),
}
TARGETS = {
    "target 1e6": OddRow(
        lambda rows, at: with_y(rows, at, LARGE * rows.y.std()), "one target is 1e6 deviations of the targets"
    ),
    "20 wrong": OddRow(
        lambda rows, at: with_y(rows, slice(at, at + 20), -rows.y[at : at + 20]), "20 targets have the other sign"
    ),
    "value 1e6": LABELS["value 1e6"],
    "unit x 1e6": LABELS["unit x 1e6"],
    "unit / 1e6": LABELS["unit / 1e6"],
    "y x 1e6": OddRow(
        lambda rows, at: scaled_target(rows, at, LARGE), "from there on targets are 1e6 times as large", wait=2_000
    ),
    "y / 1e6": OddRow(
        lambda rows, at: scaled_target(rows, at, 1 / LARGE),
        "from there on targets are 1e6 times as small, after having been 1e6 times as large",
        clean=lambda rows: scaled_target(rows, 0, LARGE),
        wait=2_000,
    ),
}
# Wrappers hold what is ours, not a paper's learner as where costs are measured.
WRAPPERS: dict[str, Callable[[], Any]] = {
    "MultiClass(HedgedSharing)": shoal.MultiClass,
    "LabelQuery(HedgedSharing), half": lambda: shoal.LabelQuery(budget=0.5, random_state=0),
    "Periodic(MTFL), window 500": lambda: Periodic(shoal.MTFL(), window=500),
    "Periodic(MTFL, squared), window 500": lambda: Periodic(shoal.MTFL(loss="squared"), window=500),
}
FEW_FEATURES = (shoal.MixedEffects, shoal.MixedEffectsRegressor, shoal.TaskLevels, shoal.TaskLevelsRegressor)
LEARNERS = WRAPPERS | {kind.__name__: kind for kind in FEW_FEATURES}
AROUND = ("Conformal", "Guarded", "LabelQuery", "MultiClass", "OutsideForecast")
LEARNERS |= {name: case.make for name, case in CASES.items() if name not in AROUND}


def error_after(make: Callable[[], Any], rows: Rows, first: int) -> float:
    """Error, or root mean squared error in units, over the rows from one on."""
    learner = make()
    f = learner.test_then_train(rows.X, rows.y, rows.task)
    judged = slice(first, first + JUDGED)
    if is_regressor(learner):
        return float(np.sqrt(np.mean(((f - rows.truth) / rows.unit)[judged] ** 2)))
    answers = learner.classes_[f.argmax(axis=1)] if f.ndim > 1 else learner.classes_[(f >= 0).astype(int)]
    return float(np.mean((answers != rows.truth)[judged]))


def cost(make: Callable[[], Any], odd: OddRow, seed: int, *, regression: bool) -> tuple[float, float]:
    """What the learner makes of a stream with and without the odd row."""
    clean = odd.clean(draw(seed, AT + 1 + odd.wait + JUDGED, regression=regression))
    first = AT + 1 + odd.wait
    return error_after(make, odd.change(clean, AT), first), error_after(make, clean, first)


def number(value: float) -> str:
    """Three decimals, or three digits of what is large."""
    if value < 10:
        return f"{value:.3f}"
    return f"{value:.0f}" if value < 10_000 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")


def lines(odd_rows: dict[str, OddRow], *, regression: bool) -> Iterator[tuple[str, list[str]]]:
    """Name and cells of each learner of a kind."""
    for name, make in LEARNERS.items():
        if is_regressor(make()) != regression:
            continue
        cells = []
        for odd in odd_rows.values():
            if odd.several and not name.startswith("MultiClass"):
                cells.append("-")
                continue
            found = np.mean([cost(make, odd, seed, regression=regression) for seed in range(N_STREAMS)], axis=0)
            cells.append("/".join(map(number, found)))
        yield name, cells


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.odd_rows", description=__doc__.split("\n\n")[0])
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    options = parser.parse_args()
    for title, odd_rows in (("Labels", LABELS), ("Targets", TARGETS)):
        print()
        for name, odd in odd_rows.items():
            print(f"- {name}: {odd.what}")
        print_head(title, list(odd_rows), markdown=options.markdown)
        for name, cells in lines(odd_rows, regression=odd_rows is TARGETS):
            print_row(name, cells, markdown=options.markdown)


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    main()
