"""Vowpal Wabbit by its fast path: a text file in, its parser and learner in C++, a file of predictions out."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from vowpalwabbit import Workspace

from benchmarks.scores import Scores, Stream, score, timed

_RULES = [
    *(f"-l {rate}{power}" for power in ("", " --power_t 0") for rate in (0.1, 0.5, 2, 8)),
    "--coin",
    "--ftrl",
]
DEFAULTS = {"VW, default": "-l 0.5", "VW -q, default": "-q tf -l 0.5"}  # 0.5 is VW's own rate


def run_all(stream: Stream, folder: Path) -> dict[str, Scores]:
    """Scores of every setting: the task as one more feature, or (`-q tf`) crossed with the features."""
    text = folder / f"{stream.name}.vw"
    write_text(stream, text)
    settings = [f"{crossed}{rule}" for crossed in ("", "-q tf ") for rule in _RULES]
    found = {}

    def run(setting: str) -> Any:
        return answers(text, f"--loss_function logistic {setting}", table_bits(stream))

    for setting in settings:
        logits, seconds = timed(partial(run, setting))
        found[setting] = score(stream, logits, seconds)
    text.unlink()
    return found


def answers(text: Path, setting: str, bits: int) -> Any:
    """One pass, as the command line does it: every answer is given before its row is learned."""
    found = text.with_suffix(".answers")
    Workspace(f"-d {text} -p {found} -b {bits} --quiet {setting}").finish()
    return np.fromstring(found.read_text(), sep="\n")


def table_bits(stream: Stream) -> int:
    """Size of the weight table: at least VW's default, and four places for each weight of the crossed model."""
    X = csr_matrix(stream.X)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    pairs = len(np.unique(stream.task[row].astype(np.int64) * X.shape[1] + X.indices))
    return max(18, math.ceil(math.log2(4 * pairs)))


def write_text(stream: Stream, path: Path) -> None:
    """A line a row: label, namespace t with the task, namespace f with the features."""
    X = csr_matrix(stream.X)
    columns, values, ends = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
    with path.open("w") as file:
        for i, (y, task) in enumerate(zip(stream.y.tolist(), stream.task.tolist(), strict=True)):
            row = slice(ends[i], ends[i + 1])
            features = " ".join(f"{j}:{x:.7g}" for j, x in zip(columns[row], values[row], strict=True))
            file.write(f"{y:.7g} |t k{task} |f {features}\n")
