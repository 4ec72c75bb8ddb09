"""The counts of the spam challenge's inboxes, as their README measured them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.datasets import ecml_spam, load_ecml_spam


@pytest.mark.parametrize(
    ("users", "inboxes", "mails", "width", "words"),
    [("b", 15, 400, 152_543, 37_120), ("a", 3, 2_500, 106_780, 39_962)],
)
def test_counts(
    benchmark_files: Callable[[str], Path], users: Any, inboxes: int, mails: int, width: int, words: int
) -> None:
    benchmark_files("ecml2006_spam")
    data = load_ecml_spam(users)
    assert data.name == {"a": "ecml_spam_a", "b": "ecml_spam"}[users]
    assert data.X.shape == (inboxes * mails, width)
    assert np.bincount(data.task).tolist() == [mails] * inboxes
    assert all((data.y[data.task == user] > 0).sum() == mails / 2 for user in range(inboxes))
    assert len(np.unique(data.X.indices)) == words
    assert data.X.indices.max() == width - 1
    if users == "b":
        assert (data.X.data.min(), data.X.data.max()) == (1, 1_119)
        seen = [len(np.unique(data.X[data.task == user].indices)) for user in range(inboxes)]
        assert (min(seen), max(seen)) == (8_423, 15_009)


def test_log_norm_is_the_log_of_the_counts_at_unit_norm(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("ecml2006_spam")
    counts, scaled = load_ecml_spam(), load_ecml_spam(transform="log-norm")
    np.testing.assert_array_equal(counts.X.indices, scaled.X.indices)
    for row in (0, 17, 5_999):
        expected = np.log(1 + counts.X[row].data)
        np.testing.assert_allclose(scaled.X[row].data, expected / np.sqrt((expected**2).sum()), rtol=1e-14)


@pytest.mark.parametrize("users", ["a", "b"])
def test_the_checksums_are_those_of_the_texts(benchmark_files: Callable[[str], Path], users: str) -> None:
    files = sorted((benchmark_files("ecml2006_spam") / f"task_{users}_lab").glob("*.tf.gz"))
    found = tuple(hashlib.sha256(gzip.decompress(file.read_bytes())).hexdigest() for file in files)
    assert found == ecml_spam._SHA256[users]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="users must be 'b'"):
        load_ecml_spam("c")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="transform must be 'counts' or 'log-norm', got 'tfidf'"):
        load_ecml_spam(transform="tfidf")  # type: ignore[arg-type]
