"""How much to share, left to the data: Bayes over b and eta beside the best of them in hindsight.

    python -m benchmarks.relations [--seeds 2] [--markdown]

Rows have a constant and unit norm and come as `interleaved(seed)`; all learners predict a row, then learn it. The table
has the log-loss of all rows, and the mean AUC over tasks.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import shoal
from benchmarks.printing import print_head, print_row
from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import Dataset, load_landmine, load_mhc
from shoal.evaluation import aucs
from shoal.online.bayes_multitask import BS, ETAS

HINDSIGHT = {
    "independent, best eta in hindsight": BS[:1],
    "pooled, best eta in hindsight": BS[-1:],
    "best (b, eta) in hindsight": BS,
}


class Scores(NamedTuple):
    """Of all rows."""

    log_loss: float
    auc: float  # the mean over tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="a table for docs/benchmarks.md")
    options = parser.parse_args()
    for load in (load_landmine, load_mhc):
        runs = [measured(load().interleaved(seed)) for seed in range(options.seeds)]
        title = f"{load().name}, seeds {', '.join(map(str, range(options.seeds)))}"
        print_head(title, ["log-loss", "AUC"], markdown=options.markdown, width=18)
        for name in runs[0]:
            cells = [" / ".join(f"{run[name][i]:.4f}" for run in runs) for i in range(2)]
            print_row(name, cells, markdown=options.markdown, width=18)


def measured(data: Dataset) -> dict[str, Scores]:
    """The scores of each line."""
    X = unit_rows(data.X)

    def of(learner: shoal.Learner) -> Scores:
        decisions = learner.test_then_train(X, data.y, data.task)
        _, codes = np.unique(data.task, return_inverse=True)
        auc = np.nanmean(aucs(codes, data.y > 0, decisions, codes.max() + 1)[1])
        return Scores(float(np.logaddexp(0.0, -data.y * decisions).mean()), float(auc))

    def logistic(**options: Any) -> Scores:
        return of(MultitaskPerceptron(loss="logistic", **options))

    alone = {(b, eta): logistic(relation=b, eta=eta) for b in BS for eta in ETAS}
    found = {name: min(scores for (b, _), scores in alone.items() if b in bs) for name, bs in HINDSIGHT.items()}
    found["relation='auto', eta='auto'"] = logistic(relation="auto", eta="auto")
    found["relation='auto', eta=1"] = logistic(relation="auto")
    found["HedgedSharing"] = of(HedgedSharing())
    return found


def unit_rows(X: Any) -> Any:
    """With a constant, of unit norm."""
    rows = sp.csr_matrix(sp.hstack([sp.csr_matrix(X), np.ones((X.shape[0], 1))]))
    return sp.csr_matrix(rows.multiply(1.0 / np.sqrt(rows.multiply(rows).sum(axis=1))))


if __name__ == "__main__":
    main()
