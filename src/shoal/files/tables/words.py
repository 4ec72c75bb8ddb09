"""Texts as bags of words: lower case, single words and pairs of neighbors, hashed by compiled code.

A word is a run of letters, digits and marks of any script. Scripts that put no spaces between words (Han, Hiragana,
Katakana, Thai, Lao, Khmer, Myanmar) give single characters, and so pairs of characters. No Python object is made for
a word: the bytes of a column go in, the numbers of hashed features come out.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.compile import kernel

CODES = 0x20000  # code points with an entry of their own; those above are Han
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
    """The hashed features of several columns of text, in the order of the words."""

    ends: NDArray[np.int64]  # (columns, n + 1) where the features of each row end in `buckets`
    buckets: NDArray[np.int32]


@cache
def fold_table() -> NDArray[np.int32]:
    """What each code point is in a word: its lower case, minus its code if it is a word by itself, or 0 if none."""
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
    """Each bit of the hash reaches the highest ones (the finalizer of MurmurHash3)."""
    hashed = (hashed ^ (hashed >> U(33))) * U(0xFF51AFD7ED558CCD)
    hashed = (hashed ^ (hashed >> U(33))) * U(0xC4CEB9FE1A85EC53)
    return hashed ^ (hashed >> U(33))


@kernel(sums="exact", alone=False)
def _decode(data: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The code point at i, and how many bytes it has; the text is valid UTF-8."""
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
    """A word, and its pair with the last one (0 if there is none): how many features there are now."""
    buckets[n] = np.int32(np.int64(_finish(hashed) >> shift))
    n += 1
    if last != U(0):
        buckets[n] = np.int32(np.int64(_finish(last * MULTIPLIER + hashed) >> shift))
        n += 1
    return n


@kernel(entry=True, inline=False, sums="exact")
def hash_words(
    data: NDArray[np.uint8], ends: NDArray[np.int64], fold: NDArray[np.int32], bits: int,
    out_ends: NDArray[np.int64], buckets: NDArray[np.int32],
) -> int:  # fmt: skip
    """Fill in the features of the texts data[ends[row]:ends[row + 1]] from buckets[out_ends[0]] on; where they end."""
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
    """The features of columns of text, each hashed into 2**bits; a missing text has none."""
    n_rows = len(texts[0]) if texts else 0
    sizes = [text.str.len_bytes().fill_null(0).to_numpy() for text in texts]
    # A word and its pair are two features, and a word is followed by a separator or has three bytes.
    buckets = np.empty(int(sum(size.sum() + n_rows for size in sizes)), np.int32)
    ends, n = np.zeros((len(texts), n_rows + 1), np.int64), 0
    for column, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        ends[column, 0] = n
        data = np.frombuffer(text.str.join("").cast(pl.Binary).item() or b"", np.uint8)
        byte_ends = np.concatenate([[0], np.cumsum(size, dtype=np.int64)])
        n = hash_words(data, byte_ends, fold_table(), bits, ends[column], buckets)
    return Bags(ends, buckets[:n])
