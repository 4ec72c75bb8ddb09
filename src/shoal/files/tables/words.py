"""Texts as bags of words: single words and pairs of neighbors in lower case, hashed by compiled code.

A word is a run of letters, digits and marks of any script. Scripts without spaces between words (Han, Hiragana,
Katakana, Thai, Lao, Khmer, Myanmar) give single characters and pairs of them. `bags_of` turns the bytes of a column
into numbers of hashed features without a Python object per word. `name_buckets` names them where names are wanted: by
the first word or pair that came to a bucket.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.compile import kernel

CODES = 0x20000  # code points in `fold_table`; those above are Han
LAST_HAN = 0x3FFFF
ALONE = [
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9D),
]  # fmt: skip
"""Scripts without spaces, as first and last code points."""
PRIME, MULTIPLIER = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15)
OFFSET = np.uint64(0xCBF29CE484222325)
U = np.uint64


class Bags(NamedTuple):
    """The hashed features of several columns of text, in the order of their words."""

    ends: NDArray[np.int64]  # (columns, n + 1) ends of the rows in `buckets`
    buckets: NDArray[np.int32]


@cache
def fold_table() -> NDArray[np.int32]:
    """For each code point its lower case; minus its code if it is a word by itself; 0 if it is in no word."""
    table = np.zeros(CODES, np.int32)
    for code in range(CODES):
        letter = chr(code)
        if unicodedata.category(letter)[0] in "LNM":
            table[code] = ord(letter.lower()[0])
    for first, last in ALONE:
        table[first : last + 1] *= -1
    return table


@kernel(sums="exact", alone=False)
def _finish(hashed: np.uint64) -> np.uint64:
    """Spread each bit of the hash to the highest ones (the finalizer of MurmurHash3)."""
    hashed = (hashed ^ (hashed >> U(33))) * U(0xFF51AFD7ED558CCD)
    hashed = (hashed ^ (hashed >> U(33))) * U(0xC4CEB9FE1A85EC53)
    return hashed ^ (hashed >> U(33))


@kernel(sums="exact", alone=False)
def _decode(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The code point at i and its number of bytes, in valid UTF-8."""
    first = np.int64(data[i])
    if first < 0x80:
        return int(first), 1
    if first < 0xE0:
        return int((first & 0x1F) << 6 | (np.int64(data[i + 1]) & 0x3F)), 2
    middle = (np.int64(data[i + 1]) & 0x3F) << 6 | (np.int64(data[i + 2]) & 0x3F)
    if first < 0xF0:
        return int((first & 0x0F) << 12 | middle), 3
    return int((first & 0x07) << 18 | middle << 6 | (np.int64(data[i + 3]) & 0x3F)), 4


@kernel(sums="exact", alone=False)
def _emit(hashed: np.uint64, last: np.uint64, shift: np.uint64, buckets: NDArray[np.int32], n: int) -> int:
    """Append a word and its pair with the last word (0 if it is the first); the new number of features."""
    buckets[n] = np.int32(np.int64(_finish(hashed) >> shift))
    n += 1
    if last != U(0):
        buckets[n] = np.int32(np.int64(_finish(last * MULTIPLIER + hashed) >> shift))
        n += 1
    return n


@kernel(entry=True, inline=False, sums="exact")
def hash_words(
    data: NDArray[np.uint8],
    ends: NDArray[np.int64],
    fold: NDArray[np.int32],
    bits: int,
    out_ends: NDArray[np.int64],
    buckets: NDArray[np.int32],
) -> int:
    """Write the features of the texts data[ends[row]:ends[row + 1]] to `buckets` from out_ends[0] on; their end."""
    shift, n = U(64 - bits), out_ends[0]
    for row in range(len(ends) - 1):
        i, end = ends[row], ends[row + 1]
        last, hashed, in_word = U(0), OFFSET, False
        while i < end:
            code, size = _decode(data, i)
            i += size
            folded = np.int32(0)
            if code < CODES:
                folded = fold[code]
            elif code <= LAST_HAN:
                folded = np.int32(-code)
            if folded > 0:
                hashed = (hashed ^ U(folded)) * PRIME
                in_word = True
                continue
            if in_word:
                n = _emit(hashed, last, shift, buckets, n)
                last, hashed, in_word = hashed, OFFSET, False
            if folded < 0:
                alone = (OFFSET ^ U(-folded)) * PRIME
                n = _emit(alone, last, shift, buckets, n)
                last = alone
        if in_word:
            n = _emit(hashed, last, shift, buckets, n)
        out_ends[row + 1] = n
    return int(n)


def bags_of(texts: list[pl.Series], bits: int) -> Bags:
    """The features of columns of text, hashed into 2**bits per column; a missing text has none."""
    n_rows = len(texts[0]) if texts else 0
    sizes = [text.str.len_bytes().fill_null(0).to_numpy() for text in texts]
    # A word and its pair are two features, and a word has a separator behind it or at least three bytes.
    buckets = np.empty(int(sum(size.sum() + n_rows for size in sizes)), np.int32)
    ends, n = np.zeros((len(texts), n_rows + 1), np.int64), 0
    for column, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        ends[column, 0] = n
        data = np.frombuffer(text.str.join("").cast(pl.Binary).item() or b"", np.uint8)
        byte_ends = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
        n = hash_words(data, byte_ends, fold_table(), bits, ends[column], buckets)
    return Bags(ends, buckets[:n])


def bag_of(text: str, bits: int) -> NDArray[np.int32]:
    """The features of one text, without a data frame."""
    data = np.frombuffer(text.encode(), np.uint8)
    buckets, ends = np.empty(len(data) + 1, np.int32), np.zeros(2, np.int64)
    n = hash_words(data, np.array([0, len(data)]), fold_table(), bits, ends, buckets)
    return buckets[:n]


class _Folded(dict[int, str]):
    """`fold_table` for `str.translate`: lower case, spaces around words of one character, a space for all else."""

    def __missing__(self, code: int) -> str:
        folded = int(fold_table()[code]) if code < CODES else -code if code <= LAST_HAN else 0
        self[code] = chr(folded) if folded > 0 else f" {chr(-folded)} " if folded < 0 else " "
        return self[code]


@cache
def _folded() -> _Folded:
    return _Folded()


def words_and_pairs(text: str) -> list[str]:
    """The words of a text in the order of `hash_words`: each but the first is followed by its pair with the last one.

    >>> words_and_pairs("Free Money, now!")
    ['free', 'money', 'free money', 'now', 'money now']
    """
    words = text.translate(_folded()).split(" ")
    words = [word for word in words if word]
    return words[:1] + [name for last, word in pairwise(words) for name in (word, f"{last} {word}")]


def name_buckets(
    text: pl.Series | Sequence[str | None],
    ends: NDArray[np.int64],
    buckets: NDArray[np.int32],
    index: NDArray[np.int32],
    names: dict[int, str],
) -> None:
    """Name the buckets of a column that appear for the first time.

    Parameters
    ----------
    text : (n,) the column
    ends : (n + 1,) ends of the rows in `buckets`
    index : (2**bits,) column of X of each bucket, -1 for none yet
    names : the names so far, to be extended
    """
    own = buckets[ends[0] : ends[-1]]
    new = np.flatnonzero(index[own] < 0) + ends[0]
    for row in np.unique(np.searchsorted(ends, new, "right") - 1).tolist():
        found = buckets[ends[row] : ends[row + 1]].tolist()
        for bucket, name in zip(found, words_and_pairs(text[row]), strict=True):
            names.setdefault(bucket, name)
