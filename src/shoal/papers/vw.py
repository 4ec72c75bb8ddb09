"""Vowpal Wabbit as an entrant (package `vowpalwabbit`, an optional extra): text in, predictions out, in its own C++."""

import math
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator

from shoal.engine.arrays import FloatArray


def is_there() -> bool:
    """Whether the package is installed."""
    return find_spec("vowpalwabbit") is not None


class VW(BaseEstimator):  # type: ignore[misc]
    """One pass with logistic loss; the task is one more feature, or (`crossed`) multiplied into every feature.

    Parameters
    ----------
    setting : str
        Options of the update rule, such as "-l 0.5 --power_t 0".
    crossed : bool
        Weights of each task beside the common ones: VW's way to share.
    """

    def __init__(self, *, setting: str = "-l 0.5", crossed: bool = False) -> None:
        self.setting = setting
        self.crossed = crossed

    def fit(self, X: Any, y: Any, task: Any) -> Self:
        """One pass; nothing is kept."""
        self.test_then_train(X, y, task)
        return self

    def test_then_train(self, X: Any, y: Any, task: Any, *, classes: Any = None) -> FloatArray:
        """(n,) margins given before each row is learned."""
        from vowpalwabbit import Workspace

        X = csr_matrix(X)
        _, codes = np.unique(task, return_inverse=True)
        weights = X.shape[1] * (1 + (codes.max() + 1 if self.crossed else 0))
        bits = min(26, max(18, math.ceil(math.log2(2 * weights))))
        crossing = "-q tf " if self.crossed else ""
        with tempfile.TemporaryDirectory() as folder:
            rows, answers = Path(folder, "rows.vw"), Path(folder, "answers")
            rows.write_text("".join(_lines(X, y, codes)), encoding="utf-8")
            options = f"-d {rows} -p {answers} -b {bits} --loss_function logistic --quiet {crossing}{self.setting}"
            Workspace(options).finish()
            return np.array(answers.read_text(encoding="utf-8").split(), float)


def _lines(X: Any, y: Any, codes: Any) -> list[str]:
    """Label, namespace t with the task, namespace f with the features."""
    columns, values, ends = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
    lines = []
    for i, (label, k) in enumerate(zip(np.asarray(y).tolist(), codes.tolist(), strict=True)):
        row = slice(ends[i], ends[i + 1])
        features = " ".join(f"{j}:{x:.7g}" for j, x in zip(columns[row], values[row], strict=True))
        lines.append(f"{label:.0f} |t k{k} |f {features}\n")
    return lines
