"""`shoal follow` starts again with the options with which its model was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal import TabularClassifier
from shoal.cli.commands import follow as command
from shoal.cli.commands.follow import _check, begun_with, follow_topic
from shoal.cli.options import FollowOptions, RowOptions, ServeOptions
from shoal.cluster import topic_per_shard


def write(path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"shop": "a", "price": 1.0}, {"shop": "b", "price": 2.0}]
    TabularClassifier("shop", **options).fit(rows, [0, 1]).save(path)


def test_the_newest_snapshot_says_how_rows_are_read(tmp_path: Path) -> None:
    folder, model = tmp_path / "m.live", tmp_path / "m.shoal"
    assert begun_with(folder, None) is None
    write(model, hash_bits=7)
    assert begun_with(folder, str(model))["hash_bits"] == 7  # type: ignore[index]
    for position, bits in (("000012", 9), ("000003", 8), ("000010", 10)):
        write(folder / "snapshots" / f"{position}.shoal", hash_bits=bits)
    assert begun_with(folder, str(model))["hash_bits"] == 9  # type: ignore[index]
    (folder / "snapshots" / "000099.shoal").write_bytes(b"cut")
    assert begun_with(folder, None)["hash_bits"] == 9  # type: ignore[index]


def test_options_of_the_same_command_are_taken_again_and_others_refused() -> None:
    follow, known = FollowOptions(id="key"), {"hash_bits": 9, "ignore": ("note", "key"), "text": ["title"]}
    _check(follow, RowOptions(hash_bits=9, ignore=("note",), text=("title",)), known, is_new=False)
    _check(follow, RowOptions(), known, is_new=False)
    with pytest.raises(ValueError, match="leave out --hash-bits"):
        _check(follow, RowOptions(hash_bits=8), known, is_new=False)
    with pytest.raises(ValueError, match="leave out --hash-bits"):
        _check(follow, RowOptions(hash_bits=9), None, is_new=False)
    with pytest.raises(ValueError, match="--label is missing"):
        _check(follow, RowOptions(), None, is_new=True)
    with pytest.raises(ValueError, match="--labels-from needs --model"):
        _check(FollowOptions(labels_from="t"), RowOptions(label="y"), None, is_new=True)


def test_the_topics_of_all_shards_must_be_there_before_a_service_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Topics:
        def __init__(self, brokers: str, names: list[str], offsets: dict[str, int], settings: dict[str, str]) -> None:
            asked.append((names, offsets))

        def close(self) -> None:
            closed.append(len(asked))

    def serve(model: str, options: ServeOptions, source: Any) -> int:
        served.append(model)
        return 0

    asked, closed, served = list[Any](), list[int](), list[str]()
    monkeypatch.setattr(topic_per_shard, "Topics", Topics)
    monkeypatch.setattr(command, "serve_model", serve)
    model = tmp_path / "m.shoal"
    write(model)
    options = ServeOptions(folder=str(tmp_path / "live"), shards=2)
    follow = FollowOptions(model=str(model), labels_from="labels-{shard}")
    assert follow_topic("kafka://here:9092/rows-{shard}", follow, RowOptions(), options) == 0
    assert asked == [([f"rows-{k}", f"labels-{k}"], {}) for k in range(2)]
    assert closed == [1, 2]
    assert served == [str(model)]
    with pytest.raises(ValueError, match="needs --model and --shards, 2 or more"):
        follow_topic("kafka://here:9092/rows-{shard}", follow, RowOptions(), ServeOptions())
