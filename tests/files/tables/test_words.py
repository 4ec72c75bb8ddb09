"""Bags of words equal their plain-Python twin, whatever the script, and however rows are cut into chunks."""

from __future__ import annotations

import itertools
import json
import math
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.files.conftest import Whole

from shoal.files import open_stream
from shoal.files.tables.encoder import StreamEncoder
from shoal.files.tables.words import ALONE, LAST_HAN, bags_of, words_and_pairs

MASK = 2**64 - 1


def is_alone(letter: str) -> bool:
    code = ord(letter)
    if code >= 0x20000:
        return code <= LAST_HAN
    return unicodedata.category(letter)[0] in "LNM" and any(first <= code <= last for first, last in ALONE)


def words_of(text: str) -> list[str]:
    """Lower-case words; a letter of a script without spaces is one."""
    words: list[str] = []
    word = ""
    for letter in text:
        if is_alone(letter) or ord(letter) >= 0x20000 or unicodedata.category(letter)[0] not in "LNM":
            words, word = ([*words, word] if word else words), ""
            if is_alone(letter):
                words.append(letter)
        else:
            word += letter.lower()[0]
    return [*words, word] if word else words


def hash_of(word: str) -> int:
    hashed = 0xCBF29CE484222325
    for letter in word:
        code = ord(letter.lower()[0]) if ord(letter) < 0x20000 else ord(letter)
        hashed = (hashed ^ code) * 0x100000001B3 & MASK
    return hashed


def bucket_of(hashed: int, bits: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashed = (hashed ^ hashed >> 33) * factor & MASK
    return (hashed ^ hashed >> 33) >> (64 - bits)


def bag_of(text: str, bits: int) -> Counter[int]:
    hashes = [hash_of(word) for word in words_of(text)]
    pairs = [one * 0x9E3779B97F4A7C15 + other & MASK for one, other in itertools.pairwise(hashes)]
    return Counter(bucket_of(hashed, bits) for hashed in (*hashes, *pairs))


TEXTS = st.text(max_size=60) | st.text("aB1é _-漢字かなไทย\U00020000İß", max_size=80) | st.none()


@given(st.lists(TEXTS, min_size=1, max_size=8), st.sampled_from([1, 6, 18]))
@example(["The new gate", None, "", "ภาษา漢字mixedかな", "👩‍👩‍👧 e\u0301"], 18)
def test_bags_are_those_of_the_twin(texts: list[str | None], bits: int) -> None:
    found = bags_of([pl.Series(texts, dtype=pl.String)] * 2, bits)
    for column in range(2):
        for row, text in enumerate(texts):
            first, last = found.ends[column, row : row + 2]
            assert Counter(found.buckets[first:last].tolist()) == bag_of(text or "", bits)


def test_what_is_a_word() -> None:
    assert words_of("Don't PAY 10.50€ now_ÉTÉ") == ["don", "t", "pay", "10", "50", "now", "été"]
    assert words_of("東京へ2024年") == ["東", "京", "へ", "2024", "年"]
    assert words_of("हिन्दी में") == ["हिन्दी", "में"]


@pytest.mark.parametrize("sizes", [[300], [1] * 300, [7, 100, 193]])
def test_rows_hold_the_logarithms_of_counts(sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"w{i}" for i in range(200)])
    texts: list[str | None] = [" ".join(rng.choice(vocabulary, n)) for n in rng.integers(0, 400, 300)]
    texts[5], texts[6] = None, ""
    frame = pl.DataFrame({"a": texts, "x": rng.normal(size=300), "b": texts[::-1]})
    encoder = StreamEncoder({"a": "text", "b": "text"}, hash_bits=9)
    encoder.decide(frame)
    first = 0
    for size in sizes:
        piece = frame.slice(first, size)
        X = encoder.encode(encoder.read(piece)[0], size)
        assert X.has_sorted_indices
        assert (np.diff(X.indices)[np.setdiff1d(np.arange(X.nnz - 1), X.indptr[1:-1] - 1)] > 0).all()
        for x, a, b in zip(X, piece["a"], piece["b"], strict=True):
            got = {encoder.feature_names[j]: v for j, v in zip(x.indices, x.data, strict=True)}
            for name, text in (("a", a), ("b", b)):
                expected = {f"{name}#{k}": math.log1p(n) for k, n in bag_of(text or "", 9).items()}
                assert {key: got[key] for key in got if key.startswith(f"{name}#")} == expected
                assert (f"{name}=missing" in got) == (not text)
        first += size
    assert encoder.feature_names[: len(bag_of(texts[0] or "", 9))][1].startswith("a#")
    assert len(encoder.feature_names) <= 1 + 1 + 2 * (512 + 1)
    again = StreamEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.feature_names == encoder.feature_names
    more = frame.with_columns(pl.col("a").fill_null("") + " quite new words")
    one, other = (each.encode(each.read(more)[0], 300) for each in (encoder, again))
    np.testing.assert_array_equal(one.indices, other.indices)
    assert one.data.tobytes() == other.data.tobytes()
    assert again.feature_names == encoder.feature_names


