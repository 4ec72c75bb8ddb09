"""Jester: ratings of 100 jokes (Goldberg, Roeder, Gupta, Perkins, Information Retrieval 4(2), 2001)."""

import gzip
import io
from typing import Literal

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import find

_JOKES = 100
_DESCRIPTION = (
    "What {n} people think of 100 jokes; task = person, a row is a joke, its features are the ratings (-1 to 1) of the "
    "{d} others who rated all jokes. {label} No order is recorded: shuffle the rows."
)
_LABEL = {"binary": "Label = +1 if the person liked the joke.", "regression": "Target = the rating, -9.95 to 9.9."}


def load_jester(
    n_tasks: int = 30, kind: Literal["binary", "regression"] = "binary", seed: int | None = None
) -> Dataset:
    """Jester: 100 jokes as rated by `n_tasks` people, described by what 1,443 others thought of them (30 tasks).

    It stands in for EachMovie, which was withdrawn: 30 people with 200 films each in the papers.

    Parameters
    ----------
    n_tasks : int, 1 to 1,472
        People who are tasks, of the 1,473 who rated every joke; the others are features.
    kind : "binary" or "regression"
        Liked (a rating above 0) or not, or the rating.
    seed : int, optional
        Choose the people at random; by default the first of the file.

    Returns
    -------
    Dataset
        X is dense, (100 n_tasks, 1473 - n_tasks); tasks are the file's names of users, such as "u7452".

    Raises
    ------
    ValueError
        If an argument is out of its range.
    FileNotFoundError
        If the file, `jester5k/jester5k.csv.gz`, is nowhere; see `SHOAL_DATA`.
    """
    if kind not in _LABEL:
        raise ValueError(f"kind must be 'binary' or 'regression', got {kind!r}")
    users, ratings = _complete()
    if not 1 <= n_tasks < len(users):
        raise ValueError(f"n_tasks must lie between 1 and {len(users) - 1}, got {n_tasks}")
    order = np.arange(len(users)) if seed is None else np.random.default_rng(seed).permutation(len(users))
    tasks, others = np.sort(order[:n_tasks]), np.sort(order[n_tasks:])
    targets = ratings[tasks].ravel()
    return Dataset(
        name="jester",
        X=np.tile(ratings[others].T / 10.0, (n_tasks, 1)),
        y=np.where(targets > 0, 1.0, -1.0) if kind == "binary" else targets,
        task=np.repeat(users[tasks], _JOKES),
        feature_names=tuple(users[others].tolist()),
        description=_DESCRIPTION.format(n=n_tasks, d=len(others), label=_LABEL[kind]),
        kind=kind,
    )


def _complete() -> tuple[np.ndarray, np.ndarray]:
    """Users who rated all jokes, and their ratings (users, jokes)."""
    import polars as pl

    path = find("jester5k", "jester5k.csv.gz")
    table = pl.read_csv(io.BytesIO(gzip.decompress(path.read_bytes()))).drop_nulls()
    return table["user"].to_numpy().astype(str), table.drop("user").to_numpy().astype(np.float64)
