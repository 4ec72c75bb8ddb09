"""`shoal compile`: compile everything for this computer, so that no first call waits for the compiler.

Numba keeps compiled code on disk, by source and argument types. So every learner and every reader is used once through
its public methods on a stream of a few rows: dense and sparse, arrays and dicts.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier

import shoal
from shoal.cli.commands.learners import batch_kinds, find_learner, learner_kinds, reads_tables
from shoal.evaluation import progressive_validate
from shoal.files import FORMATS, open_stream
from shoal.learner import Learner

READERS = "readers of files"
TASKS = ["a", "b", "c"]
N_ROWS, N_FEATURES = 120, 4
CHUNK = 40  # rows; shorter chunks take other paths


def compile_for_this_computer(names: list[str], *, n_jobs: int) -> None:
    """The whole command.

    Parameters
    ----------
    names : list of str
        Learners; none: all of them. The readers of files and the metrics are always compiled.
    n_jobs : int
        Processes; -1 is one a core.
    """
    chosen = [find_learner(name) for name in names] if names else kinds_with_kernels()
    for kind in filter(has_none, chosen):
        raise ValueError(f"{kind.__name__} has nothing of its own to compile: name its learner, such as HedgedSharing")
    start = time.perf_counter()
    console = Console(stderr=True)
    columns = TextColumn("compiling {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        line = bar.add_task(READERS, total=len(chosen) + 1)
        compile_readers()  # alone, because every other process calls its kernels too
        bar.update(line, advance=1)
        for name in _compiled(chosen, n_jobs):
            bar.update(line, advance=1, description=name)
    seconds = time.perf_counter() - start
    learners = f"{len(chosen)} learner{'s' * (len(chosen) != 1)}"
    print(f"compiled {learners}, the metrics and {len(FORMATS)} file formats in {seconds:.0f} s")


def has_none(kind: type[Any]) -> bool:
    """Is all that a class compiles another learner's?"""
    return reads_tables(kind) or kind is shoal.Periodic


def kinds_with_kernels() -> list[type[Any]]:
    """All learners that compile something of their own."""
    return [kind for kind in (learner_kinds() | batch_kinds()).values() if not has_none(kind)]


def _compiled(kinds: list[type], n_jobs: int) -> Iterator[str]:
    """Compile learners in parallel; yield their names as they are done."""
    jobs = (delayed(compile_learner)(kind.__name__) for kind in kinds)
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)


def compile_learner(name: str) -> str:
    """Use a learner once by default, and its baselines; return its name."""
    logging.getLogger("shoal").setLevel(logging.ERROR)  # the notice that something is being compiled
    learner = getattr(shoal, name)()
    if not isinstance(learner, Learner):
        X, y, task = stream_of(learner)
        learner.fit(X, y, task).predict(X, task)
        return name
    for one in [learner, *_without_sharing(learner)]:
        _use(one)
    return name


def _without_sharing(learner: Learner) -> list[Learner]:
    try:
        return list(learner.baselines().values())
    except NotImplementedError:
        return []


def _use(learner: Learner) -> None:
    """Call every method on dense and on sparse rows."""
    X, y, task = stream_of(learner)
    verbs = [verb for verb in ("predict", "decision_function", "predict_proba") if hasattr(learner, verb)]
    for rows, ids in ((X, task), (csr_matrix(X), np.unique(task, return_inverse=True)[1])):
        one = clone(learner).partial_fit(rows, y, ids)
        one.test_then_train(rows, y, ids)
        for verb in verbs:
            getattr(one, verb)(rows, ids)
    one = clone(learner).partial_fit(X, y, task)
    dicts = clone(learner)
    for x, target, k in zip(X[:CHUNK], y[:CHUNK].tolist(), task[:CHUNK].tolist(), strict=True):
        for model, row in ((one, x), (dicts, _named(x))):
            model.learn_one(row, target, k)
            model.predict_one(row, k)
            if hasattr(model, "predict_proba_one"):
                model.predict_proba_one(row, k)
    with suppress(ValueError):  # learners that compare whole rows cannot explain one
        one.explain_one(X[0], task[0].item())


def _named(x: Any) -> dict[str, float]:
    return {f"x{j}": float(value) for j, value in enumerate(x)}


def stream_of(learner: Any) -> tuple[Any, Any, Any]:
    """Rows, labels or targets, and tasks, as the learner takes them."""
    random = np.random.default_rng(0)
    X, task = random.normal(size=(N_ROWS, N_FEATURES)), np.array(TASKS * (N_ROWS // len(TASKS)))
    margins = X[:, 0] + 0.1 * random.normal(size=N_ROWS)
    return X, np.where(margins > 0, 1.0, -1.0) if is_classifier(learner) else margins, task


def compile_readers() -> None:
    """Read a tiny file of every format, and score a learner on its rows, chunk by chunk."""
    logging.getLogger("shoal").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder:
        for path, options in _files(Path(folder)):
            chunks = open_stream(path, chunk_rows=CHUNK, **options)
            progressive_validate(shoal.PassiveAggressive(), chunks, checkpoints=CHUNK)


def _files(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A file of every format with the options that open it."""
    import polars as pl

    X, y, task = stream_of(shoal.PassiveAggressive())
    colour = np.where(X[:, 1] > 0, "red", "green")
    frame = pl.DataFrame({"x": X[:, 0], "colour": colour, "task": task, "label": y})
    writers: dict[str, Callable[[Path], object]] = {
        "csv": frame.write_csv,
        "tsv": lambda path: frame.write_csv(path, separator="\t"),
        "parquet": frame.write_parquet,
        "ndjson": frame.write_ndjson,
        "arrow": frame.write_ipc,
        "libsvm": lambda path: path.write_text(
            "".join(f"{y[i]:+.0f} qid:{1 + i % 3} 1:{X[i, 0]:.4f} 3:1\n" for i in range(N_ROWS))
        ),
        "vw": lambda path: path.write_text(
            "".join(f"{y[i]:+.0f} |task {task[i]} |x size:{X[i, 0]:.4f} {colour[i]}\n" for i in range(N_ROWS))
        ),
    }
    columns = {"task": "task", "label": "label"}
    for format, write in writers.items():
        path = folder / f"rows.{format}"
        write(path)
        yield path, {} if format == "libsvm" else {"task": "task"} if format == "vw" else columns
