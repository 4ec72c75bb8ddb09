"""A stream of the folder `panels`: the same rows as linear learners get them, and as trees do."""

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.boosting import first_training
from benchmarks.scores import Stream
from benchmarks.streams import numbered


class Panel(NamedTuple):
    """Rows in order of arrival."""

    name: str
    X: Any  # (n, d) CSR matrix: one-hot categories, numbers scaled by the first rows, a constant
    y: Any  # (n,) -1 or +1, or a real target
    task: Any  # (n,) 0 to K - 1
    table: Any  # (n, columns) codes of categories and raw numbers, the task last; NaN where a number is missing
    categories: list[int]  # columns of the table that hold codes
    classification: bool

    @property
    def first(self) -> int:
        """The rows that no score is of: before any peer is trained."""
        return first_training(len(self.y))

    def judged(self, end: int | None = None) -> Stream:
        """The rows that scores are of, up to row `end`."""
        rows = slice(self.first, end)
        return Stream(self.name, self.X[rows], self.y[rows], self.task[rows])

    @property
    def key(self) -> str:
        """Its name and a checksum of its rows."""
        parts = (self.X.data, self.X.indices, self.y, self.task, self.table)
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(np.ascontiguousarray(part).tobytes(), checksum)
        return f"{self.name}-{checksum:08x}"


def names(folder: Path) -> list[str]:
    """The streams of the folder."""
    return sorted(path.stem for path in folder.glob("*.npz"))


def read(folder: Path, name: str) -> Panel:
    """The stream of that name.

    The file has `kind` ("classification" or "regression"); `data`, `indices`, `indptr` and `shape` of the CSR matrix X;
    `task`, `y`, `table` and `categories`, the numbers of the table's columns that hold codes.
    """
    with np.load(folder / f"{name}.npz", allow_pickle=False) as content:
        X = csr_matrix((content["data"], content["indices"], content["indptr"]), shape=content["shape"])
        return Panel(
            name,
            X,
            content["y"].astype(np.float64),
            numbered(content["task"]),
            content["table"],
            content["categories"].tolist(),
            str(content["kind"]) == "classification",
        )
