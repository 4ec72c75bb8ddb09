"""LIBSVM and VW text: the same rows, exact lines, and what either format cannot say."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream

ROWS = [
    (1, "u", {1: 0.5, 4: 2.0}),
    (-1, "v", {2: 1.0}),
    (-1, "u", {1: -3.0, 2: 1e-3, 5: 1.0}),
    (1, "w", {}),
] * 25


def libsvm(rows: list[tuple[int, str, dict[int, float]]]) -> str:
    return "".join(
        f"{y:+d} qid:{task} {' '.join(f'{i}:{v!r}' for i, v in x.items())} # note 9:9\n" for y, task, x in rows
    )


def vw(rows: list[tuple[int, str, dict[int, float]]]) -> str:
    return "".join(f"{y} 'tag|user {task}|w {' '.join(f'{i}:{v!r}' for i, v in x.items())}\n" for y, task, x in rows)


@pytest.mark.parametrize("chunk_rows", [1, 7, 1_000])
def test_both_formats_hold_the_same(
    chunk_rows: int, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.svm").write_text(libsvm(ROWS))
    (tmp_path / "a.vw").write_text(vw(ROWS))
    monkeypatch.setattr("shoal.files.source.BLOCK", 100)
    one = whole(open_stream(tmp_path / "a.svm", chunk_rows=chunk_rows))
    two = whole(open_stream(tmp_path / "a.vw", task="user", chunk_rows=chunk_rows))
    assert set(one.sizes[:-1]) <= {chunk_rows}
    assert one.task.tolist() == two.task.tolist() == [task for _, task, _ in ROWS]
    assert one.y.tolist() == two.y.tolist() == [float(y) for y, _, _ in ROWS]
    assert one.stream.feature_names == ["1", "2", "3", "4", "5"]
    assert two.stream.feature_names == ["w^1", "w^4", "w^2", "w^5"]
    dense = np.zeros((len(ROWS), 5))
    for row, (_, _, x) in enumerate(ROWS):
        dense[row, [i - 1 for i in x]] = list(x.values())
    np.testing.assert_array_equal(one.X.toarray(), dense)
    np.testing.assert_array_equal(two.X.toarray(), dense[:, [0, 3, 1, 4]])


@pytest.mark.parametrize("format", ["libsvm", "vw"])
def test_a_chunk_ends_where_another_row_might_have_too_many_features(
    format: str, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(1, f"u{i}", {j + 1: 1.0 for j in range(i % 7, 2 * (i % 7))}) for i in range(3_000)]
    rows[2_900] = (-1, "long", {j + 1: 2.0 for j in range(5_000)})  # after it, there is room for more
    path = tmp_path / f"a.{format}"
    path.write_text((libsvm if format == "libsvm" else vw)(rows))
    options: dict[str, Any] = {"task": "qid" if format == "libsvm" else "user"}
    expected = whole(open_stream(path, chunk_rows=7, **options))
    monkeypatch.setattr("shoal.files.sparse_text.reader.FEATURES_A_CHUNK", 2_048)
    chunks = list(open_stream(path, **options))
    assert all(1_900 < chunk.X.nnz <= 2_048 for chunk in chunks[:3])
    assert len(chunks) == 6  # the fifth ends before the long row
    whole(open_stream(path, **options)).same(expected)


def test_gzip_and_standard_input(tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = libsvm(ROWS).encode()
    (tmp_path / "a.libsvm").write_bytes(expected)
    (tmp_path / "a.libsvm.gz").write_bytes(gzip.compress(expected))
    plain = whole(open_stream(tmp_path / "a.libsvm"))
    whole(open_stream(tmp_path / "a.libsvm.gz")).same(plain)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(expected)))
    whole(open_stream("-", format="libsvm")).same(plain)


def test_the_task_of_libsvm_may_be_a_feature(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:3 2:5\n0 1:1.5 2:6\n1 2:7\n")
    found = whole(open_stream(path, task="1"))
    assert found.task.tolist() == ["3", "1.5", "0"]
    np.testing.assert_array_equal(found.X.toarray(), [[0, 5], [0, 6], [0, 7]])
    assert whole(open_stream(path)).task is None
    with pytest.raises(ValueError, match="expected 'qid' or the index"):
        open_stream(path, task="user")


def test_what_vw_text_may_say(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 1.0 tag|w:2 a b:3 a| c\n\n-1 |user x |w b\n0.5 1|empty\n")
    found = whole(open_stream(path, kind="regression"))
    assert found.y.tolist() == [1.0, -1.0, 0.5]
    assert found.stream.feature_names == ["w^a", "w^b", "c", "user^x"]
    np.testing.assert_array_equal(found.X.toarray(), [[4, 6, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0]])


BAD_LIBSVM = {
    "x qid:u 1:1": "label 'x', expected a number",
    "nan qid:u 1:1": "label 'nan', expected a finite number",
    "1 1:1": "no task, expected qid:TASK",
    "1 qid:u 1": "token '1', expected INDEX:VALUE",
    "1 qid:u 1:2:3": "value of feature 1 '2:3', expected a number",
    "1 qid:u a:1": "token 'a:1', expected INDEX:VALUE",
    "1 qid:u 1:inf": "value of feature 1 'inf', expected a finite number",
    "1 qid:u -1:1": "feature index -1, expected 0 to",
    "1 qid:u 99999999999:1": "feature index 99999999999, expected 0 to",
    "1 qid:u 2:1 2:1": "feature 2 twice",
    "3 qid:u 1:1": "label 3 is a third one, expected 1 or -1",
}
BAD_VW = {
    "1 user u": r"no '|', expected LABEL |NAMESPACE",
    "|user u |w a": "no label, expected a number",
    "yes |user u |w a": "label 'yes', expected a number",
    "1 -2.5 |user u |w a": "importance weight '-2.5', expected a number >= 0",
    "1 1 0.5 |user u |w a": "initial prediction '0.5', expected none",
    "1 |user u |w a:b": "value of feature 'a' 'b', expected a number",
    "1 |user u |w :2": "token ':2', expected FEATURE or FEATURE:VALUE",
    "1 |user u |w:x a": "scale of namespace 'w' 'x', expected a number",
    "1 |usr u |w a": "no task, expected it in namespace 'user', it has 'usr', 'w': did you mean 'usr'?",
    "1 |user |w a": "no task",
}


@pytest.mark.parametrize(
    ("name", "good", "bad", "expected"),
    [("a.svm", libsvm(ROWS), bad, why) for bad, why in BAD_LIBSVM.items()]
    + [("a.vw", vw(ROWS), bad, why) for bad, why in BAD_VW.items()],
)
def test_bad_lines(name: str, good: str, bad: str, expected: str, tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / name
    lines = good.splitlines()
    path.write_text("\n".join([*lines[:70], "", bad, *lines[70:]]))
    task = "qid" if name == "a.svm" else "user"
    with pytest.raises(BadRow) as caught:
        list(open_stream(path, task=task, chunk_rows=50))
    assert f"{name}, line 72: {expected}" in str(caught.value)
    found = whole(open_stream(path, task=task, skip_bad=True))
    path.write_text(good)
    found.same(whole(open_stream(path, task=task)))
    assert (found.stream.skipped, len(found.stream.bad_rows)) == (1, 1)


@pytest.mark.parametrize(("name", "write"), [("a.svm", libsvm), ("a.vw", vw)])
def test_saved_and_restored_equals_continued(
    name: str, write: Callable[[list[Any]], str], tmp_path: Path, whole: type[Whole]
) -> None:
    task = "qid" if name == "a.svm" else "user"
    paths = [tmp_path / folder / name for folder in ("all", "first", "second")]
    for path, rows in zip(paths, (ROWS, ROWS[:2], ROWS[2:]), strict=True):
        path.parent.mkdir()
        path.write_text(write(rows))
    expected = whole(open_stream(paths[0], task=task))
    first = whole(open_stream(paths[1], task=task))
    state = json.loads(json.dumps(first.stream.to_dict()))
    second = whole(open_stream(paths[2], task=task, state=state))
    assert second.stream.feature_names == expected.stream.feature_names
    np.testing.assert_array_equal(second.X.toarray(), expected.X[2:].toarray())
