"""Simulated choices between products (Evgeniou, Pontil, KDD 2004, after Toubia and others).

Every task is a person with own part-worths w_k ~ N(mean, s²I) of 4 attributes with 4 levels each. A question
shows 4 products; the person takes the one with the largest w_k·x + Gumbel noise. The differences
(chosen - other) are examples of the label +1, their negatives of -1: ranking becomes classification.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.datasets.dataset import Dataset

_ATTRIBUTES, _LEVELS, _SHOWN = 4, 4, 4
_MEAN = np.tile(np.linspace(-1.0, 1.0, _LEVELS), _ATTRIBUTES)  # part-worths, in units of the magnitude
_SPREAD = {"high": np.sqrt(0.5), "low": np.sqrt(3.0)}  # s, in units of the magnitude
_MAGNITUDE = {"low": 6.0, "high": 0.5}  # of the part-worths, against Gumbel noise of unit scale


def make_conjoint(
    similarity: Literal["high", "low"] = "high",
    noise: Literal["low", "high"] = "low",
    n_tasks: int = 30,
    n_questions: int = 16,
    seed: int = 0,
) -> tuple[Dataset, Dataset]:
    """Choices of `n_tasks` people between products: a training and a test set.

    Parameters
    ----------
    similarity : "high" or "low"
        How much alike the people's tastes are: s = √0.5 or √3 times the size of the mean part-worths.
    noise : "low" or "high"
        Part-worths of size 6 or 0.5 against Gumbel noise of unit scale.
    n_tasks, n_questions : int
        People, and questions to each of them in either set. A question gives 6 rows, so 16 give the papers'
        96.
    seed : int

    Returns
    -------
    train, test : Dataset
        Binary, balanced; X is dense, (6 * n_tasks * n_questions, 16), person after person. The labels of the
        test set are as noisy as those of the training set.

    Raises
    ------
    ValueError
        If an option is unknown or a count below 1.

    Examples
    --------
    >>> from shoal.datasets import make_conjoint
    >>> train, test = make_conjoint(n_tasks=5, seed=1)
    >>> train
    Dataset('conjoint', 480 rows, 5 tasks, 16 features, binary)
    >>> train.X[0].astype(int).tolist() == (-train.X[1]).astype(int).tolist(), train.y[:2].tolist()
    (True, [1.0, -1.0])
    """
    for option, value in (("similarity", similarity), ("noise", noise)):
        if value not in ("high", "low"):
            raise ValueError(f"{option} must be 'high' or 'low', got {value!r}")
    if n_tasks < 1 or n_questions < 1:
        raise ValueError(f"n_tasks and n_questions must be at least 1, got {n_tasks} and {n_questions}")
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((n_tasks, _ATTRIBUTES * _LEVELS))
    weights = _MAGNITUDE[noise] * (_MEAN + _SPREAD[similarity] * own)
    description = f"Simulated choices between products; task = person, {similarity} similarity, {noise} noise."
    train, test = (
        _dataset(name, description, _choices(weights, n_questions, rng)) for name in ("conjoint", "conjoint_test")
    )
    return train, test


def _choices(weights: NDArray[np.float64], n_questions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Differences (chosen - other), each followed by its negative: (tasks, rows of a task, features)."""
    n_tasks, d = weights.shape
    # The four products of a question differ: the same product twice would give an example of zeros.
    drawn = rng.random((n_tasks, n_questions, _LEVELS**_ATTRIBUTES)).argsort(axis=-1)[..., :_SHOWN]
    levels = np.stack(np.unravel_index(drawn, (_LEVELS,) * _ATTRIBUTES), axis=-1)
    products = np.eye(_LEVELS)[levels].reshape(n_tasks, n_questions, _SHOWN, d)
    utility = np.einsum("kqpd,kd->kqp", products, weights) + rng.gumbel(size=(n_tasks, n_questions, _SHOWN))
    ranked = np.take_along_axis(products, utility.argsort(axis=-1)[..., None], axis=2)
    differences = ranked[:, :, -1:] - ranked[:, :, :-1]
    return np.stack([differences, -differences], axis=3).reshape(n_tasks, -1, d)


def _dataset(name: str, description: str, differences: NDArray[np.float64]) -> Dataset:
    n_tasks, rows, d = differences.shape
    return Dataset(
        name=name,
        X=differences.reshape(-1, d),
        y=np.tile([1.0, -1.0], n_tasks * rows // 2),
        task=np.repeat(np.arange(n_tasks), rows),
        feature_names=tuple(f"attribute{a}={v}" for a in range(1, 5) for v in range(1, 5)),
        description=description,
        kind="binary",
    )
