"""From a file to a model, start-up included, beside VW on the same text: `python -m benchmarks.files [ROWS]`.

A row has one of 200 tasks and 20 features of 2,000, in VW and LIBSVM text; CSV and Parquet hold the same values in
20 columns. `shoal run` is a process of its own, timed from its start to its end (it scores every row too); it has run
once before, so its code is compiled. VW crosses the task with the features (`-q tf`) and is timed without the start of
Python, on default settings but for the loss and a table large enough. Medians of 3, taken in turn.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from vowpalwabbit import Workspace

from benchmarks.timing import machine

N_ROWS, N_TASKS, N_FEATURES, N_ACTIVE = 500_000, 200, 2_000, 20
REPEATS = 3
LEARNERS = {
    "MultitaskPerceptron, logistic": ["--learner", "MultitaskPerceptron", "--set", "loss=logistic"],
    "HedgedSharing": [],
}
FILES = {
    "vw": ["--task", "t"],
    "libsvm": ["--task", "qid"],
    "csv": ["--task", "t", "--label", "y"],
    "parquet": ["--task", "t", "--label", "y"],
}
BLOCK = 50_000  # rows written at once


def write_files(folder: Path, n_rows: int) -> None:
    """data.vw, data.libsvm, data.csv and data.parquet; each task leans on words of its own and on common ones."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=N_FEATURES) + 0.5 * rng.normal(size=(N_TASKS, N_FEATURES))
    frames = []
    with (folder / "data.vw").open("w") as vw, (folder / "data.libsvm").open("w") as libsvm:
        for first in range(0, n_rows, BLOCK):
            n = min(BLOCK, n_rows - first)
            task = rng.integers(0, N_TASKS, n)
            words = np.sort(rng.integers(0, N_FEATURES - N_ACTIVE, (n, N_ACTIVE)), axis=1) + np.arange(N_ACTIVE)
            values = rng.integers(1, 1000, (n, N_ACTIVE)) / 1000
            margin = (weights[task[:, None], words] * values).sum(axis=1)
            y = np.where(margin + rng.normal(size=n) > 0, 1, -1)
            for label, k, row, x in zip(y.tolist(), task.tolist(), words.tolist(), values.tolist(), strict=True):
                pairs = list(zip(row, x, strict=True))
                vw.write(f"{label} |t k{k} |f {' '.join(f'w{j}:{v}' for j, v in pairs)}\n")
                libsvm.write(f"{label} qid:k{k} {' '.join(f'{j + 1}:{v}' for j, v in pairs)}\n")
            columns = {f"x{j}": values[:, j] for j in range(N_ACTIVE)}
            frames.append(pl.DataFrame({"y": y, "t": [f"k{k}" for k in task.tolist()], **columns}))
    table = pl.concat(frames)
    table.write_csv(folder / "data.csv")
    table.write_parquet(folder / "data.parquet")


def run_shoal(path: Path, options: list[str], **environment: str) -> None:
    """`shoal run`; what it says of compiling is not shown."""
    program = [sys.executable, "-c", "from shoal.cli import main; main()", "run", str(path)]
    subprocess.run([*program, *options], check=True, env={**os.environ, **environment}, capture_output=True)


def run_vw(path: Path) -> None:
    """One pass with weights of each task's own."""
    bits = int(np.ceil(np.log2(4 * N_TASKS * N_FEATURES)))
    Workspace(f"-d {path} -q tf -b {bits} --loss_function logistic --quiet").finish()


def seconds(run: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Write the files, run everything in turn, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=int, default=N_ROWS)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name), Path(name, "small")
        small.mkdir()
        write_files(folder, n_rows)
        write_files(small, 1_000)
        runs: dict[tuple[str, str], Callable[[], object]] = {("VW -q tf", "vw"): lambda: run_vw(folder / "data.vw")}
        startup = {}
        for learner, chosen in LEARNERS.items():
            for ending, options in FILES.items():
                both = [*chosen, *options, "--no-baselines"]
                for _ in range(2):  # the first compiles
                    startup[learner, ending] = seconds(partial(run_shoal, small / f"data.{ending}", both))
                runs[learner, ending] = partial(run_shoal, folder / f"data.{ending}", both)
        times: dict[tuple[str, str], list[float]] = {key: [] for key in runs}
        for _ in range(REPEATS):
            for key, run in runs.items():
                times[key].append(seconds(run))
        sizes = {ending: (folder / f"data.{ending}").stat().st_size / 1e6 for ending in FILES}
    print(f"{n_rows:,} rows, {N_ACTIVE} features of {N_FEATURES:,}, {N_TASKS} tasks; {machine()}\n")
    print(f"{'':32}{'file':>9}{'MB':>8}{'seconds':>9}{'rows/s':>11}{'to VW':>7}{'1,000 rows':>12}")
    peer = statistics.median(times["VW -q tf", "vw"])
    for (who, ending), taken in times.items():
        middle = statistics.median(taken)
        start = f"{startup[who, ending]:>10.2f} s" if (who, ending) in startup else ""
        speed = f"{middle:>9.2f}{n_rows / middle:>11,.0f}{peer / middle:>7.2f}"
        print(f"{who:32}{ending:>9}{sizes[ending]:>8.0f}{speed}{start}")


if __name__ == "__main__":
    main()
