"""What hashed words are called: the first word or pair of words that came to a bucket names it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.tables.words import CODES, LAST_HAN, fold_table


class _Folded(dict[int, str]):
    """For `str.translate`: letters in lower case, words of one character apart, everything else a space."""

    def __missing__(self, code: int) -> str:
        folded = int(fold_table()[code]) if code < CODES else -code if code <= LAST_HAN else 0
        self[code] = chr(folded) if folded > 0 else f" {chr(-folded)} " if folded < 0 else " "
        return self[code]


@cache
def _folded() -> _Folded:
    return _Folded()


def words_and_pairs(text: str) -> list[str]:
    """The words of a text, each but the first followed by its pair with the word before it: the order of `hash_words`.

    >>> words_and_pairs("Free Money, now!")
    ['free', 'money', 'free money', 'now', 'money now']
    """
    words = text.translate(_folded()).split(" ")
    words = [word for word in words if word]
    return words[:1] + [name for last, word in pairwise(words) for name in (word, f"{last} {word}")]


def name_buckets(
    text: pl.Series, ends: NDArray[np.int64], buckets: NDArray[np.int32], index: NDArray[np.int32],
    names: dict[int, str],
) -> None:  # fmt: skip
    """Name the buckets of a column that have not appeared before.

    Parameters
    ----------
    text : (n,) the column
    ends : (n + 1,) where the features of each row end in `buckets`
    index : (2**bits,) column of X of each bucket, -1 for none yet
    names : the names so far, which grow
    """
    own = buckets[ends[0] : ends[-1]]
    new = np.flatnonzero(index[own] < 0) + ends[0]
    for row in np.unique(np.searchsorted(ends, new, "right") - 1).tolist():
        found = buckets[ends[row] : ends[row + 1]].tolist()
        for bucket, name in zip(found, words_and_pairs(text[row]), strict=True):
            names.setdefault(bucket, name)