@pytest.mark.parametrize("sizes", [[200], [7, 93, 100]])
def test_names_of_words_can_be_kept(sizes: list[int]) -> None:
    """The first word of a bucket names it; names change nothing else, and are saved."""
    rng = np.random.default_rng(1)
    words = ["Free", "MONEY", "été", "ß", "東", "12", "हिन्दी", "x"]
    drawn = rng.choice([word + mark for word in words for mark in (" ", ", ", "-", "")], (200, 9))
    texts = ["".join(row) for row in drawn.tolist()]
    texts[3] = ""
    frame = pl.DataFrame({"t": texts})
    plain, named = (StreamEncoder({"t": "text"}, keep_names=keep) for keep in (False, True))
    first = 0
    for encoder in (plain, named):
        encoder.decide(frame)
    for size in sizes:
        piece = frame.slice(first, size)
        one, other = (encoder.encode(encoder.read(piece)[0], size) for encoder in (plain, named))
        assert (one != other).nnz == 0
        first += size
    for i, text in enumerate(texts):
        tokens, single = words_and_pairs(text), words_of(text)
        assert tokens[:1] == single[:1]
        assert tokens[1::2] == single[1:]
        assert tokens[2::2] == [f"{last} {word}" for last, word in itertools.pairwise(single)]
        x = named.encode(named.read(frame.slice(i, 1))[0], 1, learns=False)
        got = {named.feature_names[j] for j in x.indices} - {"constant", "t=missing"}
        assert got <= {f"t={token}" for token in tokens}
    again = StreamEncoder.from_dict(json.loads(json.dumps(named.to_dict())))
    assert again.feature_names == named.feature_names
    assert again.to_dict() == named.to_dict()


def write(path: Path, texts: list[str]) -> Path:
    pl.DataFrame({"body": texts, "y": [i % 2 for i in range(len(texts))]}).write_csv(path)
    return path


WORDS, CATEGORY = "text, single words and pairs", "category"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"flight {i} was late" for i in range(40)], WORDS),
        ([f"flight {i}" for i in range(40)], CATEGORY),  # two words
        (["the flight was late", "the flight was early"] * 20, CATEGORY),  # few values
        ([f"飛行機が{i}分遅れた" for i in range(40)], WORDS),
        ([f"เที่ยวบิน{i}" for i in range(40)], WORDS),
        ([*(f"flight {i} was late" for i in range(30)), *["unknown"] * 10], WORDS),
    ],
)
def test_a_column_is_words_or_a_category(texts: list[str], expected: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", texts)
    with open_stream(path, label="y") as stream:
        assert stream.notes[0].startswith(f"body: {expected}")
    for option, kind in (("text", WORDS), ("category", CATEGORY)):
        chosen: dict[str, Any] = {option: ["body"]}
        with open_stream(path, label="y", **chosen) as stream:
            next(stream)
            assert stream.notes[0].startswith(f"body: {kind}")


def test_words_are_the_same_in_every_format_and_chunk(tmp_path: Path, whole: type[Whole]) -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{j}" for j in rng.zipf(1.5, 12) % 500) for _ in range(2_500)]
    table = pl.DataFrame({"subject": texts, "body": texts[::-1], "y": rng.integers(0, 2, 2_500)})
    table.write_csv(tmp_path / "a.csv")
    table.write_parquet(tmp_path / "a.parquet")
    table.write_ndjson(tmp_path / "a.ndjson")
    expected = whole(open_stream(tmp_path / "a.csv", label="y", hash_bits=12))
    ways: list[tuple[str, dict[str, Any]]] = [("a.parquet", {}), ("a.ndjson", {}), ("a.csv", {"chunk_rows": 300})]
    for name, options in ways:
        whole(open_stream(tmp_path / name, label="y", hash_bits=12, **options)).same(expected)


def test_chunks_of_long_texts_are_small(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ["word " * 20_000 + str(i) for i in range(200)])
    sizes = [chunk.X.shape[0] for chunk in open_stream(path, label="y")]
    assert max(sizes) <= 90
    assert sum(sizes) == 200
