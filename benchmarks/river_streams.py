"""Two of river's own streams, of one task each, through `shoal.river`: `python -m benchmarks.river_streams`.

Every row is answered before it is learned. AUC is exact; `ROCAUC` is river's, which `evaluate.progressive_val_score`
prints and which goes by ten thresholds. `--markdown` prints tables for a page.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from river import datasets, forest, linear_model, metrics, preprocessing
from sklearn.metrics import roc_auc_score

from benchmarks.printing import print_head, print_row
from benchmarks.timing import machine
from shoal import HedgedSharing
from shoal.river import TaskClassifier

STREAMS: dict[str, Callable[[], Any]] = {"Phishing": datasets.Phishing, "Bananas": datasets.Bananas}
SYSTEMS: dict[str, Callable[[], Any]] = {
    "shoal TaskClassifier(HedgedSharing())": lambda: TaskClassifier(HedgedSharing()),
    "the same after StandardScaler()": lambda: preprocessing.StandardScaler() | TaskClassifier(HedgedSharing()),
    "river ARFClassifier(seed=1)": lambda: forest.ARFClassifier(seed=1),
    "river LogisticRegression() after StandardScaler()": lambda: (
        preprocessing.StandardScaler() | linear_model.LogisticRegression()
    ),
}


class Found(NamedTuple):
    """A line of the table."""

    auc: float
    rocauc: float  # river's
    speed: float  # rows a second


def run(model: Any, rows: list[tuple[dict[str, float], bool]]) -> Found:
    """Predict, then learn; rows that a model has no answer to yet are left out, as river does."""
    labels, probabilities, rocauc = [], [], metrics.ROCAUC()
    start = time.perf_counter()
    for x, y in rows:
        if answer := model.predict_proba_one(x):
            labels.append(y)
            probabilities.append(answer.get(True, 0.0))
            rocauc.update(y, answer)
        model.learn_one(x, y)
    seconds = time.perf_counter() - start
    return Found(float(roc_auc_score(labels, probabilities)), rocauc.get(), len(rows) / seconds)


def main() -> None:
    """A table a stream."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.river_streams", description=__doc__.split("\n\n")[0])
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    markdown = parser.parse_args().markdown
    print(machine())
    for name, read in STREAMS.items():
        rows = list(read())
        print_head(f"{name}: {len(rows):,} rows, one task", ["AUC", "ROCAUC", "rows/s"], markdown=markdown)
        for system, make in SYSTEMS.items():
            run(make(), rows[:100])  # loads the compiled code
            found = run(make(), rows)
            print_row(system, [f"{found.auc:.4f}", f"{found.rocauc:.4f}", f"{found.speed:,.0f}"], markdown=markdown)


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    main()
