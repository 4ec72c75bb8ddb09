"""The counts of the six inboxes, as their README measured them, and the order of their mails."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.datasets import load, load_enron

MAILS = {
    1: (3_672, 1_500),
    2: (4_361, 1_496),
    3: (4_012, 1_500),
    4: (1_500, 4_499),
    5: (1_500, 3_675),
    6: (1_500, 4_500),
}
WORDS_SEEN = {1: 45_758, 2: 36_331, 3: 49_840, 4: 64_705, 5: 38_721, 6: 66_465}


def test_counts(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("enron_spam")
    data = load_enron(min_mails=1)
    assert data.X.shape == (33_715, 143_308)
    for user, (ham, spam) in MAILS.items():
        rows = data.task == user
        assert (int((data.y[rows] < 0).sum()), int((data.y[rows] > 0).sum())) == (ham, spam)
        assert len(np.unique(data.X[rows].indices)) == WORDS_SEEN[user]
    mails_of_word = np.bincount(data.X.indices, minlength=143_308)
    assert ((mails_of_word >= 10).sum(), (mails_of_word >= 100).sum()) == (24_389, 4_691)
    assert list(data.feature_names) == sorted(data.feature_names)
    for user in MAILS:  # the spam comes mixed with the ham
        first, second = np.array_split(data.y[data.task == user] > 0, 2)
        assert abs(first.mean() - second.mean()) < 0.05


@pytest.fixture
def six_small_inboxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives like the real ones; user 1 has four mails, the others two each."""
    mails = {1: [("ham", 2, "Subject: b\nHello Hello there"), ("spam", 10, "BUY buy x now"), ("ham", 1, "hello w0rld"),
                 ("spam", 3, "caf\xe9 now")]}  # fmt: skip
    mails |= {user: [("spam", 2, f"second now {'z' * user}"), ("ham", 1, "first")] for user in range(2, 7)}
    (tmp_path / "enron_spam").mkdir()
    for user, texts in mails.items():
        with tarfile.open(tmp_path / "enron_spam" / f"enron{user}.tar.xz", "w:xz") as archive:
            for kind, serial, text in [*texts, ("", 0, "no mail")]:
                name = f"enron{user}/{kind}/{serial:04d}.1999-12-10.someone.{kind}.txt" if kind else "Summary.txt"
                content = text.encode("latin-1")
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))


@pytest.mark.usefixtures("six_small_inboxes")
def test_the_inboxes_run_side_by_side_each_in_its_order() -> None:
    data = load_enron(min_mails=1)
    assert data.task.tolist() == [1, 2, 3, 4, 5, 6, 1, 1, 2, 3, 4, 5, 6, 1]
    assert data.y[data.task == 1].tolist() == [-1, -1, 1, 1]
    words = [{data.feature_names[j]: n for j, n in zip(row.indices, row.data, strict=True)} for row in data.X]
    of_user_1 = [words[i] for i in np.flatnonzero(data.task == 1)]
    assert of_user_1 == [
        {"hello": 1, "rld": 1},
        {"subject": 1, "hello": 2, "there": 1},
        {"caf": 1, "now": 1},
        {"buy": 2, "now": 1},
    ]


@pytest.mark.usefixtures("six_small_inboxes")
def test_rare_words_are_left_out_and_counts_transformed() -> None:
    counts, scaled = load("enron"), load_enron(transform="log-norm")
    assert counts.name == "enron"
    assert counts.feature_names == scaled.feature_names == ("first", "hello", "now", "second")
    row = 6  # user 1's second mail
    assert counts.X[row].toarray().tolist() == [[0, 2, 0, 0]]
    np.testing.assert_allclose(scaled.X[row].toarray(), [[0, 1, 0, 0]])
    assert np.allclose(scaled.X.power(2).sum(axis=1), 1)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="transform must be 'counts' or 'log-norm', got 'tfidf'"):
        load_enron(transform="tfidf")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="min_mails must be at least 1, got 0"):
        load_enron(min_mails=0)


def test_where_the_archives_are_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"needs the file enron_spam/enron1\.tar\.xz"):
        load_enron()
