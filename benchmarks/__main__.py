"""The table of `make bench`: rows a second over chunks, microseconds of one example; ratios to peers in this run.

Limits stand beside the peers: what the memory of this machine allows, and what NumPy does that learns nothing.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from river.linear_model import PAClassifier
from sklearn.linear_model import SGDClassifier
from tests.twins import romco as eager_romco
from vowpalwabbit import Workspace

from benchmarks.data import text_like
from benchmarks.roofline import bandwidth
from benchmarks.scores import Stream
from benchmarks.timing import machine, seconds, seconds_a_call
from benchmarks.vw import table_bits, write_text
from shoal import OSMTL, ROMCO, HedgedSharing, MultitaskPerceptron, PassiveAggressive
from shoal.datasets import load_flights

N_ROWS = 60_000


def rows_a_second(learner: Callable[[], Any], X: Any, y: Any, task: Any) -> float:
    """`partial_fit` of all rows by a new learner that knows the tasks and the width; checks of the input included."""

    def ready() -> Any:
        return learner().add_tasks(range(int(task.max()) + 1)).add_features(X.shape[1])

    return float(X.shape[0] / seconds(lambda model: model.partial_fit(X, y, task), ready))


def sgd_rows_a_second(X: Any, y: Any) -> float:
    """scikit-learn's Perceptron, one model for all rows, one pass in order."""

    def run(model: Any) -> None:
        model.partial_fit(X, y, classes=[-1.0, 1.0])

    options = {"loss": "perceptron", "penalty": None, "learning_rate": "constant", "eta0": 1.0, "shuffle": False}
    return float(X.shape[0] / seconds(run, lambda: SGDClassifier(**options)))


def reading_rows_a_second(X: Any) -> float:
    """What memory allows: the rows read once, at the bytes a second of a loop that copies."""
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return float(X.shape[0] * bandwidth() / size)


def product_rows_a_second(X: Any) -> float:
    """What NumPy and SciPy allow: the margins of one model that does not learn, all in one call."""
    w = np.ones(X.shape[1])
    return float(X.shape[0] / seconds(lambda _: X @ w))


def vw_rows_a_second(stream: Stream, setting: str) -> float:
    """VW from its own cache of the rows: no text to parse, which is most of its time."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "rows.vw")
        write_text(stream, text)
        options = f"-d {text} -c -b {table_bits(stream)} --loss_function logistic --quiet {setting}"
        Workspace(f"{options} -k").finish()  # writes the cache
        return len(stream.y) / seconds(lambda _: Workspace(options).finish())


def river_rows_a_second(X: Any, y: Any, few: int = 2_000) -> float:
    """river's PA, one model for all rows; the dicts are made before the clock starts."""
    rows = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X[:few]]
    labels = (y[:few] > 0).tolist()

    def run(model: Any) -> None:
        for x, label in zip(rows, labels, strict=True):
            model.learn_one(x, label)

    return few / seconds(run, PAClassifier)


def chunks() -> None:
    """Rows a second."""
    print(f"\nChunks: {N_ROWS:,} text-like rows, 100 non-zeros of 150,000 features")
    print(f"{'':44}{'tasks':>7}{'M rows/s':>10}{'to sklearn':>12}")
    learners = {
        "MultitaskPerceptron('pooled'), one model": lambda: MultitaskPerceptron(relation="pooled"),
        "PassiveAggressive('pooled'), one model": lambda: PassiveAggressive(relation="pooled"),
        "MultitaskPerceptron(relation=1.0)": lambda: MultitaskPerceptron(relation=1.0),
        "  dtype='float32'": lambda: MultitaskPerceptron(relation=1.0, dtype="float32"),
        "MultitaskPerceptron(relation=1.0, logistic)": lambda: MultitaskPerceptron(relation=1.0, loss="logistic"),
        "PassiveAggressive()": PassiveAggressive,
        "OSMTL()": OSMTL,
        "HedgedSharing()": HedgedSharing,
    }
    first: dict[str, float] = {}
    for n_tasks in (15, 1000):
        X, y, task = text_like(N_ROWS, n_tasks)
        stream = Stream("chunks", X, y, task)
        peers = {
            "limit: the rows read once from memory": reading_rows_a_second(X),
            "limit: SciPy X @ w, margins alone": product_rows_a_second(X),
            "scikit-learn SGDClassifier (one model)": sgd_rows_a_second(X, y),
            "VW, one model, from its cache": vw_rows_a_second(stream, ""),
            "VW -q tf, tasks' own weights, from its cache": vw_rows_a_second(stream, "-q tf"),
            "river PAClassifier (one model)": river_rows_a_second(X, y),
        }
        peer = peers["scikit-learn SGDClassifier (one model)"]
        for name, speed in peers.items():
            print(f"{name:44}{'':>7}{speed / 1e6:>10.3f}{speed / peer:>12.3f}")
        for name, learner in learners.items():
            if name == "OSMTL()" and n_tasks > 15:
                continue  # O(nnz K) a row by its definition
            speed = rows_a_second(learner, X, y, task)
            kept = f"   {speed / first[name]:.2f} of its speed at 15 tasks" if name in first else ""
            first.setdefault(name, speed)
            print(f"{name:44}{n_tasks:>7}{speed / 1e6:>10.3f}{speed / peer:>12.3f}{kept}", flush=True)


