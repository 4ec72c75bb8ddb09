"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from shoal.whole_file import whole_file, write_whole


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path, link = tmp_path / "a.html", tmp_path / "current.html"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)

    def half() -> None:
        with whole_file(link) as part:
            part.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"the disk has no room for .*current\.html, which is as it was"):
        half()
    assert path.read_text() == "old"
    with whole_file(link) as part:
        part.write_text("new")
    assert (path.read_text(), link.is_symlink(), path.stat().st_mode & 0o777) == ("new", True, 0o600)
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_a_new_file_obeys_the_umask_and_leaves_nothing_if_it_fails(tmp_path: Path) -> None:
    path, umask = tmp_path / "new", os.umask(0o027)
    try:
        with pytest.raises(TypeError):
            write_whole(path, None)  # type: ignore[arg-type]
        assert [*tmp_path.iterdir()] == []
        write_whole(path, b"new")
    finally:
        os.umask(umask)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


@pytest.mark.parametrize("fsync", [False, True])
def test_a_file_is_on_the_disk_before_it_has_its_name(
    fsync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, bool]] = []
    path = tmp_path / "model"
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_size, path.exists())))
    write_whole(path, b"four", fsync=fsync)
    assert synced == [(4, False)] * fsync
    assert [*tmp_path.iterdir()] == [path]
