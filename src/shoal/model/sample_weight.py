"""How often rows count: weights checked, and rows of weight 0 told apart from the others."""

from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import NO_WEIGHT

MOST = 1e6  # a row's steps are followed one by one: such a row takes milliseconds


def read_weights(sample_weight: Any, n_rows: int, refusal: str = "") -> FloatArray:
    """The weights of rows; none if each is 1.

    Parameters
    ----------
    sample_weight : (n,) numbers from 0 to `MOST`, or None
    n_rows : int
    refusal : str
        Why the learner takes no weights, or "".

    Raises
    ------
    ValueError
        If the learner takes no weights, or these are not such numbers; the row is named.
    """
    if sample_weight is None:
        return NO_WEIGHT
    if refusal:
        raise ValueError(refusal)
    try:
        given = np.asarray(sample_weight)
    except ValueError:  # a ragged list
        given = np.zeros(0)
    if given.shape != (n_rows,):
        raise ValueError(f"sample_weight must hold one number per row: expected shape ({n_rows},), got {given.shape}")
    try:
        if given.dtype.kind not in "biufO" or (given.dtype == object and any(isinstance(w, str) for w in given)):
            raise TypeError
        weights = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"sample_weight must hold real numbers, got {given.dtype} values") from None
    bad = np.flatnonzero(~((weights >= 0.0) & (weights <= MOST)))
    if len(bad):
        found = weights[bad[0]]
        raise ValueError(f"row {bad[0]}: sample_weight is {found:g}; expected a number from 0 to {MOST:g}")
    return NO_WEIGHT if (weights == 1.0).all() else weights


def refuse_all_zero(weights: FloatArray) -> None:
    """Raise ValueError if there are weights and none counts: a fit needs a row."""
    if len(weights) and not weights.any():
        raise ValueError("each sample_weight is zero; expected at least one row that counts")


def without_weightless(
    columns: IntArray, new: list[Any], n_known: int, weights: FloatArray
) -> tuple[IntArray, list[Any]]:
    """Columns and new tasks if a task only enters with its first row that counts; -1 for rows before that.

    Parameters
    ----------
    columns : (n,) columns of the rows' tasks, from `n_known` on those of `new`
    """
    if len(weights) == 0 or not new or weights.all():
        return columns, new
    first = np.full(len(new), len(columns))
    rows = np.flatnonzero((weights > 0.0) & (columns >= n_known))
    np.minimum.at(first, columns[rows] - n_known, rows)
    order = [k for k in np.argsort(first).tolist() if first[k] < len(columns)]
    place = np.full(n_known + len(new), -1)
    place[:n_known] = np.arange(n_known)
    place[[n_known + k for k in order]] = n_known + np.arange(len(order))
    is_before = np.arange(len(columns)) < np.append(np.full(n_known, -1), first)[columns]
    return np.where(is_before, -1, place[columns]), [new[k] for k in order]
