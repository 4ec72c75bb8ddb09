"""Texts as dense rows of 384 float32 numbers: the default beside logistic regression retrained, and beside its words.

    SHOAL_DATA=... python -m benchmarks.embeddings [--streams ecml_spam] [--markdown]

The embedding is TF-IDF and a truncated singular value decomposition, learned without labels from the first tenth of the
mails or reviews and then left as it is; rows have norm 1. A task is an inbox or a domain.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from benchmarks import boosting
from benchmarks.printing import print_head, print_row
from benchmarks.scores import Scores, Stream, best_of, score, timed
from benchmarks.streams import numbered
from benchmarks.timing import machine, seconds
from shoal import HedgedSharing, MultitaskPerceptron
from shoal.datasets import Dataset, load_ecml_spam, load_enron, load_sentiment

COLUMNS = 384
WIDTHS = (384, 768, 1024)  # of the table of speeds
ROWS = 5_000  # of the same
INVERSE_PENALTIES = (1.0, 10.0, 100.0)  # C of scikit-learn
LOADERS: dict[str, Callable[[], Dataset]] = {
    "ecml_spam": lambda: load_ecml_spam().interleaved(),
    "enron": load_enron,
    "sentiment": lambda: load_sentiment(pairs=False).interleaved(),
}
NOTES = f"""\
Scores are of the rows after the first tenth, from which the embedding was learned. Rows/s: median of 3 passes, of one
if it takes longer than half a second; with the checks of the input, without making the embedding. Logistic regression
(scikit-learn) is trained anew at every twentieth of the stream on all rows so far, one model for all tasks or one a
task; the best of C = {", ".join(f"{C:g}" for C in INVERSE_PENALTIES)} in hindsight, in each column."""


def embedded(counts: Any) -> Any:
    """(n, 384) float32 rows of word counts."""
    n_first = counts.shape[0] // 10
    embedding = make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(COLUMNS, random_state=0))
    embedding.fit(counts[:n_first])
    return normalize(embedding.transform(counts)).astype(np.float32)


def retrained(stream: Stream, C: float, *, of_task: bool) -> Any:
    """(n,) logits of logistic regression trained on all rows so far; a task with one label so far answers 0."""
    logits, positive = np.zeros(len(stream.y)), stream.y > 0

    def train(X: Any, y: Any) -> boosting.Predict:
        if len(np.unique(y)) < 2:
            return lambda rows: np.zeros(len(rows))
        model = LogisticRegression(C=C, max_iter=1_000).fit(X, y)
        return lambda rows: model.decision_function(rows)

    for k in range(int(stream.task.max()) + 1) if of_task else [-1]:
        rows = np.flatnonzero(stream.task == k) if k >= 0 else np.arange(len(stream.y))
        logits[rows] = boosting.retrained(stream.X[rows], positive[rows], train, boosting.base_rates(positive[rows]))
    return logits


def one_pass(stream: Stream, relation: str) -> Any:
    """(n,) logits of the default."""
    return HedgedSharing(relation=relation).test_then_train(stream.X, stream.y, stream.task)


def systems(data: Dataset) -> Iterator[tuple[str, Scores]]:
    """The lines of a stream's table."""
    task, first = numbered(data.task), len(data.y) // 10
    stream = Stream(data.name, embedded(data.X), data.y, task)
    log_norm = Stream(data.name, normalize(data.X.log1p()), data.y, task)
    for name, rows in (("dense rows", stream), ("words", log_norm)):
        for relation in ("learned", "independent", "pooled"):
            one_pass(rows.first(100), relation)  # loads the compiled code
            yield f"HedgedSharing, {relation}, {name}", score(rows, *timed(partial(one_pass, rows, relation)), first)
    for name, of_task in (("one for all", False), ("one a task", True)):
        runs = [timed(partial(retrained, stream, C, of_task=of_task)) for C in INVERSE_PENALTIES]
        yield f"logistic regression, {name}", best_of(score(stream, *run, first) for run in runs)


def learned(X: Any, y: Any, task: Any, learner: Any) -> Any:
    """The learner after these rows."""
    return learner.partial_fit(X, y, task)


def speeds() -> Iterator[tuple[str, list[str]]]:
    """Rows a second, and how often the array could be read meanwhile, at each width."""
    random = np.random.default_rng(0)
    learners: dict[str, Callable[[], Any]] = {
        "HedgedSharing()": HedgedSharing,
        "HedgedSharing(dtype='float32')": partial(HedgedSharing, dtype="float32"),
        "MultitaskPerceptron(loss='logistic')": partial(MultitaskPerceptron, loss="logistic"),
    }
    tables = [normalize(random.standard_normal((ROWS, width))).astype(np.float32) for width in WIDTHS]
    y, task = random.choice([-1.0, 1.0], ROWS), random.integers(0, 15, ROWS)
    reading = [seconds(np.sum, partial(np.asarray, X)) for X in tables]
    yield "the array read once (numpy sum)", [f"{ROWS / least:,.0f} (1)" for least in reading]
    for name, make in learners.items():
        taken = [seconds(partial(learned, X, y, task), make, repeats=3) for X in tables]
        yield name, [f"{ROWS / s:,.0f} ({s / least:,.0f})" for s, least in zip(taken, reading, strict=True)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="*", default=[*LOADERS], choices=[*LOADERS])
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    asked = parser.parse_args()
    print(f"{machine()}\n\n{NOTES}")
    for name in asked.streams:
        data = LOADERS[name]()
        title = f"{name}: {len(data.y):,} rows, {len(np.unique(data.task))} tasks"
        print_head(title, ["AUC", "macro-AUC", "error", "log-loss", "rows/s"], markdown=asked.markdown)
        for system, found in systems(data):
            cells = [f"{found.auc:.4f}", f"{found.macro_auc:.4f}", f"{found.error:.4f}", f"{found.log_loss:.4f}"]
            print_row(system, [*cells, f"{found.speed:,.0f}"], markdown=asked.markdown)
    title = f"Learning {ROWS:,} float32 rows of 15 tasks: rows a second (times of reading the array)"
    print_head(title, [f"{width} columns" for width in WIDTHS], markdown=asked.markdown, width=20)
    for name, cells in speeds():
        print_row(name, cells, markdown=asked.markdown, width=20)


if __name__ == "__main__":
    main()
