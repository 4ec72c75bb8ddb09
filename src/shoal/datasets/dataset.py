"""The result of every loader and generator: rows of several tasks in order, ready to become a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from shoal.engine.rounds import Chunk, form_rounds

Kind = Literal["binary", "regression"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows `(task, features, target)` in order of arrival.

    Parameters
    ----------
    name : str
    X : (n, d) array or sparse matrix
        Kept as a CSR matrix with sorted int32 indices if it is sparse, else as a C-contiguous array; float64.
    y : (n,) float64
        -1 or +1 if `kind` is "binary", real if it is "regression".
    task : (n,) array of ids
        One hashable id per row.
    feature_names : sequence of d str
    description : str
        A description of the rows in a few sentences.
    kind : "binary" or "regression"

    Raises
    ------
    ValueError
        If the lengths differ, a binary label is neither -1 nor +1, or `kind` is unknown.

    Examples
    --------
    >>> from shoal.datasets import Dataset
    >>> X, y, task = [[1.0], [2.0], [3.0]], [1, -1, 1], ["a", "a", "b"]
    >>> data = Dataset("toy", X, y, task, ["size"], "Three toys.", "binary")
    >>> data
    Dataset('toy', 3 rows, 2 tasks, 1 feature, binary)
    >>> [chunk.task.tolist() for chunk in data.interleaved().stream(chunk_rows=2)]
    [['a', 'b'], ['a']]
    """

    name: str
    X: Any
    y: NDArray[np.float64]
    task: NDArray[Any]
    feature_names: tuple[str, ...]
    description: str
    kind: Kind

    @classmethod
    def from_frame(
        cls, frame: Any, *, task: str, label: str, name: str = "frame", description: str = "", **options: Any
    ) -> Dataset:
        """The rows of a data frame, with the features that `open_tables` makes of its columns.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, or a list of dicts
        task, label : str
            Columns. Of two labels the larger one becomes +1; numbers of many values are targets.
        name, description : str
        **options
            Of `shoal.files.ReadOptions`, such as `ignore=["id"]` or `kind="regression"`.

        Raises
        ------
        ValueError
            If a column is missing, a value cannot be read, or there are not two labels.

        Examples
        --------
        >>> rows = [{"shop": "a", "price": 2.0, "sold": "yes"}, {"shop": "b", "price": 4.0, "sold": "no"}]
        >>> data = Dataset.from_frame(rows, task="shop", label="sold")
        >>> data, data.y.tolist()
        (Dataset('frame', 2 rows, 2 tasks, 2 features, binary), [1.0, -1.0])
        """
        from scipy.sparse import vstack

        from shoal.files import open_tables

        stream = open_tables([frame], **{"kind": "auto", "task": task, "label": label, **options})
        chunks = list(stream)
        if stream.kind == "multiclass" or (stream.kind == "binary" and len(stream.classes) != 2):
            raise ValueError(f"column {label!r} has the labels {stream.classes}, expected two, or numbers to predict")
        if not chunks:
            raise ValueError("the frame has no rows, expected at least one")
        names = stream.feature_names
        for chunk in chunks:
            chunk.X.resize(chunk.X.shape[0], len(names))
        y, ids = (np.concatenate(parts) for parts in zip(*((c.y, c.task) for c in chunks), strict=True))
        if stream.kind == "binary":
            y = np.where(y == stream.classes[1], 1.0, -1.0)
        kind: Kind = "binary" if stream.kind == "binary" else "regression"
        return cls(name, vstack([chunk.X for chunk in chunks], format="csr"), y, ids, tuple(names), description, kind)

    def __post_init__(self) -> None:
        canonical = {
            "X": _canonical_features(self.X),
            "y": np.ascontiguousarray(self.y, dtype=np.float64),
            "task": np.asarray(self.task),
            "feature_names": tuple(self.feature_names),
        }
        for field, value in canonical.items():
            object.__setattr__(self, field, value)
        self._check()

    def _check(self) -> None:
        n, d = self.X.shape
        for field, array in (("y", self.y), ("task", self.task)):
            if array.shape != (n,):
                raise ValueError(f"{field} must hold one entry per row: expected ({n},), got {array.shape}")
        if len(self.feature_names) != d:
            raise ValueError(f"expected {d} feature names, one per column of X, got {len(self.feature_names)}")
        if self.kind not in ("binary", "regression"):
            raise ValueError(f"kind must be 'binary' or 'regression', got {self.kind!r}")
        if self.kind == "binary" and not np.isin(self.y, (-1.0, 1.0)).all():
            raise ValueError("binary labels must be -1 or +1; map them, or set kind='regression'")

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.y)

    def __repr__(self) -> str:
        counts = ((len(self), "row"), (self.n_tasks, "task"), (self.X.shape[1], "feature"))
        sizes = ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)
        return f"Dataset({self.name!r}, {sizes}, {self.kind})"

    @property
    def n_tasks(self) -> int:
        """Number of distinct task ids."""
        return len(set(self.task.tolist()))

    def stream(self, chunk_rows: int = 10_000, rounds: Any = None) -> Iterator[Chunk]:
        """The rows in order, in chunks that never cut a round.

        Parameters
        ----------
        chunk_rows : int
            Rows in a chunk; fewer if a round would be cut, more only if a single round is longer.
        rounds : None, "simultaneous" or (n,) integers
            None leaves the forming of rounds to the learner (chunks may then end anywhere). "simultaneous": a
            round is a maximal run of rows in which no task repeats. Integers: equal consecutive values form a
            round.

        Yields
        ------
        Chunk

        Raises
        ------
        ValueError
            If `chunk_rows` is below 1, or a task stands twice in a round.
        """
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
        starts, ids = self._rounds(rounds)
        return self._chunks(chunk_rows, starts, ids)

    def _rounds(self, rounds: Any) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Offsets of the rounds, and the round number of each row if rounds are to be told to the learner."""
        if rounds is None:
            return np.arange(len(self) + 1), None
        if isinstance(rounds, str) and rounds != "simultaneous":
            raise ValueError(f"rounds must be None, 'simultaneous' or integers, got {rounds!r}")
        simultaneous = isinstance(rounds, str)
        given = None if simultaneous else rounds
        starts = form_rounds(_columns(self.task), self.n_tasks, given, simultaneous=simultaneous)
        return starts, np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def _chunks(self, chunk_rows: int, starts: NDArray[np.int64], ids: NDArray[np.int64] | None) -> Iterator[Chunk]:
        low = first = 0  # row and round at which the chunk begins
        while low < len(self):
            last = int(np.searchsorted(starts, low + chunk_rows, side="right")) - 1
            first = max(last, first + 1)
            high = int(starts[first])
            rounds = None if ids is None else ids[low:high]
            yield Chunk(self.X[low:high], self.y[low:high], self.task[low:high], rounds)
            low = high

    def subset(self, rows: Any) -> Dataset:
        """The given rows, in the order given.

        Parameters
        ----------
        rows : slice, (m,) integers or (n,) booleans
        """
        rows = np.arange(len(self))[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], task=self.task[rows])

    def shuffled(self, seed: int) -> Dataset:
        """All rows in a random order, the same for the same seed."""
        return self.subset(np.random.default_rng(seed).permutation(len(self)))

    def interleaved(self, seed: int | None = None) -> Dataset:
        """The papers' parallel protocol: the k-th round holds the k-th row of each task that has one.

        Tasks keep the order of their first appearance within every round, so the rounds are the maximal runs
        without a repeated task, those of ``stream(rounds="simultaneous")``.

        Parameters
        ----------
        seed : int, optional
            Shuffle the rows within each task first; by default they keep their order.
        """
        column = _columns(self.task)
        rows = np.arange(len(self)) if seed is None else np.random.default_rng(seed).permutation(len(self))
        by_task = rows[np.argsort(column[rows], kind="stable")]
        sizes = np.bincount(column)
        turn = np.arange(len(self)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # k of the k-th row of its task
        return self.subset(by_task[np.argsort(turn, kind="stable")])


def _columns(task: NDArray[Any]) -> NDArray[np.int64]:
    """Number of each row's task, tasks numbered as they first appear."""
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(t, len(seen)) for t in task.tolist()), np.int64, len(task))


def _canonical_features(X: Any) -> Any:
    """The one sparse and the one dense layout that learners take without a copy."""
    if issparse(X):
        return _canonical_sparse(X)
    X = np.asarray(X, dtype=np.float64, order="C")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features, got shape {X.shape}")
    return X


def _canonical_sparse(X: Any) -> Any:
    X = csr_matrix(X, dtype=np.float64)
    if not X.has_canonical_format:
        X = X.copy()  # the caller's matrix stays as it is
        X.sum_duplicates()
    if X.indices.dtype != np.int32:
        indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = csr_matrix((X.data, indices, indptr), shape=X.shape)
    return X
