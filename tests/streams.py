"""Random multi-task streams, in every protocol."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class Stream(NamedTuple):
    """Rows in order of arrival; `rounds` numbers the rounds, `task` counts tasks in order of appearance."""

    X: np.ndarray
    y: np.ndarray
    task: np.ndarray
    rounds: np.ndarray

    @property
    def rows_of_rounds(self) -> list[np.ndarray]:
        return np.split(np.arange(len(self.y)), np.flatnonzero(np.diff(self.rounds)) + 1)

    @property
    def sparse(self) -> sp.csr_matrix:
        return sp.csr_matrix(self.X)


def draw(
    seed: int, *, n_rows: int = 150, K: int = 5, d: int = 7, protocol: str = "some", density: float = 1.0,
    regression: bool = False, scale: float = 1.0,
) -> Stream:  # fmt: skip
    """Related linear tasks with noise. Protocols: "one" or "all" tasks a round, "some", or "growing" (tasks
    appear one after the other)."""
    rng = np.random.default_rng(seed)
    rounds: list[list[int]] = []
    while sum(map(len, rounds)) < n_rows:
        known = min(K, 1 + sum(map(len, rounds)) * 2 * K // n_rows) if protocol == "growing" else K
        size = {"one": 1, "all": K}.get(protocol) or int(rng.integers(1, known + 1))
        rounds.append(rng.permutation(known)[:size].tolist())
    ids = np.array([k for tasks in rounds for k in tasks])
    X = rng.normal(size=(len(ids), d)) * (rng.random((len(ids), d)) < density) * scale
    w = rng.normal(size=d) + 0.5 * rng.normal(size=(K, d))
    f = np.einsum("ij,ij->i", X, w[ids]) / scale + 0.3 * rng.normal(size=len(ids))
    number = np.repeat(np.arange(len(rounds)), [len(tasks) for tasks in rounds])
    return Stream(X, f if regression else np.where(f >= 0, 1.0, -1.0), by_appearance(ids), number)


def roughened(stream: Stream, seed: int = 0) -> Stream:
    """With values that repeat (five in each column), whole rows among them, a column that is constant, one that is
    always missing, and one that is there in the last rows alone."""
    rng, (n, d) = np.random.default_rng(seed), stream.X.shape
    X = rng.normal(size=(5, d))[rng.integers(0, 5, (n, d)), np.arange(d)] * (stream.X != 0.0)
    X[1::7], y = X[:-1:7], stream.y.copy()
    y[1::7] = y[:-1:7]  # two labels of one row cancel out, and rounding would decide the next mistake
    X[:, 0], X[:, 1] = 0.75, 0.0
    X[: n - n // 9, -1] = 0.0
    return stream._replace(X=X, y=y)


def drawn_weights(n: int, seed: int = 0) -> np.ndarray:
    """Some rows do not count, some count a part, once or several times."""
    return np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 2.0, 3.5], n)


def by_appearance(ids: Any) -> np.ndarray:
    """Ids as 0, 1, ... in order of first appearance."""
    seen = {k: i for i, k in enumerate(dict.fromkeys(np.asarray(ids).tolist()))}
    return np.array([seen[k] for k in np.asarray(ids).tolist()])


def assert_close(actual: Any, expected: Any, relative: float = 1e-12) -> None:
    """Equal up to `relative` of the largest value: sums may be taken in another order."""
    scale = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=relative * scale)


def own_parameters(learner: Any) -> dict[str, Any]:
    """The hyper-parameters of the algorithm, without what says how labels and weights are stored."""
    return {name: value for name, value in learner.get_params().items() if name not in ("dtype", "classes")}


def core_of(learner: Any) -> Any:
    """What learns in a learner that has seen rows."""
    return learner._model.core
