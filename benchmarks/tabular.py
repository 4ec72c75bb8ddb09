"""What a table costs over rows that are encoded already, in one run, as ratios.

    python -m benchmarks.tabular [ROWS]

The table is that of the flights (numbers, categories, dates, tasks). Each way learns all its rows once, predicts each
before it learns it, and checks them: a learner on encoded rows, `TabularClassifier` on the data frame, `shoal run` on
a CSV file of it, which also reads the file and scores. Single rows: `TabularClassifier.learn_one` of dicts, beside the
reader of single rows that the service predicts with and the same learner on their features.
"""

import sys
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from benchmarks.tables import departures
from benchmarks.timing import machine, seconds
from shoal import HedgedSharing, PassiveAggressive, TabularClassifier
from shoal.cli.app import start
from shoal.files import open_tables
from shoal.learner import Learner

ROLES: dict[str, Any] = {"task": "dest", "label": "late"}
SHOWN = 2_000  # single rows
TRIALS = 15
LEARNERS: dict[str, type[Learner]] = {"HedgedSharing": HedgedSharing, "PassiveAggressive": PassiveAggressive}


def whole_tables(name: str, frame: pl.DataFrame, path: Path) -> None:
    """Print rows a second of the three ways, and their ratios."""
    make = LEARNERS[name]
    chunks = list(open_tables([frame], **ROLES))

    def encoded(learner: Learner) -> None:
        for chunk in chunks:
            if hasattr(learner, "n_features_in_"):
                learner.add_features(chunk.X.shape[1] - learner.n_features_in_)
            learner.test_then_train(chunk.X, chunk.y, chunk.task, classes=[0, 1])

    def run(_: object) -> None:
        quiet = ["--no-baselines", "--quiet", "--learner", name]
        start(["run", str(path), "--task", "dest", "--label", "late", *quiet])

    alone = seconds(encoded, make, repeats=3)
    table = seconds(lambda model: model.test_then_train(frame), lambda: TabularClassifier(**ROLES, estimator=make()), 3)
    program = seconds(run, repeats=3)
    speeds = "".join(f"{frame.height / found:>12,.0f}" for found in (alone, table, program))
    print(f"{name:<18}{speeds}{table / alone:>18.2f}{program / alone:>11.2f}", flush=True)


def single_rows(name: str, frame: pl.DataFrame) -> None:
    """Print microseconds of learning a dict, and the ratio to reading it as the service does and learning its row."""
    model = TabularClassifier(**ROLES, estimator=LEARNERS[name]()).fit(frame)
    rows = frame[:SHOWN].to_dicts()
    table = model._fitted().table
    reader, learner = table.rows.one_row(), table.learner

    def by_hand(row: dict[str, Any]) -> None:
        learner.learn_sparse(reader.read(row), row["late"], row["dest"])

    def of_all(learn: Callable[[dict[str, Any]], object]) -> float:
        return seconds(lambda _: deque(map(learn, rows), maxlen=0), repeats=1) / SHOWN

    trials = [(of_all(by_hand), of_all(model.learn_one)) for _ in range(TRIALS)]  # by turns: a machine has slow minutes
    read, learned = map(median, zip(*trials, strict=True))
    print(f"{name:<18}{1e6 * read:>12.1f}{1e6 * learned:>12.1f}{learned / read:>12.2f}", flush=True)


def main(n_rows: int = 60_000) -> None:
    """The whole table."""
    frame = departures().drop("delay", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time").head(n_rows)
    print(f"{machine()}\n\n{'rows a second':<18}{'encoded':>12}{'Tabular*':>12}{'shoal run':>12}", end="")
    print(f"{'Tabular* costs':>18}{'shoal run':>11}  times the encoded rows")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.csv"
        frame.write_csv(path)
        for name in LEARNERS:
            whole_tables(name, frame, path)
    print(f"\n{'µs a row':<18}{'by hand':>12}{'learn_one':>12}{'times':>12}")
    for name in LEARNERS:
        single_rows(name, frame)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
