"""How long a snapshot stops answers: `python -m benchmarks.serve.snapshot [--megabytes 1000]`.

A model of that size (words of many tasks, learned from random rows) is served while rows are learned and a snapshot is
taken; one thread predicts one row after the other. Printed are the size, the pause that the engine measured, and the
slowest predictions with and without a snapshot.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import scipy.sparse as sp

from benchmarks.timing import machine
from shoal import HedgedSharing
from shoal.files import ReadOptions, open_stream
from shoal.learner import model_of
from shoal.model_file import Reading, save_model
from shoal.serve.contract import Rows
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm

BITS, WORDS, TASKS, BLOCK = 18, 100, 5_000, 20_000


def write_model(folder: Path, megabytes: float) -> Path:
    """Mails of random words, until the state has the size."""
    rng = np.random.default_rng(0)
    table = folder / "mails.csv"
    texts = [" ".join(f"w{w}" for w in rng.integers(0, 1_000, WORDS)) for _ in range(2_000)]
    users = [f"u{u}" for u in rng.integers(0, TASKS, len(texts))]
    spam = rng.choice(["no", "yes"], len(texts))
    pl.DataFrame({"user": users, "text": texts, "spam": spam}).write_csv(table)
    learner = HedgedSharing()
    with open_stream(table, ReadOptions(task="user", label="spam", hash_bits=BITS)) as stream:
        for chunk in stream:
            learner.partial_fit(chunk.X, chunk.y, chunk.task, classes=["no", "yes"])
        reading = Reading({"task": ["user"], "label": "spam", "hash_bits": BITS}, stream.to_dict())
    while model_of(learner).core.nbytes() < 1e6 * megabytes:
        columns = np.sort(rng.integers(0, learner.n_features_in_, (BLOCK, WORDS)), axis=1).astype(np.int32)
        values, starts = np.full(columns.size, 0.1), np.arange(0, columns.size + 1, WORDS)
        X = sp.csr_array((values, columns.ravel(), starts), shape=(BLOCK, learner.n_features_in_))
        X.sum_duplicates()
        tasks = np.array([f"u{u}" for u in rng.integers(0, TASKS, BLOCK)], object)
        learner.partial_fit(X, rng.choice(["no", "yes"], BLOCK), tasks)
    print(f"{model_of(learner).core.nbytes() / 1e6:,.0f} MB of state, {len(learner.tasks_):,} tasks", flush=True)
    return save_model(folder / "big.shoal", {"HedgedSharing": learner}, reading)


def slowest(engine: Engine, seconds: float) -> list[float]:
    """Milliseconds of predictions, the longest first."""
    row = {"user": "u1", "text": "w1 w2 w3 w4 w5"}
    engine.predict_each([row], wait=False)
    times, ends = [], time.perf_counter() + seconds
    while (begun := time.perf_counter()) < ends:
        engine.predict_each([row], wait=False)
        times.append(1e3 * (time.perf_counter() - begun))
    return sorted(times, reverse=True)


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=1_000.0)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = write_model(folder, arguments.megabytes)
        rhythm = Rhythm(rows=100, seconds=1e9)
        with Engine(model, folder / "live", EngineSettings(shadows=False, rhythm=rhythm)) as engine:
            words = " ".join(f"w{w}" for w in range(WORDS))
            for title, rows in (("without", 50), ("with", 100)):
                mails = pl.DataFrame({"user": ["u1"] * rows, "text": [words] * rows, "spam": ["no"] * rows})
                engine.learn(Rows(mails, strings=True)).result()
                times = slowest(engine, 10.0)
                pause = 1e3 * engine.gauges()["snapshot_pause_seconds"]
                print(f"{title} a snapshot: slowest {times[0]:.1f} ms, then {times[1]:.1f}, {times[2]:.1f}; ", end="")
                print(f"median {times[len(times) // 2]:.3f}; pause {pause:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