def low_rank() -> None:
    """ROMCO: lazy shrinkage beside the eager form, and beside OSMTL; rounds of 15 tasks."""
    X, y, task = text_like(3_000, 15)
    few = 10 * 15
    start = time.perf_counter()
    eager_romco.learn(
        X[:few].toarray(), y[:few], task[:few], np.arange(few).reshape(-1, 15), penalty="nuclear", eta=0.1, rho=0.1,
        lambda1=0.1, lambda2=0.1, C=1.0, trigger="margin", step="constant", n_declared=15,
    )  # fmt: skip
    eager = few / (time.perf_counter() - start)
    ours, peer = (rows_a_second(learner, X, y, task) for learner in (ROMCO, OSMTL))
    print(f"\n{'Low rank, rounds of 15, 150,000 features':44}{'rows/s':>10}")
    print(f"{'ROMCO, a singular value decomposition a round':44}{eager:>10,.0f}")
    print(f"{'ROMCO':44}{ours:>10,.0f}   {ours / eager:,.0f} x the eager form")
    print(f"{'OSMTL':44}{peer:>10,.0f}   {peer / ours:.1f} x ROMCO")


def flights() -> None:
    """The built-in stream."""
    data = load_flights()
    peer = sgd_rows_a_second(data.X, data.y)
    task = np.unique(data.task, return_inverse=True)[1]
    learners = {
        "MultitaskPerceptron('pooled'), one model": lambda: MultitaskPerceptron(relation="pooled"),
        "MultitaskPerceptron(relation=104, logistic)": lambda: MultitaskPerceptron(
            relation=104, loss="logistic", eta=0.5
        ),
        "HedgedSharing()": HedgedSharing,
    }
    print(f"\n{f'flights, {len(data):,} rows':44}{'M rows/s':>10}{'to sklearn':>12}")
    for name, learner in learners.items():
        speed = rows_a_second(learner, data.X, data.y, task)
        print(f"{name:44}{speed / 1e6:>10.2f}{speed / peer:>12.2f}")


def single_rows() -> None:
    """Microseconds of one example, for us and for peers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20)
    named = {f"feature {j}": float(value) for j, value in enumerate(x)}
    turns = cycle((named, dict(reversed(named.items()))))  # names that are those of the last row are not looked up
    ours, ours_named, peer = MultitaskPerceptron(), MultitaskPerceptron(), PAClassifier()
    sklearn = SGDClassifier(loss="perceptron").partial_fit(x[None], [1], classes=[-1, 1])
    for y, task in ((1, "a"), (-1, "b")):
        ours.learn_one(x, y, task)
        ours_named.learn_one(named, y, task)
    X, Y, T = x[None].copy(), np.array([1.0]), np.array(["a"])
    calls = {
        "learn_one, array of 20": (lambda: ours.learn_one(x, 1, "a"), 5),
        "learn_one, dict of 20": (lambda: ours_named.learn_one(named, 1, "a"), 7),
        "learn_one, dict of 20, in another order": (lambda: ours_named.learn_one(next(turns), 1, "a"), 7),
        "decision_one, array of 20": (lambda: ours.decision_one(x, "a"), None),
        "partial_fit, one row of 20": (lambda: ours.partial_fit(X, Y, T), 30),
        "river PAClassifier.learn_one, dict of 20": (lambda: peer.learn_one(named, True), None),
        "scikit-learn partial_fit, one row of 20": (lambda: sklearn.partial_fit(X, Y), None),
    }
    print(f"\n{'One example at a time':44}{'us':>8}{'target':>9}")
    for name, (call, target) in calls.items():
        n = 500 if "scikit" in name else 10_000
        print(f"{name:44}{seconds_a_call(call, n) * 1e6:>8.1f}{'' if target is None else f'<= {target}':>9}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    print(f"Medians of 5 runs. {machine()}")
    chunks()
    low_rank()
    flights()
    single_rows()
