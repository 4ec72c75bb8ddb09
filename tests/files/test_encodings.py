"""Text of any encoding gives the rows of the same text in UTF-8, and the notes say which it was."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream

TEXT = "Wörter,Preis,ja,Laden\n" + "Größe,1.5,0,Köln\nnaïve – schön,2.5,1,Saarbrücken\n" * 40
ROLES: dict[str, Any] = {"task": "Laden", "label": "ja"}
KANA = "りんご,ぶどう,ja,みせ\n" + "あか,1.5,0,ひだり\nみどり,2.5,1,みぎ\n" * 40


@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize(
    ("encoding", "given", "said"),
    [
        ("cp1252", None, "cp1252 (found by its bytes"),
        ("utf-16", None, "utf-16 (found"),
        ("utf-16-le", None, "utf-16-le (found"),
        ("utf-32", None, "utf-32 (found"),
        ("utf-8-sig", None, ""),
        ("utf-8", "utf-8", ""),
        ("cp1252", "windows-1252", "cp1252 (as encoding= says)"),
    ],
)
def test_a_text_is_read_in_its_encoding(
    encoding: str,
    given: str | None,
    said: str,
    block: int,
    tmp_path: Path,
    whole: type[Whole],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, path = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_text(TEXT, encoding="utf-8")
    path.write_bytes(TEXT.encode(encoding))
    expected = whole(open_stream(plain, **ROLES))
    if encoding in ("cp1252", "utf-8"):  # others are told by their first bytes
        monkeypatch.setattr("shoal.files.source.BLOCK", block)
    found = whole(open_stream(path, encoding=given, **ROLES))
    found.same(expected)
    [*notes] = [note for note in found.stream.notes if note.startswith("the text of")]
    assert [note.partition(" is ")[2].startswith(said) for note in notes] == ([True] if said else [])


def test_letters_of_another_script_need_their_encoding(tmp_path: Path, whole: type[Whole]) -> None:
    plain, path = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_text(KANA, encoding="utf-8")
    path.write_bytes(KANA.encode("shift_jis"))
    with pytest.raises(ValueError, match=r"names of the columns are not UTF-8 text \(encoding= names another"):
        open_stream(path, task="みせ", label="ja")
    found = whole(open_stream(path, task="みせ", label="ja", encoding="shift_jis"))
    found.same(whole(open_stream(plain, task="みせ", label="ja")))
    rows = [{"t": "みせ", "x": 1.5, "y": 0}, {"t": "u", "x": 2.5, "y": 1}]
    lines = path.with_suffix(".ndjson")
    lines.write_bytes("\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode("cp932"))
    assert whole(open_stream(lines, task="t", label="y", encoding="shift_jis")).task.tolist() == ["みせ", "u"]
    words = path.with_suffix(".vw")
    words.write_bytes("1 |t みせ |f x:1\n-1 |t u |f x:1\n".encode("cp932"))
    assert whole(open_stream(words, task="t", encoding="shift_jis")).task.tolist() == ["みせ", "u"]


def test_a_byte_that_is_no_text_costs_its_row(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("c,y\nあ,0\n".encode("cp932") + b"\x82 x,1\n" + b"b,1\n" * 9)
    with pytest.raises(BadRow, match="line 3: byte 0x82 is not UTF-8 text"):
        list(open_stream(path, label="y", encoding="shift_jis"))
    assert whole(open_stream(path, label="y", encoding="shift_jis", skip_bad=True)).X.shape[0] == 10
    path.write_bytes("c,y\na,0\n".encode("utf-16")[:-1])
    with pytest.raises(ValueError, match=r"a\.csv is not utf-16 text"):
        list(open_stream(path, label="y"))
    with pytest.raises(ValueError, match="encoding='utf-9' is not known, expected a name such as utf-8"):
        open_stream(path, label="y", encoding="utf-9")


def test_standard_input_is_found_too(tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "a.csv"
    plain.write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode("cp1252"))))
    found = whole(open_stream("-", **ROLES))
    found.same(whole(open_stream(plain, **ROLES)))


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n'])
def test_the_line_for_excel_names_the_delimiter(first: str, tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{first}x;y\n1.5;0\n2.5;1\n")
    assert whole(open_stream(path, label="y")).stream.feature_names == ["constant", "x"]
    path.write_text(f"{first}x;y\n1.5;0\n2.5\n")
    with pytest.raises(BadRow, match="line 4: 1 field, expected 2"):
        list(open_stream(path, label="y"))


def test_notes_beside_a_table_are_not_read(tmp_path: Path, whole: type[Whole]) -> None:
    files = {"README.txt": "hi, there\nthis is a note\n", "a.csv": "x,y\n1.5,0\n2.5,1\n", "read.me": "hello"}
    folder = tmp_path / "folder"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
            (folder / name).write_text(text)
    for path in (tmp_path / "a.zip", folder):
        assert whole(open_stream(path, label="y")).y.tolist() == [0, 1]
