"""Our boosted trees beside scikit-learn's and LightGBM's: `python -m benchmarks.trees [--markdown]`.

Each trains 120 trees of 16 leaves and 120 of 32 with the same settings on one core: 32 bins, rate 0.1, at least 10
rows a leaf, penalty 1, the task as a category. Rows are made: 10 numbers, 20 tasks, a rule with interactions. Log-loss
is that of the small trees on 20,000 further rows. A row is answered by both forests: ours from compiled code, as the
learner does it, and by a call from Python, as the others are. Times are the processor's, so that other work on the
machine counts little. `docs/choices.md` says what follows.
"""

import argparse
import pickle
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.printing import print_head, print_row
from benchmarks.timing import machine
from shoal.engine.compile import kernel
from shoal.model.state import nbytes
from shoal.online import boosted_trees
from shoal.online.boosted_trees.state import DUE

N_TRAIN, N_TEST, N_TASKS, N_CALLS = (1_000, 4_000, 16_384), 20_000, 20, 100
COLUMNS = [*(f"{n:,} rows, ms" for n in N_TRAIN), "log-loss", "a row, µs", "in Python, µs", "model, KB", "install, MB"]
Fitted = tuple[Callable[[Any, Any], Any], Callable[[], object], Any]  # logits of rows, one answer, what is saved


def made(n: int) -> tuple[Any, Any, Any]:
    """Rows, labels 0 and 1, tasks."""
    rng = np.random.default_rng(0)
    X, task = rng.random((n, 10)), rng.integers(N_TASKS, size=n)
    f = 5 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 10 * (X[:, 2] - 0.5) ** 2 + 5 * X[np.arange(n), 3 + task % 3] - 5
    return X, (rng.random(n) < 1 / (1 + np.exp(-f))) * 1.0, task


@kernel(entry=True, allocates=True)
def learn_rows(X: Any, y: Any, task: Any, regression: bool, state: boosted_trees.State) -> None:
    for i in range(len(X)):
        boosted_trees.learn(X.shape[1], X[i], y[i], 1.0, task[i], regression, boosted_trees.Effort(0.0, np.inf), state)


@kernel(entry=True, allocates=True)
def ask(X: Any, task: Any, state: boosted_trees.State, out: Any) -> None:
    possible = np.zeros(boosted_trees.LANES, np.uint32)
    for i in range(len(X)):
        boosted_trees.margins(X.shape[1], X[i], task[i], state, possible, out[i])


def ours(X: Any, y: Any, task: Any) -> tuple[Fitted, float]:
    """Its seconds: of the rows that carry one training, less what as many rows cost without."""
    n, more = len(y), 512
    again = np.arange(n + more) % n
    state = boosted_trees.extended(boosted_trees.new_state(N_TASKS), n + 2 * more, X.shape[1])
    state.counters[DUE] = n
    first = again[: n - 1]
    learn_rows(X[first], y[first], task[first], False, state)
    times = []
    for part in (again[n - 1 : n], again[n:], again[:more]):
        start = time.process_time()
        learn_rows(X[part], y[part], task[part], False, state)
        times.append(time.process_time() - start)
        state.counters[DUE] = 10**9

    def logits(X: Any, task: Any) -> Any:
        out = np.zeros((len(X), len(boosted_trees.STAGES)))
        ask(X, task, state, out)
        return out[:, 2]

    answered: Fitted = (logits, lambda: ask(X[:1], task[:1], state, np.zeros((1, 4))), boosted_trees.pack(state))
    return answered, times[0] + times[1] - times[2]


def scikit_learn(X: Any, y: Any, task: Any) -> tuple[Fitted, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier as Trees

    rows = np.column_stack([X, task])
    settings: dict[str, Any] = {"max_iter": 120, "learning_rate": 0.1, "early_stopping": False}
    settings |= {"min_samples_leaf": 10, "l2_regularization": 1.0, "max_bins": 32, "categorical_features": [10]}
    start = time.process_time()
    small, large = (Trees(max_leaf_nodes=leaves, **settings).fit(rows, y) for leaves in (16, 32))
    spent = time.process_time() - start

    def one() -> None:
        for trees in (small, large):
            trees.decision_function(rows[:1])

    return (lambda X, task: small.decision_function(np.column_stack([X, task])), one, (small, large)), spent


def lightgbm(X: Any, y: Any, task: Any) -> tuple[Fitted, float]:
    import lightgbm

    settings = {"objective": "binary", "learning_rate": 0.1, "min_data_in_leaf": 10, "lambda_l2": 1.0, "max_bin": 32}
    settings |= {"num_threads": 1, "verbosity": -1, "deterministic": True, "force_row_wise": True}
    rows = np.column_stack([X, task])
    start = time.process_time()
    small, large = (
        lightgbm.train(settings | {"num_leaves": leaves}, lightgbm.Dataset(rows, y, categorical_feature=[10]), 120)
        for leaves in (16, 32)
    )
    spent = time.process_time() - start

    def one() -> None:
        for trees in (small, large):
            trees.predict(rows[:1], raw_score=True, num_threads=1)

    def logits(X: Any, task: Any) -> Any:
        return small.predict(np.column_stack([X, task]), raw_score=True, num_threads=1)

    return (logits, one, [trees.model_to_string() for trees in (small, large)]), spent


def megabytes(package: str) -> float:
    """What is installed of a package."""
    files = metadata.files(package) or []
    return sum(file.size or 0 for file in files) / 1e6


TRAINERS = {"ours": (ours, ""), "scikit-learn": (scikit_learn, "scikit-learn"), "LightGBM": (lightgbm, "lightgbm")}


def cells(name: str) -> list[str]:
    """A line of the table."""
    train, package = TRAINERS[name]
    X, y, task = made(max(N_TRAIN) + N_TEST)
    train(X[:500], y[:500], task[:500])[0][1]()  # compiles
    found = []
    for n in N_TRAIN:
        (logits, one, saved), spent = min((train(X[:n], y[:n], task[:n]) for _ in range(3)), key=lambda run: run[1])
        found.append(f"{1e3 * spent:.0f}")
    start = time.process_time()
    f = logits(X[-N_TEST:], task[-N_TEST:])
    compiled = (time.process_time() - start) / N_TEST * 1e6 if name == "ours" else float("nan")
    start = time.process_time()
    for _ in range(N_CALLS):
        one()
    called = (time.process_time() - start) / N_CALLS * 1e6
    size = nbytes(saved) if name == "ours" else len(pickle.dumps(saved))
    loss = np.logaddexp(0, np.where(y[-N_TEST:] > 0, -f, f)).mean()
    found += [f"{loss:.4f}", f"{compiled:.2f}", f"{called:.1f}", f"{size / 1e3:.0f}"]
    return [*found, f"{megabytes(package):.0f}" if package else "0"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print a table for a page")
    markdown = parser.parse_args().markdown
    print(machine())
    print_head("240 trees on one core", COLUMNS, markdown=markdown, first="trees", width=16)
    with threadpool_limits(1):
        for name in TRAINERS:
            print_row(name, cells(name), markdown=markdown, width=16)


if __name__ == "__main__":
    main()
